/// A row of numbers that are stored as such or as the upper halves of their bits. Element: float or
/// std::uint16_t.
template <class T>
struct PlainRow {
  using Element = T;
  static constexpr std::int64_t row_bytes(std::int64_t dim) {
    return dim * static_cast<std::int64_t>(sizeof(T));
  }
  const T* at;

  explicit PlainRow(const T* first, std::int64_t) : at(first) {}
  EMBERTABLE_INLINE const void* address() const { return at; }
  template <int V, bool kPart>
  EMBERTABLE_INLINE void read(F16 (&x)[V], std::int64_t column, int tail) const {
    load_columns<V, kPart>(x, at + column, tail);
  }
};

/// A row of bytes with its scale and offset behind.
struct ScaledRow {
  using Element = std::uint8_t;
  static constexpr std::int64_t row_bytes(std::int64_t dim) { return dim + 8; }
  const std::uint8_t* at;
  std::int64_t dim;

  explicit ScaledRow(const std::uint8_t* first, std::int64_t columns) : at(first), dim(columns) {}
  EMBERTABLE_INLINE const void* address() const { return at; }
  template <int V, bool kPart>
  EMBERTABLE_INLINE void read(F16 (&x)[V], std::int64_t column, int tail) const {
    float by[2];
    __builtin_memcpy(by, at + dim, sizeof(by));
    const F16 scale = set1(by[0]), offset = set1(by[1]);
    load_columns<V, kPart>(x, at + column, tail);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) x[v] = x[v] * scale + offset;
  }
};

template <class Row>
inline constexpr RowType kTypeOf = sizeof(typename Row::Element) == 4   ? RowType::kFloat32
                                   : sizeof(typename Row::Element) == 2 ? RowType::kBfloat16
                                                                        : RowType::kInt8;

/// Finds rows if none were received.
template <class Index, class R>
struct LocalRows {
  using Row = R;
  const typename Row::Element* table;
  std::int64_t stride;
  std::int64_t dim;

  static bool fits(const GatheredRows& rows) { return rows.received == nullptr; }
  explicit LocalRows(const GatheredRows& rows)
      : table(static_cast<const typename Row::Element*>(rows.table)),
        stride(rows.stride),
        dim(rows.dim) {}
  EMBERTABLE_INLINE Row at(Index r) const {
    return Row(table + static_cast<std::int64_t>(r) * stride, dim);
  }
};

/// Finds rows. Kept in registers.
template <class Index, class R>
struct AnyRows {
  using Row = R;
  const typename Row::Element* table;
  std::int64_t stride;
  const typename Row::Element* received;
  std::int64_t dim;

  static bool fits(const GatheredRows&) { return true; }
  explicit AnyRows(const GatheredRows& rows)
      : table(static_cast<const typename Row::Element*>(rows.table)),
        stride(rows.stride),
        received(static_cast<const typename Row::Element*>(rows.received)),
        dim(rows.dim) {}

  EMBERTABLE_INLINE Row at(Index r) const {
    if (__builtin_expect((r & kReceivedBit<Index>) != 0, 0))
      return Row(received + static_cast<std::int64_t>(r & ~kReceivedBit<Index>) * dim, dim);
    return Row(table + static_cast<std::int64_t>(r) * stride, dim);
  }
};

/// Returns the bytes of an element.
inline std::int64_t element_bytes(const GatheredRows& rows) { return bytes_per_element(rows.type); }

/// Returns the bytes of a row.
inline std::int64_t bytes_of_row(const GatheredRows& rows) {
  return rows.dim * element_bytes(rows) + (rows.type == RowType::kInt8 ? 8 : 0);
}

inline int row_lines(const GatheredRows& rows) {
  const std::int64_t bytes = bytes_of_row(rows);
  const bool packed = rows.received != nullptr && bytes % 64 != 0;
  return lines_of(rows.table, packed ? 4 : rows.stride * element_bytes(rows), bytes);
}

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Number of rows between a row's prefetch and its use: 16 KiB of them.
inline std::int64_t rows_ahead(std::int64_t row_bytes) {
  const std::int64_t rows = 16384 / row_bytes;
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
  bool to_level2;
  const SoonGathered* next;  ///< or null

  /// The entries of this gather are begin to end - 1.
  RowsAhead(const Gather<Index>& args, std::int64_t begin, std::int64_t past_last)
      : rows(args.rows),
        row(args.row +
            smaller(begin + rows_ahead(Addresses::Row::row_bytes(args.rows.dim)), past_last)),
        end(args.row + past_last),
        lines(row_lines(args.rows)),
        to_level2(args.rows.to_level2),
        next(&args.next) {}
  /// Rows of the next gather, or none.
  RowsAhead(const SoonGathered& soon, const Index* first, std::int64_t count)
      : rows(soon.rows),
        row(first),
        end(first + count),
        lines(row_lines(soon.rows)),
        to_level2(soon.rows.to_level2),
        next(nullptr) {}

  /// If kLines > 0, fetches that many lines of each row.
  template <int kLines>
  EMBERTABLE_INLINE void fetch() {
    if (__builtin_expect(row == end, 0)) {
      if (next == nullptr) return;
      *this = of_next<kLines>(*next);
      if (row == end) return;
    }
    const void* at = rows.at(*row++).address();
    if (to_level2)
      prefetch_far(at, kLines > 0 ? kLines : lines);
    else
      prefetch_read(at, kLines > 0 ? kLines : lines);
  }

  /// If the next rows are of another kind, the first ones are fetched here, and none later.
  template <int kLines>
  [[gnu::noinline]] static RowsAhead of_next(const SoonGathered& soon) {
    if (soon.count == 0) return RowsAhead(soon, nullptr, 0);
    if (soon.wide == (sizeof(Index) == 8) && soon.rows.type == kTypeOf<typename Addresses::Row> &&
        (kLines == 0 || row_lines(soon.rows) == kLines) && Addresses::fits(soon.rows))
      return RowsAhead(soon, static_cast<const Index*>(soon.row), soon.count);
    const std::int64_t few = smaller(soon.count, rows_ahead(bytes_of_row(soon.rows)));
    soon.wide ? fetch_rows<std::uint64_t>(soon, few) : fetch_rows<std::uint32_t>(soon, few);
    return RowsAhead(soon, nullptr, 0);
  }
  template <class Number>
  static void fetch_rows(const SoonGathered& soon, std::int64_t count) {
    // gcc sees no effect in a function that only prefetches, and would drop the calls.
    asm volatile("");
    // Rows of any type by their bytes.
    const std::int64_t element = element_bytes(soon.rows);
    GatheredRows bytes = soon.rows;
    bytes.stride *= element;
    bytes.dim *= element;
    const AnyRows<Number, ScaledRow> at(bytes);
    const Number* number = static_cast<const Number*>(soon.row);
    const int each = row_lines(soon.rows);
    for (std::int64_t i = 0; i < count; ++i) prefetch_read(at.at(number[i]).address(), each);
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
  g.rows.at(g.row[begin]).template read<V, kPart>(sum, column, tail);
  g.numbers.apply(sum);
  if (kWeighted) multiply_columns(sum, g.weight[begin]);
  F16 term[V];
  for (std::int64_t j = begin + 1; j < end; ++j) {
    if (kPrefetch) g.ahead.template fetch<kLines>();
    g.rows.at(g.row[j]).template read<V, kPart>(term, column, tail);
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

/// Returns the cache lines of rows of 16 * V numbers.
template <class Row, int V>
constexpr int lines_of_columns() {
  return static_cast<int>(Row::row_bytes(16 * V) / 64);
}

/// If V > 0, rows have 16 * V numbers, fill cache lines and start on them.
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
      bag.template write<V, false, lines_of_columns<typename Addresses::Row, V>(), true>(0, 16);
    else
      for_each_block(dim, bag);
    begin = end;
  }
}

template <bool kStreams, class Row>
struct CopyBlock {
  Row from;
  float* to;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 x[V];
    from.template read<V, kPart>(x, column, tail);
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
    ahead.template fetch<V == 0 ? 0 : lines_of_columns<typename Addresses::Row, V>()>();
    if (V == 1 && !kStreams && i + kLinesAhead < last)
      prefetch_write(out + kLinesAhead * (V * 16), V);
    const CopyBlock<kStreams, typename Addresses::Row> copy = {rows.at(args.row[i]), out};
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

template <int V, class Row, class Index>
void gather_as(const Gather<Index>& args) {
  // 64-bit numbers are for huge tables and for what is not trained: not worth twice the code.
  if constexpr (sizeof(Index) == sizeof(std::uint32_t) && sizeof(typename Row::Element) == 4)
    if (LocalRows<Index, Row>::fits(args.rows)) return gather_from<V, LocalRows<Index, Row>>(args);
  gather_from<V, AnyRows<Index, Row>>(args);
}

/// Gathers rows of one type.
template <class Row, class Index>
void gather_rows(const Gather<Index>& args) {
  const std::int64_t dim = args.rows.dim;
  if (args.grid.step != 0) {
    return args.weight != nullptr ? gather_bags<0, true, OnGrid, AnyRows<Index, Row>>(args)
                                  : gather_bags<0, false, OnGrid, AnyRows<Index, Row>>(args);
  }
  if constexpr (kTypeOf<Row> != RowType::kInt8) {
    if (row_lines(args.rows) * 64 == Row::row_bytes(dim)) {
      if constexpr (kTypeOf<Row> == RowType::kFloat32)
        if (dim == 16) return gather_as<1, Row>(args);
      if (dim == 32) return gather_as<2, Row>(args);
      if (dim == 64) return gather_as<4, Row>(args);
      if constexpr (kWidestBlock == 16) {
        if (dim == 128) return gather_as<8, Row>(args);
        if (dim == 256) return gather_as<16, Row>(args);
      }
    }
  }
  gather_as<0, Row>(args);
}
