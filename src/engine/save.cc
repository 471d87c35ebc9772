#include "engine/save.h"

#include <cstring>

#include "checkpoint/digest.h"
#include "checkpoint/writer.h"
#include "embertable/version.h"

namespace embertable::engine {
namespace {

using checkpoint::RowSource;

/// Reads the rows of one shard.
RowSource rows_of(const Shard& shard) {
  RowSource source;
  source.rows = shard.rows();
  for (std::int32_t slot = -1; slot < shard.block().slots; ++slot) {
    source.fill.push_back([&shard, slot](std::int64_t first, std::span<float> out) {
      const std::int64_t stride = shard.stride(slot);
      const bool dense = stride == shard.width(slot);
      const std::int64_t run = dense ? std::ssize(out) : shard.width(slot);
      const float* from = shard.at(slot, first);
      for (std::int64_t done = 0; done < std::ssize(out); done += run, from += stride)
        std::memcpy(out.data() + done, from, run * sizeof(float));
    });
  }
  return source;
}

/// Reads the rows of a whole table in ascending order.
RowSource rows_of(const Tables& tables, const StoredTable& table) {
  RowSource source;
  source.rows = table.vocabulary_size;
  for (std::int32_t slot = -1; slot < static_cast<std::int32_t>(table.slots.size()); ++slot) {
    const Tables::Variable variable{&table, slot, table.shards.front().width(slot)};
    source.fill.push_back([&tables, variable](std::int64_t first, std::span<float> out) {
      tables.copy_rows(variable, first, static_cast<std::int64_t>(out.size()) / variable.width,
                       out.data());
    });
  }
  return source;
}

checkpoint::SavedOptimizer saved(const Optimizer& optimizer) {
  checkpoint::SavedOptimizer saved{
      optimizer.rule(), optimizer.to_string(), {}, optimizer.parameters()};
  if (!optimizer.learning_rate().is_dynamic())
    saved.learning_rate = optimizer.learning_rate().constant();
  return saved;
}

checkpoint::SavedTable saved(const ResolvedTable& table) {
  checkpoint::SavedTable saved_table{table.name(),
                                     table.config.vocabulary_size,
                                     table.config.dim,
                                     std::string(to_string(table.config.combiner)),
                                     table.config.initializer->to_string(),
                                     table.config.quantization_config,
                                     {},
                                     {}};
  if (table.optimizer) saved_table.optimizer = saved(*table.optimizer);
  for (const RuleSlot& slot : table.slots())
    saved_table.slots.push_back({std::string(slot.name), slot.row_wise});
  return saved_table;
}

checkpoint::SavedFeature saved(const FeatureConfig& feature, const std::string& path,
                               std::int64_t table) {
  checkpoint::SavedFeature saved_feature;
  saved_feature.path = path;
  saved_feature.name = feature.name;
  saved_feature.table = table;
  saved_feature.max_sequence_length = feature.max_sequence_length;
  saved_feature.validate_weights_and_indices = feature.validate_weights_and_indices;
  if (feature.output_shape.has_rank()) {
    const std::span<const std::int64_t> dims = feature.output_shape.dims();
    saved_feature.output_shape.emplace(dims.begin(), dims.end());
  }
  return saved_feature;
}

}  // namespace

checkpoint::Manifest manifest_of(const Setup& setup, std::int64_t step) {
  checkpoint::Manifest manifest;
  manifest.library = kVersion;
  manifest.numerics_version = kNumericsVersion;
  manifest.step = step;
  manifest.topology.hosts = setup.hosts;
  manifest.topology.replicas_per_host = setup.replicas / setup.hosts;
  manifest.topology.sharding = setup.sharding();
  manifest.seed = setup.options.seed;
  manifest.pipeline_execution = setup.options.pipeline_execution_with_tensor_core;
  for (const ResolvedTable& table : setup.assembly.tables) manifest.tables.push_back(saved(table));
  for (std::int64_t i = 0; i < setup.features.size(); ++i) {
    manifest.features.push_back(
        saved(setup.features[i], setup.features.path(i), setup.assembly.table_of[i]));
  }
  return manifest;
}

std::filesystem::path save_tables(const Setup& setup, const Tables& tables, std::int64_t step,
                                  const checkpoint::OpenRun& run, const CallerState& state,
                                  const std::map<std::string, IdMap>& id_maps) {
  std::map<std::string, std::string> maps;
  for (const auto& [name, map] : id_maps) maps[name] = map.to_bytes();
  return checkpoint::save(
      run, manifest_of(setup, step),
      [&](std::int64_t table, std::int32_t host) {
        return rows_of(tables.tables()[table].shards[host]);
      },
      state, maps);
}

std::string digest_of(const Tables& tables) {
  std::vector<checkpoint::DigestTable> all;
  for (const StoredTable& table : tables.tables()) {
    checkpoint::DigestTable one{table.name, table.dim, {}, rows_of(tables, table)};
    for (const RuleSlot& slot : table.slots)
      one.slots.push_back({std::string(slot.name), slot.row_wise});
    all.push_back(std::move(one));
  }
  return checkpoint::digest(std::move(all));
}

}  // namespace embertable::engine
