// Optimizers: the rule's name and its parameters.
#include "embertable/optimizer.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/collected.h"
#include "python/src/rates.h"

namespace embertable::python {
namespace {

LearningRate dynamic_rate(const CallbackPtr& callback) {
  return LearningRate::dynamic([callback] {
    const WithGil gil;
    return number((*callback)(), "what a learning_rate returns");
  });
}

Optimizer::Settings settings_of(const nb::kwargs& values) {
  Optimizer::Settings settings;
  for (const auto [name, value] : values) {
    const auto key = nb::cast<std::string>(name);
    if (PyBool_Check(value.ptr())) {
      settings.emplace_back(key, value.is(nb::bool_(true)));
    } else if (PyUnicode_Check(value.ptr())) {
      settings.emplace_back(key, nb::cast<std::string>(value));
    } else {
      settings.emplace_back(key, number(value, key.c_str()));
    }
  }
  return settings;
}

void construct(PythonOptimizer* self, const std::string& rule, nb::handle learning_rate,
               const nb::kwargs& parameters) {
  CallbackPtr rate;
  if (PyCallable_Check(learning_rate.ptr())) rate = make_callback(learning_rate, "learning_rate");
  const LearningRate value =
      rate ? dynamic_rate(rate) : LearningRate(number(learning_rate, "learning_rate"));
  new (self) PythonOptimizer{Optimizer(rule, value, settings_of(parameters)), std::move(rate)};
}

nb::object rate_of(const PythonOptimizer& self) {
  if (self.rate) return self.rate->function();
  return nb::float_(self.value.learning_rate().constant());
}

nb::dict parameters_of(const PythonOptimizer& self) {
  nb::dict parameters;
  for (const auto& [name, value] : self.value.parameters()) parameters[name.c_str()] = value;
  return parameters;
}

bool equal(const PythonOptimizer& a, const PythonOptimizer& b) {
  return a.value.rule() == b.value.rule() && a.value.parameters() == b.value.parameters() &&
         rate_of(a).equal(rate_of(b));
}

}  // namespace

Optimizer Rates::shared(const PythonOptimizer& optimizer) {
  if (!optimizer.rate) return optimizer.value;
  const auto [found, added] =
      rates_.try_emplace(optimizer.rate->function().ptr(), optimizer.value.learning_rate());
  return optimizer.value.with_learning_rate(found->second);
}

void bind_optimizer(nb::module_& module) {
  nb::class_<PythonOptimizer>(module, "Optimizer",
                              nb::type_slots(Collected<PythonOptimizer>::slots),
                              "What a gradient does to a row: the name of a rule, one of\n"
                              "optimizer_rules(), its learning rate (a number, or a function that "
                              "is asked once\nper step) and its parameters by name.")
      .def("__init__", construct, nb::arg("rule"), nb::arg("learning_rate").none(),
           nb::arg("parameters"),
           nb::sig("def __init__(self, rule: str, learning_rate: float | "
                   "collections.abc.Callable[[], float], **parameters: float) -> None"))
      .def_prop_ro("rule", [](const PythonOptimizer& self) { return self.value.rule(); })
      .def_prop_ro("learning_rate", rate_of)
      .def_prop_ro("parameters", [](const PythonOptimizer& self) { return parameters_of(self); })
      .def("__repr__", [](const PythonOptimizer& self) { return self.value.to_string(); })
      .def("__eq__",
           [](const PythonOptimizer& self, nb::handle other) -> nb::object {
             const PythonOptimizer* right = nullptr;
             if (!nb::try_cast(other, right) || !right) return nb::borrow(Py_NotImplemented);
             return nb::bool_(equal(self, *right));
           })
      .def("__hash__",
           [](const PythonOptimizer& self) {
             return nb::hash(nb::make_tuple(self.value.to_string(), rate_of(self)));
           })
      .def("__getstate__",
           [](const PythonOptimizer& self) {
             return nb::make_tuple(self.value.rule(), rate_of(self), parameters_of(self));
           })
      .def("__setstate__", [](PythonOptimizer& self, const nb::tuple& state) {
        construct(&self, nb::cast<std::string>(state[0]), state[1],
                  nb::borrow<nb::kwargs>(state[2]));
      });
  module.def("optimizer_rules", optimizer_rules, "The names that Optimizer knows, sorted.");
}

}  // namespace embertable::python
