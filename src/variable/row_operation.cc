#include "variable/row_operation.h"

#include <type_traits>

#include "tensor/element_type.h"
#include "tensor/wrapping.h"

namespace embertable {
namespace {

/// Type in which an element is computed.
template <class T>
using Computed =
    std::conditional_t<std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>, float, T>;

template <class C>
C operated(ScatterOperation operation, C x, C v) {
  switch (operation) {
    case ScatterOperation::kAdd:
      return Wrapping<C>::add(x, v);
    case ScatterOperation::kSub:
      return Wrapping<C>::sub(x, v);
    case ScatterOperation::kMul:
      return Wrapping<C>::mul(x, v);
    case ScatterOperation::kDiv:
      return Wrapping<C>::div(x, v);
    case ScatterOperation::kMin:
      return v < x || v != v ? v : x;
    case ScatterOperation::kMax:
      return x < v || v != v ? v : x;
    case ScatterOperation::kUpdate:
      return v;
  }
  return x;
}

/// kOperation is a constant of the loop, so that it can be vectorized.
template <class T, ScatterOperation kOperation>
void change_line(T* x, const T* v, std::int64_t count) {
  using C = Computed<T>;
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = static_cast<T>(operated(kOperation, static_cast<C>(x[i]), static_cast<C>(v[i])));
}

template <class T>
void change_line_of(ScatterOperation operation, T* x, const T* v, std::int64_t count) {
  switch (operation) {
    case ScatterOperation::kAdd:
      return change_line<T, ScatterOperation::kAdd>(x, v, count);
    case ScatterOperation::kSub:
      return change_line<T, ScatterOperation::kSub>(x, v, count);
    case ScatterOperation::kMul:
      return change_line<T, ScatterOperation::kMul>(x, v, count);
    case ScatterOperation::kDiv:
      return change_line<T, ScatterOperation::kDiv>(x, v, count);
    case ScatterOperation::kMin:
      return change_line<T, ScatterOperation::kMin>(x, v, count);
    case ScatterOperation::kMax:
      return change_line<T, ScatterOperation::kMax>(x, v, count);
    case ScatterOperation::kUpdate:
      for (std::int64_t i = 0; i < count; ++i) x[i] = v[i];
  }
}

}  // namespace

void apply_to_line(LineOperation what, std::byte* x, const std::byte* v,
                   std::int64_t count) noexcept {
  with_element_type(what.dtype, [&](auto element) {
    using T = typename decltype(element)::Type;
    if constexpr (std::is_same_v<T, bool>) {
      for (std::int64_t i = 0; i < count; ++i) x[i] = v[i];
    } else {
      change_line_of(what.operation, reinterpret_cast<T*>(x), reinterpret_cast<const T*>(v), count);
    }
  });
}

}  // namespace embertable
