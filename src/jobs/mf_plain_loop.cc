#include "jobs/mf_plain_loop.h"

#include <random>

namespace embertable::jobs {

/// What the loop of one epoch reads and writes.
struct PlainLoop {
  const Rating* ratings;
  std::int64_t num_ratings;
  float* user;
  float* item;
  float* user_bias;
  float* item_bias;
  std::int64_t dim;
  float mean;
  float learning_rate;
  float regularization;
};

}  // namespace embertable::jobs

#define EMBERTABLE_LEVEL_BODY "jobs/mf_plain_loop.inl"
#include "kernels/for_each_level.inl"

namespace embertable::jobs {

PlainMf make_plain_mf(std::int64_t users, std::int64_t items, std::int64_t dim, float mean, float stddev,
                      std::uint64_t seed) {
  PlainMf model{.dim = dim, .mean = mean};
  model.user.resize(static_cast<std::size_t>(users * dim));
  model.item.resize(static_cast<std::size_t>(items * dim));
  model.user_bias.resize(static_cast<std::size_t>(users));
  model.item_bias.resize(static_cast<std::size_t>(items));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, stddev);
  for (float& x : model.user) x = normal(random);
  for (float& x : model.item) x = normal(random);
  return model;
}

float plain_mf_predict(const PlainMf& model, std::int32_t user, std::int32_t item) noexcept {
  float sum = model.mean + model.user_bias[static_cast<std::size_t>(user)] +
              model.item_bias[static_cast<std::size_t>(item)];
  for (std::int64_t k = 0; k < model.dim; ++k) {
    sum += model.user[static_cast<std::size_t>(user * model.dim + k)] *
           model.item[static_cast<std::size_t>(item * model.dim + k)];
  }
  return sum;
}

double plain_mf_epoch(PlainMf& model, std::span<const Rating> ratings, float learning_rate,
                      float regularization) noexcept {
  static const SimdLevel level = usable_levels().back();
  const PlainLoop loop{.ratings = ratings.data(),
                       .num_ratings = static_cast<std::int64_t>(ratings.size()),
                       .user = model.user.data(),
                       .item = model.item.data(),
                       .user_bias = model.user_bias.data(),
                       .item_bias = model.item_bias.data(),
                       .dim = model.dim,
                       .mean = model.mean,
                       .learning_rate = learning_rate,
                       .regularization = regularization};
  return EMBERTABLE_AT_LEVEL(level, epoch(loop));
}

}  // namespace embertable::jobs
