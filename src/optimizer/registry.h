#pragma once

#include "optimizer/rule_spec.h"

// rule_list.inl, which CMakeLists.txt makes, has EMBERTABLE_RULE(NAME) for each rule, sorted by
// name.
namespace embertable::rules {
#define EMBERTABLE_RULE(name) extern const RuleSpec name;
#include "optimizer/rule_list.inl"
#undef EMBERTABLE_RULE
}  // namespace embertable::rules
