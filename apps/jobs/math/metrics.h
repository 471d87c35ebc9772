#pragma once

#include <cstdint>
#include <span>

namespace embertable::jobs {

/// Errors of predictions, summed in the order of the samples.
class RatingMetrics {
 public:
  /// Predictions are clipped to [lowest, highest].
  RatingMetrics(double lowest, double highest) : lowest_(lowest), highest_(highest) {}

  void add(std::span<const float> predictions, std::span<const float> labels);

  std::int64_t samples() const noexcept { return samples_; }
  double rmse() const noexcept;  ///< root of the mean squared error; 0 without samples
  double mae() const noexcept;   ///< mean absolute error; 0 without samples

 private:
  double lowest_, highest_;
  double squares_ = 0;
  double absolutes_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace embertable::jobs
