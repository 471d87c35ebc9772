#include "apps/jobs/math/mf_plain_loop.h"

#include <random>

namespace embertable::jobs {

PlainMf make_plain_mf(std::int64_t users, std::int64_t items, std::int64_t dim, float mean,
                      float stddev, std::uint64_t seed) {
  PlainMf model{.dim = dim, .mean = mean};
  model.user.resize(users * dim);
  model.item.resize(items * dim);
  model.user_bias.resize(users);
  model.item_bias.resize(items);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (float& x : model.user) x = stddev * normal(random);
  for (float& x : model.item) x = stddev * normal(random);
  return model;
}

float plain_mf_predict(const PlainMf& model, std::int32_t user, std::int32_t item) noexcept {
  float sum = model.mean + model.user_bias[user] + model.item_bias[item];
  for (std::int64_t k = 0; k < model.dim; ++k) {
    sum += model.user[user * model.dim + k] * model.item[item * model.dim + k];
  }
  return sum;
}

double plain_mf_epoch(PlainMf& model, std::span<const Rating> ratings, float learning_rate,
                      float regularization) noexcept {
  double squares = 0;
  for (const Rating& rating : ratings) {
    float* __restrict__ p = model.user.data() + rating.user * model.dim;
    float* __restrict__ q = model.item.data() + rating.item * model.dim;
    float& user_bias = model.user_bias[rating.user];
    float& item_bias = model.item_bias[rating.item];
    float prediction = model.mean + user_bias + item_bias;
    for (std::int64_t k = 0; k < model.dim; ++k) prediction += p[k] * q[k];
    const float error = prediction - rating.value;
    squares += static_cast<double>(error) * static_cast<double>(error);
    user_bias -= learning_rate * (error + regularization * user_bias);
    item_bias -= learning_rate * (error + regularization * item_bias);
    for (std::int64_t k = 0; k < model.dim; ++k) {
      const float own = p[k];
      p[k] -= learning_rate * (error * q[k] + regularization * own);
      q[k] -= learning_rate * (error * own + regularization * q[k]);
    }
  }
  return squares;
}

}  // namespace embertable::jobs
