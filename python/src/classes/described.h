#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

namespace nb = nanobind;

/// Returns what `repr` shows of an object: embertable/_describe.py has a line for its class.
inline nb::object described(nb::handle self) {
  return nb::module_::import_("embertable._describe").attr("line")(self);
}

/// Gives a class with tables and features `repr`, `summary` and a form for notebooks.
template <class T>
void bind_description(nb::class_<T>& type) {
  type.def("__repr__", described);
  type.def(
      "summary",
      [](nb::handle self) {
        return nb::module_::import_("embertable._describe").attr("summary")(self);
      },
      "Returns text with a table of the tables (rows, dim, row type, combiner, optimizer, slots, "
      "bytes) and "
      "one of the\nfeatures.\n\n"
      ">>> films = embertable.TableConfig(8, 4, name='films')\n"
      ">>> text = embertable.Embedding(embertable.FeatureConfig(films)).summary()\n"
      ">>> print(text.splitlines()[2])\n"
      "table  rows  dim  row type  combiner  optimizer  slots  bytes");
  type.def("_repr_html_", [](nb::handle self) {
    return nb::module_::import_("embertable._describe").attr("as_html")(self);
  });
}

}  // namespace embertable::python
