#include "bench/workload.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "bench/random.h"

namespace embertable::bench {
namespace {

const std::array<Workload, 6>& workloads() {
  static const std::array<Workload, 6> all = {{
      {.name = "W1",
       .description = "one id a sample, many tables",
       .tables = 26,
       .rows = 1'000'000,
       .dim = 64,
       .samples = 2048,
       .zipf_exponent = 1.05,
       .batches = 96},
      {.name = "W2",
       .description = "20 ids a sample on average",
       .tables = 8,
       .rows = 4'000'000,
       .dim = 32,
       .samples = 2048,
       .max_ids = 39,
       .zipf_exponent = 1.05,
       .batches = 20},
      {.name = "W3",
       .description = "one big table, ids spread evenly",
       .tables = 1,
       .rows = 40'000'000,
       .dim = 64,
       .samples = 8192,
       .max_ids = 19,
       .batches = 64},
      {.name = "W4",
       .description = "tiny tables that stay in cache",
       .tables = 64,
       .rows = 1000,
       .dim = 16,
       .samples = 4096,
       .zipf_exponent = 1.05,
       .batches = 40},
      {.name = "W5",
       .description = "wide rows",
       .tables = 4,
       .rows = 1'000'000,
       .dim = 256,
       .samples = 2048,
       .max_ids = 19,
       .zipf_exponent = 1.05,
       .batches = 40},
      {.name = "W6",
       .description = "few rows take most ids",
       .tables = 8,
       .rows = 4'000'000,
       .dim = 64,
       .samples = 1024,
       .max_ids = 99,
       .zipf_exponent = 1.2,
       .batches = 16},
  }};
  return all;
}

class IdGenerator {
 public:
  explicit IdGenerator(const Workload& workload)
      : rows_(static_cast<std::uint64_t>(workload.rows)),
        uniform_(workload.zipf_exponent <= 0),
        zipf_(uniform_ ? 1.0 : workload.zipf_exponent, rows_),
        spread_(rows_) {}

  std::int64_t operator()(Random& random) const {
    return static_cast<std::int64_t>(uniform_ ? random.below(rows_) : spread_(zipf_(random)));
  }

 private:
  std::uint64_t rows_;
  bool uniform_;
  Zipf zipf_;
  Spread spread_;
};

WorkloadBatch make_batch(const Workload& workload, const IdGenerator& draw_id, Random& random) {
  WorkloadBatch batch;
  const auto choices = static_cast<std::uint64_t>(workload.max_ids - workload.min_ids + 1);
  batch.first_id.push_back(0);
  for (std::int32_t t = 0; t < workload.tables; ++t) {
    batch.splits.push_back(0);
    for (std::int32_t s = 0; s < workload.samples; ++s) {
      std::int64_t count = workload.min_ids;
      if (choices > 1) count += static_cast<std::int64_t>(random.below(choices));
      for (std::int64_t k = 0; k < count; ++k) batch.ids.push_back(draw_id(random));
      batch.splits.push_back(static_cast<std::int64_t>(batch.ids.size() - batch.first_id.back()));
    }
    batch.first_id.push_back(batch.ids.size());
  }
  return batch;
}

}  // namespace

std::span<const Workload> standard_workloads() { return workloads(); }

const Workload& find_workload(std::string_view name) {
  std::string known;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
    known += (known.empty() ? "" : ", ") + workload.name;
  }
  throw std::invalid_argument("workload must be one of " + known + ", got '" + std::string(name) +
                              "'");
}

std::vector<WorkloadBatch> make_batches(const Workload& workload) {
  const IdGenerator draw_id(workload);
  Random random(1234 + static_cast<std::uint64_t>(workload.tables) * 7 +
                static_cast<std::uint64_t>(workload.dim));
  std::vector<WorkloadBatch> batches;
  for (std::int32_t b = 0; b < workload.batches; ++b) {
    batches.push_back(make_batch(workload, draw_id, random));
  }
  return batches;
}

std::size_t count_lookups(std::span<const WorkloadBatch> batches) {
  std::size_t lookups = 0;
  for (const WorkloadBatch& batch : batches) lookups += batch.lookups();
  return lookups;
}

std::size_t most_table_ids(std::span<const WorkloadBatch> batches) {
  std::size_t most = 0;
  for (const WorkloadBatch& batch : batches) {
    for (std::size_t t = 0; t + 1 < batch.first_id.size(); ++t) {
      most = std::max(most, batch.table_ids(t).size());
    }
  }
  return most;
}

}  // namespace embertable::bench
