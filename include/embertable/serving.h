#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "embertable/checkpoint.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "embertable/executor.h"
#include "embertable/id_map.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "embertable/version.h"

namespace embertable {

class ServingEmbedding;

namespace serving {
class Lookup;
class Served;
}  // namespace serving

namespace checkpoint {
class Reader;
ServingEmbedding serve_opened(const Reader& reader, std::optional<Nested<FeatureConfig>> features);
}  // namespace checkpoint

/// The activations of one lookup, packed as its inputs were. Owns its memory, which the next lookup
/// into it reuses: once it has held as much, a lookup allocates nothing. A thread keeps the memory
/// of the last output that it destroyed, up to 64 KiB of activations, for its next one. Movable.
///
/// Threads: one lookup at a time may fill it, and any number may read it between lookups.
class EMBERTABLE_API LookupOutput {
 public:
  LookupOutput() noexcept;
  LookupOutput(LookupOutput&&) noexcept;
  LookupOutput& operator=(LookupOutput&&) noexcept;
  ~LookupOutput();

  /// Structure of the inputs; a single leaf before the first lookup.
  const Structure& structure() const noexcept;

  /// Number of leaves of the inputs; 0 before the first lookup, and after one that threw.
  std::int64_t size() const noexcept;

  /// Returns the activation of one input. Requires: 0 <= leaf < size(), in flatten order. The
  /// values start on a cache line and are valid until the next lookup into this output.
  const Activation& operator()(std::int64_t leaf) const noexcept;

  /// Returns the activation of the input at a path (see Structure::paths), such as "user". Throws
  /// KeyError naming the nearest path, and StateError where `nested` does.
  const Activation& operator()(std::string_view path) const;

  /// Returns the activations packed like the inputs; their values are valid as long as those above.
  /// Throws StateError before the first lookup, and after one that threw.
  Nested<Activation> nested() const;

 private:
  friend class serving::Lookup;
  void require_values() const;
  std::unique_ptr<serving::Lookup> lookup_;  ///< null before the first lookup
};

/// Looks the inputs up in the tables; a pure function of its arguments. `inputs.features` may have
/// a part of the features, and other containers: its leaves' paths are among those of
/// `feature_config`. `inputs.weights` has the structure of the inputs.
///
/// | ids | feature | activation |
/// |---|---|---|
/// | dense | | the row of each id; shape: that of the ids + [dim] |
/// | sparse | L > 0, no output_shape, rank 2 | [B, L, dim]: sums of rows by column < L |
/// | sparse | validate, or rank > 2 | combined; pruned: ids < 0 and, but for sums, weights <= 0 |
/// | sparse | else | combined as it is |
/// | ragged | output_shape S of as many elements as rows | combined, S + [dim] |
/// | ragged | S of k times as many elements | the first k rows of each sample, S + [dim] |
/// | ragged | L > 0, no output_shape | the first L rows of each sample, [B, L, dim] |
/// | ragged | else | combined, [B, dim] |
///
/// Rows are combined with their weights; the first k rows are as they are, and need none. L is
/// max_sequence_length, validate is validate_weights_and_indices. Combined activations of sparse
/// ids have the shape of all axes but the last, + [dim]. A sample without entries, or whose weights
/// give a denominator of 0, gives zeros. Entries that a sequence cuts off are not checked. Every
/// output row has the bits that the engine gives for the same entries.
///
/// Throws ValueError naming paths or the path and the rule: for unknown paths, weights of another
/// structure, dense ids of a sequence, weights on dense ids, of another kind than the ids or on a
/// sequence, a shape that does not fit, a table of another size, a view with neither `data` nor
/// `bfloat16` or with both; KeyError for a table that `tables` lacks; DataError naming
/// path, sample, position and value for ids outside their table, indices outside of their shape,
/// splits that fall, or another number of weights than of ids. The output is empty then.
/// Thread-safe. Source: TF tpu_embedding_v2_utils.py, cpu_embedding_lookup.
EMBERTABLE_API void serving_embedding_lookup(const Batch& inputs,
                                             const std::map<TablePtr, TableView>& tables,
                                             const Nested<FeatureConfig>& feature_config,
                                             LookupOutput& output);
EMBERTABLE_API LookupOutput serving_embedding_lookup(const Batch& inputs,
                                                     const std::map<TablePtr, TableView>& tables,
                                                     const Nested<FeatureConfig>& feature_config);

/// Looks up by the rules of a revision. kBatchSize: the inputs have all features in the same
/// containers, an output_shape is ignored, and a feature with a max_sequence_length is a ValueError
/// naming its path.
EMBERTABLE_API LookupOutput serving_embedding_lookup(const Batch& inputs,
                                                     const std::map<TablePtr, TableView>& tables,
                                                     const Nested<FeatureConfig>& feature_config,
                                                     ApiRevision revision);

/// Returns the gradient of serving_embedding_lookup with respect to its tables; a pure function
/// too. For each table that a feature names it has the rows that the inputs looked up, rising, with
/// what reached them. `upstream` is the gradient of each activation, packed like the inputs; none
/// counts as zeros. Weights get no gradient, and neither does what was pruned, cut off or padded;
/// the rows of quantized tables get the gradient of unquantized rows.
///
/// Sums have the bits that the engine gives for the same entries: an entry gives a * g, or g where
/// its weight over the denominator is 1; left to right within a feature, cut at every multiple of
/// 4,096 output rows, these pieces left to right.
///
/// Throws what the lookup throws, and ValueError or TypeError naming the path for gradients of
/// another structure or shape. Thread-safe.
EMBERTABLE_API std::map<TablePtr, GradientSumsOfTable> serving_embedding_gradients(
    const Batch& inputs, const Nested<Gradient>& upstream,
    const std::map<TablePtr, TableView>& tables, const Nested<FeatureConfig>& feature_config);

/// Base of `ServingEmbedding` and `DirectEmbedding`, and of caller-supplied classes that stand in
/// their place: tables by configuration, variables that are created once, and a lookup without
/// state. Source: TF tpu_embedding_base.py, TPUEmbeddingBase.
///
///     // Looks up in memory that another process owns.
///     class ExternalRowsEmbedding final : public EmbeddingBase {
///      public:
///       using EmbeddingBase::EmbeddingBase;
///       std::map<TablePtr, TableView> embedding_tables() override { return build(), views_; }
///       LookupOutput embedding_lookup(const Batch& inputs) override {
///         return serving_embedding_lookup(inputs, embedding_tables(), feature_config());
///       }
///
///      private:
///       void create_variables() override { views_ = ask_for_views(tables()); }
///       std::map<TablePtr, TableView> views_;
///     };
class EMBERTABLE_API EmbeddingBase {
 public:
  /// Resolves tables, names and optimizers from copies of the configuration. Throws ValueError for
  /// a broken rule of a configuration, a repeated table name, or two features with the same path;
  /// tables need no optimizer.
  explicit EmbeddingBase(Nested<FeatureConfig> feature_config,
                         const std::optional<Optimizer>& optimizer = {});
  virtual ~EmbeddingBase();

  virtual const Nested<FeatureConfig>& feature_config() const noexcept;

  /// Returns the tables in table order: first occurrence in the flattened features.
  virtual std::vector<TableInfo> tables() const;

  /// True if the variables have been created.
  virtual bool built() const noexcept;

  /// Creates the variables; a built object returns at once. The base class throws what
  /// `create_variables` throws, and is not built then.
  virtual void build();

  /// Returns every table by its configuration; builds if need be. The base class throws
  /// NotImplemented.
  virtual std::map<TablePtr, TableView> embedding_tables();

  /// Returns the activations of one batch. The base class throws NotImplemented.
  virtual LookupOutput embedding_lookup(const Batch& inputs);

  /// Builds if need be, then looks up.
  LookupOutput operator()(const Batch& inputs);

 protected:
  /// Constructs the base of a class that keeps configuration and variables itself, and overrides
  /// all of the above.
  EmbeddingBase() noexcept;
  EmbeddingBase(EmbeddingBase&&) noexcept;
  EmbeddingBase& operator=(EmbeddingBase&&) noexcept;

 private:
  /// Creates the variables; the first `build` calls it. The base class throws NotImplemented.
  virtual void create_variables();

  struct State;
  std::unique_ptr<State> state_;
};

/// Source of the rows of a checkpoint: its mapped files, or a copy in memory. Mapping opens at once
/// and lets processes share one copy; it is for files that nobody changes or cuts short while they
/// are served.
enum class OpenTables : std::uint8_t { kMap, kLoad };

/// Time at which the checksums of a checkpoint's rows are compared. kLazy: each block of 1 MiB when
/// one of its rows is first asked for (for a copy: while it is made); kFull: all blocks at once;
/// kNone: never. Manifest and headers are checked in any case.
enum class Checks : std::uint8_t { kLazy, kFull, kNone };

/// Options of a ServingEmbedding.
struct ServingOptions {
  OpenTables tables = OpenTables::kLoad;  ///< where rows are read from
  Checks checks = Checks::kLazy;          ///< when checksums are compared

  /// Runs copies, checks and initializers. Unset: the calling thread.
  std::shared_ptr<Executor> executor = {};

  /// Mixed into every initializer, see EmbeddingOptions::seed.
  std::uint64_t seed = 0;
};

/// Tables that are only looked up: those of a checkpoint that any engine saved, on any number of
/// hosts, or tables with their first values. Optimizer slots are never read. Any number of objects
/// live side by side; objects that map one checkpoint share its memory.
///
/// Any number of threads may look up at once; `restore` is exclusive with all other calls.
///
/// Tables are copied into memory unless `ServingOptions::tables` says kMap. While they are mapped,
/// their files must not be changed in place or cut short; removing them is harmless. A block that
/// has been cut off before its first check is a DataLoss, on Linux 5.14 and later. A block that was
/// checked before is not checked again: what was changed in it is served, and if it is cut off, the
/// operating system ends the process (SIGBUS). Looking at the size of every file in every lookup
/// would take longer than the lookup of a sample. Source: TF tpu_embedding_for_serving.py,
/// TPUEmbeddingForServing.
class EMBERTABLE_API ServingEmbedding : public EmbeddingBase {
 public:
  /// Gives tables their first values when they are built, unless `restore` comes before. The
  /// optimizer is ignored. Throws ValueError for a broken rule of a configuration, a repeated
  /// table name, or two features with the same path, StateError if there is a strategy.
  explicit ServingEmbedding(Nested<FeatureConfig> feature_config,
                            const std::optional<Optimizer>& optimizer = {},
                            const StrategyPtr& strategy = {}, ServingOptions options = {});
  ~ServingEmbedding() override;
  ServingEmbedding(ServingEmbedding&&) noexcept;
  ServingEmbedding& operator=(ServingEmbedding&&) noexcept;

  /// Opens the tables of these features from a checkpoint, which must have all of them. `path` is
  /// the directory of a step, or of a run, which stands for its latest step. Throws what the
  /// constructor and `restore` throw.
  static ServingEmbedding open(const std::filesystem::path& path,
                               Nested<FeatureConfig> feature_config, ServingOptions options = {});

  /// Opens all tables of a checkpoint, and the features that it names: a map by their paths.
  static ServingEmbedding open(const std::filesystem::path& path, ServingOptions options = {});

  /// Replaces tables by those of a checkpoint with the same names, built or not. Throws IoError,
  /// DataLoss naming file and block, and what RestoreOptions describes; the object is unchanged
  /// then.
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options = {});

  bool built() const noexcept override;

  /// Gives the tables that were not restored their first values; a built object returns at once.
  /// Thread-safe; all lookups build.
  void build() override;

  /// Returns every table by its configuration, read-only; builds if need be. Checks all blocks of a
  /// mapped table that were not checked yet, and copies a table that is in several files into
  /// memory, and one of int8 rows as float32. Views and copies are there until `restore`.
  std::map<TablePtr, TableView> embedding_tables() override;

  /// Looks up in this object's tables; see serving_embedding_lookup. Also throws DataLoss naming
  /// file and block, at every touch of a damaged block.
  void embedding_lookup(const Batch& inputs, LookupOutput& output) const;
  LookupOutput embedding_lookup(const Batch& inputs) const;
  LookupOutput embedding_lookup(const Batch& inputs) override;

  /// Copies rows of a table to out [rows.size(), dim], in the order of the rows. Throws KeyError
  /// naming the nearest table, IndexError for a row outside of it, ValueError for another size of
  /// out, DataLoss.
  void read_rows(std::string_view table, IntegerSpan rows, std::span<float> out) const;

  const Nested<FeatureConfig>& feature_config() const noexcept override;

  /// Returns the tables in table order: first occurrence in the flattened features, then those
  /// without a feature. Optimizers and slots are left out.
  std::vector<TableInfo> tables() const override;

  /// Returns one table. Throws KeyError naming the nearest, or all if they are few.
  TableInfo table(std::string_view name) const;

  /// State of the checkpoint that was last opened, or restored without a selection of tables: its
  /// step, 0 if there was none; what its writer kept in it; and its id maps, which each call reads.
  std::int64_t step() const noexcept;
  CallerState caller_state() const;
  std::map<std::string, IdMap> id_maps() const;

 private:
  friend ServingEmbedding checkpoint::serve_opened(const checkpoint::Reader& reader,
                                                   std::optional<Nested<FeatureConfig>> features);
  explicit ServingEmbedding(std::unique_ptr<serving::Served> served);
  std::unique_ptr<serving::Served> served_;
};

}  // namespace embertable
