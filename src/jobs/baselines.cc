#include "jobs/baselines.h"

#include <algorithm>

#include "jobs/metrics.h"

namespace embertable::jobs {
namespace {

constexpr double kRegularization = 2;
constexpr int kRounds = 10;

/// A number for each id of a cell: sum of (label - offset) / (count + regularization).
template <class Offset>
std::vector<double> shrunk_means(const DataSet& data, std::span<const std::int32_t> samples, std::int32_t cell,
                                 double regularization, double otherwise, Offset offset) {
  std::int32_t most = -1;
  for (std::int64_t s = 0; s < data.samples(); ++s) most = std::max(most, data.id(s, cell));
  std::vector<double> sum(static_cast<std::size_t>(most) + 1), count(sum.size());
  for (const std::int32_t s : samples) {
    const auto id = static_cast<std::size_t>(data.id(s, cell));
    sum[id] += data.label(s) - offset(s);
    count[id] += 1;
  }
  for (std::size_t id = 0; id < sum.size(); ++id) {
    sum[id] = count[id] > 0 ? sum[id] / (count[id] + regularization) : otherwise;
  }
  return sum;
}

}  // namespace

std::vector<Baseline> baselines(const DataSet& data, std::span<const std::int32_t> training,
                                std::span<const std::int32_t> test, std::int32_t user, std::int32_t item,
                                double lowest, double highest) {
  double mean = 0;
  for (const std::int32_t s : training) mean += data.label(s);
  if (!training.empty()) mean /= static_cast<double>(training.size());

  std::vector<Baseline> found;
  const auto measure = [&](const char* name, auto predict) {
    std::vector<float> predictions, labels;
    for (const std::int32_t s : test) {
      predictions.push_back(static_cast<float>(predict(s)));
      labels.push_back(data.label(s));
    }
    RatingMetrics metrics(lowest, highest);
    metrics.add(predictions, labels);
    found.push_back({name, metrics.rmse(), metrics.mae()});
  };
  const auto at = [&](const std::vector<double>& values, std::int32_t s, std::int32_t cell) {
    return values[static_cast<std::size_t>(data.id(s, cell))];
  };

  const auto nothing = [](std::int32_t) { return 0.0; };
  const std::vector<double> item_mean = shrunk_means(data, training, item, 0, mean, nothing);
  const std::vector<double> user_mean = shrunk_means(data, training, user, 0, mean, nothing);
  measure("global mean", [&](std::int32_t) { return mean; });
  measure("item mean", [&](std::int32_t s) { return at(item_mean, s, item); });
  measure("user mean", [&](std::int32_t s) { return at(user_mean, s, user); });

  std::vector<double> user_bias(user_mean.size());
  std::vector<double> item_bias;
  for (int round = 0; round < kRounds; ++round) {
    item_bias = shrunk_means(data, training, item, kRegularization, 0,
                             [&](std::int32_t s) { return mean + at(user_bias, s, user); });
    user_bias = shrunk_means(data, training, user, kRegularization, 0,
                             [&](std::int32_t s) { return mean + at(item_bias, s, item); });
  }
  measure("user and item bias", [&](std::int32_t s) { return mean + at(user_bias, s, user) + at(item_bias, s, item); });
  return found;
}

}  // namespace embertable::jobs
