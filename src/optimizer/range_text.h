#pragma once

#include <string>

#include "optimizer/rule_spec.h"

namespace embertable {

/// Returns what a parameter may be: "> 0", "in [0, 1)", "finite" or "false or true".
std::string range_text(const RuleParameter& parameter);

}  // namespace embertable
