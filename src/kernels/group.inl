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

/// Sets first[i] to the first entry with the row of entry i, and count[i] to 0.
template <class Index>
EMBERTABLE_INLINE void find_first_entries(const Group<Index>& args) {
  const Index* row = args.row;
  const auto n = static_cast<std::uint32_t>(args.count);
  const GroupMemory<Index>& m = args.memory;
  std::uint32_t *hash = m.hash, *table = m.table, *first = m.first, *count = m.count,
                *loser = m.loser;
  const int bits = __builtin_ctzll(static_cast<std::uint64_t>(m.table_size(args.count)));

  // The factor is odd and stays odd.
  std::uint64_t factor = sizeof(Index) == 4 ? 0x9E3779B1u : 0x9E3779B97F4A7C15u;
  std::uint32_t losers = 0;
  for (std::uint32_t i = 0; i < n; ++i) hash[i] = hash_of(row[i], factor, bits);
  for (std::uint32_t i = n; i-- > 0;) table[hash[i]] = i;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t winner = table[hash[i]];
    first[i] = winner;
    count[i] = 0;
    loser[losers] = i;
    losers += row[winner] != row[i];
  }
  while (losers > 0) {
    const std::uint32_t tried = losers;
    factor = factor * 5 + 2;
    losers = 0;
    for (std::uint32_t j = 0; j < tried; ++j) hash[j] = hash_of(row[loser[j]], factor, bits);
    for (std::uint32_t j = tried; j-- > 0;) table[hash[j]] = loser[j];
    for (std::uint32_t j = 0; j < tried; ++j) {
      const std::uint32_t i = loser[j], winner = table[hash[j]];
      first[i] = winner;
      loser[losers] = i;
      losers += row[winner] != row[i];
    }
  }
}

struct Listed {
  std::int64_t singles, multis;
};

/// Lists the rows: singles, and multis with their start in `order`; prefetches the first `most`.
/// start[i] of the first entry of a multi is that start, of other entries the number of entries:
/// where what is not ordered may be written.
template <class Index, class Prefetch>
Listed list_rows(const Group<Index>& args, const Prefetch& prefetch, std::int64_t most) {
  constexpr std::uint32_t kRun = 16;
  const GroupMemory<Index> m = args.memory;
  const Index* row = args.row;
  const std::uint32_t* out = args.out;
  const float* gain = args.gain;
  const auto n = static_cast<std::uint32_t>(args.count);
  std::uint32_t ordered = 0;
  std::int64_t singles = 0, multis = 0;
  for (std::uint32_t i = 0; i < n;) {
    const std::int64_t old_singles = singles, old_multis = multis;
    for (const std::uint32_t end = n - i < kRun ? n : i + kRun; i < end; ++i) {
      const bool is_first = m.first[i] == i;
      const bool is_single = is_first & (m.count[i] == 1), is_multi = is_first & (m.count[i] != 1);
      m.single_row[singles] = row[i];
      m.single_out[singles] = out[i];
      if (gain != nullptr) m.single_gain[singles] = gain[i];
      singles += is_single;
      m.start[i] = is_multi ? ordered : n;
      m.multi_row[multis] = row[i];
      m.multi_start[multis] = ordered;
      multis += is_multi;
      ordered += is_multi ? m.count[i] : 0;
    }
    if (singles + multis > most) continue;
    for (std::int64_t s = old_singles; s < singles; ++s) prefetch(m.single_row[s]);
    for (std::int64_t s = old_multis; s < multis; ++s) prefetch(m.multi_row[s]);
  }
  m.multi_start[multis] = ordered;
  return {singles, multis};
}

#if EMBERTABLE_LEVEL == 2
/// Does the same for 16 entries at a time.
template <class Prefetch>
Listed list_rows(const Group<std::uint32_t>& args, const Prefetch& prefetch, std::int64_t most) {
  const GroupMemory<std::uint32_t> m = args.memory;
  const std::uint32_t *row = args.row, *out = args.out;
  const float* gain = args.gain;
  const auto n = static_cast<std::uint32_t>(args.count);
  const __m512i one = _mm512_set1_epi32(1), zero = _mm512_setzero_si512();
  const __m512i unordered = _mm512_set1_epi32(static_cast<int>(n));
  __m512i number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::uint32_t ordered = 0;
  std::int64_t singles = 0, multis = 0;
  for (std::uint32_t i = 0; i < n;
       i += 16, number = _mm512_add_epi32(number, _mm512_set1_epi32(16))) {
    const __mmask16 there =
        n - i < 16 ? first_lanes(static_cast<int>(n - i)) : static_cast<__mmask16>(0xffff);
    const __m512i count = _mm512_maskz_loadu_epi32(there, m.count + i);
    const __m512i rows = _mm512_maskz_loadu_epi32(there, row + i);
    const __m512i outs = _mm512_maskz_loadu_epi32(there, out + i);
    const __mmask16 firsts =
        _mm512_mask_cmpeq_epi32_mask(there, _mm512_maskz_loadu_epi32(there, m.first + i), number);
    const __mmask16 single = _mm512_mask_cmpeq_epi32_mask(firsts, count, one);
    const auto multi = static_cast<__mmask16>(firsts & ~single);

    _mm512_storeu_si512(m.single_row + singles, _mm512_maskz_compress_epi32(single, rows));
    _mm512_storeu_si512(m.single_out + singles, _mm512_maskz_compress_epi32(single, outs));
    if (gain != nullptr)
      _mm512_storeu_ps(m.single_gain + singles,
                       _mm512_maskz_compress_ps(single, _mm512_maskz_loadu_ps(there, gain + i)));
    singles += __builtin_popcount(single);

    const __m512i counted = _mm512_maskz_mov_epi32(multi, count);
    // Sums over lanes 0 to l.
    __m512i sums = _mm512_add_epi32(counted, _mm512_alignr_epi32(counted, zero, 15));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 14));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 12));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 8));
    const __m512i start = _mm512_add_epi32(_mm512_sub_epi32(sums, counted),
                                           _mm512_set1_epi32(static_cast<int>(ordered)));
    _mm512_storeu_si512(m.start + i, _mm512_mask_mov_epi32(unordered, multi, start));
    _mm512_storeu_si512(m.multi_row + multis, _mm512_maskz_compress_epi32(multi, rows));
    _mm512_storeu_si512(m.multi_start + multis, _mm512_maskz_compress_epi32(multi, start));
    multis += __builtin_popcount(multi);
    ordered += static_cast<std::uint32_t>(_mm_extract_epi32(_mm512_extracti32x4_epi32(sums, 3), 3));

    if (singles + multis > most) continue;
    for (std::uint32_t left = firsts; left != 0; left &= left - 1)
      prefetch(row[i + __builtin_ctz(left)]);
  }
  m.multi_start[multis] = ordered;
  return {singles, multis};
}
#endif

/// Calls the body with the number of lines of a record, if it is kLines or one of kOthers.
template <int kLines, int... kOthers, class Index>
Listed list_rows_of(const Group<Index>& args, const RowPrefetch& prefetch, std::int64_t most) {
  if (PlainRowPrefetch<kLines>::fits(prefetch))
    return list_rows(args, PlainRowPrefetch<kLines>(prefetch), most);
  if constexpr (sizeof...(kOthers) > 0)
    return list_rows_of<kOthers...>(args, prefetch, most);
  else
    return list_rows(args, prefetch, most);
}

template <class Index>
Listed list_rows(const Group<Index>& args) {
  const RowPrefetch prefetch(args.rows);
  return list_rows_of<1, 2, 4, 8, 16, 0>(args, prefetch, args.prefetched_bytes / prefetch.bytes());
}

template <class Index>
GroupedEntries<Index> group(const Group<Index>& args) {
  const GroupMemory<Index>& m = args.memory;
  const auto n = static_cast<std::uint32_t>(args.count);
  const std::uint32_t* out = args.out;
  const float* gain = args.gain;
  find_first_entries(args);

  std::uint32_t *rank = m.hash, *count = m.count, *start = m.start, *order = m.order;
  const std::uint32_t* first = m.first;
  for (std::uint32_t i = 0; i < n; ++i) rank[i] = count[first[i]]++;
  const Listed list = list_rows(args);
  if (list.multis > 0) {
    for (std::uint32_t i = 0; i < n; ++i) order[start[first[i]] + rank[i]] = out[i];
    if (gain != nullptr) {
      float* order_gain = m.order_gain;
      for (std::uint32_t i = 0; i < n; ++i) order_gain[start[first[i]] + rank[i]] = gain[i];
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
void find_first(const Group<Index>& args) {
  find_first_entries(args);
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
