#pragma once

#include <nanobind/nanobind.h>

#include <map>

#include "embertable/optimizer.h"
#include "python/src/callback.h"

namespace embertable::python {

/// An optimizer as Python has it. A rate that is a function is kept beside it.
struct PythonOptimizer {
  Optimizer value;
  CallbackPtr rate;  ///< null for a constant rate

  template <class Visit>
  void references(Visit visit) {
    if (rate) visit(rate->function());
  }
};

/// The rates of one engine: optimizers with the same function object get the same rate, which so is
/// asked once per step.
class Rates {
 public:
  Optimizer shared(const PythonOptimizer& optimizer);

 private:
  std::map<PyObject*, LearningRate> rates_;
};

}  // namespace embertable::python
