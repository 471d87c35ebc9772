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
#include "python/src/tensors.h"
#include "python/src/text_caster.h"

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

nb::object embedding_lookup(nb::handle params, nb::handle ids, nb::handle max_norm,
                            const std::string& strategy) {
  EmbeddingLookupOptions options;
  set_common(options, max_norm, strategy);
  const LookupParams table = params_of(params);
  if (const RaggedIdsObject* ragged = nullptr; nb::try_cast(ids, ragged) && ragged) {
    const IntegerSpan splits = ragged->row_splits.span(), values = ragged->values.span();
    RaggedTensor given;
    given.row_splits.emplace_back();
    for (std::int64_t i = 0; i < splits.size(); ++i) given.row_splits.back().push_back(splits[i]);
    given.values = Tensor::wrap(values.data(), values.is_int64() ? DType::kInt64 : DType::kInt32,
                                {values.size()}, nullptr);
    return nb::cast(reading_variables([&] { return embedding_lookup(table, given, options); }));
  }
  const IntegerArray given(ids, "ids");
  const IntegerSpan values = given.span();
  const Tensor tensor = Tensor::wrap(
      values.data(), values.is_int64() ? DType::kInt64 : DType::kInt32, given.shape(), nullptr);
  return numpy_array(reading_variables([&] { return embedding_lookup(table, tensor, options); }));
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
                          nb::handle combiner, nb::handle max_norm, const std::string& strategy) {
  SparseLookupOptions options;
  set_common(options, max_norm, strategy);
  options.combiner = lookup_combiner(combiner);
  const LookupParams table = params_of(params);
  const Given given{read_batches(ids, weights, Structure())};
  return numpy_array(reading_variables(
      [&] { return embedding_lookup_sparse(table, given.ids(), given.weights(), options); }));
}

nb::object look_up_safely(nb::handle params, nb::handle ids, nb::handle weights,
                          nb::handle combiner, nb::handle default_id, nb::handle max_norm,
                          const std::string& strategy) {
  SafeLookupOptions options;
  set_common(options, max_norm, strategy);
  options.combiner = lookup_combiner(combiner);
  if (!default_id.is_none()) options.default_id = integer(default_id, "default_id");
  if (params.is_none()) throw ValueError("lookup: Missing embedding_weights, got None");
  const LookupParams table = params_of(params);
  const Given given{read_batches(ids, weights, Structure())};
  return numpy_array(reading_variables(
      [&] { return safe_embedding_lookup_sparse(table, given.ids(), given.weights(), options); }));
}

}  // namespace

void bind_lookups(nb::module_& module) {
  nb::class_<RaggedTensor>(module, "RaggedRows", "Rows of varying length of what was looked up.")
      .def_prop_ro("values", [](const RaggedTensor& self) { return numpy_array(self.values); })
      .def_prop_ro("row_splits", [](const RaggedTensor& self) {
        const auto& splits = self.row_splits.front();
        return numpy_array(Tensor::of(std::span<const std::int64_t>(splits), {std::ssize(splits)}));
      });
  module.def("embedding_lookup", embedding_lookup, nb::arg("params").none(), nb::arg("ids").none(),
             nb::arg("max_norm") = nb::none(), nb::arg("partition_strategy") = "div",
             "The row of each id, of any rank; of RaggedIds a RaggedRows. params: a "
             "ShardedVariable, a Variable,\nan array, or a list of parts, which "
             "partition_strategy ('div', 'mod') tells how the rows are in.");
  module.def("embedding_lookup_sparse", look_up_sparse, nb::arg("params").none(),
             nb::arg("sp_ids").none(), nb::arg("sp_weights") = nb::none(),
             nb::arg("combiner") = nb::none(), nb::arg("max_norm") = nb::none(),
             nb::arg("partition_strategy") = "div",
             "Combined rows of SparseIds or RaggedIds, zeros where there are none. combiner: "
             "'mean', 'sum' or\n'sqrtn'.");
  module.def("safe_embedding_lookup_sparse", look_up_safely, nb::arg("embedding_weights").none(),
             nb::arg("sparse_ids").none(), nb::arg("sparse_weights") = nb::none(),
             nb::arg("combiner") = "mean", nb::arg("default_id") = nb::none(),
             nb::arg("max_norm") = nb::none(), nb::arg("partition_strategy") = "div",
             "The same without ids below 0 and, but for sums, weights not above 0; default_id: of "
             "rows without\nids. All axes but the last stay.");
}

}  // namespace embertable::python
