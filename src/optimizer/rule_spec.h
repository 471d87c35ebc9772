#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

#include "base/rows.h"
#include "embertable/optimizer.h"
#include "kernels/level.h"
#include "kernels/update.h"

namespace embertable {

/// A parameter of a rule: its default and the values it may take.
struct RuleParameter {
  std::string_view name;
  double default_value = 0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   ///< `low` itself is not allowed
  bool high_open = false;  ///< `high` itself is not allowed

  /// If not empty, the value is an index into these names, which users write and read.
  std::span<const std::string_view> choices = {};

  /// True if the value is one of `choices` instead of a number.
  bool is_choice() const noexcept { return !choices.empty(); }

  /// True for a finite value within the range; for a choice, true for an index.
  bool contains(double value) const noexcept;

  /// True if the range contains the value, and the value rounded to binary32 too.
  bool allows(double value) const noexcept {
    return contains(value) && contains(static_cast<float>(value));
  }
};

/// The choices of a parameter that is true or false.
inline constexpr std::string_view kFlag[] = {"false", "true"};

/// A slot as a rule's file describes it.
struct SlotSpec {
  std::string_view name;
  bool row_wise = false;                ///< one number per row instead of dim
  std::string_view initial_value = {};  ///< the parameter that gives it; empty: it is 0
  std::string_view only_with = {};      ///< if set, the slot exists where this parameter is not 0
};

/// Inputs of a step from which a rule derives its scalars.
struct StepInputs {
  float learning_rate = 0;
  std::int64_t step = 1;   ///< step of the table's optimizer, 1 for the first
  float step_counter = 1;  ///< OptimizerOptions::step_counter, else `step`
};

/// Dims that have a form fused with the sum of the gradients, beside those below the first.
inline constexpr std::int32_t kFusedDims[] = {16, 32, 64, 128, 256};

/// A formula compiled for one SIMD level: see formula.inl.
struct RuleForms {
  UpdateRows rows = nullptr;          ///< any dim
  UpdateRows limited_rows = nullptr;  ///< any dim, with clipping and decay
  UpdateGroups<std::uint32_t> groups[std::size(kFusedDims)] = {};  ///< by kFusedDims, or null
  UpdateGroups<std::uint32_t> narrow_groups = nullptr;  ///< below kFusedDims, rows of floats
};

inline constexpr int kSimdLevels = 3;

/// One rule as data: a constant in NAME.inl, called NAME, beside the formula. Arrays end with the
/// first element that has no name.
struct RuleSpec {
  std::string_view name;
  double default_learning_rate = 0;

  /// All parameters but the learning rate, in the order in which they are printed and stand in
  /// StepScalars::value.
  RuleParameter parameters[StepScalars::kMaxValues] = {};

  /// Slots in the order of the original's load and retrieve operations.
  SlotSpec slots[kMaxSlots] = {};

  /// If set, rows that no batch names take each step too, with a gradient of zero, where the
  /// parameter has this value. Such an optimizer has to accumulate gradients, since a row takes a
  /// step once.
  struct EveryRow {
    std::string_view parameter = {};
    bool value = true;
  } steps_every_row = {};

  bool gives_sums = false;           ///< see Rule::gives_sums
  bool keeps_rows_of_zeros = false;  ///< see Rule::keeps_rows_of_zeros
  bool counts_steps = false;         ///< see Rule::counts_steps

  /// True if the rule has a decay of its own, `weight_decay`: the common one must then be 0.
  bool has_own_decay = false;

  /// If not 0, the rule steps only tables of this dim.
  std::int32_t only_dim = 0;

  /// Throws ValueError, naming rule, field and value, for a condition that no field above states.
  void (*check)(const Optimizer&) = nullptr;

  /// Derives the scalars of a step. StepScalars::value starts with the parameters in binary32;
  /// derived values follow them.
  void (*prepare)(const StepInputs&, StepScalars&) noexcept = nullptr;

  /// The formula by SIMD level: EMBERTABLE_FORMS(Formula).
  RuleForms forms[kSimdLevels] = {};

  /// A second formula, used where the parameter is not 0.
  struct OtherFormula {
    std::string_view parameter = {};
    RuleForms forms[kSimdLevels] = {};
  } other_formula = {};
};

}  // namespace embertable
