#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "embertable/initializer.h"
#include "python/src/callback.h"

namespace embertable::python {

/// An initializer in Python, with the arguments that made it.
struct PythonInitializer {
  Initializer value;
  const char* name;   ///< name of the function that makes one
  nb::object recipe;  ///< the function's arguments, a tuple
  CallbackPtr function;

  template <class Visit>
  void references(Visit visit) {
    visit(recipe);
    if (function) visit(function->function());
  }
};

/// Returns what fills rows with the results of a Python function. `table` begins messages.
Initializer initializer_from(const CallbackPtr& function, const std::string& table);

}  // namespace embertable::python
