#pragma once

#include <nanobind/nanobind.h>

#include "embertable/config.h"

namespace embertable::python {

namespace nb = nanobind;

/// A table in Python: the values of its fields, and the objects that were given for them.
struct PythonTable {
  TableConfig value;
  nb::object initializer;  ///< an Initializer or None
  nb::object optimizer;    ///< an Optimizer or None

  template <class Visit>
  void references(Visit visit) {
    visit(initializer);
    visit(optimizer);
  }
};

/// A feature in Python; `value.table` stays null.
struct PythonFeature {
  FeatureConfig value;
  nb::object table;

  template <class Visit>
  void references(Visit visit) {
    visit(table);
  }
};

}  // namespace embertable::python
