#pragma once

#include <cstdint>
#include <optional>

#include "embertable/strategy.h"
#include "python/src/callback.h"

namespace embertable::python {

/// A strategy in Python, with the exchange that it calls if that is Python's, and the number of
/// threads that it was made with.
struct PythonStrategy {
  StrategyPtr value;
  CallbackPtr exchange;
  std::optional<std::int32_t> threads;

  template <class Visit>
  void references(Visit visit) {
    if (exchange) visit(exchange->function());
  }
};

}  // namespace embertable::python
