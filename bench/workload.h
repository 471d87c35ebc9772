#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace embertable::bench {

/// A training load: tables of one shape, one feature each, and how its ids are drawn. A value.
struct Workload {
  std::string name;
  std::string description;
  std::int32_t tables = 0;
  std::int64_t rows = 0;     ///< per table
  std::int32_t dim = 0;      ///< floats per row
  std::int32_t samples = 0;  ///< output rows per table and batch
  std::int32_t min_ids = 1;  ///< ids of a sample are uniform in min_ids..max_ids
  std::int32_t max_ids = 1;
  double zipf_exponent = 0;  ///< 0: every row is equally likely
  std::int32_t batches = 0;  ///< different batches; a pass runs each of them once

  /// Floats of one batch's activations, and of its gradients.
  std::size_t output_floats() const {
    return static_cast<std::size_t>(samples) * static_cast<std::size_t>(tables) *
           static_cast<std::size_t>(dim);
  }
};

/// W1 to W6, in this order.
std::span<const Workload> standard_workloads();

/// Throws std::invalid_argument naming the known ones.
const Workload& find_workload(std::string_view name);

/// The ids of one batch, table after table: sample s of table t has the ids t.ids[t.splits[s] ..
/// t.splits[s+1]).
struct WorkloadBatch {
  std::vector<std::int64_t> ids;
  std::vector<std::size_t> first_id;  ///< [tables + 1], into ids
  std::vector<std::int64_t> splits;   ///< [tables, samples + 1], each table's from 0

  std::size_t lookups() const { return ids.size(); }
  std::span<const std::int64_t> table_ids(std::size_t table) const {
    return std::span(ids).subspan(first_id[table], first_id[table + 1] - first_id[table]);
  }
  std::span<const std::int64_t> table_splits(std::size_t table) const {
    const std::size_t length = splits.size() / (first_id.size() - 1);
    return std::span(splits).subspan(table * length, length);
  }
};

/// The workload's batches; the same ids in every run and on every machine with the same libm.
std::vector<WorkloadBatch> make_batches(const Workload& workload);

/// Lookups of all batches together.
std::size_t count_lookups(std::span<const WorkloadBatch> batches);

/// The largest number of ids that one table has in one batch.
std::size_t most_table_ids(std::span<const WorkloadBatch> batches);

}  // namespace embertable::bench
