// Visits the rows of a bucket: prefetches rows and slots, sums each row's gradients in registers, hands both to a rule.
// Part of a level body: see for_each_level.inl. Needs kernels/gradient_sum.inl before it.
//
//     struct Sgd {
//       static constexpr int kSlots = 0;
//       static constexpr int kRecordSlots = 0;  // of these, in the row's record; may be left out
//       F16 rate;
//       template <int V>
//       EMBERTABLE_INLINE void apply(float* row, float* const* slot, const F16 (&g)[V]) const {
//         for (int v = 0; v < V; ++v) store(row + v * 16, load(row + v * 16) - rate * g[v]);
//       }
//     };
//     template <int V>
//     void update_groups(const GroupedEntries<std::uint32_t>& entries, const GradientSource& gradients,
//                        const RowBlock& rows, const StepScalars& step) noexcept {
//       update_walk<V>(entries, gradients, rows, Sgd{set1(step.learning_rate)});
//     }

#include "kernels/row_prefetch.inl"

/// Where a rule finds row and slots.
template <int kSlots>
struct RowAddress {
  float* row;
  std::int64_t stride;
  float* slot[kSlots + 1];
  std::int64_t slot_stride[kSlots + 1];

  explicit RowAddress(const RowBlock& rows) : row(rows.row), stride(rows.stride) {
    for (int s = 0; s < kSlots; ++s) slot[s] = rows.slot[s], slot_stride[s] = rows.slot_stride[s];
  }

  template <class Rule, int V>
  EMBERTABLE_INLINE void apply(const Rule& rule, std::uint64_t r, const F16 (&gradient)[V]) const {
    const auto i = static_cast<std::int64_t>(r);
    float* at[kSlots + 1] = {};
    for (int s = 0; s < kSlots; ++s) at[s] = slot[s] + i * slot_stride[s];
    rule.apply(row + i * stride, at, gradient);
  }
};

template <int V, class Index, class Source, class Prefetch, class Rule>
EMBERTABLE_INLINE void update_rows_of(const GroupedEntries<Index>& grouped, const Source& source, int lines,
                                      const RowBlock& rows, const Prefetch& prefetch, const Rule& rule) {
  const std::int64_t singles = grouped.singles, multis = grouped.multis;
  const Index *single_row = grouped.single_row, *multi_row = grouped.multi_row;
  const std::uint32_t *single_out = grouped.single_out, *start = grouped.multi_start;
  const float* single_gain = grouped.single_gain;
  const SummedEntries<Source> entries = {source, grouped.order, grouped.order_gain,
                                         multis == 0 ? 0 : start[multis], lines};
  const RowAddress<Rule::kSlots> address(rows);
  F16 gradient[V];

  for (std::int64_t i = 0; i < kGradientsAhead && i < singles; ++i)
    entries.template prefetch_gradient<V>(single_out[i]);
  for (std::int64_t i = 0; i < kRowsAhead && i < singles; ++i) prefetch(single_row[i]);
  for (std::int64_t i = 0; i < singles; ++i) {
    if (i + kRowsAhead < singles)
      prefetch(single_row[i + kRowsAhead]);
    else if (i + kRowsAhead - singles < multis)
      prefetch(multi_row[i + kRowsAhead - singles]);
    if (i + kGradientsAhead < singles)
      entries.template prefetch_gradient<V>(single_out[i + kGradientsAhead]);
    else
      entries.template prefetch<V>(static_cast<std::uint32_t>(i + kGradientsAhead - singles));
    load_columns<V, false>(gradient, source.at(single_out[i]), 16);
    if (single_gain != nullptr) multiply_columns(gradient, single_gain[i]);
    address.apply(rule, single_row[i], gradient);
  }
  for (std::int64_t i = 0; i < multis; ++i) {
    if (i + kRowsAhead < multis) prefetch(multi_row[i + kRowsAhead]);
    sum_row<V>(gradient, entries, start[i], start[i + 1]);
    address.apply(rule, multi_row[i], gradient);
  }
}

/// Slots that a rule expects in the row's record. Another number than a table has costs speed only.
template <class Rule>
constexpr int record_slots() {
  if constexpr (requires { Rule::kRecordSlots; })
    return Rule::kRecordSlots;
  else
    return 0;
}

template <int V, class Index, class Source, class Rule>
EMBERTABLE_INLINE void update_walk_of(const GroupedEntries<Index>& grouped, const Source& source, int lines,
                                      const RowBlock& rows, const Rule& rule) {
  const RowPrefetch prefetch(rows);
  using Expected = PlainRowPrefetch<V * (1 + record_slots<Rule>())>;
  if (Expected::fits(prefetch))
    update_rows_of<V>(grouped, source, lines, rows, Expected(prefetch), rule);
  else
    update_rows_of<V>(grouped, source, lines, rows, prefetch, rule);
}

/// Gradients and rows are of 16 * V floats.
template <int V, class Index, class Rule>
EMBERTABLE_INLINE void update_walk(const GroupedEntries<Index>& grouped, const GradientSource& gradients,
                                   const RowBlock& rows, const Rule& rule) {
  if (gradients.base != nullptr) {
    const int lines = lines_of(gradients.base, gradients.stride * 4, V * 64);
    update_walk_of<V>(grouped, OneSource{gradients.base, gradients.stride}, lines, rows, rule);
  } else {
    update_walk_of<V>(grouped, PieceSource{gradients.piece}, V, rows, rule);
  }
}
