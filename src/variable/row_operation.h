#pragma once

#include <cstddef>
#include <cstdint>

#include "embertable/variables/sharded_variable.h"

namespace embertable {

/// x[i] = x[i] (op) v[i] for `count` elements, each rounded to the dtype; integers wrap. Requires:
/// a bool is only updated, and no integer is divided by zero.
struct LineOperation {
  ScatterOperation operation = ScatterOperation::kAdd;
  DType dtype = DType::kFloat32;
};
void apply_to_line(LineOperation what, std::byte* x, const std::byte* v,
                   std::int64_t count) noexcept;

}  // namespace embertable
