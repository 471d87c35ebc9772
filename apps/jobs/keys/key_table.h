#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"

namespace embertable::jobs {

/// The first 16 bytes of a key as two little-endian numbers, zeros after a shorter one.
struct KeyHead {
  static constexpr std::size_t kBytes = 16;
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const KeyHead& a, const KeyHead& b) noexcept {
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
  }

  static KeyHead of(std::string_view key) noexcept {
    const char* const p = key.data();
    const std::size_t size = key.size();
    if (size >= kBytes) return {load<std::uint64_t>(p), load<std::uint64_t>(p + 8)};
    if (size <= 8) return {up_to_8(p, size), 0};
    return {load<std::uint64_t>(p), load<std::uint64_t>(p + size - 8) >> (8 * (kBytes - size))};
  }

  /// Returns the head of a key of at most 16 bytes. Requires: 16 bytes from its first on are
  /// readable. No branch depends on its size.
  static KeyHead of_padded(std::string_view key) noexcept {
    const char* const p = key.data();
    const char* const mask = kMask + kBytes - key.size();
    return {load<std::uint64_t>(p) & load<std::uint64_t>(mask),
            load<std::uint64_t>(p + 8) & load<std::uint64_t>(mask + 8)};
  }

  /// Head of the concatenation of a `size`-byte prefix (this) and `key`; size < 16.
  KeyHead then(KeyHead key, std::size_t size) const noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide moved = ((Wide{key.high} << 64) | key.low) << (8 * size);
    return {low | static_cast<std::uint64_t>(moved),
            high | static_cast<std::uint64_t>(moved >> 64)};
  }

  /// Returns the head of a key of `size` < 16 bytes that no key of another size shares: the size is
  /// its last byte.
  KeyHead with_size(std::size_t size) const noexcept { return {low, high | size << 56}; }

 private:
  template <class Number>
  static Number load(const char* p) noexcept {
    Number number;
    std::memcpy(&number, p, sizeof(number));
    return number;
  }
  /// The n bytes from byte 16 - n on are ones.
  static constexpr char kMask[2 * kBytes] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                             -1, -1, -1, -1, -1, -1, -1, -1};
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

/// Numbers distinct keys, texts or other bytes, 0, 1, ... in the order of their arrival, and counts
/// them. A key's place takes 8 bytes of a line of memory that can be prefetched; the keys
/// themselves are stored by number, so that those seen early, usually the common ones, share lines.
class KeyTable {
 public:
  /// Maximum number of keys.
  static constexpr std::int64_t kMaxKeys = 0x7fffffff;

  /// Returns the hash of a key, for add and find. Differs between processes, see process_seed.
  static std::uint64_t hash(std::string_view key) noexcept {
    return is_short(key) ? hash_of_short(short_key(key)) : hash_of_long(key);
  }

  /// A short key is compared by its head.
  static bool is_short(std::string_view key) noexcept { return key.size() < KeyHead::kBytes; }
  static KeyHead short_key(std::string_view key) noexcept {
    return KeyHead::of(key).with_size(key.size());
  }
  static std::uint64_t hash_of_short(KeyHead key) noexcept {
    const std::uint64_t seed = process_seed();
    const std::uint64_t both = fold(key.low ^ seed, key.high ^ mix_bits(seed));
    return fold(both ^ 0x94d049bb133111ebu, 0xd6e8feb86659fd93u);
  }

  std::int32_t size() const noexcept { return static_cast<std::int32_t>(keys_.size()); }

  /// Prefetches what `guess` will touch. Inlined by force, because gcc drops calls of functions
  /// that only prefetch.
  [[gnu::always_inline]] void prefetch(std::uint64_t hash) const noexcept {
    if (num_groups_ > 0) __builtin_prefetch(groups() + (tag_of(hash) & mask_));
  }

  /// Returns the number of a key that is likely to have this hash, and prefetches that key; else
  /// -1.
  std::int32_t guess(std::uint64_t hash) const noexcept {
    if (num_groups_ == 0) return -1;
    const std::uint32_t tag = tag_of(hash);
    const Group& group = groups()[tag & mask_];
    const unsigned found = group.with(tag);
    if (found == 0) return -1;
    const std::uint32_t number = group.numbers[std::countr_zero(found)];
    __builtin_prefetch(keys_.data() + number);
    __builtin_prefetch(seen_.data() + number, 1);
    return static_cast<std::int32_t>(number);
  }

  /// True if a guess >= 0 is the number of a short key.
  bool has(std::int32_t guess, KeyHead key) const noexcept {
    return guess >= 0 && keys_[guess] == key;
  }

  /// Returns the number of a key, which a new key gets now, and adds `times` to its count. Throws
  /// ValueError beyond kMaxKeys, IoError or bad_alloc without memory.
  std::int32_t add(std::string_view key, std::uint64_t hash, std::uint32_t times) {
    return is_short(key) ? add_short(short_key(key), hash, times) : add_long(key, hash, times);
  }
  std::int32_t add_short(KeyHead key, std::uint64_t hash, std::uint32_t times);

  /// Returns -1 for an unknown key.
  std::int32_t find(std::string_view key, std::uint64_t hash) const noexcept {
    return is_short(key) ? find_short(short_key(key), hash) : find_long(key, hash);
  }
  std::int32_t find_short(KeyHead key, std::uint64_t hash) const noexcept;

  /// Adds `times` to the count of a key.
  void see(std::int32_t number, std::uint32_t times) noexcept {
    std::uint32_t& seen = seen_[number];
    seen += std::min(times, std::numeric_limits<std::uint32_t>::max() - seen);
  }

  /// Returns the key of a number, valid until a key is added.
  std::string_view operator[](std::int32_t number) const noexcept;

  /// Count of each key by number, at most 2^32 - 1.
  const std::vector<std::uint32_t>& seen() const noexcept { return seen_; }

 private:
  static constexpr unsigned kGroup = 8;

  /// A line of memory. Used places come first; a tag of 0 marks a free one.
  struct Group {
    std::uint32_t tags[kGroup];
    std::uint32_t numbers[kGroup];

    /// Returns a bit for each place that has this tag.
    unsigned with(std::uint32_t tag) const noexcept {
      const __m128i wanted = _mm_set1_epi32(static_cast<int>(tag));
      const __m128i* const p = reinterpret_cast<const __m128i*>(tags);
      const __m128i both = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(p), wanted),
                                           _mm_cmpeq_epi32(_mm_load_si128(p + 1), wanted));
      return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128())));
    }
    bool is_full() const noexcept { return tags[kGroup - 1] != 0; }
  };

  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  static std::uint64_t hash_of_long(std::string_view key) noexcept;

  /// Returns the low half of the hash, which decides where a key goes whatever the size of the
  /// table.
  static std::uint32_t tag_of(std::uint64_t hash) noexcept {
    return std::max(static_cast<std::uint32_t>(hash), 1u);
  }

  Group* groups() const noexcept { return reinterpret_cast<Group*>(memory_.data()); }

  template <class Same>
  std::int32_t search(std::uint64_t hash, Same same) const noexcept;
  std::int32_t add_long(std::string_view key, std::uint64_t hash, std::uint32_t times);
  std::int32_t find_long(std::string_view key, std::uint64_t hash) const noexcept;
  std::int32_t append(KeyHead key, std::uint64_t hash, std::uint32_t times);
  void enter(std::uint32_t tag, std::uint32_t number) noexcept;
  void grow();
  std::string_view long_key(KeyHead key) const noexcept;

  Mapping memory_;              ///< memory of the groups; huge pages save TLB misses too
  std::size_t num_groups_ = 0;  ///< a power of two; at most five eighths of their places are used
  std::size_t mask_ = 0;
  /// By number: a short key, or the hash of a long one and its position in bytes_, with all bits of
  /// the last byte set.
  std::vector<KeyHead> keys_;
  std::vector<std::uint32_t> seen_;  ///< by number
  std::string bytes_;                ///< long keys, the size before each
};

}  // namespace embertable::jobs
