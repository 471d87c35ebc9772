// Converts the inputs of a step: ids, weights and gradients.
#include "embertable/batch.h"

#include <atomic>
#include <optional>

#include "embertable/errors.h"
#include "python/src/argument_arrays.h"
#include "python/src/arguments.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"
#include "python/src/classes/described.h"
#include "python/src/classes/explained_calls.h"

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
  if (nb::hasattr(values, "row_splits")) {
    refuse_recorded(values, what + ": values");
    throw ValueError(what + ": ragged ids must be of rank 2, got more");
  }
  return {vector_of<IntegerArray>(values, what + ": values"),
          vector_of<IntegerArray>(row_splits, what + ": row_splits")};
}

RaggedIdsObject ragged_from_rows(nb::handle rows) {
  nb::list values, splits;
  splits.append(0);
  const auto elements_of = [](nb::handle value, const std::string& rule) {
    PyObject* const iterator = PyObject_GetIter(value.ptr());
    if (iterator != nullptr) return nb::steal<nb::iterator>(iterator);
    PyErr_Clear();
    throw TypeError("RaggedIds.from_rows: " + rule + ", got " + type_text(value));
  };
  for (nb::iterator row = elements_of(rows, "rows must be a list of lists of ids");
       row != nb::iterator::sentinel(); ++row) {
    const std::string rule =
        "row " + std::to_string(nb::len(splits) - 1) + " must be a list of ids";
    for (nb::iterator id = elements_of(*row, rule); id != nb::iterator::sentinel(); ++id)
      values.append(*id);
    splits.append(nb::len(values));
  }
  return ragged_ids(values, splits, "RaggedIds");
}

/// Takes the row splits of torch.nn.EmbeddingBag, which lack the end of the last row.
RaggedIdsObject ragged_from_offsets(nb::handle values, nb::handle offsets) {
  const std::string what = "RaggedIds.from_offsets";
  const IntegerArray ids = vector_of<IntegerArray>(values, what + ": values");
  const IntegerArray begins = vector_of<IntegerArray>(offsets, what + ": offsets");
  const IntegerSpan each = begins.span();
  if (each.size() == 0 && ids.span().size() > 0)
    throw ValueError(what + ": offsets must begin with 0, got none for " +
                     std::to_string(ids.span().size()) + " ids");
  for (std::int64_t i = 0; i < each.size(); ++i) {
    if (each[i] >= (i == 0 ? 0 : each[i - 1]) && each[i] <= ids.span().size() &&
        (i > 0 || each[0] == 0))
      continue;
    throw ValueError(what + ": offsets must begin with 0, not fall, and be at most the number of " +
                     "ids, " + std::to_string(ids.span().size()) + "; got " +
                     std::to_string(each[i]) + " at position " + std::to_string(i));
  }
  const nb::object splits = numpy().attr("append")(begins.object(), ids.span().size());
  return ragged_ids(ids.object(), splits, what);
}

/// Takes the length of each row, as TensorFlow's RaggedTensor and torchrec's KeyedJaggedTensor have
/// them.
RaggedIdsObject ragged_from_row_lengths(nb::handle values, nb::handle row_lengths) {
  const std::string what = "RaggedIds.from_row_lengths";
  const IntegerArray ids = vector_of<IntegerArray>(values, what + ": values");
  const IntegerArray lengths = vector_of<IntegerArray>(row_lengths, what + ": row_lengths");
  const IntegerSpan each = lengths.span();
  std::vector<std::int64_t> splits{0};
  for (std::int64_t i = 0; i < each.size(); ++i) {
    if (each[i] < 0 || each[i] > ids.span().size() - splits.back())
      throw ValueError(what + ": row_lengths must be >= 0, and their sum the number of ids, " +
                       std::to_string(ids.span().size()) + "; got " + std::to_string(each[i]) +
                       " at position " + std::to_string(i));
    splits.push_back(splits.back() + each[i]);
  }
  if (splits.back() != ids.span().size())
    throw ValueError(what + ": the sum of row_lengths must be the number of ids, " +
                     std::to_string(ids.span().size()) + ", got " + std::to_string(splits.back()));
  return ragged_ids(ids.object(), numpy().attr("array")(splits, "int64"), what);
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

/// How PyTorch's tensors lie in memory; anything else is kArray.
enum class Layout : std::uint8_t { kArray, kCoordinates, kNested, kOther };

Layout layout_of(nb::handle leaf) {
  const nb::object nested = nb::getattr(leaf, "is_nested", nb::none());
  if (nested.is_none() || !nb::hasattr(leaf, "layout")) return Layout::kArray;
  if (nested.is(nb::bool_(true))) return Layout::kNested;
  // Lives as long as the process. No guard, for which a thread that has the GIL would wait.
  static std::atomic<PyObject*> strided = nullptr;
  if (strided == nullptr)
    strided = nb::object(nb::module_::import_("torch").attr("strided")).release().ptr();
  if (leaf.attr("layout").ptr() == strided) return Layout::kArray;
  return leaf.attr("is_sparse").is(nb::bool_(true)) ? Layout::kCoordinates : Layout::kOther;
}

[[noreturn]] void refuse_layout(nb::handle leaf, const std::string& what) {
  throw TypeError(what + " must be a dense, nested or COO tensor, got one of layout " +
                  text(leaf.attr("layout")));
}

/// Vectors within each other, and where each of them begins and the last one ends.
struct NestedParts {
  nb::object values, splits;
};

NestedParts parts_of_nested(nb::handle leaf, const std::string& what) {
  const nb::object tensor = leaf.attr("detach")();
  const nb::module_ torch = nb::module_::import_("torch");
  const auto rank = nb::cast<std::int64_t>(tensor.attr("dim")());
  if (rank > 2)
    throw ValueError(what + " must be a nested tensor of vectors, got tensors of rank " +
                     std::to_string(rank - 1));
  const bool without_holes =
      nb::hasattr(tensor, "_lengths") && nb::object(tensor.attr("_lengths")).is_none();
  if (without_holes) return {tensor.attr("values")(), tensor.attr("offsets")()};
  const nb::list parts(tensor.attr("unbind")());
  nb::list splits;
  splits.append(0);
  std::size_t end = 0;
  for (const nb::handle part : parts) splits.append(end += nb::len(part));
  return {nb::len(parts) == 0 ? torch.attr("empty")(0, nb::arg("dtype") = tensor.attr("dtype"))
                              : torch.attr("cat")(parts),
          splits};
}

/// True for an array as it is, which is neither sparse nor ragged: the usual leaf.
bool is_array(nb::handle leaf) {
  return !nb::inst_check(leaf) && PyObject_CheckBuffer(leaf.ptr()) != 0;
}

/// True for a tensor whose memory can be asked for. Asking a sparse one takes long, and fails.
bool is_tensor(nb::handle leaf) {
  return !nb::inst_check(leaf) && dlpack::api_of(leaf) && layout_of(leaf) == Layout::kArray;
}

/// Returns the ids of a leaf that is no array of integers of 32 or 64 bits. `what` begins messages.
FeatureIds ids_of_others(nb::handle leaf, const std::string& what, Batches& batches) {
  if (is_array(leaf)) return keep(batches, DenseIdsObject{IntegerArray(leaf, what + ": ids")});
  if (const SparseIdsObject* sparse = nullptr; nb::try_cast(leaf, sparse) && sparse)
    return view(*sparse);
  if (const RaggedIdsObject* ragged = nullptr; nb::try_cast(leaf, ragged) && ragged)
    return view(*ragged);
  if (const DenseIdsObject* dense = nullptr; nb::try_cast(leaf, dense) && dense)
    return view(*dense);
  if (is_ragged(leaf))
    return keep(batches, ragged_ids(leaf.attr("values"), leaf.attr("row_splits"), what));
  if (is_sparse(leaf)) {
    return keep(batches, sparse_ids(leaf.attr("indices"), leaf.attr("values"),
                                    leaf.attr("dense_shape"), what));
  }
  switch (layout_of(leaf)) {
    case Layout::kCoordinates:
      return keep(batches, sparse_ids(leaf.attr("_indices")().attr("t")(), leaf.attr("_values")(),
                                      nb::list(leaf.attr("shape")), what));
    case Layout::kNested: {
      const NestedParts parts = parts_of_nested(leaf, what + ": ids");
      return keep(batches, ragged_ids(parts.values, parts.splits, what));
    }
    case Layout::kOther:
      refuse_layout(leaf, what + ": ids");
    case Layout::kArray:
      break;
  }
  return keep(batches, DenseIdsObject{IntegerArray(leaf, what + ": ids")});
}

/// Returns the ids of a leaf. `what` returns the beginning of messages.
template <class What>
FeatureIds ids_of(nb::handle leaf, Batches& batches, What what) {
  if (is_array(leaf) || is_tensor(leaf))
    if (auto ids = IntegerArray::borrowed(leaf)) {
      batches.ids.push_back(std::move(*ids));
      return DenseIds{batches.ids.back().span(), batches.ids.back().shape()};
    }
  return ids_of_others(leaf, what(), batches);
}

FeatureWeights weights_of(nb::handle leaf, const std::string& what, Batches& batches) {
  if (leaf.is_none()) return {};
  if (is_array(leaf)) return keep(batches, FloatArray(leaf, what));
  if (const SparseWeightsObject* sparse = nullptr; nb::try_cast(leaf, sparse) && sparse)
    return view(*sparse);
  if (const RaggedWeightsObject* ragged = nullptr; nb::try_cast(leaf, ragged) && ragged)
    return view(*ragged);
  if (is_ragged(leaf))
    return keep(batches, RaggedWeightsObject{vector_of<FloatArray>(leaf.attr("values"), what)});
  if (is_sparse(leaf))
    return keep(batches, SparseWeightsObject{vector_of<FloatArray>(leaf.attr("values"), what)});
  switch (layout_of(leaf)) {
    case Layout::kCoordinates:
      return keep(batches,
                  SparseWeightsObject{vector_of<FloatArray>(leaf.attr("_values")(), what)});
    case Layout::kNested:
      return keep(batches, RaggedWeightsObject{
                               vector_of<FloatArray>(parts_of_nested(leaf, what).values, what)});
    case Layout::kOther:
      refuse_layout(leaf, what);
    case Layout::kArray:
      break;
  }
  return keep(batches, FloatArray(leaf, what));
}

Tree tree_of(nb::handle value, const Structure& expected) {
  return to_tree(value, Lists::kOfNumbersAreLeaves, expected);
}

/// Returns a tree of what `read` returns for each leaf and its path.
template <class T, class Read>
Nested<T> read_leaves(const Tree& tree, Read read) {
  std::vector<T> leaves;
  leaves.reserve(tree.leaves().size());
  for (std::int64_t i = 0; i < tree.size(); ++i) leaves.push_back(read(tree[i], tree.path(i)));
  return Nested<T>(tree.structure(), std::move(leaves));
}

Batch read_batch(nb::handle features, nb::handle weights, const Structure& expected,
                 Features wanted, Batches& kept) {
  const Tree feature_tree = tree_of(features, expected);
  if (wanted == Features::kAll)
    assert_same_structure(expected, feature_tree.structure(), "features");
  std::optional<Tree> weight_tree;
  if (!weights.is_none()) {
    weight_tree = tree_of(weights, expected);
    if (wanted == Features::kAll)
      assert_same_structure(expected, weight_tree->structure(), "weights");
  }
  Batch batch{read_leaves<FeatureIds>(feature_tree,
                                      [&](const nb::object& leaf, const std::string& path) {
                                        kept.leaves.push_back(leaf);
                                        return ids_of(leaf, kept,
                                                      [&] { return "feature '" + path + "'"; });
                                      }),
              {}};
  if (weight_tree) {
    batch.weights = read_leaves<FeatureWeights>(
        *weight_tree, [&](const nb::object& leaf, const std::string& path) {
          kept.leaves.push_back(leaf);
          return weights_of(leaf, "feature '" + path + "': weights", kept);
        });
  }
  return batch;
}

/// Returns weights as floating-point numbers, if they are integers.
nb::object as_floats(nb::handle weights) {
  const auto converted = [](nb::handle values) {
    const nb::object array = array_of_argument(values, "weights", "an array of numbers");
    const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    return kind == "i" || kind == "u" ? nb::object(array.attr("astype")("float32"))
                                      : nb::borrow(values);
  };
  if (is_sparse(weights))
    return nb::cast(
        SparseWeightsObject{vector_of<FloatArray>(converted(weights.attr("values")), "weights")});
  if (is_ragged(weights))
    return nb::cast(
        RaggedWeightsObject{vector_of<FloatArray>(converted(weights.attr("values")), "weights")});
  return nb::borrow(weights);
}

/// Returns what pickle makes such an object of in another process: its type and the arguments.
/// What gives an array without being one of NumPy is pickled as one.
template <class... Arguments>
nb::tuple made_again(nb::handle self, const Arguments&... arguments) {
  return nb::make_tuple(self.type(),
                        nb::make_tuple(numpy().attr("asarray")(nb::object(arguments))...));
}

void bind_ids(nb::module_& module) {
  nb::class_<DenseIdsObject>(module, "DenseIds", nb::type_slots(explained_slots),
                             R"(One id per output row. A plain array in a batch is the same.

values: integers [n], or S + [1] for output rows of shape S. Raises TypeError, ValueError.

>>> embertable.DenseIds([1, 2])
DenseIds(shape (2,)))")
      .def(
          "__init__",
          [](DenseIdsObject* self, nb::handle values) {
            new (self) DenseIdsObject{IntegerArray(values, "DenseIds: values")};
          },
          nb::arg("values").none())
      .def_prop_ro("values", [](const DenseIdsObject& self) { return self.values.object(); })
      .def("__repr__", described)
      .def("__reduce__", [](nb::handle self) { return made_again(self, self.attr("values")); });
  nb::class_<SparseIdsObject>(
      module, "SparseIds", nb::type_slots(explained_slots),
      R"(Ids at coordinates of a dense shape, in any order. The last axis is the one that is combined.

indices: integers [nnz, rank]; values: ids [nnz]; dense_shape: [rank]. Arrays of int32 and int64 in C order are borrowed.
Raises TypeError, ValueError.

>>> embertable.SparseIds([[0, 0], [1, 2]], [5, 6], [2, 3])
SparseIds(2 ids, shape (2, 3)))")
      .def(
          "__init__",
          [](SparseIdsObject* self, nb::handle indices, nb::handle values, nb::handle dense_shape) {
            new (self) SparseIdsObject(sparse_ids(indices, values, dense_shape, "SparseIds"));
          },
          nb::arg("indices").none(), nb::arg("values").none(), nb::arg("dense_shape").none())
      .def_prop_ro("indices", [](const SparseIdsObject& self) { return self.indices.object(); })
      .def("__repr__", described)
      .def_prop_ro("values", [](const SparseIdsObject& self) { return self.values.object(); })
      .def_prop_ro("dense_shape",
                   [](const SparseIdsObject& self) { return to_python(self.dense_shape); })
      .def("__reduce__", [](nb::handle self) {
        return made_again(self, self.attr("indices"), self.attr("values"),
                          self.attr("dense_shape"));
      });
  nb::class_<RaggedIdsObject>(
      module, "RaggedIds", nb::type_slots(explained_slots),
      R"(Rows of varying length: row i has values[row_splits[i]:row_splits[i + 1]].

values: ids [nnz]; row_splits: [rows + 1], rising from 0 to nnz. Arrays of int32 and int64 in C order are borrowed. Raises
TypeError, ValueError.

>>> embertable.RaggedIds([1, 2, 3], [0, 2, 2, 3])
RaggedIds(3 ids in 3 rows))")
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
          R"(The same as RaggedIds(values, row_splits), by TensorFlow's name.

>>> embertable.RaggedIds.from_row_splits([1, 2, 3], [0, 2, 2, 3])
RaggedIds(3 ids in 3 rows))")
      .def_static("from_rows", ragged_from_rows, nb::arg("rows"),
                  R"(Makes ragged ids of an iterable of rows, each an iterable of ids.

rows: what holds the rows; copied. Raises TypeError, ValueError for what are no integers.

>>> embertable.RaggedIds.from_rows([[1, 2], [], [3]]).row_splits.tolist()
[0, 2, 2, 3])")
      .def_static("from_offsets", ragged_from_offsets, nb::arg("values").none(),
                  nb::arg("offsets").none(),
                  R"(Makes ragged ids of the arguments of torch.nn.EmbeddingBag.

values: ids [nnz]; offsets: where each row begins, [rows]. Raises TypeError, ValueError for what are no
vectors of integers, and for offsets that do not begin with 0, fall or lie behind the ids.

>>> embertable.RaggedIds.from_offsets([1, 2, 3], [0, 2]).row_splits.tolist()
[0, 2, 3])")
      .def_static(
          "from_row_lengths", ragged_from_row_lengths, nb::arg("values").none(),
          nb::arg("row_lengths").none(),
          R"(Makes ragged ids of the lengths of their rows, as TensorFlow and torchrec have them.

values: ids [nnz]; row_lengths: [rows]. Raises TypeError, ValueError for what are no vectors of integers,
and for lengths below 0 or of another sum than nnz.

>>> embertable.RaggedIds.from_row_lengths([1, 2, 3], [2, 0, 1]).row_splits.tolist()
[0, 2, 2, 3])")
      .def_static("from_padded", ragged_from_padded, nb::arg("ids").none(), nb::arg("pad") = -1,
                  R"(Makes ragged ids of rows that were filled up to one length.

ids: integers [rows, length]; pad: the id that is none. Raises TypeError, ValueError for another shape.

>>> embertable.RaggedIds.from_padded([[1, 2], [3, -1]]).values.tolist()
[1, 2, 3])")
      .def_prop_ro("values", [](const RaggedIdsObject& self) { return self.values.object(); })
      .def("__repr__", described)
      .def_prop_ro("row_splits",
                   [](const RaggedIdsObject& self) { return self.row_splits.object(); })
      .def("__reduce__", [](nb::handle self) {
        return made_again(self, self.attr("values"), self.attr("row_splits"));
      });
}

template <class Object>
void bind_weights(nb::module_& module, const char* name, const char* doc) {
  nb::class_<Object>(module, name, nb::type_slots(explained_slots), doc)
      .def(
          "__init__",
          [name](Object* self, nb::handle values) {
            new (self) Object{vector_of<FloatArray>(values, std::string(name) + ": values")};
          },
          nb::arg("values").none())
      .def_prop_ro("values", [](const Object& self) { return self.values.object(); })
      .def("__repr__", described)
      .def("__reduce__", [](nb::handle self) { return made_again(self, self.attr("values")); });
}

}  // namespace

Batches read_batches(nb::handle features, nb::handle weights, const Structure& expected,
                     Features wanted) {
  auto by_features = by_replica(features), by_weights = by_replica(weights);
  const bool are_whole = is_per_replica(features);  // no part of them is for all replicas
  if (by_features.size() == 1 && !are_whole)
    by_features.resize(by_weights.size(), by_features.front());
  if (by_weights.size() == 1 && !(are_whole && !weights.is_none()))
    by_weights.resize(by_features.size(), by_weights.front());
  if (by_weights.size() != by_features.size()) {
    throw ValueError("weights must be a PerReplica of as many parts as the features, " +
                     std::to_string(by_features.size()) + ", got " +
                     (by_weights.size() > 1 || is_per_replica(weights)
                          ? std::to_string(by_weights.size())
                          : "one tree"));
  }
  Batches read;
  for (std::size_t r = 0; r < by_features.size(); ++r)
    read.batches.push_back(read_batch(by_features[r], by_weights[r], expected, wanted, read));
  return read;
}

Batches read_lookup(nb::handle ids, const std::string& ids_name, nb::handle weights,
                    const std::string& weights_name) {
  Batches read;
  read.leaves = {nb::borrow(ids), weights.is_none() ? nb::none() : as_floats(weights)};
  Batch batch{Nested<FeatureIds>(ids_of(read.leaves[0], read, [&] { return ids_name; })), {}};
  if (!weights.is_none())
    batch.weights = Nested<FeatureWeights>(weights_of(read.leaves[1], weights_name, read));
  read.batches.push_back(std::move(batch));
  return read;
}

const Batch& Batches::only() const {
  if (batches.size() != 1)
    throw ValueError("one batch is taken here, got a PerReplica of " +
                     std::to_string(batches.size()));
  return batches.front();
}

Gradients read_gradients(nb::handle gradients, const Structure& expected) {
  std::vector<Tree> trees;
  for (const nb::object& one : by_replica(gradients)) {
    trees.push_back(tree_of(one, expected));
    assert_same_structure(expected, trees.back().structure(), "gradients");
  }
  Gradients read;
  for (const Tree& tree : trees) {
    read.trees.push_back(read_leaves<Gradient>(
        tree, [&](const nb::object& leaf, const std::string& path) -> Gradient {
          if (leaf.is_none()) return Gradient::none();
          if (auto array = FloatArray::borrowed(leaf)) {
            read.arrays.push_back(std::move(*array));
            return {read.arrays.back().span(), read.arrays.back().shape()};
          }
          try {
            read.arrays.emplace_back(leaf, "feature '" + path + "': the gradient");
          } catch (const TypeError& error) {  // the original's class for what is no gradient
            throw ValueError(error.what());
          }
          return {read.arrays.back().span(), read.arrays.back().shape()};
        }));
  }
  return read;
}

void bind_batch(nb::module_& module) {
  bind_ids(module);
  bind_weights<SparseWeightsObject>(
      module, "SparseWeights",
      "Weights of sparse ids, in the order of their values.\n\nvalues: floats "
      "[nnz]. Raises TypeError, ValueError.\n\n"
      ">>> embertable.SparseWeights([0.5, 2.0])\nSparseWeights(2)");
  bind_weights<RaggedWeightsObject>(
      module, "RaggedWeights",
      "Weights of ragged ids, in the order of their values.\n\nvalues: floats "
      "[nnz]. Raises TypeError, ValueError.\n\n"
      ">>> embertable.RaggedWeights([0.5, 2.0])\nRaggedWeights(2)");
}

}  // namespace embertable::python
