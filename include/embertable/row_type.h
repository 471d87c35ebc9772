#pragma once

#include <cstdint>
#include <string_view>

#include "embertable/version.h"

namespace embertable {

/// How a table's rows are stored. Slots, gradients, sums and activations are float32 always.
enum class RowType : std::uint8_t {
  kFloat32 = 0,

  /// The upper half of a float32's bits: half the memory, 8 significant bits. Rows are widened
  /// exactly when they are looked up. An update is computed in float32 and rounded stochastically,
  /// so that small steps count on average; see docs/optimizers.md.
  kBfloat16 = 1,

  /// One byte per number, with a scale and an offset per row: number = byte * scale + offset.
  /// Made by an export of a checkpoint, and only served.
  kInt8 = 2,
};

/// Returns "float32", "bfloat16" or "int8".
EMBERTABLE_API std::string_view to_string(RowType type) noexcept;

/// Reverses to_string. Throws ValueError naming the accepted names.
EMBERTABLE_API RowType parse_row_type(std::string_view name);

/// Returns whether engines train rows of this type.
EMBERTABLE_API bool is_trainable(RowType type) noexcept;

/// Does the same as parse_row_type for the types that engines train.
EMBERTABLE_API RowType parse_trainable_row_type(std::string_view name);

}  // namespace embertable
