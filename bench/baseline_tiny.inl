// Tables so small that every row has an accumulator. Included inside a region with AVX-512.

/// Folds the lanes of 16 vectors: lane i of the result is fold(x[i]), the same additions in the
/// same order.
EMBERTABLE_BENCH_INLINE __m512 fold16(const __m512* x) {
  const __m512i halves_low =
      _mm512_setr_epi32(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  const __m512i halves_high =
      _mm512_setr_epi32(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  __m512 eight[8];  // two rows of 8 lanes each
  __m512 four[4];   // four rows of 4
  __m512 two[2];    // eight rows of 2
  for (int i = 0; i < 8; ++i) {
    eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x44),
                             _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xEE));
  }
  for (int i = 0; i < 4; ++i) {
    four[i] = _mm512_add_ps(_mm512_permutex2var_ps(eight[2 * i], halves_low, eight[2 * i + 1]),
                            _mm512_permutex2var_ps(eight[2 * i], halves_high, eight[2 * i + 1]));
  }
  for (int i = 0; i < 2; ++i) {
    two[i] = _mm512_add_ps(_mm512_shuffle_ps(four[2 * i], four[2 * i + 1], 0x44),
                           _mm512_shuffle_ps(four[2 * i], four[2 * i + 1], 0xEE));
  }
  const __m512 folded = _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88),
                                      _mm512_shuffle_ps(two[0], two[1], 0xDD));
  return _mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), folded);
}

/// Up to 16 rows with their gradients, by address.
struct RowTile {
  float* row[16];
  float* slot[16];
  const float* gradient[16];
  int rows;
};

/// The rule of apply_rule for a whole tile, root and division in one vector each.
template <int kDim>
inline void apply_rule_to_tile(const RowTile& tile, const Rates& rates) {
  __m512 lanes[16];
  alignas(64) float slot[16] = {};
  alignas(64) float step[16];
  for (int i = 0; i < tile.rows; ++i) {
    __m512 gradient[kDim / 16];
    load<kDim>(gradient, tile.gradient[i]);
    lanes[i] = squares<kDim>(gradient);
    slot[i] = *tile.slot[i];
  }
  for (int i = tile.rows; i < 16; ++i) lanes[i] = _mm512_setzero_ps();
  const __m512 slots = _mm512_add_ps(_mm512_load_ps(slot),
                                     _mm512_mul_ps(fold16(lanes), _mm512_set1_ps(1.0f / kDim)));
  _mm512_store_ps(slot, slots);
  _mm512_store_ps(
      step, _mm512_div_ps(_mm512_set1_ps(rates.learning_rate),
                          _mm512_add_ps(_mm512_sqrt_ps(slots), _mm512_set1_ps(rates.epsilon))));
  for (int i = 0; i < tile.rows; ++i) {
    *tile.slot[i] = slot[i];
    float* const x = tile.row[i];
    for (int v = 0; v < kDim / 16; ++v) {
      const __m512 change =
          _mm512_mul_ps(_mm512_set1_ps(step[i]), _mm512_loadu_ps(tile.gradient[i] + v * 16));
      _mm512_storeu_ps(x + v * 16, _mm512_sub_ps(_mm512_loadu_ps(x + v * 16), change));
    }
  }
}

/// Adds every sample's gradients to the accumulators of its rows, in order. They start at -0: -0 +
/// x is x, bit for bit.
template <int kDim>
inline void accumulate(const TinyItem& item, float* const* sums, std::uint32_t* const* touched) {
  const int tables = item.count;
  const std::uint32_t* row[kMostTinyTables];
  float* sum[kMostTinyTables];
  std::uint32_t* mark[kMostTinyTables];
  for (int t = 0; t < tables; ++t) {
    row[t] = item.row[t];
    sum[t] = sums[t];
    mark[t] = touched[t];
  }
  const std::int32_t samples = item.samples;
  const Gradients from = item.gradients;
  for (std::int32_t s = 0; s < samples; ++s) {
    const float* gradient = from.base + static_cast<std::size_t>(s) * from.stride;
    if (s + static_cast<std::int32_t>(kGradientsAhead) < samples) {
      const float* const ahead = gradient + kGradientsAhead * from.stride;
      for (int line = 0; line < tables * kDim / 16; ++line) {
        __builtin_prefetch(ahead + line * 16, 0, 3);
      }
    }
    for (int t = 0; t < tables; ++t, gradient += kDim) {
      const std::uint32_t r = row[t][s];
      mark[t][r] = 1;
      float* const to = sum[t] + std::size_t{r} * kDim;
      for (int v = 0; v < kDim / 16; ++v) {
        _mm512_storeu_ps(to + v * 16, _mm512_add_ps(_mm512_loadu_ps(to + v * 16),
                                                    _mm512_loadu_ps(gradient + v * 16)));
      }
    }
  }
}

template <int kDim>
inline void update_tiny(Grouping& grouping, const TinyItem& item, const Rates& rates) {
  float* sums[kMostTinyTables];
  std::uint32_t* touched[kMostTinyTables];
  std::size_t rows = 0;
  for (int t = 0; t < item.count; ++t) {
    sums[t] = grouping.sums + rows * kDim;
    touched[t] = grouping.touched + rows;
    rows += item.tables[t].num_rows;
  }
  for (std::size_t i = 0; i < rows * kDim; i += 16) {
    _mm512_storeu_ps(grouping.sums + i, _mm512_set1_ps(-0.0f));
  }
  for (std::size_t r = 0; r < rows; ++r) grouping.touched[r] = 0;
  accumulate<kDim>(item, sums, touched);

  for (int t = 0; t < item.count; ++t) {
    const TableRows& table = item.tables[t];
    RowTile tile;
    tile.rows = 0;
    for (std::size_t r = 0; r < table.num_rows; ++r) {
      tile.row[tile.rows] = table.rows + r * kDim;
      tile.slot[tile.rows] = table.slots + r;
      tile.gradient[tile.rows] = sums[t] + r * kDim;
      tile.rows += static_cast<int>(touched[t][r]);
      if (tile.rows < 16) continue;
      apply_rule_to_tile<kDim>(tile, rates);
      tile.rows = 0;
    }
    if (tile.rows > 0) apply_rule_to_tile<kDim>(tile, rates);
  }
}
