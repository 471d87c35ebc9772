// Binds tables and features.
#include "embertable/config.h"

#include <nanobind/stl/optional.h>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/collected.h"
#include "python/src/python_config.h"
#include "python/src/python_initializer.h"
#include "python/src/rates.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Name = std::optional<std::string>;

/// Returns the T behind a field, or null for None. Throws TypeError naming the field for anything
/// else.
template <class T>
const T* field(nb::handle value, const char* what, const char* type) {
  const T* found = nullptr;
  if (value.is_none()) return nullptr;
  if (!nb::try_cast(value, found) || !found)
    throw TypeError(std::string(what) + " must be " + type + ", got " + type_text(value));
  return found;
}

Combiner combiner_of(nb::handle value) {
  if (!PyUnicode_Check(value.ptr()))
    throw ValueError("combiner must be 'sum', 'mean' or 'sqrtn', got " + type_text(value));
  return parse_combiner(text(value));
}

void construct_table(PythonTable* self, nb::handle vocabulary_size, nb::handle dim,
                     nb::object initializer, nb::object optimizer, nb::handle combiner,
                     const Name& name, bool replicated) {
  TableConfig table;
  table.vocabulary_size = integer(vocabulary_size, "vocabulary_size");
  table.dim = integer32(dim, "dim");
  if (const auto* given = field<PythonInitializer>(initializer, "initializer", "an Initializer"))
    table.initializer = given->value;
  if (const auto* given = field<PythonOptimizer>(optimizer, "optimizer", "an Optimizer"))
    table.optimizer = given->value;
  table.combiner = combiner_of(combiner);
  table.name = name;
  table.replicated = replicated;
  validate(table);
  new (self) PythonTable{std::move(table), std::move(initializer), std::move(optimizer)};
}

void construct_feature(PythonFeature* self, nb::object table, nb::handle max_sequence_length,
                       bool validate_weights_and_indices, nb::handle output_shape,
                       const Name& name) {
  const auto* given = field<PythonTable>(table, "table", "a TableConfig");
  FeatureConfig feature;
  if (given) feature.table = make_table(given->value);
  feature.max_sequence_length = integer(max_sequence_length, "max_sequence_length");
  feature.validate_weights_and_indices = validate_weights_and_indices;
  feature.output_shape = shape(output_shape, "output_shape");
  feature.name = name;
  validate(feature);
  feature.table = nullptr;  // the engine makes tables that its features share
  new (self) PythonFeature{std::move(feature), std::move(table)};
}

std::string repr_of(const PythonFeature& self) {
  FeatureConfig feature = self.value;
  feature.table = make_table(nb::cast<const PythonTable&>(self.table).value);
  return to_string(feature);
}

nb::tuple state(const PythonTable& self) {
  return nb::make_tuple(self.value.vocabulary_size, self.value.dim, self.initializer,
                        self.optimizer, std::string(to_string(self.value.combiner)),
                        self.value.name, self.value.replicated);
}

nb::tuple state(const PythonFeature& self) {
  return nb::make_tuple(self.table, self.value.max_sequence_length,
                        self.value.validate_weights_and_indices, to_python(self.value.output_shape),
                        self.value.name);
}

void bind_table(nb::module_& module) {
  nb::class_<PythonTable>(
      module, "TableConfig", nb::type_slots(Collected<PythonTable>::slots),
      "One embedding table, of vocabulary_size rows of dim floats. Shared by the features that "
      "name the\nsame object; two objects with equal fields are two tables. replicated: every host "
      "has all rows,\nso that lookups send nothing and gradients go to every host; it changes no "
      "result. For small\ntables: see docs/hosts.md.")
      .def("__init__", construct_table, nb::arg("vocabulary_size").none(), nb::arg("dim").none(),
           nb::arg("initializer") = nb::none(), nb::arg("optimizer") = nb::none(),
           nb::arg("combiner").none() = "mean", nb::arg("name") = nb::none(), nb::kw_only(),
           nb::arg("replicated") = false)
      .def_prop_ro("vocabulary_size",
                   [](const PythonTable& self) { return self.value.vocabulary_size; })
      .def_prop_ro("dim", [](const PythonTable& self) { return self.value.dim; })
      .def_prop_ro("initializer", [](const PythonTable& self) { return self.initializer; })
      .def_prop_ro("optimizer", [](const PythonTable& self) { return self.optimizer; })
      .def_prop_ro(
          "combiner",
          [](const PythonTable& self) { return std::string(to_string(self.value.combiner)); })
      .def_prop_ro("name", [](const PythonTable& self) { return self.value.name; })
      .def_prop_ro("replicated", [](const PythonTable& self) { return self.value.replicated; })
      .def("__repr__", [](const PythonTable& self) { return to_string(self.value); })
      .def("__getstate__", [](const PythonTable& self) { return state(self); })
      .def("__setstate__", [](PythonTable& self, nb::handle fields) {
        construct_table(&self, fields[0], fields[1], fields[2], fields[3], fields[4],
                        nb::cast<Name>(fields[5]),
                        nb::len(fields) > 6 && nb::cast<bool>(fields[6]));
      });
}

void bind_feature(nb::module_& module) {
  nb::class_<PythonFeature>(module, "FeatureConfig",
                            nb::type_slots(Collected<PythonFeature>::slots),
                            "One input of the model, looked up in a table.")
      .def("__init__", construct_feature, nb::arg("table").none(),
           nb::arg("max_sequence_length") = 0, nb::arg("validate_weights_and_indices") = true,
           nb::arg("output_shape") = nb::none(), nb::arg("name") = nb::none())
      .def_prop_ro("table", [](const PythonFeature& self) { return self.table; })
      .def_prop_ro("max_sequence_length",
                   [](const PythonFeature& self) { return self.value.max_sequence_length; })
      .def_prop_ro(
          "validate_weights_and_indices",
          [](const PythonFeature& self) { return self.value.validate_weights_and_indices; })
      .def_prop_ro("output_shape",
                   [](const PythonFeature& self) { return to_python(self.value.output_shape); })
      .def_prop_ro("name", [](const PythonFeature& self) { return self.value.name; })
      .def("__repr__", repr_of)
      .def("__getstate__", [](const PythonFeature& self) { return state(self); })
      .def("__setstate__", [](PythonFeature& self, nb::handle fields) {
        construct_feature(&self, fields[0], fields[1], nb::cast<bool>(fields[2]), fields[3],
                          nb::cast<Name>(fields[4]));
      });
}

}  // namespace

void bind_config(nb::module_& module) {
  bind_table(module);
  bind_feature(module);
}

}  // namespace embertable::python
