#pragma once

#include "embertable/strategy.h"
#include "python/src/callback.h"

namespace embertable::python {

/// A strategy in Python, with the exchange that it calls if that is Python's.
struct PythonStrategy {
  StrategyPtr value;
  CallbackPtr exchange;

  template <class Visit>
  void references(Visit visit) {
    if (exchange) visit(exchange->function());
  }
};

}  // namespace embertable::python
