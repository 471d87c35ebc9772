#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <vector>

#include "embertable/optimizer.h"
#include "optimizer/rule.h"
#include "step/table_run.h"

namespace embertable {

/// For tests: one table in one step of one host. Number c of row r of the whole table is 10 r + c
/// at first, and a step subtracts a row's summed gradient.
class TinyStep {
 public:
  static constexpr std::int32_t kDim = 2;

  explicit TinyStep(std::int64_t rows, std::int32_t buckets = 1, std::int32_t hosts = 1,
                    std::int32_t host = 0)
      : placement_(rows, hosts, Sharding::kDiv) {
    for (std::int64_t r = 0; r < placement_.shard_rows(host); ++r)
      for (std::int32_t c = 0; c < kDim; ++c)
        rows_.push_back(static_cast<float>(10 * placement_.global_row(host, r) + c));
    TableRun& run = step.tables.emplace_back();
    run.name = "tiny";
    run.rows = {.row = rows_.data(), .stride = kDim, .dim = kDim, .rows = std::ssize(rows_) / kDim};
    run.placement = &placement_;
    run.buckets = buckets;
    run.step_by(optimizer_, simd_level());
    run.step = rule_of(optimizer_).begin_step(optimizer_, {.learning_rate = 1});
  }

  /// One more feature. one_hot: its plan has no splits. gradient: [samples, dim], or empty: null.
  void add(const std::vector<std::vector<std::uint32_t>>& samples, std::vector<float> gradient,
           bool one_hot = false, std::int32_t core = 0) {
    Feature& feature = features_.emplace_back();
    feature.gradient = std::move(gradient);
    feature.split = {0};
    for (const std::vector<std::uint32_t>& sample : samples) {
      feature.row.insert(feature.row.end(), sample.begin(), sample.end());
      feature.split.push_back(std::ssize(feature.row));
    }
    feature.out.resize(samples.size() * kDim);
    LookupPlan& plan = feature.plan;
    plan.outputs = std::ssize(samples);
    plan.row = {feature.row.data(), std::ssize(feature.row), false};
    if (!one_hot) plan.split = feature.split;
    const std::int32_t buckets = table().buckets;
    if (buckets > 1) {
      plan.counts_stride = (buckets + 15) / 16 * 16;
      feature.counts.resize(plan.tiles() * plan.counts_stride);
      for (std::int64_t i = 0; i < plan.outputs; ++i)
        for (std::int64_t j = plan.first_entry(i); j < plan.first_entry(i + 1); ++j)
          ++feature.counts[i / kTileRows * plan.counts_stride +
                           bucket_of(feature.row[j], static_cast<std::uint32_t>(buckets))];
      plan.counts = feature.counts;
    }
    table().features.push_back(
        {.plan = &plan,
         .core = core,
         .index = std::ssize(features_) - 1,
         .out = feature.out.data(),
         .gradient = feature.gradient.empty() ? nullptr : feature.gradient.data()});
  }

  /// Gives the last feature denominators, and weights that are all 1.
  void divide_by(std::vector<float> denominators) {
    Feature& feature = features_.back();
    feature.denominator = std::move(denominators);
    feature.weight.assign(feature.row.size(), 1);
    feature.plan.weight = feature.weight;
    feature.plan.denominator = feature.denominator;
    feature.plan.zero_denominators = std::ranges::count(feature.denominator, 0) > 0;
  }

  TableRun& table() { return step.tables.front(); }
  const std::vector<float>& rows() const { return rows_; }
  const std::vector<float>& out(std::int64_t feature) const { return features_[feature].out; }

  HostStep step;

 private:
  struct Feature {
    LookupPlan plan;
    std::vector<std::uint32_t> row, counts;
    std::vector<std::int64_t> split;
    std::vector<float> out, gradient, weight, denominator;
  };

  const Optimizer optimizer_{"sgd", 1};
  const Placement placement_;
  std::vector<float> rows_;
  std::deque<Feature> features_;
};

}  // namespace embertable
