#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/config.h"

namespace embertable::bench {

/// A table of a load.
struct LoadTable {
  std::int64_t rows = 0;
  std::int32_t dim = 0;
  Combiner combiner = Combiner::kSum;
  std::string rule = "rowwise_adagrad";
  RowType row_type = RowType::kFloat32;

  /// Returns the bytes of a row of float32 and of its slots.
  std::int64_t record_bytes() const;
};

/// A feature: which table it looks up, and how its ids are drawn.
struct LoadFeature {
  std::size_t table = 0;
  std::int32_t min_ids = 1;  ///< ids of a sample are uniform in min_ids..max_ids
  std::int32_t max_ids = 1;
  double empty_share = 0;    ///< share of the samples that have no ids
  double zipf_exponent = 0;  ///< 0: every row is equally likely
  double hot_share = 0;      ///< share of the ids that are one hot id
  bool weighted = false;
};

/// A training load: tables, features, and how ids are drawn. A value.
struct Load {
  std::string name;
  std::string description;
  std::vector<LoadTable> tables;
  std::vector<LoadFeature> features;
  std::int32_t samples = 0;  ///< samples of each feature, replica and batch
  std::int32_t replicas = 1;
  std::int32_t batches = 0;  ///< distinct ones; a pass runs each of them once
  std::uint64_t seed = 0;    ///< decides the ids

  std::int32_t dim_of(std::size_t feature) const { return tables[features[feature].table].dim; }

  /// Returns the floats of the activations, and of the gradients, of one batch of all replicas.
  std::size_t output_floats() const;
};

/// Ids that one feature of one replica looks up in one batch.
struct LoadIds {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> splits;  ///< [samples + 1]
  std::vector<float> weights;        ///< [ids], or empty
};

/// The ids of one batch, [replicas * features].
using LoadBatch = std::vector<LoadIds>;

/// Makes the load's batches: the same in every run and on every machine with the same libm.
std::vector<LoadBatch> make_load_batches(const Load& load);

std::size_t count_lookups(std::span<const LoadBatch> batches);

/// Returns the distinct rows that a batch, or some replicas' part of it, looks up in each table,
/// [tables], in random order.
std::vector<std::vector<std::uint32_t>> named_rows(const Load& load,
                                                   std::span<const LoadIds> batch);

}  // namespace embertable::bench
