#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rows/plan.h"
#include "step/backward.h"
#include "step/forward.h"
#include "testing/guarded_floats.h"

namespace embertable {

/// For tests: what one feature of one core names.
struct TestFeature {
  std::int32_t core = 0;
  std::vector<std::vector<std::uint64_t>> samples;  ///< rows of each output row
  bool one_hot = false;                             ///< without splits: every sample has one row
  std::vector<float> weight;                        ///< [nnz], or empty
  std::vector<float> denominator;                   ///< [samples], or empty
  bool null_gradient = false;
};

/// For tests: the plans of one table in one step, built by simple loops, and gradients for all of
/// its features.
class BuiltPlans {
 public:
  BuiltPlans(std::vector<TestFeature> features, std::int32_t dim, std::uint32_t buckets, bool wide)
      : features_(std::move(features)), zeros_(dim) {
    update.wide = wide;
    bool gain = false;
    for (const TestFeature& f : features_) gain |= !f.weight.empty() || !f.denominator.empty();
    lookups.resize(features_.size());
    rows_.resize(features_.size());
    splits_.resize(features_.size());
    for (std::size_t f = 0; f < features_.size(); ++f) add_feature(features_[f], f, dim, wide);

    entries_.resize(static_cast<std::size_t>(entries_of_all_) * 2);
    gains_.resize(gain ? static_cast<std::size_t>(entries_of_all_) : 0);
    update.entry = entries_.data();
    update.gain = gain ? gains_.data() : nullptr;
    update.piece = pieces_;
    place(buckets);
  }

  /// Fills update.entry and update.gain; the tiles of all features in this order or backwards.
  void scatter_all(bool backwards = false) {
    std::vector<ScatterItem> items;
    for (std::size_t f = 0; f < lookups.size(); ++f)
      for (std::int64_t tile = 0; tile < lookups[f].tiles(); ++tile)
        items.push_back({&lookups[f], &update, tile, first_piece[f], first_entry_[f]});
    if (backwards) items = {items.rbegin(), items.rend()};
    for (const ScatterItem& item : items) scatter(item, simd_level());
  }

  GradientSource source() const {
    GradientSource source = {.piece = pieces_.data()};
    if (lookups.size() == 1 && !pieces_.empty())
      source.base = pieces_[0].base, source.stride = pieces_[0].stride;
    return source;
  }

  std::vector<LookupPlan> lookups;
  std::vector<std::uint32_t> first_piece;  ///< first piece of each feature
  UpdatePlan update;

 private:
  void add_feature(const TestFeature& feature, std::size_t f, std::int32_t dim, bool wide) {
    LookupPlan& plan = lookups[f];
    plan.outputs = static_cast<std::int64_t>(feature.samples.size());
    splits_[f] = {0};
    for (const auto& sample : feature.samples) {
      rows_[f].insert(rows_[f].end(), sample.begin(), sample.end());
      splits_[f].push_back(static_cast<std::int64_t>(rows_[f].size()));
    }
    const auto nnz = static_cast<std::int64_t>(rows_[f].size());
    if (!wide) {
      narrow_rows_.push_back(
          std::make_unique<std::vector<std::uint32_t>>(rows_[f].begin(), rows_[f].end()));
      plan.row = {narrow_rows_.back()->data(), nnz, false};
    } else {
      plan.row = {rows_[f].data(), nnz, true};
    }
    if (!feature.one_hot) plan.split = splits_[f];
    plan.weight = feature.weight;
    plan.denominator = feature.denominator;
    first_entry_.push_back(entries_of_all_);
    entries_of_all_ += nnz;

    first_piece.push_back(static_cast<std::uint32_t>(pieces_.size()));
    auto& gradient = *gradients_.emplace_back(std::make_unique<GuardedFloats>(plan.outputs * dim));
    for (std::int64_t i = 0; i < gradient.size(); ++i)
      gradient[i] =
          i % 17 == 0 ? -0.0f : static_cast<float>((i * 2654435761 >> 7) % 2001 - 1000) / 977.0f;
    for (std::int64_t i = 0; i < plan.outputs; i += kPieceRows)
      pieces_.push_back(feature.null_gradient
                            ? GradientPiece{zeros_.data(), 0, feature.core}
                            : GradientPiece{gradient.data() + i * dim, dim, feature.core});
  }

  /// Counts, then cursors: bucket by bucket, feature by feature, tile by tile.
  void place(std::uint32_t buckets) {
    bucket_.assign(buckets + 1, 0);
    if (buckets > 1)
      for (LookupPlan& plan : lookups) {
        plan.counts_stride = (buckets + 15) / 16 * 16;
        counts_.push_back(
            std::make_unique<std::vector<std::uint32_t>>(plan.tiles() * plan.counts_stride));
        plan.counts = *counts_.back();
      }
    std::uint32_t placed = 0;
    for (std::uint32_t b = 0; b < buckets; ++b) {
      for (LookupPlan& plan : lookups)
        for (std::int64_t tile = 0; buckets > 1 && tile < plan.tiles(); ++tile) {
          plan.counts[tile * plan.counts_stride + b] = placed;
          const std::int64_t last = std::min((tile + 1) * kTileRows, plan.outputs);
          for (std::int64_t j = plan.first_entry(tile * kTileRows); j < plan.first_entry(last); ++j)
            placed += plan.row.wide ? bucket_of(plan.row.as<std::uint64_t>()[j], buckets) == b
                                    : bucket_of(plan.row.as<std::uint32_t>()[j], buckets) == b;
        }
      bucket_[b + 1] = placed;
    }
    if (buckets == 1) bucket_[1] = entries_of_all_;
    update.bucket = bucket_;
  }

  std::vector<TestFeature> features_;
  GuardedFloats zeros_;
  std::vector<std::vector<std::uint64_t>> rows_;
  std::vector<std::unique_ptr<std::vector<std::uint32_t>>> narrow_rows_, counts_;
  std::vector<std::vector<std::int64_t>> splits_;
  std::vector<std::unique_ptr<GuardedFloats>> gradients_;
  std::vector<GradientPiece> pieces_;
  std::vector<std::uint64_t> entries_;
  std::vector<float> gains_;
  std::vector<std::int64_t> bucket_, first_entry_;
  std::int64_t entries_of_all_ = 0;
};

}  // namespace embertable
