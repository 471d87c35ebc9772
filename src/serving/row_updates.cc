#include "serving/row_updates.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/cache.h"
#include "base/float_environment.h"
#include "embertable/errors.h"
#include "input/gradient.h"
#include "optimizer/rule.h"
#include "rows/cursors.h"
#include "step/forward.h"

namespace embertable::serving {
namespace {

/// As many buckets at most, and what is too little work to share. None shows in a result.
constexpr std::int64_t kMostBuckets = 1 << 10;
constexpr std::int64_t kInlineFloats = 1 << 13;
constexpr std::int64_t kRunRows = 1 << 12;

constexpr float kZeros[TableConfig::kMaxDim] = {};

std::int64_t entries_of(const Gather<std::uint64_t>& gather) {
  return gather.split != nullptr ? gather.split[gather.last] : gather.last;
}

template <class T>
std::span<const T> span_of(const T* values, std::int64_t count) {
  return values == nullptr ? std::span<const T>() : std::span<const T>(values, count);
}

/// All but the row numbers and the counts, which are still to be made.
LookupPlan plan_of(const Gather<std::uint64_t>& gather, bool wide) {
  LookupPlan plan;
  plan.outputs = gather.last;
  plan.row = {const_cast<std::uint64_t*>(gather.row), entries_of(gather), wide};
  plan.split = span_of(gather.split, gather.last + 1);
  plan.weight = span_of(gather.weight, plan.row.size);
  plan.denominator = span_of(gather.denominator, gather.last);
  return plan;
}

void append_pieces(const EntrySource& source, std::int64_t dim, std::vector<GradientPiece>& to) {
  for (std::int64_t first = 0; first < source.entries->last; first += kPieceRows)
    to.push_back(source.gradient != nullptr
                     ? GradientPiece{source.gradient + first * dim, dim, source.replica}
                     : GradientPiece{kZeros, 0, source.replica});
}

}  // namespace

std::vector<const float*> take_gradients(const Lookup& lookup, const Nested<Gradient>& gradients,
                                         std::int32_t replica, Arena& memory) {
  assert_same_structure(lookup.structure(), gradients.structure(), "gradients");
  for (std::int64_t leaf = 0; leaf < gradients.size(); ++leaf)
    check_gradient(gradients[leaf], lookup.activations()[leaf].shape, gradients.path(leaf),
                   replica);
  std::vector<const float*> floats;
  for (const Gradient& gradient : gradients.leaves())
    floats.push_back(floats_of(gradient, false, memory));
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

struct RowUpdates::Table {
  std::vector<EntrySource> sources;
  std::vector<LookupPlan> lookups;         ///< by source
  std::vector<std::uint32_t> first_piece;  ///< by source
  std::vector<std::int64_t> first_entry;   ///< by source
  std::vector<GradientPiece> pieces;
  std::vector<std::uint16_t> touched;
  std::int64_t entries = 0;
  UpdatePlan plan;
  TableUpdate update;
};

/// A tile of a source, a bucket, or a run of rows.
struct RowUpdates::Item {
  Table* table = nullptr;
  std::size_t source = 0;
  std::int64_t index = 0;
  std::int64_t entries = 0;
};

RowUpdates::RowUpdates(Executor& executor, SimdLevel level)
    : executor_(executor), level_(level), scratch_(std::max(executor.workers(), 1)) {}
RowUpdates::~RowUpdates() = default;

void RowUpdates::clear() {
  tables_.clear();
  tiles_.clear();
  buckets_.clear();
  runs_.clear();
  memory_.reset();
}

TableUpdate& RowUpdates::add(const std::string& name, const RowBlock& rows,
                             std::vector<EntrySource> sources, bool every_row) {
  auto table = std::make_unique<Table>();
  table->sources = std::move(sources);
  table->plan.wide = rows.rows >= std::int64_t{1} << 31;
  for (const EntrySource& source : table->sources) {
    table->lookups.push_back(plan_of(*source.entries, table->plan.wide));
    table->first_piece.push_back(static_cast<std::uint32_t>(table->pieces.size()));
    table->first_entry.push_back(table->entries);
    table->entries += table->lookups.back().row.size;
    append_pieces(source, rows.dim, table->pieces);
  }
  constexpr auto kMost = std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  const std::int64_t outputs = std::ssize(table->pieces) * kPieceRows;
  if (table->entries > kMost || outputs > kMost)
    throw ValueError("table '" + name +
                     "': gradients may have at most 2^32 - 1 entries and output rows, got " +
                     std::to_string(table->entries) + " and " + std::to_string(outputs));
  table->plan.piece = table->pieces;
  TableUpdate& update = table->update;
  update.rows = rows;
  update.plan = &table->plan;
  update.gradients.piece = table->pieces.data();
  if (table->sources.size() == 1 && !table->pieces.empty()) {
    update.gradients.base = table->pieces.front().base;
    update.gradients.stride = table->pieces.front().stride;
  }
  if (every_row) {
    table->touched.assign((rows.rows + 15) / 16, 0);
    update.touched = table->touched.data();
  }
  tables_.push_back(std::move(table));
  return update;
}

void RowUpdates::add(const std::string& name, const RowBlock& rows,
                     std::vector<EntrySource> sources, GradientSums& sums) {
  static const Optimizer kNone("none", 0);
  TableUpdate& update = add(name, rows, std::move(sources));
  sums.start(rows, std::min(tables_.back()->entries, rows.rows));
  update.update_rows = rule_of(kNone).update_rows(level_, kNone);
  update.step.context = &sums;
}

std::int32_t RowUpdates::buckets_of(const Table& table) const {
  const RowBlock& rows = table.update.rows;
  std::int64_t row_bytes = rows.stride * 4;
  for (std::int32_t slot = 0; slot < rows.slots; ++slot)
    row_bytes += rows.slot_stride[slot] == 1 ? 4 : 0;
  const std::int64_t named = std::min(table.entries, rows.rows);
  return static_cast<std::int32_t>(
      std::min(named * row_bytes / quarter_of_level2_cache() + 1, kMostBuckets));
}

/// Narrows the row numbers of a tile and counts them by bucket.
void RowUpdates::read_tile(Table& table, std::size_t source, std::int64_t tile) {
  LookupPlan& plan = table.lookups[source];
  const std::uint64_t* from = table.sources[source].entries->row;
  const auto buckets = static_cast<std::uint32_t>(table.plan.buckets());
  std::uint32_t* counts = buckets > 1 ? plan.counts.data() + tile * plan.counts_stride : nullptr;
  const std::int64_t last = std::min(plan.outputs, (tile + 1) * kTileRows);
  for (std::int64_t j = plan.first_entry(tile * kTileRows); j < plan.first_entry(last); ++j) {
    if (plan.row.wide) {
      if (counts != nullptr) ++counts[bucket_of(from[j], buckets)];
    } else {
      const auto row = static_cast<std::uint32_t>(from[j]);
      plan.row.as<std::uint32_t>()[j] = row;
      if (counts != nullptr) ++counts[bucket_of(row, buckets)];
    }
  }
}

/// Counts become cursors.
void RowUpdates::place_entries(Table& table) {
  UpdatePlan& update = table.plan;
  update.bucket.front() = 0;
  update.bucket.back() = table.entries;
  if (update.buckets() > 1) {
    counts_to_cursors(update.bucket, [&](auto&& visit) {
      for (LookupPlan& plan : table.lookups)
        for (std::int64_t tile = 0; tile < plan.tiles(); ++tile)
          visit(plan.counts.data() + tile * plan.counts_stride);
    });
  }
  for (std::int64_t b = 0; b < update.buckets(); ++b) {
    const std::int64_t entries = update.bucket[b + 1] - update.bucket[b];
    if (entries > 0) buckets_.push_back({&table, 0, b, entries});
  }
}

void RowUpdates::prepare() {
  std::int64_t entries = 0;
  for (const auto& table : tables_) {
    UpdatePlan& update = table->plan;
    const std::int32_t buckets = buckets_of(*table);
    update.bucket = memory_.take<std::int64_t>(buckets + 1);
    bool gain = false;
    for (std::size_t s = 0; s < table->lookups.size(); ++s) {
      LookupPlan& plan = table->lookups[s];
      gain |= plan.has_gain();
      if (!update.wide) plan.row.data = memory_.take<std::uint32_t>(plan.row.size).data();
      if (buckets > 1) {
        plan.counts_stride = (buckets + 15) / 16 * 16;
        plan.counts = memory_.take_zeros<std::uint32_t>(plan.tiles() * plan.counts_stride);
      }
      for (std::int64_t tile = 0; tile < plan.tiles(); ++tile)
        tiles_.push_back({table.get(), s, tile, 0});
    }
    update.entry =
        update.wide
            ? static_cast<void*>(memory_.take<UpdateEntry<std::uint64_t>>(table->entries).data())
            : memory_.take<UpdateEntry<std::uint32_t>>(table->entries).data();
    if (gain) update.gain = memory_.take<float>(table->entries).data();
    entries += table->entries;
  }
  const auto tiles = std::ssize(tiles_);
  region(tiles, entries * 4, [&](const WorkItem& work) {
    const Item& item = tiles_[work.index];
    read_tile(*item.table, item.source, item.index);
  });
  for (const auto& table : tables_) place_entries(*table);
  region(tiles, entries * 4, [&](const WorkItem& work) {
    const Item& item = tiles_[work.index];
    Table& table = *item.table;
    scatter({&table.lookups[item.source], &table.plan, item.index, table.first_piece[item.source],
             table.first_entry[item.source]});
  });
  list_other_rows();
  std::ranges::stable_sort(buckets_, std::ranges::greater(), &Item::entries);
  reserve_scratch();
}

/// Of tables whose rule steps every row.
void RowUpdates::list_other_rows() {
  for (const auto& table : tables_) {
    if (table->update.touched == nullptr) continue;
    for (std::int64_t first = 0; first < table->update.rows.rows; first += kRunRows)
      runs_.push_back({table.get(), 0, first, 0});
  }
}

void RowUpdates::reserve_scratch() {
  std::int64_t entries = 0;
  std::int32_t widest = 0;
  bool wide = false;
  for (const Item& item : buckets_) {
    entries = std::max(entries, item.entries);
    widest = std::max(widest, item.table->update.rows.dim);
    wide |= item.table->plan.wide;
  }
  if (buckets_.empty()) return;
  for (GroupScratch& scratch : scratch_) scratch.reserve(entries, wide, widest);
}

void RowUpdates::run() {
  std::int64_t floats = 0, run_floats = 0;
  for (const Item& item : buckets_) floats += item.entries * item.table->update.rows.dim;
  for (const Item& run : runs_) run_floats += kRunRows * run.table->update.rows.dim;
  region(std::ssize(buckets_), floats, [&](const WorkItem& work) {
    const Item& item = buckets_[work.index];
    update_bucket(item.table->update, item.index, scratch_[work.worker], level_);
  });
  region(std::ssize(runs_), run_floats, [&](const WorkItem& work) {
    const Item& run = runs_[work.index];
    const TableUpdate& update = run.table->update;
    step_untouched_rows(update, run.index, std::min(run.index + kRunRows, update.rows.rows));
  });
}

/// On the calling thread alone where little is moved.
void RowUpdates::region(std::int64_t items, std::int64_t floats,
                        FunctionRef<void(const WorkItem&)> body) {
  const auto in_our_environment = [&](const WorkItem& work) {
    const FloatEnvironment ours;
    body(work);
  };
  if (floats < kInlineFloats || items <= 1) {
    for (std::int64_t i = 0; i < items; ++i) in_our_environment({i, -1, 0});
  } else {
    executor_.run(items, in_our_environment);
  }
}

}  // namespace embertable::serving
