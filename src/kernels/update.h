#pragma once

#include <cstdint>

#include "base/entries.h"
#include "base/rows.h"

namespace embertable {

class CallbackFailure;

/// Scalars that a rule needs for a step; filled by the rule's `begin_step`, the same for all rows
/// of a table.
struct StepScalars {
  float learning_rate = 0;

  // Applied around every formula, if limits or decay are set.
  float gradient_low = 0, gradient_high = 0;  ///< infinite where unset
  float row_low = 0, row_high = 0;            ///< infinite where unset
  float decay = 0;                            ///< multiplied by the rate if asked for; 0: none

  static constexpr int kMaxValues = 14;
  float value[kMaxValues] = {};  ///< the rule's own: parameters and what it derives from the step
  std::int64_t step = 1;         ///< step of the table's optimizer, from 1

  void* context = nullptr;             ///< its meaning is the rule's own
  CallbackFailure* failure = nullptr;  ///< receives the exception of a user's function
};

/// Up to 16 rows, each with its slots and its summed gradient, by address; for every rule and every
/// dim.
struct RowTile {
  static constexpr std::int32_t kRows = 16;
  float* const* row;              ///< [rows]
  float* const* slot[kMaxSlots];  ///< [rows] each
  const float* const* gradient;   ///< [rows], each dim floats
  std::int32_t rows;
  std::int32_t dim;

  /// [rows], each row's number in the shard, where `row` is not its place in the shard; else null.
  const std::uint64_t* number = nullptr;
};
using UpdateRows = void (*)(const RowTile& tile, const StepScalars& step) noexcept;

/// The entries of one bucket by row. Rows named once are kept apart, because they need no order and
/// no sum. `Index` is uint32_t or uint64_t.
template <class Index>
struct GroupedEntries {
  const Index* single_row = nullptr;          ///< [singles]
  const std::uint32_t* single_out = nullptr;  ///< [singles], as UpdateEntry::out
  std::int64_t singles = 0;
  const Index* multi_row = nullptr;            ///< [multis]
  const std::uint32_t* multi_start = nullptr;  ///< [multis + 1], into order
  std::int64_t multis = 0;
  const std::uint32_t* order = nullptr;  ///< outs of the multis, canonical order within a row
  const float* single_gain = nullptr;    ///< parallel to single_out, or null: all 1
  const float* order_gain = nullptr;     ///< parallel to order, or null: all 1
  bool to_level2 = false;  ///< rows are fetched ahead into the second-level cache, not the first
  bool bursts = false;     ///< rows are fetched many at once, not one before each that is updated
  bool near_gradients = false;  ///< gradients are in a near cache, and are not fetched ahead
};

/// Locates the gradients of a bucket's entries.
struct GradientSource {
  const GradientPiece* piece = nullptr;  ///< by out / kPieceRows

  /// Not null if every output row is at base + out * stride (one feature of one core).
  const float* base = nullptr;
  std::int64_t stride = 0;
};

/// Sums each row's gradients and applies a rule to it while the sum is in registers. Returns false
/// if there is no such form for this layout of rows; then nothing was done.
template <class Index>
using UpdateGroups = bool (*)(const GroupedEntries<Index>& entries, const GradientSource& gradients,
                              const RowBlock& rows, const StepScalars& step) noexcept;

}  // namespace embertable
