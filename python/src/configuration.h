#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "embertable/config.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "python/src/rates.h"

namespace embertable::python {

namespace nb = nanobind;

/// A caller's tree of FeatureConfigs, in C++ and in Python.
class Configuration {
 public:
  /// `hosts` own a block of rows each: 1 where the tables are whole. Throws TypeError for a leaf
  /// that is not a FeatureConfig, ValueError for an optimizer that is not ours, as the original
  /// does.
  Configuration(nb::handle feature_config, Rates& rates, std::int32_t hosts = 1);

  /// Makes the Python side of features that have none.
  explicit Configuration(const Nested<FeatureConfig>& features);

  const Nested<FeatureConfig>& features() const noexcept { return features_; }
  const Structure& structure() const noexcept { return features_.structure(); }

  /// Returns the caller's containers, in a copy that only this holds, with the caller's leaves.
  const nb::object& tree() const noexcept { return tree_; }

  /// Returns the same containers with other leaves, in flatten order.
  nb::object pack(std::span<const nb::object> leaves) const;

  /// Convert between a table and the caller's TableConfig; null for another caller's.
  nb::object object_of(const TablePtr& table) const;
  TablePtr table_of(nb::handle object) const;

  template <class Visit>
  void references(Visit visit) {
    visit(tree_);
    for (auto& [table, object] : tables_) visit(object);
    for (nb::object& initializer : initializers_) visit(initializer);
  }

 private:
  TablePtr resolved(const nb::object& table, Rates& rates, std::int32_t hosts);

  Nested<FeatureConfig> features_{FeatureConfig{}};
  nb::object tree_;
  std::vector<std::pair<TablePtr, nb::object>> tables_;
  std::vector<nb::object> initializers_;  ///< Initializers whose functions are Python's
};

/// Returns nothing for None. Throws ValueError for what is not an Optimizer.
std::optional<Optimizer> optimizer_of(nb::handle value, Rates& rates);

/// Returns null for None. Throws TypeError for what is not an EngineStrategy.
StrategyPtr strategy_of(nb::handle value);

}  // namespace embertable::python
