#include "kernels/gradient_sum.inl"
#include "kernels/rounding.inl"
#include "kernels/update_walk.inl"

/// Sets the row to its gradient; the slots count.
struct Assign {
  static constexpr int kSlots = 2;
  static constexpr bool row_wise(int slot) { return slot == 0; }
  template <int V>
  EMBERTABLE_INLINE void apply(float* row, float* const* slot, const F16 (&g)[V]) const {
    for (int v = 0; v < V; ++v) store(row + v * 16, g[v]);
    *slot[0] += 1;
    slot[1][V * 16 - 1] += 1;
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
  EMBERTABLE_INLINE void apply(float* row, float* const* slot, const F16 (&g)[V]) const {
    store_part(row, g[0], columns);
    *slot[0] += 1;
    slot[1][columns - 1] += 1;
  }
};

inline bool assign_narrow_groups(const GroupedEntries<std::uint32_t>& entries,
                                 const GradientSource& gradients, const RowBlock& rows,
                                 const StepScalars&) noexcept {
  return update_narrow_walk(entries, gradients, rows, AssignNarrow{{}, static_cast<int>(rows.dim)});
}
