#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "embertable/checkpoint.h"

namespace embertable::jobs {

/// Name of a type in a tensor: F32, F64, I32 or I64.
template <class T>
constexpr const char* dtype_of() {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return std::is_floating_point_v<T> ? (sizeof(T) == 4 ? "F32" : "F64")
                                     : (sizeof(T) == 4 ? "I32" : "I64");
}

/// Returns values as a checkpoint keeps them.
template <class T>
DenseTensor saved_tensor(const std::vector<T>& values, std::vector<std::int64_t> shape) {
  DenseTensor tensor{.dtype = dtype_of<T>(), .shape = std::move(shape), .bytes = {}};
  tensor.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return tensor;
}
template <class T>
DenseTensor saved_tensor(const std::vector<T>& values) {
  return saved_tensor(values, {std::ssize(values)});
}

/// Saves lists of rows, back to back: the tensors "NAME.splits" [lists + 1] and "NAME.ids".
inline void save_lists(const std::string& name, const std::vector<std::int64_t>& splits,
                       const std::vector<std::int32_t>& ids, CallerState& state) {
  state.tensors[name + ".splits"] = saved_tensor(splits);
  state.tensors[name + ".ids"] = saved_tensor(ids);
}

}  // namespace embertable::jobs
