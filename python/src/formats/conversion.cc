// Exports tables of checkpoints to other formats and imports them, as the command line does.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/convert/export_tables.h"
#include "apps/convert/import_tables.h"
#include "base/interruption.h"
#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/classes/described.h"
#include "python/src/formats/tensor_bundle.h"
#include "python/src/gil.h"
#include "python/src/runs.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Path = std::filesystem::path;
using Arrays = std::vector<jobs::ConvertedArray>;

/// Results of an import.
struct Imported {
  jobs::ImportReport report;
  Arrays arrays;
};

jobs::TableFormat format_of(const std::string& word) {
  if (word == "tf") return jobs::TableFormat::kTensorFlow;
  if (word == "npy") return jobs::TableFormat::kNpy;
  if (word == "word2vec") return jobs::TableFormat::kWord2vec;
  throw ValueError("format must be 'tf', 'npy' or 'word2vec', got '" + word + "'");
}

jobs::TableFormat export_format_of(const std::string& word) {
  if (word == "int8") return jobs::TableFormat::kInt8;
  try {
    return format_of(word);
  } catch (const ValueError&) {
    throw ValueError("format must be 'tf', 'npy', 'word2vec' or 'int8', got '" + word + "'");
  }
}

jobs::RowLabel label_of(const std::string& word) {
  if (word == "key") return jobs::RowLabel::kKey;
  if (word == "name") return jobs::RowLabel::kName;
  if (word == "row") return jobs::RowLabel::kRow;
  throw ValueError("label must be 'key', 'name' or 'row', got '" + word + "'");
}

/// Words that `names_of` and `sources_of` use in messages, and the meaning of None.
struct Naming {
  const char* what;
  const char* one;
  const char* none;
};
constexpr Naming kTables = {"tables", "table", "all"};
constexpr Naming kSlots = {"slots", "slot", "those found"};

/// Refuses an empty list of names, which would be taken for None.
void refuse_empty(const std::vector<std::string>& names, const Naming& naming) {
  if (names.empty())
    throw ValueError(std::string(naming.what) + " must name a " + naming.one + ", or be None for " +
                     naming.none + ", got none");
}

/// Returns the names of a list or tuple; none for None.
std::vector<std::string> names_of(nb::handle value, const Naming& naming) {
  std::vector<std::string> names;
  if (value.is_none()) return names;
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
    throw TypeError(std::string(naming.what) + " must be a list of names, got " + type_text(value));
  for (const nb::handle name : value) {
    if (!PyUnicode_Check(name.ptr()))
      throw TypeError(std::string(naming.what) + "[" + std::to_string(names.size()) +
                      "] must be a name, got " + type_text(name));
    names.push_back(utf8(name, naming.what));
  }
  refuse_empty(names, naming);
  return names;
}

void refuse_equals_sign(const std::string& name, const Naming& naming) {
  if (name.find('=') != std::string::npos)
    throw ValueError(std::string(naming.what) + ": a name must have no '=', got '" + name + "'");
}

/// Returns a str, bytes or path as bytes, as os.fsencode does.
std::string source_of(nb::handle value, const std::string& name, const Naming& naming) {
  if (!PyUnicode_Check(value.ptr()) && !PyBytes_Check(value.ptr()) &&
      !nb::hasattr(value, "__fspath__"))
    throw TypeError(std::string(naming.what) + "['" + name + "'] must be a path, got " +
                    type_text(value));
  const auto path = nb::cast<nb::bytes>(nb::module_::import_("os").attr("fsencode")(value));
  return {path.c_str(), path.size()};
}

/// Returns names, or a mapping of names to their sources, as "NAME" and "NAME=SOURCE".
std::vector<std::string> sources_of(nb::handle value, const Naming& naming) {
  std::vector<std::string> sources;
  if (!nb::isinstance(value, nb::module_::import_("collections.abc").attr("Mapping"))) {
    sources = names_of(value, naming);
    for (const std::string& name : sources) refuse_equals_sign(name, naming);
    return sources;
  }
  for (const nb::handle item : value.attr("items")()) {
    const nb::object key = item[0];
    if (!PyUnicode_Check(key.ptr()))
      throw TypeError(std::string(naming.what) + " must have names as keys, got " + type_text(key));
    const std::string name = utf8(key, std::string(naming.what) + ": a name");
    refuse_equals_sign(name, naming);
    sources.push_back(name + "=" + source_of(item[1], name, naming));
  }
  refuse_empty(sources, naming);
  return sources;
}

template <class Work>
Arrays converted(Work work) {
  Arrays arrays;
  const WithoutGil nogil;
  const Interruption interruption(raise_signals);
  work([&](const jobs::ConvertedArray& array) {
    Interruption::ask();
    arrays.push_back(array);
  });
  return arrays;
}

Arrays export_tables(const Path& path, const Path& out, const std::string& format,
                     nb::handle tables, bool slots, const std::string& object, nb::handle shards,
                     bool binary, const std::string& label) {
  const jobs::ExportOptions options = {.format = export_format_of(format),
                                       .from = path,
                                       .out = out,
                                       .tables = names_of(tables, kTables),
                                       .slots = slots,
                                       .object = object,
                                       .shards = integer32(shards, "shards"),
                                       .binary = binary,
                                       .label = label_of(label)};
  if (out.empty()) throw ValueError("export_tables: out must not be empty");
  warn_of_skipped("export_tables", path);
  return converted([&](const jobs::Converted& done) { jobs::export_tables(options, done); });
}

Imported import_tables(const Path& path, const Path& out, const std::string& format,
                       nb::handle tables, nb::handle slots, nb::handle step,
                       const std::string& combiner, bool binary) {
  const jobs::ImportOptions options = {.format = format_of(format),
                                       .from = path,
                                       .out = out,
                                       .step = integer(step, "step"),
                                       .tables = sources_of(tables, kTables),
                                       .slots = sources_of(slots, kSlots),
                                       .combiner = parse_combiner(combiner),
                                       .binary = binary};
  Imported made;
  made.arrays = converted(
      [&](const jobs::Converted& done) { made.report = jobs::import_tables(options, done); });
  return made;
}

void bind_results(nb::module_& module) {
  nb::class_<jobs::ConvertedArray>(
      module, "ConvertedArray",
      R"(A table or slot that was exported or imported: name, shape, and where it is.

>>> np.save(directory + "/films.npy", np.ones((8, 4), np.float32))
>>> embertable.import_tables(directory + "/films.npy", directory + "/run", "npy").arrays[0].name
'films')")
      .def("__repr__", described)
      .def_ro("name", &jobs::ConvertedArray::name)
      .def_prop_ro("shape", [](const jobs::ConvertedArray& self) { return to_tuple(self.shape); })
      .def_ro("place", &jobs::ConvertedArray::place, "Its file, or the key of its tensor.");
  nb::class_<Imported>(module, "ImportReport", R"(What import_tables has saved.

>>> np.save(directory + "/films.npy", np.ones((8, 4), np.float32))
>>> embertable.import_tables(directory + "/films.npy", directory + "/run", "npy").left_out
[])")
      .def("__repr__", described)
      .def_prop_ro(
          "step", [](const Imported& self) { return self.report.step; },
          "The directory of the step.")
      .def_ro("arrays", &Imported::arrays)
      .def_prop_ro(
          "left_out", [](const Imported& self) { return self.report.left_out; },
          "Keys or files that are in no table.");
}

}  // namespace

void bind_conversion(nb::module_& module) {
  bind_results(module);
  module.def("export_tables", export_tables, nb::arg("path"), nb::arg("out"), nb::arg("format"),
             nb::arg("tables") = nb::none(), nb::kw_only(), nb::arg("slots") = false,
             nb::arg("object") = "embedding", nb::arg("shards") = 0, nb::arg("binary") = false,
             nb::arg("label") = "key",
             R"(Writes tables of a checkpoint for another library. Gives a ConvertedArray for each.

path: a step's directory, or a run's; out: a file or a directory; format: "tf", "npy", "word2vec" or "int8"; tables: names, None: all; slots: theirs too; object: the attribute that has the tables;
shards: parts of each table, 0: those of the checkpoint; binary: of text formats; label: what names the rows. Raises
ValueError, KeyError, OSError, DataLossError.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> embedding.build()
>>> step = embedding.save(directory + "/run")
>>> [array.name for array in embertable.export_tables(step, directory + "/out", "npy")]
['films'])");
  module.def("import_tables", import_tables, nb::arg("path"), nb::arg("out"), nb::arg("format"),
             nb::arg("tables") = nb::none(), nb::arg("slots") = nb::none(), nb::kw_only(),
             nb::arg("step") = 0, nb::arg("combiner") = "mean", nb::arg("binary") = false,
             R"(Makes a checkpoint of tables of another library. Gives an ImportReport.

path: its file or directory; out: the run; format: "tf", "npy" or "word2vec"; tables: names, or files by name; slots: files by
name; step: the number of the step; combiner: of the tables; binary: of text formats. Raises ValueError, OSError,
DataLossError.

>>> np.save(directory + "/films.npy", np.ones((8, 4), np.float32))
>>> report = embertable.import_tables(directory + "/films.npy", directory + "/run", "npy")
>>> report.arrays[0].shape
(8, 4))");
}

}  // namespace embertable::python
