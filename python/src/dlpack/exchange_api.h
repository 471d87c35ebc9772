#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "embertable/embedding.h"

// Arrays of other packages without an array of NumPy in between, by the functions that the type of
// such arrays may offer to C: `__dlpack_c_exchange_api__`.
namespace embertable::python::dlpack {

namespace nb = nanobind;

// The binary interface. Source: DLPack 1.3, dlpack.h: DLPackVersion, DLDevice, DLDataType,
// DLTensor, DLManagedTensorVersioned and DLPackExchangeAPI, with the same members in the same
// order.

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct Device {
  std::int32_t type;  ///< 1: the CPU
  std::int32_t index;
};

struct DataType {
  std::uint8_t code;  ///< 0: integers with a sign, 2: IEEE floating point
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;  ///< may be null without elements
  Device device;
  std::int32_t rank;
  DataType type;
  std::int64_t* shape;    ///< [rank]
  std::int64_t* strides;  ///< [rank], in elements; null in versions before 1.2: C order
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  Version version;
  void* context;
  void (*release)(ManagedTensor*);  ///< called once, on any thread
  std::uint64_t flags;              ///< 0: may be written to
  Tensor tensor;
};

struct ExchangeApi {
  Version version;
  const ExchangeApi* previous;  ///< an older one, or null
  int (*allocate)(Tensor*, ManagedTensor**, void*, void (*)(void*, const char*, const char*));
  int (*managed_of_object)(void* object, ManagedTensor** made);
  int (*object_of_managed)(ManagedTensor* taken, void** object);
  int (*view_of_object)(void* object, Tensor* filled);  ///< may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** stream);
};

/// Returns the functions for objects of exactly this type, or null. Types that inherit them have
/// none: their objects may mean other numbers than those in their memory.
const ExchangeApi* api_of_type(nb::handle type);

/// Returns the functions for an object by its type, or null.
inline const ExchangeApi* api_of(nb::handle object) {
  return api_of_type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
}

/// Describes an object whose type has the functions `api`: aligned numbers in memory that the CPU
/// reads, with an offset of 0. Empty for what the functions cannot describe, and for memory
/// elsewhere. Shape and strides are valid until Python code runs. A tensor of PyTorch with the
/// negative bit is described as if it had none: see `is_negated`.
std::optional<Tensor> view_of(nb::handle object, const ExchangeApi& api);

bool is_integers(const Tensor& tensor) noexcept;  ///< true for int32 and int64
bool is_floats(const Tensor& tensor) noexcept;    ///< true for float32 and float64
bool is_in_c_order(const Tensor& tensor) noexcept;
std::int64_t elements(const Tensor& tensor) noexcept;

/// True for a tensor of PyTorch that means the negatives of the numbers in its memory. Those of
/// floating-point numbers may, as an imaginary part of a conjugate does.
bool is_negated(nb::handle object);

/// Returns arrays of the package of `api` over the activations of one replica. The caller may
/// change their memory; the engine reuses it when the last of them is gone.
std::vector<nb::object> arrays_of(const Activations& activations, std::int32_t replica,
                                  const ExchangeApi& api);

}  // namespace embertable::python::dlpack
