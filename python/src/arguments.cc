#include "python/src/arguments.h"

#include <vector>

#include "embertable/errors.h"
#include "python/src/argument_arrays.h"
#include "python/src/text_caster.h"

namespace embertable::python {

namespace {

nb::object checked(PyObject* made) {
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

std::string encode(nb::handle text, const char* surrogates) {
  const nb::object bytes = checked(PyUnicode_AsEncodedString(text.ptr(), "utf-8", surrogates));
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

nb::object decode(std::string_view bytes, const char* others) {
  return checked(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), others));
}

std::string encode(nb::handle value, const std::string& what, const char* surrogates) {
  if (!PyUnicode_Check(value.ptr()))
    throw TypeError(what + " must be text, got " + type_text(value));
  try {
    return encode(value, surrogates);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_UnicodeEncodeError)) throw;
    throw ValueError(what + " must be text that UTF-8 has, got " + text(nb::repr(value)));
  }
}

std::string digits_of(nb::handle integer) {
  try {
    return text(integer);
  } catch (const nb::python_error&) {
    return "a number of more digits than Python writes";
  }
}

/// Throws TypeError for a value that is not of the kind of number that `rule` names.
[[noreturn]] void refuse_kind(nb::handle value, const char* what, const char* rule) {
  refuse_recorded(value, what);
  std::string got = type_text(value);
  if (const auto dims = nb::getattr(value, "shape", nb::none()); PyTuple_Check(dims.ptr()))
    got += nb::len(dims) > 0 ? " of shape " + text(dims) : "";
  throw TypeError(std::string(what) + " must be " + rule + ", got " + got);
}

/// Does so where Python has failed to make the number. Throws ValueError for one that is too large,
/// and Python's error if the value's own code has raised another one.
[[noreturn]] void refuse_after_error(nb::handle value, const char* what, const char* rule) {
  nb::python_error error;
  if (error.matches(PyExc_TypeError)) refuse_kind(value, what, rule);
  refuse_recorded(value, what);
  if (!error.matches(PyExc_OverflowError)) {
    error.restore();
    nb::raise_python_error();
  }
  throw ValueError(std::string(what) + " must fit into 64 bits, got a larger " + type_text(value));
}

}  // namespace

bool is_text(nb::handle value) {
  return PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
}

std::string text(nb::handle value) {
  return encode(checked(PyObject_Str(value.ptr())), "backslashreplace");
}

std::string type_text(nb::handle value) { return text(nb::type_name(value.type())); }

std::string utf8(nb::handle value, const std::string& what) {
  return encode(value, what, "strict");
}

std::string foreign_text(nb::handle value, const std::string& what) {
  return encode(value, what, "surrogateescape");
}

nb::object decoded(std::string_view bytes) { return decode(bytes, "surrogateescape"); }

nb::object readable(std::string_view message) { return decode(message, "backslashreplace"); }

std::int64_t integer(nb::handle value, const char* what) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()))
    refuse_kind(value, what, "an integer");
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) refuse_after_error(value, what, "an integer");
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    throw ValueError(std::string(what) + " must fit into 64 bits with a sign, got " +
                     digits_of(index));
  }
  return result;
}

std::int32_t integer32(nb::handle value, const char* what) {
  const std::int64_t wide = integer(value, what);
  if (wide != static_cast<std::int32_t>(wide))
    throw ValueError(std::string(what) + " must fit into 32 bits, got " + std::to_string(wide));
  return static_cast<std::int32_t>(wide);
}

std::uint64_t seed_of(nb::handle value) {
  const std::int64_t seed = integer(value, "seed");
  if (seed < 0) throw ValueError("seed must be >= 0, got " + std::to_string(seed));
  return static_cast<std::uint64_t>(seed);
}

double number(nb::handle value, const char* what) {
  PyObject* const object = value.ptr();
  const bool text = PyUnicode_Check(object) || PyBytes_Check(object);
  if (text || PyBool_Check(object) || !PyNumber_Check(object)) refuse_kind(value, what, "a number");
  const double result = PyFloat_AsDouble(object);
  if (PyErr_Occurred()) refuse_after_error(value, what, "a number");
  return result;
}

Shape shape(nb::handle value, const char* what) {
  if (value.is_none()) return {};
  nb::object dims = nb::borrow(value);
  if (nb::hasattr(value, "as_list")) {  // tf.TensorShape
    if (nb::getattr(value, "rank", nb::int_(0)).is_none()) return {};
    dims = value.attr("as_list")();
  }
  if (PyUnicode_Check(dims.ptr()) || PyBytes_Check(dims.ptr()) || !nb::hasattr(dims, "__iter__"))
    throw TypeError(std::string(what) + " must be None or a sequence of dims, got " +
                    type_text(value));
  std::vector<std::int64_t> sizes;
  for (const nb::handle dim : dims) {
    sizes.push_back(dim.is_none() ? Shape::kUnknown : integer(dim, what));
    if (!dim.is_none() && sizes.back() < 0)
      throw ValueError(std::string(what) + ": dims must be >= 0 or None, got " +
                       std::to_string(sizes.back()));
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

nb::object to_python(const Shape& shape) {
  if (!shape.has_rank()) return nb::none();
  nb::list dims;
  for (const std::int64_t dim : shape.dims())
    dims.append(dim == Shape::kUnknown ? nb::none() : nb::object(nb::int_(dim)));
  return nb::tuple(dims);
}

}  // namespace embertable::python
