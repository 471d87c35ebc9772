#pragma once

#include <nanobind/nanobind.h>

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

}  // namespace embertable::python
