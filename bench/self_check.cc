#include "bench/self_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/baseline.h"
#include "bench/gradients.h"
#include "bench/lane.h"
#include "bench/scalar_model.h"

namespace embertable::bench {
namespace {

struct Case {
  Workload workload;
  std::vector<WorkloadBatch> batches;
};

/// A standard workload with few enough rows, tables and batches for a scalar loop.
Workload reduced(Workload workload) {
  workload.tables = std::min(workload.tables, workload.dim == 16 ? 10 : 3);
  workload.rows = std::min<std::int64_t>(workload.rows, 3'000'000 / workload.dim);
  workload.batches = 3;
  return workload;
}

/// Half of all ids are one row.
void make_hot(std::vector<WorkloadBatch>& batches, std::int64_t row) {
  for (WorkloadBatch& batch : batches) {
    for (std::size_t i = 0; i < batch.ids.size(); i += 2) batch.ids[i] = row;
  }
}

/// The last sample of every table loses its ids.
void empty_last_sample(const Workload& workload, WorkloadBatch& batch) {
  WorkloadBatch shorter;
  shorter.splits = batch.splits;
  shorter.first_id.push_back(0);
  const auto samples = static_cast<std::size_t>(workload.samples);
  for (std::size_t t = 0; t < static_cast<std::size_t>(workload.tables); ++t) {
    const std::span<const std::int64_t> ids = batch.table_ids(t);
    const std::span<const std::int64_t> splits = batch.table_splits(t);
    const std::int64_t left = splits[samples - 1];
    shorter.ids.insert(shorter.ids.end(), ids.begin(), ids.begin() + left);
    shorter.first_id.push_back(shorter.ids.size());
    shorter.splits[t * (samples + 1) + samples] = left;
  }
  batch = std::move(shorter);
}

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (const Workload& standard : standard_workloads()) {
    const Workload workload = reduced(standard);
    cases.push_back({workload, make_batches(workload)});
  }
  Case hot = cases[2];
  hot.workload.name = "one hot row";
  make_hot(hot.batches, 77);
  cases.push_back(std::move(hot));

  Case gaps = cases[1];
  gaps.workload.name = "empty samples";
  gaps.workload.min_ids = 0;
  gaps.workload.max_ids = 2;
  gaps.batches = make_batches(gaps.workload);
  cases.push_back(std::move(gaps));

  Case nearly = cases[0];
  nearly.workload.name = "one id a sample but for the last";
  nearly.workload.samples = 5000;
  nearly.batches = make_batches(nearly.workload);
  for (WorkloadBatch& batch : nearly.batches) empty_last_sample(nearly.workload, batch);
  cases.push_back(std::move(nearly));
  return cases;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// The first difference between a lane and the scalar loop over all batches, or nothing.
std::string first_difference(const Case& test, Lane& lane, const LaneInput& input) {
  const Workload& workload = test.workload;
  const auto dim = static_cast<std::size_t>(workload.dim);
  ScalarModel model(workload);
  std::vector<float> row(dim);
  for (std::size_t b = 0; b < test.batches.size(); ++b) {
    const std::size_t gradient = b % input.gradients.size();
    lane.step(b, gradient);
    for (std::int32_t t = 0; t < workload.tables; ++t) {
      for (std::int32_t s = 0; s < workload.samples; ++s) {
        if (!same_bits(model.activation(test.batches[b], t, s),
                       input.activations.subspan(lane.offset(t, s), dim))) {
          return fmt::format("batch {}, table {}, sample {}: the activation differs", b, t, s);
        }
      }
    }
    model.train(test.batches[b], input.gradients[gradient], lane);
  }
  for (std::int32_t t = 0; t < workload.tables; ++t) {
    for (std::int64_t r = 0; r < workload.rows; ++r) {
      const float slot = lane.read_row(t, r, row);
      if (!same_bits(model.row(t, r), row)) {
        return fmt::format("table {}, row {}: differs after training", t, r);
      }
      if (slot != model.slot(t, r)) {
        return fmt::format("table {}, row {}: its slot differs after training", t, r);
      }
    }
  }
  return {};
}

/// The baseline refuses what the library refuses.
std::string check_refusals(const Case& test, Baseline& baseline) {
  const auto takes = [&](const std::function<void(WorkloadBatch&)>& spoil) {
    WorkloadBatch batch = test.batches.front();
    spoil(batch);
    try {
      baseline.enqueue(batch);
      return true;
    } catch (const std::invalid_argument&) {
      return false;
    }
  };
  const std::int64_t rows = test.workload.rows;
  std::string wrong;
  for (const std::int64_t id : {std::int64_t{-1}, rows, rows + (std::int64_t{1} << 32)}) {
    if (takes([&](WorkloadBatch& batch) { batch.ids[batch.ids.size() / 2] = id; })) {
      wrong += fmt::format("baseline, {}: took the id {}\n", test.workload.name, id);
    }
  }
  if (takes([](WorkloadBatch& batch) { std::swap(batch.splits[7], batch.splits[9]); })) {
    wrong += fmt::format("baseline, {}: took falling splits\n", test.workload.name);
  }
  return wrong;
}

}  // namespace

std::string check_lanes() {
  std::string wrong;
  for (const Case& test : make_cases()) {
    const Workload& workload = test.workload;
    const GradientBuffers gradients(workload, 0);
    std::vector<float> activations(workload.output_floats());
    for (const int threads : {1, 2, 3}) {
      const LaneInput input{.workload = workload,
                            .batches = test.batches,
                            .gradients = gradients.buffers(),
                            .activations = activations,
                            .threads = threads};
      const auto check = [&](const char* name, Lane* lane) {
        const std::string difference =
            lane == nullptr ? std::string() : first_difference(test, *lane, input);
        if (difference.empty()) return;
        wrong += fmt::format("{}, {}, {} threads: {}\n", name, workload.name, threads, difference);
      };
      check("embertable", make_engine_lane(input).get());
      Team team(threads);
      PlainTables tables(workload, team);
      check("baseline", make_baseline_lane(input, tables, team).get());
      if (threads > 1 || baseline_kernels(workload.dim) == nullptr) continue;
      Baseline baseline(tables, workload.samples, most_table_ids(test.batches), team);
      wrong += check_refusals(test, baseline);
    }
  }
  return wrong;
}

}  // namespace embertable::bench
