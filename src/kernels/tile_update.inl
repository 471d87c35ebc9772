#include "kernels/gradient_sum.inl"
#include "kernels/row_prefetch.inl"

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

template <class Index, class Source>
void update_by_tiles_of(const TileUpdate<Index>& args, const Source& source, int lines) {
  const GroupedEntries<Index>& grouped = args.entries;
  const std::int64_t singles = grouped.singles, multis = grouped.multis, dim = args.rows.dim;
  const std::int64_t width = (dim + 15) / 16 * 16;
  const Index *single_row = grouped.single_row, *multi_row = grouped.multi_row;
  const std::uint32_t *single_out = grouped.single_out, *start = grouped.multi_start;
  const SummedEntries<Source> entries = {source, grouped.order, grouped.order_gain,
                                         multis == 0 ? 0 : start[multis], lines};
  const RowPrefetch prefetch(args.rows);
  TileInProgress tile(args.rows, args.update_rows, args.step);

  for (std::int64_t i = 0; i < kGradientsAhead && i < singles; ++i)
    entries.template prefetch_gradient<0>(single_out[i]);
  for (std::int64_t i = 0; i < kRowsAhead && i < singles; ++i) prefetch(single_row[i]);
  for (std::int64_t i = 0; i < singles; ++i) {
    if (i + kRowsAhead < singles)
      prefetch(single_row[i + kRowsAhead]);
    else if (i + kRowsAhead - singles < multis)
      prefetch(multi_row[i + kRowsAhead - singles]);
    if (i + kGradientsAhead < singles)
      entries.template prefetch_gradient<0>(single_out[i + kGradientsAhead]);
    else
      entries.template prefetch<0>(static_cast<std::uint32_t>(i + kGradientsAhead - singles));
    const float* gradient = source.at(single_out[i]);
    if (grouped.single_gain != nullptr) {
      float* scaled = args.sums + tile.size() * width;
      for_each_block(dim, ScaledCopy{gradient, grouped.single_gain[i], scaled});
      gradient = scaled;
    }
    tile.add(single_row[i], gradient);
  }
  for (std::int64_t i = 0; i < multis; ++i) {
    if (i + kRowsAhead < multis) prefetch(multi_row[i + kRowsAhead]);
    float* sum = args.sums + tile.size() * width;
    sum_row(sum, dim, entries, start[i], start[i + 1]);
    tile.add(multi_row[i], sum);
  }
  tile.finish();
}

template <class Index>
void update_by_tiles(const TileUpdate<Index>& args) {
  const GradientSource& g = args.gradients;
  const std::int64_t dim = args.rows.dim;
  if (g.base != nullptr)
    update_by_tiles_of(args, OneSource{g.base, g.stride}, lines_of(g.base, g.stride * 4, dim * 4));
  else
    update_by_tiles_of(args, PieceSource{g.piece}, static_cast<int>((dim + 15) / 16));
}
