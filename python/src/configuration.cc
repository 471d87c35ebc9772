#include "python/src/configuration.h"

#include <nanobind/stl/shared_ptr.h>

#include <string>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/python_config.h"
#include "python/src/python_initializer.h"
#include "python/src/python_strategy.h"
#include "python/src/trees.h"

namespace embertable::python {
namespace {

template <class T>
const T& config(nb::handle value, const std::string& what, const char* type) {
  const T* found = nullptr;
  if (!nb::try_cast(value, found) || !found)
    throw TypeError(what + " must be " + type + ", got " + type_text(value));
  return *found;
}

/// Returns the Initializer of a table whose rows these hosts share: the one that is given, unless
/// its function tells hosts apart by a method `_for_hosts`.
nb::object initializer_for(std::int32_t hosts, const nb::object& initializer) {
  const PythonInitializer* given = nullptr;
  if (hosts == 1 || !nb::try_cast(initializer, given) || !given || !given->function)
    return initializer;
  const nb::object& function = given->function->function();
  if (!nb::hasattr(function, "_for_hosts")) return initializer;
  return nb::type<PythonInitializer>().attr("function")(function.attr("_for_hosts")(hosts));
}

std::string called(const TableConfig& table) {
  if (table.name) return "table '" + *table.name + "'";
  return "a table of " + std::to_string(table.vocabulary_size) + " x " + std::to_string(table.dim);
}

}  // namespace

std::optional<Optimizer> optimizer_of(nb::handle value, Rates& rates) {
  if (value.is_none()) return std::nullopt;
  const PythonOptimizer* found = nullptr;
  if (!nb::try_cast(value, found) || !found)
    throw ValueError("optimizer must be an Optimizer, got " + type_text(value));
  return rates.shared(*found);
}

StrategyPtr strategy_of(nb::handle value) {
  if (value.is_none()) return nullptr;
  const PythonStrategy* strategy = nullptr;
  if (!nb::try_cast(value, strategy) || !strategy)
    throw TypeError("strategy must be an EngineStrategy, got " + type_text(value));
  return strategy->value;
}

Configuration::Configuration(nb::handle feature_config, Rates& rates, std::int32_t hosts) {
  const Tree tree = to_tree(feature_config, Lists::kBranches);
  std::vector<FeatureConfig> leaves;
  for (std::int64_t i = 0; i < tree.size(); ++i) {
    const std::string what = "feature_config '" + tree.path(i) + "'";
    const auto& feature = config<PythonFeature>(tree[i], what, "a FeatureConfig");
    leaves.push_back(feature.value);
    leaves.back().table = resolved(feature.table, rates, hosts);
  }
  features_ = Nested<FeatureConfig>(tree.structure(), std::move(leaves));
  tree_ = python::pack(feature_config, tree.structure(), tree.leaves());
}

Configuration::Configuration(const Nested<FeatureConfig>& features) : features_(features) {
  nb::dict by_path;
  for (std::int64_t i = 0; i < features.size(); ++i) {
    FeatureConfig feature = features[i];
    nb::object table = object_of(feature.table);
    if (!table.is_valid()) {
      table = nb::cast(PythonTable{*feature.table, nb::none(), nb::none()});
      tables_.emplace_back(feature.table, table);
    }
    feature.table = nullptr;
    by_path[decoded(features.path(i))] = nb::cast(PythonFeature{std::move(feature), table});
  }
  tree_ = by_path;
}

TablePtr Configuration::resolved(const nb::object& table, Rates& rates, std::int32_t hosts) {
  if (TablePtr known = table_of(table)) return known;
  const auto& given = config<PythonTable>(table, "table", "a TableConfig");
  TableConfig value = given.value;
  value.optimizer = optimizer_of(given.optimizer, rates);
  const nb::object own = initializer_for(value.replicated ? 1 : hosts, given.initializer);
  const PythonInitializer* initializer = nullptr;
  if (nb::try_cast(own, initializer) && initializer && initializer->function) {
    value.initializer = initializer_from(initializer->function, called(value));
    initializers_.push_back(own);
  }
  tables_.emplace_back(make_table(std::move(value)), table);
  return tables_.back().first;
}

nb::object Configuration::pack(std::span<const nb::object> leaves) const {
  return python::pack(tree_, structure(), leaves);
}

nb::object Configuration::object_of(const TablePtr& table) const {
  for (const auto& [known, object] : tables_)
    if (known == table) return object;
  return {};
}

TablePtr Configuration::table_of(nb::handle object) const {
  for (const auto& [table, known] : tables_)
    if (known.is(object)) return table;
  return nullptr;
}

}  // namespace embertable::python
