#include "bench/bare_step.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "bench/bare_loops.h"
#include "bench/median.h"
#include "bench/random.h"
#include "bench/stopwatch.h"

namespace embertable::bench {
namespace {

/// Keeps the compiler from dropping a loop whose result nobody wants.
std::atomic<float> g_bare_sink;

/// An equal share of so many things.
struct Share {
  std::size_t begin, end;
  Share(std::size_t count, int worker, int workers)
      : begin(count * static_cast<std::size_t>(worker) / static_cast<std::size_t>(workers)),
        end(count * static_cast<std::size_t>(worker + 1) / static_cast<std::size_t>(workers)) {}
  std::size_t size() const { return end - begin; }
};

double best_median(std::span<const std::vector<double>> seconds) {
  double best = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& runs : seconds) best = std::min(best, median(runs));
  return best;
}

}  // namespace

BareStep::BareStep(const Load& load, const std::vector<TableInfo>& tables,
                   std::span<const LoadBatch> batches,
                   std::span<const std::span<const float>> gradients, Team& team)
    : load_(load),
      batches_(batches),
      gradients_(gradients),
      team_(team),
      activations_(load.output_floats() * sizeof(float)) {
  for (std::size_t t = 0; t < load.tables.size(); ++t) {
    const auto rows = static_cast<std::size_t>(load.tables[t].rows);
    const auto dim = static_cast<std::size_t>(load.tables[t].dim);
    Table& table = tables_.emplace_back();
    table.record_floats = dim;
    for (const TableInfo::Slot& slot : tables[t].slots) {
      if (slot.row_wise)
        table.slot.push_back(table.slots.emplace_back(rows * sizeof(float)).as<float>());
      else
        table.record_floats += dim;
    }
    table.records = HugePages(rows * table.record_floats * sizeof(float));
    std::fill_n(table.records.as<float>(), rows * table.record_floats, 0.01f);
    for (float* slot : table.slot) std::fill_n(slot, rows, 0.01f);
  }
  for (const LoadBatch& batch : batches) name_rows(batch);
}

/// In no order.
void BareStep::name_rows(const LoadBatch& batch) {
  Random random(1);
  auto& by_table = named_.emplace_back(load_.tables.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::vector<std::uint32_t>& rows = by_table[load_.features[i % load_.features.size()].table];
    rows.insert(rows.end(), batch[i].ids.begin(), batch[i].ids.end());
  }
  for (std::vector<std::uint32_t>& rows : by_table) {
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
  }
}

std::size_t BareStep::named_rows() const {
  std::size_t count = 0;
  for (const auto& by_table : named_)
    for (const std::vector<std::uint32_t>& rows : by_table) count += rows.size();
  return count;
}

double BareStep::gather_pass(std::size_t distance) {
  Stopwatch watch;
  for (const LoadBatch& batch : batches_) {
    team_.run([&](int worker) {
      float sum = 0;
      float* out = activations_.as<float>();
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::size_t feature = i % load_.features.size();
        const Table& table = tables_[load_.features[feature].table];
        const auto dim = static_cast<std::size_t>(load_.dim_of(feature));
        const Share ids(batch[i].ids.size(), worker, team_.size());
        const Share outputs(static_cast<std::size_t>(load_.samples), worker, team_.size());
        sum += bare_gather({.records = table.records.as<float>(),
                            .record_floats = table.record_floats,
                            .dim = dim,
                            .ids = batch[i].ids.data() + ids.begin,
                            .count = ids.size(),
                            .distance = distance,
                            .out = out + outputs.begin * dim,
                            .out_floats = outputs.size() * dim},
                           level_);
        out += static_cast<std::size_t>(load_.samples) * dim;
      }
      g_bare_sink.store(sum, std::memory_order_relaxed);
    });
  }
  return watch.lap();
}

double BareStep::update_pass(std::size_t distance) {
  Stopwatch watch;
  for (const auto& by_table : named_) {
    std::size_t all = 0;
    for (const std::vector<std::uint32_t>& rows : by_table) all += rows.size();
    const std::span<const float> gradients = gradients_[next_gradient_++ % gradients_.size()];
    team_.run([&](int worker) {
      float sum = 0;
      std::size_t before = 0;
      for (std::size_t t = 0; t < by_table.size(); ++t) {
        const Share rows(by_table[t].size(), worker, team_.size());
        const std::size_t first = gradients.size() * (before + rows.begin) / all;
        const std::size_t last = gradients.size() * (before + rows.end) / all;
        sum += bare_update({.records = tables_[t].records.as<float>(),
                            .record_floats = tables_[t].record_floats,
                            .row_slots = tables_[t].slot.data(),
                            .num_row_slots = tables_[t].slot.size(),
                            .rows = by_table[t].data() + rows.begin,
                            .count = rows.size(),
                            .distance = distance,
                            .gradients = gradients.data() + first,
                            .gradient_floats = last - first},
                           level_);
        before += by_table[t].size();
      }
      g_bare_sink.store(sum, std::memory_order_relaxed);
    });
  }
  return watch.lap();
}

void BareStep::run() {
  const Team::CallerOnCpu on_cpu(team_);
  for (std::size_t d = 0; d < std::size(kDistances); ++d) {
    gather_[d].push_back(gather_pass(kDistances[d]));
    update_[d].push_back(update_pass(kDistances[d]));
  }
  team_.rest();
}

BareSeconds BareStep::median() const { return {best_median(gather_), best_median(update_)}; }

}  // namespace embertable::bench
