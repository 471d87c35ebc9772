#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "embertable/id_map.h"

namespace embertable::jobs {

/// Numbers the keys of a column: 0, 1, ... in the order in which they are first seen.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(KeyKind kind) : kind_(kind) {}

  KeyKind kind() const noexcept { return kind_; }
  std::int32_t size() const noexcept { return size_; }

  /// The number of a key, which a new key gets now. Throws ValueError beyond 2^31 - 1 keys.
  std::int32_t add(std::int64_t key);
  std::int32_t add(std::string_view key);

  /// -1 for an unknown key.
  std::int32_t find(std::int64_t key) const noexcept;
  std::int32_t find(std::string_view key) const noexcept;

  /// By number; of the vocabulary's kind.
  std::int64_t integer(std::int32_t id) const noexcept {
    return integers_[static_cast<std::size_t>(id)];
  }
  const std::string& text(std::int32_t id) const noexcept {
    return texts_[static_cast<std::size_t>(id)];
  }
  std::string shown(std::int32_t id) const;  ///< either kind

  /// The same numbers as rows.
  IdMap id_map() const;

  /// Numbers the keys anew, rising (texts by their bytes). Returns the new number of each old one.
  std::vector<std::int32_t> sort();

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };
  std::int32_t next();

  KeyKind kind_ = KeyKind::kInteger;
  std::int32_t size_ = 0;
  std::vector<std::int64_t> integers_;
  std::vector<std::string> texts_;
  std::unordered_map<std::int64_t, std::int32_t> of_integer_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> of_text_;
};

}  // namespace embertable::jobs
