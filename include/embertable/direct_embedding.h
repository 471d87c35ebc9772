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
#include <vector>

#include "embertable/batch.h"
#include "embertable/checkpoint.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "embertable/id_map.h"
#include "embertable/optimizer.h"
#include "embertable/serving.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "embertable/version.h"

namespace embertable {

namespace direct {
class Direct;
}

/// Options of a DirectEmbedding.
struct DirectOptions {
  /// Mixed into every initializer, see EmbeddingOptions::seed.
  std::uint64_t seed = 0;

  /// Receives warnings. Unset: they are dropped.
  std::function<void(std::string_view)> log;
};

/// The part of one table in a caller-supplied update. Borrowed for the call, which may write the
/// named rows and their slots.
struct DirectUpdate {
  std::string_view table;              ///< name of the table
  std::span<const std::int64_t> rows;  ///< rows that the batches named, rising, each once

  /// Gradients summed over entries, features and replicas, [rows.size(), dim], in the order of
  /// `rows`.
  std::span<const float> gradients;

  /// All rows of the table. The update rounds rows of bfloat16 as it likes.
  TableView parameters;
  std::map<std::string, TableView> slots;  ///< by name, "accumulators"; dim 1 if row-wise
  std::int64_t step = 1;                   ///< number of the step, from 1; a restore continues it
};

/// The lookups of one call by replica, and one tree of gradients packed like each, in their order;
/// none counts as zeros. Borrowed for the call.
struct LookupGradients {
  std::span<const LookupOutput> lookups;
  std::span<const Nested<Gradient>> upstream;
};

/// Makes an optimizer that only declares the slots of a table: their first values come from
/// `create`; unset: zeros. Checkpoints have the slots under these names. Rows are stepped by the
/// update that DirectEmbedding::apply_gradients receives; an engine's own step throws StateError.
/// Throws what `Optimizer::custom` throws.
EMBERTABLE_API Optimizer slots_only(std::vector<std::string> slot_names,
                                    SlotInitializer create = {});

/// Tables that are looked up and trained directly, without queues, built shapes or a batch size.
/// They suit tables that fit each replica, and models that differentiate and update by themselves.
/// Any number of objects live on one strategy, beside the engine that it may hold. One copy of the
/// tables serves all replicas.
///
///     DirectEmbedding tables(features, Optimizer("adagrad", 0.1), strategy);
///     for (const Step& step : steps) {
///       const auto activations = tables.embedding_lookup(step.batches);      // one per replica
///       tables.apply_gradients(activations, model.gradients(activations));   // trees like them
///     }
///
/// A lookup does what serving_embedding_lookup does, except that nothing is pruned: ids below 0 are
/// errors, and weights of every sign count, whatever validate_weights_and_indices says. Padding
/// gives zeros and takes no gradient. A quantized table is looked up on its grid; its rows are
/// trained unquantized.
///
/// Any number of threads may look up at once; `apply_gradients`, `assign_rows` and `restore` are
/// exclusive with all other calls. A call that throws leaves the object as it was, except that an
/// update, rule or executor of the caller that throws in the middle of a step, or a disk error in
/// the middle of a restore, leaves it failed: steps throw StateError saying so, until a restore
/// succeeds. Source: TF tpu_embedding_v1.py, TPUEmbeddingV0.
class EMBERTABLE_API DirectEmbedding final : public EmbeddingBase {
 public:
  /// Resolves tables and optimizers. A table without an optimizer has no slots, and only a
  /// caller-supplied update steps it. Throws StateError without a strategy, ValueError for a broken
  /// rule of a configuration or a repeated table name.
  DirectEmbedding(Nested<FeatureConfig> feature_config, const std::optional<Optimizer>& optimizer,
                  StrategyPtr strategy, DirectOptions options = {});
  ~DirectEmbedding() override;
  DirectEmbedding(DirectEmbedding&&) noexcept;
  DirectEmbedding& operator=(DirectEmbedding&&) noexcept;

  const Nested<FeatureConfig>& feature_config() const noexcept override;
  std::vector<TableInfo> tables() const override;

  /// Returns the number of replicas of the strategy.
  std::int32_t replicas() const noexcept;

  bool built() const noexcept override;

  /// Gives the tables that were not restored their first values. Thread-safe; all calls that need
  /// tables build.
  void build() override;

  /// Returns every table by its configuration, readable and writable; valid during the life of this
  /// object.
  std::map<TablePtr, TableView> embedding_tables() override;

  /// Returns the activations of one replica's batch, packed like the inputs; a part of the features
  /// is enough. Batches may have other shapes at each call. Throws what serving_embedding_lookup
  /// throws; the output is empty then.
  LookupOutput embedding_lookup(const Batch& inputs) override;
  void embedding_lookup(const Batch& inputs, LookupOutput& output);

  /// Looks up one batch for each replica, or one that all use, side by side; returns activations by
  /// replica. Throws the same errors naming the replica, and ValueError for another number of
  /// batches or outputs; all outputs are empty then.
  std::vector<LookupOutput> embedding_lookup(std::span<const Batch> inputs);
  void embedding_lookup(std::span<const Batch> inputs, std::span<LookupOutput> outputs);

  /// Returns the gradient with respect to the tables: for each table the rows that the lookups
  /// named, with what reached them from all replicas. Takes one lookup, and one tree of gradients
  /// packed like it, for each replica, in their order; none counts as zeros. Lookups must be this
  /// object's; they may be used again. Sums have the bits that an engine gives for the same
  /// entries.
  ///
  /// Throws ValueError for another number of lookups or trees; StateError for a lookup of another
  /// object, or one that failed; ValueError or TypeError naming replica and path for gradients of
  /// another structure or shape.
  std::map<TablePtr, GradientSumsOfTable> gradients(std::span<const LookupOutput> lookups,
                                                    std::span<const Nested<Gradient>> upstream);

  /// Returns the gradient of several lookups of one step, such as those of two parts of a model: in
  /// a replica the entries of one lookup come before those of the next. Throws the same errors.
  std::map<TablePtr, GradientSumsOfTable> gradients(std::span<const LookupGradients> parts);

  /// Takes one step: each row that the lookups named takes one step of its table's optimizer with
  /// its summed gradient or, if the optimizer does not accumulate, one step for each entry. Rows,
  /// slots and steps equal, to the last bit, those of an engine that is given the same entries and
  /// gradients. Dynamic rates are asked once. Throws what `gradients` throws, StateError naming a
  /// table without optimizer, and ValueError naming table and step if a rate gives an unusable
  /// number.
  void apply_gradients(std::span<const LookupOutput> lookups,
                       std::span<const Nested<Gradient>> upstream);

  /// Takes one step by the gradient of several lookups, see `gradients`.
  void apply_gradients(std::span<const LookupGradients> parts);

  /// Steps a strategy of one replica. Throws ValueError if there are more.
  void apply_gradients(const LookupOutput& lookup, const Nested<Gradient>& upstream);

  /// Takes one step by a caller-supplied update instead of the optimizers. It is called for each
  /// table with named rows, in table order, on this thread, and must not call this object.
  using Update = std::function<void(const DirectUpdate& table)>;
  void apply_gradients(std::span<const LookupOutput> lookups,
                       std::span<const Nested<Gradient>> upstream, const Update& update);
  void apply_gradients(std::span<const LookupGradients> parts, const Update& update);

  /// Returns the number of steps so far, including those before a restore.
  std::int64_t step() const noexcept;

  /// Copy rows out and in, under the contracts of Embedding::read_rows and Embedding::assign_rows;
  /// they build if need be.
  void read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out);
  void assign_rows(std::string_view variable, IntegerSpan ids, std::span<const float> values);

  /// Checkpoints have the format of `Embedding`: each class restores the other's, and
  /// ServingEmbedding serves both. They throw what Embedding's functions throw.
  std::filesystem::path save(const CheckpointRun& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {});
  std::filesystem::path save(const std::filesystem::path& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {});
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options = {});

  /// Returns the digest that Embedding::digest describes: equal for equal values.
  std::string digest();

 private:
  std::unique_ptr<direct::Direct> direct_;
};

}  // namespace embertable
