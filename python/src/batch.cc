// Converts the inputs of a step: ids, weights and gradients.
#include "embertable/batch.h"

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"

namespace embertable::python {
namespace {

template <class Array>
Array vector_of(nb::handle source, const std::string& what) {
  Array array(source, what);
  const Shape shape = array.shape();
  if (shape.rank() != 1)
    throw ValueError(what + " must be a vector, got shape " + shape.to_string());
  return array;
}

SparseIdsObject sparse_ids(nb::handle indices, nb::handle values, nb::handle dense_shape,
                           const std::string& what) {
  const IntegerArray sizes = vector_of<IntegerArray>(dense_shape, what + ": dense_shape");
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < sizes.span().size(); ++i) dims.push_back(sizes.span()[i]);
  SparseIdsObject made{IntegerArray(indices, what + ": indices"),
                       vector_of<IntegerArray>(values, what + ": values"),
                       Shape(std::span<const std::int64_t>(dims))};
  const Shape shape = made.indices.shape();
  const bool empty = made.indices.span().size() == 0;
  if (!empty && (shape.rank() != 2 || shape[1] != made.dense_shape.rank())) {
    throw ValueError(what + ": indices must have shape [number of values, " +
                     std::to_string(made.dense_shape.rank()) + "], got " + shape.to_string());
  }
  return made;
}

RaggedIdsObject ragged_ids(nb::handle values, nb::handle row_splits, const std::string& what) {
  if (nb::hasattr(values, "row_splits"))
    throw ValueError(what + ": ragged ids must be of rank 2, got more");
  return {vector_of<IntegerArray>(values, what + ": values"),
          vector_of<IntegerArray>(row_splits, what + ": row_splits")};
}

RaggedIdsObject ragged_from_rows(nb::handle rows) {
  nb::list values, splits;
  splits.append(0);
  for (const nb::handle row : rows) {
    for (const nb::handle id : row) values.append(id);
    splits.append(nb::len(values));
  }
  return ragged_ids(values, splits, "RaggedIds");
}

/// Takes the row splits of torch.nn.EmbeddingBag, which lack the end of the last row.
RaggedIdsObject ragged_from_offsets(nb::handle values, nb::handle offsets) {
  const std::string what = "RaggedIds.from_offsets";
  const IntegerArray ids = vector_of<IntegerArray>(values, what + ": values");
  const IntegerArray begins = vector_of<IntegerArray>(offsets, what + ": offsets");
  const nb::object splits = numpy().attr("append")(begins.object(), ids.span().size());
  return ragged_ids(ids.object(), splits, what);
}

/// Takes rows that were filled up to one length with an id that is none.
RaggedIdsObject ragged_from_padded(nb::handle ids, std::int64_t pad) {
  const std::string what = "RaggedIds.from_padded";
  const IntegerArray padded(ids, what + ": ids");
  const Shape shape = padded.shape();
  if (shape.rank() != 2) {
    throw ValueError(what + ": ids must have shape [rows, length], got shape " + shape.to_string());
  }
  const nb::object rows = numpy().attr("asarray")(padded.object());
  const nb::object kept = numpy().attr("not_equal")(rows, pad);
  const nb::object ends = kept.attr("sum")(1).attr("cumsum")();
  return ragged_ids(rows[kept], numpy().attr("append")(nb::int_(0), ends), what);
}

FeatureIds view(const SparseIdsObject& ids) {
  return SparseIds{ids.indices.span(), ids.values.span(), ids.dense_shape};
}
FeatureIds view(const RaggedIdsObject& ids) {
  return RaggedIds{ids.row_splits.span(), ids.values.span()};
}
FeatureIds view(const DenseIdsObject& ids) {
  return DenseIds{ids.values.span(), ids.values.shape()};
}
FeatureWeights view(const SparseWeightsObject& weights) {
  return SparseWeights{weights.values.span()};
}
FeatureWeights view(const RaggedWeightsObject& weights) {
  return RaggedWeights{weights.values.span()};
}
FeatureWeights view_of_dense(const FloatArray& weights) { return DenseWeights{weights.span()}; }

/// Returns a view of an array that the batches keep from now on.
template <class Object>
auto keep(Batches& batches, Object object) {
  auto kept = std::make_shared<const Object>(std::move(object));
  batches.arrays.push_back(kept);
  if constexpr (std::is_same_v<Object, FloatArray>) {
    return view_of_dense(*kept);
  } else {
    return view(*kept);
  }
}

bool is_ragged(nb::handle leaf) { return nb::hasattr(leaf, "row_splits"); }
bool is_sparse(nb::handle leaf) { return nb::hasattr(leaf, "dense_shape"); }

FeatureIds ids_of(nb::handle leaf, const std::string& path, Batches& batches) {
  if (const SparseIdsObject* sparse = nullptr; nb::try_cast(leaf, sparse) && sparse)
    return view(*sparse);
  if (const RaggedIdsObject* ragged = nullptr; nb::try_cast(leaf, ragged) && ragged)
    return view(*ragged);
  if (const DenseIdsObject* dense = nullptr; nb::try_cast(leaf, dense) && dense)
    return view(*dense);
  const std::string what = "feature '" + path + "'";
  if (is_ragged(leaf))
    return keep(batches, ragged_ids(leaf.attr("values"), leaf.attr("row_splits"), what));
  if (is_sparse(leaf)) {
    return keep(batches, sparse_ids(leaf.attr("indices"), leaf.attr("values"),
                                    leaf.attr("dense_shape"), what));
  }
  return keep(batches, DenseIdsObject{IntegerArray(leaf, what + ": ids")});
}

FeatureWeights weights_of(nb::handle leaf, const std::string& path, Batches& batches) {
  if (leaf.is_none()) return {};
  if (const SparseWeightsObject* sparse = nullptr; nb::try_cast(leaf, sparse) && sparse)
    return view(*sparse);
  if (const RaggedWeightsObject* ragged = nullptr; nb::try_cast(leaf, ragged) && ragged)
    return view(*ragged);
  const std::string what = "feature '" + path + "': weights";
  if (is_ragged(leaf))
    return keep(batches, RaggedWeightsObject{vector_of<FloatArray>(leaf.attr("values"), what)});
  if (is_sparse(leaf))
    return keep(batches, SparseWeightsObject{vector_of<FloatArray>(leaf.attr("values"), what)});
  return keep(batches, FloatArray(leaf, what));
}

/// Returns a tree of what `read` returns for each leaf and its path.
template <class T, class Read>
Nested<T> read_tree(nb::handle value, const Structure& expected, Read read) {
  const Tree tree = to_tree(value, Lists::kOfNumbersAreLeaves, expected);
  std::vector<T> leaves;
  for (std::int64_t i = 0; i < tree.size(); ++i) leaves.push_back(read(tree[i], tree.path(i)));
  return Nested<T>(tree.structure(), std::move(leaves));
}

Batch read_batch(nb::handle features, nb::handle weights, const Structure& expected,
                 Batches& kept) {
  Batch batch{read_tree<FeatureIds>(features, expected,
                                    [&](const nb::object& leaf, const std::string& path) {
                                      kept.leaves.push_back(leaf);
                                      return ids_of(leaf, path, kept);
                                    }),
              {}};
  if (!weights.is_none()) {
    batch.weights = read_tree<FeatureWeights>(weights, expected,
                                              [&](const nb::object& leaf, const std::string& path) {
                                                kept.leaves.push_back(leaf);
                                                return weights_of(leaf, path, kept);
                                              });
  }
  return batch;
}

/// Returns what pickle makes such an object of in another process: its type and the arguments.
/// What gives an array without being one of NumPy is pickled as one.
template <class... Arguments>
nb::tuple made_again(nb::handle self, const Arguments&... arguments) {
  return nb::make_tuple(self.type(),
                        nb::make_tuple(numpy().attr("asarray")(nb::object(arguments))...));
}

void bind_ids(nb::module_& module) {
  nb::class_<DenseIdsObject>(module, "DenseIds",
                             "One id per output row: an array of shape S or S + [1]. A plain array "
                             "in a batch is the same.")
      .def(
          "__init__",
          [](DenseIdsObject* self, nb::handle values) {
            new (self) DenseIdsObject{IntegerArray(values, "DenseIds: values")};
          },
          nb::arg("values").none())
      .def_prop_ro("values", [](const DenseIdsObject& self) { return self.values.object(); })
      .def("__reduce__", [](nb::handle self) { return made_again(self, self.attr("values")); });
  nb::class_<SparseIdsObject>(
      module, "SparseIds",
      "Ids at coordinates of a dense shape, in any order: indices [nnz, rank], values [nnz]. The\n"
      "last axis is the one that is combined. Arrays of int32 and int64 in C order are borrowed.")
      .def(
          "__init__",
          [](SparseIdsObject* self, nb::handle indices, nb::handle values, nb::handle dense_shape) {
            new (self) SparseIdsObject(sparse_ids(indices, values, dense_shape, "SparseIds"));
          },
          nb::arg("indices").none(), nb::arg("values").none(), nb::arg("dense_shape").none())
      .def_prop_ro("indices", [](const SparseIdsObject& self) { return self.indices.object(); })
      .def_prop_ro("values", [](const SparseIdsObject& self) { return self.values.object(); })
      .def_prop_ro("dense_shape",
                   [](const SparseIdsObject& self) { return to_python(self.dense_shape); })
      .def("__reduce__", [](nb::handle self) {
        return made_again(self, self.attr("indices"), self.attr("values"),
                          self.attr("dense_shape"));
      });
  nb::class_<RaggedIdsObject>(
      module, "RaggedIds",
      "Rows of ids of varying length: row r is values[row_splits[r]:row_splits[r + 1]]. Arrays of\n"
      "int32 and int64 in C order are borrowed.")
      .def(
          "__init__",
          [](RaggedIdsObject* self, nb::handle values, nb::handle row_splits) {
            new (self) RaggedIdsObject(ragged_ids(values, row_splits, "RaggedIds"));
          },
          nb::arg("values").none(), nb::arg("row_splits").none())
      .def_static(
          "from_row_splits",
          [](nb::handle values, nb::handle row_splits) {
            return ragged_ids(values, row_splits, "RaggedIds.from_row_splits");
          },
          nb::arg("values").none(), nb::arg("row_splits").none(),
          "The same as RaggedIds(values, row_splits).")
      .def_static("from_rows", ragged_from_rows, nb::arg("rows"),
                  "Of a sequence of sequences of ids, copied.")
      .def_static("from_offsets", ragged_from_offsets, nb::arg("values").none(),
                  nb::arg("offsets").none(),
                  "Of ids and the index at which each row begins, as torch.nn.EmbeddingBag takes\n"
                  "them: row r ends where row r + 1 begins, the last one with the values.")
      .def_static(
          "from_padded", ragged_from_padded, nb::arg("ids").none(), nb::arg("pad") = -1,
          "Of an array [rows, length] in which the id `pad` fills up short rows. It is left\n"
          "out wherever it is.")
      .def_prop_ro("values", [](const RaggedIdsObject& self) { return self.values.object(); })
      .def_prop_ro("row_splits",
                   [](const RaggedIdsObject& self) { return self.row_splits.object(); })
      .def("__reduce__", [](nb::handle self) {
        return made_again(self, self.attr("values"), self.attr("row_splits"));
      });
}

template <class Object>
void bind_weights(nb::module_& module, const char* name, const char* doc) {
  nb::class_<Object>(module, name, doc)
      .def(
          "__init__",
          [name](Object* self, nb::handle values) {
            new (self) Object{vector_of<FloatArray>(values, std::string(name) + ": values")};
          },
          nb::arg("values").none())
      .def_prop_ro("values", [](const Object& self) { return self.values.object(); })
      .def("__reduce__", [](nb::handle self) { return made_again(self, self.attr("values")); });
}

}  // namespace

Batches read_batches(nb::handle features, nb::handle weights, const Structure& expected) {
  const auto by_features = by_replica(features);
  auto by_weights = by_replica(weights);
  if (weights.is_none()) by_weights.assign(by_features.size(), nb::none());
  if (by_weights.size() != by_features.size() ||
      (!weights.is_none() && is_per_replica(weights) != is_per_replica(features))) {
    throw ValueError("weights must be a PerReplica of " + std::to_string(by_features.size()) +
                     " trees if the features are one, got " +
                     (is_per_replica(weights) ? std::to_string(by_weights.size()) : "one tree"));
  }
  Batches read;
  for (std::size_t r = 0; r < by_features.size(); ++r)
    read.batches.push_back(read_batch(by_features[r], by_weights[r], expected, read));
  return read;
}

const Batch& Batches::only() const {
  if (batches.size() != 1)
    throw ValueError("one batch is taken here, got a PerReplica of " +
                     std::to_string(batches.size()));
  return batches.front();
}

Gradients read_gradients(nb::handle gradients, const Structure& expected) {
  Gradients read;
  for (const nb::object& tree : by_replica(gradients)) {
    read.trees.push_back(read_tree<Gradient>(
        tree, expected, [&](const nb::object& leaf, const std::string& path) -> Gradient {
          if (leaf.is_none()) return Gradient::none();
          read.arrays.emplace_back(leaf, "feature '" + path + "': the gradient");
          return {read.arrays.back().span(), read.arrays.back().shape()};
        }));
  }
  return read;
}

void bind_batch(nb::module_& module) {
  bind_ids(module);
  bind_weights<SparseWeightsObject>(module, "SparseWeights",
                                    "Weights [nnz] of sparse ids, in the order of their values.");
  bind_weights<RaggedWeightsObject>(module, "RaggedWeights",
                                    "Weights [nnz] of ragged ids, in the order of their values.");
}

}  // namespace embertable::python
