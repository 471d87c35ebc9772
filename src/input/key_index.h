#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace embertable::input {

/// Returns XXH3-64 with seed 0 of the bytes of a string or of the 8 little-endian bytes of an
/// integer. Part of the format of id maps.
std::uint64_t hash_of(std::int64_t key) noexcept;
std::uint64_t hash_of(std::string_view key) noexcept;

/// Returns a hash that decides the place of a key in an index. Differs between processes, see
/// process_seed.
std::uint64_t place_hash_of(std::int64_t key) noexcept;
std::uint64_t place_hash_of(std::string_view key) noexcept;

/// Numbers distinct integers 0, 1, ... in the order of their arrival. Any number of threads may
/// read while none adds.
class IntegerKeys {
 public:
  using Key = std::int64_t;
  std::int64_t size() const { return static_cast<std::int64_t>(keys_.size()); }
  Key operator[](std::int64_t i) const { return keys_[i]; }
  void append(Key key) { keys_.push_back(key); }

 private:
  std::vector<std::int64_t> keys_;
};

/// Does the same for strings, which are stored back to back.
class StringKeys {
 public:
  using Key = std::string_view;
  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  Key operator[](std::int64_t i) const {
    const auto n = static_cast<std::size_t>(i);
    const std::uint64_t begin = n == 0 ? 0 : ends_[n - 1];
    return std::string_view(bytes_).substr(begin, ends_[n] - begin);
  }
  void append(Key key) {
    bytes_.resize(ends_.empty() ? 0 : ends_.back());  // an append that threw may have left some
    bytes_.append(key);
    ends_.push_back(bytes_.size());
  }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
};

/// Finds the number of a key: open addressing, at most three quarters full.
template <class Keys>
class KeyIndex {
 public:
  using Key = typename Keys::Key;
  static constexpr std::int64_t kMaxKeys = 0xfffffffe;

  std::int64_t size() const { return keys_.size(); }
  Key operator[](std::int64_t i) const { return keys_[i]; }

  /// Returns -1 if the key is unknown.
  std::int64_t find(Key key) const {
    if (slots_.empty()) return -1;
    return number_in(slots_[place_of(key, place_hash_of(key))]);
  }

  /// Returns the number of the key; a new key gets the number size(). Requires: size() < kMaxKeys.
  std::int64_t add(Key key) {
    if (static_cast<std::uint64_t>(size()) * 4 >= slots_.size() * 3) grow();
    const std::uint64_t hash = place_hash_of(key);
    Slot& slot = slots_[place_of(key, hash)];
    if (slot.number_plus_1 == 0) {
      keys_.append(key);
      slot = {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(size())};
    }
    return number_in(slot);
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;            ///< low half of the hash
    std::uint32_t number_plus_1 = 0;  ///< 0: free
  };

  static std::int64_t number_in(Slot slot) { return std::int64_t{slot.number_plus_1} - 1; }

  /// Returns the slot that has the key, or the free slot where it would go.
  std::size_t place_of(Key key, std::uint64_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = (hash >> 20) & mask;
    for (;; place = (place + 1) & mask) {
      const Slot slot = slots_[place];
      if (slot.number_plus_1 == 0) return place;
      if (slot.tag == static_cast<std::uint32_t>(hash) && keys_[number_in(slot)] == key) {
        return place;
      }
    }
  }

  void grow() {
    std::vector<Slot> slots(slots_.empty() ? 16 : slots_.size() * 2);
    slots_.swap(slots);
    for (std::int64_t i = 0; i < size(); ++i) {
      const std::uint64_t hash = place_hash_of(keys_[i]);
      slots_[place_of(keys_[i], hash)] = {static_cast<std::uint32_t>(hash),
                                          static_cast<std::uint32_t>(i + 1)};
    }
  }

  Keys keys_;
  std::vector<Slot> slots_;  ///< a power of two
};

}  // namespace embertable::input
