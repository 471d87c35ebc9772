#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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

  /// Not empty: the value is the position of one of these, which are how it is given and printed.
  std::span<const std::string_view> choices = {};

  /// Not a number but one of `choices`.
  bool is_choice() const noexcept { return !choices.empty(); }

  /// True for a finite value within the range; of a choice, for a position.
  bool contains(double value) const noexcept;

  /// True if the value and its binary32 are so.
  bool allows(double value) const noexcept {
    return contains(value) && contains(static_cast<float>(value));
  }
};

/// The choices of a parameter that is true or false.
inline constexpr std::string_view kFlag[] = {"false", "true"};

/// A slot that a rule keeps beside each row.
struct RuleSlot {
  std::string_view name;
  bool row_wise = false;  ///< one number per row instead of dim
  float initial_value = 0;
  std::optional<Initializer> initializer = {};  ///< instead of the value
};

/// What a rule may want to know of a step.
struct StepInputs {
  float learning_rate = 0;
  std::int64_t step = 1;   ///< of the table's optimizer, 1 for the first
  float step_counter = 1;  ///< OptimizerOptions::step_counter, else `step`
};

/// The dims that have a form fused with the sum of the gradients.
inline constexpr std::int32_t kFusedDims[] = {16, 32, 64, 128, 256};

/// A rule's arithmetic, compiled for one level: see formula.inl.
struct RuleForms {
  UpdateRows rows = nullptr;          ///< any dim
  UpdateRows limited_rows = nullptr;  ///< any dim, with clipping and decay
  UpdateGroups<std::uint32_t> groups[std::size(kFusedDims)] = {};  ///< by kFusedDims, or null
};

/// What an optimizer does to rows. One object for each rule, in one file, listed once in
/// registry.cc. Stateless: parameters come as the `Optimizer` that names them, rates and step
/// counts with each step.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual std::string_view name() const noexcept = 0;

  /// All but the learning rate, in the order in which they are printed and stand in
  /// StepScalars::value; at most kMaxValues.
  virtual std::span<const RuleParameter> parameters() const noexcept { return {}; }

  virtual double default_learning_rate() const noexcept = 0;

  /// In the order of the original's load and retrieve operations; at most kMaxSlots.
  virtual std::vector<RuleSlot> slots(const Optimizer&) const { return {}; }

  /// Whether rows that no batch names take each step too, with a gradient of zero.
  virtual bool steps_every_row(const Optimizer&) const noexcept { return false; }

  /// Whether no row changes and the caller receives their gradients instead. StepScalars::context
  /// is then a GradientSums, or null.
  virtual bool gives_sums() const noexcept { return false; }

  /// Whether a row of zeros stays one whatever its gradients are: a step is as long as the row.
  virtual bool keeps_rows_of_zeros() const noexcept { return false; }

  /// Throws ValueError, naming rule, field and value, for what no range of one parameter says.
  virtual void check(const Optimizer&) const {}

  /// Throws ValueError, naming rule and dim, for a table whose rows this rule cannot step.
  virtual void check_dim(std::int32_t) const {}

  /// The scalars of a step: what is common to all rules and the rule's own.
  StepScalars begin_step(const Optimizer& optimizer, const StepInputs& inputs) const noexcept;

  /// One step of a tile of rows, any dim.
  UpdateRows update_rows(SimdLevel level, const Optimizer& optimizer) const noexcept;

  /// The form fused with the sum of the gradients, or null where there is none for this dim or
  /// these options.
  UpdateGroups<std::uint32_t> update_groups(SimdLevel level, const Optimizer& optimizer,
                                            std::int32_t dim) const noexcept;

 protected:
  /// Makes of the parameters, which stand in value in their order as binary32, what the formula
  /// wants to find there.
  virtual void scalars(const Optimizer&, const StepInputs&, StepScalars&) const noexcept {}

  virtual const RuleForms& forms(SimdLevel level, const Optimizer& optimizer) const noexcept = 0;
};

/// For a rule of which every row takes each step, as `flag` asks: throws ValueError, naming flag
/// and its value, unless gradients are accumulated, since a row has to take it once.
void check_accumulation(const Optimizer& optimizer, std::string_view flag);

/// For a rule that has a decay of its own, `weight_decay`: throws ValueError, naming the common
/// one's value, where that is set too.
void check_no_common_decay(const Optimizer& optimizer);

/// Every rule, sorted by name.
std::span<const Rule* const> all_rules() noexcept;

/// Throws ValueError naming the rule and the nearest name of a rule or a variant.
const Rule& find_rule(std::string_view name);

/// That of an optimizer, which may be the caller's own.
const Rule& rule_of(const Optimizer& optimizer) noexcept;

}  // namespace embertable
