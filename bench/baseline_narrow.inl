// The caller's int64 ids into uint32 rows, checked and counted per bucket; and the scatter into the
// buckets. Included inside a region with AVX-512.

EMBERTABLE_BENCH_INLINE std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  return x ^ (x >> 15);
}

/// 16 neighbouring rows share a bucket, so that workers never write to one line of slots.
EMBERTABLE_BENCH_INLINE std::uint32_t bucket_of(std::uint32_t row, std::uint32_t buckets) {
  return static_cast<std::uint32_t>((std::uint64_t{mix(row >> 4)} * buckets) >> 32);
}

struct SplitCheck {
  bool rising;
  bool one_hot;
};

inline SplitCheck check_splits(const std::int64_t* splits, std::int32_t first, std::int32_t last) {
  const __m512i one = _mm512_set1_epi64(1);
  __mmask8 falls = 0;
  __mmask8 not_one = 0;
  std::int32_t s = first;
  for (; s + 8 <= last; s += 8) {
    const __m512i length =
        _mm512_sub_epi64(_mm512_loadu_si512(splits + s + 1), _mm512_loadu_si512(splits + s));
    falls |= _mm512_movepi64_mask(length);
    not_one |= _mm512_cmpneq_epi64_mask(length, one);
  }
  for (; s < last; ++s) {
    falls |= splits[s + 1] < splits[s];
    not_one |= splits[s + 1] - splits[s] != 1;
  }
  return {falls == 0, not_one == 0};
}

inline void narrow_splits(const std::int64_t* splits, std::int32_t first, std::int32_t last,
                          std::uint32_t* out) {
  std::int32_t s = first;
  for (; s + 8 <= last + 1; s += 8) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + s),
                        _mm512_cvtepi64_epi32(_mm512_loadu_si512(splits + s)));
  }
  for (; s <= last; ++s) out[s] = static_cast<std::uint32_t>(splits[s]);
}

/// False if an id is not 0 <= id < num_rows.
inline bool narrow_ids(const std::int64_t* ids, std::size_t count, std::uint64_t num_rows,
                       std::uint32_t* row) {
  const __m512i bound = _mm512_set1_epi64(static_cast<std::int64_t>(num_rows));
  __mmask8 outside = 0;
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512i x = _mm512_loadu_si512(ids + i);
    const __m512i y = _mm512_loadu_si512(ids + i + 8);
    outside |= _mm512_cmpge_epu64_mask(x, bound) | _mm512_cmpge_epu64_mask(y, bound);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + i), _mm512_cvtepi64_epi32(x));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + i + 8), _mm512_cvtepi64_epi32(y));
  }
  for (; i < count; ++i) {
    outside |= static_cast<std::uint64_t>(ids[i]) >= num_rows;
    row[i] = static_cast<std::uint32_t>(ids[i]);
  }
  return outside == 0;
}

inline void count_buckets(const std::uint32_t* row, std::size_t count, std::uint32_t buckets,
                          std::uint32_t* counts) {
  constexpr std::size_t kBlock = 512;
  alignas(64) std::uint32_t bucket[kBlock];
  for (std::uint32_t b = 0; b < buckets; ++b) counts[b] = 0;
  for (std::size_t i = 0; i < count; i += kBlock) {
    const std::size_t block = count - i < kBlock ? count - i : kBlock;
    for (std::size_t j = 0; j < block; ++j) bucket[j] = bucket_of(row[i + j], buckets);
    for (std::size_t j = 0; j < block; ++j) counts[bucket[j]]++;
  }
}

inline TileContent narrow_tile(const NarrowTile& tile) {
  const SplitCheck check = check_splits(tile.splits, tile.first, tile.last);
  const std::int64_t begin = tile.splits[tile.first];
  const std::int64_t end = tile.splits[tile.last];
  if (!check.rising || begin < 0 || end > tile.splits[tile.samples]) return TileContent::kBadSplits;
  if (!check.one_hot) narrow_splits(tile.splits, tile.first, tile.last, tile.split);
  const auto count = static_cast<std::size_t>(end - begin);
  std::uint32_t* const row = tile.row + begin;
  if (!narrow_ids(tile.ids + begin, count, tile.num_rows, row)) return TileContent::kBadId;
  if (tile.buckets > 1) count_buckets(row, count, tile.buckets, tile.counts);
  return check.one_hot ? TileContent::kOneHot : TileContent::kBags;
}

inline void scatter(const ScatterItem& item) {
  const std::uint32_t* const row = item.row;
  const std::uint32_t* const split = item.split;
  const std::uint32_t buckets = item.buckets;
  std::uint32_t* const cursors = item.cursors;
  std::uint64_t* const entries = item.entries;
  const auto put = [=](std::uint32_t r, std::int32_t sample) {
    entries[cursors[bucket_of(r, buckets)]++] = r | static_cast<std::uint64_t>(sample) << 32;
  };
  for (std::int32_t s = item.first; s < item.last; ++s) {
    if (split == nullptr) {
      put(row[s], s);
    } else if (buckets > 1) {
      for (std::uint32_t i = split[s]; i < split[s + 1]; ++i) put(row[i], s);
    } else {
      for (std::uint32_t i = split[s]; i < split[s + 1]; ++i) {
        item.sample[i] = static_cast<std::uint32_t>(s);
      }
    }
  }
}

inline void unpack(Grouping& grouping, const std::uint64_t* entries, std::uint32_t count) {
  std::uint32_t* const row = grouping.entry_row;
  std::uint32_t* const sample = grouping.entry_sample;
  for (std::uint32_t i = 0; i < count; ++i) {
    row[i] = static_cast<std::uint32_t>(entries[i]);
    sample[i] = static_cast<std::uint32_t>(entries[i] >> 32);
  }
}
