// Rows into activations. Included inside a region with AVX-512.

/// Rows that a gather prefetches ahead: 16 KiB of them, 16 to 64.
template <int kDim>
constexpr int kRowsAhead = kDim == 256 ? 16 : 64;

/// Bags of one table. A sample's sum starts with its first row; an empty one is +0.
template <int kDim>
inline void gather_bags(const GatherItem& item, const GatherItem* next) {
  const float* const rows = item.rows[0];
  const std::uint32_t* const row = item.row[0];
  const std::uint32_t* const split = item.split;
  const std::uint32_t end = split[item.last];

  const float* next_rows = rows;
  const std::uint32_t* next_row = row;
  std::size_t next_count = 0;
  if (next != nullptr && next->split != nullptr) {
    next_rows = next->rows[0];
    next_row = next->row[0] + next->split[next->first];
    next_count = next->split[next->last] - next->split[next->first];
  }

  std::uint32_t i = split[item.first];
  for (std::int32_t s = item.first; s < item.last; ++s) {
    const std::uint32_t sample_end = split[s + 1];
    float* const out = item.out + static_cast<std::size_t>(s) * item.stride;
    __m512 sum[kDim / 16];
    if (__builtin_expect(i == sample_end, 0)) {
      for (int v = 0; v < kDim / 16; ++v) _mm512_storeu_ps(out + v * 16, _mm512_setzero_ps());
      continue;
    }
    for (bool first = true; i < sample_end; ++i, first = false) {
      const std::uint32_t ahead = i + kRowsAhead<kDim>;
      if (__builtin_expect(ahead < end, 1)) {
        prefetch_to_read<kDim>(rows + std::size_t{row[ahead]} * kDim);
      } else if (ahead - end < next_count) {
        prefetch_to_read<kDim>(next_rows + std::size_t{next_row[ahead - end]} * kDim);
      }
      const float* const source = rows + std::size_t{row[i]} * kDim;
      if (first) {
        load<kDim>(sum, source);
      } else {
        add<kDim>(sum, source);
      }
    }
    store<kDim>(out, sum);
  }
}

/// One row a sample from each of several tables: the output is written in runs of tables * dim
/// floats.
template <int kDim>
inline void gather_one_hot(const GatherItem& item, const GatherItem* next) {
  const int tables = item.tables;
  const float* rows[kMostTablesAbreast];
  const std::uint32_t* row[kMostTablesAbreast];
  for (int t = 0; t < tables; ++t) {
    rows[t] = item.rows[t];
    row[t] = item.row[t];
  }
  const int samples_ahead = kRowsAhead<kDim> / tables > 1 ? kRowsAhead<kDim> / tables : 1;
  const std::int32_t last = item.last;
  if (next != nullptr && next->split != nullptr) next = nullptr;

  for (std::int32_t s = item.first; s < last; ++s) {
    const std::int32_t ahead = s + samples_ahead;
    if (ahead < last) {
      for (int t = 0; t < tables; ++t) {
        prefetch_to_read<kDim>(rows[t] + std::size_t{row[t][ahead]} * kDim);
      }
    } else if (next != nullptr && next->first + (ahead - last) < next->last) {
      const std::int32_t j = next->first + (ahead - last);
      for (int t = 0; t < next->tables; ++t) {
        prefetch_to_read<kDim>(next->rows[t] + std::size_t{next->row[t][j]} * kDim);
      }
    }
    float* out = item.out + static_cast<std::size_t>(s) * item.stride;
    for (int t = 0; t < tables; ++t, out += kDim) {
      __m512 x[kDim / 16];
      load<kDim>(x, rows[t] + std::size_t{row[t][s]} * kDim);
      store<kDim>(out, x);
    }
  }
}

template <int kDim>
inline void gather(const GatherItem& item, const GatherItem* next) {
  if (item.split == nullptr) {
    gather_one_hot<kDim>(item, next);
  } else {
    gather_bags<kDim>(item, next);
  }
}
