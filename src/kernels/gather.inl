/// Addresses of rows if none were received.
template <class Index>
struct LocalAddresses {
  const float* table;
  std::int64_t stride;

  static bool fits(const GatheredRows& rows) { return rows.received == nullptr; }
  explicit LocalAddresses(const GatheredRows& rows) : table(rows.table), stride(rows.stride) {}
  EMBERTABLE_INLINE const float* at(Index r) const {
    return table + static_cast<std::int64_t>(r) * stride;
  }
};

/// Addresses of rows. Kept in registers.
template <class Index>
struct RowAddresses {
  const float* table;
  std::int64_t stride;
  const float* received;
  std::int64_t dim;

  static bool fits(const GatheredRows&) { return true; }
  explicit RowAddresses(const GatheredRows& rows)
      : table(rows.table), stride(rows.stride), received(rows.received), dim(rows.dim) {}

  EMBERTABLE_INLINE const float* at(Index r) const {
    if (__builtin_expect((r & kReceivedBit<Index>) != 0, 0))
      return received + static_cast<std::int64_t>(r & ~kReceivedBit<Index>) * dim;
    return table + static_cast<std::int64_t>(r) * stride;
  }
};

inline int row_lines(const GatheredRows& rows) {
  const bool packed = rows.received != nullptr && rows.dim % 16 != 0;
  return lines_of(rows.table, packed ? 4 : rows.stride * 4, rows.dim * 4);
}

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Number of rows between a row's prefetch and its use: 16 KiB of them.
inline std::int64_t rows_ahead(std::int64_t dim) {
  const std::int64_t rows = 16384 / (dim * 4);
  return rows < 16 ? 16 : rows > 64 ? 64 : rows;
}

/// Returns the largest integer that is not above x, for x >= 0; NaN for NaN. Does without
/// instructions that some level lacks: numbers from 2^23 on are integers, and adding 2^23 to a
/// smaller one rounds it to an integer.
EMBERTABLE_INLINE F16 floor_of_positive(F16 x) {
  const F16 large = set1(8388608.0f);
  const F16 nearest = (x + large) - large;
  const F16 below = select(less(x, nearest), nearest - set1(1.0f), nearest);
  return select(less(x, large), below, x);
}

/// Rounds looked-up values to a grid.
struct OnGrid {
  F16 lower, upper, step;

  explicit OnGrid(const Grid& grid)
      : lower(set1(grid.lower)), upper(set1(grid.upper)), step(set1(grid.step)) {}

  template <int V>
  EMBERTABLE_INLINE void apply(F16 (&x)[V]) const {
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) {
      const F16 inside = at_most(at_least(x[v], lower), upper);
      x[v] = floor_of_positive((inside - lower) / step + set1(0.5f)) * step + lower;
    }
  }
};

/// Leaves looked-up values as they are.
struct OffGrid {
  explicit OffGrid(const Grid&) {}
  template <int V>
  EMBERTABLE_INLINE void apply(F16 (&)[V]) const {}
};

/// Fetches rows ahead of their use: those of this gather, then those of the next one.
template <class Index, class Addresses>
struct RowsAhead {
  Addresses rows;
  const Index* row;
  const Index* end;
  int lines;
  const SoonGathered* next;  ///< or null

  /// The entries of this gather are begin to end - 1.
  RowsAhead(const Gather<Index>& args, std::int64_t begin, std::int64_t past_last)
      : rows(args.rows),
        row(args.row + smaller(begin + rows_ahead(args.rows.dim), past_last)),
        end(args.row + past_last),
        lines(row_lines(args.rows)),
        next(&args.next) {}
  /// Rows of the next gather, or none.
  RowsAhead(const SoonGathered& soon, const Index* first, std::int64_t count)
      : rows(soon.rows),
        row(first),
        end(first + count),
        lines(row_lines(soon.rows)),
        next(nullptr) {}

  /// If kLines > 0, fetches that many lines of each row.
  template <int kLines>
  EMBERTABLE_INLINE void fetch() {
    if (__builtin_expect(row == end, 0)) {
      if (next == nullptr) return;
      *this = of_next<kLines>(*next);
      if (row == end) return;
    }
    prefetch_read(rows.at(*row++), kLines > 0 ? kLines : lines);
  }

  /// If the next rows are of another kind, the first ones are fetched here, and none later.
  template <int kLines>
  [[gnu::noinline]] static RowsAhead of_next(const SoonGathered& soon) {
    if (soon.count == 0) return RowsAhead(soon, nullptr, 0);
    if (soon.wide == (sizeof(Index) == 8) && (kLines == 0 || row_lines(soon.rows) == kLines) &&
        Addresses::fits(soon.rows))
      return RowsAhead(soon, static_cast<const Index*>(soon.row), soon.count);
    const std::int64_t few = smaller(soon.count, rows_ahead(soon.rows.dim));
    soon.wide ? fetch_rows<std::uint64_t>(soon, few) : fetch_rows<std::uint32_t>(soon, few);
    return RowsAhead(soon, nullptr, 0);
  }
  template <class Number>
  static void fetch_rows(const SoonGathered& soon, std::int64_t count) {
    // gcc sees no effect in a function that only prefetches, and would drop the calls.
    asm volatile("");
    const RowAddresses<Number> at(soon.rows);
    const Number* number = static_cast<const Number*>(soon.row);
    const int each = row_lines(soon.rows);
    for (std::int64_t i = 0; i < count; ++i) prefetch_read(at.at(number[i]), each);
  }
};

/// State that every output row of a gather needs.
template <class Numbers, class Index, class Addresses>
struct Gathering {
  Numbers numbers;
  Addresses rows;
  const Index* row;
  const float* weight;
  RowsAhead<Index, Addresses> ahead;

  /// The entries of this gather are begin to end - 1.
  Gathering(const Gather<Index>& args, std::int64_t begin, std::int64_t end)
      : numbers(args.grid),
        rows(args.rows),
        row(args.row),
        weight(args.weight),
        ahead(args, begin, end) {}
};

/// Sums one output row's entries, of which there is at least one.
template <int V, bool kPart, int kLines, bool kPrefetch, bool kWeighted, class Numbers, class Index,
          class Addresses>
EMBERTABLE_INLINE void sum_bag(F16 (&sum)[V], Gathering<Numbers, Index, Addresses>& g,
                               std::int64_t begin, std::int64_t end, std::int64_t column,
                               int tail) {
  if (kPrefetch) g.ahead.template fetch<kLines>();
  load_columns<V, kPart>(sum, g.rows.at(g.row[begin]) + column, tail);
  g.numbers.apply(sum);
  if (kWeighted) multiply_columns(sum, g.weight[begin]);
  F16 term[V];
  for (std::int64_t j = begin + 1; j < end; ++j) {
    if (kPrefetch) g.ahead.template fetch<kLines>();
    load_columns<V, kPart>(term, g.rows.at(g.row[j]) + column, tail);
    g.numbers.apply(term);
    if (kWeighted) multiply_columns(term, g.weight[j]);
    add_columns(sum, term);
  }
}

/// Computes one output row.
template <bool kWeighted, class Numbers, class Index, class Addresses>
struct Bag {
  Gathering<Numbers, Index, Addresses>& g;
  std::int64_t begin, end;
  const float* denominator;  ///< or null
  float* out;

  template <int V, bool kPart, int kLines, bool kPrefetch>
  EMBERTABLE_INLINE void write(std::int64_t column, int tail) const {
    F16 sum[V];
    if (__builtin_expect(begin == end, 0)) {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) sum[v] = zero16();
    } else {
      sum_bag<V, kPart, kLines, kPrefetch, kWeighted>(sum, g, begin, end, column, tail);
      if (denominator != nullptr) {
        const F16 by = set1(*denominator);
        const bool none = *denominator == 0.0f;
        EMBERTABLE_UNROLL
        for (int v = 0; v < V; ++v) sum[v] = none ? zero16() : sum[v] / by;
      }
    }
    store_columns<V, kPart>(out + column, sum, tail);
  }
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    if (column == 0)
      write<V, kPart, 0, true>(column, tail);
    else
      write<V, kPart, 0, false>(column, tail);
  }
};

/// If V > 0, rows have 16 * V floats and start on cache lines.
template <int V, bool kWeighted, class Numbers, class Addresses, class Index>
void gather_bags(const Gather<Index>& args) {
  const std::int64_t *split = args.split, dim = args.rows.dim, last = args.last;
  const float* denominator = args.denominator;
  std::int64_t begin = split == nullptr ? args.first : split[args.first];
  Gathering<Numbers, Index, Addresses> g(args, begin, split == nullptr ? last : split[last]);
  float* out = args.out + args.first * dim;
  for (std::int64_t i = args.first; i < last; ++i, out += dim) {
    const std::int64_t end = split == nullptr ? i + 1 : split[i + 1];
    const Bag<kWeighted, Numbers, Index, Addresses> bag = {
        g, begin, end, denominator == nullptr ? nullptr : denominator + i, out};
    if constexpr (V > 0)
      bag.template write<V, false, V, true>(0, 16);
    else
      for_each_block(dim, bag);
    begin = end;
  }
}

template <bool kStreams>
struct CopyBlock {
  const float* from;
  float* to;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 x[V];
    load_columns<V, kPart>(x, from + column, tail);
    if (kStreams && !kPart)
      stream_columns(to + column, x);
    else
      store_columns<V, kPart>(to + column, x, tail);
  }
};

/// Number of output rows of one cache line between a line's prefetch and its store. Wider ones are
/// not prefetched, because reading the rows dominates there.
inline constexpr std::int64_t kLinesAhead = 8;

/// Copies one row to every output row. kStreams: output rows are whole cache lines.
template <int V, bool kStreams, class Addresses, class Index>
void gather_copies(const Gather<Index>& args) {
  const std::int64_t dim = args.rows.dim, last = args.last;
  const Addresses rows(args.rows);
  RowsAhead<Index, Addresses> ahead(args, args.first, last);
  float* out = args.out + args.first * dim;
  for (std::int64_t i = args.first; i < last; ++i, out += dim) {
    ahead.template fetch<V>();
    if (V == 1 && !kStreams && i + kLinesAhead < last)
      prefetch_write(out + kLinesAhead * (V * 16), V);
    const CopyBlock<kStreams> copy = {rows.at(args.row[i]), out};
    if constexpr (V > 0)
      copy.template run<V, false>(0, 16);
    else
      for_each_block(dim, copy);
  }
  if (kStreams) end_streams();
}

template <int V, class Addresses, class Index>
void gather_from(const Gather<Index>& args) {
  if (args.weight != nullptr) return gather_bags<V, true, OffGrid, Addresses>(args);
  if (args.split != nullptr || args.denominator != nullptr)
    return gather_bags<V, false, OffGrid, Addresses>(args);
  const auto out = reinterpret_cast<std::uintptr_t>(args.out);
  if (args.streams && out % 64 == 0 && args.rows.dim % 16 == 0)
    gather_copies<V, true, Addresses>(args);
  else
    gather_copies<V, false, Addresses>(args);
}

template <int V, class Index>
void gather_as(const Gather<Index>& args) {
  // 64-bit numbers are for huge tables and for what is not trained: not worth twice the code.
  if constexpr (sizeof(Index) == sizeof(std::uint32_t))
    if (LocalAddresses<Index>::fits(args.rows)) return gather_from<V, LocalAddresses<Index>>(args);
  gather_from<V, RowAddresses<Index>>(args);
}

template <class Index>
void gather(const Gather<Index>& args) {
  const std::int64_t dim = args.rows.dim;
  if (args.grid.step != 0) {
    return args.weight != nullptr ? gather_bags<0, true, OnGrid, RowAddresses<Index>>(args)
                                  : gather_bags<0, false, OnGrid, RowAddresses<Index>>(args);
  }
  if (row_lines(args.rows) * 16 == dim) {
    if (dim == 16) return gather_as<1>(args);
    if (dim == 32) return gather_as<2>(args);
    if (dim == 64) return gather_as<4>(args);
    if constexpr (kWidestBlock == 16) {
      if (dim == 128) return gather_as<8>(args);
      if (dim == 256) return gather_as<16>(args);
    }
  }
  gather_as<0>(args);
}
