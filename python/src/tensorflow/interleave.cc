// Binds layouts of features in tensors of tables.
#include "embertable/tensorflow/interleave.h"

#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/dict_items.h"
#include "python/src/engine.h"
#include "python/src/text_caster.h"
#include "python/src/trees.h"

namespace embertable::python {
namespace {

using Layout = InterleavedLayout;

void require_dict(nb::handle value, const char* what) {
  if (!PyDict_Check(value.ptr()))
    throw TypeError(std::string(what) + " must be a dict, got " + type_text(value));
}

std::vector<Layout::Table> tables_of(nb::handle given) {
  require_dict(given, "tables");
  std::vector<Layout::Table> tables;
  for (const auto& [name, dim] : items_of(given))
    tables.push_back({utf8(name, "the name of a table"), integer32(dim, "the dim of a table")});
  return tables;
}

std::vector<Layout::Feature> features_of(nb::handle given) {
  require_dict(given, "features");
  std::vector<Layout::Feature> features;
  for (const auto& [name, place] : items_of(given)) {
    Layout::Feature feature{.name = utf8(name, "the name of a feature"), .table = {}};
    if (PyTuple_Check(place.ptr()) && nb::len(place) == 2) {
      feature.table = utf8(place[0], "the table of a feature");
      feature.max_sequence_length = integer(place[1], "the max_sequence_length of a feature");
    } else {
      feature.table = utf8(place, "the table of a feature");
    }
    features.push_back(std::move(feature));
  }
  return features;
}

void construct_layout(Layout* self, nb::handle tables, nb::handle features, nb::handle batch_size) {
  new (self) Layout(tables_of(tables), features_of(features), integer(batch_size, "batch_size"));
}

Layout sorted_by_name(nb::handle tables, nb::handle features, nb::handle batch_size) {
  return Layout::sorted_by_name(tables_of(tables), features_of(features),
                                integer(batch_size, "batch_size"));
}

template <class Placed>
std::int64_t position_in(const std::vector<Placed>& all, const std::string& name,
                         const char* what) {
  for (std::int64_t i = 0; i < std::ssize(all); ++i)
    if (all[i].name == name) return i;
  throw KeyError(std::string("there is no ") + what + " '" + name + "' in the layout");
}

/// Returns the names of the features of each table, by table.
nb::dict layout_tables(const Layout& self) {
  nb::dict tables;
  for (const Layout::PlacedTable& table : self.tables()) {
    nb::list names;
    for (const std::int64_t feature : table.features)
      names.append(decoded(self.features()[feature].name));
    tables[decoded(table.name)] = names;
  }
  return tables;
}

nb::list layout_features(const Layout& self) {
  nb::list names;
  for (const Layout::PlacedFeature& feature : self.features()) names.append(decoded(feature.name));
  return names;
}

/// Returns the arrays of the tables, and spans of them.
std::pair<nb::dict, std::vector<std::span<float>>> new_tables(const Layout& layout) {
  nb::dict arrays;
  std::vector<std::span<float>> spans;
  for (std::int64_t t = 0; t < std::ssize(layout.tables()); ++t) {
    const nb::object array = new_floats(layout.table_shape(t));
    spans.push_back(WritableArray(array, "a table").span());
    arrays[decoded(layout.tables()[t].name)] = array;
  }
  return {std::move(arrays), std::move(spans)};
}

/// Puts leaves of a tree in the layout's order by their paths.
std::vector<nb::object> by_layout(const Layout& layout, nb::handle features) {
  const Tree tree = to_tree(features, Lists::kOfNumbersAreLeaves);
  std::vector<nb::object> ordered(layout.features().size());
  for (std::int64_t i = 0; i < tree.size(); ++i) {
    const std::int64_t at = position_in(layout.features(), tree.path(i), "feature");
    nb::object& place = ordered[static_cast<std::size_t>(at)];
    if (place.is_valid())
      throw ValueError("interleave: feature '" + tree.path(i) + "' must have one array, got two");
    place = tree[i];
  }
  for (std::int64_t f = 0; f < std::ssize(layout.features()); ++f) {
    if (!ordered[f].is_valid())
      throw ValueError("interleave: feature '" + layout.features()[f].name +
                       "' must have an array, or None");
  }
  return ordered;
}

nb::dict interleaved(const Layout& layout, nb::handle features) {
  std::vector<FloatArray> kept;
  std::vector<Gradient> read;
  const auto ordered = by_layout(layout, features);
  for (std::int64_t f = 0; f < std::ssize(layout.features()); ++f) {
    if (ordered[f].is_none()) {
      read.push_back(Gradient::none());
      continue;
    }
    kept.emplace_back(ordered[f], "feature '" + layout.features()[f].name + "'");
    read.push_back({kept.back().span(), kept.back().shape()});
  }
  auto [arrays, spans] = new_tables(layout);
  interleave(layout, read, spans);
  return arrays;
}

nb::dict deinterleaved(const Layout& layout, nb::handle tables) {
  require_dict(tables, "tables");
  std::vector<FloatRows> kept;
  std::vector<std::vector<float>> copies;
  std::vector<std::span<const float>> read(layout.tables().size());
  std::vector<bool> given(layout.tables().size());
  for (const auto& [name, array] : items_of(tables)) {
    const std::string of = utf8(name, "the name of a table");
    const std::int64_t t = position_in(layout.tables(), of, "table");
    kept.emplace_back(array, "table '" + of + "'");
    const TableView view = kept.back().view();
    const Shape shape{view.rows, view.dim};
    if (shape != layout.table_shape(t))
      throw ValueError("deinterleave: table '" + of + "' must have shape " +
                       layout.table_shape(t).to_string() + ", got " + shape.to_string());
    std::vector<float> packed;
    for (std::int64_t r = 0; r < view.rows; ++r)
      packed.insert(packed.end(), view.data + r * view.row_stride,
                    view.data + r * view.row_stride + view.dim);
    copies.push_back(std::move(packed));
    read[t] = copies.back();
    given[t] = true;
  }
  for (std::int64_t t = 0; t < std::ssize(layout.tables()); ++t)
    if (!given[t])
      throw ValueError("deinterleave: table '" + layout.tables()[t].name + "' must have an array");
  nb::dict arrays;
  std::vector<std::span<float>> spans;
  for (std::int64_t f = 0; f < std::ssize(layout.features()); ++f) {
    const nb::object array = new_floats(layout.feature_shape(f));
    spans.push_back(WritableArray(array, "a feature").span());
    arrays[decoded(layout.features()[f].name)] = array;
  }
  deinterleave(layout, read, spans);
  return arrays;
}

}  // namespace

void bind_interleave(nb::module_& module) {
  nb::class_<Layout>(
      module, "InterleavedLayout", nb::type_slots(explained_slots),
      R"(The layout of the features of a table in one array of the table, [batch_size * num_features, dim]:
sample by sample, and in each sample slot by slot. A feature takes one slot, a sequence one for each
position. TensorFlow's older APIs keep activations and gradients so.

>>> layout = embertable.InterleavedLayout({'t': 1}, {'a': 't', 'b': ('t', 2)}, 2)
>>> a, b = [[1.], [2.]], [[[3.], [4.]], [[5.], [6.]]]
>>> embertable.interleave(layout, {'a': np.array(a), 'b': np.array(b)})['t'][:, 0].tolist()
[1.0, 3.0, 4.0, 2.0, 5.0, 6.0])")
      .def(
          "__init__", construct_layout, nb::arg("tables"), nb::arg("features"),
          nb::arg("batch_size"),
          R"(tables: a dict by name of the dim of each. features: a dict by name of the table, or of (table,
max_sequence_length); those of a table have their slots in the given order. batch_size: samples. Raises ValueError naming table or feature.)")
      .def_static("sorted_by_name", sorted_by_name, nb::arg("tables"), nb::arg("features"),
                  nb::arg("batch_size"),
                  R"(Gives a layout with tables and features in the order of their names, as in v1.

tables, features, batch_size: as of the class.

>>> embertable.InterleavedLayout.sorted_by_name({'t': 1}, {'b': 't', 'a': 't'}, 2).features
['a', 'b'])")
      .def_prop_ro("batch_size", &Layout::batch_size)
      .def_prop_ro("tables", layout_tables,
                   "By table the names of its features, in the order of their slots.")
      .def_prop_ro("features", layout_features, "Names, in their order.")
      .def(
          "table_shape",
          [](const Layout& self, const std::string& table) {
            return to_python(self.table_shape(position_in(self.tables(), table, "table")));
          },
          nb::arg("table"),
          R"(Gives the shape of the array of a table, by its name: (batch_size * num_features, dim). Raises KeyError.

>>> layout = embertable.InterleavedLayout({'t': 1}, {'a': 't', 'b': ('t', 2)}, 2)
>>> layout.table_shape('t')
(6, 1))")
      .def(
          "feature_shape",
          [](const Layout& self, const std::string& feature) {
            return to_python(self.feature_shape(position_in(self.features(), feature, "feature")));
          },
          nb::arg("feature"),
          R"(Gives the shape of the array of a feature, by its name: (batch_size, dim), or
(batch_size, max_sequence_length, dim). Raises KeyError.

>>> layout = embertable.InterleavedLayout({'t': 1}, {'a': 't', 'b': ('t', 2)}, 2)
>>> layout.feature_shape('b')
(2, 2, 1))")
      .def("__repr__", [](const Layout& self) {
        return "InterleavedLayout(" + text(nb::repr(layout_tables(self))) +
               ", batch_size=" + std::to_string(self.batch_size()) + ")";
      });
  module.def(
      "interleaved_layout",
      [](Engine& engine) {
        return engine.run([](const Embedding& e) { return interleaved_layout(e); });
      },
      nb::arg("engine"),
      R"(Gives the layout of one replica's activations of a built Embedding: features by their paths, in flatten
order.

engine: the Embedding. Raises RuntimeError unless it is accelerated and built, ValueError naming a feature whose output shape
is neither [B] nor [B, L] with the B of all others.

>>> table = embertable.TableConfig(3, 1, name='t')
>>> engine = embertable.Embedding({'f': embertable.FeatureConfig(table)}, embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> engine.build(per_replica_batch_size=2)
>>> embertable.interleaved_layout(engine)
InterleavedLayout({'t': ['f']}, batch_size=2))");
  module.def("interleave", interleaved, nb::arg("layout"), nb::arg("features").none(),
             R"(Gives a dict by table of arrays, of those by feature: of gradients or activations.

layout: an InterleavedLayout. features: a tree whose paths are the layout's names, such
as a dict, of arrays of the layout's shapes; None counts as zeros. Raises KeyError for a name that the
layout lacks, ValueError naming a feature that is missing, comes twice or has another shape.

>>> layout = embertable.InterleavedLayout({'t': 1}, {'a': 't', 'b': ('t', 2)}, 2)
>>> embertable.interleave(layout, {'a': np.array([[1.0], [2.0]]), 'b': None})['t'][:, 0].tolist()
[1.0, 0.0, 0.0, 2.0, 0.0, 0.0])");
  module.def(
      "deinterleave", deinterleaved, nb::arg("layout"), nb::arg("tables"),
      R"(Takes arrays of tables apart: gives a dict by feature of arrays. The inverse of interleave.

layout: an InterleavedLayout. tables: a dict by name of arrays. Raises KeyError for a name that the layout lacks, ValueError naming a table that is missing or has another shape.

>>> layout = embertable.InterleavedLayout({'t': 1}, {'a': 't', 'b': ('t', 2)}, 2)
>>> embertable.deinterleave(layout, {'t': np.arange(6.0).reshape(6, 1)})['a'].tolist()
[[0.0], [3.0]])");
}

}  // namespace embertable::python
