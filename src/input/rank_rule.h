#pragma once

#include <string>

#include "embertable/batch.h"

namespace embertable::input {

/// Returns the shape of dense ids; that of a vector if they give none.
Shape shape_of(const DenseIds& ids);

/// Returns the rule on ranks and shapes that the ids break, with the received value, or "". Source:
/// engine.md 2.2, rC.
std::string broken_rank_rule(const FeatureIds& ids);

}  // namespace embertable::input
