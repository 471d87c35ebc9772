// Binds tables and features.
#include "embertable/config.h"

#include <nanobind/stl/optional.h>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/explained_calls.h"
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

RowType row_type_of(nb::handle value) {
  if (!PyUnicode_Check(value.ptr()))
    throw ValueError("row_type must be 'float32' or 'bfloat16', got " + type_text(value));
  return parse_trainable_row_type(text(value));
}

void construct_table(PythonTable* self, nb::handle vocabulary_size, nb::handle dim,
                     nb::object initializer, nb::object optimizer, nb::handle combiner,
                     const Name& name, nb::handle quantization_config, bool replicated,
                     nb::handle row_type) {
  TableConfig table;
  table.vocabulary_size = integer(vocabulary_size, "vocabulary_size");
  table.dim = integer32(dim, "dim");
  if (const auto* given = field<PythonInitializer>(initializer, "initializer", "an Initializer"))
    table.initializer = given->value;
  if (const auto* given = field<PythonOptimizer>(optimizer, "optimizer", "an Optimizer"))
    table.optimizer = given->value;
  table.combiner = combiner_of(combiner);
  table.name = name;
  if (const auto* given = field<QuantizationConfig>(quantization_config, "quantization_config",
                                                    "a QuantizationConfig"))
    table.quantization_config = *given;
  table.replicated = replicated;
  table.row_type = row_type_of(row_type);
  validate(table);
  new (self) PythonTable{std::move(table), std::move(initializer), std::move(optimizer)};
}

/// Returns a feature as Python keeps it, whose table is made by the engine, since its features
/// share it. Throws what `validate` throws.
PythonFeature checked(FeatureConfig feature, nb::object table) {
  const auto* given = field<PythonTable>(table, "table", "a TableConfig");
  feature.table = given ? make_table(given->value) : nullptr;
  validate(feature);
  feature.table = nullptr;
  return {std::move(feature), std::move(table)};
}

void construct_feature(PythonFeature* self, nb::object table, nb::handle max_sequence_length,
                       bool validate_weights_and_indices, nb::handle output_shape,
                       const Name& name) {
  FeatureConfig feature;
  feature.max_sequence_length = integer(max_sequence_length, "max_sequence_length");
  feature.validate_weights_and_indices = validate_weights_and_indices;
  feature.output_shape = shape(output_shape, "output_shape");
  feature.name = name;
  new (self) PythonFeature(checked(std::move(feature), std::move(table)));
}

/// Changes one field. After an error the feature is as it was.
template <class Change>
void change(PythonFeature& self, Change change_field) {
  FeatureConfig feature = self.value;
  change_field(feature);
  self = checked(std::move(feature), self.table);
}

std::string repr_of(const PythonFeature& self) {
  FeatureConfig feature = self.value;
  feature.table = make_table(nb::cast<const PythonTable&>(self.table).value);
  return to_string(feature);
}

nb::tuple state(const PythonTable& self) {
  return nb::make_tuple(self.value.vocabulary_size, self.value.dim, self.initializer,
                        self.optimizer, std::string(to_string(self.value.combiner)),
                        self.value.name, self.value.quantization_config, self.value.replicated,
                        std::string(to_string(self.value.row_type)));
}

nb::tuple state(const PythonFeature& self) {
  return nb::make_tuple(self.table, self.value.max_sequence_length,
                        self.value.validate_weights_and_indices, to_python(self.value.output_shape),
                        self.value.name);
}

void bind_table(nb::module_& module) {
  nb::class_<PythonTable>(
      module, "TableConfig", nb::type_slots(Collected<PythonTable>::seen),
      R"(One embedding table. Features that name the same object share it; two objects with equal fields are two tables.

vocabulary_size: rows, >= 1; dim: floats per row, 1..4096; initializer: an Initializer, None: a truncated normal of stddev
1 / sqrt(dim); optimizer: of this table alone; combiner: "mean", "sum" or "sqrtn"; name: in checkpoints and messages;
quantization_config: a QuantizationConfig for what is looked up. replicated: every host has all rows, so that lookups send
nothing and gradients go to every host; it changes no result. For small tables: see docs/hosts.md. row_type: "float32", or
"bfloat16" for half the memory of the rows: see docs/optimizers.md. Raises ValueError and TypeError naming the field.

>>> embertable.TableConfig(8, 4, combiner="sum", name="films").combiner
'sum')")
      .def("__init__", construct_table, nb::arg("vocabulary_size").none(), nb::arg("dim").none(),
           nb::arg("initializer") = nb::none(), nb::arg("optimizer") = nb::none(),
           nb::arg("combiner").none() = "mean", nb::arg("name") = nb::none(),
           nb::arg("quantization_config") = nb::none(), nb::kw_only(),
           nb::arg("replicated") = false, nb::arg("row_type").none() = "float32")
      .def_prop_ro("vocabulary_size",
                   [](const PythonTable& self) { return self.value.vocabulary_size; })
      .def_prop_ro("dim", [](const PythonTable& self) { return self.value.dim; })
      .def_prop_ro("initializer", [](const PythonTable& self) { return self.initializer; })
      .def_prop_ro("optimizer", [](const PythonTable& self) { return self.optimizer; })
      .def_prop_ro(
          "combiner",
          [](const PythonTable& self) { return std::string(to_string(self.value.combiner)); })
      .def_prop_ro("name", [](const PythonTable& self) { return self.value.name; })
      .def_prop_ro("quantization_config",
                   [](const PythonTable& self) { return self.value.quantization_config; })
      .def_prop_ro("replicated", [](const PythonTable& self) { return self.value.replicated; })
      .def_prop_ro(
          "row_type",
          [](const PythonTable& self) { return std::string(to_string(self.value.row_type)); })
      .def("__repr__", [](const PythonTable& self) { return to_string(self.value); })
      .def("__getstate__", [](const PythonTable& self) { return state(self); })
      .def("__setstate__", [](PythonTable& self, nb::handle fields) {
        const std::size_t count = nb::len(fields);  // 6 and 7 in earlier releases
        construct_table(&self, fields[0], fields[1], fields[2], fields[3], fields[4],
                        nb::cast<Name>(fields[5]), count > 7 ? nb::object(fields[6]) : nb::none(),
                        count > 6 && nb::cast<bool>(fields[count > 7 ? 7 : 6]),
                        count > 8 ? nb::object(fields[8]) : nb::object(nb::str("float32")));
      });
}

void bind_quantization(nb::module_& module) {
  nb::class_<QuantizationConfig>(
      module, "QuantizationConfig", nb::type_slots(explained_slots),
      R"(Replaces what is looked up by the nearest of evenly spaced numbers, before weights and combiner. Rows, slots and gradients
stay as they are.

num_buckets: how many numbers, >= 2; lower, upper: the first and the last, lower < upper. Raises ValueError naming the field.

>>> embertable.QuantizationConfig(num_buckets=5, lower=0.0, upper=4.0).upper
4.0)")
      .def(
          "__init__",
          [](QuantizationConfig* self, nb::handle num_buckets, nb::handle lower, nb::handle upper) {
            const QuantizationConfig made{integer32(num_buckets, "num_buckets"),
                                          static_cast<float>(number(lower, "lower")),
                                          static_cast<float>(number(upper, "upper"))};
            validate(made);
            new (self) QuantizationConfig(made);
          },
          nb::arg("num_buckets"), nb::arg("lower"), nb::arg("upper"))
      .def_ro("num_buckets", &QuantizationConfig::num_buckets)
      .def_ro("lower", &QuantizationConfig::lower)
      .def_ro("upper", &QuantizationConfig::upper)
      .def("__eq__",
           [](const QuantizationConfig& self, nb::handle other) -> nb::object {
             const QuantizationConfig* right = nullptr;
             if (!nb::try_cast(other, right) || !right) return nb::borrow(Py_NotImplemented);
             return nb::bool_(self == *right);
           })
      .def("__hash__",
           [](const QuantizationConfig& self) {
             return nb::hash(nb::make_tuple(self.num_buckets, self.lower, self.upper));
           })
      .def("__repr__", [](const QuantizationConfig& self) { return to_string(self); })
      .def("__reduce__", [](nb::handle self) {
        const auto& value = nb::cast<const QuantizationConfig&>(self);
        return nb::make_tuple(self.type(),
                              nb::make_tuple(value.num_buckets, value.lower, value.upper));
      });
}

void bind_feature(nb::module_& module) {
  nb::class_<PythonFeature>(
      module, "FeatureConfig", nb::type_slots(Collected<PythonFeature>::seen),
      R"(One input of the model, looked up in a table. Its fields may be changed; an embedding has a copy of them.

table: a TableConfig; max_sequence_length: L > 0 gives each of the first L ids of a sample an activation of its own;
validate_weights_and_indices: serving lookups leave out ids below 0 of SparseIds and, but for sums, their weights not above 0,
but not those of ragged and dense ids, which raise; output_shape: of the
activations of one replica, without the dim, None: found out; name: in messages and checkpoints. Raises ValueError and
TypeError naming the field.

>>> embertable.FeatureConfig(embertable.TableConfig(8, 4), max_sequence_length=3).max_sequence_length
3)")
      .def("__init__", construct_feature, nb::arg("table").none(),
           nb::arg("max_sequence_length") = 0, nb::arg("validate_weights_and_indices") = true,
           nb::arg("output_shape") = nb::none(), nb::arg("name") = nb::none())
      .def_prop_rw(
          "table", [](const PythonFeature& self) { return self.table; },
          [](PythonFeature& self, nb::object table) {
            self = checked(self.value, std::move(table));
          },
          nb::for_setter(nb::arg("table").none()))
      .def_prop_rw(
          "max_sequence_length",
          [](const PythonFeature& self) { return self.value.max_sequence_length; },
          [](PythonFeature& self, nb::handle length) {
            change(self, [&](FeatureConfig& feature) {
              feature.max_sequence_length = integer(length, "max_sequence_length");
            });
          })
      .def_prop_rw(
          "validate_weights_and_indices",
          [](const PythonFeature& self) { return self.value.validate_weights_and_indices; },
          [](PythonFeature& self, bool validate) {
            self.value.validate_weights_and_indices = validate;
          })
      .def_prop_rw(
          "output_shape",
          [](const PythonFeature& self) { return to_python(self.value.output_shape); },
          [](PythonFeature& self, nb::handle dims) {
            change(self, [&](FeatureConfig& feature) {
              feature.output_shape = shape(dims, "output_shape");
            });
          },
          nb::for_setter(nb::arg("output_shape").none()))
      .def_prop_rw(
          "name", [](const PythonFeature& self) { return self.value.name; },
          [](PythonFeature& self, const Name& name) { self.value.name = name; },
          nb::for_setter(nb::arg("name").none()))
      .def("__repr__", repr_of)
      .def("__getstate__", [](const PythonFeature& self) { return state(self); })
      .def("__setstate__", [](PythonFeature& self, nb::handle fields) {
        construct_feature(&self, fields[0], fields[1], nb::cast<bool>(fields[2]), fields[3],
                          nb::cast<Name>(fields[4]));
      });
}

}  // namespace

void bind_config(nb::module_& module) {
  bind_quantization(module);
  bind_table(module);
  bind_feature(module);
}

}  // namespace embertable::python
