#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/direct_embedding.h"
#include "engine/core.h"
#include "engine/reentrancy_guard.h"
#include "kernels/level.h"
#include "optimizer/callback_failure.h"
#include "serving/lookup.h"
#include "serving/row_updates.h"

namespace embertable::direct {

using Lookups = std::span<const LookupOutput>;
using Upstream = std::span<const Nested<Gradient>>;

/// What is behind DirectEmbedding: a plain engine that keeps the tables, the lookups of
/// ServingEmbedding, and steps (step.cc).
class Direct {
 public:
  Direct(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
         StrategyPtr strategy, DirectOptions options);

  engine::Core& core() noexcept { return core_; }
  std::int32_t replicas() const noexcept { return strategy_->replicas(); }

  void build();
  void look_up(const Batch& inputs, LookupOutput& output);
  void look_up(std::span<const Batch> inputs, std::span<LookupOutput> outputs);

  std::map<TablePtr, GradientSumsOfTable> gradients(Lookups lookups, Upstream upstream);
  void apply_gradients(Lookups lookups, Upstream upstream);
  void apply_gradients(Lookups lookups, Upstream upstream, const DirectEmbedding::Update& update);

  /// Calls use(tables) with no step under way. Throws StateError where the object failed, or from
  /// within one of its own steps.
  template <class Use>
  auto with_tables(std::string_view call, Use use) {
    build();
    const std::lock_guard lock(stepping_);
    return use(core_.settled_tables(call));
  }

  /// The same without looking at the tables, which may have failed.
  template <class Use>
  auto between_steps(Use use) {
    const std::lock_guard lock(stepping_);
    return use();
  }

 private:
  void look_up(const Batch& inputs, LookupOutput& output, std::int32_t replica);
  void check_counts(std::size_t lookups, std::size_t trees) const;
  const serving::Lookup& checked(const LookupOutput& output, std::int32_t replica) const;
  std::vector<std::vector<serving::EntrySource>> collect_sources(Lookups lookups,
                                                                 Upstream upstream);
  void require_optimizers() const;
  void plan_step(std::vector<std::vector<serving::EntrySource>> sources,
                 std::span<const float> rates, std::int64_t number);
  std::vector<GradientSumsOfTable> sum_up(Lookups lookups, Upstream upstream);
  DirectUpdate update_of(std::size_t table, const GradientSumsOfTable& sums) const;
  const engine::StoredTable& stored(std::size_t table) const;
  template <class Change>
  void take_step(Change change);

  const StrategyPtr strategy_;
  engine::Core core_;
  const std::uint64_t id_;  ///< of this object, in the lookups that it makes
  const SimdLevel level_ = simd_level();
  engine::Tables* tables_ = nullptr;  ///< the core's, once built
  std::once_flag found_;
  engine::StepMutex stepping_;
  serving::RowUpdates updates_;
  Arena memory_;  ///< of gradients that were doubles
  CallbackFailure failure_;
};

}  // namespace embertable::direct
