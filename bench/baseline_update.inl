// A row's gradients summed in registers, and the rule applied while they are there.
// Included inside a region with AVX-512.

/// Row-wise Adagrad: slot += mean of the squares; row -= learning rate / (root of slot + epsilon) *
/// gradient.
template <int kDim>
EMBERTABLE_BENCH_INLINE void apply_rule(const TableRows& table, std::uint32_t row,
                                        const __m512* gradient, const Rates& rates) {
  const float slot = table.slots[row] + fold(squares<kDim>(gradient)) * (1.0f / kDim);
  table.slots[row] = slot;
  const __m512 step = _mm512_set1_ps(rates.learning_rate / (square_root(slot) + rates.epsilon));
  float* const x = table.rows + std::size_t{row} * kDim;
  for (int v = 0; v < kDim / 16; ++v) {
    _mm512_storeu_ps(x + v * 16,
                     _mm512_sub_ps(_mm512_loadu_ps(x + v * 16), _mm512_mul_ps(step, gradient[v])));
  }
}

/// The gradients of the samples order[k..end), in this order and one sum.
template <int kDim>
EMBERTABLE_BENCH_INLINE void sum_plain(__m512* sum, const Gradients& gradients,
                                       const std::uint32_t* order, std::uint32_t k,
                                       std::uint32_t end, std::uint32_t total) {
  load<kDim>(sum, gradients.base + order[k] * gradients.stride);
  for (++k; k < end; ++k) {
    if (k + kGradientsAhead < total) {
      prefetch_to_read<kDim>(gradients.base + order[k + kGradientsAhead] * gradients.stride);
    }
    add<kDim>(sum, gradients.base + order[k] * gradients.stride);
  }
}

/// The same with a sum for each piece of kPieceSamples samples, the sums added left to right.
template <int kDim>
EMBERTABLE_BENCH_INLINE void sum_in_pieces(__m512* sum, const Gradients& gradients,
                                           const std::uint32_t* order, std::uint32_t k,
                                           std::uint32_t end, std::uint32_t total) {
  __m512 earlier[kDim / 16];
  bool has_earlier = false;
  std::uint32_t piece = order[k] / kPieceSamples;
  load<kDim>(sum, gradients.base + order[k] * gradients.stride);
  for (++k; k < end; ++k) {
    if (k + kGradientsAhead < total) {
      prefetch_to_read<kDim>(gradients.base + order[k + kGradientsAhead] * gradients.stride);
    }
    const float* const gradient = gradients.base + order[k] * gradients.stride;
    if (order[k] / kPieceSamples == piece) {
      add<kDim>(sum, gradient);
      continue;
    }
    piece = order[k] / kPieceSamples;
    for (int v = 0; v < kDim / 16; ++v) {
      earlier[v] = has_earlier ? _mm512_add_ps(earlier[v], sum[v]) : sum[v];
    }
    has_earlier = true;
    load<kDim>(sum, gradient);
  }
  if (!has_earlier) return;
  for (int v = 0; v < kDim / 16; ++v) sum[v] = _mm512_add_ps(earlier[v], sum[v]);
}

template <int kDim>
inline void update(const Grouping& grouping, const TableRows& table, const Gradients& gradients,
                   bool pieces, const Rates& rates_in) {
  const std::uint32_t singles = grouping.singles;
  const std::uint32_t multiples = grouping.multiples;
  const std::uint32_t* const single_row = grouping.single_row;
  const std::uint32_t* const single_sample = grouping.single_sample;
  const std::uint32_t* const multiple_row = grouping.multiple_row;
  const std::uint32_t* const start = grouping.multiple_start;
  const std::uint32_t* const order = grouping.order;
  const std::uint32_t total = start[multiples];
  const TableRows to = table;
  const Gradients from = gradients;
  const Rates rates = rates_in;
  __m512 sum[kDim / 16];

  for (std::uint32_t i = 0; i < kGradientsAhead && i < singles; ++i) {
    prefetch_to_read<kDim>(from.base + single_sample[i] * from.stride);
  }
  for (std::uint32_t i = 0; i < kUpdatesAhead && i < singles; ++i) {
    prefetch_to_update<kDim>(to, single_row[i]);
  }
  for (std::uint32_t i = 0; i < singles; ++i) {
    const std::uint32_t row_ahead = i + kUpdatesAhead;
    if (row_ahead < singles) {
      prefetch_to_update<kDim>(to, single_row[row_ahead]);
    } else if (row_ahead - singles < multiples) {
      prefetch_to_update<kDim>(to, multiple_row[row_ahead - singles]);
    }
    const std::uint32_t ahead = i + kGradientsAhead;
    if (ahead < singles) {
      prefetch_to_read<kDim>(from.base + single_sample[ahead] * from.stride);
    } else if (ahead - singles < total) {
      prefetch_to_read<kDim>(from.base + order[ahead - singles] * from.stride);
    }
    load<kDim>(sum, from.base + single_sample[i] * from.stride);
    apply_rule<kDim>(to, single_row[i], sum, rates);
  }
  for (std::uint32_t i = 0; i < multiples; ++i) {
    if (i + kUpdatesAhead < multiples) {
      prefetch_to_update<kDim>(to, multiple_row[i + kUpdatesAhead]);
    }
    const std::uint32_t k = start[i];
    if (k + kGradientsAhead < total) {
      prefetch_to_read<kDim>(from.base + order[k + kGradientsAhead] * from.stride);
    }
    if (pieces) {
      sum_in_pieces<kDim>(sum, from, order, k, start[i + 1], total);
    } else {
      sum_plain<kDim>(sum, from, order, k, start[i + 1], total);
    }
    apply_rule<kDim>(to, multiple_row[i], sum, rates);
  }
}

template <int kDim>
inline std::uint32_t sum(const Grouping& grouping, const Gradients& gradients, std::uint32_t* row,
                         float* sums) {
  __m512 x[kDim / 16];
  for (std::uint32_t i = 0; i < grouping.singles; ++i, sums += kDim) {
    *row++ = grouping.single_row[i];
    load<kDim>(x, gradients.base + grouping.single_sample[i] * gradients.stride);
    store<kDim>(sums, x);
  }
  const std::uint32_t* const start = grouping.multiple_start;
  const std::uint32_t total = start[grouping.multiples];
  for (std::uint32_t i = 0; i < grouping.multiples; ++i, sums += kDim) {
    *row++ = grouping.multiple_row[i];
    sum_plain<kDim>(x, gradients, grouping.order, start[i], start[i + 1], total);
    store<kDim>(sums, x);
  }
  return grouping.singles + grouping.multiples;
}
