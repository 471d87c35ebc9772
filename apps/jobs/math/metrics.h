#pragma once

#include <cstdint>
#include <span>

namespace embertable::jobs {

/// Errors of predicted ratings, summed in the order of the samples.
class RatingMetrics {
 public:
  /// Predictions are clipped to [lowest, highest].
  RatingMetrics(double lowest, double highest) : lowest_(lowest), highest_(highest) {}

  void add(std::span<const float> predictions, std::span<const float> labels);

  std::int64_t samples() const noexcept { return samples_; }
  double rmse() const noexcept;  ///< root of the mean squared error; NaN without samples
  double mae() const noexcept;   ///< mean absolute error; NaN without samples

 private:
  double lowest_, highest_;
  double squares_ = 0;
  double absolutes_ = 0;
  std::int64_t samples_ = 0;
};

/// Area under the ROC curve: the share of pairs of a sample with label 1 and one with label 0 in
/// which the first has the greater score, equal scores counting half. Exact but for the rounding of
/// one division, whatever the order of the samples. 0.5 without such a pair; NaN without samples,
/// and if a score is.
double area_under_curve(std::span<const float> scores, std::span<const float> labels);

/// Mean over the samples, in their order, of -log(p) where the label is 1 and -log(1 - p) where it
/// is 0; p = 1 / (1 + exp(-logit)), no nearer than 1e-15 to 0 and 1. NaN without samples.
double log_loss(std::span<const float> logits, std::span<const float> labels);

}  // namespace embertable::jobs
