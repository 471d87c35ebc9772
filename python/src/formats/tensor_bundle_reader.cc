// Binds the reader of TensorFlow's checkpoints.
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "embertable/errors.h"
#include "embertable/tensorflow/sharded_bundle.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/described.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/formats/tensor_bundle.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"
#include "python/src/variables/variables.h"

namespace embertable::python {
namespace {

using Path = std::filesystem::path;
using Bytes = std::vector<std::byte>;

/// Returns an array over the bytes, which it keeps.
nb::object array_of(Bytes bytes, const std::vector<std::int64_t>& shape, const nb::object& dtype) {
  if (bytes.empty()) return numpy().attr("empty")(to_tuple(shape), dtype);
  auto kept = std::make_unique<Bytes>(std::move(bytes));
  std::byte* data = kept->data();
  const std::size_t sizes[] = {kept->size()};
  const nb::capsule owner(kept.release(),
                          [](void* one) noexcept { delete static_cast<Bytes*>(one); });
  const nb::object flat = nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(data, 1, sizes, owner),
                                   nb::rv_policy::reference);
  return flat.attr("view")(dtype).attr("reshape")(to_tuple(shape));
}

nb::object string_array(const TensorBundleReader& self, const BundleTensor& tensor) {
  const std::vector<std::string> strings = [&] {
    const WithoutGil nogil;
    return self.read_strings(tensor.key);
  }();
  const nb::object array =
      numpy().attr("empty")(static_cast<std::int64_t>(strings.size()), nb::arg("dtype") = "object");
  for (std::size_t i = 0; i < strings.size(); ++i)
    array[i] = nb::bytes(strings[i].data(), strings[i].size());
  return array.attr("reshape")(to_tuple(tensor.shape));
}

nb::object read(const TensorBundleReader& self, nb::handle name, nb::handle slices) {
  const std::string key = foreign_text(name, "a key");
  const BundleTensor tensor = self.describe(key);
  const std::string what = "tensor '" + key + "': slices";
  if (tensor.dtype == BundleDType::kString) {
    if (!slices.is_none()) throw TypeError(what + " must be of numbers, got one of strings");
    return string_array(self, tensor);
  }
  const nb::object dtype =
      numpy_dtype(tensor.dtype, "tensor '" + key + "' of " + self.prefix().string());
  std::optional<SliceSpec> part;
  std::vector<std::int64_t> shape = tensor.shape;
  if (!slices.is_none()) {
    part = slice_spec(slices, tensor.shape, what);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) shape[axis] = part->slice[axis].length;
  }
  Bytes bytes = [&] {
    const WithoutGil nogil;
    return part ? self.read(key, *part) : self.read(key);
  }();
  return array_of(std::move(bytes), shape, dtype);
}

nb::list slices_of(const BundleTensor& tensor) {
  nb::list slices;
  for (const TensorSlice& slice : tensor.slices) slices.append(to_python(slice));
  return slices;
}

void bind_tensor(nb::module_& module) {
  nb::class_<BundleTensor>(module, "BundleTensor", R"(What a tensor bundle says of one tensor.

>>> embertable.save_tensor_bundle(directory + "/b", {"v": embertable.Variable([1.0, 2.0])})
>>> embertable.TensorBundleReader(directory + "/b").describe("v/.ATTRIBUTES/VARIABLE_VALUE").dtype
'float32')")
      .def("__repr__", described)
      .def_ro("key", &BundleTensor::key)
      .def_prop_ro(
          "dtype", [](const BundleTensor& self) { return to_string(self.dtype); },
          "'float32', 'string'; 'dtype 20' for one that is listed but not read.")
      .def_prop_ro(
          "shape", [](const BundleTensor& self) { return to_tuple(self.shape); }, "Of the whole.")
      .def_prop_ro("slices", slices_of,
                   "How it is cut, as tuples of slices in the file's order; none: stored whole.");
}

void bind_contents(nb::class_<TensorBundleReader>& type) {
  type.def("keys", &TensorBundleReader::keys, R"(Gives the keys of the tensors, sorted.

>>> prefix = directory + "/ckpt-1"
>>> embertable.save_tensor_bundle(prefix, {"v": embertable.Variable([1.0, 2.0])})
>>> reader = embertable.TensorBundleReader(prefix)
>>> key = "v/.ATTRIBUTES/VARIABLE_VALUE"
>>> key in reader.keys()
True)")
      .def("__len__", [](const TensorBundleReader& self) { return self.keys().size(); })
      .def("__iter__",
           [](const TensorBundleReader& self) { return nb::iter(nb::cast(self.keys())); })
      .def(
          "__contains__",
          [](const TensorBundleReader& self, nb::handle key) {
            return PyUnicode_Check(key.ptr()) && self.contains(foreign_text(key, "a key"));
          },
          nb::arg("key"))
      .def(
          "describe",
          [](const TensorBundleReader& self, nb::handle key) {
            return self.describe(foreign_text(key, "a key"));
          },
          nb::arg("key"), R"(Gives a BundleTensor: dtype, shape and slices of a tensor.

key: its key. Raises KeyError.

>>> prefix = directory + "/ckpt-1"
>>> embertable.save_tensor_bundle(prefix, {"v": embertable.Variable([1.0, 2.0])})
>>> reader = embertable.TensorBundleReader(prefix)
>>> key = "v/.ATTRIBUTES/VARIABLE_VALUE"
>>> reader.describe(key).shape
(2,))")
      .def("read", read, nb::arg("key"), nb::arg("slices") = nb::none(),
           R"(Gives a tensor, or a part of it, as an array; strings as an array of bytes objects.

key: its key; slices: what stands in brackets after the whole. Raises KeyError, ValueError for a part that is
not there, OSError, DataLossError.

>>> prefix = directory + "/ckpt-1"
>>> embertable.save_tensor_bundle(prefix, {"v": embertable.Variable([1.0, 2.0])})
>>> reader = embertable.TensorBundleReader(prefix)
>>> key = "v/.ATTRIBUTES/VARIABLE_VALUE"
>>> reader.read(key, np.s_[1:]).tolist()
[2.0])")
      .def(
          "__getitem__",
          [](const TensorBundleReader& self, nb::handle key) {
            return read(self, key, nb::none());
          },
          nb::arg("key"));
}

void restore_variables_of(const TensorBundleReader& self, nb::handle variables) {
  const CheckpointVariables given = variables_of(variables);
  changing_variables([&] { restore(self, given); });
}

}  // namespace

void bind_tensor_bundle_reader(nb::module_& module) {
  bind_tensor(module);
  nb::class_<TensorBundleReader> type(
      module, "TensorBundleReader", nb::type_slots(explained_slots),
      R"(Reads a checkpoint of TensorFlow's. A mapping: reader[key] is a tensor.

prefix: of its files. Raises OSError, DataLossError.

>>> embertable.save_tensor_bundle(directory + "/b", {"v": embertable.Variable([1.0, 2.0])})
>>> embertable.TensorBundleReader(directory + "/b")["v/.ATTRIBUTES/VARIABLE_VALUE"].tolist()
[1.0, 2.0])");
  type.def(nb::init<const Path&>(), nb::arg("prefix"), nb::call_guard<WithoutGil>())
      .def_prop_ro("prefix", &TensorBundleReader::prefix)
      .def_prop_ro("num_data_files", &TensorBundleReader::num_data_files);
  bind_contents(type);
  type.def(
      "restore", restore_variables_of, nb::arg("variables"),
      R"(Gives variables their values, whatever components they had. Everything is read before the first changes.

variables: Variables and ShardedVariables by key. Raises KeyError, ValueError for other dtypes and shapes,
RuntimeError for a read-only variable, OSError, DataLossError.

>>> prefix = directory + "/ckpt-1"
>>> embertable.save_tensor_bundle(prefix, {"v": embertable.Variable([1.0, 2.0])})
>>> reader = embertable.TensorBundleReader(prefix)
>>> key = "v/.ATTRIBUTES/VARIABLE_VALUE"
>>> variable = embertable.Variable([0.0, 0.0])
>>> reader.restore({key: variable})
>>> variable.numpy().tolist()
[1.0, 2.0])");
  type.def(
      "verify", &TensorBundleReader::verify, nb::call_guard<WithoutGil>(),
      R"(Reads everything and compares every checksum. Raises OSError, and DataLossError naming file and tensor.

>>> prefix = directory + "/ckpt-1"
>>> embertable.save_tensor_bundle(prefix, {"v": embertable.Variable([1.0, 2.0])})
>>> reader = embertable.TensorBundleReader(prefix)
>>> key = "v/.ATTRIBUTES/VARIABLE_VALUE"
>>> reader.verify())");
  module.def(
      "latest_bundle", latest_bundle, nb::arg("directory"), nb::call_guard<WithoutGil>(),
      R"(Gives the prefix that the file "checkpoint" of a directory names as the latest, or None.

directory: where TensorFlow has saved. Raises OSError, DataLossError.

>>> embertable.latest_bundle(directory) is None
True)");
  module.def(
      "restore_tensor_bundle",
      [](const Path& prefix, nb::handle variables) {
        const VariablesOfObjects given = variables_of_objects(variables);
        changing_variables([&] { restore_tensor_bundle(prefix, given); });
      },
      nb::arg("prefix"), nb::arg("variables"),
      R"(Gives variables what tf.train.Checkpoint(name=...) or save_tensor_bundle has saved.

prefix: of the files; variables: Variables and ShardedVariables by the names of attributes; a dict within the
dict is an object with attributes. Raises KeyError, ValueError, RuntimeError, OSError, DataLossError; nothing
has changed then.

>>> prefix = directory + "/ckpt-1"
>>> embertable.save_tensor_bundle(prefix, {"v": embertable.Variable([1.0, 2.0])})
>>> reader = embertable.TensorBundleReader(prefix)
>>> key = "v/.ATTRIBUTES/VARIABLE_VALUE"
>>> variable = embertable.Variable([0.0, 0.0])
>>> embertable.restore_tensor_bundle(prefix, {"v": variable})
>>> variable.numpy().tolist()
[1.0, 2.0])");
}

}  // namespace embertable::python
