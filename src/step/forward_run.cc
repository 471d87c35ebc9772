#include "step/forward_run.h"

#include <algorithm>

#include "kernels/stage_clock.h"
#include "step/bucket_policy.h"

namespace embertable {

void ForwardRun::list(const HostStep& step, std::int32_t workers) {
  std::int64_t floats = 0, most_items = 0;
  for (const TableRun& table : step.tables) {
    for (const FeatureRun& feature : table.features) {
      floats += (feature.plan->row.size + feature.plan->outputs) * table.rows.dim;
      most_items += feature.plan->outputs / kLeastLookupRows + 1 + feature.plan->tiles();
    }
  }
  items_.clear();
  items_.reserve(most_items);  // enough whatever the next batch's ids are
  for (const TableRun& table : step.tables)
    list_lookups(table, lookup_item_floats(floats, workers));
  for (const TableRun& table : step.tables)
    if (table.plan.entry != nullptr) list_scatters(table);
}

void ForwardRun::list_lookups(const TableRun& table, std::int64_t item_floats) {
  for (const FeatureRun& feature : table.features) {
    const LookupPlan& plan = *feature.plan;
    if (plan.outputs == 0 || feature.out == nullptr) continue;
    LookupItem item = {.plan = &plan,
                       .rows = table.rows,
                       .grid = table.grid,
                       .received = table.route.received.data(),
                       .out = feature.out};
    const std::int64_t dim = table.rows.dim;
    const std::int64_t
        output_floats =  // moved floats: rows that an output row needs, and the output row
        (plan.row.size + plan.outputs - 1) / plan.outputs * dim + dim;
    const std::int64_t run = std::clamp(item_floats / output_floats, kLeastLookupRows, kTileRows);
    for (item.first = 0; item.first < plan.outputs; item.first = item.last) {
      item.last = std::min(plan.outputs, item.first + run);
      items_.push_back({item, {}, (item.last - item.first) * output_floats});
    }
  }
}

void ForwardRun::list_scatters(const TableRun& table) {
  std::int64_t piece = 0, first_entry = 0;
  for (const FeatureRun& feature : table.features) {
    const LookupPlan& plan = *feature.plan;
    for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
      const std::int64_t last = std::min(plan.outputs, (tile + 1) * kTileRows);
      const std::int64_t entries = plan.first_entry(last) - plan.first_entry(tile * kTileRows);
      if (entries == 0) continue;
      const ScatterItem item = {.plan = &plan,
                                .update = &table.plan,
                                .tile = tile,
                                .first_piece = static_cast<std::uint32_t>(piece),
                                .first_entry = first_entry};
      items_.push_back({{}, item, entries * 4});
    }
    piece += pieces_for(plan.outputs);
    first_entry += plan.row.size;
  }
}

std::int32_t ForwardRun::run(Workers& workers, SimdLevel level) const {
  std::int64_t floats = 0;
  for (const Item& item : items_) floats += item.floats;
  return workers.run(std::ssize(items_), floats, [&](const WorkItem& work) {
    StageLap lap;
    const Item& item = items_[work.index];
    if (item.lookup.plan == nullptr) {
      scatter(item.scatter);
      lap.to(Stage::kScatter);
      return;
    }
    const Item* next = work.next < 0 ? nullptr : &items_[work.next];
    look_up(item.lookup, next != nullptr && next->lookup.plan != nullptr ? &next->lookup : nullptr,
            level);
    lap.to(Stage::kLookUp);
  });
}

}  // namespace embertable
