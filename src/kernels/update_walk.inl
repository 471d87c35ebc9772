// Visits the rows of a bucket: prefetches rows and slots, sums each row's gradients in registers,
// hands both to a rule. Part of a level body: see for_each_level.inl. Needs
// kernels/gradient_sum.inl, kernels/rounding.inl and what they need before it.
//
//     struct Sgd {
//       static constexpr int kSlots = 0;
//       static constexpr bool row_wise(int) { return false; }  // a slot has one number for a row
//       struct Sums {};    // what the rule needs of a gradient as a whole
//       struct Values {};  // what it makes of them and a row's row-wise slots, which it steps
//       F16 rate;
//       template <int V>
//       EMBERTABLE_INLINE Sums sums(const F16 (&g)[V]) const { return {}; }
//       EMBERTABLE_INLINE Values values(float* const* slot, const Sums& sums) const { return {}; }
//       template <int V>
//       EMBERTABLE_INLINE void step(float* row, float* const* slot, const F16 (&g)[V],
//                                   const Values& values) const {
//         for (int v = 0; v < V; ++v) store(row + v * 16, load(row + v * 16) - rate * g[v]);
//       }
//     };
//     template <int V>
//     bool update_groups(const GroupedEntries<std::uint32_t>& entries,
//                        const GradientSource& gradients, const RowBlock& rows,
//                        const StepScalars& step) noexcept {
//       const Sgd sgd = {set1(step.learning_rate)};
//       return rows.is_half() ? update_walk<V>(entries, gradients, rows, HalfRows(rows, step), sgd)
//                             : update_walk<V>(entries, gradients, rows, FloatRows(rows), sgd);
//     }

#include "kernels/row_prefetch.inl"

/// The most rows of a block. A block's rows are fetched in a burst, or one by one between the
/// updates of others; see docs/performance.md, "Bursts".
inline constexpr std::int64_t kBlockRows = 64;

/// Returns the number of rows of a block, whose keys are made at once: 8 KiB of rows and slots, at
/// least 8 rows. bytes: of one row and its slots.
constexpr std::int64_t rows_of_block(std::int64_t bytes) {
  const std::int64_t rows = (8 << 10) / bytes;
  return rows < 8 ? 8 : rows > kBlockRows ? kBlockRows : rows;
}

/// Prefetches rows `first` to `last` - 1 of those that one entry names and then the others, as far
/// as there are any.
template <class Index, class Prefetch>
[[gnu::noinline]] void fetch_rows(const GroupedEntries<Index>& grouped, std::int64_t first,
                                  std::int64_t last, const Prefetch prefetch) {
  asm volatile("");  // or the compiler sees no effect, and drops the calls
  const std::int64_t singles = grouped.singles, all = singles + grouped.multis;
  if (last > all) last = all;
  for (; first < last && first < singles; ++first) prefetch(grouped.single_row[first]);
  for (; first < last; ++first) prefetch(grouped.multi_row[first - singles]);
}

/// Prefetches one of these rows, if there is such a row.
template <class Index, class Prefetch>
EMBERTABLE_INLINE void fetch_row(const GroupedEntries<Index>& grouped, std::int64_t r,
                                 const Prefetch& prefetch) {
  const std::int64_t singles = grouped.singles;
  if (r < singles + grouped.multis)
    prefetch(r < singles ? grouped.single_row[r] : grouped.multi_row[r - singles]);
}

/// Prefetches the gradient that comes after row i of the rows that one entry names: one of theirs,
/// then of the others. Neighbouring entries of one output row share a gradient, which is fetched
/// once.
template <int kLines, class Index, class Source>
EMBERTABLE_INLINE void fetch_gradient_after(std::int64_t i, const GroupedEntries<Index>& grouped,
                                            const SummedEntries<Source>& entries) {
  if (!entries.fetches) return;
  const std::int64_t singles = grouped.singles, k = i + entries.template ahead<kLines>();
  const std::uint32_t* out = grouped.single_out;
  if (k >= singles) {
    if (k < singles + entries.fetched)
      entries.template prefetch_gradient<kLines>(entries.order[k - singles]);
  } else if (out[k] != out[k - 1]) {
    entries.template prefetch_gradient<kLines>(out[k]);
  }
}

/// Visits wide rows that one entry names: see visit_singles. Neighbouring entries of one output row
/// share the sums of its gradient if there are no gains, and the values of a few rows are made
/// before the first of them steps, so that none waits for the roots and quotients of its own. Of
/// narrow rows, other rows' steps fill that wait, and their gradients stay in registers between the
/// sums and the step.
template <int kLines, bool kGain, class Index, class Source, class Prefetch, class Visitor>
[[gnu::noinline]] void visit_wide_singles(const GroupedEntries<Index>& grouped,
                                          const SummedEntries<Source> entries,
                                          const Prefetch prefetch, const Visitor visitor) {
  constexpr std::int64_t kTogether = 8;
  const std::int64_t count = grouped.singles, ahead = updated_rows_ahead(prefetch.bytes());
  const bool bursts = grouped.bursts;
  const Index* const row = grouped.single_row;
  const std::uint32_t* const out = grouped.single_out;
  const float* const gain = grouped.single_gain;
  typename Visitor::Sums sums = {};
  typename Visitor::Values values[kTogether];
  typename Visitor::Key key[kTogether];
  for (std::int64_t begin = 0; begin < count; begin += kTogether) {
    const std::int64_t end = count - begin < kTogether ? count : begin + kTogether;
    if (bursts) fetch_rows(grouped, begin + ahead, end + ahead, prefetch);
    visitor.make_keys(row + begin, end - begin, key);
    for (std::int64_t i = begin; i < end; ++i) {
      if (!bursts) fetch_row(grouped, i + ahead, prefetch);
      fetch_gradient_after<kLines>(i, grouped, entries);
      if (kGain || i == 0 || out[i] != out[i - 1])
        sums = visitor.sums_of(entries.source.at(out[i]), kGain ? gain + i : nullptr);
      values[i - begin] = visitor.values_of(row[i], sums);
    }
    for (std::int64_t i = begin; i < end; ++i)
      visitor.step(row[i], key[i - begin], entries.source.at(out[i]), kGain ? gain + i : nullptr,
                   values[i - begin]);
  }
}

/// Visits the rows that one entry names: see visit_rows. kGain: there are gains. Arguments but
/// `grouped` are copies, so that their members stay in registers while rows are written.
template <int kLines, bool kGain, class Index, class Source, class Prefetch, class Visitor>
[[gnu::noinline]] void visit_singles(const GroupedEntries<Index>& grouped,
                                     const SummedEntries<Source> entries, const Prefetch prefetch,
                                     const Visitor visitor) {
  const std::int64_t count = grouped.singles, block = rows_of_block(prefetch.bytes()),
                     ahead = updated_rows_ahead(prefetch.bytes());
  const bool bursts = grouped.bursts;
  const Index* const row = grouped.single_row;
  const std::uint32_t* const out = grouped.single_out;
  const float* const gain = grouped.single_gain;
  typename Visitor::Key key[kBlockRows];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t end = count - begin < block ? count : begin + block;
    if (bursts) fetch_rows(grouped, begin + ahead, end + ahead, prefetch);
    visitor.make_keys(row + begin, end - begin, key);
    for (std::int64_t i = begin; i < end; ++i) {
      if (!bursts) fetch_row(grouped, i + ahead, prefetch);
      fetch_gradient_after<kLines>(i, grouped, entries);
      visitor.single(row[i], key[i - begin], entries.source.at(out[i]), kGain ? gain + i : nullptr);
    }
  }
}

/// Visits the other rows: see visit_rows.
template <class Index, class Prefetch, class Visitor>
[[gnu::noinline]] void visit_multis(const GroupedEntries<Index>& grouped, const Prefetch prefetch,
                                    const Visitor visitor) {
  const std::int64_t count = grouped.multis, block = rows_of_block(prefetch.bytes()),
                     ahead = grouped.singles + updated_rows_ahead(prefetch.bytes());
  const bool bursts = grouped.bursts;
  const Index* const row = grouped.multi_row;
  const std::uint32_t* const start = grouped.multi_start;
  typename Visitor::Key key[kBlockRows];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t end = count - begin < block ? count : begin + block;
    if (bursts) fetch_rows(grouped, begin + ahead, end + ahead, prefetch);
    visitor.make_keys(row + begin, end - begin, key);
    for (std::int64_t i = begin; i < end; ++i) {
      if (!bursts) fetch_row(grouped, i + ahead, prefetch);
      visitor.several(row[i], key[i - begin], start[i], start[i + 1]);
    }
  }
}

/// Calls visitor.single(row, key, gradient, gain or null), or for wide rows visitor.sums_of,
/// values_of and step, for each row that one entry names, and visitor.several(row, key, first
/// entry, end) for each other row, prefetching what comes next. Keys are those that
/// visitor.make_keys(rows, count, keys) makes of up to kBlockRows rows. kLines > 0: cache lines of
/// a gradient, or one more; 0: as SummedEntries says.
template <int kLines, class Index, class Source, class Prefetch, class Visitor>
EMBERTABLE_INLINE void visit_rows(const GroupedEntries<Index>& grouped,
                                  const SummedEntries<Source>& entries, const Prefetch& prefetch,
                                  const Visitor& visitor) {
  // The first ones, of the singles and then of the multis, as visit_singles goes on.
  const std::int64_t singles = grouped.singles,
                     gradients = entries.fetches ? entries.template ahead<kLines>() : 0;
  for (std::int64_t k = 0; k < gradients && k < singles + entries.fetched; ++k)
    entries.template prefetch_gradient<kLines>(k < singles ? grouped.single_out[k]
                                                           : entries.order[k - singles]);
  fetch_rows(grouped, 0, updated_rows_ahead(prefetch.bytes()), prefetch);
  const bool gains = grouped.single_gain != nullptr;
  // From 256 columns on: narrower rows lose by it, as docs/performance.md says.
  if constexpr (kLines >= 16) {
    gains ? visit_wide_singles<kLines, true>(grouped, entries, prefetch, visitor)
          : visit_wide_singles<kLines, false>(grouped, entries, prefetch, visitor);
  } else {
    gains ? visit_singles<kLines, true>(grouped, entries, prefetch, visitor)
          : visit_singles<kLines, false>(grouped, entries, prefetch, visitor);
  }
  visit_multis(grouped, prefetch, visitor);
}

template <class Index, class Source>
EMBERTABLE_INLINE SummedEntries<Source> summed_entries(const GroupedEntries<Index>& grouped,
                                                       const Source& source, int lines) {
  const bool fetches = !grouped.near_gradients;
  return {source,
          grouped.order,
          grouped.order_gain,
          fetches,
          fetches && grouped.multis > 0 ? grouped.multi_start[grouped.multis] : 0,
          lines};
}

/// What a row of floats is stepped with besides its gradient.
struct NoKey {};

/// Makes the keys that rows are rounded with, on vectors.
template <class Index>
[[gnu::noinline]] void make_rounding_keys(const RoundingKeys keys, const Index* row,
                                          std::int64_t count, std::uint64_t* key) {
  for (std::int64_t i = 0; i < count; ++i) key[i] = keys.at(static_cast<std::uint64_t>(row[i]));
}

/// Rows that a rule steps where they are.
struct FloatRows {
  using Element = float;
  using Key = NoKey;
  float* first;

  explicit FloatRows(const RowBlock& rows) : first(rows.row) {}

  template <class Index>
  EMBERTABLE_INLINE void make_keys(const Index*, std::int64_t, NoKey*) const {}

  template <int V, class Rule>
  EMBERTABLE_INLINE void step(const Rule& rule, float* row, NoKey, float* const* slot,
                              const F16 (&gradient)[V], const typename Rule::Values& values) const {
    rule.step(row, slot, gradient, values);
  }
};

/// Rows of bfloat16, which are widened for the rule and rounded back.
struct HalfRows {
  using Element = std::uint16_t;
  using Key = std::uint64_t;
  std::uint16_t* first;
  RoundingKeys keys;

  HalfRows(const RowBlock& rows, const StepScalars& step)
      : first(rows.half),
        keys(mix_seeds(rows.rounding.stream, static_cast<std::uint64_t>(step.step)),
             static_cast<std::uint64_t>(rows.rounding.first),
             static_cast<std::uint64_t>(rows.rounding.step)) {}

  template <class Index>
  EMBERTABLE_INLINE void make_keys(const Index* row, std::int64_t count, std::uint64_t* key) const {
    make_rounding_keys(keys, row, count, key);
  }

  template <int V, class Rule>
  EMBERTABLE_INLINE void step(const Rule& rule, std::uint16_t* row, std::uint64_t key,
                              float* const* slot, const F16 (&gradient)[V],
                              const typename Rule::Values& values) const {
    alignas(64) float wide[16 * V];
    widen_columns<V>(wide, row);
    rule.step(wide, slot, gradient, values);
    round_columns<V>(wide, row, key);
  }
};

/// Locates rows of floats and slots of a rule in any layout.
template <class Rule, class Prefetch>
struct AnyRows {
  float* row;
  std::int64_t stride;
  float* slot[Rule::kSlots + 1];
  std::int64_t slot_stride[Rule::kSlots + 1];
  const Prefetch near;

  AnyRows(const RowBlock& rows, const Prefetch& prefetch)
      : row(rows.row), stride(rows.stride), near(prefetch) {
    for (int s = 0; s < Rule::kSlots; ++s)
      slot[s] = rows.slot[s], slot_stride[s] = rows.slot_stride[s];
  }
  EMBERTABLE_INLINE float* row_at(std::int64_t r) const { return row + r * stride; }
  EMBERTABLE_INLINE float* slot_at(int s, std::int64_t r) const {
    return slot[s] + r * slot_stride[s];
  }
  EMBERTABLE_INLINE void operator()(std::uint64_t r) const { near(r); }
  std::int64_t bytes() const { return near.bytes(); }
};

/// Locates rows and slots of tables with 16 * V columns: records of a row and its full slots, one
/// after the other from the start of a cache line, and row-wise slots as arrays of one number per
/// row. Because the compiler knows these strides, registers stay free for the loop.
template <class Rule, int V, class Kind>
struct PackedRows {
  using Element = typename Kind::Element;
  static constexpr std::int64_t record_bytes() {
    std::int64_t bytes = V * 16 * sizeof(Element);
    for (int s = 0; s < Rule::kSlots; ++s) bytes += Rule::row_wise(s) ? 0 : V * 16 * sizeof(float);
    return bytes;
  }
  static constexpr std::int64_t kBytes = record_bytes();
  static constexpr std::int64_t kStride = kBytes / sizeof(Element);
  static constexpr std::int64_t stride_of_slot(int s) {
    return Rule::row_wise(s) ? 1 : kBytes / sizeof(float);
  }
  bool far;
  Element* row;
  float* slot[Rule::kSlots + 1];

  static bool fits(const RowBlock& rows) {
    bool fit = rows.stride == kStride && reinterpret_cast<std::uintptr_t>(rows.memory()) % 64 == 0;
    for (int s = 0; s < Rule::kSlots; ++s) fit = fit && rows.slot_stride[s] == stride_of_slot(s);
    return fit;
  }
  PackedRows(const RowBlock& rows, const Kind& kind, bool to_level2)
      : far(to_level2), row(kind.first) {
    for (int s = 0; s < Rule::kSlots; ++s) slot[s] = rows.slot[s];
  }
  EMBERTABLE_INLINE Element* row_at(std::int64_t r) const { return row + r * kStride; }
  EMBERTABLE_INLINE float* slot_at(int s, std::int64_t r) const {
    return slot[s] + r * stride_of_slot(s);
  }
  static constexpr std::int64_t bytes() {
    std::int64_t bytes = (kBytes + 63) / 64 * 64;
    for (int s = 0; s < Rule::kSlots; ++s) bytes += Rule::row_wise(s) ? 64 : 0;
    return bytes;
  }
  EMBERTABLE_INLINE void operator()(std::uint64_t r) const {
    const auto i = static_cast<std::int64_t>(r);
    // Records of less than a line, or of a line and a half, never begin where they take one more.
    constexpr int kLines = static_cast<int>((kBytes + 63) / 64);
    prefetch_update<kLines>(row_at(i), kLines, far);
    for (int s = 0; s < Rule::kSlots; ++s)
      if (Rule::row_wise(s)) prefetch_update<1>(slot_at(s, i), 1, far);
  }
};

/// Sums in registers and applies the rule to them. kPart: rows and gradients have `tail` columns in
/// their last vector.
template <int V, bool kPart, class Source, class Rule, class Kind, class Rows>
struct FusedVisitor {
  SummedEntries<Source> entries;
  Rule rule;
  Kind kind;
  Rows rows;
  int tail;

  using Sums = typename Rule::Sums;
  using Values = typename Rule::Values;
  using Key = typename Kind::Key;

  template <class Index>
  EMBERTABLE_INLINE void make_keys(const Index* row, std::int64_t count, Key* key) const {
    kind.make_keys(row, count, key);
  }
  EMBERTABLE_INLINE Sums sums_of(const float* from, const float* gain) const {
    F16 gradient[V];
    read(gradient, from, gain);
    return rule.sums(gradient);
  }
  EMBERTABLE_INLINE Values values_of(std::uint64_t r, const Sums& sums) const {
    const Slots slots(rows, r);
    return rule.values(slots.at, sums);
  }
  EMBERTABLE_INLINE void step(std::uint64_t r, Key key, const float* from, const float* gain,
                              const Values& values) const {
    F16 gradient[V];
    read(gradient, from, gain);
    step(r, key, gradient, values);
  }
  EMBERTABLE_INLINE void single(std::uint64_t r, Key key, const float* from,
                                const float* gain) const {
    F16 gradient[V];
    read(gradient, from, gain);
    step(r, key, gradient, values_of(r, rule.sums(gradient)));
  }
  EMBERTABLE_INLINE void several(std::uint64_t r, Key key, std::uint32_t begin,
                                 std::uint32_t end) const {
    F16 gradient[V];
    sum_row<V, kPart>(gradient, entries, begin, end, tail);
    step(r, key, gradient, values_of(r, rule.sums(gradient)));
  }

 private:
  struct Slots {
    float* at[Rule::kSlots + 1] = {};
    EMBERTABLE_INLINE Slots(const Rows& rows, std::uint64_t r) {
      for (int s = 0; s < Rule::kSlots; ++s) at[s] = rows.slot_at(s, static_cast<std::int64_t>(r));
    }
  };

  EMBERTABLE_INLINE void read(F16 (&gradient)[V], const float* from, const float* gain) const {
    load_columns<V, kPart>(gradient, from, tail);
    if (gain != nullptr) multiply_columns(gradient, *gain);
  }
  EMBERTABLE_INLINE void step(std::uint64_t r, Key key, const F16 (&gradient)[V],
                              const Values& values) const {
    const Slots slots(rows, r);
    kind.step(rule, rows.row_at(static_cast<std::int64_t>(r)), key, slots.at, gradient, values);
  }
};

template <int V, bool kPart = false, class Index, class Source, class Rule, class Kind, class Rows>
EMBERTABLE_INLINE void update_walk_of(const GroupedEntries<Index>& grouped, const Source& source,
                                      int lines, const Rule& rule, const Kind& kind,
                                      const Rows& rows, int tail = 16) {
  const SummedEntries<Source> entries = summed_entries(grouped, source, lines);
  const FusedVisitor<V, kPart, Source, Rule, Kind, Rows> visitor = {entries, rule, kind, rows,
                                                                    tail};
  visit_rows<V>(grouped, entries, rows, visitor);
}

/// Gradients and rows have 16 * V columns. Packed rows have code of their own, with gradients of
/// one source and with any; all else shares one form, and so do all at the level `scalar`, whose
/// many registers per vector cost more than a stride that the compiler does not know. Returns false
/// where nothing was done: rows of bfloat16 have no shared form, since nearly all are packed.
template <int V, class Index, class Kind, class Rule>
EMBERTABLE_INLINE bool update_walk(const GroupedEntries<Index>& grouped,
                                   const GradientSource& gradients, const RowBlock& rows,
                                   const Kind& kind, const Rule& rule) {
  constexpr std::int64_t kStride = V * 16;
  const PieceSource pieces = {gradients.piece};
  if constexpr (EMBERTABLE_LEVEL > 0) {
    if (PackedRows<Rule, V, Kind>::fits(rows)) {
      const PackedRows<Rule, V, Kind> packed(rows, kind, grouped.to_level2);
      if (gradients.base != nullptr && gradients.stride == kStride) {
        const int lines = lines_of(gradients.base, kStride * 4, kStride * 4);
        update_walk_of<V>(grouped, OneSource<kStride>{gradients.base, kStride}, lines, rule, kind,
                          packed);
      } else {
        update_walk_of<V>(grouped, pieces, V, rule, kind, packed);
      }
      return true;
    }
  }
  if constexpr (sizeof(typename Kind::Element) == sizeof(float)) {
    const AnyRows<Rule, RowPrefetch> any(rows, RowPrefetch(rows, grouped.to_level2));
    update_walk_of<V>(grouped, pieces, V, rule, kind, any);
    return true;
  }
  return false;
}

/// The same for gradients and rows of floats with fewer than 16 columns. Returns false where
/// nothing was done: a row has more than one line outside of its record.
template <class Index, class Rule>
EMBERTABLE_INLINE bool update_narrow_walk(const GroupedEntries<Index>& grouped,
                                          const GradientSource& gradients, const RowBlock& rows,
                                          const Rule& rule) {
  const RowPrefetch prefetch(rows, grouped.to_level2);
  if (!PlainRowPrefetch<>::fits(prefetch)) return false;
  const AnyRows<Rule, PlainRowPrefetch<>> any(rows, PlainRowPrefetch<>(prefetch));
  const FloatRows kind(rows);
  const auto dim = static_cast<int>(rows.dim);
  if (gradients.base != nullptr) {
    const int lines = lines_of(gradients.base, gradients.stride * 4, rows.dim * 4);
    update_walk_of<1, true>(grouped, OneSource<>{gradients.base, gradients.stride}, lines, rule,
                            kind, any, dim);
  } else {
    update_walk_of<1, true>(grouped, PieceSource{gradients.piece}, 1, rule, kind, any, dim);
  }
  return true;
}
