#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string_view>

#include "checkpoint/run_directory.h"
#include "embertable/direct_embedding.h"
#include "engine/schedule/progress.h"
#include "engine/schedule/reentrancy_guard.h"
#include "engine/setup/setup.h"
#include "engine/table_store.h"
#include "serving/direct_steps.h"

namespace embertable::direct {

/// The implementation of DirectEmbedding: the tables of a plain engine, the lookups of
/// ServingEmbedding, and steps of its own.
class Direct {
 public:
  Direct(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
         StrategyPtr strategy, DirectOptions options);

  const engine::Setup& setup() const noexcept { return setup_; }
  const engine::TableStore& store() const noexcept { return store_; }
  const engine::Progress& progress() const noexcept { return progress_; }
  std::int32_t replicas() const noexcept { return strategy_->replicas(); }

  void build();
  std::map<TablePtr, TableView> table_views();
  void look_up(const Batch& inputs, LookupOutput& output);
  void look_up(std::span<const Batch> inputs, std::span<LookupOutput> outputs);

  std::map<TablePtr, GradientSumsOfTable> gradients(Parts parts);
  void apply_gradients(Parts parts);
  void apply_gradients(Parts parts, const DirectEmbedding::Update& update);

  /// Calls use(tables) with no step under way. Throws StateError where the object failed, or from
  /// within one of its own steps.
  template <class Use>
  auto with_tables(std::string_view call, Use use) {
    build();
    setup_.require_same_process(call);
    const std::lock_guard lock(stepping_);
    progress_.require_not_failed(call);
    return use(*tables_);
  }

  /// Requires: called by `with_tables`.
  std::filesystem::path save(const engine::Tables& tables, const checkpoint::OpenRun& run,
                             const CallerState& state,
                             const std::map<std::string, IdMap>& id_maps) const;
  std::string digest(const engine::Tables& tables) const;
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options);

 private:
  void look_up(const Batch& inputs, LookupOutput& output, std::int32_t replica);
  void check_counts(Parts parts) const;

  const StrategyPtr strategy_;
  const engine::Setup setup_;
  engine::Progress progress_;
  engine::TableStore store_;
  const std::uint64_t id_;            ///< number of this object, noted in the lookups that it makes
  engine::Tables* tables_ = nullptr;  ///< the store's, once built
  std::once_flag found_;
  engine::ReentrancyGuard stepping_;
  DirectSteps steps_;
};

}  // namespace embertable::direct
