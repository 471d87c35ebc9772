#pragma once

#include <nanobind/nanobind.h>

#include <map>

#include "embertable/optimizer.h"
#include "python/src/callback.h"

namespace embertable::python {

/// An optimizer as Python has it. Functions are kept beside it; null where there is none.
struct PythonOptimizer {
  Optimizer value;
  CallbackPtr rate, step_counter, slot_variable_creation_fn;

  template <class Visit>
  void references(Visit visit) {
    for (const CallbackPtr& callback : {rate, step_counter, slot_variable_creation_fn})
      if (callback) visit(callback->function());
  }
};

/// The rates of one engine, and its step counters: optimizers with the same function object get the
/// same one, which so is asked once per step.
class Rates {
 public:
  Optimizer shared(const PythonOptimizer& optimizer);

 private:
  std::map<PyObject*, LearningRate> rates_;
};

}  // namespace embertable::python
