#include "apps/convert/found_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/convert/keys_file.h"
#include "apps/convert/npy.h"
#include "base/did_you_mean.h"
#include "embertable/config.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/object_graph.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/slices.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kValuePart = "/.ATTRIBUTES/VARIABLE_VALUE";
constexpr std::string_view kOptimizerPart = "/.OPTIMIZER_SLOT/";

/// Removes the last name from a path and returns it.
std::string last_name(std::string_view& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name =
      unescape_name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  path = slash == std::string_view::npos ? "" : path.substr(0, slash);
  return name;
}

/// Sets name and place by the key.
void name_array(FoundArray& array) {
  std::string_view path = array.source;
  if (!path.ends_with(kValuePart)) {
    array.name = array.source;
    return;
  }
  path.remove_suffix(kValuePart.size());
  const std::size_t optimizer = path.find(kOptimizerPart);
  std::string slot;
  if (optimizer != std::string_view::npos) {
    slot = last_name(path);
    path = path.substr(0, optimizer);
  }
  array.name = last_name(path);
  if (!slot.empty()) array.name += "/" + slot;
  array.place = path;
}

template <class Half>
void widen(std::span<const Half> halves, std::span<float> out) {
  std::transform(halves.begin(), halves.end(), out.begin(),
                 [](Half half) { return static_cast<float>(half); });
}

/// Reads rows of a tensor of float32, or of a narrower type whose numbers are all float32.
checkpoint::FillRows tensor_rows(const std::shared_ptr<const TensorBundleReader>& reader,
                                 const std::string& key, std::int64_t width, BundleDType dtype) {
  if (dtype == BundleDType::kFloat32) {
    return [=](std::int64_t first, std::span<float> out) {
      reader->read_rows(key, first, std::ssize(out) / width, std::as_writable_bytes(out));
    };
  }
  return [=](std::int64_t first, std::span<float> out) {
    const std::int64_t rows = std::ssize(out) / width;
    if (dtype == BundleDType::kFloat16) {
      std::vector<Float16> halves(out.size());
      reader->read_rows(key, first, rows, std::as_writable_bytes(std::span(halves)));
      widen<Float16>(halves, out);
    } else {
      std::vector<BFloat16> halves(out.size());
      reader->read_rows(key, first, rows, std::as_writable_bytes(std::span(halves)));
      widen<BFloat16>(halves, out);
    }
  };
}

fs::path bundle_prefix(const fs::path& path) {
  if (fs::is_directory(path)) {
    const auto latest = latest_bundle(path);
    if (latest) return *latest;
    throw IoError(fmt::format(
        "{}: cannot open: its file 'checkpoint' names no checkpoint that is there; give a prefix",
        path.string()));
  }
  return path.extension() == ".index" ? fs::path(path).replace_extension() : path;
}

std::int64_t width_of(const std::vector<std::int64_t>& shape) {
  return shape.size() < 2 ? 1 : shape[1];
}

/// True if the slot has one number per row, or as many as the table.
bool fits_slot(const FoundArray& slot, const FoundArray& table) {
  if (slot.shape.empty() || slot.shape.size() > 2 || slot.shape[0] != table.shape[0]) return false;
  return width_of(slot.shape) == 1 || slot.shape == table.shape;
}

bool fits_table(const FoundArray& array) {
  return array.shape.size() == 2 && array.shape[0] >= 1 && array.shape[1] >= 1;
}

/// Place and name of a table.
using TableKey = std::pair<std::string, std::string>;

TableKey key_of(const FoundArray& table) { return {table.place, table.name}; }

/// An array whose name is that of a table and "/SLOT".
struct SlotName {
  TableKey table;
  std::string slot;
};

/// Returns the table of which the array is a slot by its name, if it has such a name.
std::optional<SlotName> slot_name(const FoundArray& array) {
  const std::size_t slash = array.name.rfind('/');
  if (slash == std::string::npos || slash + 1 == array.name.size()) return std::nullopt;
  return SlotName{{array.place, array.name.substr(0, slash)}, array.name.substr(slash + 1)};
}

/// A text "NAME=SOURCE"; without a source the text is both.
struct Choice {
  std::string name, source;
  explicit Choice(const std::string& text) {
    const std::size_t equals = text.find('=');
    name = text.substr(0, equals);
    source = equals == std::string::npos ? text : text.substr(equals + 1);
    if (name.empty() || source.empty())
      throw ValueError(fmt::format("must be NAME or NAME=SOURCE, got '{}'", text));
  }
};

class Grouping {
 public:
  Grouping(std::vector<FoundArray>& arrays, const std::vector<std::string>& slots)
      : arrays_(arrays), taken_(arrays.size()) {
    for (const std::string& text : slots) {
      if (text.find('=') == std::string::npos)
        throw ValueError(fmt::format("a slot must be TABLE/SLOT=KEY, got '{}'", text));
      slots_.emplace_back(text);
    }
  }

  std::vector<FoundTable> chosen(const std::vector<std::string>& tables) {
    std::vector<FoundTable> found;
    for (const std::string& text : tables) {
      const Choice choice(text);
      found.push_back(start_table(choice.name, take(choice.source)));
    }
    return with_slots(std::move(found));
  }

  std::vector<FoundTable> all() {
    std::multimap<TableKey, std::size_t> tables;
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (fits_table(arrays_[i])) tables.emplace(key_of(arrays_[i]), i);
    std::vector<FoundTable> found;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (fits_table(arrays_[i]) && !is_slot(arrays_[i], tables)) {
        FoundArray array = take_at(i);
        const std::string name = array.name;
        found.push_back(start_table(name, std::move(array)));
      }
    }
    return with_slots(std::move(found));
  }

  /// Removes what was taken, so that the arrays that are left out stay.
  void finish() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (!taken_[i]) std::swap(arrays_[kept++], arrays_[i]);
    }
    arrays_.resize(kept);
  }

 private:
  bool is_slot(const FoundArray& array, const std::multimap<TableKey, std::size_t>& tables) const {
    const bool is_chosen = std::any_of(slots_.begin(), slots_.end(), [&](const Choice& slot) {
      return slot.source == array.source || slot.source == array.name;
    });
    if (is_chosen) return true;
    const auto name = slot_name(array);
    if (!name) return false;
    const auto [first, last] = tables.equal_range(name->table);
    return std::any_of(first, last,
                       [&](const auto& table) { return fits_slot(array, arrays_[table.second]); });
  }

  /// Copies, since the names of arrays that were taken still tell what is a slot.
  FoundArray take_at(std::size_t i) {
    taken_[i] = true;
    return arrays_[i];
  }

  /// Takes the array of this key or file, else the one of this path or name.
  FoundArray take(const std::string& source) {
    std::vector<std::string_view> sources;
    std::vector<std::size_t> named;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (taken_[i]) continue;
      const FoundArray& array = arrays_[i];
      if (array.source == source || array.source == source + std::string(kValuePart))
        return take_at(i);
      if (array.name == source) named.push_back(i);
      sources.push_back(array.source);
    }
    if (named.size() == 1) return take_at(named.front());
    if (named.empty()) {
      throw KeyError(fmt::format("there is no array '{}' of floating-point numbers{}", source,
                                 arrays_.empty()   ? "; there is none"
                                 : sources.empty() ? "; all that there are have been taken"
                                                   : did_you_mean(source, sources)));
    }
    throw ValueError(fmt::format("'{}' is the name of several arrays; '{}' and '{}' are two",
                                 source, arrays_[named[0]].source, arrays_[named[1]].source));
  }

  static FoundTable start_table(const std::string& name, FoundArray array) {
    if (!fits_table(array)) {
      throw ValueError(fmt::format("table '{}': must be [rows, dim], got '{}' of {}", name,
                                   array.source, formats::shape_text(array.shape)));
    }
    if (array.shape[1] > TableConfig::kMaxDim) {
      throw ValueError(fmt::format("table '{}': dim must be 1..{}, got '{}' of {}", name,
                                   TableConfig::kMaxDim, array.source,
                                   formats::shape_text(array.shape)));
    }
    FoundTable table;
    table.saved.name = name;
    table.saved.vocabulary_size = array.shape[0];
    table.saved.dim = static_cast<std::int32_t>(array.shape[1]);
    table.arrays.push_back(std::move(array));
    return table;
  }

  static void add_slot(FoundTable& table, const std::string& name, FoundArray array) {
    if (!fits_slot(array, table.arrays.front())) {
      throw ValueError(
          fmt::format("slot '{}/{}': must be {} or [{}], got '{}' of {}", table.saved.name, name,
                      formats::shape_text(table.arrays.front().shape), table.saved.vocabulary_size,
                      array.source, formats::shape_text(array.shape)));
    }
    table.saved.slots.push_back({name, array.shape != table.arrays.front().shape});
    table.arrays.push_back(std::move(array));
  }

  std::vector<FoundTable> with_slots(std::vector<FoundTable> tables) {
    for (const Choice& slot : slots_) {
      const std::size_t slash = slot.name.rfind('/');
      const auto table = std::find_if(tables.begin(), tables.end(), [&](const FoundTable& one) {
        return one.saved.name == slot.name.substr(0, slash);
      });
      if (slash == std::string::npos || table == tables.end())
        throw KeyError(
            fmt::format("slot '{}': must be TABLE/SLOT of an imported table", slot.name));
      add_slot(*table, slot.name.substr(slash + 1), take(slot.source));
    }
    std::multimap<TableKey, std::size_t> places;
    for (std::size_t t = 0; t < tables.size(); ++t)
      places.emplace(key_of(tables[t].arrays.front()), t);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const auto name = taken_[i] ? std::nullopt : slot_name(arrays_[i]);
      if (!name) continue;
      const auto [first, last] = places.equal_range(name->table);
      const auto table = std::find_if(first, last, [&](const auto& place) {
        return fits_slot(arrays_[i], tables[place.second].arrays.front());
      });
      if (table != last) add_slot(tables[table->second], name->slot, take_at(i));
    }
    return tables;
  }

  std::vector<FoundArray>& arrays_;
  std::vector<bool> taken_;  ///< by array
  std::vector<Choice> slots_;
};

void check_names(const std::vector<FoundTable>& tables) {
  std::map<std::string, const FoundTable*> named;
  for (const FoundTable& table : tables) {
    const auto [other, is_new] = named.emplace(table.saved.name, &table);
    if (is_new) continue;
    throw ValueError(fmt::format(
        "two tables are named '{}': '{}' and '{}'; choose and name them by NAME=SOURCE",
        table.saved.name, other->second->arrays.front().source, table.arrays.front().source));
  }
}

/// Names the first arrays for a message.
std::string listed(const std::vector<FoundArray>& arrays) {
  constexpr std::size_t kNamed = 3;
  if (arrays.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < std::min(arrays.size(), kNamed); ++i)
    text += fmt::format("{}'{}' of {}", i == 0 ? "" : ", ", arrays[i].source,
                        formats::shape_text(arrays[i].shape));
  if (arrays.size() > kNamed) text += fmt::format(" and {} more", arrays.size() - kNamed);
  return text;
}

}  // namespace

std::vector<FoundArray> find_in_bundle(const fs::path& path, std::vector<std::string>& others) {
  const auto reader = std::make_shared<const TensorBundleReader>(bundle_prefix(path));
  std::vector<FoundArray> arrays;
  for (const std::string& key : reader->keys()) {
    const BundleTensor tensor = reader->describe(key);
    const bool fits = tensor.dtype == BundleDType::kFloat32 ||
                      tensor.dtype == BundleDType::kFloat16 ||
                      tensor.dtype == BundleDType::kBFloat16;
    if (!fits || tensor.shape.empty() || tensor.shape.size() > 2) {
      if (key != kObjectGraphKey && key != variable_key({"save_counter"})) others.push_back(key);
      continue;
    }
    FoundArray array{.name = "", .place = "", .source = key, .shape = tensor.shape, .read = {}};
    name_array(array);
    array.read = tensor_rows(reader, key, width_of(tensor.shape), tensor.dtype);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

std::vector<FoundArray> find_npy(const fs::path& path) {
  std::vector<fs::path> paths;
  if (fs::is_directory(path)) {
    for (const std::string& name : checkpoint::local_files().list(path))
      if (name.ends_with(".npy")) paths.push_back(path / name);
  } else {
    paths.push_back(path);
  }
  std::vector<FoundArray> arrays;
  for (const fs::path& one : paths) {
    const auto file = std::make_shared<const formats::NpyFile>(checkpoint::local_files(), one);
    arrays.push_back({unescape_name(one.stem().string()), "", one.filename().string(),
                      file->shape(),
                      [file](std::int64_t first, std::span<float> out) { file->read(first, out); },
                      fs::exists(keys_path(one)) ? keys_path(one) : fs::path()});
  }
  return arrays;
}

std::vector<FoundTable> group_tables(std::vector<FoundArray>& arrays,
                                     const std::vector<std::string>& tables,
                                     const std::vector<std::string>& slots, const fs::path& from) {
  Grouping grouping(arrays, slots);
  std::vector<FoundTable> found = tables.empty() ? grouping.all() : grouping.chosen(tables);
  if (found.empty())
    throw ValueError(
        fmt::format("{}: there must be an array [rows, dim] of floating-point numbers, got {}",
                    from.string(), listed(arrays)));
  check_names(found);
  grouping.finish();
  return found;
}

}  // namespace embertable::jobs
