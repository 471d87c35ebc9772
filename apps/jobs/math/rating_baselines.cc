#include "apps/jobs/math/rating_baselines.h"

#include <algorithm>

#include "apps/jobs/math/metrics.h"

namespace embertable::jobs {
namespace {

constexpr double kRegularization = 2;
constexpr int kRounds = 10;

std::size_t ids_in(const Samples& training, const Samples& test, std::int32_t cell) {
  std::int32_t most = -1;
  for (const Samples* samples : {&training, &test}) {
    for (std::int64_t s = 0; s < samples->size(); ++s) most = std::max(most, samples->id(s, cell));
  }
  return static_cast<std::size_t>(most) + 1;
}

/// Returns a number for each id of a cell: sum of (label - offset) / (count + regularization).
template <class Offset>
std::vector<double> shrunk_means(const Samples& samples, std::int32_t cell, std::size_t ids,
                                 double regularization, double otherwise, Offset offset) {
  std::vector<double> sum(ids), count(ids);
  for (std::int64_t s = 0; s < samples.size(); ++s) {
    const auto id = static_cast<std::size_t>(samples.id(s, cell));
    sum[id] += samples.label(s) - offset(samples, s);
    count[id] += 1;
  }
  for (std::size_t id = 0; id < ids; ++id) {
    sum[id] = count[id] > 0 ? sum[id] / (count[id] + regularization) : otherwise;
  }
  return sum;
}

}  // namespace

std::vector<Baseline> rating_baselines(const Samples& training, const Samples& test,
                                       std::int32_t user, std::int32_t item, double lowest,
                                       double highest) {
  const double mean = training.size() > 0 ? mean_label(training) : 0;

  std::vector<Baseline> found;
  const auto measure = [&](const char* name, auto predict) {
    RatingMetrics metrics(lowest, highest);
    for (std::int64_t s = 0; s < test.size(); ++s) {
      const auto prediction = static_cast<float>(predict(test, s));
      const float label = test.label(s);
      metrics.add({&prediction, 1}, {&label, 1});
    }
    found.push_back({name, {{"rmse", metrics.rmse()}, {"mae", metrics.mae()}}});
  };
  const auto at = [](const std::vector<double>& values, const Samples& samples, std::int64_t s,
                     std::int32_t cell) { return values[samples.id(s, cell)]; };

  const std::size_t users = ids_in(training, test, user);
  const std::size_t items = ids_in(training, test, item);
  const auto nothing = [](const Samples&, std::int64_t) { return 0.0; };
  const std::vector<double> item_mean = shrunk_means(training, item, items, 0, mean, nothing);
  const std::vector<double> user_mean = shrunk_means(training, user, users, 0, mean, nothing);
  measure("global mean", [&](const Samples&, std::int64_t) { return mean; });
  measure("item mean",
          [&](const Samples& samples, std::int64_t s) { return at(item_mean, samples, s, item); });
  measure("user mean",
          [&](const Samples& samples, std::int64_t s) { return at(user_mean, samples, s, user); });

  std::vector<double> user_bias(users), item_bias;
  for (int round = 0; round < kRounds; ++round) {
    item_bias = shrunk_means(training, item, items, kRegularization, 0,
                             [&](const Samples& samples, std::int64_t s) {
                               return mean + at(user_bias, samples, s, user);
                             });
    user_bias = shrunk_means(training, user, users, kRegularization, 0,
                             [&](const Samples& samples, std::int64_t s) {
                               return mean + at(item_bias, samples, s, item);
                             });
  }
  measure("user and item bias", [&](const Samples& samples, std::int64_t s) {
    return mean + at(user_bias, samples, s, user) + at(item_bias, samples, s, item);
  });
  return found;
}

}  // namespace embertable::jobs
