// The loops of bare_loops.h. Part of a level body: see kernels/for_each_level.inl.

/// Adds the columns of a row to a sum of 16.
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

/// Where an even walk over `all` floats stands after `done` of `count` steps.
EMBERTABLE_INLINE std::size_t due(std::size_t all, std::size_t done, std::size_t count) {
  return static_cast<std::size_t>(static_cast<double>(all) * static_cast<double>(done) /
                                  static_cast<double>(count));
}

EMBERTABLE_INLINE const float* row_at(const bench::BareGather& part, std::size_t i) {
  return part.records + static_cast<std::size_t>(part.ids[i]) * part.record_floats;
}

inline float bare_gather(const bench::BareGather& part) {
  F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  const auto dim = static_cast<std::int64_t>(part.dim);
  const int lines =
      lines_of(part.records, static_cast<std::int64_t>(part.record_floats * 4), dim * 4);
  std::size_t written = 0;
  for (std::size_t i = 0; i < part.distance && i < part.count; ++i)
    prefetch_read(row_at(part, i), lines);
  for (std::size_t i = 0; i < part.count; ++i) {
    if (i + part.distance < part.count) prefetch_read(row_at(part, i + part.distance), lines);
    for_each_block(dim, AddColumns{row_at(part, i), sum});
    for (const std::size_t to = due(part.out_floats, i + 1, part.count); written + part.dim <= to;
         written += part.dim)
      for_each_block(dim, WriteColumns{part.out + written, sum});
  }
  return sum16((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

EMBERTABLE_INLINE void prefetch_bare(const bench::BareUpdate& part, std::size_t i, int lines) {
  const std::size_t r = part.rows[i];
  prefetch_write(part.records + r * part.record_floats, lines);
  for (std::size_t s = 0; s < part.num_row_slots; ++s)
    __builtin_prefetch(part.row_slots[s] + r, 1, 3);
}

inline float bare_update(const bench::BareUpdate& part) {
  F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  const auto floats = static_cast<std::int64_t>(part.record_floats);
  const int lines = lines_of(part.records, floats * 4, floats * 4);
  std::size_t read = 0;
  for (std::size_t i = 0; i < part.distance && i < part.count; ++i) prefetch_bare(part, i, lines);
  for (std::size_t i = 0; i < part.count; ++i) {
    if (i + part.distance < part.count) prefetch_bare(part, i + part.distance, lines);
    const std::size_t r = part.rows[i];
    for_each_block(floats, ChangeColumns{part.records + r * part.record_floats});
    for (std::size_t s = 0; s < part.num_row_slots; ++s) part.row_slots[s][r] += 1e-12f;
    const std::size_t to = due(part.gradient_floats, i + 1, part.count);
    if (to <= read) continue;
    for_each_block(static_cast<std::int64_t>(to - read), AddColumns{part.gradients + read, sum});
    read = to;
  }
  return sum16((sum[0] + sum[1]) + (sum[2] + sum[3]));
}
