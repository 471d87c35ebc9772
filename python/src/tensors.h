#pragma once

#include <nanobind/nanobind.h>

#include <mutex>
#include <shared_mutex>
#include <string>

#include "embertable/variables/tensor.h"
#include "python/src/gil.h"

namespace embertable::python {

namespace nb = nanobind;

/// A dtype by what NumPy takes for one, or "bfloat16". Throws TypeError for one that no tensor has.
DType dtype_of(nb::handle value);

/// The dtype in NumPy's terms. Throws NotImplemented for bfloat16 without the package ml_dtypes.
nb::object numpy_dtype(DType dtype);

/// The caller's array, borrowed as long as a tensor of it lives where its elements are native and
/// aligned, else a copy. What has no dtype of its own, numbers and lists of them, becomes float32,
/// int32 or bool. `what` begins the messages. Throws TypeError for elements that no tensor has,
/// ValueError for what is no array.
Tensor tensor_of(nb::handle source, const std::string& what);

/// Converts for a caller who wants `dtype`: a value without a dtype of its own becomes that, if no
/// kind of number is lost (TypeError). Arrays keep their dtype.
Tensor tensor_of(nb::handle source, DType dtype, const std::string& what);

/// A read-only NumPy array over the tensor's memory, which it keeps.
nb::object numpy_array(const Tensor& tensor);

/// What orders the calls of threads on variables: any number read, or one changes.
std::shared_mutex& variables_lock() noexcept;

/// work() without the GIL, beside other readers of variables; or alone.
template <class Work>
auto reading_variables(Work work) {
  const WithoutGil nogil;
  const std::shared_lock lock(variables_lock());
  return work();
}
template <class Work>
auto changing_variables(Work work) {
  const WithoutGil nogil;
  const std::unique_lock lock(variables_lock());
  return work();
}

}  // namespace embertable::python
