// Binds Python's brackets and operators on sharded variables.
#include <optional>
#include <string>

#include "embertable/errors.h"
#include "embertable/variables/tensor_operators.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/variables/tensors.h"
#include "python/src/variables/variables.h"

namespace embertable::python {
namespace {

bool is_scalar_of_numpy(nb::handle value) {
  return nb::isinstance(value, nb::module_::import_("numpy").attr("generic"));
}

bool is_array(nb::handle value) {
  return nb::hasattr(value, "__array__") && !is_scalar_of_numpy(value);
}

bool is_bool(nb::handle value) {
  return PyBool_Check(value.ptr()) ||
         nb::isinstance(value, nb::module_::import_("numpy").attr("bool_"));
}

/// True for an int, or what acts as one; false for a tensor.
bool is_integer(nb::handle value) {
  if (is_scalar_of_numpy(value)) return PyIndex_Check(value.ptr());
  return PyIndex_Check(value.ptr()) && !is_array(value);
}

SliceBound bound_of(nb::handle value) {
  if (value.is_none()) return {};
  if (!is_integer(value)) {
    if (is_array(value)) return SliceBound(tensor_of(value, "a slice's bound"));
    throw TypeError("a slice's bound must be an integer or None, got " + type_text(value));
  }
  const Py_ssize_t bound = PyNumber_AsSsize_t(value.ptr(), nullptr);  // cut as Python does
  if (PyErr_Occurred()) throw nb::python_error();
  return std::int64_t{bound};
}

std::int64_t position_of(nb::handle value, const IndexedVariable& variable) {
  const Py_ssize_t position = PyNumber_AsSsize_t(value.ptr(), PyExc_IndexError);
  if (position != -1 || !PyErr_Occurred()) return position;
  if (!PyErr_ExceptionMatches(PyExc_IndexError)) throw nb::python_error();
  PyErr_Clear();
  throw IndexError(variable.subject + ": index " + text(value) +
                   " is out of bounds for every axis of shape " + variable.shape.to_string());
}

Index part_of(nb::handle value, const IndexedVariable& variable) {
  if (value.is_none()) return NewAxis{};
  if (value.ptr() == Py_Ellipsis) return Ellipsis{};
  if (is_bool(value)) return Index(nb::cast<bool>(nb::bool_(value)));
  if (PySlice_Check(value.ptr()))
    return Slice{bound_of(value.attr("start")), bound_of(value.attr("stop")),
                 bound_of(value.attr("step"))};
  if (is_integer(value)) return position_of(value, variable);
  if (PyUnicode_Check(value.ptr()) || PyFloat_Check(value.ptr()))
    throw TypeError("an index must be an integer, a slice, ..., None or a boolean mask, got " +
                    type_text(value));
  return tensor_of(value, "a mask").copy();  // it is read several times
}

/// Returns a literal for the other side's dtype; beside floating-point numbers any int is accepted.
Operand literal_of(nb::handle value, DType beside) {
  int overflow = 0;
  const long long literal = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  const bool whole = beside == DType::kInt32 || beside == DType::kInt64 || beside == DType::kBool;
  if (overflow == 0) return std::int64_t{literal};
  if (whole) return integer(value, "an operand");
  const double floating = PyLong_AsDouble(value.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  return floating;
}

/// Returns the other side of an operator; empty for what is not an operand.
std::optional<Operand> operand_of(nb::handle value, DType beside) {
  if (const ShardedVariable* variable = nullptr; nb::try_cast(value, variable) && variable)
    return reading_variables([&] { return Operand(*variable); });
  if (const Variable* variable = nullptr; nb::try_cast(value, variable) && variable)
    return reading_variables([&] { return Operand(variable->value()); });
  if (PyBool_Check(value.ptr())) return Operand(nb::cast<bool>(value));
  if (PyLong_Check(value.ptr())) return literal_of(value, beside);
  if (PyFloat_Check(value.ptr()) && !is_scalar_of_numpy(value))
    return Operand(nb::cast<double>(value));
  const bool listed = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  if (!listed && !is_array(value) && !is_scalar_of_numpy(value)) return std::nullopt;
  return Operand(tensor_of(value, beside, "an operand"));
}

Operand own_operand(const ShardedVariable& self) { return self; }
Operand own_operand(const Variable& self) { return self.value(); }

template <BinaryOperator kOperator, bool kReflected, class Self>
nb::object apply(const Self& self, nb::handle other) {
  const std::optional<Operand> operand = operand_of(other, self.dtype());
  if (!operand) return nb::borrow(Py_NotImplemented);
  return numpy_array(reading_variables([&] {
    const Operand own = own_operand(self);
    return kReflected ? binary(kOperator, *operand, own) : binary(kOperator, own, *operand);
  }));
}

template <UnaryOperator kOperator, class Self>
nb::object apply_unary(const Self& self) {
  return numpy_array(reading_variables([&] { return unary(kOperator, own_operand(self)); }));
}

template <BinaryOperator kOperator, class Self>
void bind_both(nb::class_<Self>& type, const char* name, const char* reflected) {
  type.def(name, apply<kOperator, false, Self>, nb::arg("other").none(), nb::is_operator());
  type.def(reflected, apply<kOperator, true, Self>, nb::arg("other").none(), nb::is_operator());
}

template <BinaryOperator kOperator, class Self>
void bind_comparison(nb::class_<Self>& type, const char* name) {
  type.def(name, apply<kOperator, false, Self>, nb::arg("other").none(), nb::is_operator());
}

/// Adds what both classes have.
template <class Self>
void bind_common_operators(nb::class_<Self>& type) {
  using enum BinaryOperator;
  bind_both<kAdd>(type, "__add__", "__radd__");
  bind_both<kSub>(type, "__sub__", "__rsub__");
  bind_both<kMul>(type, "__mul__", "__rmul__");
  bind_both<kTrueDiv>(type, "__truediv__", "__rtruediv__");
  bind_both<kFloorDiv>(type, "__floordiv__", "__rfloordiv__");
  bind_both<kMod>(type, "__mod__", "__rmod__");
  bind_both<kAnd>(type, "__and__", "__rand__");
  bind_both<kOr>(type, "__or__", "__ror__");
  bind_both<kXor>(type, "__xor__", "__rxor__");
  bind_both<kMatMul>(type, "__matmul__", "__rmatmul__");
  bind_both<kPow>(type, "__pow__", "__rpow__");
  bind_comparison<kLess>(type, "__lt__");
  bind_comparison<kLessEqual>(type, "__le__");
  bind_comparison<kGreater>(type, "__gt__");
  bind_comparison<kGreaterEqual>(type, "__ge__");
  type.def("__neg__", apply_unary<UnaryOperator::kNegate, Self>);
  type.def("__abs__", apply_unary<UnaryOperator::kAbs, Self>);
  type.def("__invert__", apply_unary<UnaryOperator::kInvert, Self>);
  type.attr("__array_priority__") = 1000.0;  // NumPy's own operators leave the work to these
}

}  // namespace

std::vector<Index> index_parts(nb::handle key, const IndexedVariable& variable) {
  std::vector<Index> parts;
  if (PyTuple_Check(key.ptr()) || PyList_Check(key.ptr())) {
    for (const nb::handle part : key) parts.push_back(part_of(part, variable));
  } else {
    parts.push_back(part_of(key, variable));
  }
  return parts;
}

void bind_operators_of(nb::class_<ShardedVariable>& type) {
  bind_common_operators(type);
  bind_comparison<BinaryOperator::kEqual>(type, "__eq__");
  bind_comparison<BinaryOperator::kNotEqual>(type, "__ne__");
  type.attr("__hash__") = nb::none();  // like arrays: equality is by element
}

void bind_operators_of(nb::class_<Variable>& type) { bind_common_operators(type); }

}  // namespace embertable::python
