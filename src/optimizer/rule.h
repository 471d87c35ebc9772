#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/optimizer.h"
#include "kernels/level.h"
#include "kernels/update.h"
#include "optimizer/rule_spec.h"

namespace embertable {

/// A slot that an optimizer keeps beside each row.
struct RuleSlot {
  std::string_view name;
  bool row_wise = false;  ///< one number per row instead of dim
  float initial_value = 0;
  std::optional<Initializer> initializer = {};  ///< instead of the value
};

/// What an optimizer does to rows, as its `RuleSpec` describes it. A rule is stateless: parameters
/// come as the `Optimizer` that names them, rates and step counts with each step.
class Rule {
 public:
  /// The spec is borrowed for as long as the rule exists.
  explicit Rule(const RuleSpec& spec) noexcept : spec_(spec) {}
  virtual ~Rule() = default;

  std::string_view name() const noexcept { return spec_.name; }

  /// Returns all parameters but the learning rate, in the order in which they are printed and
  /// stored in StepScalars::value.
  std::span<const RuleParameter> parameters() const noexcept;

  double default_learning_rate() const noexcept { return spec_.default_learning_rate; }

  /// Returns the slots, at most kMaxSlots, in the order of the original's load and retrieve
  /// operations.
  virtual std::vector<RuleSlot> slots(const Optimizer& optimizer) const;

  /// True if rows that no batch names take each step too, with a gradient of zero.
  virtual bool steps_every_row(const Optimizer& optimizer) const noexcept;

  /// True if no row changes and the caller receives their gradients instead. StepScalars::context
  /// is then a GradientSums, or null.
  bool gives_sums() const noexcept { return spec_.gives_sums; }

  /// True if a row of zeros never changes, because steps are proportional to the row's length.
  bool keeps_rows_of_zeros() const noexcept { return spec_.keeps_rows_of_zeros; }

  /// True if OptimizerOptions::step_counter takes part in its steps.
  bool counts_steps() const noexcept { return spec_.counts_steps; }

  /// Throws ValueError, naming rule, field and value, for settings that each parameter's range
  /// allows but the rule does not.
  void check(const Optimizer& optimizer) const;

  /// Throws ValueError, naming rule and dim, for a table whose rows this rule cannot step.
  void check_dim(std::int32_t dim) const;

  /// Returns the scalars that all steps of an optimizer begin with: limits, decay and parameters.
  StepScalars scalars(const Optimizer& optimizer) const noexcept;

  /// Returns the scalars of a step: those common to all rules and the rule's own. `scalars` are
  /// those of the optimizer.
  StepScalars begin_step(const Optimizer& optimizer, StepScalars scalars,
                         const StepInputs& inputs) const noexcept;
  StepScalars begin_step(const Optimizer& optimizer, const StepInputs& inputs) const noexcept {
    return begin_step(optimizer, scalars(optimizer), inputs);
  }

  /// Returns the function that steps a tile of rows of any dim.
  UpdateRows update_rows(SimdLevel level, const Optimizer& optimizer) const noexcept;

  /// Returns the form fused with the sum of the gradients, or null if there is none for this level,
  /// these rows or these options.
  UpdateGroups<std::uint32_t> update_groups(SimdLevel level, const Optimizer& optimizer,
                                            std::int64_t dim, RowType type) const noexcept;

 private:
  const RuleForms& forms(SimdLevel level, const Optimizer& optimizer) const noexcept;

  const RuleSpec& spec_;
};

/// Every rule, sorted by name.
std::span<const Rule> all_rules() noexcept;

/// Returns the rule that a name stands for, its own or that of a variant, in any case of the
/// letters; null if there is none.
const Rule* known_rule(std::string_view name);

/// Returns what known_rule does. Throws ValueError naming an unknown rule and the nearest name.
const Rule& find_rule(std::string_view name);

/// Returns the rule of an optimizer, which may be the caller's own.
const Rule& rule_of(const Optimizer& optimizer) noexcept;

}  // namespace embertable
