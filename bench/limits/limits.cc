#include "bench/limits/limits.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <span>
#include <utility>

#include "bench/limits/bare_loops.h"
#include "embertable/optimizer_rules.h"

namespace embertable::bench {
namespace {

/// Receives the results of the bare loops, so that the compiler must expect readers.
std::atomic<float> g_sink;

/// A small normal number, so that arithmetic on rows is not slowed down.
constexpr float kRowValue = 0.01f;

}  // namespace

void run_parts(Executor& executor, FunctionRef<float(std::int64_t, std::int64_t)> part) {
  const std::int64_t workers = executor.workers();
  executor.run(workers, [&](const WorkItem& item) {
    g_sink.store(part(item.index, workers), std::memory_order_relaxed);
  });
}

Mapping filled_floats(std::size_t count, float value, Executor& executor) {
  Mapping memory = map_floats(count);
  run_parts(executor, [&](std::int64_t worker, std::int64_t workers) {
    const Share share(count, worker, workers);
    std::fill_n(floats_of(memory) + share.begin, share.size(), value);
    return value;
  });
  return memory;
}

double LoopTimes::median() const {
  if (seconds_[0].empty()) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& runs : seconds_) best = std::min(best, bench::median(runs));
  return best;
}

Limits::Limits(const LoadData& data, Executor& executor)
    : data_(data),
      executor_(executor),
      activations_(filled_floats(data.load.output_floats(), 0, executor)) {
  for (const LoadTable& of : data.load.tables) {
    const auto rows = static_cast<std::size_t>(of.rows);
    Table& table = tables_.emplace_back();
    table.dim = static_cast<std::size_t>(of.dim);
    const bool half = of.row_type == RowType::kBfloat16;
    table.row_floats = table.record_floats = half ? (table.dim + 1) / 2 : table.dim;
    for (const OptimizerSlot& slot : slots_of(Optimizer(of.rule, 0.1))) {
      if (slot.row_wise) {
        table.row_slots.push_back(filled_floats(rows, kRowValue, executor));
        table.row_slot.push_back(floats_of(table.row_slots.back()));
      } else {
        table.record_floats += table.dim;
      }
    }
    table.records = filled_floats(rows * table.record_floats, kRowValue, executor);
  }
  for (const LoadBatch& batch : data.batches) named_.push_back(named_rows(data.load, batch));
}

void Limits::gather(std::size_t batch, const FetchAhead& ahead, Moves moves) {
  const std::vector<LoadFeature>& features = data_.load.features;
  const std::size_t samples = data_.load.samples;
  run_parts(executor_, [&](std::int64_t worker, std::int64_t workers) {
    const Share outputs(samples, worker, workers);
    float sum = 0;
    float* out = floats_of(activations_);
    const LoadBatch& looked_up = data_.batches[batch];
    for (std::size_t i = 0; i < looked_up.size(); ++i) {
      const Table& table = tables_[features[i % features.size()].table];
      const Share ids(looked_up[i].ids.size(), worker, workers);
      sum += bare_gather({.records = floats_of(table.records),
                          .record_floats = table.record_floats,
                          .dim = table.row_floats,
                          .ids = looked_up[i].ids.data() + ids.begin,
                          .count = ids.size(),
                          .ahead = ahead,
                          .out_dim = table.dim,
                          .out = out + outputs.begin * table.dim,
                          .out_rows = moves == Moves::kAll ? outputs.size() : 0},
                         level_);
      out += samples * table.dim;
    }
    return sum;
  });
}

void Limits::update(std::size_t batch, const FetchAhead& ahead, Moves moves) {
  const bool slots = moves != Moves::kRows;
  const std::vector<std::vector<std::uint32_t>>& named = named_[batch];
  std::size_t named_in_all = 0;
  for (const std::vector<std::uint32_t>& rows : named) named_in_all += rows.size();
  const std::span<const float> gradients = data_.gradients[next_gradient_++];
  const auto gradient_of = [&](std::size_t row) {  // on a cache line
    return gradients.size() * row / std::max<std::size_t>(named_in_all, 1) / 16 * 16;
  };
  run_parts(executor_, [&](std::int64_t worker, std::int64_t workers) {
    float sum = 0;
    std::size_t before = 0;
    for (std::size_t t = 0; t < named.size(); ++t) {
      const Table& table = tables_[t];
      const Share rows(named[t].size(), worker, workers);
      const std::size_t first = gradient_of(before + rows.begin);
      const std::size_t last = gradient_of(before + rows.end);
      sum += bare_update({.records = floats_of(table.records),
                          .record_floats = table.record_floats,
                          .floats = slots ? table.record_floats : table.row_floats,
                          .row_slots = table.row_slot.data(),
                          .num_row_slots = slots ? table.row_slot.size() : 0,
                          .rows = named[t].data() + rows.begin,
                          .count = rows.size(),
                          .ahead = ahead,
                          .dim = table.dim,
                          .gradients = gradients.data() + first,
                          .gradient_rows = moves == Moves::kAll ? (last - first) / table.dim : 0},
                         level_);
      before += named[t].size();
    }
    return sum;
  });
}

void Limits::gather_pass(const FetchAhead& ahead, Moves moves) {
  for (std::size_t b = 0; b < named_.size(); ++b) gather(b, ahead, moves);
}

void Limits::update_pass(const FetchAhead& ahead, Moves moves) {
  for (std::size_t b = 0; b < named_.size(); ++b) update(b, ahead, moves);
}

void Limits::run(bool rows_alone) {
  if (rows_alone) {
    gather_.run([&](const FetchAhead& ahead) { gather_pass(ahead, Moves::kRows); });
    update_.run([&](const FetchAhead& ahead) { update_pass(ahead, Moves::kRows); });
  }
  gather_all_.run([&](const FetchAhead& ahead) { gather_pass(ahead, Moves::kAll); });
  update_all_.run([&](const FetchAhead& ahead) { update_pass(ahead, Moves::kAll); });
}

void Limits::take_turn(std::size_t batch, std::size_t way) {
  const FetchAhead& ahead = LoopTimes::kWays[way];
  gather_pass_ += seconds_of([&] { gather(batch, ahead, Moves::kAll); });
  update_pass_ += seconds_of([&] { update(batch, ahead, Moves::kAll); });
}

void Limits::end_turns(std::size_t way, bool counts) {
  const double gathers = std::exchange(gather_pass_, 0), updates = std::exchange(update_pass_, 0);
  if (!counts) return;
  gather_turns_.add(way, gathers);
  update_turns_.add(way, updates);
}

LimitSeconds Limits::median() const {
  return {.gather = gather_.median(),
          .update = update_.median(),
          .gather_all = gather_all_.median(),
          .update_all = update_all_.median(),
          .turns = gather_turns_.median() + update_turns_.median()};
}

}  // namespace embertable::bench
