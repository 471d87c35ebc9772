#include "apps/jobs/math/metrics.h"

#include <algorithm>
#include <cmath>

namespace embertable::jobs {

void RatingMetrics::add(std::span<const float> predictions, std::span<const float> labels) {
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double error = std::clamp<double>(predictions[i], lowest_, highest_) - labels[i];
    squares_ += error * error;
    absolutes_ += std::abs(error);
  }
  samples_ += static_cast<std::int64_t>(predictions.size());
}

double RatingMetrics::rmse() const noexcept {
  return samples_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(samples_));
}

double RatingMetrics::mae() const noexcept {
  return samples_ == 0 ? 0 : absolutes_ / static_cast<double>(samples_);
}

}  // namespace embertable::jobs
