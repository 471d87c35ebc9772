// The dtypes, as an enumeration to check.
#pragma once

#include "base/enumerators.h"
#include "embertable/variables/tensor.h"

namespace embertable {

template <>
struct Enumerators<DType> : EnumeratorRange<DType::kFloat32, DType::kFloat16> {};

}  // namespace embertable
