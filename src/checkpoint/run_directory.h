#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file.h"
#include "embertable/checkpoint.h"

namespace embertable::checkpoint {

/// "step_000000001234": at least 12 digits. step >= 0.
std::string step_name(std::int64_t step);

/// The step of a name that `step_name` gives, else nothing.
std::optional<std::int64_t> parse_step_name(std::string_view name);

/// True if a name is that of an unfinished or discarded step: ".step_", more, "_tmp-", more.
bool is_temporary_name(std::string_view name);

/// True if something in `run` has this name: a link has it wherever it leads.
bool has_name(FileSystem& files, const std::filesystem::path& run, const std::string& name);

/// A name for an unfinished step that nothing in `run` has: ".step_000000001234_tmp-<process>",
/// "-<k>" added if taken.
std::string temporary_name(FileSystem& files, const std::filesystem::path& run, std::int64_t step);

/// The file whose lock shows that a process saves to a run directory.
inline constexpr const char* kLockName = ".lock";

/// A run directory that is locked: until this dies nobody else saves there.
class OpenRun {
 public:
  /// Makes the directory where it is missing. Throws StateError naming the process that holds it,
  /// IoError.
  OpenRun(FileSystem& files, std::filesystem::path directory);

  FileSystem& files() const noexcept { return files_; }
  const std::filesystem::path& directory() const noexcept { return directory_; }

  /// Held by whoever changes the directory, one after the other.
  std::mutex& changing() const noexcept { return changing_; }

 private:
  FileSystem& files_;
  std::filesystem::path directory_;
  std::unique_ptr<FileLock> lock_;
  mutable std::mutex changing_;
};

/// The run of the public handle, which is not moved from.
const OpenRun& open_run(const CheckpointRun& run);

/// Steps whose directories stand in `run`, rising, whether or not they can be read; none if there
/// is no such directory.
std::vector<std::int64_t> list_steps(FileSystem& files, const std::filesystem::path& run);

/// Removes what unfinished saves have left. Nothing else may be saving to `run`. What cannot be
/// removed stays, and so does what links lead to.
void remove_leftovers(FileSystem& files, const std::filesystem::path& run);

/// Removes the steps below the `newest`-th highest one that a reader would open; >= 1. Waits for a
/// save through the same run to end. Throws IoError, then with steps gone or whole.
void keep_newest(const OpenRun& run, std::int64_t newest);

/// Removes one step; interrupted anywhere, no part of it counts as a step any more. A step that is
/// a link to a directory stays whole there: the link goes. Throws IoError.
void remove_step(FileSystem& files, const std::filesystem::path& run, std::int64_t step);

}  // namespace embertable::checkpoint
