#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace embertable::jobs {

/// A file of a step, read whole.
struct CheckedFile {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::string damage;  ///< naming file and block, "" if everything matches its checksum
};

struct CheckedStep {
  std::filesystem::path directory;
  std::vector<CheckedFile> files;  ///< the manifest first; alone, if it is damaged
  std::int64_t num_damaged() const noexcept;
};

/// Reads every byte of a checkpoint and checks every checksum. `path` is a step's directory, or a
/// run's: then its highest step, whatever can be read of it, or every one, rising. Throws IoError
/// if there is no step, or one of a newer format.
std::vector<CheckedStep> check_steps(const std::filesystem::path& path, bool all);

}  // namespace embertable::jobs
