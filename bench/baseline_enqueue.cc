#include <algorithm>
#include <stdexcept>
#include <string>

#include "bench/baseline.h"

namespace embertable::bench {
namespace {

/// Rows and slots that one bucket's unique rows fill: a part of the second-level cache.
constexpr std::size_t kBucketBytes = std::size_t{320} << 10;

/// A table of at most so many bytes may have an accumulator for each of its rows.
constexpr std::size_t kTinyTableBytes = std::size_t{128} << 10;

}  // namespace

void Baseline::size_buckets(const WorkloadBatch& batch) {
  for (std::size_t t = 0; t < plans_.size(); ++t) {
    BaselinePlan& plan = plans_[t];
    const std::uint64_t num_rows = tables_[t].num_rows;
    if (const std::uint32_t unique = plan.unique_rows.exchange(0)) {
      plan.unique_share = std::min(1.0, unique / static_cast<double>(std::max(1u, plan.nnz)));
    }
    plan.nnz = static_cast<std::uint32_t>(batch.table_ids(t).size());
    const auto unique =
        std::min(static_cast<std::uint64_t>(plan.nnz * plan.unique_share), num_rows);
    const std::size_t bytes = unique * (dim_ * sizeof(float) + 8);
    const std::size_t buckets = (bytes + kBucketBytes - 1) / kBucketBytes;
    plan.buckets = static_cast<std::uint32_t>(std::clamp<std::size_t>(buckets, 1, kMostBuckets));
    plan.cursor_stride = (plan.buckets + 15) / 16 * 16;
    plan.tiny = num_rows * dim_ * sizeof(float) <= kTinyTableBytes &&
                std::uint64_t{plan.nnz} * 2 >= num_rows && samples_ <= kPieceSamples;
    if (plan.tiny) plan.buckets = 1;
  }
}

/// Turns the tiles' counts into cursors, bucket-major.
void Baseline::place_buckets(BaselinePlan& plan) const {
  std::uint32_t begin = 0;
  plan.bucket_begin[0] = 0;
  for (std::uint32_t b = 0; b < plan.buckets; ++b) {
    for (std::int32_t tile = 0; tile < tiles_ && plan.buckets > 1; ++tile) {
      std::uint32_t& cursor = plan.counts[static_cast<std::size_t>(tile) * plan.cursor_stride + b];
      const std::uint32_t count = cursor;
      cursor = begin;
      begin += count;
    }
    plan.bucket_begin[b + 1] = plan.buckets > 1 ? begin : plan.nnz;
  }
}

void Baseline::enqueue(const WorkloadBatch& batch) {
  size_buckets(batch);
  const auto tiles = static_cast<std::size_t>(tiles_);
  std::atomic<std::size_t> next{0};
  team_.run([&](int) {
    for (std::size_t k = 0; (k = next.fetch_add(1, std::memory_order_relaxed)) < content_.size();) {
      const std::size_t t = k / tiles;
      const std::size_t tile = k % tiles;
      const auto first = static_cast<std::int32_t>(tile) * kTileSamples;
      BaselinePlan& plan = plans_[t];
      content_[k] = kernels_.narrow_tile({.ids = batch.table_ids(t).data(),
                                          .splits = batch.table_splits(t).data(),
                                          .samples = samples_,
                                          .first = first,
                                          .last = std::min(samples_, first + kTileSamples),
                                          .num_rows = tables_[t].num_rows,
                                          .buckets = plan.buckets,
                                          .row = plan.row,
                                          .split = plan.split,
                                          .counts = plan.counts + tile * plan.cursor_stride});
    }
  });
  for (std::size_t t = 0; t < plans_.size(); ++t) {
    BaselinePlan& plan = plans_[t];
    plan.one_hot = true;
    for (std::size_t k = t * tiles; k < (t + 1) * tiles; ++k) {
      if (content_[k] >= TileContent::kBadSplits) {
        throw std::invalid_argument("table " + std::to_string(t) +
                                    (content_[k] == TileContent::kBadId
                                         ? ": an id is outside the table"
                                         : ": splits must rise from 0 to the number of ids"));
      }
      plan.one_hot &= content_[k] == TileContent::kOneHot;
    }
    place_buckets(plan);
    for (std::size_t tile = 0; tile < tiles && !plan.one_hot; ++tile) {
      if (content_[t * tiles + tile] != TileContent::kOneHot) continue;
      const std::span<const std::int64_t> splits = batch.table_splits(t);
      const std::size_t end =
          std::min<std::size_t>(static_cast<std::size_t>(samples_), (tile + 1) * kTileSamples);
      for (std::size_t s = tile * kTileSamples; s <= end; ++s) {
        plan.split[s] = static_cast<std::uint32_t>(splits[s]);
      }
    }
  }
  list_updates();
}

}  // namespace embertable::bench
