// Saved runs of every kind of model whose checksums are right and whose contents are not: the input
// says which parts of a good checkpoint change, and every command runs on the outcome.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/convert/export_tables.h"
#include "apps/convert/row_keys.h"
#include "apps/jobs/run/describe.h"
#include "apps/jobs/run/digest.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/neighbors.h"
#include "apps/jobs/run/predict.h"
#include "apps/jobs/run/train.h"
#include "base/random.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/serving.h"
#include "fuzz/target.h"
#include "testing/memory_files.h"
#include "testing/tiny_clicks.h"
#include "testing/tiny_histories.h"
#include "testing/tiny_job.h"
#include "testing/tiny_words.h"
#include "testing/training_run.h"

namespace {

using namespace embertable;        // NOLINT: a program
using namespace embertable::jobs;  // NOLINT: a program

/// Everything that a checkpoint holds.
struct Parts {
  checkpoint::Manifest manifest;
  std::map<std::string, std::vector<float>> rows;  ///< by variable, so that slots count too
  CallerState caller;
  std::map<std::string, std::string> id_maps;
};

/// The runs of a kind of model: its data, what it saved, and lines to be scored.
struct Kind {
  Job (*job)(const std::vector<Change>& changes);
  std::string lines;
  std::vector<Change> changes;
  Parts parts;
};

/// Takes what the input chooses; zeros after its end.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  bool any() const { return !bytes_.empty(); }

  std::size_t below(std::size_t count) { return count == 0 ? 0 : next() % count; }
  template <class Map>
  typename Map::iterator one_of(Map& map) {
    return map.empty() ? map.end() : std::next(map.begin(), static_cast<int>(below(map.size())));
  }
  template <class Value, std::size_t kSize>
  Value one_of(const std::array<Value, kSize>& values) {
    return values[below(kSize)];
  }

 private:
  std::size_t next() {
    std::size_t number = 0;
    for (int i = 0; i < 2 && !bytes_.empty(); ++i, bytes_.remove_prefix(1))
      number = number << 8 | static_cast<unsigned char>(bytes_.front());
    return number;
  }
  std::string_view bytes_;
};

constexpr std::array<std::int64_t, 12> kIntegers = {
    -1, 0, 1, 2, 9, 39, 40, 100'000, -100'000'000, -2'000'000'000, INT64_MAX, INT64_MIN};
constexpr std::array<std::int64_t, 8> kSizes = {0, 1, 2, 6, 10, 40, 90, 1000};
constexpr std::array<float, 5> kFloats = {std::numeric_limits<float>::infinity(),
                                          -std::numeric_limits<float>::infinity(),
                                          std::numeric_limits<float>::quiet_NaN(), 3e38f, 0};

IdMap made_map(KeyKind kind, std::int64_t keys, std::int64_t shared) {
  IdMapBuilder builder(kind);
  for (std::int64_t key = 0; key < keys; ++key)
    kind == KeyKind::kInteger ? builder.add(key) : builder.add("w" + std::to_string(key));
  return builder.build({.out_of_vocabulary_rows = shared});
}

std::size_t elements(const DenseTensor& tensor) {
  std::size_t count = 1;
  for (const std::int64_t dim : tensor.shape) count *= static_cast<std::size_t>(dim);
  return count;
}

void change_element(DenseTensor& tensor, Choices& choices) {
  const std::size_t count = elements(tensor);
  if (count == 0 || tensor.bytes.empty()) return;
  const std::size_t bytes = tensor.bytes.size() / count;
  const std::int64_t integer = choices.one_of(kIntegers);
  const float number = choices.one_of(kFloats);
  char value[8] = {};
  std::memcpy(value, &integer, sizeof integer);
  if (tensor.dtype == "F32") std::memcpy(value, &number, sizeof number);
  std::memcpy(tensor.bytes.data() + choices.below(count) * bytes, value,
              std::min<std::size_t>(8, bytes));
}

void change_shape(DenseTensor& tensor, Choices& choices) {
  const std::size_t count = elements(tensor);
  const std::size_t bytes = count == 0 ? 4 : tensor.bytes.size() / count;
  tensor.shape = {choices.one_of(kSizes)};
  if (choices.below(3) == 0) tensor.shape.push_back(choices.one_of(kSizes));
  tensor.bytes.resize(elements(tensor) * bytes);
}

void change_type(DenseTensor& tensor, Choices& choices) {
  constexpr std::array<std::pair<const char*, std::size_t>, 5> kTypes = {
      {{"F32", 4}, {"F64", 8}, {"I32", 4}, {"I64", 8}, {"U8", 1}}};
  const auto [dtype, bytes] = choices.one_of(kTypes);
  tensor.dtype = dtype;
  tensor.bytes.resize(elements(tensor) * bytes);
}

/// Changes a text as people and programs do: another number, a line twice or gone, another letter.
void change_text(std::string& text, Choices& choices) {
  if (text.empty()) return;
  const std::size_t at = choices.below(text.size());
  const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
  const std::size_t after = std::min(text.find('\n', at), text.size() - 1) + 1;
  switch (choices.below(5)) {
    case 0: {
      const std::size_t digits = text.find_first_of("0123456789", at);
      if (digits == std::string::npos) return;
      const std::size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
      text.replace(digits, end - digits, std::to_string(choices.one_of(kIntegers)));
      break;
    }
    case 1:
      text.erase(line, after - line);
      break;
    case 2:
      text.insert(line, text.substr(line, after - line));
      break;
    case 3:
      text[at] = static_cast<char>(choices.below(256));
      break;
    default:
      text.insert(at, std::string(choices.below(2000), "[{\"a.\n"[choices.below(6)]));
      break;
  }
}

void change_blob(Choices& choices, Parts& parts) {
  const auto blob = choices.one_of(parts.caller.blobs);
  if (blob == parts.caller.blobs.end()) return;
  const std::size_t what = choices.below(4);
  if (what == 0) {
    parts.caller.blobs.erase(blob);
  } else if (what == 1 && blob->first != "job.toml") {
    blob->second = "[";
    for (std::int64_t i = choices.one_of(kSizes); i > 0; --i) blob->second += "\"x\",";
    blob->second += "null]";
  } else {
    change_text(blob->second, choices);
  }
}

void change_tensor(Choices& choices, Parts& parts) {
  const auto tensor = choices.one_of(parts.caller.tensors);
  if (tensor == parts.caller.tensors.end()) return;
  switch (choices.below(6)) {
    case 0:
      parts.caller.tensors.erase(tensor);
      break;
    case 1:
      return change_shape(tensor->second, choices);
    case 2:
      return change_type(tensor->second, choices);
    default:
      return change_element(tensor->second, choices);
  }
}

void change_id_map(Choices& choices, Parts& parts) {
  const auto map = choices.one_of(parts.id_maps);
  if (map == parts.id_maps.end()) return;
  const std::size_t what = choices.below(5);
  if (what == 0) {
    parts.id_maps.erase(map);
  } else if (what == 1) {
    map->second = choices.one_of(parts.id_maps)->second;
  } else {
    const KeyKind kind = choices.below(2) == 0 ? KeyKind::kInteger : KeyKind::kString;
    map->second =
        made_map(kind, choices.one_of(kSizes), what == 2 ? choices.one_of(kSizes) : 0).to_bytes();
  }
}

void change_table(Choices& choices, Parts& parts) {
  if (parts.manifest.tables.empty()) return;
  const std::size_t index = choices.below(parts.manifest.tables.size());
  checkpoint::SavedTable& table = parts.manifest.tables[index];
  std::vector<float>& rows = parts.rows[table.name];
  switch (choices.below(5)) {
    case 0:
      table.vocabulary_size = std::max<std::int64_t>(1, choices.one_of(kSizes));
      break;
    case 1:
      table.dim = static_cast<std::int32_t>(1 + choices.below(12));
      break;
    case 2:
      table.name = choices.below(2) == 0 ? "other" : parts.manifest.tables.front().name;
      break;
    case 3:
      parts.manifest.tables.erase(parts.manifest.tables.begin() + static_cast<int>(index));
      break;
    default:
      for (int i = 0; i < 4 && !rows.empty(); ++i)
        rows[choices.below(rows.size())] = choices.one_of(kFloats);
      break;
  }
}

void change(Choices& choices, Parts& parts) {
  switch (choices.below(6)) {
    case 0:
      return change_id_map(choices, parts);
    case 1:
      return change_table(choices, parts);
    case 2:
      return change_blob(choices, parts);
    case 3:
      return change_text(parts.caller.json, choices);
    default:
      return change_tensor(choices, parts);
  }
}

std::vector<std::string> variables_of(const checkpoint::SavedTable& table) {
  std::vector<std::string> names = {table.name};
  for (const checkpoint::SavedSlot& slot : table.slots)
    names.push_back(checkpoint::variable_name(table.name, slot.name));
  return names;
}

/// Gives the values that a variable had, over and over if it has grown.
checkpoint::FillRows filled(const std::vector<float>& values, checkpoint::Progression shard,
                            std::int64_t width) {
  return [&values, shard, width](std::int64_t first, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<std::size_t>(shard[first] * width) + i;
      out[i] = values.empty() ? 0 : values[at % values.size()];
    }
  };
}

Parts parts_of(const std::string& run) {
  const checkpoint::Reader reader(checkpoint::local_files(), run);
  Parts parts{.manifest = reader.manifest(),
              .rows = {},
              .caller = reader.caller_state(),
              .id_maps = reader.id_maps()};
  parts.manifest.files.clear();
  parts.manifest.features.clear();
  for (const checkpoint::SavedTable& table : parts.manifest.tables) {
    for (const std::string& variable : variables_of(table)) {
      checkpoint::VariableReader values = reader.variable(variable);
      std::vector<float>& rows = parts.rows[variable];
      rows.resize(static_cast<std::size_t>(values.rows() * values.width()));
      values.read(0, rows);
    }
  }
  return parts;
}

/// Saves in memory, and then without a flush of each file to where commands find it. Returns false
/// for parts that no save takes.
bool save(const Parts& parts, const std::string& run) {
  checkpoint::MemoryFiles memory;
  const auto source = [&](std::int64_t table, std::int32_t host) {
    const checkpoint::SavedTable& saved = parts.manifest.tables[table];
    const checkpoint::Progression shard =
        checkpoint::rows_of_host(parts.manifest.topology, saved.vocabulary_size, host);
    static const std::vector<float> kNone;
    checkpoint::RowSource rows{.rows = shard.count, .fill = {}};
    for (const std::string& variable : variables_of(saved)) {
      const auto values = parts.rows.find(variable);
      const bool row_wise = !rows.fill.empty() && saved.slots[rows.fill.size() - 1].row_wise;
      rows.fill.push_back(filled(values == parts.rows.end() ? kNone : values->second, shard,
                                 row_wise ? 1 : saved.dim));
    }
    return rows;
  };
  try {
    checkpoint::save(checkpoint::OpenRun(memory, "/run"), parts.manifest, source, parts.caller,
                     parts.id_maps);
  } catch (const ValueError&) {
    return false;
  }
  std::filesystem::remove_all(run);
  for (const auto& [path, content] : memory.contents()) {
    const std::filesystem::path to = run / std::filesystem::path(path).lexically_relative("/run");
    std::filesystem::create_directories(to.parent_path());
    std::ofstream(to, std::ios::binary) << *content;
  }
  return true;
}

/// Runs a command. Every error of the library is an answer; anything else ends the program.
template <class Command>
void attempt(const Command& command) {
  try {
    command();
  } catch (const IoError&) {  // DataLoss too
  } catch (const ValueError&) {
  } catch (const IndexError&) {
  } catch (const KeyError&) {
  } catch (const StateError&) {
  } catch (const NotImplemented&) {
  }
}

struct NoScores : ScoreSink {
  void begin(const std::vector<jobs::ScoreColumn>&) override {}
  void line(std::span<const ScoreCell>) override {}
};

class Commands {
 public:
  Commands() {
    write_tiny_data(files_);
    write_tiny_clicks(files_);
    write_tiny_histories(files_);
    write_tiny_words(files_);
    const Change pipelined = "schedule.pipelined=true";
    kinds_ = {{tiny_job, "user,item\n103,10\n999,7\n", {}, {}},
              {tiny_job, "user,item\n103,10\n", {pipelined}, {}},
              {tiny_clicks, "site,user\ns1,3\nx,4\n", {}, {}},
              {tiny_pairs, "100\n101 1 2\n7 3\n", {}, {}},
              {tiny_chains, "1 1003 5 99999\n2\n", {}, {}},
              {[](const std::vector<Change>&) { return tiny_words(); }, "w1\n", {}, {}}};
    for (Kind& kind : kinds_) {
      // An interrupted run has more parts than a finished one.
      StopAfter stop(kind.changes.empty() ? 1000 : 2);
      train_in(files_, kind.job(kind.changes),
               {.out = run_, .threads = 1, .stop = [&] { return stop.now.load(); }}, stop);
      kind.parts = parts_of(run_);
      // Unchanged parts must be good ones: without this, every command could refuse everything.
      if (!save(kind.parts, run_)) std::abort();
      evaluate(run_, {.data_root = files_.path(), .threads = 1});
      std::filesystem::remove_all(run_);
    }
  }

  std::size_t kinds() const { return kinds_.size(); }

  void run(std::size_t number, Choices& choices) {
    const Kind& kind = kinds_[number];
    Parts parts = kind.parts;
    while (choices.any()) change(choices, parts);
    if (!save(parts, run_)) return;
    files_.write("lines", kind.lines);
    read_all(parts);
    attempt([&] {
      NoScores sink;
      predict(run_, {.rows = {.path = files_.path("lines"), .items = 3}, .threads = 1}, sink);
    });
    attempt([&] {
      NoScores sink;
      predict(run_, {.rows = {.path = files_.path("lines")}, .threads = 1}, sink);
    });
    attempt([&] { evaluate(run_, {.data_root = files_.path(), .threads = 1}); });
    attempt([&] {
      StopAfter stop(2);
      train_in(files_, kind.job(kind.changes),
               {.out = run_, .resume = true, .threads = 1, .stop = [&] { return stop.now.load(); }},
               stop);
    });
  }

 private:
  void read_all(const Parts& parts) const {
    attempt([&] { describe_checkpoint(run_); });
    attempt([&] { saved_digest(run_); });
    for (const checkpoint::SavedTable& table : parts.manifest.tables) {
      attempt([&] {
        const SavedTableRows rows(run_, table.name);
        for (std::int64_t row = 0; row < std::min<std::int64_t>(3, rows.rows()); ++row) {
          rows.display_name(row);
          nearest_rows(rows, rows.key(row).empty() ? row : rows.row_of_key(rows.key(row)), 4);
        }
        rows.row_of_name("Item, No. 1");
      });
      attempt([&] { look_up(table.name); });
    }
    for (const TableFormat format :
         {TableFormat::kNpy, TableFormat::kTensorFlow, TableFormat::kWord2vec}) {
      attempt([&] {
        export_tables({.format = format, .from = run_, .out = files_.path("exported")},
                      [](const ConvertedArray&) {});
      });
    }
  }

  void look_up(const std::string& name) const {
    ServingEmbedding serving = ServingEmbedding::open(run_);
    const TableInfo table = serving.table(name);
    const std::filesystem::path directory = run_;
    const RowKeys keys(
        {.table = name, .rows = table.vocabulary_size, .dim = table.dim, .directory = directory},
        serving.caller_state(), serving.id_maps());
    const std::vector<std::int64_t> last = {table.vocabulary_size - 1};
    keys.display_name(last[0]);
    const std::string key = keys.key(last[0]);
    std::vector<float> row(static_cast<std::size_t>(table.dim));
    serving.read_rows(name, last, row);
    if (!key.empty() && keys.row_of_key(key) != last[0]) std::abort();
  }

  TemporaryFiles files_;
  std::string run_ = files_.path("out");
  std::vector<Kind> kinds_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Commands commands;
  if (size == 0) return 0;
  Choices choices({reinterpret_cast<const char*>(data) + 1, size - 1});
  commands.run(data[0] % commands.kinds(), choices);
  return 0;
}

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  for (char kind = 0; kind < 6; ++kind) {
    for (const std::uint64_t choices : {8, 24}) {  // about one change, and several
      std::string& seed = all.emplace_back(1, kind);
      for (std::uint64_t i = 0; i < choices; ++i)
        seed += static_cast<char>(random_bits(1, static_cast<std::uint64_t>(kind), i));
    }
  }
  return all;
}
