// Operations that every level derives in the same way from its own.

EMBERTABLE_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }

/// Returns n == 0 ? +0 : n / d.
EMBERTABLE_INLINE F16 quotient(F16 n, F16 d) { return select(equal(n, zero16()), zero16(), n / d); }

/// Returns (x > 0) - (x < 0).
EMBERTABLE_INLINE F16 sgn(F16 x) {
  return select(less(zero16(), x), set1(1.0f), select(less(x, zero16()), set1(-1.0f), zero16()));
}

/// Adds `carry` < 2^16 to the lower half of each number's bits, so that the upper half is the
/// number rounded to bfloat16: see base/bfloat16.h. NaN stays NaN.
EMBERTABLE_INLINE U16 rounded_with(F16 x, U16 carry) {
  const U16 bits = bits_of(x);
  return bits_of(select(equal(x, x), of_bits(bits + carry), of_bits(bits | set1_bits(0x400000))));
}

/// Returns x with each NaN as rounded_with makes it, and a lower half of 0 there, so that no carry
/// leaves it.
EMBERTABLE_INLINE F16 with_half_nan(F16 x) {
  const U16 half = (bits_of(x) | set1_bits(0x400000)) & set1_bits(0xffff0000u);
  return select(equal(x, x), x, of_bits(half));
}

/// V vectors of neighbouring columns; the last one has `tail` of them if kPart. Element: float, or
/// what is converted to it.
template <int V, bool kPart, class Element>
EMBERTABLE_INLINE void load_columns(F16 (&x)[V], const Element* p, int tail) {
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v)
    x[v] = kPart && v == V - 1 ? load_part(p + v * 16, tail) : load(p + v * 16);
}

/// Widens 32 numbers of bfloat16 with half the instructions that two vectors in order take. Sums of
/// such are put in order by `interleave`.
EMBERTABLE_INLINE void load_even_odd(F16& even, F16& odd, const std::uint16_t* p) {
  const U16 pairs = load_bits(reinterpret_cast<const std::uint32_t*>(p));
  even = of_bits(shifted_left<16>(pairs));
  odd = of_bits(pairs & set1_bits(0xffff0000u));
}

template <int V, bool kPart>
EMBERTABLE_INLINE void store_columns(float* p, const F16 (&x)[V], int tail) {
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) {
    if (kPart && v == V - 1)
      store_part(p + v * 16, x[v], tail);
    else
      store(p + v * 16, x[v]);
  }
}
/// Stores whole cache lines past the caches; other threads may read them after end_streams.
template <int V>
EMBERTABLE_INLINE void stream_columns(float* p, const F16 (&x)[V]) {
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) stream(p + v * 16, x[v]);
}
EMBERTABLE_INLINE void end_streams() { _mm_sfence(); }
template <int V>
EMBERTABLE_INLINE void add_columns(F16 (&sum)[V], const F16 (&x)[V]) {
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) sum[v] = sum[v] + x[v];
}
template <int V>
EMBERTABLE_INLINE void multiply_columns(F16 (&x)[V], float by) {
  const F16 factor = set1(by);
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) x[v] = factor * x[v];
}

/// The most vectors of the last block that registers suffice for, beside as many terms.
inline constexpr int kWidestEnd = kWidestBlock < 8 ? 4 : 8;

/// Calls block.template run<V, kPart>(column, tail) for all columns of a row, left to right, in few
/// wide blocks. kEnd: the most vectors of the last one, 4 or 8; 8 for blocks that go through a
/// list, which is then read once for up to 128 columns.
template <int kEnd = 4, class Block>
EMBERTABLE_INLINE void for_each_block(std::int64_t dim, const Block& block) {
  std::int64_t column = 0;
  if constexpr (kWidestBlock == 16) {
    for (; dim - column >= 256; column += 256) block.template run<16, false>(column, 16);
    for (; dim - column >= 128; column += 128) block.template run<8, false>(column, 16);
  }
  if constexpr (kEnd == 4)
    for (; dim - column >= 64; column += 64) block.template run<4, false>(column, 16);
  const int left = static_cast<int>(dim - column);
  const int tail = left % 16 == 0 ? 16 : left % 16;
  const int vectors = (left + 15) / 16;
  if constexpr (kEnd == 8) {
    switch (vectors) {
      case 5:
        return block.template run<5, true>(column, tail);
      case 6:
        return block.template run<6, true>(column, tail);
      case 7:
        return block.template run<7, true>(column, tail);
      case 8:
        return block.template run<8, true>(column, tail);
      default:
        break;
    }
  }
  switch (vectors) {
    case 1:
      return block.template run<1, true>(column, tail);
    case 2:
      return block.template run<2, true>(column, tail);
    case 3:
      return block.template run<3, true>(column, tail);
    case 4:
      return block.template run<4, true>(column, tail);
    default:
      return;
  }
}

/// Returns the number of cache lines that `bytes` bytes touch when they start `stride` bytes apart
/// from `start`.
EMBERTABLE_INLINE int lines_of(const void* start, std::int64_t stride_bytes, std::int64_t bytes) {
  const std::uintptr_t place =
      reinterpret_cast<std::uintptr_t>(start) | static_cast<std::uintptr_t>(stride_bytes);
  // The smallest part of a line that the row fits into. Without a loop, because a lookup of one
  // sample computes it for every feature.
  const auto below = static_cast<std::uint64_t>(bytes - 1);
  const std::uintptr_t room = bytes > 32  ? 64
                              : bytes > 4 ? std::uintptr_t{1} << (64 - __builtin_clzll(below))
                                          : 4;
  const bool aligned = (place & (room - 1)) == 0;
  return static_cast<int>((bytes + 63) / 64 + (aligned ? 0 : 1));
}

/// How lines are fetched: to be read or written soon, into the first-level cache, or to be used
/// later, into the second-level cache.
enum class Fetch { kRead, kWrite, kFar };

template <Fetch kHow>
EMBERTABLE_INLINE void prefetch_line(const float* p) {
  __builtin_prefetch(p, kHow == Fetch::kWrite, kHow == Fetch::kFar ? 2 : 3);
}

// Fetches the lines of a row without a branch between them: a loop costs up to 2 ns a row. A
// function by itself, because it is long and used in many places.
template <Fetch kHow>
[[gnu::noinline]] void prefetch_lines(const float* p, int lines) {
  // The compiler sees no effect in a function that only prefetches, and would drop the calls.
  asm volatile("");
  for (; lines > 8; lines -= 8, p += 128) {
    EMBERTABLE_UNROLL
    for (int i = 0; i < 8; ++i) prefetch_line<kHow>(p + i * 16);
  }
  // clang-format off
  switch (lines) {
    case 8: prefetch_line<kHow>(p + 112); [[fallthrough]];
    case 7: prefetch_line<kHow>(p + 96); [[fallthrough]];
    case 6: prefetch_line<kHow>(p + 80); [[fallthrough]];
    case 5: prefetch_line<kHow>(p + 64); [[fallthrough]];
    case 4: prefetch_line<kHow>(p + 48); [[fallthrough]];
    case 3: prefetch_line<kHow>(p + 32); [[fallthrough]];
    case 2: prefetch_line<kHow>(p + 16); [[fallthrough]];
    default: prefetch_line<kHow>(p);
  }
  // clang-format on
}

/// If kLines > 0, it is the number of lines, and `lines` is not used. The first lines are fetched
/// in place; their branches go the same way for all rows of a table.
template <Fetch kHow, int kLines>
EMBERTABLE_INLINE void prefetch_with(const void* row, int lines) {
  const float* p = static_cast<const float*>(row);
  if constexpr (kLines > 0 && kLines <= 16) {
    EMBERTABLE_UNROLL
    for (int i = 0; i < kLines; ++i) prefetch_line<kHow>(p + i * 16);
  } else {
    const int all = kLines > 0 ? kLines : lines;
    prefetch_line<kHow>(p);
    if (all > 1) prefetch_line<kHow>(p + 16);
    if (all > 2) prefetch_line<kHow>(p + 32);
    if (all > 3) prefetch_line<kHow>(p + 48);
    if (all <= 4) return;
    prefetch_line<kHow>(p + 64);
    if (all > 5) prefetch_line<kHow>(p + 80);
    if (all > 6) prefetch_line<kHow>(p + 96);
    if (all > 7) prefetch_line<kHow>(p + 112);
    if (all > 8) prefetch_lines<kHow>(p + 128, all - 8);
  }
}
template <int kLines = 0>
EMBERTABLE_INLINE void prefetch_read(const void* p, int lines) {
  prefetch_with<Fetch::kRead, kLines>(p, lines);
}
template <int kLines = 0>
EMBERTABLE_INLINE void prefetch_write(const void* p, int lines) {
  prefetch_with<Fetch::kWrite, kLines>(p, lines);
}
template <int kLines = 0>
EMBERTABLE_INLINE void prefetch_far(const void* p, int lines) {
  prefetch_with<Fetch::kFar, kLines>(p, lines);
}
