#pragma once

#include <vector>

#include "embertable/variables/variable_checkpoint.h"

namespace embertable {

/// Assigns new values to the variables, in their order, by component. Requires: the values have the
/// right dtypes and shapes, and every component is assignable, so that nothing fails halfway.
void assign_values(const CheckpointVariables& variables,
                   const std::vector<std::vector<Tensor>>& values);

}  // namespace embertable
