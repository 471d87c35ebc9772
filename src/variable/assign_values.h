#pragma once

#include <vector>

#include "embertable/variables/variable_checkpoint.h"

namespace embertable {

/// Gives the variables, in their order, new values by component. These are of the right dtypes and
/// shapes, and every component is assignable: nothing fails halfway.
void assign_values(const CheckpointVariables& variables,
                   const std::vector<std::vector<Tensor>>& values);

}  // namespace embertable
