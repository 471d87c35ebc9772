// The sum of one row's gradients in the promised order: its entries of a piece left to right, the
// pieces of a core left to right, then the cores, each sum starting with its first term. With
// gains an entry is a * g. Part of a level body: see for_each_level.inl. Needs base/entries.h and
// kernels/update.h.

/// Returns the number of entries between a gradient's prefetch and its use: 4 KiB of gradients, at
/// least 4 of them, and 48 of one or two lines. More of wide ones would leave the first-level cache
/// again.
inline constexpr std::uint32_t gradients_ahead(int lines) {
  const int ahead = lines <= 2 ? 48 : 64 / lines;
  return static_cast<std::uint32_t>(ahead < 4 ? 4 : ahead);
}

/// Gradients of one feature of one core: GradientSource::base. kStride > 0: a stride that the
/// compiler knows.
template <std::int64_t kStride = 0>
struct OneSource {
  const float* base;
  std::int64_t stride;

  EMBERTABLE_INLINE const float* at(std::uint32_t out) const {
    return base + out * (kStride > 0 ? kStride : stride);
  }
  EMBERTABLE_INLINE std::int32_t core(std::uint32_t) const { return 0; }
};

/// Gradients of any features and cores: GradientSource::piece.
struct PieceSource {
  const GradientPiece* piece;

  EMBERTABLE_INLINE const float* at(std::uint32_t out) const {
    const GradientPiece& p = piece[out / kPieceRows];
    return p.base + (out % kPieceRows) * p.stride;
  }
  EMBERTABLE_INLINE std::int32_t core(std::uint32_t out) const {
    return piece[out / kPieceRows].core;
  }
};

/// The entries that rows are summed from: those of row i are order[start[i]] to order[start[i + 1]
/// - 1].
template <class Source>
struct SummedEntries {
  Source source;
  const std::uint32_t* order;
  const float* gain;      ///< parallel, or null
  bool fetches;           ///< gradients are fetched ahead
  std::uint32_t fetched;  ///< entries of all rows if they are, else 0
  int lines;              ///< cache lines of a gradient
  std::uint32_t lines_ahead = gradients_ahead(lines);

  /// Returns the number of entries between a gradient's prefetch and its use.
  template <int kLines>
  EMBERTABLE_INLINE std::uint32_t ahead() const {
    return kLines > 0 ? gradients_ahead(kLines) : lines_ahead;
  }

  /// If kLines > 0, a row has kLines cache lines, or one more.
  template <int kLines>
  EMBERTABLE_INLINE void prefetch_gradient(std::uint32_t out) const {
    const float* g = source.at(out);
    prefetch_read<kLines>(g, lines);
    if (kLines > 0 && lines > kLines) __builtin_prefetch(g + kLines * 16, 0, 3);
  }
  template <int kLines>
  EMBERTABLE_INLINE void prefetch(std::uint32_t k) const {
    if (k < fetched) prefetch_gradient<kLines>(order[k]);
  }
};

/// The sum of entries begin to end - 1, which lie in one piece, over some columns of the gradients.
/// Prefetches later gradients with the first columns, if they are fetched. kLines: see
/// SummedEntries.
template <int V, bool kPart, int kLines, class Source>
EMBERTABLE_INLINE void sum_piece(F16 (&sum)[V], const SummedEntries<Source>& entries,
                                 std::uint32_t begin, std::uint32_t end, std::int64_t column,
                                 int tail) {
  const std::uint32_t ahead = entries.template ahead<kLines>();
  const float* gain = entries.gain;
  if (column == 0) entries.template prefetch<kLines>(begin + ahead);
  load_columns<V, kPart>(sum, entries.source.at(entries.order[begin]) + column, tail);
  if (gain != nullptr) multiply_columns(sum, gain[begin]);
  F16 term[V];
  for (std::uint32_t k = begin + 1; k < end; ++k) {
    if (column == 0) entries.template prefetch<kLines>(k + ahead);
    load_columns<V, kPart>(term, entries.source.at(entries.order[k]) + column, tail);
    if (gain != nullptr) multiply_columns(term, gain[k]);
    add_columns(sum, term);
  }
}

/// End of the piece that entry `begin` lies in. The outs of a row rise.
inline std::uint32_t piece_end(const std::uint32_t* order, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t piece = order[begin] / kPieceRows;
  if (order[end - 1] / kPieceRows == piece) return end;
  while (order[begin] / kPieceRows == piece) ++begin;
  return begin;
}

/// Goes on from the sum of the row's first piece, which ended at `begin`.
template <int V, bool kPart, int kLines, class Source>
[[gnu::noinline]] void add_pieces(F16 (&sum)[V], const SummedEntries<Source>& entries,
                                  std::uint32_t begin, std::uint32_t end, std::int64_t column,
                                  int tail) {
  std::int32_t core = entries.source.core(entries.order[begin - 1]);
  bool later_core = false;
  F16 cores[V], piece[V];
  while (begin < end) {
    const std::uint32_t cut = piece_end(entries.order, begin, end);
    sum_piece<V, kPart, kLines>(piece, entries, begin, cut, column, tail);
    const std::int32_t now = entries.source.core(entries.order[begin]);
    if (now == core) {
      add_columns(sum, piece);
    } else {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) {
        cores[v] = later_core ? cores[v] + sum[v] : sum[v];
        sum[v] = piece[v];
      }
      later_core = true;
      core = now;
    }
    begin = cut;
  }
  if (!later_core) return;
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) sum[v] = cores[v] + sum[v];
}

/// The gradient of a row of V vectors, the last of which has `tail` columns if kPart, else 16.
/// Prefetches those of later entries.
template <int V, bool kPart = false, class Source>
EMBERTABLE_INLINE void sum_row(F16 (&sum)[V], const SummedEntries<Source>& entries,
                               std::uint32_t begin, std::uint32_t end, int tail = 16) {
  const std::uint32_t cut = piece_end(entries.order, begin, end);
  sum_piece<V, kPart, V>(sum, entries, begin, cut, 0, tail);
  if (cut == end) return;
  F16 row[V];  // its address goes out of this function, that of `sum` does not: it stays in
               // registers
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) row[v] = sum[v];
  add_pieces<V, kPart, V>(row, entries, cut, end, 0, tail);
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) sum[v] = row[v];
}

/// The sum of a row's first piece, for any dim, into memory.
template <class Source>
struct FirstPieceSum {
  const SummedEntries<Source>& entries;
  std::uint32_t begin, end;
  float* out;

  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 sum[V];
    sum_piece<V, kPart, 0>(sum, entries, begin, end, column, tail);
    store_columns<V, kPart>(out + column, sum, tail);
  }
};

/// Adds the pieces after a row's first one to its sum.
template <class Source>
struct LaterPieces {
  const SummedEntries<Source>& entries;
  std::uint32_t begin, end;
  float* out;

  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 sum[V];
    load_columns<V, kPart>(sum, out + column, tail);
    add_pieces<V, kPart, 0>(sum, entries, begin, end, column, tail);
    store_columns<V, kPart>(out + column, sum, tail);
  }
};

/// The gradient of a row of any dim, into memory.
template <class Source>
[[gnu::noinline]] void sum_row(float* out, std::int64_t dim, const SummedEntries<Source>& entries,
                               std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t cut = piece_end(entries.order, begin, end);
  for_each_block<kWidestEnd>(dim, FirstPieceSum<Source>{entries, begin, cut, out});
  if (cut < end) for_each_block<kWidestEnd>(dim, LaterPieces<Source>{entries, cut, end, out});
}
