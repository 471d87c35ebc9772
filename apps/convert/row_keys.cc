#include "apps/convert/row_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/convert/printable.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kListedNames = 5;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

}  // namespace

RowKeys::RowKeys(const SavedTableShape& table, const CallerState& caller,
                 const std::map<std::string, IdMap>& id_maps)
    : table_(table.table) {
  const nlohmann::json state = nlohmann::json::parse(caller.json, nullptr, false);
  if (!state.is_object() || !state.contains("ids") || !state["ids"].is_object()) {
    const auto own = id_maps.find(table_);
    if (own != id_maps.end() && own->second.num_rows() == table.rows) ids_ = own->second;
    return;
  }
  const auto ids = state["ids"].find(table_);
  if (ids == state["ids"].end() || !ids->is_string()) {
    throw DataLoss(fmt::format("'{}': table '{}' must have an id map, got none",
                               table.directory.string(), table_));
  }
  const auto name = ids->get<std::string>();
  ids_ = saved_keys(table, name, id_maps);
  names_ = saved_names(name, *ids_, caller, table.directory);
}

std::int64_t RowKeys::row_of_key(const std::string& key) const {
  if (!ids_)
    throw ValueError(fmt::format(
        "table '{}' has no keys: no id map has its name and its number of rows; give a row number",
        table_));
  if (ids_->kind() == KeyKind::kString) return known_or_hashed(key, std::string_view(key));
  std::int64_t number = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size())
    throw ValueError(fmt::format("table '{}': a key must be an integer, got '{}'", table_, key));
  return known_or_hashed(key, number);
}

template <typename Key>
std::int64_t RowKeys::known_or_hashed(const std::string& text, Key key) const {
  if (ids_->num_keys() == 0 && ids_->num_rows() > 0) return ids_->row(key);
  if (const std::optional<std::int64_t> row = ids_->find(key)) return *row;
  throw KeyError(fmt::format(
      "table '{}' has no key '{}'{}", table_, text,
      ids_->out_of_vocabulary_rows() > 0
          ? fmt::format("; rare and unknown keys as this one have row {}", ids_->row(key))
          : ""));
}

std::int64_t RowKeys::row_of_name(const std::string& text) const {
  if (names_.empty()) throw KeyError(fmt::format("table '{}' has no names; give a key", table_));
  if (text.empty())  // rows without a name have this one
    throw ValueError(fmt::format("table '{}': a name must have a character, got none", table_));
  const std::string wanted = lower(text);
  std::vector<std::int64_t> equal, found;
  for (std::size_t row = 0; row < names_.size(); ++row) {
    const std::string name = lower(names_[row]);
    if (name == wanted) equal.push_back(static_cast<std::int64_t>(row));
    if (name.find(wanted) != std::string::npos) found.push_back(static_cast<std::int64_t>(row));
  }
  const bool is_whole = !equal.empty();
  if (is_whole) found = std::move(equal);
  if (found.empty())
    throw KeyError(fmt::format("table '{}' has no name that contains '{}'", table_, text));
  if (found.size() == 1) return found.front();
  std::string listed;
  for (std::size_t i = 0; i < std::min(found.size(), kListedNames); ++i)
    listed += fmt::format("\n  key {:<8} {}", printable(key(found[i])),
                          printable(display_name(found[i])));
  throw ValueError(fmt::format("table '{}': a name must be of one row, got '{}', which {} {}:{}{}",
                               table_, text, found.size(), is_whole ? "rows have" : "names contain",
                               listed, found.size() > kListedNames ? "\n  ..." : ""));
}

std::string RowKeys::key(std::int64_t row) const {
  if (!has_key(row)) return "";
  return ids_->kind() == KeyKind::kInteger ? std::to_string(ids_->integer_key(row))
                                           : std::string(ids_->string_key(row));
}

const std::string& RowKeys::display_name(std::int64_t row) const noexcept {
  static const std::string kNone;
  return row < std::ssize(names_) ? names_[row] : kNone;
}

}  // namespace embertable::jobs
