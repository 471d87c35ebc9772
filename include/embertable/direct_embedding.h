#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/batch.h"
#include "embertable/checkpoint.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/embedding_base.h"
#include "embertable/errors.h"
#include "embertable/export.h"
#include "embertable/id_map.h"
#include "embertable/lookup_output.h"
#include "embertable/nested.h"
#include "embertable/optimizer.h"
#include "embertable/strategy.h"

namespace embertable {

namespace direct {
class Direct;
}

struct DirectOptions {
  /// Mixed into every initializer, as EmbeddingOptions::seed.
  std::uint64_t seed = 0;

  /// Receives warnings. Unset: they are dropped.
  std::function<void(std::string_view)> log;
};

/// What an update of the caller's gets of one table. Borrowed for the call, which may write the
/// rows that are named, and their slots.
struct DirectUpdate {
  std::string_view table;
  std::span<const std::int64_t> rows;  ///< that the batches named, rising, each once

  /// [rows.size(), dim]: summed over entries, features and replicas, in the order of `rows`.
  std::span<const float> gradients;

  TableView parameters;
  std::map<std::string, TableView> slots;  ///< by name, "accumulators"; dim 1 if row-wise
  std::int64_t step = 1;                   ///< 1 for the first; goes on after a restore
};

/// An optimizer that only says which slots a table has: their first values are those of `create`,
/// unset: zeros. Their names are theirs in checkpoints. Rows are stepped by the update that
/// DirectEmbedding::apply_gradients is given; an engine's own step throws StateError. Throws as
/// `Optimizer::custom`.
EMBERTABLE_API Optimizer slots_only(std::vector<std::string> slot_names,
                                    SlotInitializer create = {});

/// Tables that are looked up and trained directly, without queues, built shapes or a batch size:
/// for tables that fit each replica, and models that differentiate and update by themselves. Any
/// number of objects live on one strategy, beside the engine that it may hold. One copy of the
/// tables serves all replicas.
///
///     DirectEmbedding tables(features, Optimizer("adagrad", 0.1), strategy);
///     for (const Step& step : steps) {
///       const auto activations = tables.embedding_lookup(step.batches);      // one per replica
///       tables.apply_gradients(activations, model.gradients(activations));   // trees like them
///     }
///
/// A lookup does what serving_embedding_lookup does, but that nothing is pruned: ids below 0 are
/// errors, and weights count as they are, whatever validate_weights_and_indices says. Padding is
/// zeros and takes no gradient. A quantized table is looked up on its grid; its rows are trained as
/// they are.
///
/// Any number of threads may look up at once; `apply_gradients`, `assign_rows` and `restore` are
/// exclusive with all other calls. A call that throws leaves the object as it was, except that an
/// update, rule or executor of the caller's that throws in the middle of a step, or a disk in the
/// middle of a restore, leaves it failed: steps throw StateError saying so, until a restore
/// succeeds. Source: TF tpu_embedding_v1.py, TPUEmbeddingV0.
class EMBERTABLE_API DirectEmbedding final : public EmbeddingBase {
 public:
  /// Throws StateError without a strategy, ValueError for a broken rule of a configuration or a
  /// repeated table name. Without an optimizer a table has no slots, and only an update of the
  /// caller's steps it.
  DirectEmbedding(Nested<FeatureConfig> feature_config, const std::optional<Optimizer>& optimizer,
                  StrategyPtr strategy, DirectOptions options = {});
  ~DirectEmbedding() override;
  DirectEmbedding(DirectEmbedding&&) noexcept;
  DirectEmbedding& operator=(DirectEmbedding&&) noexcept;

  const Nested<FeatureConfig>& feature_config() const noexcept override;
  std::vector<TableInfo> tables() const override;

  /// Of the strategy.
  std::int32_t replicas() const noexcept;

  bool built() const noexcept override;

  /// Gives the tables that were not restored their first values. Thread-safe; all calls that need
  /// tables build.
  void build() override;

  /// Every table by its configuration, to read and to write; valid as long as this object.
  std::map<TablePtr, TableView> embedding_tables() override;

  /// The activations of one replica's batch, packed as the inputs are: a part of the features is
  /// enough. Throws as serving_embedding_lookup; the output is empty then. Batches may have any
  /// shapes, at each call others.
  LookupOutput embedding_lookup(const Batch& inputs) override;
  void embedding_lookup(const Batch& inputs, LookupOutput& output);

  /// One batch for each replica, or one that all use, looked up side by side: activations by
  /// replica. Throws the same naming the replica, and ValueError for another number of batches or
  /// outputs; all outputs are empty then.
  std::vector<LookupOutput> embedding_lookup(std::span<const Batch> inputs);
  void embedding_lookup(std::span<const Batch> inputs, std::span<LookupOutput> outputs);

  /// The gradient with respect to the tables: of each the rows that the lookups named, with what
  /// reached them from all replicas. There is one lookup and one tree of gradients, packed as it
  /// is, for each replica, in their order; none counts as zeros. Lookups are this object's; they
  /// may be used again. Sums have the bits that an engine gives for the same entries.
  ///
  /// Throws ValueError for another number of lookups or trees; StateError for a lookup of another
  /// object, or that failed; ValueError or TypeError naming replica and path for gradients of
  /// another structure or shape.
  std::map<TablePtr, GradientSumsOfTable> gradients(std::span<const LookupOutput> lookups,
                                                    std::span<const Nested<Gradient>> upstream);

  /// One step: each row that the lookups named takes one step of its table's optimizer with its
  /// summed gradient, or, where it does not accumulate, one for each entry. Rows, slots and steps
  /// are those of an engine that is given the same entries and gradients, to the last bit. Dynamic
  /// rates are asked once. Throws as `gradients`, StateError naming a table without optimizer, and
  /// ValueError naming table and step where a rate gives no number that can be one.
  void apply_gradients(std::span<const LookupOutput> lookups,
                       std::span<const Nested<Gradient>> upstream);

  /// The same with one replica. Throws ValueError if there are more.
  void apply_gradients(const LookupOutput& lookup, const Nested<Gradient>& upstream);

  /// One step by an update of the caller's, instead of the optimizers: called for each table of
  /// which rows were named, in table order, on this thread. It must not call this object.
  using Update = std::function<void(const DirectUpdate& table)>;
  void apply_gradients(std::span<const LookupOutput> lookups,
                       std::span<const Nested<Gradient>> upstream, const Update& update);

  /// Steps so far, those before a restore included.
  std::int64_t step() const noexcept;

  /// As those of `Embedding`.
  void read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out);
  void assign_rows(std::string_view variable, IntegerSpan ids, std::span<const float> values);

  /// Checkpoints are those of `Embedding`: each restores the other's, and ServingEmbedding serves
  /// both. Throw as there.
  std::filesystem::path save(const CheckpointRun& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {});
  std::filesystem::path save(const std::filesystem::path& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {});
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options = {});

  /// As Embedding::digest: equal for equal values.
  std::string digest();

 private:
  std::unique_ptr<direct::Direct> direct_;
};

}  // namespace embertable
