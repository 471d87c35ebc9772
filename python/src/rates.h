#pragma once

#include <nanobind/nanobind.h>

#include <map>

#include "embertable/optimizer.h"
#include "python/src/callback.h"

namespace embertable::python {

/// An optimizer in Python. Functions are kept beside it; null if there is none.
struct PythonOptimizer {
  Optimizer value;
  CallbackPtr rate, step_counter, slot_variable_creation_fn;

  template <class Visit>
  void references(Visit visit) {
    for (const CallbackPtr& callback : {rate, step_counter, slot_variable_creation_fn})
      if (callback) visit(callback->function());
  }
};

/// The rates and step counters of one engine. Optimizers with the same function object get the same
/// rate, so that it is called once per step.
class Rates {
 public:
  Optimizer shared(const PythonOptimizer& optimizer);

 private:
  std::map<PyObject*, LearningRate> rates_;
};

}  // namespace embertable::python
