#include "kernels/gradient_sum.inl"
#include "kernels/rounding.inl"
#include "kernels/update_walk.inl"

/// Sets the row to its gradient, or to infinity where that does not belong to the row's sums and
/// values; the slots count.
struct Assign {
  static constexpr int kSlots = 2;
  static constexpr bool row_wise(int slot) { return slot == 0; }
  struct Sums {
    float first;
  };
  struct Values {
    float first;
  };

  template <int V>
  EMBERTABLE_INLINE Sums sums(const F16 (&g)[V]) const {
    return {first_of(g[0])};
  }
  EMBERTABLE_INLINE Values values(float* const* slot, const Sums& sums) const {
    *slot[0] += 1;
    return {sums.first};
  }
  template <int V>
  EMBERTABLE_INLINE void step(float* row, float* const* slot, const F16 (&g)[V],
                              const Values& values) const {
    for (int v = 0; v < V; ++v) store(row + v * 16, checked(g[v], g[0], values));
    slot[1][V * 16 - 1] += 1;
  }

 protected:
  static float first_of(F16 x) {
    float lanes[16];
    store(lanes, x);
    return lanes[0];
  }
  static F16 checked(F16 x, F16 first, const Values& values) {
    const bool same = __builtin_bit_cast(std::uint32_t, first_of(first)) ==
                      __builtin_bit_cast(std::uint32_t, values.first);
    return same ? x : set1(std::numeric_limits<float>::infinity());
  }
};

template <int V>
bool assign_groups(const GroupedEntries<std::uint32_t>& entries, const GradientSource& gradients,
                   const RowBlock& rows, const StepScalars& step) noexcept {
  return rows.is_half() ? update_walk<V>(entries, gradients, rows, HalfRows(rows, step), Assign{})
                        : update_walk<V>(entries, gradients, rows, FloatRows(rows), Assign{});
}

/// The same for fewer than 16 columns.
struct AssignNarrow : Assign {
  int columns;
  template <int V>
  EMBERTABLE_INLINE void step(float* row, float* const* slot, const F16 (&g)[V],
                              const Values& values) const {
    store_part(row, checked(g[0], g[0], values), columns);
    slot[1][columns - 1] += 1;
  }
};

inline bool assign_narrow_groups(const GroupedEntries<std::uint32_t>& entries,
                                 const GradientSource& gradients, const RowBlock& rows,
                                 const StepScalars&) noexcept {
  return update_narrow_walk(entries, gradients, rows, AssignNarrow{{}, static_cast<int>(rows.dim)});
}
