#include "apps/cli/column_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "apps/cli/numbers.h"

namespace embertable::tools {
namespace {

using jobs::SeenColumn;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

/// True if a column's name contains one of these words.
bool is_called(const SeenColumn& column, std::span<const std::string_view> words) {
  const std::string name = lower(column.name);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

// Words in the names of columns, by what they may mean.
constexpr std::array<std::string_view, 2> kTexts = {"name", "title"}, kTimes = {"time", "date"};
constexpr std::array<std::string_view, 7> kLabels = {"rating", "stars",     "label", "click",
                                                     "target", "converted", "bought"};
constexpr std::array<std::string_view, 11> kUsers = {"user",     "customer", "client", "member",
                                                     "visitor",  "session",  "viewer", "reader",
                                                     "listener", "buyer",    "account"};
constexpr std::array<std::string_view, 13> kItems = {
    "item",  "movie", "film", "book",  "product", "article", "song",
    "track", "video", "sku",  "stock", "isbn",    "asin"};

/// What the commas of a text are, if it is a number with commas.
enum class Commas { kNone, kDecimal, kThousands, kEither };

/// Returns kDecimal for "4,50", kThousands for "1,234,567", kEither for "1,234".
Commas commas_of(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  std::vector<std::string_view> groups;
  for (;;) {
    const std::size_t comma = text.find(',');
    groups.push_back(text.substr(0, comma));
    if (groups.back().empty() ||
        groups.back().find_first_not_of("0123456789") != std::string_view::npos)
      return Commas::kNone;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (groups.size() == 1) return Commas::kNone;
  const bool are_thousands = groups[0].size() <= 3 && groups[0][0] != '0' &&
                             std::all_of(groups.begin() + 1, groups.end(),
                                         [](std::string_view group) { return group.size() == 3; });
  if (groups.size() == 2) return are_thousands ? Commas::kEither : Commas::kDecimal;
  return are_thousands ? Commas::kThousands : Commas::kNone;
}

/// Says what the commas are if most texts of a column are numbers with commas; "" otherwise.
std::string commas_in(const SeenColumn& column) {
  std::array<std::int64_t, 4> count{};
  for (const std::string& text : column.distinct) ++count[static_cast<int>(commas_of(text))];
  const auto [none, decimal, thousands, either] = count;
  if (none >= decimal + thousands + either) return "";
  if (decimal > 0 && thousands == 0) return "a decimal comma";
  if (thousands > 0 && decimal == 0) return "commas between thousands";
  return "a comma, decimal or between thousands";
}

/// Returns the form of lists with this character between their keys, if texts are such.
std::optional<ListForm> lists_with(char separator, const SeenColumn& column) {
  const auto several = std::ranges::count_if(
      column.distinct, [&](const std::string& text) { return text.find(separator) != text.npos; });
  if (2 * several < std::ssize(column.distinct)) return {};
  ListForm form{.separator = std::string(1, separator), .integers = true};
  std::set<std::string_view> keys;
  for (const std::string_view text : column.distinct) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::string_view key = text.substr(begin, text.find(separator, begin) - begin);
      if (key.starts_with(' ')) return {};  // "Last, First" is a name
      form.integers &= !key.empty() && key.find_first_not_of("0123456789") == key.npos;
      keys.insert(key);
      begin += key.size() + 1;
    }
  }
  return keys.size() < column.distinct.size() ? std::optional(form) : std::nullopt;
}

std::string kind_of(const SeenColumn& column) {
  if (column.filled() == 0) return "empty";
  if (column.are_integers()) return "integers";
  if (column.are_numbers()) return column.whole ? "whole numbers written with a point" : "numbers";
  if (column.are_times()) return "times";
  if (const std::string commas = commas_in(column); !commas.empty())
    return "numbers with " + commas + ", which count as texts";
  if (const std::optional<ListForm> lists = lists_in(column))
    return fmt::format("lists with '{}' between their keys", lists->separator);
  return column.texts == column.filled() ? "texts" : "texts and others";
}

std::string count_of(const SeenColumn& column) {
  const auto different = static_cast<std::int64_t>(column.distinct.size());
  return grouped(different) + (column.has_all() ? "" : " or more") + " different";
}

}  // namespace

bool is_called_a_user(const SeenColumn& column) { return is_called(column, kUsers); }
bool is_called_a_label(const SeenColumn& column) { return is_called(column, kLabels); }
bool is_called_a_time(const SeenColumn& column) { return is_called(column, kTimes); }

bool is_called_an_item(const SeenColumn& column) {
  return is_called(column, kItems) && !is_called(column, kTexts);
}

bool is_called_a_key(const SeenColumn& column) {
  const std::string name = lower(column.name);
  for (const std::string_view amount : {"paid", "bid", "grid", "mid"})
    if (name.ends_with(amount)) return false;
  for (const std::string_view end : {"id", "nbr", "code", "key", "zip"})
    if (name.ends_with(end)) return true;
  return std::ranges::count(kUsers, name) + std::ranges::count(kItems, name) > 0;
}

bool are_mostly_numbers(const SeenColumn& column) {
  return 2 * (column.integers + column.decimals) > column.filled();
}

std::optional<ListForm> lists_in(const SeenColumn& column) {
  if (column.texts == 0 || !commas_in(column).empty()) return {};
  for (const char separator : {'|', ';', ','})
    if (const std::optional<ListForm> form = lists_with(separator, column)) return form;
  return {};
}

bool says_nothing(const SeenColumn& one) {
  const auto different = static_cast<std::int64_t>(one.distinct.size());
  const bool is_key = !one.has_all() || (different > 100 && different == one.filled() &&
                                         !(one.are_numbers() && one.decimals > 0));
  return one.are_times() || is_key || (different <= 1 && one.empty == 0);
}

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? std::to_string(std::llround(value))
                                                              : nlohmann::json(value).dump();
}

std::string described(const SeenColumn& column) {
  std::string text = kind_of(column) + ", " + count_of(column);
  if (!column.called.empty())
    text = fmt::format("called '{}' in the header, ", column.called) + text;
  if (column.are_numbers())
    text += fmt::format(", {} to {}", number_text(column.lowest), number_text(column.highest));
  if (column.empty > 0) text += ", " + grouped(column.empty) + " empty";
  return text;
}

}  // namespace embertable::tools
