#include "apps/convert/import_tables.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/convert/found_arrays.h"
#include "apps/convert/keys_file.h"
#include "apps/convert/printable.h"
#include "apps/convert/trained_run.h"
#include "apps/convert/word2vec.h"
#include "base/byte_watch.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/id_map.h"
#include "embertable/version.h"
#include "tensorflow/bundle/slices.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;
using checkpoint::OpenRun;

checkpoint::Manifest manifest_of(const ImportOptions& options,
                                 std::vector<checkpoint::SavedTable> tables) {
  checkpoint::Manifest manifest;
  manifest.library = kVersion;
  manifest.numerics_version = kNumericsVersion;
  manifest.step = options.step;
  manifest.tables = std::move(tables);
  for (checkpoint::SavedTable& table : manifest.tables)
    table.combiner = to_string(options.combiner);
  return manifest;
}

/// Returns the bytes of an array of float32. Throws ValueError naming `source` if they are more
/// than any file has.
std::int64_t bytes_of(const std::vector<std::int64_t>& shape, const std::string& source) {
  std::int64_t bytes = sizeof(float);
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw ValueError(fmt::format("{}: must have fewer than 2^61 numbers, got {}", source,
                                   formats::shape_text(shape)));
  }
  return bytes;
}

ImportReport import_arrays(const ImportOptions& options, const Converted& converted) {
  ImportReport report;
  std::vector<FoundArray> arrays = options.format == TableFormat::kNpy
                                       ? find_npy(options.from)
                                       : find_in_bundle(options.from, report.left_out);
  const std::vector<FoundTable> tables =
      group_tables(arrays, options.tables, options.slots, options.from);
  std::vector<checkpoint::SavedTable> saved;
  for (const FoundTable& table : tables) saved.push_back(table.saved);
  for (const FoundTable& table : tables)
    for (const FoundArray& array : table.arrays)
      ByteWatch::expect(bytes_of(array.shape, array.source));
  std::map<std::string, std::string> keys;
  for (const FoundTable& table : tables) {
    const fs::path& file = table.arrays.front().keys;
    if (!file.empty())
      keys.emplace(table.saved.name, read_keys(file, table.saved.vocabulary_size).to_bytes());
  }
  const OpenRun run(checkpoint::local_files(), options.out);
  report.step = checkpoint::save(
      run, manifest_of(options, std::move(saved)),
      [&](std::int64_t index, std::int32_t) {
        const FoundTable& table = tables[index];
        checkpoint::RowSource source{.rows = table.saved.vocabulary_size, .fill = {}};
        for (std::size_t i = 0; i < table.arrays.size(); ++i) {
          const FoundArray& array = table.arrays[i];
          source.fill.push_back(array.read);
          const std::string name =
              i == 0 ? table.saved.name
                     : checkpoint::variable_name(table.saved.name, table.saved.slots[i - 1].name);
          converted({name, array.shape, array.source});
        }
        return source;
      },
      {}, keys);
  for (const FoundArray& array : arrays) report.left_out.push_back(array.source);
  return report;
}

/// Returns the rows of a file of words, and counts their words as keys.
checkpoint::RowSource words_of(Word2vecReader& reader, IdMapBuilder& keys) {
  return {.rows = reader.rows(),
          .fill = {[&](std::int64_t first, std::span<float> out) {
            const auto dim = static_cast<std::size_t>(reader.dim());
            for (std::size_t i = 0; i < out.size() / dim; ++i) {
              const std::string_view word = reader.next(out.subspan(i * dim, dim));
              keys.add(word);
              const std::int64_t row = first + static_cast<std::int64_t>(i);
              if (keys.num_keys() != row + 1)
                throw ValueError(fmt::format("{}: a word must name one row, got '{}' again",
                                             reader.place(), printable(word)));
            }
            if (first + static_cast<std::int64_t>(out.size() / dim) == reader.rows())
              reader.finish();
          }}};
}

ImportReport import_words(const ImportOptions& options, const Converted& converted) {
  if (options.tables.size() > 1 || !options.slots.empty())
    throw ValueError("a file of words must be one table without slots");
  const std::string name =
      options.tables.empty() ? options.from.stem().string() : options.tables.front();
  Word2vecReader reader(options.from, options.binary ? Word2vecForm::kBinary : Word2vecForm::kText);
  if (reader.dim() > TableConfig::kMaxDim) {
    throw ValueError(fmt::format("{}: dim must be 1..{}, got {}", options.from.string(),
                                 TableConfig::kMaxDim, reader.dim()));
  }
  checkpoint::SavedTable table;
  table.name = name;
  table.vocabulary_size = reader.rows();
  table.dim = static_cast<std::int32_t>(reader.dim());
  ByteWatch::expect(bytes_of({reader.rows(), reader.dim()}, options.from.string()));
  const OpenRun run(checkpoint::local_files(), options.out);
  checkpoint::Writer writer(run, manifest_of(options, {table}));
  IdMapBuilder keys(KeyKind::kString);
  const checkpoint::Progression rows{.first = 0, .step = 1, .count = reader.rows()};
  writer.add(checkpoint::write_table_file(writer.opened(), writer.manifest(), 0, 0, rows,
                                          words_of(reader, keys)));
  const nlohmann::json state = {{"ids", {{name, name}}}};
  writer.add_state({.json = state.dump(), .tensors = {}, .blobs = {}},
                   {{name, keys.build().to_bytes()}});
  converted({name, {reader.rows(), reader.dim()}, options.from.string()});
  return {.step = writer.commit(), .left_out = {}};
}

}  // namespace

ImportReport import_tables(const ImportOptions& options, const Converted& converted) {
  if (options.binary && options.format != TableFormat::kWord2vec)
    throw ValueError("binary must not be given: it is of word2vec");
  refuse_trained_run(options.out);
  return options.format == TableFormat::kWord2vec ? import_words(options, converted)
                                                  : import_arrays(options, converted);
}

}  // namespace embertable::jobs
