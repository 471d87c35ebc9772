#pragma once

#include <string>
#include <vector>

#include "embertable/optimizer.h"
#include "embertable/version.h"

namespace embertable {

/// A slot that an optimizer keeps beside each row.
struct OptimizerSlot {
  std::string name;
  bool row_wise = false;    ///< one number per row instead of dim
  float initial_value = 0;  ///< 0 where an initializer of the caller's gives it
};

/// Returns the slots of an optimizer, in the order of the original's load and retrieve operations.
EMBERTABLE_API std::vector<OptimizerSlot> slots_of(const Optimizer& optimizer);

/// Describes a rule: its parameters with their defaults and limits, and its slots.
struct OptimizerRule {
  struct Parameter {
    std::string name;
    Setting default_value;             ///< a number, true or false, or one of `choices`
    std::vector<std::string> choices;  ///< if not empty, the values it takes, by name
    std::string range;                 ///< what a number may be: "> 0", "in [0, 1)", "finite"
  };
  std::string name;
  double default_learning_rate = 0;
  std::vector<Parameter> parameters;  ///< all but the learning rate, in the order of printing
  std::vector<OptimizerSlot> slots;   ///< with the defaults of all parameters
};

/// Returns the description of every rule, sorted by name.
EMBERTABLE_API std::vector<OptimizerRule> describe_optimizer_rules();

}  // namespace embertable
