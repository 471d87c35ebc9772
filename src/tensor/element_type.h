#pragma once

#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// Stands for a type where a function wants a value.
template <class T>
struct ElementType {
  using Type = T;
};

/// Calls call(ElementType<T>{}), where T is the element type of the dtype.
template <class Call>
decltype(auto) with_element_type(DType dtype, Call&& call) {
  switch (dtype) {
    case DType::kFloat32:
      return call(ElementType<float>{});
    case DType::kFloat64:
      return call(ElementType<double>{});
    case DType::kInt32:
      return call(ElementType<std::int32_t>{});
    case DType::kInt64:
      return call(ElementType<std::int64_t>{});
    case DType::kBool:
      return call(ElementType<bool>{});
    case DType::kBFloat16:
      return call(ElementType<BFloat16>{});
    case DType::kFloat16:
      return call(ElementType<Float16>{});
  }
  EMBERTABLE_ASSERT(false);
}

inline bool is_half(DType dtype) noexcept {
  return dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}
inline bool is_integer(DType dtype) noexcept {
  return dtype == DType::kInt32 || dtype == DType::kInt64;
}
inline bool is_floating(DType dtype) noexcept {
  return is_half(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

}  // namespace embertable
