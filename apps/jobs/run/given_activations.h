#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "embertable/checkpoint.h"

namespace embertable::jobs {

/// Activations of one batch that a saved run had looked up before its last update. The run that
/// resumes it uses them once, instead of its own lookup.
class GivenActivations {
 public:
  /// A feature whose activations must be given.
  struct Feature {
    std::string name;
    std::int64_t width = 0;  ///< output rows of a sample
    std::int64_t dim = 0;    ///< floats of an output row
  };

  /// Holds none.
  GivenActivations() = default;

  /// Takes what the step in `directory` has by feature, F32 [output rows, dim]; nothing: holds
  /// none. Throws DataLoss unless there is one for each of `features`, of its dim.
  GivenActivations(std::map<std::string, DenseTensor> by_feature, std::vector<Feature> features,
                   std::filesystem::path directory);

  bool empty() const noexcept { return by_feature_.empty(); }

  /// Copies the activations of a batch of `samples` samples to rows[feature], and holds none then.
  /// Throws DataLoss, and copies nothing, if they are of another number of samples. Requires: each
  /// of rows has room for them.
  void take(std::int64_t samples, std::span<std::vector<float>> rows);

 private:
  void check(const std::string& feature, const std::vector<std::int64_t>& shape) const;

  std::map<std::string, DenseTensor> by_feature_;
  std::vector<Feature> features_;
  std::filesystem::path directory_;
};

}  // namespace embertable::jobs
