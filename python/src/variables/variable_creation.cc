// Binds partitioners, and the creation of variables.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "embertable/variables/partitioner.h"
#include "embertable/variables/variable_creator.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/classes/described.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/python_initializer.h"
#include "python/src/signatures.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"
#include "python/src/variables/variables.h"

namespace embertable::python {
namespace {

/// Returns the element of a NumPy dtype, of its name, or of "string" and "bfloat16".
ElementBytes element_of(nb::handle given) {
  const nb::object dtype = plain_dtype(given);
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
  return nb::class_<Made>(module, name, nb::type_slots(explained_slots), doc)
      .def("__repr__", described)
      .def("__call__", parts<Made>, nb::arg("shape").none(), nb::arg("dtype"), nb::arg("axis") = 0,
           R"(Gives the number of parts of each axis, all 1 but one.

shape: dims, all known; dtype: NumPy's, TensorFlow's or PyTorch's, or "string", "bfloat16"; axis: the one
that is cut. Raises ValueError for unknown dims and an axis that is not there.

>>> embertable.FixedShardsPartitioner(2)((10, 3), np.float32)
[2, 1])");
}

void bind_partitioners(nb::module_& module) {
  using Fixed = FixedShardsPartitioner;
  using Min = MinSizePartitioner;
  using Max = MaxSizePartitioner;
  bind_partitioner<Fixed>(module, "FixedShardsPartitioner", R"(min(num_shards, dim) parts.

num_shards: >= 1, else ValueError.

>>> embertable.FixedShardsPartitioner(num_shards=2)((10, 3), np.float32)
[2, 1])")
      .def(
          "__init__", [](Fixed* self, nb::handle n) { new (self) Fixed(integer(n, "num_shards")); },
          nb::arg("num_shards"))
      .def_prop_ro("num_shards", &Fixed::num_shards);
  bind_partitioner<Min>(
      module, "MinSizePartitioner",
      R"(As many parts as there are min_shard_bytes in a variable, rounded up, up to max_shards.

min_shard_bytes, max_shards: >= 1, else ValueError; bytes_per_string: what a string counts.

>>> embertable.MinSizePartitioner(min_shard_bytes=4, max_shards=2)((6, 1), np.float32)
[2, 1])")
      .def(
          "__init__",
          [](Min* self, nb::handle bytes, nb::handle shards, nb::handle per_string) {
            new (self) Min(integer(bytes, "min_shard_bytes"), integer(shards, "max_shards"),
                           integer(per_string, "bytes_per_string"));
          },
          nb::arg("min_shard_bytes") = Min::kDefaultShardBytes, nb::arg("max_shards") = 1,
          nb::arg("bytes_per_string") = Min::kDefaultStringBytes)
      .def_prop_ro("min_shard_bytes", &Min::min_shard_bytes)
      .def_prop_ro("max_shards", &Min::max_shards)
      .def_prop_ro("bytes_per_string", &Min::bytes_per_string);
  bind_partitioner<Max>(module, "MaxSizePartitioner",
                        R"(As few parts as keep each within max_shard_bytes, up to max_shards.

max_shard_bytes, max_shards: >= 1, else ValueError; bytes_per_string: what a string counts.

>>> embertable.MaxSizePartitioner(max_shard_bytes=8)((6, 1), np.float32)
[3, 1])")
      .def(
          "__init__",
          [](Max* self, nb::handle bytes, nb::handle shards, nb::handle per_string) {
            std::optional<std::int64_t> most;
            if (!shards.is_none()) most = integer(shards, "max_shards");
            new (self) Max(integer(bytes, "max_shard_bytes"), most,
                           integer(per_string, "bytes_per_string"));
          },
          nb::arg("max_shard_bytes"), nb::arg("max_shards") = nb::none(),
          nb::arg("bytes_per_string") = Min::kDefaultStringBytes)
      .def_prop_ro("max_shard_bytes", &Max::max_shard_bytes)
      .def_prop_ro("max_shards", &Max::max_shards)
      .def_prop_ro("bytes_per_string", &Max::bytes_per_string);
}

/// The thread that makes a variable calls Python functions, with the GIL.
Partitioner partitioner_of(nb::handle given) {
  if (given.is_none()) return {};
  const CallbackPtr callback = make_callback(given, "variable_partitioner");
  nb::dict axis_alone;
  axis_alone["axis"] = 0;
  const bool takes_axis =
      can_be_called(given, nb::make_tuple(nb::none(), nb::none()), axis_alone).value_or(true);
  return [callback, takes_axis](const Shape& shape, ElementBytes element,
                                int axis) -> std::vector<std::int64_t> {
    const nb::object dtype = numpy_dtype(*element.dtype());
    const nb::object counts = takes_axis
                                  ? (*callback)(to_python(shape), dtype, nb::arg("axis") = axis)
                                  : (*callback)(to_python(shape), dtype);
    std::vector<std::int64_t> result;
    if (counts.is_none()) return result;
    for (const nb::handle count : counts) result.push_back(integer(count, "a count of parts"));
    return result;
  };
}

/// Throws ValueError unless an initial value has the asked dtype, and the asked shape as far as
/// that is known.
void require_fit(const Shape& its, DType its_type, const Shape& asked, std::optional<DType> dtype) {
  const auto fits = [](std::int64_t one, std::int64_t of_value) {
    return one == Shape::kUnknown || one == of_value;
  };
  if (asked.has_rank() && !std::ranges::equal(asked.dims(), its.dims(), fits))
    throw ValueError("initial_value: shape " + its.to_string() + " does not fit the given shape, " +
                     asked.to_string());
  if (dtype && its_type != *dtype)
    throw ValueError("initial_value must be " + std::string(to_string(*dtype)) + ", got " +
                     std::string(to_string(its_type)));
}

/// Returns a whole initial value. Throws what `require_fit` throws.
Tensor whole_value(nb::handle value, const Shape& asked, std::optional<DType> dtype) {
  Tensor whole =
      dtype ? tensor_of(value, *dtype, "initial_value") : tensor_of(value, "initial_value");
  require_fit(whole.shape(), whole.dtype(), asked, dtype);
  return whole;
}

InitialValue initial_value_of(nb::handle value, nb::handle dims, nb::handle dtype,
                              nb::handle seed) {
  const Shape asked = shape(dims, "shape");
  std::optional<DType> of;
  if (!dtype.is_none()) of = dtype_of(dtype);
  if (const InitialValue* given = nullptr; nb::try_cast(value, given) && given) {
    if (const auto its = given->dtype()) require_fit(given->shape(), *its, asked, of);
    return *given;
  }
  if (const PythonInitializer* given = nullptr; nb::try_cast(value, given) && given) {
    require_fit(asked, DType::kFloat32, asked, of);
    return InitialValue::of(given->value, asked, seed_of(seed));
  }
  if (!PyCallable_Check(value.ptr())) return whole_value(value, asked, of);
  const CallbackPtr callback = make_callback(value, "initial_value");
  const auto fits = [&](const nb::tuple& arguments) {
    return can_be_called(value, arguments, nb::dict());
  };
  const bool only_whole =
      fits(nb::tuple()).value_or(false) && !fits(nb::make_tuple(0)).value_or(true);
  if (dims.is_none() || only_whole)
    return InitialValue::whole(
        [callback, asked, of] { return whole_value((*callback)(), asked, of); });
  const DType element = of.value_or(DType::kFloat32);
  return InitialValue::parts(asked, element, [callback, element](const VariablePart& part) {
    return tensor_of((*callback)(nb::cast(part)), element, "initial_value");
  });
}

nb::object made_variable(const CreatedVariable& self) {
  return self.is_sharded() ? nb::cast(self.sharded()) : object_of(self.whole());
}

void bind_values(nb::module_& module) {
  nb::class_<VariablePart>(module, "VariablePart",
                           R"(A block of rows of a variable that is to be filled, and where it lies.

>>> creator = embertable.VariableCreator(2, embertable.FixedShardsPartitioner(2))
>>> made = creator.create(lambda part: np.full(part.shape, part.offset[0], np.float32), shape=(4, 1))
>>> made.variable.numpy().ravel().tolist()
[0.0, 0.0, 2.0, 2.0])")
      .def("__repr__", described)
      .def_ro("name", &VariablePart::name)
      .def_prop_ro("full_shape", [](const VariablePart& s) { return to_python(s.full_shape); })
      .def_prop_ro("offset",
                   [](const VariablePart& self) { return nb::tuple(nb::cast(self.offset)); })
      .def_prop_ro("shape", [](const VariablePart& self) { return to_python(self.shape); });
  // NOLINTNEXTLINE(bugprone-unused-raii): the module keeps the class
  nb::class_<InitialValue>(module, "InitialValue", R"(What a variable starts with: see saved_value.

>>> saved = embertable.save_variables(directory + "/run", 1, {"v": embertable.Variable([1.0, 2.0])})
>>> embertable.VariableCreator().create(embertable.saved_value(saved, "v")).variable.numpy().tolist()
[1.0, 2.0])");
  nb::class_<CreatedVariable>(module, "CreatedVariable",
                              R"(A variable as it was made, and the storage nodes that hold it.

>>> embertable.VariableCreator().create(np.zeros(3)).nodes
[0])")
      .def("__repr__", described)
      .def_prop_ro("variable", made_variable, "A Variable, or a ShardedVariable.")
      .def_ro("nodes", &CreatedVariable::nodes, "Of the one piece, or of each component.");
}

void bind_creator(nb::module_& module) {
  nb::class_<VariableCreator>(
      module, "VariableCreator", nb::type_slots(explained_slots),
      R"(Makes variables in one piece or in blocks of rows, on storage nodes by turns.

storage_nodes: >= 1; variable_partitioner: a function of (shape, dtype), with axis=0 if it takes that, which gives the number of
parts of each axis; None: variables stay whole. Raises ValueError, TypeError.

>>> creator = embertable.VariableCreator(2, embertable.FixedShardsPartitioner(2))
>>> len(creator.create(np.zeros((4, 2), np.float32)).variable.variables)
2)")
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
          R"(Makes a variable, whole or in parts as the partitioner says. Gives a CreatedVariable.

initial_value: an array; an Initializer, with a shape; function(), called once for the whole; with a shape
also function(VariablePart), called for each block; or a saved_value. name: parts are "<name>/part_<i>".
shape, dtype: of the variable; an array, a saved_value, or what function() gives, must have them, and an
Initializer gives float32. seed: of an Initializer. colocate_with: a storage
node that has it whole. Raises ValueError, TypeError for what does not fit.

>>> creator = embertable.VariableCreator(2, embertable.FixedShardsPartitioner(2))
>>> creator.create(np.zeros((4, 2), np.float32)).nodes
[0, 1])");
  module.def(
      "create_on_hosts",
      [](nb::handle value, nb::handle hosts, const std::string& name, nb::handle dims,
         nb::handle dtype, nb::handle seed) {
        return create_on_hosts(initial_value_of(value, dims, dtype, seed),
                               integer32(hosts, "hosts"), name);
      },
      nb::arg("initial_value").none(), nb::arg("hosts"), nb::arg("name"), nb::kw_only(),
      nb::arg("shape") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("seed") = 0,
      R"(Gives a ShardedVariable with a component "<name>_<i>" for each host that owns rows.

initial_value, shape, dtype, seed: as for VariableCreator.create; hosts: how many; name: of the whole. Raises
ValueError, TypeError for what does not fit.

>>> made = embertable.create_on_hosts(embertable.Initializer.zeros(), 5, "t", shape=(13, 2))
>>> [component.shape[0] for component in made]
[3, 3, 3, 2, 2])");
}

}  // namespace

void bind_variable_creation(nb::module_& module) {
  bind_partitioners(module);
  bind_values(module);
  bind_creator(module);
}

}  // namespace embertable::python
