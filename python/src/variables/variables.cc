// Binds variables, whole and in components.
#include "python/src/variables/variables.h"

#include <nanobind/stl/vector.h>

#include <memory>
#include <thread>
#include <utility>

#include "embertable/errors.h"
#include "embertable/variables/export_scope.h"
#include "embertable/variables/tensor_operators.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"

namespace embertable::python {
namespace {

/// The dict, with weak references as values, of the Python objects of variables by address. Made
/// when the module is: a static variable whose initializer runs Python could lock two threads.
PyObject* by_address = nullptr;

nb::handle objects_by_address() { return by_address; }

/// Returns a number that copies of the handle have in common, and no other variable that exists.
nb::object address_of(const Variable& variable) {
  return nb::int_(reinterpret_cast<std::uintptr_t>(&variable.save_slice_info()));
}

/// Keeps an object alive as long as `owner`, which nanobind offers for arguments of functions
/// alone.
void keep_alive(nb::handle owner, nb::handle object) {
  NB_CALL(keep_alive_py)(NB_CTX, owner.ptr(), object.ptr());
}

/// Returns the Python objects of variables, which live as long as `owner`.
nb::list objects_of(nb::handle owner, const std::vector<Variable>& variables) {
  nb::list objects;
  for (const Variable& variable : variables) {
    const nb::object object = object_of(variable);
    keep_alive(owner, object);
    objects.append(object);
  }
  return objects;
}

void construct_variable(nb::pointer_and_handle<Variable> self, nb::handle value,
                        const std::string& name, nb::handle dtype) {
  const Tensor tensor =
      dtype.is_none() ? tensor_of(value, "value") : tensor_of(value, dtype_of(dtype), "value");
  if (!dtype.is_none() && tensor.dtype() != dtype_of(dtype))
    throw ValueError("value must be " + std::string(to_string(dtype_of(dtype))) + ", got " +
                     std::string(to_string(tensor.dtype())));
  new (self.p) Variable(tensor, name);
  objects_by_address()[address_of(*self.p)] = self.h;
}

void construct_sharded(nb::pointer_and_handle<ShardedVariable> self, nb::handle variables,
                       const std::string& name, bool require_div_sharding, nb::handle threads) {
  std::vector<Variable> components;
  const bool sequence = PyList_Check(variables.ptr()) || PyTuple_Check(variables.ptr());
  if (sequence) {
    for (const nb::handle item : variables) {
      const Variable* variable = nullptr;
      components.push_back(nb::try_cast(item, variable) && variable ? *variable : Variable());
    }
  }
  ShardedVariableOptions options{.name = name, .require_div_sharding = require_div_sharding};
  if (!threads.is_none()) options.executor = make_thread_pool(integer32(threads, "threads"));
  new (self.p) ShardedVariable(std::move(components), std::move(options));
  for (const nb::handle item : variables) keep_alive(self.h, item);
}

/// Whether the value of several parts has to be put together.
bool needs_copy(const ShardedVariable& self) { return self.variables().size() > 1; }
bool needs_copy(const Variable&) { return false; }

/// Implements NumPy's __array__: returns a view, or a copy if one is asked for or needed.
template <class Owner>
nb::object array_of(const Owner& self, nb::handle dtype, nb::handle copy) {
  const nb::object array = numpy_array(reading_variables([&] { return self.value(); }));
  const nb::object numpy = nb::module_::import_("numpy");
  if (copy.is(nb::bool_(false)) && needs_copy(self))
    throw ValueError("an array of several components needs a copy");
  if (!dtype.is_none()) {
    const nb::object wanted = numpy.attr("dtype")(dtype);
    if (!wanted.equal(array.attr("dtype"))) {
      if (copy.is(nb::bool_(false))) throw ValueError("an array of another dtype needs a copy");
      return array.attr("astype")(wanted);
    }
  }
  return copy.is(nb::bool_(true)) ? nb::object(array.attr("copy")()) : array;
}

nb::object item(const ShardedVariable& self, nb::handle key) {
  const std::vector<Index> parts =
      index_parts(key, {"sharded variable '" + self.name() + "'", self.shape()});
  return numpy_array(reading_variables([&] { return self.at(parts); }));
}

nb::object item_of_variable(const Variable& self, nb::handle key) {
  const std::vector<Index> parts =
      index_parts(key, {"variable '" + self.name() + "'", self.shape()});
  return numpy_array(reading_variables([&] { return index(self.value(), parts); }));
}

std::int64_t rows_of(const Variable& self) {
  if (self.shape().rank() == 0)
    throw TypeError("variable '" + self.name() + "' has no axis, and so no length");
  return self.shape()[0];
}

Tensor indices_of(const IntegerArray& array) {
  const IntegerSpan span = array.span();
  return Tensor::wrap(span.data(), span.is_int64() ? DType::kInt64 : DType::kInt32, array.shape(),
                      nullptr);
}

nb::object sparse_read(const ShardedVariable& self, nb::handle indices, nb::handle) {
  const IntegerArray given(indices, "sparse_read: indices");
  return numpy_array(reading_variables([&] { return self.sparse_read(indices_of(given)); }));
}

nb::object sparse_read_variable(const Variable& self, nb::handle indices, nb::handle) {
  const IntegerArray given(indices, "sparse_read: indices");
  return numpy_array(
      reading_variables([&] { return ShardedVariable::of(self).sparse_read(indices_of(given)); }));
}

using Scatter = ShardedVariable& (ShardedVariable::*)(const Tensor&, const Tensor&);

bool has_slices(nb::handle value) {
  return nb::hasattr(value, "indices") && nb::hasattr(value, "values");
}

void scatter_into(ShardedVariable& variable, Scatter change, const Tensor& at,
                  const Tensor& values) {
  (variable.*change)(at, values);
}
void scatter_into(Variable& variable, Scatter change, const Tensor& at, const Tensor& values) {
  ShardedVariable whole = ShardedVariable::of(variable);
  (whole.*change)(at, values);
}

/// If values is None, `indices` or `sparse_delta` has both, like TensorFlow's IndexedSlices. The
/// original's second argument is `use_locking`, a bool.
template <Scatter kScatter, class Self>
nb::object scatter(nb::handle self, nb::handle first, nb::handle second, nb::handle, nb::handle,
                   nb::handle sparse_delta) {
  auto& variable = nb::cast<Self&>(self);
  if (!sparse_delta.is_none() && !first.is_none())
    throw TypeError("indices and sparse_delta must not be given both");
  const nb::handle indices = sparse_delta.is_none() ? first : sparse_delta;
  const nb::handle values =
      PyBool_Check(second.ptr()) && has_slices(indices) ? nb::handle(Py_None) : second;
  const bool slices = values.is_none();
  if (slices && !has_slices(indices))
    throw TypeError("values must be an array, got None beside " + type_text(indices));
  const nb::object at = slices ? nb::object(indices.attr("indices")) : nb::borrow(indices);
  const nb::object given = slices ? nb::object(indices.attr("values")) : nb::borrow(values);
  const Tensor where = indices_of(IntegerArray(at, "indices")).copy();  // it is read several times
  const Tensor what = tensor_of(given, variable.dtype(), "values");
  changing_variables([&] { scatter_into(variable, kScatter, where, what); });
  return nb::borrow(self);
}

using Assign = ShardedVariable& (ShardedVariable::*)(const Tensor&);

template <Assign kAssign>
void assign_to(ShardedVariable& variable, const Tensor& value) {
  (variable.*kAssign)(value);
}

template <Assign kAssign>
void assign_to(Variable& variable, const Tensor& value) {
  if constexpr (kAssign == &ShardedVariable::assign) {
    variable.assign(value);
  } else {
    constexpr bool kAdds = kAssign == &ShardedVariable::assign_add;
    if (value.shape() != variable.shape())
      throw ValueError("variable '" + variable.name() +
                       "': " + (kAdds ? "assign_add" : "assign_sub") + " needs shape " +
                       variable.shape().to_string() + ", got " + value.shape().to_string());
    variable.assign(
        binary(kAdds ? BinaryOperator::kAdd : BinaryOperator::kSub, variable.value(), value));
  }
}

/// The original calls the value of assign_add and assign_sub `delta`. What it takes besides has no
/// effect here.
template <Assign kAssign, class Self>
nb::object assign(nb::handle self, nb::handle value, nb::handle, nb::handle, nb::handle,
                  nb::handle delta) {
  auto& variable = nb::cast<Self&>(self);
  if (!value.is_none() && !delta.is_none())
    throw TypeError("value and delta must not be given both");
  const Tensor tensor = float_tensor_of(value.is_none() ? delta : value, variable.dtype(), "value");
  changing_variables([&] { assign_to<kAssign>(variable, tensor); });
  return nb::borrow(self);
}

template <class Self>
void bind_changes_of(nb::class_<Self>& type) {
  const auto assignment = [&](const char* name, auto function, const char* doc) {
    type.def(name, function, nb::arg("value") = nb::none(), nb::arg("use_locking") = nb::none(),
             nb::arg("name") = nb::none(), nb::arg("read_value") = nb::none(), nb::kw_only(),
             nb::arg("delta") = nb::none(), doc);
  };
  assignment("assign", assign<&ShardedVariable::assign, Self>,
             R"(Overwrites the value.

value (or delta): of the variable's shape and dtype; float64 becomes the dtype of a float variable. use_locking, name,
read_value: have no effect. Gives the variable. Raises ValueError for another shape or dtype, RuntimeError for a read-only
variable; nothing has changed then.

>>> embertable.Variable([1.0, 2.0]).assign([3.0, 3.0]).numpy().tolist()
[3.0, 3.0])");
  assignment("assign_add", assign<&ShardedVariable::assign_add, Self>,
             R"(Adds to the value.

value (or delta): of the variable's shape and dtype; float64 becomes the dtype of a float variable. use_locking, name,
read_value: have no effect. Gives the variable. Raises ValueError for another shape or dtype, RuntimeError for a read-only
variable; nothing has changed then.

>>> embertable.Variable([1.0, 2.0]).assign_add([3.0, 3.0]).numpy().tolist()
[4.0, 5.0])");
  assignment("assign_sub", assign<&ShardedVariable::assign_sub, Self>,
             R"(Subtracts from the value.

value (or delta): of the variable's shape and dtype; float64 becomes the dtype of a float variable. use_locking, name,
read_value: have no effect. Gives the variable. Raises ValueError for another shape or dtype, RuntimeError for a read-only
variable; nothing has changed then.

>>> embertable.Variable([1.0, 2.0]).assign_sub([3.0, 3.0]).numpy().tolist()
[-2.0, -1.0])");
  const auto def = [&](const char* name, auto function, const char* doc) {
    type.def(name, function, nb::arg("indices") = nb::none(), nb::arg("values") = nb::none(),
             nb::arg("use_locking") = nb::none(), nb::arg("name") = nb::none(), nb::kw_only(),
             nb::arg("sparse_delta") = nb::none(), doc);
  };
  def("scatter_add", scatter<&ShardedVariable::scatter_add, Self>,
      R"(Makes of each element x of rows, and a value v: x + v. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_add([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [3.0], [7.0]])");
  def("scatter_sub", scatter<&ShardedVariable::scatter_sub, Self>,
      R"(Makes of each element x of rows, and a value v: x - v. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_sub([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [1.0], [-1.0]])");
  def("scatter_mul", scatter<&ShardedVariable::scatter_mul, Self>,
      R"(Makes of each element x of rows, and a value v: x * v. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_mul([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [2.0], [12.0]])");
  def("scatter_div", scatter<&ShardedVariable::scatter_div, Self>,
      R"(Makes of each element x of rows, and a value v: x / v, integers rounded toward zero. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_div([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [2.0], [0.75]])");
  def("scatter_min", scatter<&ShardedVariable::scatter_min, Self>,
      R"(Makes of each element x of rows, and a value v: the lesser of x and v. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_min([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [1.0], [3.0]])");
  def("scatter_max", scatter<&ShardedVariable::scatter_max, Self>,
      R"(Makes of each element x of rows, and a value v: the greater of x and v. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_max([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [2.0], [4.0]])");
  def("scatter_update", scatter<&ShardedVariable::scatter_update, Self>,
      R"(Makes of each element x of rows, and a value v: v. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.scatter_update([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [1.0], [4.0]])");
  def("batch_scatter_update", scatter<&ShardedVariable::batch_scatter_update, Self>,
      R"(Makes of each element x of rows, and a value v: v, as scatter_update. Repeated indices meet what earlier ones left.

indices: integers [n]; values: [n, ...], rows of the variable's dtype; or one object, as indices or as sparse_delta, that has
both, like TensorFlow's IndexedSlices. use_locking, name: have no effect. Gives the variable. Raises IndexError for an index
outside, TypeError and ValueError for values that do not fit, RuntimeError for a read-only variable; nothing has changed then.

>>> variable = embertable.Variable([[1.0], [2.0], [3.0]])
>>> variable.batch_scatter_update([1, 2], [[1.0], [4.0]]).numpy().tolist()
[[1.0], [1.0], [4.0]])");
}

template <class Type>
void bind_value_of(nb::class_<Type>& type) {
  type.def_prop_ro("name", [](const Type& self) { return self.name(); })
      .def_prop_ro("dtype", [](const Type& self) { return numpy_dtype(self.dtype()); })
      .def_prop_ro("shape", [](const Type& self) { return to_python(self.shape()); })
      .def_prop_ro("ndim", [](const Type& self) { return self.shape().rank(); })
      .def_prop_ro("assignable", [](const Type& self) { return self.assignable(); })
      .def(
          "numpy", [](const Type& self) { return array_of(self, nb::none(), nb::none()); },
          R"(Gives the value as a read-only array, which later changes do not touch; not copied where it is in one piece.

>>> embertable.Variable([1.0, 2.0]).numpy().tolist()
[1.0, 2.0])")
      .def(
          "read_value", [](const Type& self) { return array_of(self, nb::none(), nb::none()); },
          R"(Gives the same as numpy(): TensorFlow's name of it.

>>> embertable.Variable([1.0, 2.0]).read_value().tolist()
[1.0, 2.0])")
      .def("__array__", array_of<Type>, nb::arg("dtype") = nb::none(),
           nb::arg("copy") = nb::none());
}

void bind_variable(nb::module_& module) {
  nb::class_<Variable> type(
      module, "Variable", nb::is_weak_referenceable(), nb::type_slots(explained_slots),
      R"(A tensor that has a name and can be changed. Operators are TensorFlow's on its value: nothing is promoted. It is compared and
hashed by identity.

value: an array, or lists of numbers, which become float32, int32 or bool; name: in messages; dtype: NumPy's, TensorFlow's or
PyTorch's, or "bfloat16". Raises TypeError, ValueError.

>>> variable = embertable.Variable([[1.0, 2.0], [3.0, 4.0]])
>>> (variable[1] + 1).tolist()
[4.0, 5.0])");
  type.def("__init__", construct_variable, nb::arg("value"), nb::arg("name") = "Variable",
           nb::arg("dtype") = nb::none());
  bind_value_of(type);
  bind_changes_of(type);
  type.def("sparse_read", sparse_read_variable, nb::arg("indices"), nb::arg("name") = nb::none(),
           R"(Gives rows in the order of the indices.

indices: integers [n]; name: has no effect. Raises ValueError for another rank, IndexError for an index
outside of the rows.

>>> embertable.Variable([[1.0, 2.0], [3.0, 4.0]]).sparse_read([1]).tolist()
[[3.0, 4.0]])")
      .def("__getitem__", item_of_variable, nb::arg("key").none(),
           "NumPy's rules for integers, slices, ..., None and boolean masks; a list is a tuple. "
           "Gives a\nread-only array.")
      .def("__len__", rows_of)
      .def("__iter__", [](nb::handle self) {  // Python would take IndexError for the end
        rows_of(nb::cast<const Variable&>(self));
        return nb::iter(self.attr("numpy")());
      });
  bind_operators_of(type);
  type.def("__repr__", [](const Variable& self) {
    return "Variable(name='" + self.name() + "', shape=" + self.shape().to_string() +
           ", dtype=" + std::string(to_string(self.dtype())) + ")";
  });
}

/// Implements `with ExportScope():`. Ends on the thread that entered it, or never.
class PythonExportScope {
 public:
  PythonExportScope() = default;
  PythonExportScope(const PythonExportScope&) = delete;
  PythonExportScope& operator=(const PythonExportScope&) = delete;
  ~PythonExportScope() {
    if (!entered_here()) static_cast<void>(scope_.release());  // it is not this thread's to end
  }

  void enter() {
    if (scope_) throw StateError("ExportScope: must be entered once at a time");
    scope_ = std::make_unique<ExportScope>();
    thread_ = std::this_thread::get_id();
  }
  void exit() {
    if (scope_ && !entered_here())
      throw StateError("ExportScope: must be left by the thread that entered it");
    scope_.reset();
  }

 private:
  bool entered_here() const { return thread_ == std::this_thread::get_id(); }

  std::unique_ptr<ExportScope> scope_;
  std::thread::id thread_;
};

void bind_export_scope(nb::module_& module) {
  nb::class_<PythonExportScope>(
      module, "ExportScope",
      R"(While it is entered, the `variables` of every ShardedVariable, as this thread sees them, are one Variable of the whole shape
without a value: what an exported model has.

>>> sharded = embertable.ShardedVariable([embertable.Variable([1.0]), embertable.Variable([2.0])])
>>> with embertable.ExportScope():
...     len(sharded.variables)
1)")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::handle self) {
             nb::cast<PythonExportScope&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](PythonExportScope& self, const nb::args&) { self.exit(); });
}

using ShardedClass = nb::class_<ShardedVariable>;

void bind_parts(ShardedClass& type) {
  type.def("__init__", construct_sharded, nb::arg("variables").none(),
           nb::arg("name") = "ShardedVariable", nb::kw_only(),
           nb::arg("require_div_sharding") = false, nb::arg("threads") = nb::none());
  bind_value_of(type);
  const auto components = [](nb::handle self) {
    return objects_of(self, nb::cast<const ShardedVariable&>(self).components());
  };
  const auto variables = [](nb::handle self) {
    return objects_of(self, nb::cast<const ShardedVariable&>(self).variables());
  };
  type.def_prop_ro("components", components)
      .def_prop_ro("variables", variables,
                   "The components; within an ExportScope one placeholder of the whole shape.")
      .def_prop_ro(
          "offsets",
          [](const ShardedVariable& self) {
            return std::vector<std::int64_t>(self.offsets().begin(), self.offsets().end());
          },
          "The first row of each component, and the number of rows.")
      .def("__iter__", [variables](nb::handle self) { return nb::iter(variables(self)); })
      .def("same_structure", &ShardedVariable::same_structure, nb::arg("other"),
           R"(True if both have components of equal shapes and dtypes, one by one.

other: a ShardedVariable.

>>> one = embertable.ShardedVariable([embertable.Variable([1.0]), embertable.Variable([2.0])])
>>> one.same_structure(embertable.ShardedVariable([embertable.Variable([1.0, 2.0])]))
False)")
      .def("__getitem__", item, nb::arg("key").none(),
           "NumPy's rules for integers, slices, ..., None and boolean masks; a list is a tuple. "
           "Gives a\nread-only array: a slice within a component is not copied.")
      .def("__repr__", [](const ShardedVariable& self) {
        return "ShardedVariable(name='" + self.name() + "', shape=" + self.shape().to_string() +
               ", dtype=" + std::string(to_string(self.dtype())) +
               ", components=" + std::to_string(self.components().size()) + ")";
      });
}

void bind_changes(ShardedClass& type) {
  type.def("sparse_read", sparse_read, nb::arg("indices"), nb::arg("name") = nb::none(),
           R"(Gives rows in the order of the indices.

indices: integers [n]; name: has no effect. Raises ValueError for another rank, IndexError for an index
outside of the rows.

>>> embertable.ShardedVariable([embertable.Variable([1.0]), embertable.Variable([2.0])]).sparse_read([1, 0]).tolist()
[2.0, 1.0])");
  bind_changes_of(type);
}

}  // namespace

nb::object object_of(const Variable& variable) {
  const nb::object address = address_of(variable);
  const nb::object known = objects_by_address().attr("get")(address);
  if (!known.is_none()) return known;
  const nb::object made = nb::cast(variable);
  objects_by_address()[address] = made;
  return made;
}

void bind_variables(nb::module_& module) {
  by_address = nb::module_::import_("weakref").attr("WeakValueDictionary")().release().ptr();
  bind_variable(module);
  bind_export_scope(module);
  ShardedClass type(
      module, "ShardedVariable", nb::type_slots(explained_slots),
      R"(One tensor kept as blocks of rows, each of them a Variable. Any number of threads may call; a view of an engine's table is
exclusive with the engine's steps. Operators are TensorFlow's on the whole value; == is by element.

variables: a list of Variables of one dtype, with equal shapes but for the first axis; name: in messages and checkpoints;
require_div_sharding: sparse operations only for components of the sizes of a division, as TensorFlow wants; threads: of large
operations, None: the caller's. Raises TypeError for no variables, ValueError naming the component that does not fit or belongs
to another.

>>> sharded = embertable.ShardedVariable([embertable.Variable([0, 1, 2]), embertable.Variable([3, 4])])
>>> sharded[1:4].tolist()
[1, 2, 3])");
  bind_parts(type);
  bind_changes(type);
  bind_operators_of(type);
}

}  // namespace embertable::python
