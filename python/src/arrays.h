#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "embertable/batch.h"
#include "embertable/embedding.h"
#include "embertable/serving.h"
#include "python/src/dlpack/exchange_api.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns the module numpy, imported at the first use.
nb::object numpy();

/// Returns the NumPy array of an array, a tensor of the host's memory, or a list. Tensors of
/// PyTorch need not be detached; those of bfloat16 take the package ml_dtypes. Throws what NumPy
/// throws.
nb::object numpy_array_of(nb::handle source);

/// True for an array of numpy.ma in which something is masked: its buffer has values there too,
/// which mean nothing.
bool has_masked(nb::handle array);

/// The memory behind a Python object, which can be neither freed nor moved while this lives.
/// Created and destroyed with the GIL, read without.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Buffer();

  /// Empty if the object has no buffer with these flags (PyBUF_...).
  static std::optional<Buffer> of(nb::handle object, int flags);

  /// Returns the memory of a tensor of the host in C order. The caller keeps the object, and sees
  /// to it that nobody resizes it, while the buffer lives.
  static Buffer of(const dlpack::Tensor& tensor);

  const Py_buffer& view() const noexcept;

  /// Returns the format if it is one native number, 'i', 'l', 'q', 'f' or 'd', and aligned; else 0.
  char number() const noexcept;

  Shape shape() const;

 private:
  struct Held;
  Held* held_ = nullptr;
};

/// Integers of the caller: borrowed if they are int32 or int64 in C order, else converted by value.
/// `what` begins the messages. Throws TypeError for other types of elements, ValueError for what is
/// not an array of numbers, does not fit, or is in the memory of an accelerator.
class IntegerArray {
 public:
  IntegerArray(nb::handle source, const std::string& what);

  /// Empty unless the numbers can be borrowed for one call. Those of a tensor may be resized
  /// afterwards, so an object that outlives the call is made by the constructor.
  static std::optional<IntegerArray> borrowed(nb::handle source);

  IntegerSpan span() const noexcept;
  Shape shape() const { return buffer_.shape(); }
  const nb::object& object() const noexcept { return object_; }

 private:
  IntegerArray(nb::handle source, Buffer buffer)
      : object_(nb::borrow(source)), buffer_(std::move(buffer)) {}
  nb::object object_;
  Buffer buffer_;
};

/// Returns a copy. Calls that read row numbers more than once take one, since another thread may
/// change the caller's while the GIL is free.
std::vector<std::int64_t> copied(const IntegerArray& array);

/// Floating-point numbers of the caller: borrowed if they are float32 or float64 in C order, else
/// converted by value, as are lists of ints. Throws as IntegerArray.
class FloatArray {
 public:
  FloatArray(nb::handle source, const std::string& what);

  /// Empty unless the numbers can be borrowed for one call, as IntegerArray's, or a tensor's own
  /// methods bring them in order.
  static std::optional<FloatArray> borrowed(nb::handle source);

  FloatSpan span() const noexcept;
  Shape shape() const { return buffer_.shape(); }
  const nb::object& object() const noexcept { return object_; }

 private:
  FloatArray(nb::handle source, Buffer buffer)
      : object_(nb::borrow(source)), buffer_(std::move(buffer)) {}
  nb::object object_;
  Buffer buffer_;
};

/// Caller-owned float32 memory to be written to. Throws TypeError for another type, ValueError
/// unless it is writable and in C order.
class WritableArray {
 public:
  WritableArray(nb::handle source, const std::string& what);
  std::span<float> span() const noexcept;
  Shape shape() const { return buffer_.shape(); }

 private:
  Buffer buffer_;
};

/// Rows of a caller-owned table: borrowed if they are float32, or bfloat16 of ml_dtypes, and each
/// row is contiguous, else converted by value. Throws as FloatArray, and ValueError unless there
/// are two axes.
class FloatRows {
 public:
  FloatRows(nb::handle source, const std::string& what);
  TableView view() const noexcept;

 private:
  nb::object object_;
  Buffer buffer_;
  bool is_bfloat16_ = false;
};

/// True for a list or tuple that represents an array: its first innermost item is a number, or a
/// text, which the array then refuses; or it has none.
bool is_list_of_numbers(nb::handle value);

/// Returns a NumPy array over memory that `owner` keeps alive. Strides are in elements; none mean C
/// order. Constant memory makes it read-only.
nb::object numpy_view(float* data, std::span<const std::int64_t> shape, nb::handle owner,
                      const std::int64_t* strides = nullptr);
nb::object numpy_view(const float* data, std::span<const std::int64_t> shape, nb::handle owner,
                      const std::int64_t* strides = nullptr);

/// Returns NumPy arrays over activations whose memory `owner` keeps alive and the caller may
/// change. `convert` makes arrays of another kind of them, unless it is None.
std::vector<nb::object> numpy_views(const Activations& activations, std::int32_t replica,
                                    nb::handle owner, const nb::object& convert);
std::vector<nb::object> numpy_views(const LookupOutput& output, nb::handle owner,
                                    const nb::object& convert);

/// Returns a function that turns NumPy's arrays into those of the kind `outputs`, "torch" for
/// example; None for "numpy". Throws ValueError for a kind that there is not, ImportError without
/// its package.
nb::object converter_of(nb::handle outputs);

/// Returns the functions that make arrays of the kind `outputs` at once; null for kinds, and
/// versions of their packages, that have none. Requires: `converter_of` has taken the name.
const dlpack::ExchangeApi* exchange_api_of(nb::handle outputs);

/// Returns NumPy's dtype of bfloat16. Throws NotImplemented without the package ml_dtypes.
nb::object bfloat16_dtype();

/// Returns a NumPy array over the rows of a table: of float32, or of bfloat16 with the package
/// ml_dtypes. Throws NotImplemented for bfloat16 without it.
nb::object numpy_rows(const TableView& view, nb::handle owner, bool writable);

/// Return a new, uninitialized NumPy array of float32 or int64.
nb::object new_floats(const Shape& shape);
nb::object new_integers(const Shape& shape);

}  // namespace embertable::python
