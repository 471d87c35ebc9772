#include "step/table_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/assert.h"
#include "embertable/config.h"
#include "embertable/errors.h"
#include "optimizer/rule.h"

namespace embertable {
namespace {

/// Turns the counts of each bucket, feature and tile into the place of its first entry, and fills
/// plan.bucket. Entries of rows named once come after the last bucket, by range. Returns all
/// entries. Requires: plan.bucket ends with their number.
std::int64_t counts_to_cursors(TableRun& table) {
  std::int64_t at = 0;
  for (std::int32_t b = 0; b < table.buckets + table.once_ranges.count; ++b) {
    if (b <= table.buckets) table.plan.bucket[b] = at;
    for (const FeatureRun& feature : table.features) {
      for (std::int64_t tile = 0; tile < feature.plan->tiles(); ++tile) {
        std::uint32_t& first = feature.plan->counts[tile * feature.plan->counts_stride + b];
        const std::uint32_t count = std::exchange(first, static_cast<std::uint32_t>(at));
        at += count;
      }
    }
  }
  table.plan.once = at - table.plan.bucket.back();
  return at;
}

/// Output rows whose gradients are copied as one work item.
struct ZeroedTile {
  const LookupPlan* plan;
  const float* from;  ///< [plan->outputs, dim], as `to`
  float* to;
  std::int64_t dim;
  std::int64_t first;  ///< output row

  void copy() const {
    const std::int64_t last = std::min(first + kTileRows, plan->outputs);
    std::copy(from + first * dim, from + last * dim, to + first * dim);
    for (std::int64_t i = first; i < last; ++i)
      if (plan->denominator[i] == 0.0f) std::fill_n(to + i * dim, dim, 0.0f);
  }
};

/// Returns an upper bound of the entries that are grouped at once: those of a bucket, of which
/// `others` may come from other hosts, or those of one core whose sums are sent.
std::int64_t largest_group(const TableRun& table, std::int32_t cores_per_host,
                           std::int64_t others) {
  const auto buckets = static_cast<std::uint32_t>(table.buckets);
  std::vector<std::int64_t> in_bucket(buckets);
  std::map<std::int32_t, std::int64_t> received_in;  // by core
  for (const FeatureRun& feature : table.features) {
    if (table.is_replicated()) received_in[feature.core] += feature.plan->row.size;
    feature.plan->visit_rows([&]<class Index>(const Index* row) {
      for (std::int64_t j = 0; j < feature.plan->row.size; ++j)
        ++((row[j] & kReceivedBit<Index>) == 0 ? in_bucket[bucket_of(row[j], buckets)]
                                               : received_in[feature.core]);
    });
  }
  if (table.accumulates) {
    others = 0;
    for (const std::span<const std::uint64_t> owed : table.route.owed)
      for (const std::uint64_t row : owed)
        in_bucket[table.wide ? bucket_of(row, buckets)
                             : bucket_of(static_cast<std::uint32_t>(row), buckets)] +=
            cores_per_host;
  }
  std::int64_t largest = *std::ranges::max_element(in_bucket) + others;
  for (const auto& [core, entries] : received_in) largest = std::max(largest, entries);
  return largest;
}

[[noreturn]] void refuse_group(const TableRun& table, std::int64_t most_grouped,
                               std::int64_t largest) {
  throw ValueError("table '" + std::string(table.name) + "': a step may have at most " +
                   std::to_string(most_grouped) +
                   " entries for rows that are updated together, got " + std::to_string(largest));
}

struct UpdateSize {
  std::int64_t entries = 0, pieces = 0;

  void check(const TableRun& table) const {
    constexpr auto kMost = std::int64_t{std::numeric_limits<std::uint32_t>::max()};
    if (entries > kMost || pieces * kPieceRows > kMost) refuse(table);
  }
  [[noreturn]] void refuse(const TableRun& table) const {
    throw ValueError("table '" + std::string(table.name) +
                     "': a step may have at most 2^32 - 1 entries and output rows, got " +
                     std::to_string(entries) + " and " + std::to_string(pieces * kPieceRows));
  }
};

void check_groups(const TableRun& table, std::int32_t cores_per_host, std::int64_t most_grouped,
                  std::int64_t others) {
  const std::int64_t largest = largest_group(table, cores_per_host, others);
  if (largest > most_grouped) refuse_group(table, most_grouped, largest);
}

/// Adds what the other hosts may send.
UpdateSize with_others(UpdateSize size, const TableRun& table, std::int32_t cores_per_host) {
  if (!table.accumulates) {
    const std::int64_t cores = (std::ssize(table.route.owed) - 1) * cores_per_host;
    size.entries += table.route.entries_elsewhere;
    size.pieces += table.route.entries_elsewhere / kPieceRows + cores;
    return size;
  }
  for (const std::span<const std::uint64_t> owed : table.route.owed) {
    size.entries += std::ssize(owed) * cores_per_host;
    size.pieces += pieces_for(std::ssize(owed)) * cores_per_host;
  }
  return size;
}

/// True if the gradient of some output rows of the feature must be read as zeros.
bool has_zeros(const FeatureRun& feature) {
  return feature.plan->zero_denominators && feature.gradient != nullptr;
}

/// Copies all gradients of which has_zeros is true, in one region.
void copy_with_zeros(HostStep& step, Workers& workers) {
  std::int64_t tiles = 0, floats = 0;
  for (const TableRun& table : step.tables) {
    for (const FeatureRun& feature : table.features) {
      if (!has_zeros(feature)) continue;
      tiles += feature.plan->tiles();
      floats += feature.plan->outputs * table.rows.dim;
    }
  }
  const std::span<ZeroedTile> all = step.memory.take<ZeroedTile>(tiles);
  auto next = all.begin();
  for (TableRun& table : step.tables) {
    const std::int64_t dim = table.rows.dim;
    for (FeatureRun& feature : table.features) {
      if (!has_zeros(feature)) continue;
      const LookupPlan& plan = *feature.plan;
      float* const to = step.memory.take<float>(plan.outputs * dim).data();
      for (std::int64_t tile = 0; tile < plan.tiles(); ++tile)
        *next++ = {&plan, feature.gradient, to, dim, tile * kTileRows};
      feature.gradient = to;
    }
  }
  workers.run(tiles, floats, [&](const WorkItem& work) { all[work.index].copy(); });
}

}  // namespace

void StepTable::step_by(const Optimizer& optimizer, SimdLevel level) {
  const Rule& rule = rule_of(optimizer);
  accumulates = optimizer.options().use_gradient_accumulation;
  steps_every_row = rule.steps_every_row(optimizer);
  gives_sums = rule.gives_sums();
  update_rows = rule.update_rows(level, optimizer);
  update_groups = rule.update_groups(level, optimizer, rows.dim, rows.type);
}

void divide_among_tables(HostStep& step) {
  const auto floats_of = [](const TableRun& table, const FeatureRun& feature) {
    return static_cast<double>((feature.plan->row.size + feature.plan->outputs) * table.rows.dim);
  };
  step.floats = 0;
  for (const TableRun& table : step.tables)
    for (const FeatureRun& feature : table.features) step.floats += floats_of(table, feature);
  if (step.floats == 0) return;
  const double of_float = 1 / step.floats;
  double before = 0;
  for (TableRun& table : step.tables) {
    table.part.begin = before * of_float;
    for (FeatureRun& feature : table.features) {
      feature.part.begin = before * of_float;
      before += floats_of(table, feature);
      feature.part.end = before * of_float;
    }
    table.part.end = before * of_float;
  }
}

ExpectedUpdate expected_update(const StepTable& table) {
  const std::int64_t bytes = updated_bytes(table.rows);
  return {.rows = table.placement ? table.placement->rows() : table.rows.rows,
          .dim = table.rows.dim,
          .row_bytes = bytes,
          .host_bytes = table.rows.rows * bytes,
          .rounds = table.rows.is_half(),
          .rows_alone = table.accumulates && !table.steps_every_row,
          .fused = table.update_groups != nullptr};
}

void check_update_size(const TableRun& table, std::int32_t cores_per_host,
                       std::int64_t most_grouped) {
  UpdateSize size = {.entries = table.entries()};
  for (const FeatureRun& feature : table.features) size.pieces += pieces_for(feature.plan->outputs);
  if (!table.route.owed.empty()) size = with_others(size, table, cores_per_host);
  size.check(table);
  if (size.entries > most_grouped)
    check_groups(table, cores_per_host, most_grouped, size.entries - table.entries());
}

void check_update_sizes(const HostStep& step) {
  for (const TableRun& table : step.tables) check_update_size(table, step.cores_per_host);
}

void check_planned_size(const TableRun& table, std::int64_t most_grouped) {
  const std::span<const std::int64_t> bucket = table.plan.bucket;
  UpdateSize{table.plan.entries(), std::ssize(table.plan.piece)}.check(table);
  for (std::size_t b = 1; b < bucket.size(); ++b)
    if (bucket[b] - bucket[b - 1] > most_grouped)
      refuse_group(table, most_grouped, bucket[b] - bucket[b - 1]);
}

void plan_updates(HostStep& step) {
  for (TableRun& table : step.tables) {
    check_update_size(table, step.cores_per_host);
    const std::int64_t entries = table.entries();
    UpdatePlan& update = table.plan;
    update = {.wide = table.wide,
              .bucket = step.memory.take<std::int64_t>(table.buckets + 1),
              .ranges = table.once_ranges.count};
    update.bucket.front() = 0;
    update.bucket.back() = entries;
    if (table.buckets > 1 || table.once_ranges) {
      const std::int64_t placed = counts_to_cursors(table);
      EMBERTABLE_ASSERT(placed == entries);
    }

    const bool gain = std::ranges::any_of(
        table.features, [](const FeatureRun& feature) { return feature.plan->has_gain(); });
    if (table.buckets == 1 && !table.once_ranges && table.features.size() == 1 && !gain &&
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

void select_zeros(HostStep& step, Workers& workers) {
  for (const TableRun& table : step.tables)
    if (std::ranges::any_of(table.features, has_zeros)) return copy_with_zeros(step, workers);
}

GradientPiece* append_pieces(const float* gradient, std::int64_t outputs, std::int64_t dim,
                             std::int32_t core, GradientPiece* to) {
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  for (std::int64_t first = 0; first < outputs; first += kPieceRows)
    *to++ = gradient != nullptr ? GradientPiece{gradient + first * dim, dim, core}
                                : GradientPiece{kZeros, 0, core};
  return to;
}

void point_at_gradients(HostStep& step) {
  for (TableRun& table : step.tables) {
    std::int64_t pieces = 0;
    for (const FeatureRun& feature : table.features) pieces += pieces_for(feature.plan->outputs);
    const std::span<GradientPiece> piece = step.memory.take<GradientPiece>(pieces);
    GradientPiece* end = piece.data();
    table.gradient_rows = 0;
    for (const FeatureRun& feature : table.features) {
      end =
          append_pieces(feature.gradient, feature.plan->outputs, table.rows.dim, feature.core, end);
      table.gradient_rows += feature.plan->outputs;
    }
    table.plan.piece = piece;
    table.gradients = {.piece = piece.data()};
    if (table.features.size() == 1 && pieces > 0) {
      table.gradients.base = piece.front().base;
      table.gradients.stride = piece.front().stride;
    }
  }
}

}  // namespace embertable
