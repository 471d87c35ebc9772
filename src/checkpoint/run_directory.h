#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "checkpoint/file.h"
#include "embertable/checkpoint.h"
#include "embertable/executor.h"

namespace embertable::checkpoint {

/// Returns "step_000000001234", with at least 12 digits. Requires: step >= 0.
std::string step_name(std::int64_t step);

/// Returns the step of a name that `step_name` gives; empty for any other name.
std::optional<std::int64_t> parse_step_name(std::string_view name);

/// True if a name is that of an unfinished or discarded step: ".step_<text>_tmp-<text>".
bool is_temporary_name(std::string_view name);

/// True if something in `run` has this name, even a link that leads nowhere.
bool has_name(Directory& run, const std::string& name);

/// Returns a name for an unfinished step that nothing in `run` has:
/// ".step_000000001234_tmp-<process>", with "-<k>" added if taken.
std::string temporary_name(Directory& run, std::int64_t step);

/// The file whose lock shows that a process saves to a run directory.
inline constexpr const char* kLockName = ".lock";

/// A mutex that throws StateError when the thread that holds it locks it again: a signal handler
/// that a save has called may do so.
class ChangeMutex {
 public:
  void lock();
  void unlock() noexcept;

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_ = std::thread::id();
};

/// A locked run directory: while this object lives, nobody else saves there. It stays the same
/// directory whatever its path comes to name.
class OpenRun {
 public:
  /// Creates the directory if it is missing. Throws StateError naming the process that holds the
  /// lock, IoError.
  OpenRun(FileSystem& files, std::filesystem::path directory);

  FileSystem& files() const noexcept { return files_; }
  const std::filesystem::path& directory() const noexcept { return directory_; }
  Directory& opened() const noexcept { return *opened_; }

  /// Held while the directory is changed, so that changes exclude each other.
  ChangeMutex& changing() const noexcept { return changing_; }

 private:
  FileSystem& files_;
  std::filesystem::path directory_;
  std::unique_ptr<Directory> opened_;
  std::unique_ptr<FileLock> lock_;
  mutable ChangeMutex changing_;
};

/// Returns the run behind the public handle. Requires: the handle is not moved from.
const OpenRun& open_run(const CheckpointRun& run);

/// Return the steps whose names are in `run`, rising, whether or not they can be read; none if
/// `run` does not exist.
std::vector<std::int64_t> list_steps(Directory& run);
std::vector<std::int64_t> list_steps(FileSystem& files, const std::filesystem::path& run);

/// Asks until something that another host has made is there, since file systems of a network may
/// show it late. Returns false after 3 seconds.
bool seen_in_time(FunctionRef<bool()> is_there);

/// Removes what unfinished saves have left. Requires: nothing else saves to `run`. What cannot be
/// removed stays, and so do the targets of links.
void remove_leftovers(Directory& run);

/// Removes the steps below the `newest`-th highest one that a reader would open. Requires: newest
/// >= 1. Waits for a save of another thread through the same run to end; within one of this thread
/// it throws StateError. Throws IoError; every step is then either removed or whole.
void keep_newest(const OpenRun& run, std::int64_t newest);

/// Removes one step. Interrupted anywhere, it leaves nothing that counts as a step. If the step is
/// a link to a directory, only the link is removed. Throws IoError.
void remove_step(Directory& run, std::int64_t step);

}  // namespace embertable::checkpoint
