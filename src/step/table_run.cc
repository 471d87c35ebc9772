#include "step/table_run.h"

#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "embertable/config.h"
#include "embertable/errors.h"

namespace embertable {
namespace {

/// Turns the counts of each bucket, feature and tile into the place of its first entry, and fills
/// plan.bucket. Returns all entries.
std::int64_t counts_to_cursors(const TableRun& table) {
  std::int64_t at = 0;
  for (std::int32_t b = 0; b < table.buckets; ++b) {
    table.plan.bucket[b] = at;
    for (const FeatureRun& feature : table.features) {
      for (std::int64_t tile = 0; tile < feature.plan->tiles(); ++tile) {
        std::uint32_t& first = feature.plan->counts[tile * feature.plan->counts_stride + b];
        const std::uint32_t count = std::exchange(first, static_cast<std::uint32_t>(at));
        at += count;
      }
    }
  }
  table.plan.bucket.back() = at;
  return at;
}

}  // namespace

void check_update_size(const TableRun& table, std::int32_t replicas_per_host) {
  std::int64_t entries = table.entries(), pieces = 0;
  for (const FeatureRun& feature : table.features) pieces += pieces_for(feature.plan->outputs);
  for (const std::span<const std::uint64_t> owed : table.route.owed) {
    entries += std::ssize(owed) * replicas_per_host;
    pieces += pieces_for(std::ssize(owed)) * replicas_per_host;
  }
  constexpr auto kMost = std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  if (entries <= kMost && pieces * kPieceRows <= kMost) return;
  throw ValueError("table '" + std::string(table.name) +
                   "': a step may have at most 2^32 - 1 entries and output rows, got " +
                   std::to_string(entries) + " and " + std::to_string(pieces * kPieceRows));
}

void plan_updates(HostStep& step) {
  for (TableRun& table : step.tables) {
    check_update_size(table, step.replicas_per_host);
    const std::int64_t entries = table.entries();
    UpdatePlan& update = table.plan;
    update = {.wide = table.wide, .bucket = step.memory.take<std::int64_t>(table.buckets + 1)};
    update.bucket.front() = 0;
    update.bucket.back() = entries;
    if (table.buckets > 1) {
      const std::int64_t placed = counts_to_cursors(table);
      EMBERTABLE_ASSERT(placed == entries);
    }

    bool gain = false;
    for (const FeatureRun& feature : table.features) gain |= feature.plan->has_gain();
    if (table.buckets == 1 && table.features.size() == 1 && !gain &&
        table.features.front().plan->split.empty()) {
      update.direct = table.features.front().plan;
      continue;
    }
    if (table.wide)
      update.entry = step.memory.take<UpdateEntry<std::uint64_t>>(entries).data();
    else
      update.entry = step.memory.take<UpdateEntry<std::uint32_t>>(entries).data();
    if (gain) update.gain = step.memory.take<float>(entries).data();
  }
}

GradientPiece* append_pieces(const float* gradient, std::int64_t outputs, std::int64_t dim,
                             std::int32_t replica, GradientPiece* to) {
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  for (std::int64_t first = 0; first < outputs; first += kPieceRows)
    *to++ = gradient != nullptr ? GradientPiece{gradient + first * dim, dim, replica}
                                : GradientPiece{kZeros, 0, replica};
  return to;
}

void point_at_gradients(HostStep& step) {
  for (TableRun& table : step.tables) {
    std::int64_t pieces = 0;
    for (const FeatureRun& feature : table.features) pieces += pieces_for(feature.plan->outputs);
    const std::span<GradientPiece> piece = step.memory.take<GradientPiece>(pieces);
    GradientPiece* end = piece.data();
    for (const FeatureRun& feature : table.features)
      end = append_pieces(feature.gradient, feature.plan->outputs, table.rows.dim, feature.replica,
                          end);
    table.plan.piece = piece;
    table.gradients = {.piece = piece.data()};
    if (table.features.size() == 1 && pieces > 0) {
      table.gradients.base = piece.front().base;
      table.gradients.stride = piece.front().stride;
    }
  }
}

}  // namespace embertable
