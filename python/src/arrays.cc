#include "python/src/arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "python/src/argument_arrays.h"
#include "python/src/arguments.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

constexpr int kBorrow = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS;

std::int64_t elements(const Py_buffer& view) { return view.len / view.itemsize; }

/// Returns the device that holds an array, by its DLPack type, or "" if the CPU can read its
/// memory. Source: dlpack.h, DLDeviceType.
std::string foreign_device(nb::handle device) {
  const auto [type, index] = nb::cast<std::pair<int, int>>(device);
  const auto on = [number = index](const char* name) {
    return std::string(name) + " device " + std::to_string(number);
  };
  switch (type) {
    case 1:  // the CPU's
    case 3:  // memory of CUDA and of ROCm, pinned on the host
    case 11:
    case 13:  // memory that CUDA and the host manage together
      return "";
    case 2:
      return on("CUDA");
    case 8:
      return on("Metal");
    case 10:
      return on("ROCm");
    default:
      return on(("DLPack type " + std::to_string(type)).c_str());
  }
}

/// Throws ValueError for an array in the memory of an accelerator: converting it would copy it
/// silently, or fail without naming the reason.
void check_host_memory(nb::handle source, const std::string& what) {
  std::string device;
  if (nb::hasattr(source, "__dlpack_device__")) {
    try {
      device = foreign_device(source.attr("__dlpack_device__")());
    } catch (nb::python_error&) {  // no DLPack for this one after all
      device = nb::hasattr(source, "device") ? text(source.attr("device")) : "";
      if (device.find("cpu") != std::string::npos || device.find("CPU") != std::string::npos)
        device.clear();
    } catch (const std::bad_cast&) {  // what stands for a tensor in code that is recorded
    }
  } else if (nb::hasattr(source, "__cuda_array_interface__")) {
    device = "a CUDA device";
  }
  if (device.empty()) return;
  throw ValueError(what + " must be in host memory, got " + type_text(source) + " on " + device);
}

/// True for tensors that PyTorch does not give to NumPy as they are.
bool is_torch_bfloat16(nb::handle source) {
  return nb::hasattr(source, "dtype") && nb::hasattr(source, "float") &&
         text(source.attr("dtype")) == "torch.bfloat16";
}

/// Returns what NumPy takes of a tensor of PyTorch, without its gradient and with the numbers that
/// it means in memory; any other object is returned as it is.
nb::object for_numpy(nb::handle source) {
  nb::object found = nb::borrow(source);
  if (nb::hasattr(found, "requires_grad") && nb::hasattr(found, "detach") &&
      found.attr("requires_grad").is(nb::bool_(true)))
    found = found.attr("detach")();
  if (nb::hasattr(found, "resolve_neg") && dlpack::is_negated(found))
    found = found.attr("resolve_neg")();
  return found;
}

/// Returns the end of a message about texts, which are keys where ids are wanted.
const char* text_hint(const std::string& what) {
  const bool are_ids = what.ends_with("': ids") || what.ends_with("Ids: values");
  return are_ids ? "; an IdMap makes integers of keys" : "";
}

bool empty(const nb::object& array) { return nb::cast<std::int64_t>(array.attr("size")) == 0; }

/// Returns the object as a NumPy array. Throws ValueError for what is not an array.
nb::object as_array(nb::handle source, const std::string& what, const char* of) {
  const auto refuse = [&](const std::string& why) {
    throw ValueError(what + " must be an array of " + of + ", got " + why);
  };
  if (source.is_none() || is_text(source))
    refuse(type_text(source) + (is_text(source) ? text_hint(what) : ""));
  if (has_masked(source)) refuse("a masked array: filled() puts numbers where there are none");
  check_host_memory(source, what);
  const nb::object array =
      array_of_argument(source, what, ("an array of " + std::string(of)).c_str(),
                        what.ends_with("': ids") ? "; RaggedIds.from_rows takes them" : "");
  const bool scalar = nb::cast<int>(array.attr("ndim")) == 0;
  if (nb::cast<std::string>(array.attr("dtype").attr("kind")) == "O" &&
      (scalar || !PyList_Check(source.ptr()))) {
    if (scalar) refuse_recorded(source, what);
    const bool has_texts =
        !scalar && !empty(array) && is_text(nb::object(array.attr("flat")[nb::int_(0)]));
    refuse(type_text(source) + (has_texts ? std::string(" of texts") + text_hint(what) : ""));
  }
  return array;
}

char kind_of(const nb::object& array) {
  return nb::cast<std::string>(array.attr("dtype").attr("kind"))[0];
}

std::string dtype_text(const nb::object& array) { return text(array.attr("dtype")); }

bool is_plain_sequence(nb::handle value) {
  return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
}

/// Returns the array itself if it is in C order and of a dtype that can be borrowed, else a copy
/// that is.
nb::object required(const nb::object& array, const char* dtype) {
  nb::list flags;
  flags.append("C");
  flags.append("A");
  return numpy().attr("require")(array, dtype, flags);
}

void check_fits(const nb::object& array, const std::string& what) {
  if (empty(array)) return;
  const nb::object place = array.attr("argmax")();
  const nb::object greatest = array.attr("flat")[place];
  if (PyObject_RichCompareBool(greatest.ptr(), nb::int_(INT64_MAX).ptr(), Py_GT) == 1)
    throw ValueError(what + " must fit into 64 bits with a sign, got " + text(greatest) +
                     " as element " + text(place));
}

nb::object converted_integers(nb::handle source, const std::string& what) {
  const nb::object array = as_array(source, what, "integers");
  const char kind = kind_of(array);
  if (kind == 'f' && empty(array) && is_plain_sequence(source)) return required(array, "int64");
  if (kind == 'O') {
    for (const nb::handle element : array.attr("flat"))
      if (PyIndex_Check(element.ptr()) == 0)
        throw TypeError(what + " must be integers, got " + type_text(element) + " among them" +
                        (is_text(element) ? text_hint(what) : ""));
    throw ValueError(what + " must be integers that fit into 64 bits");
  }
  if (kind != 'i' && kind != 'u')
    throw TypeError(what + " must be integers, got " + dtype_text(array) +
                    (kind == 'U' || kind == 'S' ? text_hint(what) : ""));
  if (kind == 'u') check_fits(array, what);
  const auto bytes = nb::cast<std::int64_t>(array.attr("dtype").attr("itemsize"));
  return required(array, bytes < 4 || (bytes == 4 && kind == 'i') ? "int32" : "int64");
}

/// True for an array of ml_dtypes.bfloat16, which is no number to NumPy.
bool is_bfloat16(const nb::object& array) {
  return kind_of(array) == 'V' &&
         nb::cast<std::string>(array.attr("dtype").attr("name")) == "bfloat16";
}

/// Returns an array of bfloat16 as float32, and others as they are.
nb::object with_32_bits(nb::object array) {
  return is_bfloat16(array) ? array.attr("astype")("float32") : array;
}

nb::object converted_floats(nb::handle source, const std::string& what) {
  const nb::object array =
      with_32_bits(as_array(is_torch_bfloat16(source) ? source.attr("float")() : nb::borrow(source),
                            what, "floating-point numbers"));
  const char kind = kind_of(array);
  const bool listed = is_plain_sequence(source) && (kind == 'i' || kind == 'u');
  if (kind != 'f' && !listed)
    throw TypeError(what + " must be floating-point numbers, got " + dtype_text(array));
  const auto bytes = nb::cast<std::int64_t>(array.attr("dtype").attr("itemsize"));
  return required(array, bytes <= 4 && !listed ? "float32" : "float64");
}

constexpr const char* kIntegers = "ilq";
constexpr const char* kFloats = "fd";

/// Returns the buffer of numbers of these formats that can be borrowed as they are.
std::optional<Buffer> numbers_of(nb::handle object, const char* formats) {
  std::optional<Buffer> buffer = Buffer::of(object, kBorrow);
  if (buffer && (buffer->number() == 0 || !std::strchr(formats, buffer->number()))) buffer.reset();
  return buffer;
}

/// Returns the numbers of a tensor of the host in C order.
std::optional<Buffer> numbers_of_tensor(nb::handle object, const dlpack::ExchangeApi& api,
                                        bool (*is_wanted)(const dlpack::Tensor&) noexcept) {
  const std::optional<dlpack::Tensor> tensor = dlpack::view_of(object, api);
  if (!tensor || !is_wanted(*tensor) || !dlpack::is_in_c_order(*tensor)) return std::nullopt;
  return Buffer::of(*tensor);
}

/// Returns the floating-point numbers of a tensor of the host. Those that do not lie in C order as
/// they are meant are brought there by the tensor's methods, and `tensor` becomes what these
/// return.
std::optional<Buffer> floats_of_tensor(nb::object& tensor, const dlpack::ExchangeApi& api) {
  const std::optional<dlpack::Tensor> view = dlpack::view_of(tensor, api);
  if (!view || !dlpack::is_floats(*view)) return std::nullopt;
  std::optional<Buffer> buffer;
  if (dlpack::is_in_c_order(*view)) buffer = Buffer::of(*view);
  const bool negated = dlpack::is_negated(tensor);
  if (buffer && !negated) return buffer;
  if (negated) tensor = tensor.attr("resolve_neg")();
  if (!buffer && nb::hasattr(tensor, "contiguous")) tensor = tensor.attr("contiguous")();
  return numbers_of_tensor(tensor, api, dlpack::is_floats);
}

/// Returns the buffer of `object` if it can be borrowed as it is. Otherwise replaces the object by
/// what `convert` makes of it, and returns the buffer of that.
template <class Convert>
Buffer borrow_or_convert(nb::object& object, const char* formats, Convert convert) {
  std::optional<Buffer> buffer = numbers_of(object, formats);
  if (!buffer) {
    object = convert(object);
    buffer = numbers_of(object, formats);
    if (!buffer) throw TypeError("NumPy gave no array of numbers");
  }
  return std::move(*buffer);
}

/// True for rows of a format that a TableView can describe.
bool has_rows(const std::optional<Buffer>& buffer, char format) {
  if (!buffer || buffer->view().ndim != 2 || buffer->number() != format) return false;
  const Py_ssize_t* strides = buffer->view().strides;
  const Py_ssize_t size = buffer->view().itemsize;
  return strides[1] == size && strides[0] >= 0 && strides[0] % size == 0;
}

template <class Float>
nb::object view_of(Float* data, std::span<const std::int64_t> shape, nb::handle owner,
                   const std::int64_t* strides) {
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy, Float>(data, sizes.size(), sizes.data(), owner, strides),
                  nb::rv_policy::reference);
}

/// Returns how many of `count` activations from the first on have its shape and lie equally far
/// apart, in floats; the distance is 0 where only the first one does. `at` gives one by its number.
template <class At>
std::pair<std::int64_t, std::int64_t> alike(std::int64_t first, std::int64_t count, At at) {
  const auto place = [&](std::int64_t i) {
    return reinterpret_cast<std::uintptr_t>(at(i).values.data());
  };
  if (count - first < 2 || at(first).values.empty() || place(first + 1) <= place(first))
    return {1, 0};
  const std::uintptr_t distance = place(first + 1) - place(first);
  if (distance % sizeof(float) != 0) return {1, 0};
  const Shape shape = at(first).shape;
  std::int64_t end = first + 1;
  while (end < count && at(end).shape == shape && place(end) - place(end - 1) == distance) ++end;
  return {end - first, static_cast<std::int64_t>(distance / sizeof(float))};
}

/// Returns `count` arrays of one shape as rows of one, which NumPy makes in less time than as many
/// arrays over memory.
nb::object rows_apart(const Activation& first, std::int64_t count, std::int64_t distance,
                      nb::handle owner) {
  const auto dims = first.shape.dims();
  std::vector<std::int64_t> sizes{count};
  sizes.insert(sizes.end(), dims.begin(), dims.end());
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t axis = sizes.size() - 1; axis > 1; --axis)
    strides[axis - 1] = strides[axis] * sizes[axis];
  strides[0] = distance;
  return numpy_view(const_cast<float*>(first.values.data()), sizes, owner, strides.data());
}

template <class At>
std::vector<nb::object> array_views(std::int64_t count, At at, nb::handle owner,
                                    const nb::object& convert) {
  std::vector<nb::object> views;
  views.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count;) {
    const Activation& first = at(i);
    const auto [group, distance] = alike(i, count, at);
    i += group;
    if (group == 1) {
      views.push_back(
          numpy_view(const_cast<float*>(first.values.data()), first.shape.dims(), owner));
      continue;
    }
    const nb::object rows = rows_apart(first, group, distance, owner);
    for (std::int64_t row = 0; row < group; ++row) {
      views.push_back(nb::steal(PySequence_GetItem(rows.ptr(), static_cast<Py_ssize_t>(row))));
      if (!views.back().is_valid()) throw nb::python_error();
    }
  }
  if (!convert.is_none())
    for (nb::object& view : views) view = convert(view);
  return views;
}

nb::object new_array(const Shape& shape, const char* dtype) {
  return numpy().attr("empty")(to_python(shape), dtype);
}

}  // namespace

nb::object numpy() { return nb::module_::import_("numpy"); }

nb::object numpy_array_of(nb::handle source) {
  const nb::object found = for_numpy(source);
  if (!is_torch_bfloat16(found)) return numpy().attr("asarray")(found);
  const nb::object bits = nb::module_::import_("torch").attr("int16");
  return found.attr("view")(bits).attr("numpy")().attr("view")(bfloat16_dtype());
}

// The type is told by its name, as numpy.ma may not be loaded.
bool has_masked(nb::handle array) {
  static PyObject* const plain = nb::object(numpy().attr("ndarray")).release().ptr();
  const nb::handle type = array.type();
  return !type.is(plain) && text(type.attr("__name__")) == "MaskedArray" &&
         nb::cast<bool>(numpy().attr("ma").attr("is_masked")(array));
}

struct Buffer::Held {
  Py_buffer view;
  std::array<Py_ssize_t, Shape::kMaxRank> shape;  ///< shape of a tensor
};

std::optional<Buffer> Buffer::of(nb::handle object, int flags) {
  if (!PyObject_CheckBuffer(object.ptr()) || has_masked(object)) return std::nullopt;
  auto held = std::make_unique<Held>();
  if (PyObject_GetBuffer(object.ptr(), &held->view, flags) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  Buffer buffer;
  buffer.held_ = held.release();
  return buffer;
}

Buffer Buffer::of(const dlpack::Tensor& tensor) {
  static char formats[][2] = {"i", "l", "f", "d"};
  const bool wide = tensor.type.bits == 64;
  auto held = std::make_unique<Held>();
  std::copy_n(tensor.shape, tensor.rank, held->shape.begin());
  held->view.buf = tensor.data;  // no exporter: obj is null
  held->view.itemsize = tensor.type.bits / 8;
  held->view.len = dlpack::elements(tensor) * held->view.itemsize;
  held->view.format = formats[(dlpack::is_floats(tensor) ? 2 : 0) + (wide ? 1 : 0)];
  held->view.ndim = tensor.rank;
  held->view.shape = held->shape.data();
  Buffer buffer;
  buffer.held_ = held.release();
  return buffer;
}

Buffer::~Buffer() {
  if (!held_) return;
  PyBuffer_Release(&held_->view);
  delete held_;
}

const Py_buffer& Buffer::view() const noexcept { return held_->view; }

char Buffer::number() const noexcept {
  const Py_buffer& view = held_->view;
  if (!view.format || std::strlen(view.format) != 1 || !std::strchr("ilqfdH", view.format[0]))
    return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(view.buf);
  const bool aligned = view.len == 0 || address % static_cast<std::uintptr_t>(view.itemsize) == 0;
  return aligned ? view.format[0] : '\0';
}

Shape Buffer::shape() const {
  const Py_buffer& view = held_->view;
  std::vector<std::int64_t> dims(view.shape, view.shape + view.ndim);
  return Shape(std::span<const std::int64_t>(dims));
}

IntegerArray::IntegerArray(nb::handle source, const std::string& what)
    : object_(nb::borrow(source)),
      buffer_(borrow_or_convert(object_, kIntegers,
                                [&](nb::handle from) { return converted_integers(from, what); })) {}

std::optional<IntegerArray> IntegerArray::borrowed(nb::handle source) {
  std::optional<Buffer> buffer = numbers_of(source, kIntegers);
  if (const dlpack::ExchangeApi* const api = buffer ? nullptr : dlpack::api_of(source))
    buffer = numbers_of_tensor(source, *api, dlpack::is_integers);
  if (!buffer) return std::nullopt;
  return IntegerArray(source, std::move(*buffer));
}

IntegerSpan IntegerArray::span() const noexcept {
  const Py_buffer& view = buffer_.view();
  const auto size = static_cast<std::size_t>(elements(view));
  if (view.itemsize == 8) return std::span(static_cast<const std::int64_t*>(view.buf), size);
  return std::span(static_cast<const std::int32_t*>(view.buf), size);
}

std::vector<std::int64_t> copied(const IntegerArray& array) {
  const IntegerSpan span = array.span();
  std::vector<std::int64_t> copy;
  copy.reserve(span.size());
  for (std::int64_t i = 0; i < span.size(); ++i) copy.push_back(span[i]);
  return copy;
}

FloatArray::FloatArray(nb::handle source, const std::string& what)
    : object_(nb::borrow(source)),
      buffer_(borrow_or_convert(object_, kFloats,
                                [&](nb::handle from) { return converted_floats(from, what); })) {}

std::optional<FloatArray> FloatArray::borrowed(nb::handle source) {
  nb::object numbers = nb::borrow(source);
  std::optional<Buffer> buffer = numbers_of(source, kFloats);
  if (const dlpack::ExchangeApi* const api = buffer ? nullptr : dlpack::api_of(source))
    buffer = floats_of_tensor(numbers, *api);
  if (!buffer) return std::nullopt;
  return FloatArray(numbers, std::move(*buffer));
}

FloatSpan FloatArray::span() const noexcept {
  static const float nothing = 0;  // an array without elements may have no address: it is no None
  const Py_buffer& view = buffer_.view();
  if (view.buf == nullptr) return std::span(&nothing, 0);
  const auto size = static_cast<std::size_t>(elements(view));
  if (view.itemsize == 8) return std::span(static_cast<const double*>(view.buf), size);
  return std::span(static_cast<const float*>(view.buf), size);
}

WritableArray::WritableArray(nb::handle source, const std::string& what) {
  std::optional<Buffer> buffer = Buffer::of(source, kBorrow | PyBUF_WRITABLE);
  if (!buffer) check_host_memory(source, what);
  if (!buffer || buffer->number() != 'f') {
    const std::string dtype = nb::hasattr(source, "dtype") ? dtype_text(nb::borrow(source)) : "";
    if (!dtype.empty() && !dtype.ends_with("float32"))
      throw TypeError(what + " must be float32, got " + dtype);
    throw ValueError(what + (buffer ? " must be aligned, got float32 at an address that is no "
                                      "multiple of 4"
                                    : " must be a writable array of NumPy in C order, got " +
                                          type_text(source)));
  }
  buffer_ = std::move(*buffer);
}

std::span<float> WritableArray::span() const noexcept {
  const Py_buffer& view = buffer_.view();
  return {static_cast<float*>(view.buf), static_cast<std::size_t>(elements(view))};
}

FloatRows::FloatRows(nb::handle source, const std::string& what) : object_(nb::borrow(source)) {
  constexpr int kRows = PyBUF_FORMAT | PyBUF_STRIDES;
  if (nb::isinstance(source, numpy().attr("ndarray")) && is_bfloat16(object_)) {
    std::optional<Buffer> bits = Buffer::of(object_.attr("view")("uint16"), kRows);
    if (has_rows(bits, 'H')) {
      buffer_ = std::move(*bits);
      is_bfloat16_ = true;
      return;
    }
  }
  std::optional<Buffer> buffer = Buffer::of(object_, kRows);
  if (!has_rows(buffer, 'f')) {
    object_ = required(converted_floats(source, what), "float32");
    buffer = Buffer::of(object_, kBorrow);
    if (!has_rows(buffer, 'f'))
      throw ValueError(what + " must have two axes, got shape " + buffer->shape().to_string());
  }
  buffer_ = std::move(*buffer);
}

TableView FloatRows::view() const noexcept {
  const Py_buffer& view = buffer_.view();
  return {.data = is_bfloat16_ ? nullptr : static_cast<float*>(view.buf),
          .rows = view.shape[0],
          .row_stride = view.strides[0] / view.itemsize,
          .dim = static_cast<std::int32_t>(view.shape[1]),
          .bfloat16 = is_bfloat16_ ? static_cast<std::uint16_t*>(view.buf) : nullptr};
}

bool is_list_of_numbers(nb::handle value) {
  constexpr int kMostLevels = 64;  // no array has more axes
  if (!is_plain_sequence(value)) return false;
  nb::object first = nb::borrow(value);
  for (int level = 0; level < kMostLevels; ++level) {
    if (!is_plain_sequence(first))
      return is_text(first) || (PyNumber_Check(first.ptr()) && !nb::hasattr(first, "__len__"));
    if (nb::hasattr(first, "_fields")) return false;
    first = nb::steal(PySequence_GetItem(first.ptr(), 0));
    if (first.is_valid()) continue;
    PyErr_Clear();
    return true;
  }
  return false;
}

nb::object numpy_view(float* data, std::span<const std::int64_t> shape, nb::handle owner,
                      const std::int64_t* strides) {
  return view_of(data, shape, owner, strides);
}
nb::object numpy_view(const float* data, std::span<const std::int64_t> shape, nb::handle owner,
                      const std::int64_t* strides) {
  return view_of(data, shape, owner, strides);
}

std::vector<nb::object> numpy_views(const Activations& activations, std::int32_t replica,
                                    nb::handle owner, const nb::object& convert) {
  return array_views(
      activations.features(), [&](std::int64_t i) { return activations(i, replica); }, owner,
      convert);
}

std::vector<nb::object> numpy_views(const LookupOutput& output, nb::handle owner,
                                    const nb::object& convert) {
  return array_views(
      output.size(), [&](std::int64_t i) -> const Activation& { return output(i); }, owner,
      convert);
}

nb::object converter_of(nb::handle outputs) {
  return nb::module_::import_("embertable._values").attr("converter")(outputs);
}

const dlpack::ExchangeApi* exchange_api_of(nb::handle outputs) {
  if (text(outputs) != "torch") return nullptr;
  return dlpack::api_of_type(nb::getattr(nb::module_::import_("torch"), "Tensor", nb::none()));
}

nb::object bfloat16_dtype() {
  try {
    return numpy().attr("dtype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  } catch (const nb::python_error&) {
    throw NotImplemented("arrays of bfloat16 need the package ml_dtypes");
  }
}

nb::object numpy_rows(const TableView& view, nb::handle owner, bool writable) {
  const std::int64_t dims[] = {view.rows, view.dim}, strides[] = {view.row_stride, 1};
  if (view.bfloat16 == nullptr)
    return writable ? numpy_view(view.data, dims, owner, strides)
                    : numpy_view(static_cast<const float*>(view.data), dims, owner, strides);
  const nb::object dtype = bfloat16_dtype();
  const nb::object bits =
      writable ? view_of(view.bfloat16, dims, owner, strides)
               : view_of(static_cast<const std::uint16_t*>(view.bfloat16), dims, owner, strides);
  return bits.attr("view")(dtype);
}

nb::object new_floats(const Shape& shape) { return new_array(shape, "float32"); }
nb::object new_integers(const Shape& shape) { return new_array(shape, "int64"); }

}  // namespace embertable::python
