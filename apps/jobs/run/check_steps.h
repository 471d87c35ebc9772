#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace embertable::jobs {

/// A file of a step, completely read.
struct CheckedFile {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::string damage;  ///< names file and block; "" if everything matches its checksum
};

struct CheckedStep {
  std::filesystem::path directory;
  std::vector<CheckedFile> files;  ///< the manifest comes first; it is alone if it is damaged
  std::int64_t num_damaged() const noexcept;
};

/// Reads every byte of a checkpoint and checks every checksum. `path` is the directory of a step,
/// or of a run, of which it checks the highest step, however damaged, or, with `all`, every step,
/// rising; then likewise of the best epoch, if the run keeps one. Throws IoError if there is no
/// step, or one of a newer format.
std::vector<CheckedStep> check_steps(const std::filesystem::path& path, bool all);

}  // namespace embertable::jobs
