#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/digest.h"
#include "checkpoint/manifest_check.h"
#include "checkpoint/writer.h"

namespace embertable::checkpoint {

/// For tests: element [row][column] of a variable. `salt` tells one state of training from another.
inline float test_value(std::int64_t table, std::int64_t slot, std::int64_t row,
                        std::int64_t column, float salt = 0) {
  return static_cast<float>(row * 100 + column) + static_cast<float>(table) * 0.5f +
         static_cast<float>(slot) * 0.125f + salt;
}

/// Two tables: "video" (13 rows of 3, a full-size and a row-wise slot), and "ads/top 10%" (2 rows
/// of 1, bare).
inline Manifest test_manifest(std::int32_t hosts = 1, Sharding sharding = Sharding::kDiv,
                              std::int64_t step = 7) {
  const SavedOptimizer adagrad = {.rule = "adagrad",
                                  .text = "adagrad(learning_rate=0.1)",
                                  .learning_rate = 0.1,
                                  .parameters = {{"initial_accumulator_value", 0.1}}};
  return {.library = "0.1.0",
          .numerics_version = 1,
          .step = step,
          .topology = {.hosts = hosts, .replicas_per_host = 2, .sharding = sharding},
          .seed = 42,
          .tables = {{.name = "video",
                      .vocabulary_size = 13,
                      .dim = 3,
                      .combiner = "mean",
                      .optimizer = adagrad,
                      .slots = {{"momenta", false}, {"counts", true}}},
                     {.name = "ads/top 10%", .vocabulary_size = 2, .dim = 1, .combiner = "sum"}},
          .features = {{.path = "watched", .name = "w", .table = 0, .output_shape = {{4, -1}}},
                       {.path = "shown", .table = 1, .id_map = "ads"}}};
}

inline std::int64_t test_width(const SavedTable& table, std::size_t variable) {
  return variable > 0 && table.slots[variable - 1].row_wise ? 1 : table.dim;
}

/// The rows `rows` of a table of `test_value`s.
inline RowSource test_source(const Manifest& manifest, std::int64_t table, const Progression& rows,
                             float salt = 0) {
  const SavedTable& saved = manifest.tables[table];
  RowSource source{.rows = rows.count};
  for (std::size_t variable = 0; variable <= saved.slots.size(); ++variable) {
    const std::int64_t width = test_width(saved, variable);
    source.fill.push_back([=](std::int64_t first, std::span<float> out) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        out[i] = test_value(table, static_cast<std::int64_t>(variable), rows[first + at / width],
                            at % width, salt);
      }
    });
  }
  return source;
}

inline ShardSource test_shards(const Manifest& manifest, float salt = 0) {
  return [manifest, salt](std::int64_t table, std::int32_t host) {
    const std::int64_t rows = manifest.tables[table].vocabulary_size;
    return test_source(manifest, table, rows_of_host(manifest.topology, rows, host), salt);
  };
}

inline CallerState test_caller() {
  return {.json = R"({"epoch": 3, "order": [2, 1]})",
          .tensors = {{"bias", {"F64", {}, std::string(8, '\x01')}},
                      {"names", {"U8", {3}, "abc"}},
                      {"none", {"F32", {0, 4}, ""}}},
          .blobs = {{"reader", std::string("\x00\xff\n", 3)}, {"void", ""}}};
}

/// The same tables without files.
inline std::vector<DigestTable> test_digest_tables(const Manifest& manifest, float salt = 0) {
  std::vector<DigestTable> tables;
  for (const SavedTable& table : manifest.tables) {
    const auto index = static_cast<std::int64_t>(tables.size());
    tables.push_back({table.name, table.dim, table.slots,
                      test_source(manifest, index, {0, 1, table.vocabulary_size}, salt)});
  }
  return tables;
}

/// Saves through a run that is opened for it.
inline std::filesystem::path save(FileSystem& files, const std::filesystem::path& run,
                                  const Manifest& manifest, const ShardSource& source,
                                  const CallerState& caller = {},
                                  const std::map<std::string, std::string>& id_maps = {}) {
  return save(OpenRun(files, run), manifest, source, caller, id_maps);
}

}  // namespace embertable::checkpoint
