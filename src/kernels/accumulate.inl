inline constexpr std::int64_t kGradientsAhead = 32;

struct AddBlock {
  const float* from;
  float* to;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 sum[V], term[V];
    load_columns<V, kPart>(sum, to + column, tail);
    load_columns<V, kPart>(term, from + column, tail);
    add_columns(sum, term);
    store_columns<V, kPart>(to + column, sum, tail);
  }
};

EMBERTABLE_INLINE void add_output(const SmallTable& t, std::int64_t i, std::int64_t width,
                                  int lines) {
  if (i + kGradientsAhead < t.outputs)
    prefetch_read(t.gradient + (i + kGradientsAhead) * t.stride, lines);
  const std::uint32_t r = t.row[i];
  t.touched[r] = 1;
  const AddBlock add = {t.gradient + i * t.stride, t.sums + r * width};
  for_each_block(t.dim, add);
}

/// Does the same as add_output for a dim of 16 * V.
template <int V>
EMBERTABLE_INLINE void add_output_of(const SmallTable& t, std::int64_t i) {
  if (i + kGradientsAhead < t.outputs)
    prefetch_read<V>(t.gradient + (i + kGradientsAhead) * t.stride, V);
  const std::uint32_t r = t.row[i];
  t.touched[r] = 1;
  AddBlock{t.gradient + i * t.stride, t.sums + std::int64_t{r} * (V * 16)}.template run<V, false>(
      0, 16);
}

/// Accumulates two tables alternately.
template <int V>
void accumulate_pair(const SmallTable& first, const SmallTable& second) {
  const SmallTable a = first, b = second;  // copies: stores to sums cannot change them
  const std::int64_t common = a.outputs < b.outputs ? a.outputs : b.outputs;
  for (std::int64_t i = 0; i < common; ++i) {
    add_output_of<V>(a, i);
    add_output_of<V>(b, i);
  }
  for (std::int64_t i = common; i < a.outputs; ++i) add_output_of<V>(a, i);
  for (std::int64_t i = common; i < b.outputs; ++i) add_output_of<V>(b, i);
}
template <int V>
void accumulate_side_by_side(const SmallTable* tables, std::int32_t count) {
  std::int32_t t = 0;
  for (; t + 1 < count; t += 2) accumulate_pair<V>(tables[t], tables[t + 1]);
  if (t == count) return;
  const SmallTable last = tables[t];
  for (std::int64_t i = 0; i < last.outputs; ++i) add_output_of<V>(last, i);
}

void accumulate_any(const SmallTable& t) {
  const std::int64_t width = (t.dim + 15) / 16 * 16;
  const int lines = lines_of(t.gradient, t.stride * 4, t.dim * 4);
  for (std::int64_t i = 0; i < t.outputs; ++i) add_output(t, i, width, lines);
}

void accumulate(const SmallTable* tables, std::int32_t count) {
  for (std::int32_t first = 0; first < count;) {
    std::int32_t last = first + 1;
    while (last < count && tables[last].dim == tables[first].dim) ++last;
    const SmallTable* run = tables + first;
    switch (run->dim) {
      case 16:
        accumulate_side_by_side<1>(run, last - first);
        break;
      case 32:
        accumulate_side_by_side<2>(run, last - first);
        break;
      case 64:
        accumulate_side_by_side<4>(run, last - first);
        break;
      default:
        for (std::int32_t t = first; t < last; ++t) accumulate_any(tables[t]);
    }
    first = last;
  }
}

void clear_sums(float* sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) store(sums + i, set1(-0.0f));
}
