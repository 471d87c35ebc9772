#include "apps/convert/export_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "apps/convert/keys_file.h"
#include "apps/convert/npy.h"
#include "apps/convert/printable.h"
#include "apps/convert/row_keys.h"
#include "apps/convert/row_words.h"
#include "apps/convert/saved_model.h"
#include "apps/convert/trained_run.h"
#include "apps/convert/word2vec.h"
#include "base/byte_watch.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/stored_rows.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/optimizer_rules.h"
#include "embertable/tensorflow/object_graph.h"
#include "embertable/tensorflow/tensor_bundle.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundleName = "ckpt-1";

/// One table or slot that is to be read.
struct SavedArray {
  std::string table, slot;  ///< slot "": the rows
  std::vector<std::int64_t> shape;
  checkpoint::VariableReader reader;

  RowType type = RowType::kFloat32;  ///< in the checkpoint

  /// Bytes in the checkpoint.
  std::int64_t bytes() const {
    return reader.rows() * checkpoint::stored_row_bytes(type, reader.width());
  }
  std::string name() const { return slot.empty() ? table : checkpoint::variable_name(table, slot); }
};

/// Returns the text with `_` for each blank.
std::string without_blanks(std::string text) {
  for (char& c : text)
    if (c == ' ' || (c >= '\t' && c <= '\r')) c = '_';
  return text;
}

class Exporter {
 public:
  Exporter(const ExportOptions& options, const Converted& converted)
      : options_(options), converted_(converted), reader_(checkpoint::local_files(), options.from) {
    for (const std::string& name : options.tables) find_table(reader_, name);
  }

  void run() {
    for (const checkpoint::SavedTable& table : tables())
      for (const SavedArray& array : arrays_of(table)) ByteWatch::expect(array.bytes());
    if (options_.format == TableFormat::kInt8)  // what is written counts too
      for (const checkpoint::SavedTable& table : tables())
        ByteWatch::expect(table.vocabulary_size *
                          checkpoint::stored_row_bytes(RowType::kInt8, table.dim));
    switch (options_.format) {
      case TableFormat::kTensorFlow:
        return write_bundle();
      case TableFormat::kNpy:
        return write_arrays();
      case TableFormat::kWord2vec:
        return write_words();
      case TableFormat::kInt8:
        return write_int8();
    }
  }

 private:
  std::vector<checkpoint::SavedTable> tables() const {
    std::vector<checkpoint::SavedTable> chosen;
    for (const checkpoint::SavedTable& table : reader_.manifest().tables) {
      const auto& names = options_.tables;
      if (names.empty() || std::find(names.begin(), names.end(), table.name) != names.end())
        chosen.push_back(table);
    }
    return chosen;
  }

  /// Returns the table and, if they are wanted, its slots.
  std::vector<SavedArray> arrays_of(const checkpoint::SavedTable& table) const {
    std::vector<SavedArray> arrays;
    const std::vector<std::int64_t> shape = {table.vocabulary_size, table.dim};
    arrays.push_back({table.name, "", shape, reader_.variable(table.name), table.row_type});
    if (!options_.slots) return arrays;
    for (const checkpoint::SavedSlot& slot : table.slots) {
      const std::string name = checkpoint::variable_name(table.name, slot.name);
      arrays.push_back({table.name, slot.name,
                        slot.row_wise ? std::vector<std::int64_t>{table.vocabulary_size} : shape,
                        reader_.variable(name)});
    }
    return arrays;
  }

  void done(const SavedArray& array, const std::string& place) const {
    converted_({array.name(), array.shape, place});
  }

  void write_arrays() const {
    check_names();
    checkpoint::make_directories(checkpoint::local_files(), options_.out);
    const CallerState caller = reader_.caller_state();
    const std::map<std::string, IdMap> id_maps = checkpoint::read_id_maps(reader_);
    for (const checkpoint::SavedTable& table : tables()) {
      const RowKeys keys({table.name, table.vocabulary_size, table.dim, reader_.directory()},
                         caller, id_maps);
      remove_earlier(table);
      for (SavedArray& array : arrays_of(table)) {
        const fs::path path = array_path(array.name());
        formats::write_npy(
            checkpoint::local_files(), path, array.shape,
            [&](std::int64_t first, std::span<float> out) { array.reader.read(first, out); });
        done(array, path.string());
      }
      // Last: an export that ends too early leaves rows without keys, never with those of others.
      if (keys.any())
        write_keys(keys_path(array_path(table.name)), table.vocabulary_size,
                   [&](std::int64_t row) { return keys.key(row); });
    }
  }

  /// Removes what an earlier export left of a table: its slots, of whatever rule, and its keys are
  /// not those of the rows that are about to be written.
  void remove_earlier(const checkpoint::SavedTable& table) const {
    std::set<std::string> slots;
    for (const OptimizerRule& rule : describe_optimizer_rules())
      for (const OptimizerSlot& slot : rule.slots) slots.insert(slot.name);
    for (const checkpoint::SavedSlot& slot : table.slots) slots.insert(slot.name);
    remove_file(keys_path(array_path(table.name)));
    for (const std::string& slot : slots) {
      const std::string name = checkpoint::variable_name(table.name, slot);
      const auto& tables = reader_.manifest().tables;
      const bool is_table = std::any_of(tables.begin(), tables.end(),
                                        [&](const auto& other) { return other.name == name; });
      if (!is_table) remove_file(array_path(name));
    }
  }

  void remove_file(const fs::path& path) const {
    checkpoint::FileSystem& files = checkpoint::local_files();
    const auto found = files.stat(path);
    if (found && !found->directory) files.remove(path);
  }

  fs::path array_path(const std::string& name) const {
    return options_.out / (escape_name(name) + ".npy");
  }

  /// Throws ValueError for a table that no file can be named after.
  void check_names() const {
    for (const checkpoint::SavedTable& table : tables()) {
      if (table.name.find('\0') != std::string::npos)
        throw ValueError(fmt::format("table '{}' cannot have a file: its name has a NUL",
                                     printable(table.name)));
    }
  }

  /// Returns the attributes from the root to the tables.
  std::vector<std::string> object_path() const {
    std::vector<std::string> names;
    for (std::string_view rest = options_.object; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      if (name.empty())
        throw ValueError(fmt::format("the object must be names with '/' between them, got '{}'",
                                     options_.object));
      names.emplace_back(name);
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    return names;
  }

  void write_bundle() const {
    std::vector<std::string> path = object_path();
    ObjectGraph graph = ObjectGraph::of_root();
    std::int32_t object = 0;
    for (const std::string& name : path) object = graph.child(object, name);
    TensorBundleWriter writer(options_.out / kBundleName);
    for (const checkpoint::SavedTable& table : tables()) {
      for (SavedArray& array : arrays_of(table)) {
        path.push_back(array.name());
        const std::string key = variable_key(path);
        path.pop_back();
        graph.variable(object, array.name(), key);
        add_slices(writer, key, array);
        done(array, key);
      }
    }
    const std::string counter = variable_key({"save_counter"});
    graph.variable(0, "save_counter", counter);
    writer.add(counter, Tensor::scalar(std::int64_t{1}));
    const std::string bytes[] = {serialize(graph)};
    writer.add_strings(std::string(kObjectGraphKey), {}, bytes);
    writer.finish();
    write_bundle_state(options_.out, kBundleName);
  }

  /// Adds one slice for each shard that has rows.
  void add_slices(TensorBundleWriter& writer, const std::string& key, SavedArray& array) const {
    const std::int32_t hosts = reader_.manifest().topology.hosts;
    const checkpoint::Topology shards{.hosts = options_.shards > 0 ? options_.shards : hosts};
    for (std::int32_t shard = 0; shard < shards.hosts; ++shard) {
      const checkpoint::Progression rows = checkpoint::rows_of_host(shards, array.shape[0], shard);
      if (rows.count == 0) continue;
      SliceSpec spec{array.shape, {{rows.first, rows.count}}};
      if (array.shape.size() > 1) spec.slice.push_back({0, array.shape[1]});
      writer.add_slice(
          key, BundleDType::kFloat32, spec, [&](std::int64_t first, std::span<std::byte> out) {
            array.reader.read(rows.first + first,
                              {reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)});
          });
    }
  }

  void write_words() const {
    const std::vector<checkpoint::SavedTable> chosen = tables();
    const char* ending = options_.binary ? ".bin" : ".txt";
    const bool one = chosen.size() == 1 && !fs::is_directory(options_.out);
    if (!one) check_names();
    const CallerState caller = reader_.caller_state();
    const std::map<std::string, IdMap> id_maps = checkpoint::read_id_maps(reader_);
    if (options_.label == RowLabel::kName) check_row_names(chosen, caller, id_maps);
    if (!one) checkpoint::make_directories(checkpoint::local_files(), options_.out);
    for (const checkpoint::SavedTable& table : chosen) {
      const fs::path path = one ? options_.out : options_.out / (escape_name(table.name) + ending);
      const SavedTableShape parts{table.name, table.vocabulary_size, table.dim,
                                  reader_.directory()};
      const RowKeys keys(parts, caller, id_maps);
      SavedArray array{
          table.name, "", {table.vocabulary_size, table.dim}, reader_.variable(table.name)};
      const RowWords words(
          table.vocabulary_size, [&](std::int64_t row) { return label(keys, row); },
          [&](std::int64_t row) { return told_apart_by(keys, row); });
      write_word2vec(path, options_.binary ? Word2vecForm::kBinary : Word2vecForm::kText,
                     table.vocabulary_size, table.dim, words,
                     vectors(array, saved_vectors(parts, caller)));
      done(array, path.string());
    }
  }

  /// Throws ValueError for a table that is asked for and has no names, and if none has any.
  void check_row_names(const std::vector<checkpoint::SavedTable>& chosen, const CallerState& caller,
                       const std::map<std::string, IdMap>& id_maps) const {
    std::string without;
    bool any = false;
    for (const checkpoint::SavedTable& table : chosen) {
      const RowKeys keys({table.name, table.vocabulary_size, table.dim, reader_.directory()},
                         caller, id_maps);
      any = any || keys.has_names();
      if (!keys.has_names() && without.empty()) without = table.name;
    }
    if (without.empty() || (any && options_.tables.empty())) return;
    throw ValueError(fmt::format(
        "table '{}' must have names to be words, got none: a job gives them to ids by a "
        "section [names.IDS]",
        without));
  }

  /// Writes a step of the same number with the tables' rows in int8, without slots; what else the
  /// step has is copied.
  void write_int8() const {
    checkpoint::Manifest manifest = reader_.manifest();
    manifest.files.clear();
    manifest.features.clear();
    manifest.tables = tables();
    std::map<std::string, std::int64_t> index;
    for (checkpoint::SavedTable& table : manifest.tables) {
      index.emplace(table.name, std::ssize(index));
      table.row_type = RowType::kInt8;
      table.slots.clear();
      table.optimizer.reset();
    }
    for (checkpoint::SavedFeature feature : reader_.manifest().features) {
      const auto found = index.find(reader_.manifest().tables[feature.table].name);
      if (found == index.end()) continue;
      feature.table = found->second;
      manifest.features.push_back(std::move(feature));
    }
    checkpoint::make_directories(checkpoint::local_files(), options_.out);
    const checkpoint::OpenRun run(checkpoint::local_files(), options_.out);
    const std::vector<checkpoint::SavedTable> chosen = manifest.tables;
    const checkpoint::Topology topology = manifest.topology;
    const fs::path step = checkpoint::save(
        run, std::move(manifest),
        [&](std::int64_t table, std::int32_t host) {
          return rows_in_int8(chosen[table], topology, host);
        },
        reader_.caller_state(), reader_.id_maps());
    for (const checkpoint::SavedTable& table : chosen)
      converted_({table.name, {table.vocabulary_size, table.dim}, step.string()});
  }

  /// Throws ValueError for a row without 256 numbers from its least to its largest.
  static void check_for_int8(const std::string& table, std::int64_t number,
                             std::span<const float> row) {
    const auto bad =
        std::find_if_not(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
    if (bad != row.end())
      throw ValueError(
          fmt::format("table '{}': numbers must be finite for int8, got {} in row {}, column {}",
                      table, *bad, number, bad - row.begin()));
    const auto [least, largest] = std::minmax_element(row.begin(), row.end());
    if (!std::isfinite(*largest - *least))
      throw ValueError(fmt::format(
          "table '{}': numbers of a row must be less than 3.4e38 apart for int8, got {} and {} in "
          "row {}",
          table, *least, *largest, number));
  }

  /// Returns a shard's rows.
  checkpoint::RowSource rows_in_int8(const checkpoint::SavedTable& table,
                                     const checkpoint::Topology& topology,
                                     std::int32_t host) const {
    const checkpoint::Progression rows =
        checkpoint::rows_of_host(topology, table.vocabulary_size, host);
    auto reader = std::make_shared<checkpoint::VariableReader>(reader_.variable(table.name));
    checkpoint::RowSource source;
    source.rows = rows.count;
    source.fill.push_back([reader, rows, &table](std::int64_t first, std::span<float> out) {
      const std::int64_t count = std::ssize(out) / table.dim;
      reader->read({rows[first], rows.step, count}, out.data(), table.dim);
      for (std::int64_t i = 0; i < count; ++i)
        check_for_int8(table.name, rows[first + i], out.subspan(i * table.dim, table.dim));
    });
    return source;
  }

  std::string label(const RowKeys& keys, std::int64_t row) const {
    std::string text;
    if (options_.label == RowLabel::kName) text = without_blanks(keys.display_name(row));
    if (text.empty() && options_.label != RowLabel::kRow) text = keys.key(row);
    return text.empty() ? std::to_string(row) : text;
  }

  /// Returns the key of a row with a name, else its number.
  std::string told_apart_by(const RowKeys& keys, std::int64_t row) const {
    const bool named = options_.label == RowLabel::kName && !keys.display_name(row).empty();
    const std::string key = named ? without_blanks(keys.key(row)) : "";
    return key.empty() ? std::to_string(row) : key;
  }

  /// Reads the rows, or what the model makes of rows and side features, as `neighbors` does.
  static formats::ReadRows vectors(SavedArray& array, const DenseTensor* made) {
    if (made == nullptr)
      return [&](std::int64_t first, std::span<float> out) { array.reader.read(first, out); };
    const std::size_t width = static_cast<std::size_t>(array.shape[1]) * sizeof(float);
    return [&bytes = made->bytes, width](std::int64_t first, std::span<float> out) {
      std::memcpy(out.data(), bytes.data() + static_cast<std::size_t>(first) * width,
                  out.size_bytes());
    };
  }

  const ExportOptions& options_;
  const Converted& converted_;
  const checkpoint::Reader reader_;
};

/// Throws ValueError for what only another format than the chosen one has.
void refuse_others(const ExportOptions& options) {
  const ExportOptions none;
  const auto refuse = [&](bool given, const char* what, TableFormat format, const char* of) {
    if (given && options.format != format)
      throw ValueError(fmt::format("{} must not be given: it is of {}", what, of));
  };
  refuse(options.object != none.object, "object", TableFormat::kTensorFlow, "tf");
  refuse(options.shards > 0, "shards", TableFormat::kTensorFlow, "tf");
  refuse(options.binary, "binary", TableFormat::kWord2vec, "word2vec");
  refuse(options.label != none.label, "label", TableFormat::kWord2vec, "word2vec");
}

}  // namespace

void export_tables(const ExportOptions& options, const Converted& converted) {
  refuse_others(options);
  if (options.shards < 0)
    throw ValueError(fmt::format("shards must be >= 0, got {}", options.shards));
  if (options.format == TableFormat::kInt8 && options.slots)
    throw ValueError("slots must stay behind in int8, whose rows are served and not trained");
  if (options.format == TableFormat::kWord2vec && options.slots)
    throw ValueError("slots must stay behind in word2vec, whose files have words and rows alone");
  if (options.format == TableFormat::kInt8) refuse_trained_run(options.out);
  Exporter(options, converted).run();
}

}  // namespace embertable::jobs
