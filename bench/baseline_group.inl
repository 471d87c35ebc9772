// Grouping the entries of a bucket by row, without a store whose address hangs on the load before
// it. Included inside a region with AVX-512.

/// first[i] = the first entry with the same row as entry i; count[i] = 0. By rounds: every entry
/// writes its number into the slot of its row's hash, backwards, so that the first stays; who finds
/// another row there goes to the next round with another hash. Nothing is cleared and no branch is
/// to be guessed.
inline void find_first_of_row(const Grouping& grouping, const std::uint32_t* row, std::uint32_t n) {
  std::uint32_t slots = 64;
  while (slots < 2 * n) slots <<= 1;
  const int shift = 32 - __builtin_ctz(slots);
  std::uint32_t* const slot = grouping.slot;
  std::uint32_t* const hash = grouping.hash;
  std::uint32_t* const first = grouping.first;
  std::uint32_t* const count = grouping.count;
  std::uint32_t* const loser = grouping.loser;

  std::uint32_t losers = 0;
  for (std::uint32_t i = 0; i < n; ++i) hash[i] = (row[i] * 0x9E3779B1u) >> shift;
  for (std::uint32_t i = n; i-- > 0;) slot[hash[i]] = i;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t found = slot[hash[i]];
    first[i] = found;
    count[i] = 0;
    loser[losers] = i;
    losers += row[found] != row[i];
  }
  for (std::uint32_t factor = 0x85EBCA6Bu; losers != 0; factor = factor * 5 + 2) {
    const std::uint32_t left = losers;
    losers = 0;
    for (std::uint32_t j = 0; j < left; ++j) hash[j] = (row[loser[j]] * factor) >> shift;
    for (std::uint32_t j = left; j-- > 0;) slot[hash[j]] = loser[j];
    for (std::uint32_t j = 0; j < left; ++j) {
      const std::uint32_t i = loser[j];
      const std::uint32_t found = slot[hash[j]];
      first[i] = found;
      loser[losers] = i;
      losers += row[found] != row[i];
    }
  }
}

/// Sum of lanes 0..l in lane l.
EMBERTABLE_BENCH_INLINE __m512i running_sum(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
  return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

/// Splits the rows into singles and multiples, gives every multiple its place in `order`, and
/// prefetches all.
template <int kDim>
inline void place_rows(Grouping& grouping, const std::uint32_t* row, const std::uint32_t* sample,
                       std::uint32_t n, const TableRows& table) {
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i behind_order = _mm512_set1_epi32(static_cast<int>(n));
  __m512i number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::uint32_t singles = 0;
  std::uint32_t multiples = 0;
  std::uint32_t placed = 0;
  for (std::uint32_t i = 0; i < n; i += 16) {
    const auto valid = static_cast<__mmask16>(n - i >= 16 ? 0xffffu : (1u << (n - i)) - 1);
    const __mmask16 firsts =
        _mm512_mask_cmpeq_epi32_mask(valid, _mm512_loadu_si512(grouping.first + i), number);
    const __m512i count = _mm512_loadu_si512(grouping.count + i);
    const __m512i rows = _mm512_loadu_si512(row + i);
    const __mmask16 is_single = _mm512_mask_cmpeq_epi32_mask(firsts, count, one);
    const auto is_multiple = static_cast<__mmask16>(firsts & ~is_single);

    _mm512_storeu_si512(grouping.single_row + singles,
                        _mm512_maskz_compress_epi32(is_single, rows));
    _mm512_storeu_si512(grouping.single_sample + singles,
                        _mm512_maskz_compress_epi32(is_single, _mm512_loadu_si512(sample + i)));
    singles += static_cast<std::uint32_t>(__builtin_popcount(is_single));

    const __m512i taken = _mm512_maskz_mov_epi32(is_multiple, count);
    const __m512i through = running_sum(taken);
    const __m512i start = _mm512_add_epi32(_mm512_sub_epi32(through, taken),
                                           _mm512_set1_epi32(static_cast<int>(placed)));
    _mm512_storeu_si512(grouping.start + i,
                        _mm512_mask_mov_epi32(behind_order, is_multiple, start));
    _mm512_storeu_si512(grouping.multiple_row + multiples,
                        _mm512_maskz_compress_epi32(is_multiple, rows));
    _mm512_storeu_si512(grouping.multiple_start + multiples,
                        _mm512_maskz_compress_epi32(is_multiple, start));
    multiples += static_cast<std::uint32_t>(__builtin_popcount(is_multiple));
    placed +=
        static_cast<std::uint32_t>(_mm_extract_epi32(_mm512_extracti32x4_epi32(through, 3), 3));

    for (std::uint32_t bits = firsts; bits != 0; bits &= bits - 1) {
      prefetch_to_update<kDim>(table, row[i + static_cast<std::uint32_t>(__builtin_ctz(bits))]);
    }
    number = _mm512_add_epi32(number, _mm512_set1_epi32(16));
  }
  grouping.multiple_start[multiples] = placed;
  grouping.singles = singles;
  grouping.multiples = multiples;
}

template <int kDim>
inline void group(Grouping& grouping, const std::uint32_t* row, const std::uint32_t* sample,
                  std::uint32_t n, const TableRows& table) {
  find_first_of_row(grouping, row, n);
  const std::uint32_t* const first = grouping.first;
  std::uint32_t* const count = grouping.count;
  std::uint32_t* const rank = grouping.hash;  // the hashes are done with
  for (std::uint32_t i = 0; i < n; ++i) rank[i] = count[first[i]]++;
  place_rows<kDim>(grouping, row, sample, n, table);
  if (grouping.multiples == 0) return;
  const std::uint32_t* const start = grouping.start;
  std::uint32_t* const order = grouping.order;
  for (std::uint32_t i = 0; i < n; ++i) order[start[first[i]] + rank[i]] = sample[i];
}
