#include "python/src/variables/tensors.h"

#include <nanobind/ndarray.h>

#include <memory>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "python/src/argument_arrays.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

thread_local bool inside_variables = false;

/// A Python object that C++ may destroy on any thread.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (!Py_IsInitialized()) {
      object_.release();  // nobody is left to free it
      return;
    }
    const WithGil gil;
    object_.reset();
  }

 private:
  nb::object object_;
};

bool has_dtype(nb::handle value) {
  return nb::hasattr(value, "dtype") || nb::hasattr(value, "__array__") ||
         nb::hasattr(value, "__array_interface__") || PyObject_CheckBuffer(value.ptr());
}

std::string dtype_kind(const nb::object& array) {
  return nb::cast<std::string>(array.attr("dtype").attr("kind"));
}

/// Returns the array if its elements are native and aligned, or a copy that has such elements.
nb::object native(const nb::object& array) {
  const nb::object dtype = array.attr("dtype");
  if (nb::cast<bool>(array.attr("flags").attr("aligned")) && nb::cast<bool>(dtype.attr("isnative")))
    return array;
  return array.attr("astype")(dtype.attr("newbyteorder")("="));
}

/// Returns the dtype of an array. Throws TypeError, naming the argument, for one that no tensor
/// has.
DType element_type(const nb::object& array, const std::string& what) {
  try {
    return dtype_of(array.attr("dtype"));
  } catch (const TypeError& error) {
    if (dtype_kind(array) == "O") refuse_recorded(array, what);
    throw TypeError(what + ": " + error.what());
  }
}

Tensor borrowed(const nb::object& given, const std::string& what) {
  const nb::object array = native(given);
  const DType dtype = element_type(array, what);
  const Shape dims = shape(array.attr("shape"), what.c_str());
  std::vector<std::int64_t> strides;
  for (const nb::handle stride : array.attr("strides"))
    strides.push_back(nb::cast<std::int64_t>(stride));
  const auto address = nb::cast<std::uintptr_t>(array.attr("__array_interface__")["data"][0]);
  return Tensor::wrap(reinterpret_cast<const void*>(address), dtype, dims, strides,
                      std::make_shared<Held>(array));
}

/// Returns what NumPy makes of numbers and lists of them.
nb::object listed(nb::handle source, const std::string& what) {
  if (source.is_none() || PyUnicode_Check(source.ptr()))
    throw ValueError(what + " must be an array of numbers, got " + type_text(source));
  return array_of_argument(source, what, "an array of numbers");
}

nb::object as_dtype(const nb::object& array, nb::handle source, const nb::object& dtype,
                    const std::string& what) {
  const bool empty = nb::cast<std::int64_t>(array.attr("size")) == 0;
  const bool half = text(dtype) == "bfloat16" && dtype_kind(array) != "O";
  if (!empty && !half &&
      !nb::cast<bool>(numpy().attr("can_cast")(array.attr("dtype"), dtype, "same_kind")))
    throw TypeError(what + " must be " + text(dtype) + ", got " + text(array.attr("dtype")));
  return numpy().attr("asarray")(source, dtype);
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

nb::dlpack::dtype code_of(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(byte_width(dtype) * 8);
  switch (dtype) {
    case DType::kInt32:
    case DType::kInt64:
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int), bits, 1};
    case DType::kBool:
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bool), bits, 1};
    case DType::kBFloat16:
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt), bits, 1};
    default:
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), bits, 1};
  }
}

}  // namespace

nb::object plain_dtype(nb::handle value) {
  if (nb::hasattr(value, "as_numpy_dtype")) return value.attr("as_numpy_dtype");  // tf.DType
  const std::string_view torch = "torch.";
  if (const std::string name = text(value);
      std::string_view(name).starts_with(torch) && type_text(value).ends_with("dtype"))
    return nb::cast(name.substr(torch.size()));
  return nb::borrow(value);
}

DType dtype_of(nb::handle given) {
  const nb::object value = plain_dtype(given);
  std::string name;
  if (PyUnicode_Check(value.ptr())) name = text(value);
  if (name != "bfloat16") name = text(numpy().attr("dtype")(value).attr("name"));
  for (const DType dtype : kDTypes)
    if (to_string(dtype) == name) return dtype;
  throw TypeError("dtype must be float32, float64, int32, int64, bool, bfloat16 or float16, got " +
                  name);
}

nb::object numpy_dtype(DType dtype) {
  if (dtype == DType::kBFloat16) return bfloat16_dtype();
  return numpy().attr("dtype")(std::string(to_string(dtype)));
}

Tensor tensor_of(nb::handle source, const std::string& what) {
  const nb::object array = listed(source, what);
  if (has_dtype(source)) return borrowed(array, what);
  const std::string kind = dtype_kind(array);
  const char* dtype = kind == "f" ? "float32" : kind == "i" ? "int32" : nullptr;
  return borrowed(dtype == nullptr ? array : nb::object(numpy().attr("asarray")(source, dtype)),
                  what);
}

Tensor tensor_of(nb::handle source, DType dtype, const std::string& what) {
  const nb::object array = listed(source, what);
  if (has_dtype(source)) return borrowed(array, what);
  return borrowed(as_dtype(array, source, numpy_dtype(dtype), what), what);
}

Tensor float_tensor_of(nb::handle source, DType dtype, const std::string& what) {
  Tensor tensor = tensor_of(source, dtype, what);
  if (tensor.dtype() != DType::kFloat64 || !is_float(dtype)) return tensor;
  return borrowed(listed(source, what).attr("astype")(numpy_dtype(dtype)), what);
}

nb::object numpy_array(const Tensor& tensor) {
  const nb::object wanted = numpy_dtype(tensor.dtype());
  if (tensor.size() == 0) return numpy().attr("empty")(to_python(tensor.shape()), wanted);
  const nb::object owner = nb::capsule(
      new Tensor(tensor), [](void* kept) noexcept { delete static_cast<Tensor*>(kept); });
  std::vector<std::size_t> sizes(tensor.shape().dims().begin(), tensor.shape().dims().end());
  std::vector<std::int64_t> strides;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    strides.push_back(tensor.byte_strides()[axis] / byte_width(tensor.dtype()));
  const nb::object array =
      nb::cast(nb::ndarray<nb::numpy, nb::ro>(tensor.data(), sizes.size(), sizes.data(), owner,
                                              strides.data(), code_of(tensor.dtype())),
               nb::rv_policy::reference);
  return tensor.dtype() == DType::kBFloat16 ? nb::object(array.attr("view")(wanted)) : array;
}

InsideVariables::InsideVariables() {
  if (inside_variables)
    throw StateError("variables are used by a handler of a signal in their own call");
  inside_variables = true;
}
InsideVariables::~InsideVariables() { inside_variables = false; }

FairSharedMutex& variables_lock() noexcept {
  static FairSharedMutex lock;
  return lock;
}

}  // namespace embertable::python
