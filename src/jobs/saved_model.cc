#include "jobs/saved_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "checkpoint/reader.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kListedNames = 5;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

/// The part of a model's state that `ModelSaver` writes. Throws DataLoss if it is something else.
nlohmann::json read_state(const std::filesystem::path& path, const CallerState& state) {
  const nlohmann::json json = nlohmann::json::parse(state.json, nullptr, false);
  if (!json.is_object() || !json.contains("ids") || !json["ids"].is_object()) {
    throw ValueError(fmt::format(
        "'{}' must be what `embertable train --out` saved, got a checkpoint without a job",
        path.string()));
  }
  return json;
}

const checkpoint::SavedTable& find_table(const checkpoint::Reader& reader,
                                         const std::string& name) {
  std::vector<std::string_view> names;
  for (const checkpoint::SavedTable& table : reader.manifest().tables) {
    if (table.name == name) return table;
    names.push_back(table.name);
  }
  throw KeyError(fmt::format("'{}' has no table '{}'; the nearest is '{}'",
                             reader.directory().string(), name, nearest_name(name, names)));
}

IdMap find_ids(const checkpoint::Reader& reader, const std::string& table) {
  const nlohmann::json state = read_state(reader.directory(), reader.caller_state());
  const auto ids = state["ids"].find(table);
  const std::map<std::string, std::string> maps = reader.id_maps();
  const auto map = ids != state["ids"].end() && ids->is_string()
                       ? maps.find(ids->get<std::string>())
                       : maps.end();
  if (map == maps.end()) {
    throw DataLoss(fmt::format("'{}': table '{}' must have an id map, got none",
                               reader.directory().string(), table));
  }
  return IdMap::from_bytes(map->second);
}

}  // namespace

SavedTableRows::SavedTableRows(const std::filesystem::path& path, const std::string& table)
    : name_(table), ids_(IdMap::hashed(KeyKind::kInteger, 1)) {
  const checkpoint::Reader reader(checkpoint::local_files(), path);
  const checkpoint::SavedTable& saved = find_table(reader, table);
  rows_ = saved.vocabulary_size;
  dim_ = saved.dim;
  values_.resize(static_cast<std::size_t>(rows_ * dim_));
  ids_ = find_ids(reader, table);
  const CallerState caller = reader.caller_state();
  const auto vectors = caller.tensors.find("vectors." + table);
  if (vectors == caller.tensors.end()) {
    reader.variable(table).read(0, values_);
  } else if (vectors->second.bytes.size() == values_.size() * sizeof(float)) {
    std::memcpy(values_.data(), vectors->second.bytes.data(), vectors->second.bytes.size());
  } else {
    throw DataLoss(fmt::format("'{}': tensor 'vectors.{}' must have {} floats, got {} bytes",
                               reader.directory().string(), table, values_.size(),
                               vectors->second.bytes.size()));
  }
  const nlohmann::json state = read_state(reader.directory(), caller);
  const auto blob = caller.blobs.find("names." + state["ids"][table].get<std::string>());
  if (blob == caller.blobs.end()) return;
  const nlohmann::json names = nlohmann::json::parse(blob->second, nullptr, false);
  for (const nlohmann::json& name : names)
    names_.push_back(name.is_string() ? name.get<std::string>() : "");
}

std::int64_t SavedTableRows::row_of_key(const std::string& key) const {
  std::optional<std::int64_t> row;
  if (ids_.kind() == KeyKind::kString) {
    row = ids_.find(std::string_view(key));
  } else {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size()) {
      throw ValueError(fmt::format("table '{}': a key must be an integer, got '{}'", name_, key));
    }
    row = ids_.find(number);
  }
  if (!row) throw KeyError(fmt::format("table '{}' has no key '{}'", name_, key));
  return *row;
}

std::int64_t SavedTableRows::row_of_name(const std::string& text) const {
  if (names_.empty()) throw KeyError(fmt::format("table '{}' has no names; give a key", name_));
  const std::string wanted = lower(text);
  std::vector<std::int64_t> found;
  for (std::size_t row = 0; row < names_.size(); ++row) {
    const std::string name = lower(names_[row]);
    if (name == wanted) return static_cast<std::int64_t>(row);
    if (name.find(wanted) != std::string::npos) found.push_back(static_cast<std::int64_t>(row));
  }
  if (found.empty())
    throw KeyError(fmt::format("table '{}' has no name that contains '{}'", name_, text));
  if (found.size() > 1) {
    std::string listed;
    for (std::size_t i = 0; i < std::min(found.size(), kListedNames); ++i) {
      listed += fmt::format("\n  --key {:<8} {}", key(found[i]), display_name(found[i]));
    }
    throw ValueError(fmt::format(
        "table '{}': a name must be of one row, got '{}', which {} names contain:{}{}", name_, text,
        found.size(), listed, found.size() > kListedNames ? "\n  ..." : ""));
  }
  return found.front();
}

std::string SavedTableRows::key(std::int64_t row) const {
  if (row >= ids_.num_keys()) return "";
  return ids_.kind() == KeyKind::kInteger ? std::to_string(ids_.integer_key(row))
                                          : std::string(ids_.string_key(row));
}

const std::string& SavedTableRows::display_name(std::int64_t row) const noexcept {
  static const std::string kNone;
  return row < static_cast<std::int64_t>(names_.size()) ? names_[static_cast<std::size_t>(row)]
                                                        : kNone;
}

}  // namespace embertable::jobs
