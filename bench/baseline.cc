#include "bench/baseline.h"

#include <algorithm>

namespace embertable::bench {
namespace {

/// Array elements behind the last one that vectors may touch.
constexpr std::size_t kSpare = 64;

Grouping make_grouping(Arena& arena, std::size_t most_ids) {
  Grouping g{};
  for (std::uint32_t** array :
       {&g.single_row, &g.single_sample, &g.multiple_row, &g.multiple_start, &g.order, &g.entry_row,
        &g.entry_sample, &g.hash, &g.first, &g.count, &g.start, &g.loser}) {
    *array = arena.take<std::uint32_t>(most_ids + kSpare);
  }
  g.slot = arena.take<std::uint32_t>(4 * most_ids + kSpare);
  g.sums = arena.take<float>(kTinyGroupBytes / sizeof(float));
  g.touched = arena.take<std::uint32_t>(kTinyGroupBytes / 64);
  return g;
}

}  // namespace

Baseline::Baseline(const PlainTables& tables, std::int32_t samples, std::size_t most_ids,
                   Team& team)
    : kernels_(*baseline_kernels(tables.dim())),
      team_(team),
      tables_(tables.tables()),
      dim_(tables.dim()),
      stride_(tables_.size() * dim_),
      samples_(samples),
      tiles_((samples + kTileSamples - 1) / kTileSamples),
      plans_(tables_.size()),
      heavy_(tables_.size()),
      content_(tables_.size() * static_cast<std::size_t>(tiles_)) {
  take_memory(most_ids);
}

void Baseline::take_memory(std::size_t most_ids) {
  const auto samples = static_cast<std::size_t>(samples_);
  for (BaselinePlan& plan : plans_) {
    plan.row = arena_.take<std::uint32_t>(most_ids + kSpare);
    plan.split = arena_.take<std::uint32_t>(samples + kSpare);
    plan.counts = arena_.take<std::uint32_t>(static_cast<std::size_t>(tiles_) * kMostBuckets);
    plan.bucket_begin = arena_.take<std::uint32_t>(kMostBuckets + 1);
    plan.entries = arena_.take<std::uint64_t>(most_ids + kSpare);
    plan.sample = arena_.take<std::uint32_t>(most_ids + kSpare);
  }
  for (HeavyBucket& heavy : heavy_) {
    heavy.row = arena_.take<std::uint32_t>(most_ids);
    heavy.sums = HugePages(most_ids * dim_ * sizeof(float));
  }
  for (int worker = 0; worker < team_.size(); ++worker) {
    groupings_.push_back(make_grouping(arena_, most_ids));
  }
  auto* const count_up = arena_.take<std::uint32_t>(samples + kSpare);
  for (std::size_t s = 0; s < samples + kSpare; ++s) count_up[s] = static_cast<std::uint32_t>(s);
  count_up_ = count_up;
}

}  // namespace embertable::bench
