// Binds variables, whole and in components.
#include "python/src/variables.h"

#include <nanobind/stl/vector.h>

#include <memory>
#include <thread>
#include <utility>

#include "embertable/errors.h"
#include "embertable/variables/export_scope.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/tensors.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

void construct_variable(Variable* self, nb::handle value, const std::string& name,
                        nb::handle dtype) {
  const Tensor tensor =
      dtype.is_none() ? tensor_of(value, "value") : tensor_of(value, dtype_of(dtype), "value");
  if (!dtype.is_none() && tensor.dtype() != dtype_of(dtype))
    throw ValueError("value must be " + std::string(to_string(dtype_of(dtype))) + ", got " +
                     std::string(to_string(tensor.dtype())));
  new (self) Variable(tensor, name);
}

void construct_sharded(ShardedVariable* self, nb::handle variables, const std::string& name,
                       bool require_div_sharding, nb::handle threads) {
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
  new (self) ShardedVariable(std::move(components), std::move(options));
}

/// Implements NumPy's __array__: returns a view, or a copy if one is asked for or needed.
template <class Owner>
nb::object array_of(const Owner& self, nb::handle dtype, nb::handle copy) {
  const nb::object array = numpy_array(reading_variables([&] { return self.value(); }));
  const nb::object numpy = nb::module_::import_("numpy");
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
  const std::vector<Index> parts = index_parts(key, self);
  return numpy_array(reading_variables([&] { return self.at(parts); }));
}

Tensor indices_of(const IntegerArray& array) {
  const IntegerSpan span = array.span();
  return Tensor::wrap(span.data(), span.is_int64() ? DType::kInt64 : DType::kInt32, array.shape(),
                      nullptr);
}

nb::object sparse_read(const ShardedVariable& self, nb::handle indices) {
  const IntegerArray given(indices, "sparse_read: indices");
  return numpy_array(reading_variables([&] { return self.sparse_read(indices_of(given)); }));
}

using Scatter = ShardedVariable& (ShardedVariable::*)(const Tensor&, const Tensor&);

/// If values is None, `indices` has both, like TensorFlow's IndexedSlices.
template <Scatter kScatter>
nb::object scatter(nb::handle self, nb::handle indices, nb::handle values) {
  auto& variable = nb::cast<ShardedVariable&>(self);
  const bool slices = values.is_none();
  if (slices && !(nb::hasattr(indices, "indices") && nb::hasattr(indices, "values")))
    throw TypeError("values must be an array, got None beside " + type_text(indices));
  const nb::object at = slices ? nb::object(indices.attr("indices")) : nb::borrow(indices);
  const nb::object given = slices ? nb::object(indices.attr("values")) : nb::borrow(values);
  const Tensor where = indices_of(IntegerArray(at, "indices")).copy();  // it is read several times
  const Tensor what = tensor_of(given, variable.dtype(), "values");
  changing_variables([&] { (variable.*kScatter)(where, what); });
  return nb::borrow(self);
}

using Assign = ShardedVariable& (ShardedVariable::*)(const Tensor&);

template <Assign kAssign>
nb::object assign(nb::handle self, nb::handle value) {
  auto& variable = nb::cast<ShardedVariable&>(self);
  const Tensor tensor = tensor_of(value, variable.dtype(), "value");
  changing_variables([&] { (variable.*kAssign)(tensor); });
  return nb::borrow(self);
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
          "The value as a read-only array, which later changes do not touch; not copied where it "
          "is in one\npiece.")
      .def("__array__", array_of<Type>, nb::arg("dtype") = nb::none(),
           nb::arg("copy") = nb::none());
}

void bind_variable(nb::module_& module) {
  nb::class_<Variable> type(module, "Variable",
                            "A tensor that has a name and can be changed. Lists of numbers become "
                            "float32, int32 or bool.");
  type.def("__init__", construct_variable, nb::arg("value"), nb::arg("name") = "Variable",
           nb::arg("dtype") = nb::none());
  bind_value_of(type);
  type.def(
      "assign",
      [](nb::handle self, nb::handle value) {
        auto& variable = nb::cast<Variable&>(self);
        const Tensor tensor = tensor_of(value, variable.dtype(), "value");
        changing_variables([&] { variable.assign(tensor); });
        return nb::borrow(self);
      },
      nb::arg("value"));
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
  nb::class_<PythonExportScope>(module, "ExportScope",
                                "While it is entered, the `variables` of every ShardedVariable, as "
                                "this thread sees them, are one\nVariable of the whole shape "
                                "without a value: what an exported model has.")
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
  type.def_prop_ro("components", [](const ShardedVariable& self) { return self.components(); })
      .def_prop_ro(
          "variables", [](const ShardedVariable& self) { return self.variables(); },
          "The components; within an ExportScope one placeholder of the whole shape.")
      .def_prop_ro(
          "offsets",
          [](const ShardedVariable& self) {
            return std::vector<std::int64_t>(self.offsets().begin(), self.offsets().end());
          },
          "The first row of each component, and the number of rows.")
      .def("__iter__",
           [](const ShardedVariable& self) { return nb::iter(nb::cast(self.variables())); })
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
  type.def("sparse_read", sparse_read, nb::arg("indices"), "Rows in the order of the indices.")
      .def("assign", assign<&ShardedVariable::assign>, nb::arg("value"))
      .def("assign_add", assign<&ShardedVariable::assign_add>, nb::arg("value"))
      .def("assign_sub", assign<&ShardedVariable::assign_sub>, nb::arg("value"));
  const auto def = [&](const char* name, auto function) {
    type.def(name, function, nb::arg("indices"), nb::arg("values") = nb::none(),
             "Rows at indices and their values, or one object with both. Gives the variable.");
  };
  def("scatter_add", scatter<&ShardedVariable::scatter_add>);
  def("scatter_sub", scatter<&ShardedVariable::scatter_sub>);
  def("scatter_mul", scatter<&ShardedVariable::scatter_mul>);
  def("scatter_div", scatter<&ShardedVariable::scatter_div>);
  def("scatter_min", scatter<&ShardedVariable::scatter_min>);
  def("scatter_max", scatter<&ShardedVariable::scatter_max>);
  def("scatter_update", scatter<&ShardedVariable::scatter_update>);
  def("batch_scatter_update", scatter<&ShardedVariable::batch_scatter_update>);
}

}  // namespace

void bind_variables(nb::module_& module) {
  bind_variable(module);
  bind_export_scope(module);
  ShardedClass type(module, "ShardedVariable",
                    "One tensor kept as blocks of rows, each of them a Variable. Any number of "
                    "threads may call; a\nview of an engine's table is exclusive with the "
                    "engine's steps.");
  bind_parts(type);
  bind_changes(type);
  bind_operators_of(type);
}

}  // namespace embertable::python
