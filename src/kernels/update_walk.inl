// Visits the rows of a bucket: prefetches rows and slots, sums each row's gradients in registers,
// hands both to a rule. Part of a level body: see for_each_level.inl. Needs
// kernels/gradient_sum.inl before it.
//
//     struct Sgd {
//       static constexpr int kSlots = 0;
//       F16 rate;
//       template <int V>
//       EMBERTABLE_INLINE void apply(float* row, float* const* slot, const F16 (&g)[V]) const {
//         for (int v = 0; v < V; ++v) store(row + v * 16, load(row + v * 16) - rate * g[v]);
//       }
//     };
//     template <int V>
//     void update_groups(const GroupedEntries<std::uint32_t>& entries,
//                        const GradientSource& gradients, const RowBlock& rows,
//                        const StepScalars& step) noexcept {
//       update_walk<V>(entries, gradients, rows, Sgd{set1(step.learning_rate)});
//     }

#include "kernels/row_prefetch.inl"

/// Calls visitor.single(row, gradient, gain or null) and visitor.several(row, first entry, end) for
/// each row, prefetching what comes next. kLines > 0: cache lines of a gradient, or one more; 0: as
/// SummedEntries says.
template <int kLines, class Index, class Source, class Prefetch, class Visitor>
EMBERTABLE_INLINE void visit_rows(const GroupedEntries<Index>& grouped,
                                  const SummedEntries<Source>& entries, const Prefetch& prefetch,
                                  const Visitor& visitor) {
  const std::int64_t singles = grouped.singles, multis = grouped.multis;
  const Index *single_row = grouped.single_row, *multi_row = grouped.multi_row;
  const std::uint32_t *single_out = grouped.single_out, *start = grouped.multi_start;
  const float* gain = grouped.single_gain;

  for (std::int64_t i = 0; i < kGradientsAhead && i < singles; ++i)
    entries.template prefetch_gradient<kLines>(single_out[i]);
  for (std::int64_t i = 0; i < kRowsAhead && i < singles; ++i) prefetch(single_row[i]);
  for (std::int64_t i = 0; i < singles; ++i) {
    if (i + kRowsAhead < singles)
      prefetch(single_row[i + kRowsAhead]);
    else if (i + kRowsAhead - singles < multis)
      prefetch(multi_row[i + kRowsAhead - singles]);
    if (i + kGradientsAhead < singles)
      entries.template prefetch_gradient<kLines>(single_out[i + kGradientsAhead]);
    else
      entries.template prefetch<kLines>(static_cast<std::uint32_t>(i + kGradientsAhead - singles));
    visitor.single(single_row[i], entries.source.at(single_out[i]),
                   gain == nullptr ? nullptr : gain + i);
  }
  for (std::int64_t i = 0; i < multis; ++i) {
    if (i + kRowsAhead < multis) prefetch(multi_row[i + kRowsAhead]);
    visitor.several(multi_row[i], start[i], start[i + 1]);
  }
}

template <class Index, class Source>
EMBERTABLE_INLINE SummedEntries<Source> summed_entries(const GroupedEntries<Index>& grouped,
                                                       const Source& source, int lines) {
  return {source, grouped.order, grouped.order_gain,
          grouped.multis == 0 ? 0 : grouped.multi_start[grouped.multis], lines};
}

/// Sums in registers and applies the rule to them.
template <int V, class Source, class Rule>
struct FusedVisitor {
  const SummedEntries<Source>& entries;
  const Rule& rule;
  float* row;
  std::int64_t stride;
  float* slot[Rule::kSlots + 1];
  std::int64_t slot_stride[Rule::kSlots + 1];

  FusedVisitor(const SummedEntries<Source>& all, const Rule& formula, const RowBlock& rows)
      : entries(all), rule(formula), row(rows.row), stride(rows.stride) {
    for (int s = 0; s < Rule::kSlots; ++s)
      slot[s] = rows.slot[s], slot_stride[s] = rows.slot_stride[s];
  }

  EMBERTABLE_INLINE void apply(std::uint64_t r, const F16 (&gradient)[V]) const {
    const auto i = static_cast<std::int64_t>(r);
    float* at[Rule::kSlots + 1] = {};
    for (int s = 0; s < Rule::kSlots; ++s) at[s] = slot[s] + i * slot_stride[s];
    rule.apply(row + i * stride, at, gradient);
  }
  EMBERTABLE_INLINE void single(std::uint64_t r, const float* from, const float* gain) const {
    F16 gradient[V];
    load_columns<V, false>(gradient, from, 16);
    if (gain != nullptr) multiply_columns(gradient, *gain);
    apply(r, gradient);
  }
  EMBERTABLE_INLINE void several(std::uint64_t r, std::uint32_t begin, std::uint32_t end) const {
    F16 gradient[V];
    sum_row<V>(gradient, entries, begin, end);
    apply(r, gradient);
  }
};

template <int V, class Index, class Source, class Rule>
EMBERTABLE_INLINE void update_walk_of(const GroupedEntries<Index>& grouped, const Source& source,
                                      int lines, const RowBlock& rows, const Rule& rule) {
  const SummedEntries<Source> entries = summed_entries(grouped, source, lines);
  const FusedVisitor<V, Source, Rule> visitor(entries, rule, rows);
  const RowPrefetch prefetch(rows);
  if (PlainRowPrefetch<V>::fits(prefetch))
    visit_rows<V>(grouped, entries, PlainRowPrefetch<V>(prefetch), visitor);
  else if (PlainRowPrefetch<2 * V>::fits(prefetch))  // a slot in the row's record
    visit_rows<V>(grouped, entries, PlainRowPrefetch<2 * V>(prefetch), visitor);
  else
    visit_rows<V>(grouped, entries, prefetch, visitor);
}

/// Gradients and rows are of 16 * V floats.
template <int V, class Index, class Rule>
EMBERTABLE_INLINE void update_walk(const GroupedEntries<Index>& grouped,
                                   const GradientSource& gradients, const RowBlock& rows,
                                   const Rule& rule) {
  if (gradients.base != nullptr) {
    const int lines = lines_of(gradients.base, gradients.stride * 4, V * 64);
    update_walk_of<V>(grouped, OneSource{gradients.base, gradients.stride}, lines, rows, rule);
  } else {
    update_walk_of<V>(grouped, PieceSource{gradients.piece}, V, rows, rule);
  }
}
