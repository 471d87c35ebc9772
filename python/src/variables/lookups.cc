// Binds lookups in variables and arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "embertable/variables/embedding_lookup.h"
#include "python/src/arguments.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"
#include "python/src/classes/described.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"

namespace embertable::python {
namespace {

Tensor part_of(nb::handle value) {
  if (const Variable* variable = nullptr; nb::try_cast(value, variable) && variable)
    return reading_variables([&] { return variable->value(); });
  return tensor_of(value, "a part of params");
}

/// Returns a table, or a list of its parts. A list of one sharded variable means that variable.
LookupParams params_of(nb::handle params) {
  if (const ShardedVariable* variable = nullptr; nb::try_cast(params, variable) && variable)
    return reading_variables([&] { return LookupParams(*variable); });
  if (params.is_none()) throw ValueError("lookup: params must be specified, got None");
  if (const Variable* variable = nullptr; nb::try_cast(params, variable) && variable)
    return reading_variables([&] { return LookupParams(*variable); });
  if (!PyList_Check(params.ptr()) && !PyTuple_Check(params.ptr())) return part_of(params);
  const auto items = nb::borrow<nb::sequence>(params);
  if (nb::len(items) == 1)
    if (const ShardedVariable* only = nullptr; nb::try_cast(nb::object(items[0]), only) && only)
      return reading_variables([&] { return LookupParams(*only); });
  std::vector<Tensor> parts;
  std::vector<Variable> variables;  // messages name them
  for (const nb::handle part : items) {
    parts.push_back(part_of(part));
    if (parts.back().dtype() != parts.front().dtype())
      throw TypeError("lookup: the parts of params must have one dtype, got " +
                      std::string(to_string(parts.front().dtype())) + " and, of part " +
                      std::to_string(parts.size() - 1) + ", " +
                      std::string(to_string(parts.back().dtype())));
    const Variable* variable = nullptr;
    if (nb::try_cast(part, variable) && variable) variables.push_back(*variable);
  }
  if (parts.empty() || variables.size() < parts.size()) return parts;
  return reading_variables([&] { return LookupParams(variables); });
}

template <class Options>
void set_common(Options& options, nb::handle max_norm, const std::string& strategy) {
  options.partition_strategy = parse_partition_strategy(strategy);
  if (!max_norm.is_none()) options.max_norm = number(max_norm, "max_norm");
}

Combiner lookup_combiner(nb::handle name) {
  const std::string given = name.is_none() ? "mean" : text(name);
  if (given != "mean" && given != "sum" && given != "sqrtn")
    throw ValueError("lookup: combiner must be one of 'mean', 'sum', 'sqrtn', got '" + given + "'");
  return parse_combiner(given);
}

/// Ids of any number of ragged axes, RaggedIds or TensorFlow's RaggedTensor.
struct RaggedGiven {
  RaggedTensor ids;
  IntegerArray values;

  explicit RaggedGiven(nb::handle ragged) : values(innermost(ragged, ids), "ids: values") {
    const IntegerSpan span = values.span();
    ids.values = Tensor::wrap(span.data(), span.is_int64() ? DType::kInt64 : DType::kInt32,
                              values.shape(), nullptr);
  }

 private:
  /// Appends the splits of each ragged axis, and returns what is in the last one.
  static nb::object innermost(nb::handle ragged, RaggedTensor& ids) {
    nb::object values = nb::borrow(ragged);
    while (nb::hasattr(values, "row_splits")) {
      ids.row_splits.push_back(
          copied(IntegerArray(nb::object(values.attr("row_splits")), "ids: row_splits")));
      values = values.attr("values");
    }
    return values;
  }
};

nb::object embedding_lookup(nb::handle params, nb::handle ids, nb::handle max_norm,
                            const std::string& strategy, nb::handle, nb::handle) {
  EmbeddingLookupOptions options;
  set_common(options, max_norm, strategy);
  const LookupParams table = params_of(params);
  if (nb::hasattr(ids, "row_splits")) {
    const RaggedGiven given(ids);
    return nb::cast(reading_variables([&] { return embedding_lookup(table, given.ids, options); }));
  }
  const IntegerArray given(ids, "ids");
  const IntegerSpan values = given.span();
  const Tensor tensor = Tensor::wrap(
      values.data(), values.is_int64() ? DType::kInt64 : DType::kInt32, given.shape(), nullptr);
  return numpy_array(reading_variables([&] { return embedding_lookup(table, tensor, options); }));
}

nb::object splits_array(const std::vector<std::int64_t>& splits) {
  return numpy_array(Tensor::of(std::span<const std::int64_t>(splits), {std::ssize(splits)}));
}

/// The only leaf of the given tree, and its weights.
struct Given {
  Batches batches;
  const FeatureIds& ids() const { return batches.only().features[0]; }
  FeatureWeights weights() const {
    const Batch& batch = batches.only();
    return batch.weights ? (*batch.weights)[0] : FeatureWeights();
  }
};

nb::object look_up_sparse(nb::handle params, nb::handle ids, nb::handle weights,
                          nb::handle combiner, nb::handle max_norm, const std::string& strategy,
                          nb::handle, nb::handle) {
  SparseLookupOptions options;
  set_common(options, max_norm, strategy);
  options.combiner = lookup_combiner(combiner);
  const LookupParams table = params_of(params);
  const Given given{read_lookup(ids, "sp_ids", weights, "sp_weights")};
  return numpy_array(reading_variables(
      [&] { return embedding_lookup_sparse(table, given.ids(), given.weights(), options); }));
}

nb::object look_up_safely(nb::handle params, nb::handle ids, nb::handle weights,
                          nb::handle combiner, nb::handle default_id, nb::handle max_norm,
                          const std::string& strategy, nb::handle, nb::handle) {
  SafeLookupOptions options;
  set_common(options, max_norm, strategy);
  options.combiner = lookup_combiner(combiner);
  if (!default_id.is_none()) options.default_id = integer(default_id, "default_id");
  if (params.is_none()) throw ValueError("lookup: Missing embedding_weights, got None");
  const LookupParams table = params_of(params);
  const Given given{read_lookup(ids, "sparse_ids", weights, "sparse_weights")};
  return numpy_array(reading_variables(
      [&] { return safe_embedding_lookup_sparse(table, given.ids(), given.weights(), options); }));
}

}  // namespace

void bind_lookups(nb::module_& module) {
  nb::class_<RaggedTensor>(module, "RaggedRows", R"(Rows of varying length of what was looked up.

>>> rows = embertable.embedding_lookup(np.eye(3), embertable.RaggedIds([2, 0], [0, 1, 2]))
>>> rows.row_splits.tolist()
[0, 1, 2])")
      .def("__repr__", described)
      .def_prop_ro("values", [](const RaggedTensor& self) { return numpy_array(self.values); })
      .def_prop_ro(
          "row_splits",
          [](const RaggedTensor& self) { return splits_array(self.row_splits.front()); },
          "Where each row begins, and the end of the last.")
      .def_prop_ro(
          "nested_row_splits",
          [](const RaggedTensor& self) {
            nb::list all;
            for (const auto& splits : self.row_splits) all.append(splits_array(splits));
            return all;
          },
          "The same of each ragged axis, the outermost first.");
  module.def("embedding_lookup", embedding_lookup, nb::arg("params").none(), nb::arg("ids").none(),
             nb::arg("max_norm") = nb::none(), nb::arg("partition_strategy") = "div", nb::kw_only(),
             nb::arg("name") = nb::none(), nb::arg("validate_indices") = nb::none(),
             R"(Gives the row of each id, of shape ids.shape + [dim]; of ragged ids a RaggedRows.

params: a ShardedVariable, a Variable, an array, or a list of parts, which partition_strategy, "div" or "mod", tells how
the rows are in. ids: integers of any shape, RaggedIds, or a tf.RaggedTensor. max_norm: longer rows are scaled to it.
name, validate_indices: have no effect. Raises TypeError for parts of several dtypes, ValueError, IndexError for an id
outside.

>>> table = np.arange(6, dtype=np.float32).reshape(3, 2)
>>> embertable.embedding_lookup(table, [2, 0]).tolist()
[[4.0, 5.0], [0.0, 1.0]])");
  module.def("embedding_lookup_sparse", look_up_sparse, nb::arg("params").none(),
             nb::arg("sp_ids").none(), nb::arg("sp_weights") = nb::none(),
             nb::arg("combiner") = nb::none(), nb::arg("max_norm") = nb::none(),
             nb::arg("partition_strategy") = "div", nb::kw_only(), nb::arg("name") = nb::none(),
             nb::arg("allow_fast_lookup") = nb::none(),
             R"(Gives combined rows, one for each row of the ids, zeros where there are none.

params, max_norm, partition_strategy: as for embedding_lookup. sp_ids: SparseIds or RaggedIds, or TensorFlow's;
sp_weights: their weights, or None; combiner: "mean" (None too), "sum" or "sqrtn". name, allow_fast_lookup: have no effect.
Raises TypeError, ValueError, IndexError.

>>> table = np.arange(6, dtype=np.float32).reshape(3, 2)
>>> embertable.embedding_lookup_sparse(table, embertable.RaggedIds([0, 1], [0, 2, 2]), combiner="sum").tolist()
[[2.0, 4.0], [0.0, 0.0]])");
  module.def(
      "safe_embedding_lookup_sparse", look_up_safely, nb::arg("embedding_weights").none(),
      nb::arg("sparse_ids").none(), nb::arg("sparse_weights") = nb::none(),
      nb::arg("combiner") = "mean", nb::arg("default_id") = nb::none(),
      nb::arg("max_norm") = nb::none(), nb::arg("partition_strategy") = "div", nb::kw_only(),
      nb::arg("name") = nb::none(), nb::arg("allow_fast_lookup") = nb::none(),
      R"(Does the same without ids below 0 and, but for sums, weights not above 0. All axes of the ids but the last stay.

embedding_weights: params of embedding_lookup; sparse_ids, sparse_weights, combiner, max_norm, partition_strategy, name,
allow_fast_lookup: as for embedding_lookup_sparse; default_id: the id of rows without ids, None: zeros. Raises TypeError,
ValueError, IndexError.

>>> table = np.arange(6, dtype=np.float32).reshape(3, 2)
>>> embertable.safe_embedding_lookup_sparse(table, embertable.RaggedIds([-1, 1], [0, 2, 2]), default_id=2).tolist()
[[2.0, 3.0], [4.0, 5.0]])");
}

}  // namespace embertable::python
