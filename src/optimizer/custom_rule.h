#pragma once

#include "embertable/optimizer.h"
#include "optimizer/rule.h"

namespace embertable {

/// Returns the rule of every optimizer that has a `CustomRule`. Its steps leave exceptions in
/// StepScalars::failure.
const Rule& custom_rule() noexcept;

/// Throws ValueError naming what is wrong with the rule.
void check(const CustomRule& rule);

}  // namespace embertable
