// Hashes of many rows are computed by loops that compilers turn into vectors, before loops that
// read and write slots one by one.

/// Number of rows that are hashed at a time.
inline constexpr std::int64_t kHashed = 512;

template <class Index>
EMBERTABLE_INLINE void hash_slots(const Index* row, std::int64_t count, int bits,
                                  std::uint32_t* slot) {
  for (std::int64_t i = 0; i < count; ++i) slot[i] = once_slot(row[i], bits);
}

template <class Index>
void see_rows(const SeeRows<Index>& args) {
  alignas(64) std::uint32_t slot[kHashed];
  const OnceFilter filter = args.filter;
  for (std::int64_t begin = 0; begin < args.count; begin += kHashed) {
    const std::int64_t n = args.count - begin < kHashed ? args.count - begin : kHashed;
    hash_slots(args.row + begin, n, filter.bits, slot);
    for (std::int64_t i = 0; i < n; ++i) see_slot(filter, slot[i]);
  }
}

inline void join_filters(const JoinFilters& args) {
  const std::uint64_t* from = args.from;
  std::uint64_t* to = args.to;
  for (std::int64_t i = 0; i < args.count; ++i) to[i] |= from[i] | (to[i] & from[i]) << 32;
}

/// Writes ~0 for each slot that was seen again, else 0.
#if EMBERTABLE_LEVEL == 2
EMBERTABLE_INLINE void find_again(const OnceFilter& filter, const std::uint32_t* slot,
                                  std::int64_t count, std::uint32_t* again) {
  constexpr int kWordBytes = sizeof(*filter.word);
  const void* const upper = reinterpret_cast<const char*>(filter.word) + kWordBytes / 2;
  const __m512i one = _mm512_set1_epi32(1), in_word = _mm512_set1_epi32(31);
  for (std::int64_t i = 0; i < count; i += 16) {
    const auto there = static_cast<__mmask16>(count - i < 16 ? (1 << (count - i)) - 1 : 0xffff);
    const __m512i slots = _mm512_maskz_loadu_epi32(there, slot + i);
    const __m512i words = _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), there, _mm512_srli_epi32(slots, 5), upper, kWordBytes);
    const __m512i bit = _mm512_sllv_epi32(one, _mm512_and_si512(slots, in_word));
    _mm512_storeu_si512(again + i, _mm512_movm_epi32(_mm512_test_epi32_mask(words, bit)));
  }
}
#else
EMBERTABLE_INLINE void find_again(const OnceFilter& filter, const std::uint32_t* slot,
                                  std::int64_t count, std::uint32_t* again) {
  for (std::int64_t i = 0; i < count; ++i) again[i] = seen_again(filter, slot[i]) ? ~0u : 0u;
}
#endif

template <class Index>
void set_once_apart(const SetOnceApart<Index>& args) {
  alignas(64) std::uint32_t slot[kHashed], list[kHashed], again[kHashed];
  const OnceFilter filter = args.filter;
  const RowRanges ranges = args.ranges;
  const std::uint32_t buckets = args.buckets,
                      lists = buckets + static_cast<std::uint32_t>(ranges.count);
  std::uint32_t* counts = args.counts;
  FewCounts few;
  std::uint32_t once = 0;
  for (std::int64_t begin = 0; begin < args.count; begin += kHashed) {
    const Index* row = args.row + begin;
    std::uint16_t* to = args.bucket + begin;
    const std::int64_t n = args.count - begin < kHashed ? args.count - begin : kHashed;
    hash_slots(row, n, filter.bits, slot);
    for (std::int64_t i = 0; i < n; ++i) list[i] = bucket_of(row[i], buckets);
    find_again(filter, slot, n, again);
    // The rows of a single range are not counted in its counter, which would wait for its last
    // store.
    if (lists > FewCounts::kFew && ranges.count == 1) {
      for (std::int64_t i = 0; i < n; ++i) counts[list[i]] -= again[i];
      for (std::int64_t i = 0; i < n; ++i) once += again[i] + 1;
    }
    for (std::int64_t i = 0; i < n; ++i)
      list[i] = (list[i] & again[i]) | ((buckets + ranges.of(row[i])) & ~again[i]);
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::uint16_t>(list[i]);
    if (lists <= FewCounts::kFew)
      few.add(list, n);
    else if (ranges.count > 1)
      for (std::int64_t i = 0; i < n; ++i) ++counts[list[i]];
  }
  if (lists <= FewCounts::kFew)
    for (std::uint32_t l = 0; l < lists; ++l) counts[l] += few.of(l);
  counts[buckets] += once;
}
