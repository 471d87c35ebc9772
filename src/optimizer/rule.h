#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

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
  bool low_open = false;   ///< low itself is not allowed
  bool high_open = false;  ///< high itself is not allowed

  /// True for a finite value within the range.
  bool contains(double value) const noexcept;

  /// True if the value and its binary32 are so.
  bool allows(double value) const noexcept {
    return contains(value) && contains(static_cast<float>(value));
  }
};

/// A slot that a rule keeps beside each row.
struct RuleSlot {
  std::string_view name;
  bool row_wise = false;  ///< one number per row instead of dim
  float initial_value = 0;
};

/// The dims that have a form fused with the sum of the gradients.
inline constexpr std::int32_t kFusedDims[] = {16, 32, 64, 128, 256};

/// A rule's arithmetic, compiled for one level: see formula.inl.
struct RuleForms {
  UpdateRows rows = nullptr;                                       ///< any dim
  UpdateGroups<std::uint32_t> groups[std::size(kFusedDims)] = {};  ///< by kFusedDims, or null
};

/// What an optimizer does to rows. One object for each rule, in one file, listed once in
/// registry.cc. Stateless: parameters come as the `Optimizer` that names them, rates and step
/// counts with each step.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual std::string_view name() const noexcept = 0;

  /// All but the learning rate, in the order in which they are printed.
  virtual std::span<const RuleParameter> parameters() const noexcept { return {}; }

  virtual double default_learning_rate() const noexcept = 0;

  /// In the order of the original's load and retrieve operations; at most kMaxSlots.
  virtual std::int32_t num_slots() const noexcept { return 0; }
  virtual RuleSlot slot(std::int32_t index, const Optimizer& optimizer) const;

  /// The scalars of step `step` (1 for the first), with this step's rate. Hyperparameters are
  /// rounded to binary32 here, once.
  virtual StepScalars begin_step(const Optimizer& optimizer, float learning_rate,
                                 std::int64_t step) const noexcept;

  /// One step of a tile of rows, any dim.
  UpdateRows update_rows(SimdLevel level) const noexcept;

  /// The form fused with the sum of the gradients, or null where this rule has none for that dim.
  UpdateGroups<std::uint32_t> update_groups(SimdLevel level, std::int32_t dim) const noexcept;

 protected:
  virtual const RuleForms& forms(SimdLevel level) const noexcept = 0;
};

/// Every rule, sorted by name.
std::span<const Rule* const> all_rules() noexcept;

/// Throws ValueError naming the rule and the nearest known name.
const Rule& find_rule(std::string_view name);

}  // namespace embertable
