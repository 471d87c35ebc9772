// Works in rounds: every entry writes its number into the slot that its row hashes to, the last one
// first, so that a row's first entry stays; an entry that then finds another row there tries
// another hash in the next round. All entries of a row go together. No store's address depends on a
// load just before it, except in the one pass that counts.

#include "kernels/row_prefetch.inl"

EMBERTABLE_INLINE std::uint32_t hash_of(std::uint32_t row, std::uint64_t factor, int bits) {
  return (row * static_cast<std::uint32_t>(factor)) >> (32 - bits);
}
EMBERTABLE_INLINE std::uint32_t hash_of(std::uint64_t row, std::uint64_t factor, int bits) {
  return static_cast<std::uint32_t>((row * factor) >> (64 - bits));
}

/// The arrays in which entries are numbered, slots hashed and ranks counted. Numbers of 16 bits
/// take half as much of the caches, which gradients and rows need too.
template <class Number>
struct Numbers {
  Number *hash, *table, *first, *count, *start, *loser;

  explicit Numbers(const GroupArrays& m)
      : hash(reinterpret_cast<Number*>(m.hash)),
        table(reinterpret_cast<Number*>(m.table)),
        first(reinterpret_cast<Number*>(m.first)),
        count(reinterpret_cast<Number*>(m.count)),
        start(reinterpret_cast<Number*>(m.start)),
        loser(reinterpret_cast<Number*>(m.loser)) {}
};

/// Sets first[i] to the first entry with the row of entry i.
template <class Number, class Index>
EMBERTABLE_INLINE void find_first_entries(const Group<Index>& args, const Numbers<Number>& m) {
  const Index* row = args.row;
  const auto n = static_cast<std::uint32_t>(args.count);
  Number *hash = m.hash, *table = m.table, *first = m.first, *loser = m.loser;
  // Half of the slots where numbers are short: more entries try again, but nearer to the core.
  const std::int64_t slots = GroupArrays::table_size(args.count) / (sizeof(Number) == 2 ? 2 : 1);
  const int bits = __builtin_ctzll(static_cast<std::uint64_t>(slots));

  // The factor is odd and stays odd.
  std::uint64_t factor = sizeof(Index) == 4 ? 0x9E3779B1u : 0x9E3779B97F4A7C15u;
  std::uint32_t losers = 0;
  for (std::uint32_t i = 0; i < n; ++i)
    hash[i] = static_cast<Number>(hash_of(row[i], factor, bits));
  for (std::uint32_t i = n; i-- > 0;) table[hash[i]] = static_cast<Number>(i);
  for (std::uint32_t i = 0; i < n; ++i) {
    const Number winner = table[hash[i]];
    first[i] = winner;
    loser[losers] = static_cast<Number>(i);
    losers += row[winner] != row[i];
  }
  while (losers > 0) {
    const std::uint32_t tried = losers;
    factor = factor * 5 + 2;
    losers = 0;
    for (std::uint32_t j = 0; j < tried; ++j)
      hash[j] = static_cast<Number>(hash_of(row[loser[j]], factor, bits));
    for (std::uint32_t j = tried; j-- > 0;) table[hash[j]] = loser[j];
    for (std::uint32_t j = 0; j < tried; ++j) {
      const Number i = loser[j], winner = table[hash[j]];
      first[i] = winner;
      loser[losers] = i;
      losers += row[winner] != row[i];
    }
  }
}

struct Listed {
  std::int64_t singles, multis;
  std::uint32_t ordered;  ///< entries of the multis
};

/// Lists the rows: singles, and multis with their start in `order`; prefetches the first `most`.
/// start[i] of the first entry of a multi is that start, and `loser` has the entries of all multis.
template <class Number, class Index, class Prefetch>
Listed list_rows(const Group<Index>& args, const Numbers<Number>& numbers, const Prefetch& prefetch,
                 std::int64_t most) {
  constexpr std::uint32_t kRun = 16;
  const GroupMemory<Index> m = args.memory;
  const Index* row = args.row;
  const std::uint32_t* out = args.out;
  const float* gain = args.gain;
  const auto n = static_cast<std::uint32_t>(args.count);
  std::uint32_t ordered = 0, listed = 0;
  std::int64_t singles = 0, multis = 0;
  for (std::uint32_t i = 0; i < n;) {
    const std::int64_t old_singles = singles, old_multis = multis;
    for (const std::uint32_t end = n - i < kRun ? n : i + kRun; i < end; ++i) {
      const std::uint32_t count = numbers.count[i];
      const bool is_first = numbers.first[i] == i;
      const bool is_single = is_first & (count == 1), is_multi = is_first & (count != 1);
      m.single_row[singles] = row[i];
      m.single_out[singles] = out[i];
      if (gain != nullptr) m.single_gain[singles] = gain[i];
      singles += is_single;
      numbers.loser[listed] = static_cast<Number>(i);
      listed += !is_single;
      numbers.start[i] = static_cast<Number>(ordered);
      m.multi_row[multis] = row[i];
      m.multi_start[multis] = ordered;
      multis += is_multi;
      ordered += is_multi ? count : 0;
    }
    if (singles + multis > most) continue;
    for (std::int64_t s = old_singles; s < singles; ++s) prefetch(m.single_row[s]);
    for (std::int64_t s = old_multis; s < multis; ++s) prefetch(m.multi_row[s]);
  }
  m.multi_start[multis] = ordered;
  return {singles, multis, ordered};
}

#if EMBERTABLE_LEVEL == 2
EMBERTABLE_INLINE __m512i load16(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
EMBERTABLE_INLINE __m512i load16(const std::uint16_t* p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
EMBERTABLE_INLINE void store16(std::uint32_t* p, __m512i a) { _mm512_storeu_si512(p, a); }
EMBERTABLE_INLINE void store16(std::uint16_t* p, __m512i a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
}

/// Does the same for 16 entries at a time.
template <class Number, class Prefetch>
Listed list_rows(const Group<std::uint32_t>& args, const Numbers<Number>& numbers,
                 const Prefetch& prefetch, std::int64_t most) {
  const GroupMemory<std::uint32_t> m = args.memory;
  const std::uint32_t *row = args.row, *out = args.out;
  const float* gain = args.gain;
  const auto n = static_cast<std::uint32_t>(args.count);
  const __m512i one = _mm512_set1_epi32(1), zero = _mm512_setzero_si512();
  __m512i number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::uint32_t ordered = 0, listed = 0;
  std::int64_t singles = 0, multis = 0;
  for (std::uint32_t i = 0; i < n;
       i += 16, number = _mm512_add_epi32(number, _mm512_set1_epi32(16))) {
    const __mmask16 there =
        n - i < 16 ? first_lanes(static_cast<int>(n - i)) : static_cast<__mmask16>(0xffff);
    const __m512i count = load16(numbers.count + i);
    const __m512i rows = _mm512_maskz_loadu_epi32(there, row + i);
    const __m512i outs = _mm512_maskz_loadu_epi32(there, out + i);
    const __mmask16 firsts = _mm512_mask_cmpeq_epi32_mask(there, load16(numbers.first + i), number);
    const __mmask16 single = _mm512_mask_cmpeq_epi32_mask(firsts, count, one);
    const auto multi = static_cast<__mmask16>(firsts & ~single);

    _mm512_storeu_si512(m.single_row + singles, _mm512_maskz_compress_epi32(single, rows));
    _mm512_storeu_si512(m.single_out + singles, _mm512_maskz_compress_epi32(single, outs));
    if (gain != nullptr)
      _mm512_storeu_ps(m.single_gain + singles,
                       _mm512_maskz_compress_ps(single, _mm512_maskz_loadu_ps(there, gain + i)));
    singles += __builtin_popcount(single);

    const auto other = static_cast<__mmask16>(there & ~single);
    store16(numbers.loser + listed, _mm512_maskz_compress_epi32(other, number));
    listed += static_cast<std::uint32_t>(__builtin_popcount(other));

    const __m512i counted = _mm512_maskz_mov_epi32(multi, count);
    // Sums over lanes 0 to l.
    __m512i sums = _mm512_add_epi32(counted, _mm512_alignr_epi32(counted, zero, 15));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 14));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 12));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 8));
    const __m512i start = _mm512_add_epi32(_mm512_sub_epi32(sums, counted),
                                           _mm512_set1_epi32(static_cast<int>(ordered)));
    store16(numbers.start + i, start);
    _mm512_storeu_si512(m.multi_row + multis, _mm512_maskz_compress_epi32(multi, rows));
    _mm512_storeu_si512(m.multi_start + multis, _mm512_maskz_compress_epi32(multi, start));
    multis += __builtin_popcount(multi);
    ordered += static_cast<std::uint32_t>(_mm_extract_epi32(_mm512_extracti32x4_epi32(sums, 3), 3));

    if (singles + multis > most) continue;
    for (std::uint32_t left = firsts; left != 0; left &= left - 1)
      prefetch(row[i + __builtin_ctz(left)]);
  }
  m.multi_start[multis] = ordered;
  return {singles, multis, ordered};
}
#endif

#if EMBERTABLE_LEVEL == 1
/// For each set of 8 lanes: the numbers of its lanes, rising, then zeros.
struct LanesOfSet {
  alignas(64) std::uint8_t lane[256][8] = {};

  constexpr LanesOfSet() {
    for (int set = 0; set < 256; ++set)
      for (int l = 0, to = 0; l < 8; ++l)
        if ((set >> l & 1) != 0) lane[set][to++] = static_cast<std::uint8_t>(l);
  }
};
inline constexpr LanesOfSet kLanesOfSet;

EMBERTABLE_INLINE __m256i load8(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
EMBERTABLE_INLINE __m256i load8(const std::uint16_t* p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
EMBERTABLE_INLINE void store8(void* p, __m256i a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), a);
}
EMBERTABLE_INLINE void store8(std::uint16_t* p, __m256i a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}
/// Reads the first n of 8 numbers; the others are not touched.
EMBERTABLE_INLINE __m256i load8_part(const void* p, std::uint32_t n) {
  return n >= 8
             ? load8(p)
             : _mm256_maskload_epi32(static_cast<const int*>(p), first_lanes(static_cast<int>(n)));
}
/// Returns the set of the lanes whose top bit is set.
EMBERTABLE_INLINE std::uint32_t set_of(__m256i lanes) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}
/// Returns the permutation that moves the lanes of a set to the front.
EMBERTABLE_INLINE __m256i to_front(std::uint32_t set) {
  return _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLanesOfSet.lane[set])));
}
/// Returns sums over lanes 0 to l.
EMBERTABLE_INLINE __m256i running_sums(__m256i a) {
  a = _mm256_add_epi32(a, _mm256_slli_si256(a, 4));
  a = _mm256_add_epi32(a, _mm256_slli_si256(a, 8));
  const __m256i of_low_half = _mm256_permutevar8x32_epi32(a, _mm256_set1_epi32(3));
  return _mm256_add_epi32(a, _mm256_blend_epi32(_mm256_setzero_si256(), of_low_half, 0xF0));
}

/// Does the same for 8 entries at a time.
template <class Number, class Prefetch>
Listed list_rows(const Group<std::uint32_t>& args, const Numbers<Number>& numbers,
                 const Prefetch& prefetch, std::int64_t most) {
  const GroupMemory<std::uint32_t> m = args.memory;
  const std::uint32_t *row = args.row, *out = args.out;
  const float* gain = args.gain;
  const auto n = static_cast<std::uint32_t>(args.count);
  __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  std::uint32_t ordered = 0, listed = 0;
  std::int64_t singles = 0, multis = 0;
  for (std::uint32_t i = 0; i < n;
       i += 8, number = _mm256_add_epi32(number, _mm256_set1_epi32(8))) {
    const __m256i count = load8(numbers.count + i), rows = load8_part(row + i, n - i),
                  outs = load8_part(out + i, n - i);
    const __m256i there = first_lanes(n - i < 8 ? static_cast<int>(n - i) : 8);
    const __m256i firsts =
        _mm256_and_si256(there, _mm256_cmpeq_epi32(load8(numbers.first + i), number));
    const __m256i one_each = _mm256_cmpeq_epi32(count, _mm256_set1_epi32(1));
    const __m256i several = _mm256_andnot_si256(one_each, firsts);
    const std::uint32_t first = set_of(firsts), multi = set_of(several), single = first ^ multi;

    const __m256i singles_first = to_front(single), multis_first = to_front(multi);
    store8(m.single_row + singles, _mm256_permutevar8x32_epi32(rows, singles_first));
    store8(m.single_out + singles, _mm256_permutevar8x32_epi32(outs, singles_first));
    if (gain != nullptr)
      store8(m.single_gain + singles,
             _mm256_permutevar8x32_epi32(load8_part(gain + i, n - i), singles_first));
    singles += __builtin_popcount(single);

    const std::uint32_t other = set_of(there) & ~single;
    store8(numbers.loser + listed, _mm256_permutevar8x32_epi32(number, to_front(other)));
    listed += static_cast<std::uint32_t>(__builtin_popcount(other));

    const __m256i counted = _mm256_and_si256(several, count), sums = running_sums(counted);
    const __m256i start = _mm256_add_epi32(_mm256_sub_epi32(sums, counted),
                                           _mm256_set1_epi32(static_cast<int>(ordered)));
    store8(numbers.start + i, start);
    store8(m.multi_row + multis, _mm256_permutevar8x32_epi32(rows, multis_first));
    store8(m.multi_start + multis, _mm256_permutevar8x32_epi32(start, multis_first));
    multis += __builtin_popcount(multi);
    ordered += static_cast<std::uint32_t>(_mm256_extract_epi32(sums, 7));

    if (singles + multis > most) continue;
    for (std::uint32_t left = first; left != 0; left &= left - 1)
      prefetch(row[i + static_cast<std::uint32_t>(__builtin_ctz(left))]);
  }
  m.multi_start[multis] = ordered;
  return {singles, multis, ordered};
}
#endif

/// Calls the body with the number of lines of a record, if it is kLines or one of kOthers.
template <int kLines, int... kOthers, class Number, class Index>
Listed list_rows_of(const Group<Index>& args, const Numbers<Number>& numbers,
                    const RowPrefetch& prefetch, std::int64_t most) {
  if (PlainRowPrefetch<kLines>::fits(prefetch))
    return list_rows(args, numbers, PlainRowPrefetch<kLines>(prefetch), most);
  if constexpr (sizeof...(kOthers) > 0)
    return list_rows_of<kOthers...>(args, numbers, prefetch, most);
  else
    return list_rows(args, numbers, prefetch, most);
}

template <class Number, class Index>
GroupedEntries<Index> group_by(const Group<Index>& args) {
  const GroupMemory<Index>& m = args.memory;
  const Numbers<Number> numbers(m);
  const auto n = static_cast<std::uint32_t>(args.count);
  const std::uint32_t* out = args.out;
  const float* gain = args.gain;
  find_first_entries(args, numbers);

  const Number *first = numbers.first, *start = numbers.start, *entry = numbers.loser;
  Number *rank = numbers.hash, *count = numbers.count;
  for (std::uint32_t i = 0; i < n; ++i) count[i] = 0;
  for (std::uint32_t i = 0; i < n; ++i) rank[i] = count[first[i]]++;
  const RowPrefetch prefetch(args.rows, args.to_level2);
  const Listed list = list_rows_of<1, 2, 4, 8, 16, 0>(args, numbers, prefetch,
                                                      args.prefetched_bytes / prefetch.bytes());
  std::uint32_t* order = m.order;
  for (std::uint32_t k = 0; k < list.ordered; ++k) {
    const std::uint32_t i = entry[k];
    order[std::uint32_t{start[first[i]]} + rank[i]] = out[i];
  }
  if (gain != nullptr) {
    float* order_gain = m.order_gain;
    for (std::uint32_t k = 0; k < list.ordered; ++k) {
      const std::uint32_t i = entry[k];
      order_gain[std::uint32_t{start[first[i]]} + rank[i]] = gain[i];
    }
  }
  GroupedEntries<Index> grouped;
  grouped.single_row = m.single_row;
  grouped.single_out = m.single_out;
  grouped.singles = list.singles;
  grouped.multi_row = m.multi_row;
  grouped.multi_start = m.multi_start;
  grouped.multis = list.multis;
  grouped.order = m.order;
  if (gain != nullptr) {
    grouped.single_gain = m.single_gain;
    grouped.order_gain = m.order_gain;
  }
  return grouped;
}

template <class Index>
GroupedEntries<Index> group(const Group<Index>& args) {
  constexpr std::int64_t kMostCounted = (1 << 16) - 1;   // entries of one row
  if constexpr (sizeof(Index) == sizeof(std::uint32_t))  // wider rows are rare
    if (args.count <= kMostCounted) return group_by<std::uint16_t>(args);
  return group_by<std::uint32_t>(args);
}

template <class Index>
void find_first(const Group<Index>& args) {
  find_first_entries(args, Numbers<std::uint32_t>(args.memory));
}

template <class Index>
void take_apart(const TakeApart<Index>& args) {
  const UpdateEntry<Index>* entry = args.entry;
  Index* row = args.row;
  std::uint32_t* out = args.out;
  for (std::int64_t i = 0; i < args.count; ++i) {
    row[i] = entry[i].row;
    out[i] = entry[i].out;
  }
}
