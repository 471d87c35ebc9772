#include "python/src/dlpack/exchange_api.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

namespace embertable::python::dlpack {
namespace {

constexpr std::uint32_t kMajor = 1;

/// True for a type that Python code can have made. The others, such as list and float, have no
/// functions, and need no search.
bool is_class(nb::handle type) {
  return (PyType_GetFlags(reinterpret_cast<PyTypeObject*>(type.ptr())) & Py_TPFLAGS_HEAPTYPE) != 0;
}

/// Returns the functions that a type has itself.
const ExchangeApi* found_api(nb::handle type) {
  static PyObject* const name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  const nb::object members = type.attr("__dict__");
  if (PySequence_Contains(members.ptr(), name) != 1) {
    PyErr_Clear();
    return nullptr;
  }
  const nb::object capsule = nb::steal(PyObject_GetItem(members.ptr(), name));
  if (!capsule.is_valid() || !PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* api =
      static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api && api->version.major != kMajor) api = api->previous;
  return api && api->view_of_object && api->object_of_managed ? api : nullptr;
}

/// True for memory that the CPU reads: its own, and what CUDA and ROCm pin or manage there. Source:
/// dlpack.h, DLDeviceType.
bool is_host(Device device) noexcept {
  return device.type == 1 || device.type == 3 || device.type == 11 || device.type == 13;
}

/// One activation on loan to another package.
struct Loan {
  ManagedTensor managed{};
  std::array<std::int64_t, Shape::kMaxRank> shape{}, strides{};
  Activations owner;

  /// Needs no GIL: nothing of Python belongs to a loan.
  static void end(ManagedTensor* managed) noexcept { delete static_cast<Loan*>(managed->context); }
};

ManagedTensor* lend(const Activations& activations, std::int64_t feature, std::int32_t replica) {
  auto loan = std::make_unique<Loan>();
  const Activation one = activations(feature, replica);
  const int rank = one.shape.rank();
  std::int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    loan->shape[axis] = one.shape[axis];
    loan->strides[axis] = stride;
    stride *= std::max<std::int64_t>(one.shape[axis], 1);
  }
  loan->owner = activations;
  loan->managed = {.version = {kMajor, 0},
                   .context = loan.get(),
                   .release = Loan::end,
                   .flags = 0,
                   .tensor = {.data = const_cast<float*>(one.values.data()),
                              .device = {1, 0},
                              .rank = rank,
                              .type = {2, 32, 1},
                              .shape = loan->shape.data(),
                              .strides = loan->strides.data(),
                              .byte_offset = 0}};
  return &loan.release()->managed;
}

}  // namespace

const ExchangeApi* api_of_type(nb::handle type) {
  static PyObject* last = nullptr;  // kept alive, so that no other type has its address
  static const ExchangeApi* api_of_last = nullptr;
  if (type.ptr() == last) return api_of_last;
  if (!PyType_Check(type.ptr()) || !is_class(type)) return nullptr;
  const ExchangeApi* api = found_api(type);
  if (!api) return nullptr;
  Py_XDECREF(last);
  last = type.inc_ref().ptr();
  api_of_last = api;
  return api;
}

std::optional<Tensor> view_of(nb::handle object, const ExchangeApi& api) {
  Tensor tensor{};
  if (api.view_of_object(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (!is_host(tensor.device) || tensor.rank > Shape::kMaxRank) return std::nullopt;
  if (!tensor.data && elements(tensor) != 0) return std::nullopt;
  if (tensor.data) tensor.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  tensor.byte_offset = 0;
  const std::uintptr_t bytes = std::max(tensor.type.bits / 8, 1);
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % bytes != 0) return std::nullopt;
  return tensor;
}

bool is_integers(const Tensor& tensor) noexcept {
  const auto& [code, bits, lanes] = tensor.type;
  return code == 0 && (bits == 32 || bits == 64) && lanes == 1;
}

bool is_floats(const Tensor& tensor) noexcept {
  const auto& [code, bits, lanes] = tensor.type;
  return code == 2 && (bits == 32 || bits == 64) && lanes == 1;
}

bool is_in_c_order(const Tensor& tensor) noexcept {
  if (!tensor.strides || elements(tensor) == 0) return true;
  std::int64_t stride = 1;
  for (std::int32_t axis = tensor.rank - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

std::int64_t elements(const Tensor& tensor) noexcept {
  std::int64_t count = 1;
  for (std::int32_t axis = 0; axis < tensor.rank; ++axis) count *= tensor.shape[axis];
  return count;
}

bool is_negated(nb::handle object) {
  static PyObject* const name = PyUnicode_InternFromString("is_neg");
  const nb::object method = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (!method.is_valid()) {  // another package has none
    PyErr_Clear();
    return false;
  }
  return method().is(nb::bool_(true));
}

std::vector<nb::object> arrays_of(const Activations& activations, std::int32_t replica,
                                  const ExchangeApi& api) {
  std::vector<nb::object> arrays;
  arrays.reserve(static_cast<std::size_t>(activations.features()));
  for (std::int64_t feature = 0; feature < activations.features(); ++feature) {
    void* made = nullptr;
    // Taken even if it fails: whether it has been released then is not said.
    if (api.object_of_managed(lend(activations, feature, replica), &made) != 0)
      throw nb::python_error();
    arrays.push_back(nb::steal(static_cast<PyObject*>(made)));
  }
  return arrays;
}

}  // namespace embertable::python::dlpack
