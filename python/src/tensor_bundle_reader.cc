// Binds the reader of TensorFlow's checkpoints.
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "embertable/errors.h"
#include "embertable/tensorflow/sharded_bundle.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/tensor_bundle.h"
#include "python/src/tensors.h"
#include "python/src/text_caster.h"
#include "python/src/variables.h"

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

/// Reads what is left of a slice into a new array.
nb::object box_array(const TensorBundleReader& self, const BundleTensor& tensor,
                     const SliceSpec& spec, const nb::object& dtype) {
  std::vector<std::int64_t> lengths;
  for (const SliceExtent& extent : spec.slice) lengths.push_back(extent.length);
  const nb::object array = numpy().attr("empty")(to_tuple(lengths), dtype);
  const auto bytes = nb::cast<std::size_t>(array.attr("nbytes"));
  if (bytes == 0) return array;
  const auto address = nb::cast<std::uintptr_t>(array.attr("__array_interface__")["data"][0]);
  {
    const WithoutGil nogil;
    self.read(tensor.key, spec, {reinterpret_cast<std::byte*>(address), bytes});
  }
  return array;
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
  if (!slices.is_none())
    return box_array(self, tensor, slice_spec(slices, tensor.shape, what), dtype);
  Bytes bytes = [&] {
    const WithoutGil nogil;
    return self.read(key);
  }();
  return array_of(std::move(bytes), tensor.shape, dtype);
}

nb::list slices_of(const BundleTensor& tensor) {
  nb::list slices;
  for (const TensorSlice& slice : tensor.slices) slices.append(to_python(slice));
  return slices;
}

void bind_tensor(nb::module_& module) {
  nb::class_<BundleTensor>(module, "BundleTensor", "What a tensor bundle says of one tensor.")
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
  type.def("keys", &TensorBundleReader::keys, "Names of tensors, rising.")
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
          nb::arg("key"), "Gives a BundleTensor.")
      .def("read", read, nb::arg("key"), nb::arg("slices") = nb::none(),
           "A new array: numbers, or bytes objects for strings. slices: one slice or a tuple of "
           "them, by axes,\nwith steps of 1, as NumPy cuts; only what they take of the tensor is "
           "kept in memory.")
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
      module, "TensorBundleReader",
      "A checkpoint of TensorFlow's, opened for reading: prefix.index and its data files. The "
      "index "
      "is checked at\nonce; data are given only where their checksum is right.");
  type.def(nb::init<const Path&>(), nb::arg("prefix"), nb::call_guard<WithoutGil>())
      .def_prop_ro("prefix", &TensorBundleReader::prefix)
      .def_prop_ro("num_data_files", &TensorBundleReader::num_data_files);
  bind_contents(type);
  type.def("restore", restore_variables_of, nb::arg("variables"),
           "Gives Variables and ShardedVariables, a dict by key, their values, whatever components "
           "and slices there\nare. Every dtype and shape is compared before the first changes.");
  type.def("verify", &TensorBundleReader::verify, nb::call_guard<WithoutGil>(),
           "Reads everything and compares every checksum.");
  module.def("latest_bundle", latest_bundle, nb::arg("directory"), nb::call_guard<WithoutGil>(),
             "The prefix that the file 'checkpoint' of a directory names as the latest, or None.");
  module.def(
      "restore_tensor_bundle",
      [](const Path& prefix, nb::handle variables) {
        const CheckpointVariables given = variables_of(variables);
        changing_variables([&] { restore_tensor_bundle(prefix, given); });
      },
      nb::arg("prefix"), nb::arg("variables"),
      "Gives Variables and ShardedVariables, by the names of attributes, what "
      "tf.train.Checkpoint(name=...) or\nsave_tensor_bundle has saved.");
}

}  // namespace embertable::python
