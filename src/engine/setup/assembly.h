#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/table_list.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/shape.h"
#include "optimizer/rule.h"

namespace embertable::engine {

/// A table as the engine uses it: optimizer and rate tag resolved too.
struct ResolvedTable : ListedTable {
  std::optional<Optimizer> optimizer;          ///< the effective one; none only in plain engines
  const Rule* rule = nullptr;                  ///< rule of the optimizer, or null
  StepScalars scalars;                         ///< scalars that all steps begin with
  std::int32_t rate_tag = -1;                  ///< position of its dynamic rate, or -1
  std::int32_t counter_tag = -1;               ///< position of its dynamic step counter, or -1
  std::vector<Initializer> slot_initializers;  ///< by slot

  /// Returns the scalars that the rule needs for a step. rates: by tag; number: of the step, from
  /// 1.
  StepScalars begin_step(std::span<const float> rates, std::int64_t number) const noexcept;

  std::vector<RuleSlot> slots() const {
    return rule ? rule->slots(*optimizer) : std::vector<RuleSlot>{};
  }
};

/// A function that every application of gradients calls once for all tables that have it.
struct DynamicRate {
  LearningRate rate;
  std::string name;      ///< "table 'video': learning_rate", of the first that has it
  bool is_rate = false;  ///< rate of some table; else it only counts steps

  /// Calls the function for a step. Throws ValueError for a rate that no step can take.
  float ask(std::int64_t number) const;
};

struct Assembly {
  std::vector<ResolvedTable> tables;       ///< by first occurrence in the flattened features
  std::vector<std::int64_t> table_of;      ///< by feature
  std::vector<DynamicRate> dynamic_rates;  ///< by tag
};

/// Calls every dynamic rate once for a step and fills `rates` by tag. Throws as DynamicRate::ask,
/// and StateError naming a table whose optimizer steps no row.
void ask_rates(const Assembly& assembly, std::int64_t number, std::vector<float>& rates);

/// Returns every table as the caller sees it. trainable: the caller may write its rows.
std::vector<TableInfo> table_info(const Assembly& assembly, bool trainable);

/// Checks every configuration, then resolves tables, names, optimizers and rates. The configuration
/// is not changed. Throws ValueError for a broken rule, a repeated name, a slot's initializer of
/// another size, or, if `accelerated`, a table without optimizer and an array where a slot needs a
/// function. Source: TF tpu_embedding_v2.py, TPUEmbedding.__init__, extract_variable_info.
Assembly assemble(const Nested<FeatureConfig>& features, const std::optional<Optimizer>& optimizer,
                  bool accelerated);

}  // namespace embertable::engine
