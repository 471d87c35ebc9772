// The loops of bare_loops.h. Part of a level body: see kernels/for_each_level.inl.

/// Adds the columns of a row to four separate sums, so that additions do not wait for each other.
struct AddColumns {
  const float* row;
  F16* sum;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 x[V];
    load_columns<V, kPart>(x, row + column, tail);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) sum[v % 4] = sum[v % 4] + x[v];
  }
};

struct ChangeColumns {
  float* record;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 x[V];
    load_columns<V, kPart>(x, record + column, tail);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) x[v] = x[v] + set1(1e-12f);
    store_columns<V, kPart>(record + column, x, tail);
  }
};

struct WriteColumns {
  float* out;
  const F16* sum;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 x[V];
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) x[v] = sum[v % 4];
    store_columns<V, kPart>(out + column, x, tail);
  }
};

EMBERTABLE_INLINE float sum_of_four(const F16* sum) {
  return sum16((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/// Visits all columns of a row. kFloats > 0 is their number, known to the compiler: a multiple of
/// 16, and of 64 above 64.
template <int kFloats, class Block>
EMBERTABLE_INLINE void for_each_column(std::int64_t floats, const Block& block) {
  if constexpr (kFloats == 0) {
    for_each_block(floats, block);
  } else if constexpr (kFloats <= 64) {
    block.template run<kFloats / 16, false>(0, 16);
  } else {
    EMBERTABLE_UNROLL
    for (int column = 0; column < kFloats; column += 64) block.template run<4, false>(column, 16);
  }
}

/// Visits all columns of what may have kFloats of them too.
template <int kFloats, class Block>
EMBERTABLE_INLINE void for_each_column_of(std::int64_t floats, const Block& block) {
  if constexpr (kFloats != 0) {
    if (floats == kFloats) return for_each_column<kFloats>(floats, block);
  }
  for_each_column<0>(floats, block);
}

/// Returns the cache lines of a record.
template <int kFloats>
EMBERTABLE_INLINE int lines_of_record(const float* records, std::size_t record_floats,
                                      std::size_t floats) {
  if (kFloats > 0) return kFloats / 16;
  return lines_of(records, static_cast<std::int64_t>(record_floats * 4),
                  static_cast<std::int64_t>(floats * 4));
}

template <int kDim>
EMBERTABLE_INLINE void prefetch_row(const bench::BareGather& part, std::size_t i, int lines) {
  const float* row = part.records + static_cast<std::size_t>(part.ids[i]) * part.record_floats;
  if (part.ahead.to_level2)
    prefetch_far<kDim / 16>(row, lines);
  else
    prefetch_read<kDim / 16>(row, lines);
}

template <int kDim>
float gather_dim(const bench::BareGather& part) {
  F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  const auto dim = static_cast<std::int64_t>(part.dim),
             out_dim = static_cast<std::int64_t>(part.out_dim);
  const int lines = lines_of_record<kDim>(part.records, part.record_floats, part.dim);
  float* out = part.out;
  std::size_t due = 0;  // output rows, in parts of `count`
  const std::size_t distance = part.ahead.rows;
  for (std::size_t i = 0; i < distance && i < part.count; ++i) prefetch_row<kDim>(part, i, lines);
  for (std::size_t i = 0; i < part.count; ++i) {
    if (i + distance < part.count) prefetch_row<kDim>(part, i + distance, lines);
    const float* row = part.records + static_cast<std::size_t>(part.ids[i]) * part.record_floats;
    for_each_column<kDim>(dim, AddColumns{row, sum});
    for (due += part.out_rows; due >= part.count; due -= part.count, out += out_dim)
      for_each_column_of<kDim>(out_dim, WriteColumns{out, sum});
  }
  return sum_of_four(sum);
}

template <int kFloats>
EMBERTABLE_INLINE void prefetch_record(const bench::BareUpdate& part, std::size_t i, int lines) {
  const std::size_t r = part.rows[i];
  if (part.ahead.to_level2) {
    prefetch_far<kFloats / 16>(part.records + r * part.record_floats, lines);
    for (std::size_t s = 0; s < part.num_row_slots; ++s) prefetch_far<1>(part.row_slots[s] + r, 1);
    return;
  }
  prefetch_write<kFloats / 16>(part.records + r * part.record_floats, lines);
  for (std::size_t s = 0; s < part.num_row_slots; ++s) prefetch_write<1>(part.row_slots[s] + r, 1);
}

template <int kFloats>
float update_floats(const bench::BareUpdate& part) {
  F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  const auto floats = static_cast<std::int64_t>(part.floats);
  const auto dim = static_cast<std::int64_t>(part.dim);
  const int lines = lines_of_record<kFloats>(part.records, part.record_floats, part.floats);
  const float* gradient = part.gradients;
  std::size_t due = 0;  // gradients, in parts of `count`
  const std::size_t distance = part.ahead.rows;
  for (std::size_t i = 0; i < distance && i < part.count; ++i)
    prefetch_record<kFloats>(part, i, lines);
  for (std::size_t i = 0; i < part.count; ++i) {
    if (i + distance < part.count) prefetch_record<kFloats>(part, i + distance, lines);
    const std::size_t r = part.rows[i];
    for_each_column<kFloats>(floats, ChangeColumns{part.records + r * part.record_floats});
    for (std::size_t s = 0; s < part.num_row_slots; ++s) part.row_slots[s][r] += 1e-12f;
    for (due += part.gradient_rows; due >= part.count; due -= part.count, gradient += dim)
      for_each_column_of<kFloats>(dim, AddColumns{gradient, sum});
  }
  return sum_of_four(sum);
}

/// Runs the loop for records of this many floats: as a number that the compiler knows if it is a
/// common one and every record starts on a cache line, else as 0.
template <class Loop>
EMBERTABLE_INLINE float with_floats(const float* records, std::size_t record_floats,
                                    std::size_t floats, const Loop& loop) {
  const bool on_lines =
      reinterpret_cast<std::uintptr_t>(records) % 64 == 0 && record_floats % 16 == 0;
  switch (on_lines ? floats : 0) {
    case 16:
      return loop.template operator()<16>();
    case 32:
      return loop.template operator()<32>();
    case 64:
      return loop.template operator()<64>();
    case 256:
      return loop.template operator()<256>();
    default:
      return loop.template operator()<0>();
  }
}

inline float bare_gather(const bench::BareGather& part) {
  return with_floats(part.records, part.record_floats, part.dim,
                     [&]<int kDim>() { return gather_dim<kDim>(part); });
}

inline float bare_update(const bench::BareUpdate& part) {
  return with_floats(part.records, part.record_floats, part.floats,
                     [&]<int kFloats>() { return update_floats<kFloats>(part); });
}

inline float bare_divide(const float* numbers, std::size_t floats, int divisions, int roots) {
  F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  for (std::size_t i = 0; i < floats; i += 16) {
    const F16 x = load(numbers + i);
    for (int k = 0; k < divisions; ++k)
      sum[k % 4] = sum[k % 4] + set1(static_cast<float>(k + 1)) / x;
    for (int k = 0; k < roots; ++k) sum[k % 4] = sum[k % 4] + sqrt(x + set1(static_cast<float>(k)));
  }
  return sum_of_four(sum);
}
