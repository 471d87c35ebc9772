#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/config.h"
#include "embertable/shape.h"
#include "embertable/tensorflow/optimization_parameters.h"
#include "embertable/version.h"

namespace embertable {

namespace wire {

/// Layout of the rows of a table on SparseCores. Row r is on core (r + sparse_core_shard_rotation)
/// mod num_sparse_cores, there at r div num_sparse_cores + sparse_core_shard_row_offset. Source: TF
/// sparse_core_layout.proto.
struct SparseCoreTableLayout {
  std::string table_name;
  std::string stacked_table_name;     ///< names of the stack's tables, joined by '_'
  std::int32_t num_sparse_cores = 0;  ///< cores of all partitions
  std::int32_t num_partitions = 0;    ///< devices
  std::int64_t total_rows_per_sparse_core_shard = 0;  ///< rows of the whole stack
  std::vector<std::int64_t> unsharded_shape;          ///< [vocabulary_size, dim]
  std::vector<std::int64_t> unsharded_padded_shape;   ///< the same, padded
  std::int64_t sparse_core_shard_row_offset = 0;      ///< first row of the table on each core
  std::int64_t sparse_core_shard_rotation = 0;        ///< core of row 0
  std::int64_t per_sparse_core_batch_size = 0;        ///< kept; sparse_core_layouts leaves it 0
  std::int64_t num_features = 0;                      ///< kept; sparse_core_layouts leaves it 0
  std::string fdo_key;                                ///< kept; sparse_core_layouts leaves it empty
  UnknownFields unknown_fields;
  friend bool operator==(const SparseCoreTableLayout&, const SparseCoreTableLayout&) = default;
};

/// The layouts of all tables.
struct SparseCoreTableLayouts {
  std::vector<SparseCoreTableLayout> tables;
  UnknownFields unknown_fields;
  friend bool operator==(const SparseCoreTableLayouts&, const SparseCoreTableLayouts&) = default;
};

/// Convert layouts to bytes and text; see the functions of these names in
/// tpu_embedding_configuration.h.
EMBERTABLE_API std::string serialize(const SparseCoreTableLayouts& message);
EMBERTABLE_API SparseCoreTableLayouts parse_layouts(std::string_view bytes);
EMBERTABLE_API std::string to_text(const SparseCoreTableLayouts& message);

}  // namespace wire

/// Options for holding tables on SparseCores: a value to keep and compare. `sparse_core_layouts`
/// reads disable_table_stacking; the other fields have no effect in this library. Source: TF
/// tpu_embedding_v3.py, SparseCoreEmbeddingConfig.
struct SparseCoreEmbeddingConfig {
  bool disable_table_stacking = false;  ///< true: sparse_core_layouts stacks no tables
  std::int32_t max_ids_per_chip_per_sample = 64;
  std::optional<std::map<std::string, std::int32_t>> max_ids_per_table;
  std::optional<std::map<std::string, std::int32_t>> max_unique_ids_per_table;
  bool allow_id_dropping = false;
  bool initialize_tables_on_host = true;
  bool enable_fast_table_initialization = false;

  friend bool operator==(const SparseCoreEmbeddingConfig&,
                         const SparseCoreEmbeddingConfig&) = default;
};

/// The SparseCores: `num_partitions` devices of `cores_per_partition` each.
struct SparseCoreTopology {
  std::int32_t num_partitions = 1;
  std::int32_t cores_per_partition = 4;
};

/// Returns the layout of these features' tables on SparseCores. Each table is padded to a width
/// that is a multiple of 8 and a height that is one of 8 * cores, and stacked on the tables before
/// it that have the same padded width, an equal optimizer (its own, else `optimizer`) and equal
/// quantization. Tables are taken in the order of their names; no stack is too large. Throws
/// ValueError for a broken configuration or topology; NotImplemented, naming the table and both
/// options, for an optimizer with weight decay, which SparseCores do not have, and for one with a
/// custom combiner. Source: TF sparse_core_layout.cc, tpu_embedding_v3.py.
EMBERTABLE_API wire::SparseCoreTableLayouts sparse_core_layouts(
    const Nested<FeatureConfig>& features, const std::optional<Optimizer>& optimizer,
    const SparseCoreTopology& topology, const SparseCoreEmbeddingConfig& config = {});

}  // namespace embertable
