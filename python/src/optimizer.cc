// Binds optimizers: the rule's name, its parameters, and the options that all rules have.
#include "embertable/optimizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "embertable/optimizer_rules.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/classes/collected.h"
#include "python/src/python_config.h"
#include "python/src/python_initializer.h"
#include "python/src/rates.h"
#include "python/src/signatures.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

/// True for a function that can only be called with an argument. One that says nothing of its
/// arguments is called without any.
bool takes_step(nb::handle function) {
  return !can_be_called(function, nb::tuple()).value_or(true) &&
         can_be_called(function, nb::make_tuple(0)).value_or(false);
}

LearningRate dynamic(const CallbackPtr& callback, const char* what) {
  if (!takes_step(callback->function())) {
    return LearningRate::dynamic(
        [callback, what] { return with_gil([&] { return number((*callback)(), what); }); });
  }
  return LearningRate::scheduled([callback, what](std::int64_t step) {
    return with_gil([&] { return number((*callback)(step), what); });
  });
}

/// The keyword arguments of an optimizer, which are taken one by one.
class Arguments {
 public:
  explicit Arguments(nb::dict& given) : left_(given) {}

  /// Returns an invalid object if the argument was not given, or is None.
  nb::object take(const char* name) {
    const nb::object value = left_.attr("pop")(name, nb::none());
    return value.is_none() ? nb::object() : value;
  }
  void take(const char* name, bool& flag) {
    const nb::object value = take(name);
    if (!value.is_valid()) return;
    if (!PyBool_Check(value.ptr()))
      throw TypeError(std::string(name) + " must be a bool, got " + type_text(value));
    flag = value.is(nb::bool_(true));
  }
  void take(const char* name, std::optional<double>& limit) {
    if (const nb::object value = take(name); value.is_valid()) limit = number(value, name);
  }

 private:
  nb::dict& left_;
};

/// Takes a number c for -c and c, or a pair of limits, either of them None.
void take_clipvalue(Arguments& arguments, OptimizerOptions& options) {
  const nb::object value = arguments.take("clipvalue");
  if (!value.is_valid()) return;
  if (!options.use_gradient_accumulation) {
    throw ValueError("use_gradient_accumulation must be True with a clipvalue, got clipvalue=" +
                     text(value));
  }
  if (!nb::isinstance<nb::tuple>(value) && !nb::isinstance<nb::list>(value)) {
    const double limit = number(value, "clipvalue");
    options.clip_gradient_min = -limit;
    options.clip_gradient_max = limit;
    return;
  }
  if (nb::len(value) != 2)
    throw ValueError("clipvalue must be a number or a pair, got " + text(value));
  const nb::object low = value[0], high = value[1];
  if (!low.is_none()) options.clip_gradient_min = number(low, "clipvalue");
  if (!high.is_none()) options.clip_gradient_max = number(high, "clipvalue");
}

Optimizer::Settings settings_of(const nb::dict& values) {
  Optimizer::Settings settings;
  for (const auto [name, value] : values) {
    const std::string key = utf8(name, "the name of a parameter");
    if (PyBool_Check(value.ptr())) {
      settings.emplace_back(key, value.is(nb::bool_(true)));
    } else if (PyUnicode_Check(value.ptr())) {
      settings.emplace_back(key, utf8(value, key));
    } else if (key == "betas") {
      throw TypeError("betas must be given as two numbers, beta1 and beta2, got " + text(value));
    } else {
      settings.emplace_back(key, number(value, key.c_str()));
    }
  }
  return settings;
}

void construct_optimizer(PythonOptimizer* self, const std::string& rule, nb::handle learning_rate,
                         const nb::kwargs& given) {
  if (learning_rate.is_none()) {
    throw TypeError(given.contains("lr")
                        ? "Optimizer: there is no argument 'lr'; it is called learning_rate here"
                        : "Optimizer: learning_rate must be a number or a function, got None");
  }
  nb::dict arguments;
  arguments.update(given);
  CommonOptions common(arguments);
  CallbackPtr rate;
  const LearningRate value =
      rate_from(learning_rate, "learning_rate", "what a learning_rate returns", rate);
  new (self) PythonOptimizer{Optimizer(rule, value, settings_of(arguments), common.options),
                             std::move(rate), common.step_counter, common.creation};
  if (self->value.rule() == rule) return;
  if (const std::string note = optimizer_note(rule);
      !note.empty() && PyErr_WarnEx(PyExc_UserWarning, note.c_str(), 1) != 0) {
    self->~PythonOptimizer();
    throw nb::python_error();
  }
}

nb::object rate_of(const PythonOptimizer& self) {
  if (self.rate) return self.rate->function();
  return nb::float_(self.value.learning_rate().constant());
}

/// Returns an optimizer that differs in its rate alone.
PythonOptimizer with_learning_rate(nb::handle object, nb::handle learning_rate) {
  const auto& self = nb::cast<const PythonOptimizer&>(object);
  PythonOptimizer other = self;
  if (!other.origin.is_valid()) other.origin = nb::borrow(object);
  other.rate = nullptr;
  other.value = self.value.with_learning_rate(
      rate_from(learning_rate, "learning_rate", "what a learning_rate returns", other.rate));
  if (self.recipe.is_valid() && nb::cast<std::string>(self.recipe[0]) == "custom") {
    const nb::object function = self.recipe[1][0];
    other.recipe = nb::make_tuple(
        self.recipe[0], nb::make_tuple(function, nb::borrow(learning_rate)), self.recipe[2]);
  }
  return other;
}

nb::dict variants() {
  nb::dict all;
  for (const OptimizerVariant& variant : optimizer_variants())
    all[variant.name.c_str()] = nb::make_tuple(variant.rule, variant.note);
  return all;
}

nb::dict parameters_of(const PythonOptimizer& self) {
  nb::dict parameters;
  for (const auto& [name, value] : self.value.parameters()) parameters[name.c_str()] = value;
  return parameters;
}

/// Returns the keyword arguments other than parameters that differ from their defaults.
nb::dict options_of(const PythonOptimizer& self) {
  const OptimizerOptions& options = self.value.options();
  nb::dict all;
  if (options.clip_gradient_min || options.clip_gradient_max)
    all["clipvalue"] = nb::make_tuple(options.clip_gradient_min, options.clip_gradient_max);
  if (options.clip_weight_min) all["clip_weight_min"] = *options.clip_weight_min;
  if (options.clip_weight_max) all["clip_weight_max"] = *options.clip_weight_max;
  if (options.weight_decay_factor != 0) all["weight_decay_factor"] = options.weight_decay_factor;
  if (options.multiply_weight_decay_factor_by_learning_rate)
    all["multiply_weight_decay_factor_by_learning_rate"] = true;
  if (!options.use_gradient_accumulation) all["use_gradient_accumulation"] = false;
  if (options.low_dimensional_packing_status) all["low_dimensional_packing_status"] = true;
  if (self.slot_variable_creation_fn)
    all["slot_variable_creation_fn"] = self.slot_variable_creation_fn->function();
  if (self.step_counter) {
    all["step_counter"] = self.step_counter->function();
  } else if (options.step_counter) {
    all["step_counter"] = options.step_counter->constant();
  }
  return all;
}

nb::object setting_of(const Setting& setting) {
  return std::visit([](const auto& value) { return nb::cast(value); }, setting.value());
}

/// Returns the value of a parameter as a user writes it: a number, a bool or a name.
nb::object parameter_of(const OptimizerRule::Parameter& parameter, double value) {
  if (!parameter.choices.empty())
    return nb::cast(parameter.choices[static_cast<std::size_t>(value)]);
  if (std::holds_alternative<bool>(parameter.default_value.value())) return nb::bool_(value != 0);
  return nb::float_(value);
}

/// Returns a limit of clipping, a decay or another option by the name that the original gives it.
nb::object option_of(const OptimizerOptions& options, const std::string& name) {
  if (name == "clip_gradient_min") return nb::cast(options.clip_gradient_min);
  if (name == "clip_gradient_max") return nb::cast(options.clip_gradient_max);
  if (name == "clip_weight_min") return nb::cast(options.clip_weight_min);
  if (name == "clip_weight_max") return nb::cast(options.clip_weight_max);
  if (name == "weight_decay_factor") return nb::cast(options.weight_decay_factor);
  if (name == "multiply_weight_decay_factor_by_learning_rate")
    return nb::cast(options.multiply_weight_decay_factor_by_learning_rate);
  if (name == "use_gradient_accumulation") return nb::cast(options.use_gradient_accumulation);
  if (name == "low_dimensional_packing_status")
    return nb::cast(options.low_dimensional_packing_status);
  return {};
}

[[noreturn]] void raise_attribute_error(const std::string& message) {
  PyErr_SetObject(PyExc_AttributeError, readable(message).ptr());
  throw nb::python_error();
}

/// Returns a parameter or an option by its name, which Python asks for where the class has none.
nb::object attribute_of(const PythonOptimizer& self, const std::string& name) {
  if (nb::object option = option_of(self.value.options(), name); option.is_valid()) return option;
  if (name == "clipvalue")
    return nb::make_tuple(self.value.options().clip_gradient_min,
                          self.value.options().clip_gradient_max);
  if (name == "slot_variable_creation_fn" || name == "step_counter") {
    const nb::dict options = options_of(self);
    return options.contains(name.c_str()) ? nb::object(options[name.c_str()]) : nb::none();
  }
  for (const OptimizerRule& rule : describe_optimizer_rules()) {
    if (rule.name != self.value.rule()) continue;
    for (const OptimizerRule::Parameter& parameter : rule.parameters)
      if (parameter.name == name) return parameter_of(parameter, self.value.parameter(name));
  }
  raise_attribute_error("an optimizer of the rule '" + self.value.rule() + "' has no '" + name +
                        "'");
}

/// Returns the names of a rule's parameters, and of the options that all rules have.
nb::list setting_names(const PythonOptimizer& self) {
  nb::list names;
  for (const char* name :
       {"clip_gradient_min", "clip_gradient_max", "clip_weight_min", "clip_weight_max",
        "weight_decay_factor", "multiply_weight_decay_factor_by_learning_rate",
        "use_gradient_accumulation", "low_dimensional_packing_status", "clipvalue",
        "slot_variable_creation_fn", "step_counter"})
    names.append(name);
  for (const auto& [name, value] : self.value.parameters()) names.append(name);
  return names;
}

/// Returns the names of all attributes, as dir shows them.
nb::list attribute_names(nb::handle self) {
  nb::list names(nb::module_::import_("builtins").attr("object").attr("__dir__")(self));
  names.extend(setting_names(nb::cast<const PythonOptimizer&>(self)));
  return names;
}

/// Sets what a class of the caller's keeps beside the optimizer, which does not change itself:
/// engines that were made with it would not know.
void set_attribute(nb::handle self, nb::handle name, nb::handle value) {
  if (!nb::inst_ready(self)) {  // in a class of the caller's, before it has called __init__ of ours
    if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
    return;
  }
  const auto& optimizer = nb::cast<const PythonOptimizer&>(self);
  const std::string key = text(name);
  if (key == "learning_rate")
    raise_attribute_error(
        "an optimizer does not change: with_learning_rate makes one with another rate");
  const nb::list settings = setting_names(optimizer);
  if (key == "rule" || nb::cast<bool>(settings.attr("__contains__")(name)))
    raise_attribute_error("an optimizer does not change: make one with another " + key);
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) == 0) return;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
  PyErr_Clear();
  raise_attribute_error("an optimizer of the rule '" + optimizer.value.rule() + "' has no '" + key +
                        "' to set, and does not change");
}

nb::list slots_to_python(const std::vector<OptimizerSlot>& slots) {
  nb::list all;
  for (const OptimizerSlot& slot : slots)
    all.append(nb::make_tuple(slot.name, slot.row_wise, slot.initial_value));
  return all;
}

/// Returns a dict by rule of what the registry knows: "learning_rate", "parameters" as tuples
/// (name, default, choices, range), and "slots" as tuples (name, row_wise, initial_value).
nb::dict rule_descriptions() {
  nb::dict all;
  for (const OptimizerRule& rule : describe_optimizer_rules()) {
    nb::list parameters;
    for (const OptimizerRule::Parameter& parameter : rule.parameters)
      parameters.append(nb::make_tuple(parameter.name, setting_of(parameter.default_value),
                                       parameter.choices, parameter.range));
    nb::dict described;
    described["learning_rate"] = rule.default_learning_rate;
    described["parameters"] = parameters;
    described["slots"] = slots_to_python(rule.slots);
    all[rule.name.c_str()] = described;
  }
  return all;
}

bool equal(const PythonOptimizer& a, const PythonOptimizer& b) {
  if (a.recipe.is_valid() || b.recipe.is_valid())
    return a.recipe.is_valid() && b.recipe.is_valid() && a.recipe.equal(b.recipe);
  return a.value.rule() == b.value.rule() && a.value.parameters() == b.value.parameters() &&
         rate_of(a).equal(rate_of(b)) && options_of(a).equal(options_of(b));
}

nb::tuple optimizer_state(const PythonOptimizer& self) {
  if (self.recipe.is_valid()) return nb::make_tuple(self.recipe);
  nb::dict arguments = parameters_of(self);
  arguments.update(options_of(self));
  return nb::make_tuple(self.value.rule(), rate_of(self), arguments);
}

void set_optimizer_state(PythonOptimizer& self, nb::handle state) {
  if (nb::len(state) > 1) {
    construct_optimizer(&self, nb::cast<std::string>(state[0]), state[1],
                        nb::borrow<nb::kwargs>(nb::object(state[2])));
    return;
  }
  const nb::object recipe = state[0], name = recipe[0];
  const nb::object makers = nb::cast<std::string>(name) == "custom"
                                ? nb::borrow(nb::type<PythonOptimizer>())
                                : nb::object(nb::module_::import_("embertable._core"));
  const nb::object made = makers.attr(name)(*nb::borrow<nb::tuple>(nb::object(recipe[1])),
                                            **nb::borrow<nb::dict>(nb::object(recipe[2])));
  new (&self) PythonOptimizer(nb::cast<const PythonOptimizer&>(made));
}

}  // namespace

CommonOptions::CommonOptions(nb::dict& given) {
  Arguments arguments(given);
  if (const nb::object value = arguments.take("slot_variable_creation_fn"); value.is_valid()) {
    if (!PyCallable_Check(value.ptr()))
      throw ValueError("slot_variable_creation_fn must be callable, got " + type_text(value));
    creation = make_callback(value, "slot_variable_creation_fn");
    options.slot_variable_creation_fn =
        std::make_shared<const SlotInitializer>(slots_from(creation));
  }
  arguments.take("use_gradient_accumulation", options.use_gradient_accumulation);
  take_clipvalue(arguments, options);
  arguments.take("clip_weight_min", options.clip_weight_min);
  arguments.take("clip_weight_max", options.clip_weight_max);
  std::optional<double> decay;
  arguments.take("weight_decay_factor", decay);
  options.weight_decay_factor = decay.value_or(0);
  arguments.take("multiply_weight_decay_factor_by_learning_rate",
                 options.multiply_weight_decay_factor_by_learning_rate);
  arguments.take("low_dimensional_packing_status", options.low_dimensional_packing_status);
  if (const nb::object value = arguments.take("step_counter"); value.is_valid()) {
    options.step_counter =
        rate_from(value, "step_counter", "what a step_counter returns", step_counter);
  }
}

LearningRate rate_from(nb::handle value, const char* name, const char* returned,
                       CallbackPtr& callback) {
  if (!PyCallable_Check(value.ptr())) return LearningRate(number(value, name));
  callback = make_callback(value, name);
  return dynamic(callback, returned);
}

SlotInitializer slots_from(const CallbackPtr& callback) {
  return [callback](const TableConfig& table, std::string_view slot, bool row_wise) {
    return with_gil([&] {
      const nb::object made = (*callback)(nb::cast(PythonTable{table, nb::none(), nb::none()}),
                                          std::string(slot), row_wise);
      const PythonInitializer* initializer = nullptr;
      if (!nb::try_cast(made, initializer) || !initializer) {
        throw TypeError("what slot_variable_creation_fn returns must be an Initializer, got " +
                        type_text(made));
      }
      return initializer->value;
    });
  };
}

Optimizer Rates::shared(const PythonOptimizer& optimizer) {
  const auto shared = [this](const CallbackPtr& callback, const LearningRate& rate) {
    if (!callback) return rate;
    return rates_.try_emplace(callback->function().ptr(), rate).first->second;
  };
  const Optimizer& value = optimizer.value;
  if (value.custom_rule())
    return value.with_learning_rate(shared(optimizer.rate, value.learning_rate()));
  OptimizerOptions options = value.options();
  if (options.step_counter)
    options.step_counter = shared(optimizer.step_counter, *options.step_counter);
  Optimizer::Settings settings;
  for (const auto& [name, number] : value.parameters()) settings.emplace_back(name, number);
  return Optimizer(value.rule(), shared(optimizer.rate, value.learning_rate()), settings,
                   std::move(options));
}

void bind_optimizer(nb::module_& module) {
  nb::class_<PythonOptimizer> type(
      module, "Optimizer", nb::type_slots(Collected<PythonOptimizer>::slots),
      nb::is_weak_referenceable(),
      R"(What a gradient does to a row: the rule, its learning rate and its parameters. There is a class for each rule,
embertable.Adagrad for example.

rule: one of optimizer_rules(), or of a variant, one of optimizer_variants(). learning_rate: a number >= 0, or a function
that is asked once per step, with the number of the step if it needs an argument, 1 for the first. parameters: those of
the rule by name, and options that every rule has: clipvalue (c for -c and c, or a pair of which either may be None) limits a
row's summed gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, by itself or, with
multiply_weight_decay_factor_by_learning_rate, times the rate, shrinks it before; use_gradient_accumulation=False makes every
occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer; step_counter (a
number or a function) is what counts steps where a rule does; low_dimensional_packing_status is only kept. All of them are
attributes, too, and none can be set. Functions are equal by identity. Raises ValueError naming rule, field, range and value.

>>> embertable.Optimizer("rowwise_adagrad", 0.1, epsilon=1e-6).epsilon
1e-06)");
  type.def("__init__", construct_optimizer, nb::arg("rule"),
           nb::arg("learning_rate").none() = nb::none(), nb::arg("parameters"),
           nb::sig("def __init__(self, rule: str, learning_rate: float | "
                   "collections.abc.Callable[[], float], **parameters: object) -> None"))
      .def_prop_ro("rule", [](const PythonOptimizer& self) { return self.value.rule(); })
      .def_prop_ro("learning_rate", rate_of)
      .def_prop_ro("parameters", [](const PythonOptimizer& self) { return parameters_of(self); })
      .def_prop_ro("options", options_of,
                   "The keyword arguments beside the parameters that are not as by default.")
      .def_prop_ro(
          "slots",
          [](const PythonOptimizer& self) { return slots_to_python(slots_of(self.value)); },
          "What it keeps beside each row: (name, row_wise, initial_value) of each slot.")
      .def("with_learning_rate", with_learning_rate, nb::arg("learning_rate"),
           nb::sig("def with_learning_rate(self, learning_rate: float | "
                   "collections.abc.Callable[[], float]) -> Optimizer"),
           R"(Gives an optimizer with another rate, a number or a function, and all else as here.

>>> embertable.Adagrad(0.1).with_learning_rate(0.05).learning_rate
0.05)")
      .def("__getattr__", attribute_of, nb::arg("name"))
      .def("__setattr__", set_attribute, nb::arg("name"), nb::arg("value").none())
      .def("__dir__", attribute_names)
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
      .def("__getstate__", optimizer_state)
      .def("__setstate__", set_optimizer_state);
  bind_custom_rules_of(type);
  module.def("optimizer_rules", optimizer_rules,
             R"(Gives the names of the rules that Optimizer knows, sorted.

>>> embertable.optimizer_rules()[:2]
['adadelta', 'adagrad'])");
  module.def("_rule_descriptions", rule_descriptions);
  module.def(
      "optimizer_variants", variants,
      R"(Gives the names of other systems' optimizers that Optimizer knows too, sorted: of each its rule, and what is
the same and what differs.

>>> embertable.optimizer_variants()["torch.SparseAdam"][0]
'adamw')");
}

}  // namespace embertable::python
