#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/text/token_reader.h"

namespace embertable::jobs {

/// Keys of one kind that are kept until it is known that their line is not broken.
class KeyList {
 public:
  explicit KeyList(KeyKind kind) : kind_(kind) {}

  KeyKind kind() const noexcept { return kind_; }
  std::size_t size() const noexcept { return ends_.size(); }

  void add(std::string_view bytes) {
    bytes_.append(bytes);
    ends_.push_back(bytes_.size());
  }
  void add(std::int64_t key) { add({reinterpret_cast<const char*>(&key), sizeof(key)}); }

  /// Adds the reader's token. Throws BrokenRecord for one that is not a key.
  void add(const TokenReader& reader) {
    if (kind_ == KeyKind::kInteger)
      add(reader.integer());
    else
      add(reader.text());
  }

  /// Returns the number of key `i` in a vocabulary of its kind; a new key gets one now.
  std::int32_t number(std::size_t i, Vocabulary& keys) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return keys.add_bytes(std::string_view(bytes_).substr(begin, ends_[i] - begin));
  }

  void clear() noexcept {
    bytes_.clear();
    ends_.clear();
  }

 private:
  KeyKind kind_;
  std::string bytes_;  ///< integers take 8 bytes each
  std::vector<std::size_t> ends_;
};

}  // namespace embertable::jobs
