#pragma once

#include "kernels/gather/gather.h"

namespace embertable {

// `gather` for one type of rows other than float32: each is a unit, because one takes the compiler
// long.
template <class Index>
void gather_half_rows(const Gather<Index>& args, SimdLevel level) noexcept;
void gather_int8_rows(const Gather<std::uint64_t>& args, SimdLevel level) noexcept;

}  // namespace embertable
