// Binds gradients of activations by way of a framework's own differentiation.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embertable/tensorflow/gradient_interception.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/described.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/dict_items.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Registry = GradientRegistry<nb::object>;

/// A tape of Python's, whose tensors are any objects.
class PythonTape {
 public:
  using Tensor = nb::object;

  /// The operations of the tape keep the registry.
  PythonTape(nb::handle tape, std::shared_ptr<Registry> registry)
      : tape_(nb::borrow(tape)), registry_(std::move(registry)) {}

  Tensor make_variable(const std::string& name, const Shape& shape) {
    return tape_.attr("make_variable")(decoded(name), to_python(shape));
  }
  void initialize(const Tensor& variable) { tape_.attr("initialize")(variable); }
  Tensor intercept(const Tensor& variable, const Tensor& activation,
                   std::function<void(const Tensor&)> backward) {
    const nb::object keep = nb::cpp_function([backward = std::move(backward), kept = registry_](
                                                 nb::object gradient) { backward(gradient); },
                                             nb::arg("gradient"));
    return tape_.attr("intercept")(variable, activation, keep);
  }
  Tensor zeros(const Shape& shape) { return tape_.attr("zeros")(to_python(shape)); }

 private:
  nb::object tape_;
  std::shared_ptr<Registry> registry_;
};

/// A registry that the operations of a tape share with its owner.
struct PythonRegistry {
  std::shared_ptr<Registry> value;
};

Ordered<nb::object> ordered(nb::handle given, const char* what) {
  if (!PyDict_Check(given.ptr()))
    throw TypeError(std::string(what) + " must be a dict by name, got " + type_text(given));
  Ordered<nb::object> all;
  for (const auto& [name, value] : items_of(given))
    all.emplace_back(utf8(name, std::string("a name of ") + what), nb::borrow(value));
  return all;
}

nb::dict to_dict(const Ordered<nb::object>& all) {
  nb::dict dict;
  for (const auto& [name, value] : all) dict[decoded(name)] = value;
  return dict;
}

nb::tuple create_dummies(const PythonRegistry& registry, nb::handle tape) {
  PythonTape of_python(tape, registry.value);
  const auto made = create_dummy_table_variables(of_python, *registry.value);
  const nb::object initialize =
      nb::cpp_function([tape = nb::borrow(tape), variables = made.variables] {
        for (const auto& [table, variable] : variables) tape.attr("initialize")(variable);
      });
  return nb::make_tuple(to_dict(made.variables), initialize);
}

nb::dict hook(const PythonRegistry& registry, nb::handle tape, nb::handle activations,
              nb::handle dummies) {
  PythonTape of_python(tape, registry.value);
  return to_dict(hook_dummy_table_variables_to_activations(
      of_python, *registry.value, ordered(activations, "activations"),
      ordered(dummies, "dummy_table_variables")));
}

nb::dict collect_gradients(const PythonRegistry& registry, nb::handle tape, nb::handle log) {
  PythonTape of_python(tape, registry.value);
  return to_dict(get_gradients_through_dummy_table_variables(
      of_python, *registry.value, [&](std::string_view text) { log(readable(text)); }));
}

}  // namespace

void bind_interception(nb::module_& module) {
  nb::module_ internal = module.def_submodule("_interception");
  nb::class_<PythonRegistry>(
      module, "GradientRegistry", nb::type_slots(explained_slots),
      R"(Keeps the gradients that backward passes of one replica left, by table and by feature of the table: see
embertable.gradient_interception. For one thread at a time.

layout: an InterleavedLayout, which says what tables and features there are.

>>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({'t': 2}, {'f': 't'}, batch_size=1))
>>> registry.gradients
{'t': []})")
      .def(
          "__init__",
          [](PythonRegistry* self, const InterleavedLayout& layout) {
            new (self) PythonRegistry{std::make_shared<Registry>(layout)};
          },
          nb::arg("layout"))
      .def("__repr__", described)
      .def_prop_ro("layout", [](const PythonRegistry& self) { return self.value->layout(); })
      .def_prop_ro(
          "gradients",
          [](const PythonRegistry& self) {
            nb::dict all;
            for (std::size_t t = 0; t < self.value->gradients().size(); ++t) {
              nb::list list;
              for (const auto& gradient : self.value->gradients()[t])
                list.append(gradient ? *gradient : nb::none());
              all[decoded(self.value->layout().tables()[t].name)] = list;
            }
            return all;
          },
          "By table a list: empty, or of the gradient of each of its features, None without one.")
      .def(
          "clear", [](const PythonRegistry& self) { self.value->clear(); },
          R"(Empties the lists, between one step's gradients and the next.

>>> from embertable import gradient_interception as gi
>>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({'t': 2}, {'f': 't'}, batch_size=1))
>>> dummies, initialize = gi.create_dummy_table_variables(registry)
>>> hooked = gi.hook_dummy_table_variables_to_activations(registry, {'f': np.ones((1, 2))}, dummies)
>>> hooked['f'].sum().backward()
>>> registry.gradients['t'][0].tolist()
[[1.0, 1.0]]
>>> registry.clear()
>>> registry.gradients
{'t': []})");
  internal.def("create", create_dummies);
  internal.def("hook", hook);
  internal.def("collect", collect_gradients);
}

}  // namespace embertable::python
