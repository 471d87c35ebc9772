#include "apps/jobs/math/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/math.h"

namespace embertable::jobs {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Rises with the score; equal for both zeros.
std::uint32_t rank_bits(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

}  // namespace

void RatingMetrics::add(std::span<const float> predictions, std::span<const float> labels) {
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double error = std::clamp<double>(predictions[i], lowest_, highest_) - labels[i];
    squares_ += error * error;
    absolutes_ += std::abs(error);
  }
  samples_ += static_cast<std::int64_t>(predictions.size());
}

double RatingMetrics::rmse() const noexcept {
  return samples_ == 0 ? kNone : std::sqrt(squares_ / static_cast<double>(samples_));
}

double RatingMetrics::mae() const noexcept {
  return samples_ == 0 ? kNone : absolutes_ / static_cast<double>(samples_);
}

double area_under_curve(std::span<const float> scores, std::span<const float> labels) {
  if (scores.empty()) return kNone;
  std::vector<std::uint64_t> order(scores.size());  // score, then label
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return kNone;
    order[i] = std::uint64_t{rank_bits(scores[i])} << 1 | (labels[i] > 0 ? 1 : 0);
  }
  std::sort(order.begin(), order.end());
  std::uint64_t halves = 0, below = 0, ones = 0;  // `below`: samples of label 0 with a lower score
  for (std::size_t i = 0; i < order.size();) {
    const std::uint64_t score = order[i] >> 1;
    std::uint64_t equal[2] = {0, 0};
    for (; i < order.size() && order[i] >> 1 == score; ++i) ++equal[order[i] & 1];
    halves += equal[1] * (2 * below + equal[0]);
    below += equal[0];
    ones += equal[1];
  }
  if (below == 0 || ones == 0) return 0.5;
  return static_cast<double>(halves) / (2 * static_cast<double>(below) * static_cast<double>(ones));
}

double log_loss(std::span<const float> logits, std::span<const float> labels) {
  constexpr double kNearest = 1e-15;
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double p =
        std::clamp(1 / (1 + math::exp(-static_cast<double>(logits[i]))), kNearest, 1 - kNearest);
    sum -= labels[i] > 0 ? math::log(p) : math::log1p(-p);
  }
  return logits.empty() ? kNone : sum / static_cast<double>(logits.size());
}

}  // namespace embertable::jobs
