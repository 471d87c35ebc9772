#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace embertable::jobs {

/// One rating, with users and items as dense numbers.
struct Rating {
  std::int32_t user;
  std::int32_t item;
  float value;
};

/// Biased matrix factorisation as one would write it without a library, for comparison with the
/// engine.
struct PlainMf {
  std::int64_t dim = 0;
  float mean = 0;
  std::vector<float> user, item;            ///< [users, dim], [items, dim]
  std::vector<float> user_bias, item_bias;  ///< [users], [items]
};

/// Makes a model with biases 0 and rows that are normal with mean 0 and this deviation.
PlainMf make_plain_mf(std::int64_t users, std::int64_t items, std::int64_t dim, float mean,
                      float stddev, std::uint64_t seed);

float plain_mf_predict(const PlainMf& model, std::int32_t user, std::int32_t item) noexcept;

/// Runs stochastic gradient descent over the ratings in the given order: each moves its two rows
/// and biases by -learning_rate * (error * other + regularization * own). Returns the sum of
/// error^2.
double plain_mf_epoch(PlainMf& model, std::span<const Rating> ratings, float learning_rate,
                      float regularization) noexcept;

}  // namespace embertable::jobs
