#include "step/forward.h"

#include <algorithm>

#include "base/assert.h"
#include "base/cache.h"
#include "base/entries.h"
#include "kernels/gather/gather.h"
#include "kernels/narrow.h"
#include "kernels/stage_clock.h"
#include "step/bucket_policy.h"

namespace embertable {
namespace {

GatheredRows gathered_rows(const TableRun& table) {
  return {.table = table.rows.memory(),
          .stride = table.rows.stride,
          .received = table.route.received.data(),
          .dim = table.rows.dim,
          .type = table.rows.type,
          .to_level2 = table.reads_to_level2};
}

SoonGathered soon(const LookupItem& item) {
  const LookupPlan& plan = *item.feature->plan;
  const std::int64_t begin = plan.first_entry(item.first), end = plan.first_entry(item.last);
  const void* row = plan.visit_rows([&](auto* rows) -> const void* { return rows + begin; });
  return {
      .rows = gathered_rows(*item.table), .row = row, .wide = plan.row.wide, .count = end - begin};
}

/// The bucket numbers of consecutive entries: those of the plan, or computed some at a time.
template <class Index>
class BucketNumbers {
 public:
  BucketNumbers(const LookupPlan& plan, std::uint32_t buckets, std::int64_t end, SimdLevel level)
      : row_(plan.row.as<Index>()),
        bucket_(plan.bucket.data()),
        buckets_(buckets),
        known_(plan.bucket.empty() ? 0 : end),
        end_(end),
        level_(level) {}

  /// Called with rising entries, none left out.
  std::uint32_t at(std::int64_t entry) {
    if (entry >= known_) [[unlikely]]
      compute(entry);
    return bucket_[entry - first_];
  }

 private:
  void compute(std::int64_t entry) {
    first_ = entry;
    known_ = std::min(entry + kComputed, end_);
    bucket_ = computed_;
    number_buckets<Index>({row_ + first_, known_ - first_, buckets_, computed_}, level_);
  }

  static constexpr std::int64_t kComputed = 512;
  const Index* row_;
  const std::uint16_t* bucket_;
  const std::uint32_t buckets_;
  std::int64_t first_ = 0, known_;
  const std::int64_t end_;
  const SimdLevel level_;
  std::uint16_t computed_[kComputed];
};

/// The next places of entries in a table's lists, one for each bucket and each range of rows named
/// once.
class ManyCursors {
 public:
  explicit ManyCursors(std::uint32_t* cursor) : cursor_(cursor) {}
  std::uint32_t advance(std::uint32_t list) { return cursor_[list]++; }
  void store() const {}

 private:
  std::uint32_t* cursor_;
};

/// The same for two lists, in registers: counters in memory would wait for their last store.
class TwoCursors {
 public:
  explicit TwoCursors(std::uint32_t* cursor)
      : cursor_(cursor), first_(cursor[0]), second_(cursor[1]) {}
  std::uint32_t advance(std::uint32_t list) {
    const std::uint32_t at = list != 0 ? second_ : first_;
    second_ += list;
    first_ += 1 - list;
    return at;
  }
  void store() const { cursor_[0] = first_, cursor_[1] = second_; }

 private:
  std::uint32_t* cursor_;
  std::uint32_t first_, second_;
};

template <class Index, bool kGain, class Cursors>
void scatter_to(const ScatterItem& item, Cursors cursors, SimdLevel level) noexcept {
  const LookupPlan& plan = *item.plan;
  const UpdatePlan& update = *item.update;
  const Index* row = plan.row.as<Index>();
  auto* entry = static_cast<UpdateEntry<Index>*>(update.entry);
  float* gain = update.gain;
  const auto buckets = static_cast<std::uint32_t>(update.buckets());
  const std::int64_t first = item.tile * kTileRows,
                     last = std::min(first + kTileRows, plan.outputs);
  std::int64_t j = plan.tile_begin(item.tile);
  BucketNumbers<Index> bucket(plan, buckets, plan.tile_begin(item.tile + 1), level);

  auto out = static_cast<std::uint32_t>(item.first_piece * kPieceRows + first);
  for (std::int64_t i = first; i < last; ++i, ++out) {
    const LookupPlan::Gain gain_of = plan.gain(i);
    for (const std::int64_t end = plan.first_entry(i + 1); j < end; ++j) {
      const std::uint32_t k = cursors.advance(bucket.at(j));
      entry[k] = {row[j], out};
      if constexpr (kGain) gain[k] = gain_of(j);
    }
  }
  cursors.store();
}

template <class Index, bool kGain>
void scatter_as(const ScatterItem& item, SimdLevel level) noexcept {
  const LookupPlan& plan = *item.plan;
  if (plan.counts.empty()) {
    const std::int64_t first = item.first_entry + plan.tile_begin(item.tile);
    std::uint32_t cursor[] = {static_cast<std::uint32_t>(first), 0};
    return scatter_to<Index, kGain>(item, TwoCursors(cursor), level);
  }
  std::uint32_t* const cursor = plan.counts.data() + item.tile * plan.counts_stride;
  item.update->lists() <= 2 ? scatter_to<Index, kGain>(item, TwoCursors(cursor), level)
                            : scatter_to<Index, kGain>(item, ManyCursors(cursor), level);
}

}  // namespace

void look_up(const LookupItem& item, const LookupItem* next, SimdLevel level,
             bool bursts) noexcept {
  const LookupPlan& plan = *item.feature->plan;
  plan.visit_rows([&]<class Index>(const Index* row) {
    Gather<Index> args = {.rows = gathered_rows(*item.table),
                          .grid = item.table->grid,
                          .row = row,
                          .split = plan.split.data(),
                          .weight = plan.weight.data(),
                          .denominator = plan.denominator.data(),
                          .out = item.feature->out,
                          .first = item.first,
                          .last = item.last,
                          .outputs_ahead = fetches_through_level2(),
                          .bursts = bursts};
    if (next != nullptr) args.next = soon(*next);
    gather(args, level);
  });
}

void scatter(const ScatterItem& item, SimdLevel level) noexcept {
  const bool wide = item.update->wide, gain = item.update->gain != nullptr;
  EMBERTABLE_ASSERT(item.plan->row.wide == wide);
  if (wide)
    gain ? scatter_as<std::uint64_t, true>(item, level)
         : scatter_as<std::uint64_t, false>(item, level);
  else
    gain ? scatter_as<std::uint32_t, true>(item, level)
         : scatter_as<std::uint32_t, false>(item, level);
}

std::int32_t ForwardRun::run(const HostStep& step, Workers& workers, SimdLevel level) {
  std::int64_t all_floats = 0, most_items = 0;
  for (const TableRun& table : step.tables) {
    for (const FeatureRun& feature : table.features) {
      all_floats += (feature.plan->row.size + feature.plan->outputs) * table.rows.dim;
      most_items += feature.plan->outputs / kLeastLookupRows + 1 + feature.plan->tiles();
    }
  }
  if (bursts_.size() != step.tables.size()) bursts_ = std::vector<BurstChoice>(step.tables.size());
  // Rows of floats have twice the lines for the same instructions: bursts made none of them faster.
  for (std::size_t t = 0; t < bursts_.size(); ++t)
    bursts_[t].start(lookups_may_burst() && step.tables[t].rows.is_half());
  items_.clear();
  items_.reserve(most_items);  // enough whatever the next batch's ids are
  const bool deals = step.keeps_tables && workers.run_together(all_floats);
  if (workers.count() > 1) dealt_.start(workers.count(), most_items);
  std::int64_t floats = 0;  // floats that all items move
  const std::int64_t item_floats = lookup_item_floats(all_floats, workers.count());
  for (const TableRun& table : step.tables) {
    for (const FeatureRun& feature : table.features) {
      const LookupPlan& plan = *feature.plan;
      if (plan.outputs == 0 || feature.out == nullptr) continue;
      // Moved floats: rows that an output row needs, and the output row.
      const std::int64_t output_floats =
          ((plan.row.size + plan.outputs - 1) / plan.outputs + 1) * table.rows.dim;
      const std::int64_t run = std::clamp(item_floats / output_floats, kLeastLookupRows, kTileRows);
      for (std::int64_t first = 0; first < plan.outputs; first += run) {
        const std::int64_t last = std::min(plan.outputs, first + run);
        items_.push_back({{&table, &feature, first, last}, {}});
        if (deals) dealt_.add(feature.part.at(first, last, plan.outputs));
      }
      floats += plan.outputs * output_floats;
    }
  }
  const std::int64_t lookups = std::ssize(items_);
  for (const TableRun& table : step.tables) {
    if (table.plan.entry == nullptr) continue;
    std::int64_t piece = 0, first_entry = 0;
    for (const FeatureRun& feature : table.features) {
      const LookupPlan& plan = *feature.plan;
      for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
        if (plan.tile_begin(tile + 1) == plan.tile_begin(tile)) continue;
        items_.push_back(
            {{}, {&plan, &table.plan, tile, static_cast<std::uint32_t>(piece), first_entry}});
        if (deals) dealt_.add(feature.part.at(tile, tile + 1, plan.tiles()));
      }
      floats += plan.row.size * 4;
      piece += pieces_for(plan.outputs);
      first_entry += plan.row.size;
    }
  }
  const auto run_item = [&](const WorkItem& work) {
    StageLap lap;
    const Item& item = items_[work.index];
    if (work.index >= lookups) {
      scatter(item.scatter, level);
      lap.to(StepStage::kScatter);
      return;
    }
    const bool looks_up_next = work.next >= 0 && work.next < lookups;
    const LookupItem& lookup = item.lookup;
    BurstChoice& choice = bursts_[static_cast<std::size_t>(lookup.table - step.tables.data())];
    choice.time(work.index, lookup.entries(), [&](bool bursts) {
      look_up(lookup, looks_up_next ? &items_[work.next].lookup : nullptr, level, bursts);
    });
    lap.to(StepStage::kLookUp);
  };
  return deals ? workers.run(dealt_, floats, run_item)
               : workers.run(std::ssize(items_), floats, run_item);
}

}  // namespace embertable
