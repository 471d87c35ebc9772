#pragma once

#include <nanobind/nanobind.h>

#include <map>

#include "embertable/optimizer.h"
#include "python/src/callback.h"

namespace embertable::python {

/// An optimizer in Python. Functions are kept beside it; null if there is none.
struct PythonOptimizer {
  Optimizer value;
  CallbackPtr rate = {}, step_counter = {}, slot_variable_creation_fn = {}, custom_rule = {};

  /// The function that made a caller-supplied rule, by its name, and a tuple and a dict of its
  /// arguments; invalid for other rules.
  nb::object recipe = {};

  /// A tuple of the first values of a caller-supplied rule's slots, since others than this may be
  /// cleared before the functions of the Initializers among them.
  nb::object first_values = {};

  /// The optimizer that owns all functions but the rate, if this one is a copy of it.
  nb::object origin = {};

  template <class Visit>
  void references(Visit visit) {
    visit(recipe);
    visit(first_values);
    visit(origin);
    if (rate) visit(rate->function());
    if (!origin.is_valid()) other_functions(visit);
  }
  template <class Visit>
  void functions(Visit visit) {
    visit(recipe);
    if (rate) visit(rate->function());
    if (!origin.is_valid()) other_functions(visit);
  }

 private:
  template <class Visit>
  void other_functions(Visit visit) {
    for (const CallbackPtr& callback : {step_counter, slot_variable_creation_fn, custom_rule})
      if (callback) visit(callback->function());
  }
};

/// Returns the initializers of slots, from a function of (table, slot, row_wise).
SlotInitializer slots_from(const CallbackPtr& callback);

/// The keyword arguments that every optimizer has, and the functions among them.
struct CommonOptions {
  /// Takes them out of `given`. Throws TypeError, ValueError naming the argument.
  explicit CommonOptions(nb::dict& given);

  OptimizerOptions options;
  CallbackPtr step_counter, creation;
};

/// Returns a number as a rate, or a function, which is kept in `callback`. Throws TypeError naming
/// the argument, or what the function `returned`.
LearningRate rate_from(nb::handle value, const char* name, const char* returned,
                       CallbackPtr& callback);

/// Adds `custom`, which makes an optimizer of a caller-supplied rule.
void bind_custom_rules_of(nb::class_<PythonOptimizer>& type);

/// The rates and step counters of one engine. Optimizers with the same function object get the same
/// rate, so that it is called once per step.
class Rates {
 public:
  Optimizer shared(const PythonOptimizer& optimizer);

 private:
  std::map<PyObject*, LearningRate> rates_;
};

}  // namespace embertable::python
