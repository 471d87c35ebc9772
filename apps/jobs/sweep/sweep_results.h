#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "apps/jobs/sweep/sweep.h"

namespace embertable::jobs {

/// The results that a sweep's directory keeps, a line each. The last line may be torn.
class SweepResults {
 public:
  /// Reads the file, which may be missing.
  explicit SweepResults(std::filesystem::path path);

  /// Gives a run the result that its id has; false if it has none.
  bool take(SweptRun& run) const;

  /// Appends a line that outlives a loss of power. Throws IoError.
  void add(const SweptRun& run);

 private:
  std::filesystem::path path_;
  std::map<std::string, std::optional<SweptRun>> known_;  ///< by id; nothing: not readable
  bool is_new_ = true;  ///< nothing has been appended by this object
};

}  // namespace embertable::jobs
