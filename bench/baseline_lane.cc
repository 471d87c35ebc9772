#include <algorithm>

#include "bench/baseline.h"
#include "bench/lane.h"
#include "bench/stopwatch.h"

namespace embertable::bench {
namespace {

/// Activations and gradients are [samples, tables, dim].
class BaselineLane : public Lane {
 public:
  BaselineLane(const LaneInput& input, const PlainTables& tables, Team& team)
      : input_(input),
        tables_(tables),
        team_(team),
        baseline_(tables, input.workload.samples, most_table_ids(input.batches), team) {}

  StageSeconds step(std::size_t batch, std::size_t gradient) override {
    const Team::CallerOnCpu on_cpu(team_);
    team_.run([](int) {});
    StageSeconds seconds;
    Stopwatch watch;
    baseline_.enqueue(input_.batches[batch]);
    seconds.enqueue = watch.lap();
    baseline_.forward(input_.activations.data());
    seconds.forward = watch.lap();
    baseline_.backward(input_.gradients[gradient].data());
    seconds.backward = watch.lap();
    team_.rest();
    return seconds;
  }

  std::size_t offset(std::int32_t table, std::int32_t sample) const override {
    const auto tables = static_cast<std::size_t>(input_.workload.tables);
    return (static_cast<std::size_t>(sample) * tables + static_cast<std::size_t>(table)) * dim();
  }

  float read_row(std::int32_t table, std::int64_t row, std::span<float> out) const override {
    const TableRows& from = tables_.tables()[table];
    std::copy_n(from.rows + static_cast<std::size_t>(row) * dim(), dim(), out.begin());
    return from.slots[row];
  }

 private:
  std::size_t dim() const { return static_cast<std::size_t>(tables_.dim()); }

  LaneInput input_;
  const PlainTables& tables_;
  Team& team_;
  Baseline baseline_;
};

}  // namespace

std::unique_ptr<Lane> make_baseline_lane(const LaneInput& input, const PlainTables& tables,
                                         Team& team) {
  if (baseline_kernels(tables.dim()) == nullptr) return nullptr;
  return std::make_unique<BaselineLane>(input, tables, team);
}

}  // namespace embertable::bench
