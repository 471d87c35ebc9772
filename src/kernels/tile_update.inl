#include "kernels/gradient_sum.inl"
#include "kernels/rounding.inl"
#include "kernels/update_walk.inl"

inline constexpr auto kLevel = static_cast<SimdLevel>(EMBERTABLE_LEVEL);

struct ScaledCopy {
  const float* from;
  float by;
  float* to;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    F16 x[V];
    load_columns<V, kPart>(x, from + column, tail);
    multiply_columns(x, by);
    store_columns<V, kPart>(to + column, x, tail);
  }
};

/// Returns the gradient, or if there is a gain, their product, which is written to `scaled`.
[[gnu::noinline]] inline const float* scaled_copy(const float* gradient, float gain, float* scaled,
                                                  std::int64_t dim) {
  for_each_block(dim, ScaledCopy{gradient, gain, scaled});
  return scaled;
}
EMBERTABLE_INLINE const float* with_gain(const float* gradient, const float* gain, float* scaled,
                                         std::int64_t dim) {
  return gain == nullptr ? gradient : scaled_copy(gradient, *gain, scaled, dim);
}

/// Sums in memory and applies the rule to 16 rows at a time. V > 0: rows of 16 * V floats.
template <int V, class Source>
struct TileVisitor {
  SummedEntries<Source> entries;
  TileInProgress& tile;
  float* sums;
  std::int64_t dim, width;

  using Key = NoKey;

  template <class Index>
  EMBERTABLE_INLINE void make_keys(const Index*, std::int64_t, NoKey*) const {}
  EMBERTABLE_INLINE void single(std::uint64_t r, NoKey, const float* gradient,
                                const float* gain) const {
    tile.add(r, with_gain(gradient, gain, sums + tile.size() * width, dim));
  }
  EMBERTABLE_INLINE void several(std::uint64_t r, NoKey, std::uint32_t begin,
                                 std::uint32_t end) const {
    float* out = sums + tile.size() * width;
    if constexpr (V > 0) {
      F16 sum[V];
      sum_row<V>(sum, entries, begin, end);
      store_columns<V, false>(out, sum, 16);
    } else {
      sum_row(out, dim, entries, begin, end);
    }
    tile.add(r, out);
  }
};

template <int V, class Index, class Source, class Prefetch>
void update_by_tiles_of(const TileUpdate<Index>& args, const Source& source, int lines,
                        const Prefetch& prefetch) {
  const SummedEntries<Source> entries = summed_entries(args.entries, source, lines);
  TileInProgress tile(args.rows, args.update_rows, args.step, args.wide, kLevel);
  const std::int64_t dim = args.rows.dim, width = (dim + 15) / 16 * 16;
  const TileVisitor<V, Source> visitor = {entries, tile, args.sums, dim, width};
  visit_rows<V>(args.entries, entries, prefetch, visitor);
  tile.finish();
}

template <class Index, class Source>
void update_by_tiles_of(const TileUpdate<Index>& args, const Source& source, int lines) {
  const RowPrefetch prefetch(args.rows, args.entries.to_level2);
  if constexpr (sizeof(Index) == 4) {
    if (PlainRowPrefetch<>::fits(prefetch)) {
      const PlainRowPrefetch<> plain(prefetch);
      switch (args.rows.dim) {
        case 16:
          return update_by_tiles_of<1>(args, source, lines, plain);
        case 32:
          return update_by_tiles_of<2>(args, source, lines, plain);
        case 64:
          return update_by_tiles_of<4>(args, source, lines, plain);
        default:
          return update_by_tiles_of<0>(args, source, lines, plain);
      }
    }
  }
  update_by_tiles_of<0>(args, source, lines, prefetch);
}

template <class Index>
void update_by_tiles(const TileUpdate<Index>& args) {
  const GradientSource& g = args.gradients;
  const std::int64_t dim = args.rows.dim;
  if (g.base != nullptr)
    update_by_tiles_of(args, OneSource<>{g.base, g.stride},
                       lines_of(g.base, g.stride * 4, dim * 4));
  else
    update_by_tiles_of(args, PieceSource{g.piece}, static_cast<int>((dim + 15) / 16));
}

/// Adds entries to a tile, each with a gradient of its own.
template <class Source>
struct OccurrenceVisitor {
  const Source& source;
  TileInProgress& tile;
  float* sums;
  std::int64_t dim, width;

  void add(std::uint64_t row, std::uint32_t out, const float* gain,
           std::uint64_t occurrence) const {
    tile.add(row, with_gain(source.at(out), gain, sums + tile.size() * width, dim), occurrence);
  }
};

inline const float* gain_at(const float* gains, std::int64_t i) {
  return gains == nullptr ? nullptr : gains + i;
}

template <class Index, class Source>
void update_by_occurrences_of(const TileUpdate<Index>& args, const Source& source) {
  TileInProgress tile(args.rows, args.update_rows, args.step, args.wide, kLevel);
  const std::int64_t dim = args.rows.dim, width = (dim + 15) / 16 * 16;
  const OccurrenceVisitor<Source> visitor = {source, tile, args.sums, dim, width};
  const GroupedEntries<Index>& e = args.entries;
  for (std::int64_t i = 0; i < e.singles; ++i)
    visitor.add(e.single_row[i], e.single_out[i], gain_at(e.single_gain, i), 0);
  tile.finish();
  for (std::int64_t first = 0; first < e.multis; first += RowTile::kRows) {
    const std::int64_t most = first + RowTile::kRows, last = most < e.multis ? most : e.multis;
    bool more = true;
    for (std::uint32_t k = 0; more; ++k) {
      more = false;
      for (std::int64_t i = first; i < last; ++i) {
        const std::uint32_t at = e.multi_start[i] + k;
        if (at >= e.multi_start[i + 1]) continue;
        visitor.add(e.multi_row[i], e.order[at], gain_at(e.order_gain, at), k);
        more = true;
      }
      tile.finish();
    }
  }
}

template <class Index>
void update_by_occurrences(const TileUpdate<Index>& args) {
  const GradientSource& g = args.gradients;
  if (g.base != nullptr)
    update_by_occurrences_of(args, OneSource<>{g.base, g.stride});
  else
    update_by_occurrences_of(args, PieceSource{g.piece});
}

template <class Index, class Source>
void update_by_entries_of(const EntryUpdate<Index>& args, const Source& source, int lines) {
  TileInProgress tile(args.rows, args.update_rows, args.step, nullptr, kLevel);
  const std::int64_t dim = args.rows.dim, width = (dim + 15) / 16 * 16;
  const RowPrefetch prefetch(args.rows, false);
  const std::int64_t rows = updated_rows_ahead(prefetch.bytes()),
                     gradients = gradients_ahead(lines);
  for (std::int64_t i = 0; i < args.count; ++i) {
    if (i + rows < args.count) prefetch(args.row[i + rows]);
    if (i + gradients < args.count) prefetch_read(source.at(args.out[i + gradients]), lines);
    if (tile.holds(args.row[i])) tile.finish();
    tile.add(args.row[i], with_gain(source.at(args.out[i]), gain_at(args.gain, i),
                                    args.sums + tile.size() * width, dim));
  }
  tile.finish();
}

template <class Index>
void update_by_entries(const EntryUpdate<Index>& args) {
  const GradientSource& g = args.gradients;
  const std::int64_t dim = args.rows.dim;
  if (g.base != nullptr)
    update_by_entries_of(args, OneSource<>{g.base, g.stride},
                         lines_of(g.base, g.stride * 4, dim * 4));
  else
    update_by_entries_of(args, PieceSource{g.piece}, static_cast<int>((dim + 15) / 16));
}
