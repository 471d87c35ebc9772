#pragma once

#include <chrono>
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
#include "embertable/errors.h"
#include "embertable/export.h"
#include "embertable/id_map.h"
#include "embertable/nested.h"
#include "embertable/revision.h"
#include "embertable/strategy.h"

namespace embertable {

class ShardedVariable;

namespace wire {
struct TPUEmbeddingConfiguration;
}

/// What happens to an id outside its table: an error, or the entry counts as absent.
enum class OutOfRange : std::uint8_t { kError, kDrop };

/// What happens to a gradient that is infinite or NaN: it goes the way of all numbers, into its row
/// and no other, or it is an error.
enum class GradientPolicy : std::uint8_t { kAllow, kError };

struct EmbeddingOptions {
  /// The update of a batch runs after the forward of the next one, which so sees tables one step
  /// old.
  bool pipeline_execution_with_tensor_core = false;

  OutOfRange out_of_range = OutOfRange::kError;

  /// kError: apply_gradients reads all gradients once more, before anything changes. Sums of
  /// finite gradients may still overflow.
  GradientPolicy gradient_policy = GradientPolicy::kAllow;

  /// Calls may bring fewer output rows on axis 0 than the built shape has, as the last batch of a
  /// data set does.
  bool variable_batch = false;

  /// Completes a partially known output shape by the detected one, dim by dim. Off in the original.
  bool merge_partial_shapes = false;

  /// StepStatistics tells the distinct ids of every lookup, of inference batches too. Costs one bit
  /// of memory for each row of the tables, and in every lookup two walks over the ids, each of
  /// which visits the bit of every id's row; one worker does a table.
  bool count_unique_ids = false;

  /// Mixed into every initializer.
  std::uint64_t seed = 0;

  /// Batches that may wait in each replica's queue, 1..64.
  std::int32_t queue_capacity = 4;

  /// Receives warnings. Unset: they are dropped.
  std::function<void(std::string_view)> log;

  /// Receives the text form of `configuration`, a line a call, when an accelerated engine is built;
  /// or why there is none. Unset: nothing is made.
  std::function<void(std::string_view)> log_configuration;

  /// kBatchSize: `build` takes a batch size and no shapes; the batch size of a call is the leading
  /// dim that all features of all its replicas have in common, unknown ones aside, and stays that
  /// of the first; sparse and ragged ids do not come in one call. Neither with variable_batch nor
  /// with features that have an output_shape.
  ApiRevision revision = ApiRevision::kOutputShapes;

  /// How work is cut. Never shows in a result; for measurements and tests.
  struct Tuning {
    /// Bytes of the rows and slots that one bucket of an update touches; 0: a quarter of the L2
    /// cache, half as much again for a table of one id a sample that then has one bucket, less
    /// where workers would have few.
    std::int64_t bucket_bytes = 0;

    /// Regions that move fewer floats run on the calling thread.
    std::int64_t inline_floats = 1 << 13;
  };
  Tuning tuning = {};
};

/// How a batch is enqueued.
struct EnqueueOptions {
  /// Whether gradients will follow.
  bool training = true;

  /// Overrides `training` when not empty: "train" or "training", "inference", or
  /// "unspecified", which is the mode of the engine's record: training. Source: TF
  /// tpu_embedding_ops, mode_override.
  std::string mode_override = {};

  /// Labels the batch in messages.
  std::string name = {};

  /// Of the strategy (EngineStrategy::core_of). The batch is that of this one core, and only its
  /// queue is fed; a step is complete when all cores were. Empty: a batch of each replica, which
  /// its cores share in equal parts on axis 0.
  std::string device = {};

  /// How long to wait for room in the queue, from 0 on. Unset: see Embedding.
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// How a step is dequeued.
struct DequeueOptions {
  /// How long to wait for all batches, from 0 on; the last replica's counts. Unset: see Embedding.
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// The gradient of a table by row: what a step gave it instead of stepping its rows, or that of a
/// lookup.
struct GradientSumsOfTable {
  std::int64_t step = 0;          ///< that they are of; 0: there was none yet, or of a lookup
  std::vector<std::int64_t> ids;  ///< rows that the batches named, rising
  std::vector<float> sums;        ///< [ids.size(), dim], in the order of the ids
};

/// What the last step did, by table, all replicas and hosts together. What is told of a lookup is
/// known when it is over, what is told of an update when the gradients are applied; until then it
/// is 0. Pipelined, the update is that of the batch before.
struct StepStatistics {
  struct Table {
    std::int64_t entries = 0;  ///< ids looked up

    /// Distinct ids among the entries: of a training batch when its own update is over, or at once,
    /// and of any batch, where EmbeddingOptions::count_unique_ids asks for it.
    std::int64_t unique_rows = 0;

    /// Distinct rows that the update stepped: those that its batch named, or all of the table where
    /// its rule steps every row.
    std::int64_t rows_touched = 0;

    std::int64_t empty_rows = 0;         ///< output rows without entries: padding, empty samples
    std::int64_t dropped_ids = 0;        ///< ids outside the table, left out (OutOfRange::kDrop)
    std::int64_t truncated_entries = 0;  ///< ids beyond the end of a sequence, left out
    std::int64_t buckets = 0;            ///< pieces of work that the update was cut into
  };
  std::vector<Table> tables;
  std::int32_t forward_workers = 0;  ///< that did at least one item
  std::int32_t update_workers = 0;
  double forward_seconds = 0;  ///< on host 0, exchanges included
  double update_seconds = 0;
};

/// One row block of activations or gradients, borrowed: `shape` is S + [dim], values row-major.
struct Activation {
  std::span<const float> values;
  Shape shape;
};

class Embedding;

namespace engine {
struct ActivationBuffer;
struct Engine;
struct Step;
Engine& engine_of(const Embedding& embedding) noexcept;
}  // namespace engine

/// A loan of the activations of one step: for every replica of the call a tree like the features'
/// configuration. The memory returns to the engine when the last copy dies, which may be after the
/// engine's own end.
class EMBERTABLE_API Activations {
 public:
  Activations() = default;  ///< of no features and no replicas
  Activations(const Activations& other) noexcept;
  Activations(Activations&& other) noexcept;
  Activations& operator=(Activations other) noexcept;
  ~Activations();

  const Structure& structure() const noexcept;
  std::int64_t features() const noexcept;
  std::int32_t replicas() const noexcept;

  /// 0 <= feature < features() in flatten order; 0 <= replica < replicas().
  Activation operator()(std::int64_t feature, std::int32_t replica = 0) const noexcept;

  /// The activations of one replica, packed as the features are.
  Nested<Activation> nested(std::int32_t replica = 0) const;

 private:
  friend class Embedding;
  Activations(engine::ActivationBuffer* buffer, std::int32_t first_replica,
              std::int32_t replicas) noexcept
      : buffer_(buffer), first_replica_(first_replica), replicas_(replicas) {}
  engine::ActivationBuffer* buffer_ = nullptr;
  std::int32_t first_replica_ = 0;
  std::int32_t replicas_ = 0;
};

/// What `look_up` keeps of a training batch for its gradients. Moves; belongs to the engine that
/// made it, and must not outlive it. Dropping it drops the batch.
class EMBERTABLE_API LookupToken {
 public:
  LookupToken() = default;
  LookupToken(LookupToken&& other) noexcept;
  LookupToken& operator=(LookupToken&& other) noexcept;
  ~LookupToken();
  bool valid() const noexcept { return step_ != nullptr; }

 private:
  friend class Embedding;
  LookupToken(engine::Engine* engine, engine::Step* step) noexcept : engine_(engine), step_(step) {}
  engine::Engine* engine_ = nullptr;
  engine::Step* step_ = nullptr;
};

struct LookupResult {
  Activations activations;
  LookupToken token;  ///< valid for training batches
};

/// Name, size and place of a table as the engine holds it.
struct TableInfo {
  std::string name;
  std::int64_t vocabulary_size = 0;
  std::int32_t dim = 0;
  Combiner combiner = Combiner::kMean;
  std::string optimizer;  ///< text of the effective optimizer, "" for none
  struct Slot {
    std::string name;        ///< "accumulators"
    bool row_wise = false;   ///< one number per row instead of dim
    bool trainable = false;  ///< never: only the optimizer writes slots
  };
  std::vector<Slot> slots;

  /// Whether the rows are the caller's to train. Those of an engine with a strategy are not: they
  /// change by apply_gradients.
  bool trainable = true;
};

/// Bytes that the engine holds, and what the kernel made of its wish for huge pages.
struct MemoryReport {
  struct Entry {
    std::string name;                 ///< "video", "video/accumulators", "scratch"
    std::int64_t bytes = 0;           ///< mapped, padding included
    std::int64_t resident_bytes = 0;  ///< backed by memory now
    double huge_page_share = 0;       ///< of the resident bytes, 0..1, by the kernel's own account
  };
  std::vector<Entry> entries;
  std::int64_t total_bytes = 0;
};

/// The rows of one table of a plain engine, to read and to write: row r starts at data + r *
/// row_stride.
struct TableView {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;  ///< floats
  std::int32_t dim = 0;
};

struct RestoreOptions {
  /// Restore only these; empty: all.
  std::vector<std::string> tables;

  /// A table that the checkpoint lacks or has in another shape keeps its values and is reported; by
  /// default it is a ValueError.
  bool partial = false;
};

/// What a restore found. Variables by name, "video" or "video/accumulators".
struct RestoreReport {
  std::int64_t step = 0;            ///< that the checkpoint is of
  std::filesystem::path directory;  ///< of that step
  CallerState caller;
  std::map<std::string, IdMap> id_maps;
  std::vector<std::string> missing;     ///< the engine's that the checkpoint lacks: not changed
  std::vector<std::string> extra;       ///< the checkpoint's that the engine lacks: not read
  std::vector<std::string> mismatched;  ///< with both shapes: not changed
  std::vector<std::string> skipped;     ///< why higher steps of the run were not taken
};

/// The embedding engine: tables that are looked up and trained by batches of ids. With a strategy
/// it is *accelerated*: enqueue, dequeue, apply_gradients. Without one it is *plain*: it only holds
/// tables.
///
/// Any number of threads may enqueue, each replica's batches in the order of its calls. Steps of
/// different replicas may run on different threads; build, read_rows, assign_rows, save, restore
/// and memory are exclusive with steps. Queues are where threads meet: `enqueue` waits while a
/// queue is full, `dequeue` while one is empty, no longer than the strategy's timeout or their own,
/// then throws StateError naming the replicas. While one thread alone has constructed the engine,
/// enqueued and dequeued, nobody could help it, and a call without a timeout of its own throws at
/// once. A failure of the engine or its end wakes all who wait, with StateError; no thread may
/// begin a call then. A pending update is part of the tables: every call but a training batch's
/// dequeue sees it done, and what is still pending at the end of the engine goes with its tables.
///
/// A call that throws leaves the object as it was, except that
/// a caller's executor or rule that throws in the middle of an update, or a disk in the middle of a
/// restore, leaves it failed: every later step throws StateError saying so, until a restore
/// succeeds. Source: TF tpu_embedding_v2.py, TPUEmbedding.
class EMBERTABLE_API Embedding {
 public:
  /// Resolves tables, names and optimizers from copies of the configuration. Throws ValueError for
  /// a broken rule of a configuration, a repeated table name, or, accelerated, a table without
  /// optimizer.
  Embedding(Nested<FeatureConfig> feature_config, const std::optional<Optimizer>& optimizer,
            StrategyPtr strategy, EmbeddingOptions options = {});
  ~Embedding();
  Embedding(Embedding&&) noexcept;
  Embedding& operator=(Embedding&&) noexcept;

  bool accelerated() const noexcept;
  bool built() const noexcept;

  /// Whether `enqueue` detects shapes, builds and checks shapes; true at first.
  bool verify_output_shapes_on_enqueue() const noexcept;
  void set_verify_output_shapes_on_enqueue(bool verify);

  /// Creates the tables; a built object returns at once. Accelerated, the output shape of each
  /// feature is that of its configuration, else from the input shapes of one replica, else from the
  /// batch size (0: absent). With several cores in a replica these are shapes and batch sizes of
  /// one core. Throws StateError if the strategy holds another built engine, ValueError naming the
  /// feature's path and shapes if they contradict or stay unknown.
  void build();
  void build(std::int64_t per_replica_batch_size);
  void build(const Nested<Shape>& per_replica_input_shapes,
             std::int64_t per_replica_batch_size = 0);

  /// Plain only (StateError otherwise): every table by its configuration; builds if need be.
  std::map<TablePtr, TableView> embedding_tables();

  /// A variable, "video" or "video/accumulators", without a copy: a component "video_0", "video_1",
  /// ... for each host that owns rows. Assignable if plain, which builds; read-only if accelerated,
  /// where rows change by apply_gradients and assign_rows. It shows the rows as they are at each
  /// use, but for a pending update, which this call flushes; using it is exclusive with what
  /// changes rows. It keeps the memory beyond the engine and EngineStrategy::initialize.
  ///
  /// Throws StateError if accelerated and not built, or if several hosts own rows by modulo, whose
  /// order no blocks have; KeyError for an unknown variable. Declared in sharded_variable.h.
  ShardedVariable sharded_variable(std::string_view variable);

  /// Checks and copies one batch for every replica (or one batch that all replicas use), and
  /// returns before any work on rows. The first call builds.
  ///
  /// Throws StateError if the engine is plain or a queue is full; ValueError, TypeError, or
  /// DataError naming feature, replica, sample, position, value and rule; ValueError for a device
  /// that is none of the strategy's accelerators, or for several batches for one device; DataError
  /// for an unknown mode. Where replicas have several cores it throws ValueError for ragged ids,
  /// which cannot be cut in equal parts, and for an axis 0 that the cores do not divide.
  void enqueue(std::span<const Batch> batches, const EnqueueOptions& options = {});
  void enqueue(const Batch& batch, const EnqueueOptions& options = {});

  /// Looks up the oldest batch of every replica that has not been dequeued. Throws StateError if
  /// there is none, or if a training batch still lacks its gradients (two such batches when
  /// pipelined). On a thread within a SequentialScope the step is not pipelined.
  Activations dequeue(const DequeueOptions& options = {});

  /// The same into the caller's memory: out[replica * features + feature], as many floats as the
  /// activation has. Throws ValueError naming the path if a span has another size, before anything
  /// is looked up.
  void dequeue(std::span<const std::span<float>> out, const DequeueOptions& options = {});

  /// Applies one gradient per activation of the oldest dequeued training batch: one tree for every
  /// replica. Throws StateError out of order; ValueError or TypeError for another structure or
  /// shape; ValueError naming table and step where a dynamic rate gives no number that can be one;
  /// by `gradient_policy` DataError naming feature, replica, sample, table, a row and the step.
  /// Then nothing has changed, and gradients may be given anew.
  void apply_gradients(std::span<const Nested<Gradient>> gradients);
  void apply_gradients(const Nested<Gradient>& gradients);

  /// One replica's part of the calls above, for a thread of its own. A step of one replica waits
  /// for the others at dequeue and apply_gradients, no longer than the strategy's timeout, and
  /// throws StateError naming the absent ones.
  class EMBERTABLE_API Replica {
   public:
    void enqueue(const Batch& batch, const EnqueueOptions& options = {});  ///< without device
    Activations dequeue(const DequeueOptions& options = {});
    void apply_gradients(const Nested<Gradient>& gradients);

   private:
    friend class Embedding;
    Replica(engine::Engine* engine, std::int32_t index) : engine_(engine), index_(index) {}
    engine::Engine* engine_;
    std::int32_t index_;
  };

  /// Throws ValueError unless 0 <= index < replicas, StateError if plain.
  Replica replica(std::int32_t index);

  /// Without the queue: looks up at once and keeps what the gradients need in a token. Pipelining
  /// does not apply. Tokens may be applied in any order, each once; gradients see the rows as they
  /// are then.
  LookupResult look_up(std::span<const Batch> batches, bool training = true);
  LookupResult look_up(const Batch& batch, bool training = true);
  void apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients);
  void apply_gradients(LookupToken&& token, const Nested<Gradient>& gradients);

  /// Of a table whose rule is "none": what the gradients of the last step add up to, row by row,
  /// all replicas and hosts. A copy. Flushes a pending update. Throws StateError if not built,
  /// KeyError for an unknown table, ValueError for a table with another rule.
  GradientSumsOfTable gradient_sums(std::string_view table) const;

  /// Copies rows of a variable, "video" or "video/accumulators", to out [ids.size(), dim] (or
  /// [ids.size()] for a row-wise slot), in the order of the ids. Flushes a pending update. Throws
  /// StateError if not built, KeyError for an unknown variable, IndexError for an id outside it,
  /// ValueError for another size of out.
  void read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out) const;

  /// Overwrites rows, the last of repeated ids winning. Errors as read_rows; nothing is written
  /// then.
  void assign_rows(std::string_view variable, IntegerSpan ids, std::span<const float> values);

  /// Saves every table and slot, the caller's state and the id maps as one step of the run
  /// directory `run`, in one commit: after an error, or a crash at any point, the directory holds
  /// what it held. Flushes a pending update. Gives the step's directory. Throws StateError if not
  /// built or the step is saved already, ValueError, IoError.
  std::filesystem::path save(const CheckpointRun& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {}) const;

  /// The same, the run opened for this one save: also throws as CheckpointRun's constructor.
  std::filesystem::path save(const std::filesystem::path& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {}) const;

  /// Takes tables and slots from a checkpoint, written on any number of hosts in either sharding,
  /// and its step unless `options.tables` chooses. `path` is a step's directory or a run's, of
  /// which the latest step is taken. Slots that the checkpoint lacks keep their values, what it has
  /// beyond the engine is ignored; both are reported.
  ///
  /// Not built: tables are made at once, initializers run only for what is not read, and `build`
  /// uses them. Built: everything is checked before the first row changes. Batches in the queues
  /// and tokens live on and see the new rows; a pending update is flushed first. On a failed engine
  /// a restore of every variable makes it sound, dropping a pending update, training batches that
  /// lack their gradients and a batch in whose lookup several hosts failed.
  ///
  /// Throws StateError while a dequeued training batch lacks its gradients, or on a failed engine
  /// for less than every variable; KeyError for a chosen table that engine or checkpoint lacks;
  /// ValueError naming all tables that do not fit, or if nothing is in common; IoError; DataLoss
  /// naming file and block. Only if reading fails after all was checked is the engine failed.
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options = {});

  /// One hash of all tables and slots, 32 hexadecimal digits, as `digest_checkpoint` gives it for a
  /// saved step.
  std::string digest() const;

  /// In table order: first occurrence in the flattened features.
  std::vector<TableInfo> tables() const;

  /// Output shapes of one replica, or of one core where it has several, without the dim, by
  /// feature; unknown rank before they are known.
  const Nested<Shape>& output_shapes() const;

  const Nested<FeatureConfig>& feature_config() const noexcept;

  /// What TensorFlow's engine would tell an accelerator of this one: see
  /// tpu_embedding_configuration.h. Rates that are functions, and step counters, are inputs, tagged
  /// by first use; step counters that are no function come last. In the batch-size revision
  /// features are counted, else described. Throws StateError unless built and accelerated;
  /// NotImplemented naming table and rule for a rule that has no message; ValueError naming the
  /// feature for a dim beyond 32 bits.
  wire::TPUEmbeddingConfiguration configuration() const;

  /// Training batches whose gradients have been taken so far.
  std::int64_t step() const noexcept;

  /// Waits for a running build or step. A batch that another thread is enqueueing counts as the
  /// memory that it found.
  MemoryReport memory() const;

  /// Of the last dequeue or look_up with its gradients. Valid until the next step.
  const StepStatistics& last_step() const noexcept;

 private:
  friend engine::Engine& engine::engine_of(const Embedding& embedding) noexcept;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace embertable
