// Saved steps: what callers keep in them, and functions on them that need no engine.
#include "python/src/checkpoint.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include <array>
#include <utility>

#include "base/interruption.h"
#include "embertable/errors.h"
#include "python/src/argument_arrays.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/copies.h"
#include "python/src/classes/described.h"
#include "python/src/gil.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

/// A CallerState in Python's types.
struct PythonState {
  nb::object json;  ///< any value that the json module can write
  nb::dict tensors, blobs;

  template <class Visit>
  void references(Visit visit) {
    visit(json);
    visit(tensors);
    visit(blobs);
  }
};

/// Lets Ctrl-C end a call.
struct Interruptible {
  Interruption interruption{raise_signals};
};

/// Names of element types: in files, and in NumPy (the last three with ml_dtypes).
constexpr std::array<std::pair<const char*, const char*>, 15> kTypes = {
    {{"BOOL", "bool"},
     {"U8", "uint8"},
     {"I8", "int8"},
     {"I16", "int16"},
     {"U16", "uint16"},
     {"F16", "float16"},
     {"I32", "int32"},
     {"U32", "uint32"},
     {"F32", "float32"},
     {"I64", "int64"},
     {"U64", "uint64"},
     {"F64", "float64"},
     {"BF16", "bfloat16"},
     {"F8_E4M3", "float8_e4m3fn"},
     {"F8_E5M2", "float8_e5m2"}}};

DenseTensor dense_tensor_of(const std::string& name, nb::handle value) {
  const nb::object array = array_of_argument(value, "tensor '" + name + "'", "an array");
  const std::string type = text(array.attr("dtype").attr("name"));
  for (const auto& [stored, of_numpy] : kTypes) {
    if (type != of_numpy) continue;
    DenseTensor tensor{.dtype = stored};
    for (const nb::handle dim : array.attr("shape")) tensor.shape.push_back(integer(dim, "shape"));
    const nb::object little = array.attr("dtype").attr("newbyteorder")("<");
    const auto bytes = nb::cast<nb::bytes>(array.attr("astype")(little).attr("tobytes")());
    tensor.bytes.assign(bytes.c_str(), bytes.size());
    return tensor;
  }
  throw TypeError("tensor '" + name + "': no file holds arrays of " + type);
}

nb::object numpy_dtype_of(const std::string& name, const std::string& stored) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (stored != kTypes[i].first) continue;
    if (i < kTypes.size() - 3) return numpy().attr("dtype")(kTypes[i].second);
    try {
      return numpy().attr("dtype")(nb::module_::import_("ml_dtypes").attr(kTypes[i].second));
    } catch (const nb::python_error&) {
      throw NotImplemented("tensor '" + name + "': " + stored + " needs the package ml_dtypes");
    }
  }
  throw NotImplemented("tensor '" + name + "': arrays of " + stored + " are not offered");
}

nb::object array_of(const std::string& name, const DenseTensor& tensor) {
  nb::list shape;
  for (const std::int64_t dim : tensor.shape) shape.append(dim);
  const nb::bytes bytes(tensor.bytes.data(), tensor.bytes.size());
  const nb::object dtype = numpy_dtype_of(name, tensor.dtype);
  return numpy().attr("frombuffer")(bytes, dtype).attr("reshape")(nb::tuple(shape)).attr("copy")();
}

void construct_state(PythonState* self, nb::object json, nb::object tensors, nb::object blobs) {
  const auto copied = [](nb::handle given, const char* what) {
    nb::dict copy;
    if (given.is_none()) return copy;
    if (!PyMapping_Check(given.ptr()) || !nb::hasattr(given, "keys"))
      throw TypeError(std::string(what) + " must be a dict by name or None, got " +
                      type_text(given));
    if (PyDict_Update(copy.ptr(), given.ptr()) != 0) throw nb::python_error();
    return copy;
  };
  new (self) PythonState{std::move(json), copied(tensors, "tensors"), copied(blobs, "blobs")};
}

PythonState python_state(const CallerState& state) {
  PythonState made{nb::module_::import_("json").attr("loads")(state.json), {}, {}};
  for (const auto& [name, tensor] : state.tensors)
    made.tensors[decoded(name)] = array_of(name, tensor);
  for (const auto& [name, blob] : state.blobs)
    made.blobs[decoded(name)] = nb::bytes(blob.data(), blob.size());
  return made;
}

/// Throws TypeError or ValueError, as json does, for what it cannot write.
std::string json_text(nb::handle value) {
  try {
    return nb::cast<std::string>(
        nb::module_::import_("json").attr("dumps")(value, nb::arg("allow_nan") = false));
  } catch (const nb::python_error& error) {
    const std::string why = "CallerState: json must be what the json module writes: ";
    if (error.matches(PyExc_TypeError)) throw TypeError(why + text(error.value()));
    if (error.matches(PyExc_ValueError)) throw ValueError(why + text(error.value()));
    throw;
  }
}

}  // namespace

CallerState caller_state(nb::handle value) {
  CallerState state;
  if (value.is_none()) return state;
  const PythonState* given = nullptr;
  if (!nb::try_cast(value, given) || !given)
    throw TypeError("state must be a CallerState, got " + type_text(value));
  state.json = json_text(given->json);
  for (const auto [name, tensor] : given->tensors) {
    const std::string key = utf8(name, "the name of a tensor");
    state.tensors.emplace(key, dense_tensor_of(key, tensor));
  }
  for (const auto [name, blob] : given->blobs) {
    const std::string key = utf8(name, "the name of a blob");
    if (!PyBytes_Check(blob.ptr()))
      throw TypeError("blob '" + key + "' must be bytes, got " + type_text(blob));
    const auto bytes = nb::borrow<nb::bytes>(blob);
    state.blobs.emplace(key, std::string(bytes.c_str(), bytes.size()));
  }
  return state;
}

nb::object to_python(const CallerState& state) { return nb::cast(python_state(state)); }

std::filesystem::path run_or_step(const std::filesystem::path& path, nb::handle step) {
  if (step.is_none()) return path;
  return step_directory(path, integer(step, "step"));
}

std::map<std::string, IdMap> id_maps_of(nb::handle value) {
  std::map<std::string, IdMap> maps;
  if (value.is_none()) return maps;
  if (!PyMapping_Check(value.ptr()) || !nb::hasattr(value, "items"))
    throw TypeError("id_maps must be a dict of IdMaps by name, got " + type_text(value));
  for (const nb::handle item : value.attr("items")()) {
    const std::string name = utf8(item[0], "the name of an id map");
    const IdMap* map = nullptr;
    if (!nb::try_cast(nb::object(item[1]), map) || !map)
      throw TypeError("id_maps['" + name + "'] must be an IdMap, got " +
                      type_text(nb::object(item[1])));
    maps.emplace(name, *map);
  }
  return maps;
}

namespace {

void bind_state(nb::module_& module) {
  nb::class_<PythonState>(module, "CallerState", nb::type_slots(Collected<PythonState>::slots),
                          R"(What a caller adds to a saved step, in the same commit.

json: one value that the json module can write; tensors: arrays by name; blobs: bytes by name. Raises TypeError.

>>> embertable.CallerState({"epoch": 1}, {"w": np.ones(2)})
CallerState(json={'epoch': 1}, tensors=['w'], blobs=[]))")
      .def("__init__", construct_state, nb::arg("json") = nb::none(),
           nb::arg("tensors") = nb::none(), nb::arg("blobs") = nb::none())
      .def("__getstate__",
           [](const PythonState& self) {
             return nb::make_tuple(self.json, self.tensors, self.blobs);
           })
      .def("__setstate__",
           [](PythonState& self, const nb::tuple& state) {
             construct_state(&self, state[0], state[1], state[2]);
           })
      .def_ro("json", &PythonState::json)
      .def_ro("tensors", &PythonState::tensors)
      .def("__repr__", described)
      .def_ro("blobs", &PythonState::blobs)
      .def("__getstate__",
           [](const PythonState& self) {
             return nb::make_tuple(self.json, self.tensors, self.blobs);
           })
      .def("__setstate__", [](PythonState& self, nb::handle fields) {
        construct_state(&self, fields[0], fields[1], fields[2]);
      });
  nb::class_<SavedState> saved(
      module, "SavedState",
      R"(A checkpoint without its tables: the step, and the caller's state. It pickles and copies.

>>> saved = embertable.save_variables(directory + "/run", 7, {"v": embertable.Variable([1.0])})
>>> embertable.read_saved_state(saved).step
7)");
  saved.def("__repr__", described)
      .def_ro("step", &SavedState::step)
      .def_prop_ro("caller", [](const SavedState& self) { return to_python(self.caller); });
  bind_copies<SavedState>(
      saved,
      [](const SavedState& self) { return nb::make_tuple(self.step, to_python(self.caller)); },
      [](const nb::tuple& state) {
        return SavedState{nb::cast<std::int64_t>(state[0]), caller_state(state[1])};
      });
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  const auto guard = nb::call_guard<WithoutGil, Interruptible>();
  bind_state(module);
  module.def(
      "find_checkpoint",
      [](const std::filesystem::path& path, nb::handle step) {
        const std::filesystem::path directory = run_or_step(path, step);
        const WithoutGil nogil;
        const Interruptible interruptible;
        return find_checkpoint(directory);
      },
      nb::arg("path"), nb::kw_only(), nb::arg("step") = nb::none(),
      R"(Gives the directory of a run's latest step that can be opened, or of the step that the path is.

path: a run's or a step's directory; step: the number of a step of the run, None: the latest. Raises
FileNotFoundError if there is none.

>>> saved = embertable.save_variables(directory + "/run", 7, {"v": embertable.Variable([1.0])})
>>> embertable.find_checkpoint(directory + "/run") == saved
True)");
  module.def(
      "read_saved_state", read_saved_state, nb::arg("path"), guard,
      R"(Gives a SavedState: the step and what the caller keeps there, without reading tables.

path: a step's directory, or a run's. Raises OSError, DataLossError.

>>> saved = embertable.save_variables(directory + "/run", 7, {"v": embertable.Variable([1.0])})
>>> embertable.read_saved_state(saved).step
7)");
  module.def("digest_checkpoint", digest_checkpoint, nb::arg("path"), guard,
             R"(Gives the digest that an engine restored from it has: see Embedding.digest.

path: a step's directory, or a run's. Raises OSError, DataLossError.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> embertable.digest_checkpoint(embedding.save(directory + "/run")) == embedding.digest()
True)");
  module.def("verify_checkpoint", verify_checkpoint, nb::arg("path"), guard,
             R"(Reads every file and compares every checksum.

path: a step's directory, or a run's. Raises OSError, and DataLossError naming file and block.

>>> saved = embertable.save_variables(directory + "/run", 7, {"v": embertable.Variable([1.0])})
>>> embertable.verify_checkpoint(saved))");
}

}  // namespace embertable::python
