#include "serving/row_updates.h"

#include <algorithm>
#include <utility>

#include "embertable/embedding.h"
#include "engine/check_gradients.h"
#include "engine/gradient_tiles.h"
#include "input/denominator.h"
#include "step/bucket_policy.h"

namespace embertable::serving {
namespace {

template <class T>
std::span<const T> span_of(const T* values, std::int64_t count) {
  return values == nullptr ? std::span<const T>()
                           : std::span<const T>(values, static_cast<std::size_t>(count));
}

/// Fills a plan except for narrow row numbers and counts.
LookupPlan plan_of(const Gather<std::uint64_t>& gather, bool wide) {
  const std::int64_t entries = gather.split != nullptr ? gather.split[gather.last] : gather.last;
  LookupPlan plan;
  plan.outputs = gather.last;
  plan.row = {const_cast<std::uint64_t*>(gather.row), entries, wide};
  plan.split = span_of(gather.split, gather.last + 1);
  plan.weight = span_of(gather.weight, entries);
  plan.denominator = span_of(gather.denominator, gather.last);
  plan.zero_denominators = !plan.weight.empty() && input::has_zero(plan.denominator);
  return plan;
}

/// Returns the gradient's numbers in place or, if they are doubles, in `memory`; null if there is
/// no gradient.
const float* floats_of(const Gradient& gradient, Arena& memory) {
  if (gradient.is_none()) return nullptr;
  const FloatSpan& values = gradient.values;
  if (!values.is_double()) return static_cast<const float*>(values.data());
  const std::span<float> copy = memory.take<float>(values.size());
  engine::copy_floats({.values = values, .count = values.size(), .copy = copy.data()});
  return copy.data();
}

/// Chooses the buckets of each table's update.
void choose_all_buckets(std::vector<TableRun>& tables, std::int32_t workers, SimdLevel level) {
  std::vector<ExpectedUpdate> expected;
  for (const TableRun& table : tables) {
    ExpectedUpdate update = expected_update(table);
    update.entries = table.entries();
    update.one_source = table.features.size() == 1;
    for (const FeatureRun& feature : table.features)
      update.outputs = std::max(update.outputs, feature.plan->outputs);
    expected.push_back(update);
  }
  std::vector<UpdateCut> cuts;
  choose_buckets(expected, workers, 0, level, cuts);
  for (std::size_t t = 0; t < cuts.size(); ++t) tables[t].buckets = cuts[t].buckets;
}

/// Gives a plan room for narrow row numbers and counts, as its table needs them.
void make_room(LookupPlan& plan, const TableRun& table, Arena& memory) {
  if (!table.wide) plan.row.data = memory.take<std::uint32_t>(plan.row.size).data();
  if (table.buckets == 1) return;
  plan.counts_stride = counts_stride_of(table.buckets);
  plan.counts = memory.take_zeros<std::uint32_t>(plan.tiles() * plan.counts_stride);
}

/// Narrows the row numbers of a tile of the plan, `rows`, and counts them by bucket.
void read_tile(const LookupPlan& plan, const std::uint64_t* rows, std::int32_t all_buckets,
               std::int64_t tile) {
  const auto buckets = static_cast<std::uint32_t>(all_buckets);
  std::uint32_t* counts = buckets > 1 ? plan.counts.data() + tile * plan.counts_stride : nullptr;
  for (std::int64_t j = plan.tile_begin(tile), end = plan.tile_begin(tile + 1); j < end; ++j) {
    if (plan.row.wide) {
      if (counts != nullptr) ++counts[bucket_of(rows[j], buckets)];
    } else {
      const auto row = static_cast<std::uint32_t>(rows[j]);
      plan.row.as<std::uint32_t>()[j] = row;
      if (counts != nullptr) ++counts[bucket_of(row, buckets)];
    }
  }
}

}  // namespace

std::vector<const float*> take_gradients(const Lookup& lookup, const Nested<Gradient>& gradients,
                                         std::int32_t replica, Arena& memory) {
  assert_same_structure(lookup.structure(), gradients.structure(), "gradients");
  for (std::int64_t leaf = 0; leaf < gradients.size(); ++leaf)
    engine::check_gradient(gradients[leaf], lookup.activations()[leaf].shape, gradients.path(leaf),
                           replica);
  std::vector<const float*> floats;
  for (const Gradient& gradient : gradients.leaves()) floats.push_back(floats_of(gradient, memory));
  return floats;
}

void append_sources(const Lookup& lookup, std::span<const float* const> gradients,
                    std::int32_t replica, std::span<const std::int64_t> table_of,
                    std::vector<std::vector<EntrySource>>& to) {
  std::vector<std::pair<std::int64_t, std::size_t>> inputs;  // by feature
  for (std::size_t i = 0; i < gradients.size(); ++i) inputs.emplace_back(lookup.feature_of(i), i);
  std::ranges::sort(inputs);
  for (const auto& [feature, i] : inputs)
    to[table_of[feature]].push_back({&lookup.inputs()[i].gather, gradients[i], replica});
}

GradientSumsOfTable in_order(const GradientSums& sums, std::int32_t dim) {
  std::vector<std::pair<std::int64_t, const float*>> rows;
  for (std::int64_t i = 0; i < sums.size(); ++i) rows.emplace_back(sums.row(i), sums.sum(i));
  return embertable::in_order(std::move(rows), dim, 0);
}

RowUpdates::RowUpdates(Executor& executor, SimdLevel level)
    : level_(level),
      workers_(executor, EmbeddingOptions::Tuning{}.inline_floats),
      backward_(level, 0) {}

void RowUpdates::clear() {
  step_.tables.clear();
  step_.memory.reset();
  readings_.clear();
}

TableRun& RowUpdates::add(std::string_view name, const RowBlock& rows,
                          std::span<const EntrySource> sources) {
  static const Optimizer kNone("none", 0);
  TableRun& table = step_.tables.emplace_back();
  table.name = name;
  table.rows = rows;
  table.wide = needs_wide_numbers(rows.rows);
  table.step_by(kNone, level_);
  for (const EntrySource& source : sources) {
    Reading& reading = readings_.emplace_back(Reading{
        step_.tables.size() - 1, plan_of(*source.entries, table.wide), source.entries->row});
    table.features.push_back(
        {.plan = &reading.plan, .core = source.replica, .gradient = source.gradient});
  }
  return table;
}

void RowUpdates::prepare() {
  choose_all_buckets(step_.tables, workers_.count(), level_);
  tiles_.clear();
  std::int64_t entries = 0;
  for (Reading& reading : readings_) {
    make_room(reading.plan, step_.tables[reading.table], step_.memory);
    entries += reading.plan.row.size;
    for (std::int64_t tile = 0; tile < reading.plan.tiles(); ++tile)
      tiles_.push_back({&reading, tile});
  }
  workers_.run(std::ssize(tiles_), entries * 4, [&](const WorkItem& work) {
    const auto& [reading, tile] = tiles_[work.index];
    read_tile(reading->plan, reading->row, step_.tables[reading->table].buckets, tile);
  });
  plan_updates(step_);
  select_zeros(step_, workers_);
  point_at_gradients(step_);
  scatters_.run(step_, workers_, level_);
  backward_.prepare(step_, workers_);
}

}  // namespace embertable::serving
