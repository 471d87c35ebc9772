#include <algorithm>

#include "bench/baseline.h"

namespace embertable::bench {
namespace {

/// Samples of bags that one item gathers.
constexpr std::int32_t kBagSamples = 512;

/// Floats of output that one-hot tables side by side write in a run.
constexpr std::size_t kRunFloats = 512;

}  // namespace

void Baseline::add_one_hot_gathers(std::size_t first_table, std::size_t last_table, float* out) {
  GatherItem item{};
  item.tables = static_cast<int>(last_table - first_table);
  for (std::size_t t = first_table; t < last_table; ++t) {
    item.rows[t - first_table] = tables_[t].rows;
    item.row[t - first_table] = plans_[t].row;
  }
  item.out = out + first_table * dim_;
  item.stride = stride_;
  const auto abreast =
      static_cast<std::int32_t>(std::clamp<std::size_t>(kRunFloats / dim_, 1, kMostTablesAbreast));
  const std::int32_t length = std::max(128, std::min(samples_, 2048 / abreast));
  for (std::int32_t s = 0; s < samples_; s += length) {
    item.first = s;
    item.last = std::min(samples_, s + length);
    gathers_.push_back(item);
  }
}

void Baseline::list_gathers(float* out) {
  gathers_.clear();
  const std::size_t abreast = std::clamp<std::size_t>(kRunFloats / dim_, 1, kMostTablesAbreast);
  for (std::size_t t = 0; t < plans_.size();) {
    if (plans_[t].one_hot) {
      std::size_t end = t;
      while (end < plans_.size() && plans_[end].one_hot && end - t < abreast) ++end;
      add_one_hot_gathers(t, end, out);
      t = end;
      continue;
    }
    GatherItem item{};
    item.tables = 1;
    item.rows[0] = tables_[t].rows;
    item.row[0] = plans_[t].row;
    item.split = plans_[t].split;
    item.out = out + t * dim_;
    item.stride = stride_;
    for (std::int32_t s = 0; s < samples_; s += kBagSamples) {
      item.first = s;
      item.last = std::min(samples_, s + kBagSamples);
      gathers_.push_back(item);
    }
    ++t;
  }
}

void Baseline::list_scatters() {
  scatters_.clear();
  for (const BaselinePlan& plan : plans_) {
    if (plan.one_hot && plan.buckets == 1) continue;
    for (std::int32_t tile = 0; tile < tiles_; ++tile) {
      const std::int32_t first = tile * kTileSamples;
      scatters_.push_back(
          {.row = plan.row,
           .split = plan.one_hot ? nullptr : plan.split,
           .first = first,
           .last = std::min(samples_, first + kTileSamples),
           .buckets = plan.buckets,
           .cursors = plan.counts + static_cast<std::size_t>(tile) * plan.cursor_stride,
           .entries = plan.entries,
           .sample = plan.sample});
    }
  }
}

void Baseline::forward(float* out) {
  list_gathers(out);
  list_scatters();
  const std::size_t gathers = gathers_.size();
  const std::size_t items = gathers + scatters_.size();
  std::atomic<std::size_t> claimed{0};
  team_.run([&](int) {
    std::size_t k = claimed.fetch_add(1);
    while (k < items) {
      const std::size_t next = claimed.fetch_add(1);
      if (k < gathers) {
        kernels_.gather(gathers_[k], next < gathers ? &gathers_[next] : nullptr);
      } else {
        kernels_.scatter(scatters_[k - gathers]);
      }
      k = next;
    }
  });
}

}  // namespace embertable::bench
