#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "checkpoint/indexed_map.h"
#include "embertable/executor.h"

namespace embertable::checkpoint {

/// A JSON value whose keys stay in the order in which they were written.
using Json = nlohmann::basic_json<IndexedMap>;

/// Maximum nesting of arrays and objects that is read.
inline constexpr int kMaxJsonDepth = 32;

/// Parses one JSON value. Throws DataLoss naming `path` for text that is not one JSON value in
/// UTF-8, an object that repeats a key, or nesting beyond kMaxJsonDepth.
Json parse_json(std::string_view text, const std::filesystem::path& path);

/// Strict access to untrusted JSON: throws DataLoss naming path, place and what was expected.
class JsonField {
 public:
  JsonField(const Json& value, const std::filesystem::path& path, std::string where)
      : value_(&value), path_(&path), where_(std::move(where)) {}
  JsonField(Json&&, const std::filesystem::path&, std::string) = delete;  ///< the value is borrowed

  JsonField operator[](const char* key) const;  ///< member of an object, which must exist
  bool has(const char* key) const;        ///< whether this object has the member, and not null
  std::size_t size() const;               ///< size of an array
  JsonField at(std::size_t index) const;  ///< element of an array, below size()

  /// Calls visit(name, value) for each member of an object, in their order.
  void each(FunctionRef<void(const std::string& name, const JsonField& value)> visit) const;

  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;  ///< low <= value <= high
  std::uint64_t unsigned_integer() const;
  double number() const;  ///< or one of the texts "inf", "-inf", "nan"
  /// A text of exactly `digits` lowercase hexadecimal digits.
  std::string hex(std::size_t digits) const;

  const Json& json() const noexcept { return *value_; }

  /// Throws DataLoss: "<path>: <place> <rule>".
  [[noreturn]] void refuse(const std::string& rule) const;

 private:
  const Json* value_;
  const std::filesystem::path* path_;
  std::string where_;
};

/// Returns a number, or one of the texts "inf", "-inf", "nan" where JSON has no number.
Json number_to_json(double value);

}  // namespace embertable::checkpoint
