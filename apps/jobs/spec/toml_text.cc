#include "apps/jobs/spec/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <type_traits>

namespace embertable::jobs {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// Within single quotes as it is, or within double ones with escapes.
std::string in_quotes(std::string_view text) {
  if (std::none_of(text.begin(), text.end(), [](char c) { return c == '\'' || is_control(c); }))
    return fmt::format("'{}'", text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (is_control(c))
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

/// The fewest digits that give the number back.
std::string number(double x) {
  if (std::isnan(x)) return "nan";
  std::string text = fmt::format("{}", x);
  if (std::isfinite(x) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

/// A table that has no lines of its own.
std::string inline_table(const toml::table& table) {
  if (table.empty()) return "{}";
  std::string text;
  for (const auto& [key, value] : table)
    text += fmt::format("{}{} = {}", text.empty() ? "{ " : ", ", toml_key(key.str()),
                        toml_value(value));
  return text + " }";
}

std::string list(const toml::array& array) {
  if (array.empty()) return "[]";
  std::string text;
  for (const toml::node& value : array) text += (text.empty() ? "[ " : ", ") + toml_value(value);
  return text + " ]";
}

bool has_lines(const toml::node& node) { return node.is_table() && !node.as_table()->is_inline(); }

}  // namespace

std::string toml_key(std::string_view key) {
  const bool is_bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return is_bare ? std::string(key) : in_quotes(key);
}

std::string toml_value(const toml::node& value) {
  if (const toml::table* table = value.as_table()) return inline_table(*table);
  if (const toml::array* array = value.as_array()) return list(*array);
  if (const auto* text = value.as_string()) return in_quotes(text->get());
  if (const auto* real = value.as_floating_point()) return number(real->get());
  if (const auto* integer = value.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  std::ostringstream date;
  value.visit([&](const auto& other) {
    if constexpr (toml::is_date<decltype(other)> || toml::is_time<decltype(other)> ||
                  toml::is_date_time<decltype(other)>)
      date << other.get();
  });
  return date.str();
}

std::string toml_lines(const toml::table& table, const std::string& path) {
  const bool has_values = std::any_of(table.begin(), table.end(),
                                      [](const auto& entry) { return !has_lines(entry.second); });
  std::string text;
  if (!path.empty() && (has_values || table.empty())) text = fmt::format("[{}]\n", path);
  for (const auto& [key, value] : table) {
    if (!has_lines(value)) text += fmt::format("{} = {}\n", toml_key(key.str()), toml_value(value));
  }
  for (const auto& [key, value] : table) {
    if (!has_lines(value)) continue;
    const std::string name = toml_key(key.str());
    text += text.empty() ? "" : "\n";
    text += toml_lines(*value.as_table(), path.empty() ? name : fmt::format("{}.{}", path, name));
  }
  return text;
}

}  // namespace embertable::jobs
