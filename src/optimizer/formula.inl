// Turns a rule's arithmetic, written once on vectors of 16 columns, into the functions that update
// rows. The file ends with the formulas of a unit, which EMBERTABLE_RULES names: see rule_unit.inl.
// It is a level body: see kernels/for_each_level.inl. Needs optimizer/rule_spec.h.

#if !defined(__clang__)
// gcc 12 warns about its own shuffles; for_each_level.inl restores the warning.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "kernels/gradient_sum.inl"
#include "kernels/power.inl"
#include "kernels/rounding.inl"
#include "kernels/update_walk.inl"

/// The base of every formula has no slots and no sums. A formula adds its constructor and
/// `element`, which takes one step of 16 columns of a row:
///
///     F(const StepScalars& step, std::int32_t dim);
///     void element(F16& w, F16* slot, F16 g, const F16* value) const;
///
/// One that needs sums along the row names rounds of them. Each round adds up `terms`, which change
/// nothing (none if kSums is 0); then `row` makes row-wise slots and values of the sums, for 16
/// rows at once (T is F16, a row per lane) or, in fused forms, for one (T is float):
///
///     template <int kRound>
///     void terms(F16* term, F16 w, const F16* slot, F16 g, const F16* value) const;
///     template <int kRound, class T>
///     void row(const T* sum, T* slot, T* value) const;
///
/// `slot` goes by slot number: in `row` only row-wise slots are there, elsewhere only the others.
struct Formula {
  /// True if there are forms fused with the sum of the gradients. Then there is one round at most,
  /// and its terms are of the gradient alone, which rows may share. Most rules do without such
  /// forms: a tile's gradients are in the nearest cache, and each takes the compiler many seconds.
  static constexpr bool kFused = false;

  static constexpr int kSlots = 0;   ///< slots of the rule's spec
  static constexpr int kRounds = 0;  ///< rounds of sums along the row
  static constexpr int kSums = 0;    ///< in each round
  static constexpr int kValues = 0;  ///< numbers that `row` leaves for later rounds and `element`

  /// Slots with one number per row; the others have dim.
  static constexpr bool row_wise(int) { return false; }
};

/// Returns the number x for one row, or for each of 16.
template <class F>
EMBERTABLE_INLINE F number(float x) {
  if constexpr (sizeof(F) == sizeof(float)) {
    return x;
  } else {
    return set1(x);
  }
}

/// Computes beta*a + (1-beta)*x, where 1-beta is rounded to binary32.
struct MovingAverage {
  F16 beta, rest;

  explicit MovingAverage(float share) : beta(set1(share)), rest(set1(1 - share)) {}

  EMBERTABLE_INLINE F16 next(F16 a, F16 x) const { return beta * a + rest * x; }
  EMBERTABLE_INLINE F16 next_of_square(F16 a, F16 x) const { return beta * a + rest * x * x; }
};

/// Reads and writes 16 columns.
struct AllColumns {
  EMBERTABLE_INLINE F16 read(const float* p) const { return load(p); }
  EMBERTABLE_INLINE void write(float* p, F16 a) const { store(p, a); }
  EMBERTABLE_INLINE F16 zero_rest(F16 a) const { return a; }
};

/// Reads and writes the first n of 16 columns.
struct FirstColumns {
  int n;
  EMBERTABLE_INLINE F16 read(const float* p) const { return load_part(p, n); }
  EMBERTABLE_INLINE void write(float* p, F16 a) const { store_part(p, a, n); }
  EMBERTABLE_INLINE F16 zero_rest(F16 a) const {
    static constexpr float kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return select(less(load(kLane), set1(static_cast<float>(n))), a, zero16());
  }
};

/// Does nothing around the formula of a table without limits and decay.
struct Unlimited {
  explicit Unlimited(const StepScalars&) {}
  EMBERTABLE_INLINE F16 gradient(F16 g) const { return g; }
  EMBERTABLE_INLINE F16 before(F16 w) const { return w; }
  EMBERTABLE_INLINE F16 after(F16 w) const { return w; }
};

/// Clips and decays. An infinite limit changes no bit; a decay of 0 would turn -0 into +0.
struct Limited {
  F16 gradient_low, gradient_high, row_low, row_high, decay;
  bool decays;

  explicit Limited(const StepScalars& step)
      : gradient_low(set1(step.gradient_low)),
        gradient_high(set1(step.gradient_high)),
        row_low(set1(step.row_low)),
        row_high(set1(step.row_high)),
        decay(set1(step.decay)),
        decays(step.decay != 0) {}

  EMBERTABLE_INLINE F16 gradient(F16 g) const {
    return at_most(at_least(g, gradient_low), gradient_high);
  }
  EMBERTABLE_INLINE F16 before(F16 w) const { return decays ? w - decay * w : w; }
  EMBERTABLE_INLINE F16 after(F16 w) const { return at_most(at_least(w, row_low), row_high); }
};

/// One row, its slots, and the values left by the rounds so far, each in all lanes.
template <class F>
struct FormulaRow {
  float* row;
  float* slot[F::kSlots + 1];
  F16 value[F::kValues + 1];

  template <class Columns>
  EMBERTABLE_INLINE void read_slots(F16* to, int column, Columns columns) const {
    for (int s = 0; s < F::kSlots; ++s) {
      if (!F::row_wise(s)) to[s] = columns.read(slot[s] + column);
    }
  }

  /// Adds the terms of 16 columns to the lanes of the sums.
  template <int kRound, class Around, class Columns>
  EMBERTABLE_INLINE void add_terms(const F& formula, const Around& around, F16* sum, int column,
                                   F16 g, Columns columns) const {
    F16 slots[F::kSlots + 1], term[F::kSums];
    read_slots(slots, column, columns);
    formula.template terms<kRound>(term, around.before(columns.read(row + column)), slots,
                                   around.gradient(g), value);
    for (int i = 0; i < F::kSums; ++i) sum[i] = sum[i] + columns.zero_rest(term[i]);
  }

  /// Steps 16 columns.
  template <class Around, class Columns>
  EMBERTABLE_INLINE void step(const F& formula, const Around& around, int column, F16 g,
                              Columns columns) const {
    F16 slots[F::kSlots + 1];
    read_slots(slots, column, columns);
    F16 w = around.before(columns.read(row + column));
    formula.element(w, slots, around.gradient(g), value);
    columns.write(row + column, around.after(w));
    for (int s = 0; s < F::kSlots; ++s) {
      if (!F::row_wise(s)) columns.write(slot[s] + column, slots[s]);
    }
  }
};

/// Steps the rows of a tile.
template <class F, class Around>
struct TileStep {
  const RowTile& tile;
  const F formula;
  const Around around;
  float values[F::kValues + 1][RowTile::kRows];

  EMBERTABLE_INLINE FormulaRow<F> at(int r) const {
    FormulaRow<F> at;
    at.row = tile.row[r];
    for (int s = 0; s < F::kSlots; ++s) at.slot[s] = tile.slot[s][r];
    for (int i = 0; i < F::kValues; ++i) at.value[i] = set1(values[i][r]);
    return at;
  }

  template <int kRound>
  EMBERTABLE_INLINE void rounds() {
    if constexpr (kRound < F::kRounds) {
      F16 sum[F::kSums + 1];
      if constexpr (F::kSums > 0) sum_rows<kRound>(sum);
      finish_round<kRound>(sum);
      rounds<kRound + 1>();
    }
  }

  template <int kRound>
  EMBERTABLE_INLINE void sum_rows(F16* sums) const {
    F16 lanes[F::kSums][RowTile::kRows];
    for (int r = 0; r < RowTile::kRows; ++r) {
      F16 sum[F::kSums];
      for (int i = 0; i < F::kSums; ++i) sum[i] = zero16();
      if (r < tile.rows) sum_terms<kRound>(sum, r);
      for (int i = 0; i < F::kSums; ++i) lanes[i][r] = sum[i];
    }
    for (int i = 0; i < F::kSums; ++i) sums[i] = sum16_each(lanes[i]);
  }

  template <int kRound>
  EMBERTABLE_INLINE void sum_terms(F16* sum, int r) const {
    const FormulaRow<F> row = at(r);
    const float* g = tile.gradient[r];
    int c = 0;
    for (; c + 16 <= tile.dim; c += 16) {
      row.template add_terms<kRound>(formula, around, sum, c, load(g + c), AllColumns{});
    }
    if (const FirstColumns rest{tile.dim - c}; rest.n > 0) {
      row.template add_terms<kRound>(formula, around, sum, c, rest.read(g + c), rest);
    }
  }

  /// Computes row-wise slots and values from the sums, for all rows at once.
  template <int kRound>
  EMBERTABLE_INLINE void finish_round(const F16* sum) {
    F16 slot[F::kSlots + 1], value[F::kValues + 1];
    float lane[RowTile::kRows] = {};
    for (int s = 0; s < F::kSlots; ++s) {
      if (!F::row_wise(s)) continue;
      for (int r = 0; r < tile.rows; ++r) lane[r] = *tile.slot[s][r];
      slot[s] = load(lane);
    }
    for (int i = 0; kRound > 0 && i < F::kValues; ++i) value[i] = load(values[i]);
    formula.template row<kRound>(sum, slot, value);
    for (int s = 0; s < F::kSlots; ++s) {
      if (!F::row_wise(s)) continue;
      store(lane, slot[s]);
      for (int r = 0; r < tile.rows; ++r) *tile.slot[s][r] = lane[r];
    }
    for (int i = 0; i < F::kValues; ++i) store(values[i], value[i]);
  }

  EMBERTABLE_INLINE void elements() const {
    for (int r = 0; r < tile.rows; ++r) {
      const FormulaRow<F> row = at(r);
      const float* g = tile.gradient[r];
      int c = 0;
      for (; c + 16 <= tile.dim; c += 16) row.step(formula, around, c, load(g + c), AllColumns{});
      if (const FirstColumns rest{tile.dim - c}; rest.n > 0)
        row.step(formula, around, c, rest.read(g + c), rest);
    }
  }
};

/// The form for any dim.
template <class F, class Around>
void update_formula_rows(const RowTile& tile, const StepScalars& step) noexcept {
  TileStep<F, Around> rows = {tile, F(step, tile.dim), Around(step), {}};
  rows.template rounds<0>();
  rows.elements();
}

/// A row of V vectors whose gradient is in registers, as update_walk wants it. `columns` says which
/// columns of a vector there are.
template <class F, class Columns = AllColumns>
struct FusedStep {
  static constexpr int kSlots = F::kSlots;
  static constexpr bool row_wise(int slot) { return F::row_wise(slot); }
  F formula;
  Unlimited around;
  Columns columns = {};

  static_assert(F::kRounds <= 1);
  struct Sums {
    float sum[F::kSums + 1];
  };
  struct Values {
    float value[F::kValues + 1];
  };

  template <int V>
  EMBERTABLE_INLINE Sums sums(const F16 (&g)[V]) const {
    Sums made = {};
    if constexpr (F::kRounds > 0) {
      F16 lanes[F::kSums], term[F::kSums];
      for (int i = 0; i < F::kSums; ++i) lanes[i] = zero16();
      for (int v = 0; v < V; ++v) {
        formula.template terms<0>(term, zero16(), nullptr, around.gradient(g[v]), nullptr);
        for (int i = 0; i < F::kSums; ++i) lanes[i] = lanes[i] + columns.zero_rest(term[i]);
      }
      for (int i = 0; i < F::kSums; ++i) made.sum[i] = sum16(lanes[i]);
    }
    return made;
  }

  EMBERTABLE_INLINE Values values(float* const* slot, const Sums& sums) const {
    Values made = {};
    if constexpr (F::kRounds > 0) {
      float slots[F::kSlots + 1];
      for (int s = 0; s < F::kSlots; ++s) {
        if (F::row_wise(s)) slots[s] = *slot[s];
      }
      formula.template row<0>(sums.sum, slots, made.value);
      for (int s = 0; s < F::kSlots; ++s) {
        if (F::row_wise(s)) *slot[s] = slots[s];
      }
    }
    return made;
  }

  template <int V>
  EMBERTABLE_INLINE void step(float* row, float* const* slot, const F16 (&g)[V],
                              const Values& values) const {
    FormulaRow<F> at;
    at.row = row;
    for (int s = 0; s < F::kSlots; ++s) at.slot[s] = slot[s];
    for (int i = 0; i < F::kValues; ++i) at.value[i] = set1(values.value[i]);
    for (int v = 0; v < V; ++v) at.step(formula, around, v * 16, g[v], columns);
  }
};

template <class F, int V>
bool update_formula_groups(const GroupedEntries<std::uint32_t>& entries,
                           const GradientSource& gradients, const RowBlock& rows,
                           const StepScalars& step) noexcept {
  const FusedStep<F> rule = {F(step, 16 * V), Unlimited(step)};
  return rows.is_half() ? update_walk<V>(entries, gradients, rows, HalfRows(rows, step), rule)
                        : update_walk<V>(entries, gradients, rows, FloatRows(rows), rule);
}

/// The same for rows of fewer than 16 columns.
template <class F>
bool update_narrow_groups(const GroupedEntries<std::uint32_t>& entries,
                          const GradientSource& gradients, const RowBlock& rows,
                          const StepScalars& step) noexcept {
  const auto dim = static_cast<int>(rows.dim);
  const FusedStep<F, FirstColumns> rule = {F(step, dim), Unlimited(step), FirstColumns{dim}};
  return update_narrow_walk(entries, gradients, rows, rule);
}

/// Returns all forms of a formula.
template <class F>
constexpr RuleForms formula_forms() {
  RuleForms forms = {.rows = update_formula_rows<F, Unlimited>,
                     .limited_rows = update_formula_rows<F, Limited>};
  if constexpr (F::kFused) {
    forms.narrow_groups = update_narrow_groups<F>;
    forms.groups[0] = update_formula_groups<F, 1>;
    forms.groups[1] = update_formula_groups<F, 2>;
    forms.groups[2] = update_formula_groups<F, 4>;
    forms.groups[3] = update_formula_groups<F, 8>;
    // A gradient of 256 does not fit into 16 registers of four floats: tiles are faster.
    if constexpr (EMBERTABLE_LEVEL > 0) forms.groups[4] = update_formula_groups<F, 16>;
  }
  return forms;
}

#include EMBERTABLE_RULES
