#include "bench/limits.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "bench/limit_kernels.h"
#include "bench/median.h"
#include "bench/random.h"
#include "bench/stopwatch.h"

namespace embertable::bench {
namespace {

/// Keeps the compiler from dropping a loop whose result nobody wants.
volatile float g_sink;

NamedRows named_rows(const WorkloadBatch& batch) {
  NamedRows named;
  Random random(1);
  named.first.push_back(0);
  std::vector<std::uint32_t> rows;
  for (std::size_t t = 0; t + 1 < batch.first_id.size(); ++t) {
    const std::span<const std::int64_t> ids = batch.table_ids(t);
    rows.assign(ids.begin(), ids.end());
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
    named.rows.insert(named.rows.end(), rows.begin(), rows.end());
    named.first.push_back(named.rows.size());
  }
  return named;
}

}  // namespace

Limits::Limits(const Workload& workload, std::span<const WorkloadBatch> batches,
               std::span<const std::span<const float>> gradients, const PlainTables& tables,
               std::span<float> activations, Team& team)
    : batches_(batches),
      gradients_(gradients),
      tables_(tables),
      activations_(activations),
      team_(team) {
  limit_kernels(workload.dim);
  for (const TableRows& table : tables.tables()) {
    rows_.push_back(table.rows);
    slots_.push_back(table.slots);
  }
  for (const WorkloadBatch& batch : batches) named_.push_back(named_rows(batch));
}

double Limits::gather_pass(int distance, bool all) {
  const LimitKernels& kernels = limit_kernels(tables_.dim());
  Stopwatch watch;
  for (const WorkloadBatch& batch : batches_) {
    team_.run([&](int worker) {
      g_sink = kernels.gather(
          {.rows = rows_.data(),
           .tables = rows_.size(),
           .ids = batch.ids.data(),
           .first = batch.first_id.data(),
           .worker = static_cast<std::size_t>(worker),
           .workers = static_cast<std::size_t>(team_.size()),
           .distance = static_cast<std::size_t>(distance),
           .out = all ? activations_.data() : nullptr,
           .out_rows = activations_.size() / static_cast<std::size_t>(tables_.dim())});
    });
  }
  return watch.lap();
}

double Limits::update_pass(int distance, bool all) {
  const LimitKernels& kernels = limit_kernels(tables_.dim());
  Stopwatch watch;
  for (const NamedRows& named : named_) {
    const std::span<const float> gradients = gradients_[next_gradient_++ % gradients_.size()];
    team_.run([&](int worker) {
      g_sink = kernels.update(
          {.rows = rows_.data(),
           .slots = all ? slots_.data() : nullptr,
           .tables = rows_.size(),
           .named = named.rows.data(),
           .first = named.first.data(),
           .worker = static_cast<std::size_t>(worker),
           .workers = static_cast<std::size_t>(team_.size()),
           .distance = static_cast<std::size_t>(distance),
           .gradients = gradients.data(),
           .gradient_rows = gradients.size() / static_cast<std::size_t>(tables_.dim())});
    });
  }
  return watch.lap();
}

void Limits::run() {
  const Team::CallerOnCpu on_cpu(team_);
  for (std::size_t d = 0; d < std::size(kDistances); ++d) {
    seconds_[kGather][d].push_back(gather_pass(kDistances[d], false));
    seconds_[kUpdate][d].push_back(update_pass(kDistances[d], false));
    seconds_[kGatherAll][d].push_back(gather_pass(kDistances[d], true));
    seconds_[kUpdateAll][d].push_back(update_pass(kDistances[d], true));
  }
  team_.rest();
}

LimitSeconds Limits::median() const {
  double best[kLoops];
  for (int loop = 0; loop < kLoops; ++loop) {
    best[loop] = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& runs : seconds_[loop]) {
      best[loop] = std::min(best[loop], bench::median(runs));
    }
  }
  return {best[kGather], best[kUpdate], best[kGatherAll], best[kUpdateAll]};
}

}  // namespace embertable::bench
