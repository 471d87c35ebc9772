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
  /// Whether a sum of V vectors has the even columns of 32 in one and the odd ones in the next, as
  /// halves are widened with the least work.
  template <int V, bool kPart>
  static constexpr bool in_pairs() {
    return sizeof(T) == 2 && V % 2 == 0 && !kPart;
  }
  /// Reads a term of a sum.
  template <int V, bool kPart>
  EMBERTABLE_INLINE void read_term(F16 (&x)[V], std::int64_t column, int tail) const {
    if constexpr (in_pairs<V, kPart>()) {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; v += 2) load_even_odd(x[v], x[v + 1], at + column + v * 16);
    } else {
      read<V, kPart>(x, column, tail);
    }
  }
  /// Puts the columns of a sum of terms in order.
  template <int V, bool kPart>
  EMBERTABLE_INLINE static void put_in_order(F16 (&sum)[V]) {
    if constexpr (in_pairs<V, kPart>()) {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; v += 2) interleave(sum[v], sum[v + 1]);
    }
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
  template <int V, bool kPart>
  EMBERTABLE_INLINE void read_term(F16 (&x)[V], std::int64_t column, int tail) const {
    read<V, kPart>(x, column, tail);
  }
  template <int V, bool kPart>
  EMBERTABLE_INLINE static void put_in_order(F16 (&)[V]) {}
};

template <class Row>
inline constexpr RowType kTypeOf = sizeof(typename Row::Element) == 4   ? RowType::kFloat32
                                   : sizeof(typename Row::Element) == 2 ? RowType::kBfloat16
                                                                        : RowType::kInt8;

/// Which cache rows are fetched into: the first-level one, the second-level one, or what their
/// gather says. A test of that for each row takes a tenth of the time of a form with fixed columns.
enum class Level { kFirst, kSecond, kAsked };

/// Finds rows by 32-bit numbers if none were received.
template <class R, Level kFetch>
struct LocalRows {
  static constexpr Level kLevel = kFetch;
  using Row = R;
  using Numbers = const std::uint32_t*;
  const typename Row::Element* table;
  std::int64_t stride;
  std::int64_t dim;

  static bool fits(const GatheredRows& rows, bool wide) {
    return rows.received == nullptr && !wide;
  }
  explicit LocalRows(const GatheredRows& rows)
      : table(static_cast<const typename Row::Element*>(rows.table)),
        stride(rows.stride),
        dim(rows.dim) {}
  EMBERTABLE_INLINE Row at(std::uint32_t r) const {
    return Row(table + static_cast<std::int64_t>(r) * stride, dim);
  }
};

/// Finds rows. Kept in registers.
template <class Index, class R>
struct AnyRows {
  static constexpr Level kLevel = Level::kAsked;
  using Row = R;
  using Numbers = const Index*;
  const typename Row::Element* table;
  std::int64_t stride;
  const typename Row::Element* received;
  std::int64_t dim;

  static bool fits(const GatheredRows&, bool wide) { return wide == (sizeof(Index) == 8); }
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

/// Number of rows between a row's prefetch and its use: 16 KiB of them, or 64 KiB in the
/// second-level cache, 16 rows at least and 128 at most.
inline std::int64_t rows_ahead(std::int64_t row_bytes, bool to_level2) {
  const std::int64_t rows = (to_level2 ? 65536 : 16384) / row_bytes;
  return rows < 16 ? 16 : rows > 128 ? 128 : rows;
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

/// Fetches the first rows of a gather, of any type, by their bytes.
template <class Index>
[[gnu::noinline]] void fetch_first_rows(const SoonGathered& soon) {
  const std::int64_t element = element_bytes(soon.rows);
  GatheredRows bytes = soon.rows;
  bytes.stride *= element;
  bytes.dim *= element;
  const AnyRows<Index, ScaledRow> rows(bytes);
  const Index* row = static_cast<const Index*>(soon.row);
  const std::int64_t few =
      smaller(soon.count, rows_ahead(bytes_of_row(soon.rows), soon.rows.to_level2));
  const int lines = row_lines(soon.rows);
  for (std::int64_t i = 0; i < few; ++i) {
    const void* first = rows.at(row[i]).address();
    soon.rows.to_level2 ? prefetch_far(first, lines) : prefetch_read(first, lines);
  }
}

/// Fetches rows ahead of their use: those of this gather, then those of the next one.
template <class Addresses>
struct RowsAhead {
  Addresses rows;
  typename Addresses::Numbers row, end;
  int lines;
  bool to_level2;
  const SoonGathered* next;  ///< or null

  /// The entries of this gather are begin to past_last - 1.
  RowsAhead(const GatherArgs& args, std::int64_t begin, std::int64_t past_last)
      : rows(args.rows),
        row(static_cast<typename Addresses::Numbers>(args.row) +
            smaller(
                begin + rows_ahead(Addresses::Row::row_bytes(args.rows.dim), args.rows.to_level2),
                past_last)),
        end(static_cast<typename Addresses::Numbers>(args.row) + past_last),
        lines(row_lines(args.rows)),
        to_level2(args.rows.to_level2),
        next(&args.next) {}
  /// The first `count` rows of the next gather.
  RowsAhead(const SoonGathered& soon, std::int64_t count)
      : rows(soon.rows),
        row(static_cast<typename Addresses::Numbers>(soon.row)),
        end(row + count),
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
    const void* first = rows.at(*row++).address();
    if (Addresses::kLevel == Level::kAsked ? to_level2 : Addresses::kLevel == Level::kSecond)
      prefetch_far<kLines>(first, lines);
    else
      prefetch_read<kLines>(first, lines);
  }

  /// If the next rows are of another kind, the first ones are fetched here, and none later.
  template <int kLines>
  [[gnu::noinline]] static RowsAhead of_next(const SoonGathered& soon) {
    if (soon.count == 0) return RowsAhead(soon, 0);
    if (soon.rows.type == kTypeOf<typename Addresses::Row> &&
        (kLines == 0 || row_lines(soon.rows) == kLines) && Addresses::fits(soon.rows, soon.wide))
      return RowsAhead(soon, soon.count);
    soon.wide ? fetch_first_rows<std::uint64_t>(soon) : fetch_first_rows<std::uint32_t>(soon);
    return RowsAhead(soon, 0);
  }
};

/// Fetches output rows before they are written. A store whose line is in no cache waits for memory,
/// and outputs seldom are in one: a model's other work used the caches since the last step. If V >
/// 0, output rows have 16 * V floats.
template <int V>
struct OutputsAhead {
  std::int64_t end;       ///< from this output row on, nothing is fetched; not used if V is 0
  std::int64_t distance;  ///< floats; if V and it are 0, a row is fetched that is written at once
  int lines;

  OutputsAhead(const GatherArgs& args, std::int64_t rows)
      : end(args.outputs_ahead ? args.last - rows : args.first),
        distance(V > 0 || args.outputs_ahead ? rows * args.rows.dim : 0),
        lines(V > 0 ? V : lines_of(args.out, args.rows.dim * 4, args.rows.dim * 4)) {}

  /// Called before output row i, which is at `out`, is written.
  EMBERTABLE_INLINE void fetch(std::int64_t i, const float* out) const {
    if constexpr (V > 0) {
      if (i < end) prefetch_far<V>(out + distance, lines);
    } else {
      // Without the test, beyond the last row too, which a prefetch may: with it, gcc compiles the
      // large loop over output rows twice.
      const auto bytes = static_cast<std::uintptr_t>(distance) * sizeof(float);
      prefetch_far(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(out) + bytes),
                   lines);
    }
  }

  /// Returns the number of rows between a copy's prefetch and its store: 4 KiB of them, at least 4.
  static std::int64_t of_copies(std::int64_t dim) {
    const std::int64_t rows = 1024 / dim;
    return rows < 4 ? 4 : rows;
  }
  /// The same for sums, each of which takes its time.
  static constexpr std::int64_t kOfSums = 4;
};

/// Computes one output row. kLines > 0: the cache lines of a row. kWeighted: there are weights.
/// kFetches: each row that is added fetches a later one.
template <int kLines, bool kWeighted, bool kFetches, class Addresses>
struct Bag {
  const Addresses& rows;
  typename Addresses::Numbers row;
  const float* weight;
  RowsAhead<Addresses>& ahead;
  std::int64_t begin, end;
  const float* denominator;  ///< or null
  float* out;

  template <int V, bool kPart>
  EMBERTABLE_INLINE void read(F16 (&x)[V], std::int64_t j, std::int64_t column, int tail) const {
    // Rows are fetched with their first columns.
    if (kFetches && column == 0) ahead.template fetch<kLines>();
    rows.at(row[j]).template read_term<V, kPart>(x, column, tail);
    if (kWeighted) multiply_columns(x, weight[j]);
  }

  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 sum[V];
    if (__builtin_expect(begin == end, 0)) {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) sum[v] = zero16();
    } else {
      read<V, kPart>(sum, begin, column, tail);
      F16 term[V];
      for (std::int64_t j = begin + 1; j < end; ++j) {
        read<V, kPart>(term, j, column, tail);
        add_columns(sum, term);
      }
      if (denominator != nullptr) {
        const F16 by = set1(*denominator);
        const bool none = *denominator == 0.0f;
        EMBERTABLE_UNROLL
        for (int v = 0; v < V; ++v) sum[v] = none ? zero16() : sum[v] / by;
      }
    }
    Addresses::Row::template put_in_order<V, kPart>(sum);
    store_columns<V, kPart>(out + column, sum, tail);
  }
};

/// Returns the cache lines of rows of 16 * V numbers; 0 if V is 0.
template <class Row, int V>
constexpr int lines_of_columns() {
  return V == 0 ? 0 : static_cast<int>((Row::row_bytes(16 * V) + 63) / 64);
}

/// Output rows whose rows are fetched in one burst.
inline constexpr std::int64_t kOutputsOfBurst = 4;

/// Whether the rows of a burst are few enough to be in a cache still when they are added.
inline bool has_short_bursts(const GatherArgs& args) {
  constexpr std::int64_t kMostBytes = 32 << 10;
  const std::int64_t rows = (args.split[args.last] - args.split[args.first]) * kOutputsOfBurst;
  return rows * bytes_of_row(args.rows) <= kMostBytes * (args.last - args.first);
}

/// If V > 0, rows have 16 * V numbers, and fill cache lines or are in one. kBursts: as
/// GatherArgs::bursts, which requires splits.
template <int V, bool kWeighted, bool kBursts, class Addresses>
void gather_bags(const GatherArgs& args) {
  constexpr int kLines = lines_of_columns<typename Addresses::Row, V>();
  const std::int64_t *split = args.split, dim = args.rows.dim, last = args.last;
  const float *denominator = args.denominator, *weight = args.weight;
  std::int64_t begin = split == nullptr ? args.first : split[args.first];
  const Addresses rows(args.rows);
  const auto row = static_cast<typename Addresses::Numbers>(args.row);
  RowsAhead<Addresses> ahead(args, begin, split == nullptr ? last : split[last]);
  const OutputsAhead<V> outputs(args, OutputsAhead<V>::kOfSums);
  float* out = args.out + args.first * dim;
  for (std::int64_t i = args.first; i < last; ++i, out += dim) {
    outputs.fetch(i, out);
    const std::int64_t end = split == nullptr ? i + 1 : split[i + 1];
    if (kBursts && (i - args.first) % kOutputsOfBurst == 0) {
      const std::int64_t past = split[smaller(i + kOutputsOfBurst, last)];
      for (std::int64_t j = begin; j < past; ++j) ahead.template fetch<kLines>();
    }
    const Bag<kLines, kWeighted, !kBursts, Addresses> bag = {
        rows, row, weight, ahead, begin, end, denominator == nullptr ? nullptr : denominator + i,
        out};
    if constexpr (V > 0)
      bag.template run<V, false>(0, 16);
    else
      for_each_block(dim, bag);
    begin = end;
  }
}

/// Computes output rows whose terms are rounded to a grid. One form for all, because rounding costs
/// more than what other forms would save.
template <class Addresses>
void gather_on_grid(const GatherArgs& args) {
  const OnGrid grid(args.grid);
  const std::int64_t *split = args.split, dim = args.rows.dim, last = args.last;
  const float *denominator = args.denominator, *weight = args.weight;
  std::int64_t begin = split == nullptr ? args.first : split[args.first];
  const Addresses rows(args.rows);
  const auto row = static_cast<typename Addresses::Numbers>(args.row);
  RowsAhead<Addresses> ahead(args, begin, split == nullptr ? last : split[last]);
  float* out = args.out + args.first * dim;
  for (std::int64_t i = args.first; i < last; ++i, out += dim) {
    const std::int64_t end = split == nullptr ? i + 1 : split[i + 1];
    for (std::int64_t column = 0; column < dim; column += 16) {
      const int tail = static_cast<int>(smaller(dim - column, 16));
      F16 sum[1] = {zero16()}, term[1];
      for (std::int64_t j = begin; j < end; ++j) {
        if (column == 0) ahead.template fetch<0>();
        rows.at(row[j]).template read<1, true>(term, column, tail);
        grid.apply(term);
        if (weight != nullptr) multiply_columns(term, weight[j]);
        sum[0] = j == begin ? term[0] : sum[0] + term[0];
      }
      if (denominator != nullptr && begin < end)
        sum[0] = denominator[i] == 0.0f ? zero16() : sum[0] / set1(denominator[i]);
      store_columns<1, true>(out + column, sum, tail);
    }
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

/// Number of output rows of one cache line between a line's prefetch and its store.
inline constexpr std::int64_t kLinesAhead = 8;

/// Copies one row to every output row. kStreams: output rows are whole cache lines.
template <int V, bool kStreams, class Addresses>
void gather_copies(const GatherArgs& args) {
  const std::int64_t dim = args.rows.dim, last = args.last;
  const Addresses rows(args.rows);
  const auto row = static_cast<typename Addresses::Numbers>(args.row);
  RowsAhead<Addresses> ahead(args, args.first, last);
  const OutputsAhead<V> outputs(args, OutputsAhead<V>::of_copies(V > 0 ? 16 * V : dim));
  float* out = args.out + args.first * dim;
  for (std::int64_t i = args.first; i < last; ++i, out += dim) {
    ahead.template fetch<lines_of_columns<typename Addresses::Row, V>()>();
    if (!kStreams && V == 1) {
      if (i + kLinesAhead < last) prefetch_write<1>(out + kLinesAhead * (V * 16), V);
    } else if (!kStreams) {
      outputs.fetch(i, out);
    }
    const CopyBlock<kStreams, typename Addresses::Row> copy = {rows.at(row[i]), out};
    if constexpr (V > 0)
      copy.template run<V, false>(0, 16);
    else
      for_each_block(dim, copy);
  }
  if (kStreams) end_streams();
}

/// The same for rows of kDim floats in one cache line, without masks.
template <int kDim, class Addresses>
void gather_narrow_copies(const GatherArgs& args) {
  const Addresses rows(args.rows);
  const auto row = static_cast<typename Addresses::Numbers>(args.row);
  RowsAhead<Addresses> ahead(args, args.first, args.last);
  float* out = args.out + args.first * kDim;
  for (std::int64_t i = args.first; i < args.last; ++i, out += kDim) {
    ahead.template fetch<1>();
    __builtin_memcpy(out, rows.at(row[i]).at, kDim * sizeof(float));
  }
}

template <int V, class Addresses>
void gather_from(const GatherArgs& args) {
  // Other addresses are seldom, and rows of other dims are summed in blocks.
  if constexpr (Addresses::kLevel != Level::kAsked &&
                kTypeOf<typename Addresses::Row> == RowType::kBfloat16) {
    if (args.bursts && args.split != nullptr && has_short_bursts(args))
      return args.weight != nullptr ? gather_bags<V, true, true, Addresses>(args)
                                    : gather_bags<V, false, true, Addresses>(args);
  }
  if (args.weight != nullptr) return gather_bags<V, true, false, Addresses>(args);
  if (args.split != nullptr || args.denominator != nullptr)
    return gather_bags<V, false, false, Addresses>(args);
  if constexpr (V == 0 && kTypeOf<typename Addresses::Row> == RowType::kFloat32) {
    if (row_lines(args.rows) == 1) {
      switch (args.rows.dim) {
        case 1:
          return gather_narrow_copies<1, Addresses>(args);
        case 2:
          return gather_narrow_copies<2, Addresses>(args);
        case 4:
          return gather_narrow_copies<4, Addresses>(args);
        case 8:
          return gather_narrow_copies<8, Addresses>(args);
        default:
          break;
      }
    }
  }
  // Only a variable's rows are read past the caches: its numbers are wide, its rows are floats.
  if constexpr (std::is_same_v<Addresses, AnyRows<std::uint64_t, PlainRow<float>>>) {
    const auto out = reinterpret_cast<std::uintptr_t>(args.out);
    if (args.streams && out % 64 == 0 && args.rows.dim % 16 == 0)
      return gather_copies<V, true, Addresses>(args);
  }
  gather_copies<V, false, Addresses>(args);
}

template <int V, class Row>
void gather_as(const GatherArgs& args) {
  if constexpr (kTypeOf<Row> != RowType::kInt8) {
    if (LocalRows<Row, Level::kAsked>::fits(args.rows, args.wide)) {
      // Rows of any dim are summed in blocks, beside which a test is nothing.
      if constexpr (V == 0) return gather_from<V, LocalRows<Row, Level::kAsked>>(args);
      return args.rows.to_level2 ? gather_from<V, LocalRows<Row, Level::kSecond>>(args)
                                 : gather_from<V, LocalRows<Row, Level::kFirst>>(args);
    }
    if (!args.wide) return gather_from<V, AnyRows<std::uint32_t, Row>>(args);
  }
  gather_from<V, AnyRows<std::uint64_t, Row>>(args);
}

/// Gathers rows of one type.
template <class Row>
void gather_rows(const GatherArgs& args) {
  const std::int64_t dim = args.rows.dim;
  if (args.grid.step != 0) {
    return args.wide ? gather_on_grid<AnyRows<std::uint64_t, Row>>(args)
                     : gather_on_grid<AnyRows<std::uint32_t, Row>>(args);
  }
  // What has no AVX2 is served by the form for any dim.
  if constexpr (EMBERTABLE_LEVEL > 0 && kTypeOf<Row> != RowType::kInt8) {
    const int lines = row_lines(args.rows);
    if (lines == 1 && dim == 16) return gather_as<1, Row>(args);
    if (lines * 64 == Row::row_bytes(dim)) {
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

inline void gather_any(const GatherArgs& args) {
  if (args.rows.type == RowType::kBfloat16) return gather_rows<PlainRow<std::uint16_t>>(args);
  if (args.rows.type == RowType::kInt8) {
    EMBERTABLE_ASSERT(args.wide);  // only serving has such rows
    return gather_rows<ScaledRow>(args);
  }
  gather_rows<PlainRow<float>>(args);
}
