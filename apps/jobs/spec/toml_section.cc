// The only source that compiles toml++.
#define TOML_IMPLEMENTATION
#include "apps/jobs/spec/toml_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "apps/jobs/spec/toml_text.h"
#include "base/did_you_mean.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Bytes that a message shows of a change that is refused for its size.
constexpr std::size_t kShownChange = 40;

std::string shown(const toml::node& node) { return node.is_table() ? "a table" : toml_value(node); }

/// Counts key parts and nested brackets of a TOML text from its first byte on, as a parser meets
/// them. After something that is not TOML the counts do not matter: a parser gets no further.
class TomlDepth {
 public:
  explicit TomlDepth(std::string_view text) : text_(text) {}

  /// Returns what exceeds the maximum, or "". `line` is then its line.
  std::string excess(std::int64_t& line) {
    for (; at_ < text_.size(); ++at_) {
      take(text_[at_]);
      line = line_;
      if (parts_ > TomlDocument::kMaxDepth)
        return fmt::format("a key must have at most {} parts", TomlDocument::kMaxDepth);
      if (depth_ > TomlDocument::kMaxDepth)
        return fmt::format("values must be nested at most {} deep", TomlDocument::kMaxDepth);
    }
    return "";
  }

 private:
  void take(char c) {
    switch (c) {
      case '\n':
        ++line_;
        parts_ = 1;
        break;
      case '#':
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
        break;
      case '"':
      case '\'':
        skip_string(c);
        break;
      case '[':
      case '{':
        ++depth_;
        parts_ = 1;
        break;
      case ']':
      case '}':
        --depth_;
        parts_ = 1;
        break;
      case '.':
        ++parts_;
        break;
      case '=':
      case ',':
        parts_ = 1;
        break;
      default:
        break;
    }
  }

  /// Goes to the last byte of a string, which may have several lines.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_).starts_with(three);
    for (at_ += is_long ? 3 : 1; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        if (!is_long) return;  // not TOML
      }
      if (c == '\\' && quote == '"') {
        ++at_;
        continue;
      }
      if (c != quote) continue;
      if (!is_long) return;
      if (!text_.substr(at_).starts_with(three)) continue;
      at_ += 2;
      // Up to two quotes before the last three belong to the text.
      for (int i = 0; i < 2 && at_ + 1 < text_.size() && text_[at_ + 1] == quote; ++i) ++at_;
      return;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t parts_ = 1;
  std::int64_t depth_ = 0;
};

/// Parses a text of limited size and depth. Throws ValueError naming `where` and the limit.
toml::table parse_limited(const std::string& text, const std::string& where) {
  if (text.size() > TomlDocument::kMaxBytes) {
    throw ValueError(fmt::format("{}: the job must have at most {} bytes, got {}", where,
                                 TomlDocument::kMaxBytes, text.size()));
  }
  std::int64_t line = 0;
  if (const std::string excess = TomlDepth(text).excess(line); !excess.empty())
    throw ValueError(fmt::format("{}:{}: {}, got more", where, line, excess));
  return toml::parse(text);
}

/// Reads the value of a change: TOML, or else a plain text.
toml::table read_value(const std::string& text, const std::string& source) {
  try {
    return parse_limited("value = " + text, source.substr(0, kShownChange) + "...");
  } catch (const toml::parse_error&) {
    return toml::table{{"value", text}};
  }
}

/// Returns the end of a part of a key that begins at `at`: behind its last quote if it begins with
/// one that has its like, else before the next dot or equals sign.
std::size_t end_of_part(std::string_view text, std::size_t at) {
  const char quote = at < text.size() ? text[at] : '\0';
  if (quote == '"' || quote == '\'') {
    for (std::size_t end = at + 1; end < text.size(); ++end) {
      if (text[end] == quote) return end + 1;
      if (text[end] == '\\' && quote == '"') ++end;
    }
  }
  return std::min(text.find_first_of(".=", at), text.size());
}

/// Returns a part of a key without its quotes, if they are those of TOML, else as it is.
std::string without_quotes(std::string_view part) {
  if (part.size() < 2 || (part[0] != '"' && part[0] != '\'')) return std::string(part);
  try {
    const toml::table read = toml::parse(fmt::format("value = {}", part));
    return read["value"].value_or(std::string(part));
  } catch (const toml::parse_error&) {
    return std::string(part);
  }
}

/// Divides a dotted key.
std::vector<std::string> parts_of_key(std::string_view key) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;; ++at) {
    std::size_t end = end_of_part(key, at);
    if (end < key.size() && key[end] != '.') end = std::min(key.find('.', at), key.size());
    parts.push_back(without_quotes(key.substr(at, end - at)));
    at = end;
    if (at >= key.size()) return parts;
  }
}

std::string setting(bool flag) { return flag ? "true" : "false"; }
std::string setting(const std::string& text) { return text; }
std::string setting(std::int64_t integer) { return fmt::format("{}", integer); }
std::string setting(double number) { return fmt::format("{}", number); }
template <class T>
std::string setting(const std::vector<T>& list) {
  return fmt::format("[{}]", fmt::join(list, ", "));
}

bool is_below(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '.');
}

}  // namespace

std::size_t end_of_key(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != '=') at = std::max(at + 1, end_of_part(text, at));
  return at;
}

void stop_parsing() {
  throw toml::parse_error("a character that begins no key and no value", toml::source_region{});
}

TomlDocument::TomlDocument(const std::string& text, std::string path,
                           const std::vector<Change>& changes)
    : path_(std::move(path)) {
  try {
    root_ = parse_limited(text, path_);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw ValueError(fmt::format("{}:{} the job must be TOML: {}", path_,
                                 at.line == 0 ? "" : fmt::format("{}:{}:", at.line, at.column),
                                 error.description()));
  }
  for (const Change& given : changes) change(given);
  with_defaults_ = root_;
}

void TomlDocument::complete(bool (*fill)(toml::table&), std::vector<std::string> taken) {
  taken_ = std::move(taken);
  completed_ = fill(root_);
  with_defaults_ = root_;
  settings_.clear();
}

template <class T>
void TomlDocument::note(std::string_view section, std::string_view key, const T& value) {
  toml::table* table = &with_defaults_;
  while (!section.empty()) {
    std::string_view name = section.substr(0, section.find('.'));
    for (const auto& [known, node] : *table) {  // a name may hold dots
      if (is_below(section, known.str()) && known.str().size() > name.size()) name = known.str();
    }
    section.remove_prefix(std::min(name.size() + 1, section.size()));
    table = table->insert(name, toml::table{}).first->second.as_table();
    if (table == nullptr) return;
  }
  if constexpr (requires { value.begin(); } && !std::is_same_v<T, std::string>) {
    toml::array list;
    for (const auto& element : value) list.push_back(element);
    table->insert(key, std::move(list));
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.empty()) table->insert(key, value);
  } else {
    table->insert(key, value);
  }
}

void TomlDocument::change(const Change& change) {
  const std::size_t equals = end_of_key(change.text);
  if (equals == 0 || equals >= change.text.size()) {
    throw ValueError(fmt::format("a change must be KEY=VALUE, got '{}'", change.text));
  }
  const std::vector<std::string> parts =
      parts_of_key(std::string_view(change.text).substr(0, equals));
  if (std::ssize(parts) > kMaxDepth) {
    throw ValueError(fmt::format("{}: a key must have at most {} parts, got more",
                                 change.source.substr(0, kShownChange), kMaxDepth));
  }
  changes_.emplace_back(fmt::format("{}", fmt::join(parts, ".")), change.source);
  toml::table* table = &root_;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    toml::node& next = table->insert(parts[i], toml::table{}).first->second;
    if (!next.is_table()) {
      const auto end = parts.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      throw ValueError(fmt::format("{}: {} must be a table, got {}", change.source,
                                   fmt::join(parts.begin(), end, "."), shown(next)));
    }
    table = next.as_table();
  }
  toml::table value = read_value(change.text.substr(equals + 1), change.source);
  table->insert_or_assign(parts.back(), std::move(*value.get("value")));
}

void TomlDocument::refuse(std::string_view key_path, toml::source_region where,
                          const std::string& rule) const {
  for (std::size_t last = changes_.size(); last > 0; --last) {
    const auto& [key, source] = changes_[last - 1];
    if (is_below(key_path, key) || (where.begin.line == 0 && is_below(key, key_path))) {
      throw ValueError(fmt::format("{}: {}", source, rule));
    }
  }
  if (where.begin.line == 0) throw ValueError(fmt::format("{}: {}", path_, rule));
  throw ValueError(fmt::format("{}:{}: {}", path_, where.begin.line, rule));
}

std::string TomlSection::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

template <class T>
T TomlSection::noted(std::string_view key, T value) {
  document_->settings_[path_of(key)] = setting(value);
  document_->note(path_, key, value);
  return value;
}

const toml::node* TomlSection::find(std::string_view key) {
  known_.emplace_back(key);
  return table_->get(key);
}

bool TomlSection::has(std::string_view key) { return find(key) != nullptr; }

const toml::node& TomlSection::require(std::string_view key, std::string_view expected) {
  const toml::node* node = find(key);
  if (node == nullptr) refuse_missing(key, expected);
  return *node;
}

/// Refuses a missing key; names a similar key that may be meant.
void TomlSection::refuse_missing(std::string_view key, std::string_view expected) const {
  for (const auto& [given, value] : *table_) {
    const bool is_known = std::find(known_.begin(), known_.end(), given.str()) != known_.end();
    if (!is_known && is_misspelt(given.str(), key))
      refuse_key(given.str(), did_you_mean(given.str(), std::span(&key, 1)));
  }
  refuse(key, fmt::format("must be {}, got nothing", expected));
}

void TomlSection::refuse_key(std::string_view key, const std::string& hint) const {
  document_->refuse(
      path_of(key), table_->get(key)->source(),
      fmt::format("{} has no key '{}'{}", path_.empty() ? "the job" : path_, key, hint));
}

void TomlSection::refuse(std::string_view key, const std::string& rule) const {
  const toml::node* node = table_->get(key);
  document_->refuse(path_of(key), node != nullptr ? node->source() : table_->source(),
                    fmt::format("{} {}", path_of(key), rule));
}

void TomlSection::refuse_given(std::string_view key, const std::string& where) {
  if (has(key)) refuse(key, "must be left out " + where);
}

void TomlSection::refuse_section(const std::string& rule) const {
  document_->refuse(path_, table_->source(), fmt::format("{} {}", path_, rule));
}

void TomlSection::refuse_value(std::string_view key, std::string_view expected) const {
  const toml::node* node = table_->get(key);
  refuse(key,
         fmt::format("must be {}, got {}", expected, node != nullptr ? shown(*node) : "nothing"));
}

std::string TomlSection::text(std::string_view key) {
  const auto value = require(key, "a text").value_exact<std::string>();
  if (!value) refuse_value(key, "a text");
  return noted(key, *value);
}

std::string TomlSection::text(std::string_view key, std::string fallback) {
  return has(key) ? text(key) : noted(key, std::move(fallback));
}

std::int64_t TomlSection::integer(std::string_view key, std::int64_t lowest, std::int64_t highest) {
  const std::string expected = fmt::format("an integer from {} to {}", lowest, highest);
  const auto value = require(key, expected).value_exact<std::int64_t>();
  if (!value || *value < lowest || *value > highest) refuse_value(key, expected);
  return noted(key, *value);
}

std::int64_t TomlSection::integer(std::string_view key, std::int64_t lowest, std::int64_t highest,
                                  std::int64_t fallback) {
  return has(key) ? integer(key, lowest, highest) : noted(key, fallback);
}

double TomlSection::number(std::string_view key) {
  const toml::node& node = require(key, "a number");
  if (!node.is_number()) refuse_value(key, "a number");
  return noted(key, *node.value<double>());
}

double TomlSection::number(std::string_view key, double fallback) {
  return has(key) ? number(key) : noted(key, fallback);
}

bool TomlSection::flag(std::string_view key) {
  const toml::node& node = require(key, "true or false");
  if (!node.is_boolean()) refuse_value(key, "true or false");
  return noted(key, *node.value_exact<bool>());
}

bool TomlSection::flag(std::string_view key, bool fallback) {
  return has(key) ? flag(key) : noted(key, fallback);
}

std::variant<double, bool, std::string> TomlSection::value(std::string_view key) {
  const toml::node& node = require(key, "a number, true, false or a text");
  if (node.is_boolean()) return flag(key);
  if (node.is_string()) return text(key);
  if (!node.is_number()) refuse_value(key, "a number, true, false or a text");
  return number(key);
}

std::vector<std::string> TomlSection::texts(std::string_view key,
                                            std::vector<std::string> fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return noted(key, std::move(fallback));
  std::vector<std::string> texts;
  const toml::array* array = node->as_array();
  if (array == nullptr) refuse_value(key, "a list of texts");
  for (const toml::node& element : *array) {
    const auto text = element.value_exact<std::string>();
    if (!text) refuse_value(key, "a list of texts");
    texts.push_back(*text);
  }
  return noted(key, std::move(texts));
}

std::vector<double> TomlSection::numbers(std::string_view key) {
  const toml::array* array = require(key, "a list of numbers").as_array();
  if (array == nullptr) refuse_value(key, "a list of numbers");
  std::vector<double> numbers;
  for (const toml::node& element : *array) {
    if (!element.is_number()) refuse_value(key, "a list of numbers");
    numbers.push_back(*element.value<double>());
  }
  return noted(key, std::move(numbers));
}

std::string TomlSection::column(std::string_view key) {
  const toml::node& node = require(key, "a column's name or its number from 1");
  if (const auto text = node.value_exact<std::string>()) return noted(key, *text);
  const auto number = node.value_exact<std::int64_t>();
  if (!number || *number < 1) refuse_value(key, "a column's name or its number from 1");
  return noted(key, std::to_string(*number));
}

namespace {

constexpr std::string_view kColumns = "a list of columns: names, numbers from 1 or \"FIRST-LAST\"";

}  // namespace

std::vector<std::string> TomlSection::columns(std::string_view key) {
  const toml::array* array = require(key, kColumns).as_array();
  if (array == nullptr) refuse_value(key, kColumns);
  std::vector<std::string> columns;
  for (const toml::node& element : *array) {
    const auto number = element.value_exact<std::int64_t>();
    const auto text = element.value_exact<std::string>();
    if (number ? *number < 1 : !text) refuse_value(key, kColumns);
    columns.push_back(number ? std::to_string(*number) : *text);
  }
  return noted(key, std::move(columns));
}

std::vector<std::string> TomlSection::columns(std::string_view key,
                                              std::vector<std::string> fallback) {
  return find(key) != nullptr ? columns(key) : noted(key, std::move(fallback));
}

std::vector<std::string> TomlSection::one_or_more(std::string_view key) {
  const toml::node& node = require(key, "a text or a list of texts");
  if (!node.is_array()) return {text(key)};
  std::vector<std::string> all = texts(key, {});
  if (all.empty()) refuse_value(key, "a text or a list of texts, not an empty one");
  return all;
}

std::string TomlSection::text_or_integer(std::string_view key, std::string fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return noted(key, std::move(fallback));
  if (const auto number = node->value_exact<std::int64_t>())
    return noted(key, std::to_string(*number));
  return text(key);
}

std::string TomlSection::choice(std::string_view key, const std::vector<std::string>& names,
                                std::optional<std::string> fallback) {
  if (!fallback && !has(key) && !names.empty())
    refuse_missing(key, fmt::format("one of {}", fmt::join(names, ", ")));
  std::string given = fallback ? text(key, *fallback) : text(key);
  if (std::find(names.begin(), names.end(), given) == names.end()) {
    if (names.empty())
      refuse(key, fmt::format("must name something that the job has, got \"{}\"", given));
    refuse(key, must_be_one_of(names, given));
  }
  return given;
}

TomlSection TomlSection::section(std::string_view key, bool optional) {
  static const toml::table kEmpty;
  const toml::node* node = find(key);
  if (node == nullptr && optional) return TomlSection(*document_, kEmpty, path_of(key));
  if (node == nullptr) refuse_missing(key, "a table");
  if (!node->is_table()) refuse_value(key, "a table");
  return TomlSection(*document_, *node->as_table(), path_of(key));
}

std::vector<std::string> TomlSection::keys() const {
  std::vector<std::pair<toml::source_position, std::string>> found;
  for (const auto& [key, node] : *table_)
    found.emplace_back(node.source().begin, std::string(key.str()));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> keys;
  for (auto& [place, key] : found) keys.push_back(std::move(key));
  return keys;
}

std::vector<std::string> TomlSection::take_rest() {
  std::vector<std::string> rest;
  for (const std::string& key : keys()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) rest.push_back(key);
  }
  known_.insert(known_.end(), rest.begin(), rest.end());
  return rest;
}

void TomlSection::finish() const {
  std::vector<std::string> known = known_;
  for (const std::string& path : document_->taken_) {
    if (path.starts_with(path_ + ".")) known.push_back(path.substr(path_.size() + 1));
  }
  for (const std::string& key : keys()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      refuse_key(key, did_you_mean(key, known));
    }
  }
}

}  // namespace embertable::jobs
