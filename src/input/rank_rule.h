#pragma once

#include <string>

#include "embertable/batch.h"

namespace embertable::input {

/// The shape of dense ids; that of a vector where they have none.
Shape shape_of(const DenseIds& ids);

/// The rule on ranks and shapes that the ids break, with what was received, or "". Source:
/// engine.md 2.2, rC.
std::string broken_rank_rule(const FeatureIds& ids);

}  // namespace embertable::input
