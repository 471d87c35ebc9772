#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace embertable::bench {

using Json = nlohmann::ordered_json;

/// Prints what was measured: `figures` on a line of its own if `json`, else `text` as it is.
/// Flushes, so that a reader of a pipe has each result when it is there.
void print(bool json, const Json& figures, const std::string& text);

/// Prints text that belongs to no figures, unless programs read.
void print_text(bool json, const std::string& text);

/// One field of figures, as a table shows it.
struct Column {
  const char* key;
  const char* heading;
  int width;         ///< negative: the text starts at the left
  int digits = 0;    ///< behind the point, of numbers that are not whole
  double scale = 1;  ///< numbers that are not whole are multiplied by it
};

/// A table for people of figures that programs get as objects.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  std::string heading() const;

  /// Prints the title and the heading, unless programs read.
  void begin(bool json, const std::string& title) const { print_text(json, title + heading()); }

  /// Prints figures, to people with those of `more`.
  void print(bool json, const Json& figures, const Json& more = Json::object()) const;

  /// Returns the line of these figures; null is shown as "-".
  std::string line(const Json& figures) const;

 private:
  std::vector<Column> columns_;
};

}  // namespace embertable::bench
