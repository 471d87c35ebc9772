#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"

namespace embertable::jobs {

/// The first 16 bytes of a key as two little-endian numbers, zeros behind a shorter one.
struct KeyHead {
  static constexpr std::size_t kBytes = 16;
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const KeyHead&, const KeyHead&) noexcept = default;

  static KeyHead of(std::string_view key) noexcept {
    const char* const p = key.data();
    const std::size_t size = key.size();
    if (size >= kBytes) return {load<std::uint64_t>(p), load<std::uint64_t>(p + 8)};
    if (size <= 8) return {up_to_8(p, size), 0};
    return {load<std::uint64_t>(p), load<std::uint64_t>(p + size - 8) >> (8 * (kBytes - size))};
  }

  /// The same of a key of at most 16 bytes behind whose first byte 16 may be read: no branch hangs
  /// on its size.
  static KeyHead of_padded(std::string_view key) noexcept {
    const char* const p = key.data();
    const std::size_t size = key.size();
    return {load<std::uint64_t>(p) & first_bytes(size),
            load<std::uint64_t>(p + 8) & (size > 8 ? first_bytes(size - 8) : 0)};
  }

  /// Of the key that follows a prefix of `size` < 16 bytes, which this one is of.
  KeyHead then(KeyHead key, std::size_t size) const noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide moved = ((Wide{key.high} << 64) | key.low) << (8 * size);
    return {low | static_cast<std::uint64_t>(moved),
            high | static_cast<std::uint64_t>(moved >> 64)};
  }

 private:
  template <class Number>
  static Number load(const char* p) noexcept {
    Number number;
    std::memcpy(&number, p, sizeof(number));
    return number;
  }
  static std::uint64_t first_bytes(std::size_t count) noexcept {
    return count >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * count)) - 1;
  }
  /// Loads that overlap cost less than a loop.
  static std::uint64_t up_to_8(const char* p, std::size_t size) noexcept {
    if (size == 8) return load<std::uint64_t>(p);
    if (size >= 4) {
      return load<std::uint32_t>(p) | std::uint64_t{load<std::uint32_t>(p + size - 4)}
                                          << (8 * (size - 4));
    }
    if (size == 0) return 0;
    const auto byte = [p](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(p[i])} << (8 * i);
    };
    return byte(0) | byte(size / 2) | byte(size - 1);
  }
};

/// Numbers different keys, texts or other bytes, 0, 1, ... in the order in which they come, and
/// counts them. A key's slot holds its head, so that finding a usual key touches one line of
/// memory, which can be asked for before.
class KeyTable {
 public:
  /// Most keys.
  static constexpr std::int64_t kMaxKeys = 0x7fffffff;

  /// Of a key, as add and find take it.
  static std::uint64_t hash(std::string_view key) noexcept { return hash(KeyHead::of(key), key); }
  static std::uint64_t hash(KeyHead head, std::string_view key) noexcept {
    return key.size() <= KeyHead::kBytes ? hash_of_head(head, key.size()) : hash_of_long(key);
  }

  /// Of a key of `size` <= KeyHead::kBytes.
  static std::uint64_t hash_of_head(KeyHead head, std::size_t size) noexcept {
    const std::uint64_t both =
        fold(head.low ^ 0x9e3779b97f4a7c15u, head.high ^ 0xbf58476d1ce4e5b9u ^ size);
    return fold(both ^ 0x94d049bb133111ebu, 0xd6e8feb86659fd93u);
  }

  std::int32_t size() const noexcept { return static_cast<std::int32_t>(ends_.size()); }

  /// Begins to load what add or find will touch. Not a call: gcc drops those of functions that do
  /// nothing else.
  [[gnu::always_inline]] void prefetch(std::uint64_t hash) const noexcept {
    if (num_slots_ > 0) __builtin_prefetch(slots() + (static_cast<std::uint32_t>(hash) & mask_));
  }

  /// The number of a key, which a new key gets now, and `times` more of it seen. Throws ValueError
  /// beyond kMaxKeys, IoError without memory.
  std::int32_t add(std::string_view key, std::uint64_t hash, std::uint32_t times) {
    return add(KeyHead::of(key), key, hash, times);
  }
  std::int32_t add(KeyHead head, std::string_view key, std::uint64_t hash, std::uint32_t times) {
    if (ends_.size() * 8 >= num_slots_ * 5) grow();
    const auto tag = static_cast<std::uint32_t>(hash);
    Slot& slot = slot_of(head, key, tag);
    slot.seen += std::min(times, std::numeric_limits<std::uint32_t>::max() - slot.seen);
    if (slot.number_plus_1 == 0) return insert(slot, head, key, tag);
    return static_cast<std::int32_t>(slot.number_plus_1 - 1);
  }

  /// -1 for an unknown key.
  std::int32_t find(std::string_view key, std::uint64_t hash) const noexcept {
    return find(KeyHead::of(key), key, hash);
  }
  std::int32_t find(KeyHead head, std::string_view key, std::uint64_t hash) const noexcept {
    if (num_slots_ == 0) return -1;
    const Slot& slot = slot_of(head, key, static_cast<std::uint32_t>(hash));
    return static_cast<std::int32_t>(slot.number_plus_1) - 1;
  }

  /// The key of a number.
  std::string_view operator[](std::int32_t number) const noexcept;

  /// How often each key was seen, by number; no further than 2^32 - 1.
  std::vector<std::uint32_t> seen() const;

 private:
  struct Slot {
    std::uint32_t tag;            ///< low half of the hash
    std::uint32_t number_plus_1;  ///< 0: free
    std::uint32_t seen;
    std::uint32_t size;
    KeyHead head;
  };

  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  static std::uint64_t hash_of_long(std::string_view key) noexcept;

  Slot* slots() const noexcept { return reinterpret_cast<Slot*>(memory_.data()); }

  /// The slot that has the key, or the free one that it would go to.
  Slot& slot_of(KeyHead head, std::string_view key, std::uint32_t tag) const noexcept {
    if (key.size() > KeyHead::kBytes) return slot_of_long(head, key, tag);
    // Head and size are the key. A free slot's are those of the empty one, which then goes there.
    for (std::size_t place = tag & mask_;; place = (place + 1) & mask_) {
      Slot& slot = slots()[place];
      const std::uint64_t other =
          (slot.head.low ^ head.low) | (slot.head.high ^ head.high) | (slot.size ^ key.size());
      if (other == 0 || slot.number_plus_1 == 0) return slot;
    }
  }
  Slot& slot_of_long(KeyHead head, std::string_view key, std::uint32_t tag) const noexcept;
  std::int32_t insert(Slot& slot, KeyHead head, std::string_view key, std::uint32_t tag);
  void grow();

  Mapping memory_;  ///< of the slots, whose huge pages save as many misses as the heads do
  std::size_t num_slots_ = 0;  ///< a power of two, at most five eighths used
  std::size_t mask_ = 0;
  std::string bytes_;
  std::vector<std::uint64_t> ends_;  ///< of the keys in bytes_
};

}  // namespace embertable::jobs
