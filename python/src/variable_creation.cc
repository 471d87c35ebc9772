// Binds partitioners, and the creation of variables.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "embertable/variables/partitioner.h"
#include "embertable/variables/variable_creator.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/python_initializer.h"
#include "python/src/tensors.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

/// Returns the element of a NumPy dtype, of its name, or of "string" and "bfloat16".
ElementBytes element_of(nb::handle dtype) {
  if (PyUnicode_Check(dtype.ptr())) {
    const std::string name = text(dtype);
    if (name == "string") return ElementBytes::strings();
    if (name == "bfloat16") return 2;
  }
  const nb::object of_numpy = nb::module_::import_("numpy").attr("dtype")(dtype);
  const auto kind = nb::cast<std::string>(of_numpy.attr("kind"));
  if (kind == "U" || kind == "S" || kind == "O" || kind == "T") return ElementBytes::strings();
  return nb::cast<std::int64_t>(of_numpy.attr("itemsize"));
}

template <class Made>
std::vector<std::int64_t> parts(const Made& self, nb::handle shape_of, nb::handle dtype,
                                nb::handle axis) {
  return self(shape(shape_of, "shape"), element_of(dtype), integer32(axis, "axis"));
}

template <class Made>
nb::class_<Made> bind_partitioner(nb::module_& module, const char* name, const char* doc) {
  return nb::class_<Made>(module, name, doc)
      .def("__call__", parts<Made>, nb::arg("shape").none(), nb::arg("dtype"), nb::arg("axis") = 0,
           "The number of parts by axis, all 1 but one. dtype: NumPy's, or 'string', 'bfloat16'.");
}

void bind_partitioners(nb::module_& module) {
  using Fixed = FixedShardsPartitioner;
  using Min = MinSizePartitioner;
  using Max = MaxSizePartitioner;
  bind_partitioner<Fixed>(module, "FixedShardsPartitioner", "min(num_shards, dim) parts.")
      .def(
          "__init__", [](Fixed* self, nb::handle n) { new (self) Fixed(integer(n, "num_shards")); },
          nb::arg("num_shards"));
  bind_partitioner<Min>(module, "MinSizePartitioner",
                        "As many parts as there are min_shard_bytes in a variable, rounded up, up "
                        "to max_shards.")
      .def(
          "__init__",
          [](Min* self, nb::handle bytes, nb::handle shards, nb::handle per_string) {
            new (self) Min(integer(bytes, "min_shard_bytes"), integer(shards, "max_shards"),
                           integer(per_string, "bytes_per_string"));
          },
          nb::arg("min_shard_bytes") = Min::kDefaultShardBytes, nb::arg("max_shards") = 1,
          nb::arg("bytes_per_string") = Min::kDefaultStringBytes);
  bind_partitioner<Max>(module, "MaxSizePartitioner",
                        "As few parts as keep each within max_shard_bytes, up to max_shards.")
      .def(
          "__init__",
          [](Max* self, nb::handle bytes, nb::handle shards, nb::handle per_string) {
            std::optional<std::int64_t> most;
            if (!shards.is_none()) most = integer(shards, "max_shards");
            new (self) Max(integer(bytes, "max_shard_bytes"), most,
                           integer(per_string, "bytes_per_string"));
          },
          nb::arg("max_shard_bytes"), nb::arg("max_shards") = nb::none(),
          nb::arg("bytes_per_string") = Min::kDefaultStringBytes);
}

/// The thread that makes a variable calls Python functions, with the GIL.
Partitioner partitioner_of(nb::handle given) {
  if (given.is_none()) return {};
  const CallbackPtr callback = make_callback(given, "variable_partitioner");
  return
      [callback](const Shape& shape, ElementBytes element, int axis) -> std::vector<std::int64_t> {
        const nb::object counts =
            (*callback)(to_python(shape), numpy_dtype(*element.dtype()), nb::arg("axis") = axis);
        std::vector<std::int64_t> result;
        if (counts.is_none()) return result;
        for (const nb::handle count : counts) result.push_back(integer(count, "a count of parts"));
        return result;
      };
}

InitialValue initial_value_of(nb::handle value, nb::handle dims, nb::handle dtype,
                              nb::handle seed) {
  if (const InitialValue* given = nullptr; nb::try_cast(value, given) && given) return *given;
  if (const PythonInitializer* given = nullptr; nb::try_cast(value, given) && given)
    return InitialValue::of(given->value, shape(dims, "shape"), seed_of(seed));
  if (!PyCallable_Check(value.ptr())) {
    if (dtype.is_none()) return tensor_of(value, "initial_value");
    return tensor_of(value, dtype_of(dtype), "initial_value");
  }
  const CallbackPtr callback = make_callback(value, "initial_value");
  if (dims.is_none())
    return InitialValue::whole([callback] { return tensor_of((*callback)(), "initial_value"); });
  const DType of = dtype.is_none() ? DType::kFloat32 : dtype_of(dtype);
  return InitialValue::parts(shape(dims, "shape"), of, [callback, of](const VariablePart& part) {
    return tensor_of((*callback)(nb::cast(part)), of, "initial_value");
  });
}

nb::object variable_of(const CreatedVariable& self) {
  return self.is_sharded() ? nb::cast(self.sharded()) : nb::cast(self.whole());
}

void bind_values(nb::module_& module) {
  nb::class_<VariablePart>(module, "VariablePart",
                           "A block of rows of a variable that is to be filled, and where it lies.")
      .def_ro("name", &VariablePart::name)
      .def_prop_ro("full_shape", [](const VariablePart& s) { return to_python(s.full_shape); })
      .def_prop_ro("offset",
                   [](const VariablePart& self) { return nb::tuple(nb::cast(self.offset)); })
      .def_prop_ro("shape", [](const VariablePart& self) { return to_python(self.shape); });
  // NOLINTNEXTLINE(bugprone-unused-raii): the module keeps the class
  nb::class_<InitialValue>(module, "InitialValue", "What a variable starts with: see saved_value.");
  nb::class_<CreatedVariable>(module, "CreatedVariable",
                              "A variable as it was made, and the storage nodes that hold it.")
      .def_prop_ro("variable", variable_of, "A Variable, or a ShardedVariable.")
      .def_ro("nodes", &CreatedVariable::nodes, "Of the one piece, or of each component.");
}

void bind_creator(nb::module_& module) {
  nb::class_<VariableCreator>(module, "VariableCreator",
                              "Makes variables in one piece or in blocks of rows, as "
                              "variable_partitioner(shape, dtype, axis=0)\nsays, on storage nodes "
                              "by turns.")
      .def(
          "__init__",
          [](VariableCreator* self, nb::handle nodes, nb::handle partitioner) {
            new (self) VariableCreator({.storage_nodes = integer32(nodes, "storage_nodes"),
                                        .variable_partitioner = partitioner_of(partitioner)});
          },
          nb::arg("storage_nodes") = 1, nb::arg("variable_partitioner") = nb::none())
      .def(
          "create",
          [](VariableCreator& self, nb::handle value, const std::string& name, nb::handle dims,
             nb::handle dtype, nb::handle seed, nb::handle beside) {
            VariableOptions options{.name = name};
            if (!beside.is_none()) options.colocate_with = integer32(beside, "colocate_with");
            return self.create(initial_value_of(value, dims, dtype, seed), options);
          },
          nb::arg("initial_value").none(), nb::arg("name") = "Variable", nb::kw_only(),
          nb::arg("shape") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("seed") = 0,
          nb::arg("colocate_with") = nb::none(),
          "initial_value: an array; an Initializer, with a shape; function(), called once for the "
          "whole;\nwith a shape function(VariablePart), called for each block; or a saved_value.");
  module.def(
      "create_on_hosts",
      [](nb::handle value, nb::handle hosts, const std::string& name, nb::handle dims,
         nb::handle dtype, nb::handle seed) {
        return create_on_hosts(initial_value_of(value, dims, dtype, seed),
                               integer32(hosts, "hosts"), name);
      },
      nb::arg("initial_value").none(), nb::arg("hosts"), nb::arg("name"), nb::kw_only(),
      nb::arg("shape") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("seed") = 0,
      "A ShardedVariable with a component '<name>_<i>' for each host that owns rows.");
}

}  // namespace

void bind_variable_creation(nb::module_& module) {
  bind_partitioners(module);
  bind_values(module);
  bind_creator(module);
}

}  // namespace embertable::python
