// Binds the writer of TensorFlow's checkpoints.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <optional>

#include "embertable/errors.h"
#include "embertable/tensorflow/sharded_bundle.h"
#include "python/src/argument_arrays.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/formats/tensor_bundle.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"
#include "python/src/variables/variables.h"

namespace embertable::python {
namespace {

using Path = std::filesystem::path;

std::vector<std::int64_t> dims_of(const nb::object& array) {
  return nb::cast<std::vector<std::int64_t>>(array.attr("shape"));
}

/// Numbers of the caller in the types of a bundle, kept by `array`.
struct Numbers {
  Numbers(const nb::object& given, const std::string& key) {
    const auto name = nb::cast<std::string>(given.attr("dtype").attr("name"));
    const auto known = bundle_dtype_of(name);
    if (!known) throw TypeError("tensor '" + key + "': arrays of " + name + " are not written");
    dtype = *known;
    const nb::object theirs = given.attr("dtype");
    const bool is_native = nb::cast<bool>(theirs.attr("isnative"));
    const nb::object native = is_native ? theirs : nb::object(theirs.attr("newbyteorder")("="));
    array = numpy().attr("ascontiguousarray")(given, native).attr("reshape")(given.attr("shape"));
    const auto address = nb::cast<std::uintptr_t>(array.attr("__array_interface__")["data"][0]);
    bytes = {reinterpret_cast<const std::byte*>(address),
             nb::cast<std::size_t>(array.attr("nbytes"))};
  }

  BundleDType dtype = BundleDType::kFloat32;
  nb::object array;
  std::span<const std::byte> bytes;
};

/// Returns the texts of an array, in UTF-8, or bytes. Throws TypeError.
std::vector<std::string> strings_of(const nb::object& array, const std::string& key) {
  std::vector<std::string> strings;
  for (const nb::handle item : nb::list(array.attr("ravel")().attr("tolist")())) {
    if (nb::isinstance<nb::bytes>(item)) {
      const auto bytes = nb::borrow<nb::bytes>(item);
      strings.emplace_back(bytes.c_str(), bytes.size());
    } else if (nb::isinstance<nb::str>(item)) {
      strings.push_back(utf8(item, "tensor '" + key + "': a string"));
    } else {
      throw TypeError("tensor '" + key + "': strings must be str or bytes, got " + type_text(item));
    }
  }
  return strings;
}

bool is_string(nb::handle value) {
  return PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
}

/// Returns an array of a value without dtype: numbers and lists of them become float32, int32 or
/// bool, strings stay objects.
nb::object array_of(nb::handle value, const std::string& key) {
  const std::string what = "tensor '" + key + "'";
  if (nb::hasattr(value, "dtype")) return array_of_argument(value, what, "an array");
  const nb::object objects = numpy().attr("asarray")(value, "object");
  const nb::list items(objects.attr("ravel")().attr("tolist")());
  if (items.size() > 0 && is_string(items[0])) return objects;
  const nb::object array = array_of_argument(value, what, "an array");
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind != "i" && kind != "f") return array;
  return numpy_array(tensor_of(value, what));
}

bool holds_strings(const nb::object& array) {
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  return kind == "O" || kind == "S" || kind == "U";
}

/// A writer that any thread may call, one at a time.
class PythonWriter {
 public:
  PythonWriter(const Path& prefix, std::int64_t alignment)
      : writer_(std::in_place, prefix, TensorBundleOptions{.alignment = alignment}) {}

  template <class Work>
  void with_writer(Work work) {
    const std::lock_guard lock(mutex_);
    if (!writer_) throw StateError("the writer is closed: an error has ended its block");
    work(*writer_);
  }

  void finish() {
    with_writer([&](TensorBundleWriter& writer) {
      writer.finish();
      finished_ = true;
    });
  }

  /// Called at the end of a `with`: finishes, or removes what was written if the block has thrown.
  void leave(bool thrown) {
    const std::lock_guard lock(mutex_);
    if (thrown) return writer_.reset();
    if (finished_ || !writer_) return;
    writer_->finish();
    finished_ = true;
  }

 private:
  std::mutex mutex_;
  std::optional<TensorBundleWriter> writer_;
  bool finished_ = false;
};

void add_value(PythonWriter& self, const std::string& key, nb::handle value) {
  if (const auto variable = variable_of(value)) {
    reading_variables([&] {
      self.with_writer([&](TensorBundleWriter& writer) { add(writer, key, *variable); });
    });
    return;
  }
  const nb::object array = array_of(value, key);
  const std::vector<std::int64_t> shape = dims_of(array);
  if (holds_strings(array)) {
    const std::vector<std::string> strings = strings_of(array, key);
    const WithoutGil nogil;
    self.with_writer([&](TensorBundleWriter& writer) { writer.add_strings(key, shape, strings); });
    return;
  }
  const Numbers numbers(array, key);
  const WithoutGil nogil;
  self.with_writer(
      [&](TensorBundleWriter& writer) { writer.add(key, numbers.dtype, shape, numbers.bytes); });
}

void add_slice(PythonWriter& self, const std::string& key, nb::handle value, nb::handle slices,
               const std::vector<std::int64_t>& shape) {
  const nb::object array = array_of(value, key);
  const Numbers numbers(array, key);
  const SliceSpec spec = slice_spec(slices, shape, "tensor '" + key + "': slices");
  std::vector<std::int64_t> lengths;
  for (const SliceExtent& extent : spec.slice) lengths.push_back(extent.length);
  if (dims_of(array) != lengths) {
    throw ValueError("tensor '" + key + "': slice '" + to_string(spec) +
                     "' cannot have an array of shape " + text(array.attr("shape")));
  }
  const WithoutGil nogil;
  self.with_writer([&](TensorBundleWriter& writer) {
    writer.add_slice(key, numbers.dtype, spec, numbers.bytes);
  });
}

void bind_writer(nb::module_& module) {
  nb::class_<PythonWriter>(
      module, "TensorBundleWriter", nb::type_slots(explained_slots),
      R"(Writes a checkpoint of TensorFlow's. Until it is finished, which the end of a `with` does too, the prefix shows no new
checkpoint; without, what was written goes.

prefix: of its files; alignment: tensors begin at multiples of it. Raises ValueError, OSError.

>>> with embertable.TensorBundleWriter(directory + "/b") as writer:
...     writer.add("t", np.ones(2))
>>> len(embertable.TensorBundleReader(directory + "/b"))
1)")
      .def(nb::init<const Path&, std::int64_t>(), nb::arg("prefix"), nb::arg("alignment") = 1,
           nb::call_guard<WithoutGil>())
      .def("add", add_value, nb::arg("key"), nb::arg("value"), R"(Adds a tensor.

key: its key; value: an array of numbers, str or bytes; or a Variable or ShardedVariable, whose components become
slices. Raises ValueError for a key that is there, RuntimeError for a closed writer, OSError.

>>> with embertable.TensorBundleWriter(directory + "/b") as writer:
...     writer.add("t", np.ones(3))
>>> embertable.TensorBundleReader(directory + "/b")["t"].tolist()
[1.0, 1.0, 1.0])")
      .def("add_slice", add_slice, nb::arg("key"), nb::arg("value"), nb::arg("slices"),
           nb::arg("shape"), R"(Adds a part of a tensor.

key: of the whole; value: an array, the part that whole[slices] is; slices: what stands in the brackets; shape: of the
whole. Raises ValueError for parts that share an element or do not fit, RuntimeError, OSError.

>>> with embertable.TensorBundleWriter(directory + "/b") as writer:
...     writer.add_slice("t", np.zeros(1), np.s_[:1], (2,))
...     writer.add_slice("t", np.ones(1), np.s_[1:], (2,))
>>> embertable.TensorBundleReader(directory + "/b")["t"].tolist()
[0.0, 1.0])")
      .def(
          "finish", &PythonWriter::finish, nb::call_guard<WithoutGil>(),
          R"(Flushes everything to disk and replaces what the prefix had. The end of a `with` does so too. Raises OSError.

>>> writer = embertable.TensorBundleWriter(directory + "/b")
>>> writer.add("t", np.ones(3))
>>> writer.finish())")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PythonWriter& self, nb::handle type, nb::handle, nb::handle) {
            const bool thrown = !type.is_none();
            const WithoutGil nogil;
            self.leave(thrown);
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none());
}

}  // namespace

void bind_tensor_bundle_writer(nb::module_& module) {
  bind_writer(module);
  module.def("part_prefix", part_prefix, nb::arg("prefix"), nb::arg("part"), nb::arg("parts"),
             R"(Gives the prefix where one of several nodes writes what merge_tensor_bundles joins.

prefix: of the whole; part: the node's number; parts: how many there are. Raises ValueError unless 0 <= part < parts.

>>> embertable.part_prefix("ckpt", 0, 2).name
'part-00000-of-00002')");
  module.def(
      "merge_tensor_bundles",
      [](const std::vector<Path>& parts, const Path& prefix, bool allow_missing) {
        merge_tensor_bundles(parts, prefix, {.allow_missing = allow_missing});
      },
      nb::arg("parts"), nb::arg("prefix"), nb::arg("allow_missing") = false,
      nb::call_guard<WithoutGil>(),
      R"(Joins checkpoints into one, whose data files are theirs, renamed.

parts: their prefixes, in order; prefix: of the whole; allow_missing: parts without an index are passed over. Raises
ValueError for parts that do not go together, OSError.

>>> part = embertable.part_prefix(directory + "/c", 0, 1)
>>> with embertable.TensorBundleWriter(part) as writer:
...     writer.add("t", np.ones(2))
>>> embertable.merge_tensor_bundles([part], directory + "/c")
>>> embertable.TensorBundleReader(directory + "/c").keys()
['t'])");
  module.def("write_bundle_state", write_bundle_state, nb::arg("directory"), nb::arg("name"),
             nb::call_guard<WithoutGil>(),
             R"(Writes the file "checkpoint" of a directory, by which TensorFlow finds the latest.

directory: where the checkpoint is; name: its prefix in it. Raises OSError.

>>> embertable.save_tensor_bundle(directory + "/ckpt-1", {"v": embertable.Variable([1.0])})
>>> embertable.write_bundle_state(directory, "ckpt-1")
>>> embertable.latest_bundle(directory).name
'ckpt-1')");
  module.def(
      "save_tensor_bundle",
      [](const Path& prefix, nb::handle variables) {
        const VariablesOfObjects given = variables_of_objects(variables);
        reading_variables([&] { save_tensor_bundle(prefix, given); });
      },
      nb::arg("prefix"), nb::arg("variables"),
      R"(Writes what tf.train.Checkpoint(name=variable, ...).restore(prefix) takes.

prefix: of the files; variables: Variables and ShardedVariables by the names of attributes. A dict within it is an
object: {"model": {"kernel": v}} is what tf.train.Checkpoint(model=...) takes, whose model has a kernel. Raises
TypeError, ValueError for the name "save_counter", OSError.

>>> embertable.save_tensor_bundle(directory + "/b", {"model": {"kernel": embertable.Variable([1.0])}})
>>> embertable.TensorBundleReader(directory + "/b").keys()[1]
'model/kernel/.ATTRIBUTES/VARIABLE_VALUE')");
}

}  // namespace embertable::python
