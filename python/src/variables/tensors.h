#pragma once

#include <nanobind/nanobind.h>

#include <mutex>
#include <shared_mutex>
#include <string>

#include "base/interruption.h"
#include "embertable/variables/tensor.h"
#include "python/src/fair_shared_mutex.h"
#include "python/src/gil.h"
#include "python/src/tracing.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns what NumPy accepts for a dtype, given that, or a dtype of TensorFlow or PyTorch.
nb::object plain_dtype(nb::handle value);

/// Returns a dtype, given what `plain_dtype` accepts, or "bfloat16". Throws TypeError for one that
/// no tensor has.
DType dtype_of(nb::handle value);

/// Returns NumPy's dtype. Throws NotImplemented for bfloat16 without the package ml_dtypes.
nb::object numpy_dtype(DType dtype);

/// Borrows the caller's array while a tensor of it lives, if its elements are native and aligned,
/// else copies it. Values without a dtype of their own, numbers and lists of them, become float32,
/// int32 or bool. `what` begins the messages. Throws TypeError for elements that no tensor has,
/// ValueError for what is not an array.
Tensor tensor_of(nb::handle source, const std::string& what);

/// Converts for a caller who wants `dtype`: a value without a dtype of its own gets that one,
/// unless the kind of number does not fit (TypeError). Arrays keep their dtype.
Tensor tensor_of(nb::handle source, DType dtype, const std::string& what);

/// Does the same, and brings an array of float64 to a narrower float dtype, as a cast does.
Tensor float_tensor_of(nb::handle source, DType dtype, const std::string& what);

/// Returns a read-only NumPy array over the tensor's memory, which it keeps.
nb::object numpy_array(const Tensor& tensor);

/// Orders the calls of threads on variables: any number read, or one changes.
FairSharedMutex& variables_lock() noexcept;

/// Marks this thread as inside a call on variables, which Ctrl-C may end. Throws StateError if it
/// is inside one already: a handler of a signal must not call, since it would wait for its own
/// thread.
class InsideVariables {
 public:
  InsideVariables();
  ~InsideVariables();
  InsideVariables(const InsideVariables&) = delete;
  InsideVariables& operator=(const InsideVariables&) = delete;

 private:
  Interruption interruption_{raise_signals};
};

/// Calls work() without the GIL, concurrently with other readers of variables; or alone.
template <class Work>
auto reading_variables(Work work) {
  refuse_recording("a variable");
  const InsideVariables inside;
  const WithoutGil nogil;
  const std::shared_lock lock(variables_lock());
  return work();
}
template <class Work>
auto changing_variables(Work work) {
  refuse_recording("a variable");
  const InsideVariables inside;
  const WithoutGil nogil;
  const std::unique_lock lock(variables_lock());
  return work();
}

}  // namespace embertable::python
