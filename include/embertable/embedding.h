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
#include "embertable/id_map.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "embertable/version.h"

namespace embertable {

class ShardedVariable;

namespace wire {
struct TPUEmbeddingConfiguration;
}

/// Treatment of an id outside its table. kError: reject the batch; kDrop: count the entry as
/// absent.
enum class OutOfRange : std::uint8_t { kError, kDrop };

/// Treatment of a gradient that is infinite or NaN. kAllow: apply it to its row like any value, but
/// not where the activation is zeros because the weights cancel: such a gradient counts as zeros.
/// kError: reject the call.
enum class GradientPolicy : std::uint8_t { kAllow, kError };

/// Selects the rules to follow where releases of TensorFlow's TPUEmbedding differ.
enum class ApiRevision : std::uint8_t {
  kOutputShapes = 0,  ///< every feature has an output shape of its own
  kBatchSize = 1,     ///< release 2.4: all features of all replicas share one batch size
};

/// Options of an engine.
struct EmbeddingOptions {
  /// Runs the update of a batch after the forward of the next one, which therefore sees tables one
  /// step old.
  bool pipeline_execution_with_tensor_core = false;

  /// Says what becomes of an id below 0 or not below its table's vocabulary_size.
  OutOfRange out_of_range = OutOfRange::kError;

  /// Under kError apply_gradients reads all gradients once more, before anything changes. Sums of
  /// finite gradients may still overflow.
  GradientPolicy gradient_policy = GradientPolicy::kAllow;

  /// Allows calls to bring fewer output rows on axis 0 than the built shape has, for example in the
  /// last batch of a data set.
  bool variable_batch = false;

  /// Completes a partially known output shape by the detected one, dim by dim. TensorFlow does not.
  bool merge_partial_shapes = false;

  /// Makes StepStatistics count the distinct ids of every lookup, of inference batches too. This
  /// costs one bit of memory for each row of the tables, and in every lookup two walks over the
  /// ids, each of which visits the bit of every id's row; each table is counted by one worker.
  bool count_unique_ids = false;

  /// Mixed into every initializer: engines with equal tables and another seed start from other
  /// random values.
  std::uint64_t seed = 0;

  /// Maximum number of batches that wait in each replica's queue, 1..64.
  std::int32_t queue_capacity = 4;

  /// Receives warnings. Unset: they are dropped.
  std::function<void(std::string_view)> log;

  /// Receives the text form of `configuration`, one line per call, when an accelerated engine is
  /// built; or the reason why there is none. Unset: no text is made.
  std::function<void(std::string_view)> log_configuration;

  /// Selects the rules of batch and output shapes. kBatchSize: `build` takes a batch size and no
  /// shapes; the batch size of a call is the leading dim that all features of all its replicas have
  /// in common, unknown ones aside, and must stay that of the first call; sparse and ragged ids
  /// must not come in one call. kBatchSize excludes variable_batch and features that have an
  /// output_shape.
  ApiRevision revision = ApiRevision::kOutputShapes;

  /// Cuts the work into pieces. It never shows in a result; it is for measurements and tests.
  struct Tuning {
    /// Bytes of the rows and slots that one bucket of an update touches. 0: a quarter of the L2
    /// cache; half as much again for a table of one id a sample that then has one bucket; less
    /// where workers would otherwise have few buckets.
    std::int64_t bucket_bytes = 0;

    /// Regions that move fewer floats than this run on the calling thread.
    std::int64_t inline_floats = 1 << 13;
  };
  Tuning tuning = {};
};

/// Options of `enqueue`.
struct EnqueueOptions {
  /// True if gradients will follow.
  bool training = true;

  /// Overrides `training` when non-empty: "train", "training" and "unspecified" mean training,
  /// "inference" means none. Source: TF tpu_embedding_ops,
  /// mode_override.
  std::string mode_override = {};

  /// Labels the batch in messages.
  std::string name = {};

  /// Device of the one core that the batch is for, named by the strategy (EngineStrategy::core_of).
  /// Only that core's queue is fed; a step is complete when all cores were. Empty: the call brings
  /// a batch for each replica, which its cores share in equal parts on axis 0.
  std::string device = {};

  /// Time to wait for room in the queue, >= 0. Unset: see Embedding.
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// Options of `dequeue`.
struct DequeueOptions {
  /// Time to wait for all batches, >= 0; the last replica's value counts. The first wait for each
  /// other as long as the strategy says. Unset: see Embedding.
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// Gradient of a table by row: what a step accumulated instead of stepping the rows, or the
/// gradient of a lookup.
struct GradientSumsOfTable {
  /// Step that produced `sums`; 0 before the first step and for gradients of lookups.
  std::int64_t step = 0;

  std::vector<std::int64_t> ids;  ///< rows that the batches named, rising
  std::vector<float> sums;        ///< [ids.size(), dim], in the order of the ids
};

/// Statistics of the last step by table, all replicas and hosts of this process together; rows of a
/// replicated table count once, not for each copy, except for `buckets`. Lookup counters are set
/// when the lookup is over, update counters when the gradients are applied; until then they are 0.
/// With pipelining the update is that of the batch before.
struct StepStatistics {
  struct Table {
    std::int64_t entries = 0;  ///< ids looked up

    /// Distinct ids among the entries. For a training batch it is set when its own update is over;
    /// for any batch it is set at once if EmbeddingOptions::count_unique_ids is on.
    std::int64_t unique_rows = 0;

    /// Distinct rows that the update stepped: the rows that its batch named, or all of the table if
    /// its rule steps every row.
    std::int64_t rows_touched = 0;

    std::int64_t empty_rows = 0;         ///< output rows without entries: padding, empty samples
    std::int64_t dropped_ids = 0;        ///< ids outside the table, left out (OutOfRange::kDrop)
    std::int64_t truncated_entries = 0;  ///< ids beyond the end of a sequence, left out
    std::int64_t buckets = 0;            ///< pieces of work that the update was cut into
  };
  std::vector<Table> tables;         ///< in table order
  std::int32_t forward_workers = 0;  ///< workers that ran at least one item of the lookup
  std::int32_t update_workers = 0;   ///< workers that ran at least one item of the update
  double forward_seconds = 0;        ///< time of the lookup on host 0, with exchanges
  double update_seconds = 0;         ///< time of the update on host 0, with exchanges
};

/// One block of activations or gradients, borrowed: `shape` is S + [dim], values row-major.
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

/// The activations of one step, on loan: for every replica of the call a tree structured like the
/// features' configuration. The memory returns to the engine when the last copy dies, which may be
/// after the end of the engine itself.
class EMBERTABLE_API Activations {
 public:
  Activations() = default;  ///< has no features and no replicas
  Activations(const Activations& other) noexcept;
  Activations(Activations&& other) noexcept;
  Activations& operator=(Activations other) noexcept;
  ~Activations();

  const Structure& structure() const noexcept;  ///< structure of the features' configuration
  std::int64_t features() const noexcept;       ///< number of features
  std::int32_t replicas() const noexcept;       ///< number of replicas of the call

  /// Returns one activation. Requires: 0 <= feature < features() in flatten order; 0 <= replica <
  /// replicas().
  Activation operator()(std::int64_t feature, std::int32_t replica = 0) const noexcept;

  /// Returns the activation of the feature at a path (see Structure::paths), such as "user". Throws
  /// KeyError naming the nearest path. Requires: 0 <= replica < replicas().
  Activation operator()(std::string_view path, std::int32_t replica = 0) const;

  /// Returns the activations of one replica, packed like the features. Requires: 0 <= replica <
  /// replicas(). Their values are on loan as long as this object or a copy lives.
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

/// Holds what `look_up` keeps of a training batch for its gradients. Movable; belongs to the engine
/// that made it, and must not outlive it. Dropping it drops the batch.
class EMBERTABLE_API LookupToken {
 public:
  LookupToken() = default;
  LookupToken(LookupToken&& other) noexcept;
  LookupToken& operator=(LookupToken&& other) noexcept;
  ~LookupToken();

  /// True if it holds a batch: until its gradients are applied, or it is moved from.
  bool valid() const noexcept { return step_ != nullptr; }

 private:
  friend class Embedding;
  LookupToken(engine::Engine* engine, engine::Step* step) noexcept : engine_(engine), step_(step) {}
  engine::Engine* engine_ = nullptr;
  engine::Step* step_ = nullptr;
};

/// Result of `look_up`.
struct LookupResult {
  Activations activations;
  LookupToken token;  ///< valid for training batches
};

/// Describes a table.
struct TableInfo {
  std::string name;
  std::int64_t vocabulary_size = 0;
  std::int32_t dim = 0;
  Combiner combiner = Combiner::kMean;
  std::string optimizer;  ///< text of the effective optimizer, "" if there is none
  struct Slot {
    std::string name;        ///< "accumulators"
    bool row_wise = false;   ///< one number per row instead of dim
    bool trainable = false;  ///< always false: only the optimizer writes slots
  };
  std::vector<Slot> slots;

  /// True if the caller may train the rows. The rows of an engine with a strategy change only by
  /// apply_gradients.
  bool trainable = true;

  RowType row_type = RowType::kFloat32;
};

/// Memory that the engine holds, and how much of it the kernel put in huge pages.
struct MemoryReport {
  struct Entry {
    /// "video", "video/accumulators", "scratch". Scratch is bounded by the batches, whatever the
    /// number of workers, and a few MiB for each of them: see docs/performance.md.
    std::string name;
    std::int64_t bytes = 0;           ///< mapped, padding included
    std::int64_t resident_bytes = 0;  ///< backed by memory now
    double huge_page_share = 0;       ///< share of the resident bytes, 0..1, reported by the kernel
  };
  std::vector<Entry> entries;
  std::int64_t total_bytes = 0;
};

/// The rows of one table in memory, borrowed: row r starts at data + r * row_stride. The function
/// that returns a view says how long it is valid, and whether the rows may be written. Exactly one
/// of `data` and `bfloat16` is set.
struct TableView {
  float* data = nullptr;  ///< null where rows are bfloat16
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;  ///< elements: floats or halves
  std::int32_t dim = 0;

  /// Instead of `data` where rows are bfloat16: row r starts at bfloat16 + r * row_stride.
  std::uint16_t* bfloat16 = nullptr;
};

/// Options of a restore.
struct RestoreOptions {
  /// Names of tables to restore; empty: all.
  std::vector<std::string> tables;

  /// If true, a table that the checkpoint lacks or has in another shape keeps its values and is
  /// reported. If false, it is a ValueError.
  bool partial = false;

  /// Names of tables that may have more rows than were saved, for example because new users came.
  /// The saved rows keep their numbers; the rows behind them have their first values, of every slot
  /// too, as in a new table of this size and seed. An engine alone can grow tables.
  std::vector<std::string> grow = {};
};

/// Result of a restore. Variables are listed by name, "video" or "video/accumulators".
struct RestoreReport {
  std::int64_t step = 0;                 ///< step stored in the checkpoint
  std::filesystem::path directory;       ///< directory of that step
  CallerState caller;                    ///< what the caller saved with the step
  std::map<std::string, IdMap> id_maps;  ///< id maps saved with the step, by name
  std::vector<std::string> missing;      ///< variables that only the engine has: not changed
  std::vector<std::string> extra;        ///< variables that only the checkpoint has: not read

  /// Variables of different shape, with both shapes: not changed.
  std::vector<std::string> mismatched;

  std::vector<std::string> skipped;  ///< reasons why higher steps of the run were not taken
  std::vector<std::string> grown;    ///< tables with more rows than were saved
};

/// The embedding engine: tables that are looked up and trained by batches of ids. With a strategy
/// it is *accelerated*: enqueue, dequeue, apply_gradients. Without one it is *plain*: it only holds
/// tables.
///
/// Threads: any number of threads may call, each replica's batches in the order of its calls. Steps
/// of different replicas may run on different threads. Steps and the calls that see whole tables
/// (read_rows, assign_rows, gradient_sums, save, restore, digest, memory, last_step) run one at a
/// time, in the order in which they were called; a replica that waits for others keeps nobody
/// waiting.
///
/// Threads meet at the queues: `enqueue` waits while a queue is full, `dequeue` while one is empty,
/// no longer than the strategy's timeout or their own, and then throws StateError naming the
/// replicas. While one thread alone has constructed the engine, enqueued and dequeued, no other
/// could help it, and a call without a timeout of its own throws at once. A failure or the end of
/// the engine wakes all waiting threads with StateError; no thread may begin a call then.
///
/// Hosts that are processes of their own (StrategyOptions::exchange) make these calls together, in
/// the same order: dequeue, apply_gradients, look_up, gradient_sums, read_rows, assign_rows,
/// assign_step, save, restore and digest. A call that throws on one of them throws on all:
/// StateError naming the first host at fault and its reason where there is no error of their own.
/// Only a host whose `dequeue` throws before it has its batch, or for whose `apply_gradients` no
/// batch waits, must say so with `abandon_step`. If they make different calls, all throw GivenUp,
/// which names two hosts and what each is in. They can go on, or save. A host that does not come by
/// the exchange's deadline is named, and the exchange cannot be used any more. `enqueue`, `build`,
/// `step`, `memory` and `last_step` concern one process and send nothing.
///
/// A function that an engine calls, such as an initializer, a rule, a rate, a log or an executor,
/// must not call that engine's queues, steps, rows, memory or build: such a call throws StateError
/// at once, on whichever thread the engine runs the function. Nor must it wait for another thread
/// that makes one, which may wait for the function in turn.
///
/// A pending update is part of the tables: every call except a training batch's dequeue, and a
/// restore of every variable, sees it done. An update that is still pending at the end of the
/// engine is lost with its tables.
///
/// A call that throws leaves the object as it was, and the same gradients may be given again,
/// except that an executor or rule of the caller that throws while rows change, or a disk error or
/// an initializer of grown tables in the middle of a restore, leaves it failed: every later step,
/// and all that reads or saves its rows, throws StateError saying so, until a restore succeeds.
/// Source: TF tpu_embedding_v2.py, TPUEmbedding.
class EMBERTABLE_API Embedding {
 public:
  /// Resolves tables, names and optimizers from copies of the configuration. Throws ValueError for
  /// a broken rule of a configuration, a repeated table name, two features with the same path, or,
  /// if accelerated, a table without optimizer.
  Embedding(Nested<FeatureConfig> feature_config, const std::optional<Optimizer>& optimizer,
            StrategyPtr strategy, EmbeddingOptions options = {});
  ~Embedding();
  Embedding(Embedding&&) noexcept;
  Embedding& operator=(Embedding&&) noexcept;

  /// True if there is a strategy.
  bool accelerated() const noexcept;

  /// True if the tables have been created.
  bool built() const noexcept;

  /// True if `enqueue` detects shapes, builds and checks shapes. Initially true.
  bool verify_output_shapes_on_enqueue() const noexcept;
  void set_verify_output_shapes_on_enqueue(bool verify);

  /// Creates the tables; a built object returns at once. If accelerated, the output shape of each
  /// feature comes from its configuration, else from the input shapes of one replica, else from the
  /// batch size (0: absent). With several cores in a replica these are shapes and batch sizes of
  /// one core. Throws StateError if the strategy holds another built engine, ValueError naming the
  /// feature's path and shapes if they contradict or stay unknown.
  void build();
  void build(std::int64_t per_replica_batch_size);
  void build(const Nested<Shape>& per_replica_input_shapes,
             std::int64_t per_replica_batch_size = 0);

  /// Returns every table by its configuration, readable and writable; builds if need be. Views are
  /// valid during the life of this object. Throws StateError if the engine is accelerated.
  std::map<TablePtr, TableView> embedding_tables();

  /// Returns a variable, "video" or "video/accumulators", without a copy: one component "video_0",
  /// "video_1", ... for each host that owns rows, or "video_0" alone if the table is replicated. It
  /// is assignable if the engine is plain, which builds; read-only if accelerated, where rows
  /// change by apply_gradients and assign_rows. Each use of it sees the current rows, except for a
  /// pending update, which this call flushes. Using it is exclusive with everything that changes
  /// rows. It keeps the memory alive beyond the engine and EngineStrategy::initialize.
  ///
  /// Throws StateError if accelerated and not built, or if several hosts own rows by modulo
  /// and not all of them, because blocks cannot have that order; KeyError for an unknown variable;
  /// NotImplemented where hosts are several processes.
  /// The result's class is in variables/sharded_variable.h.
  ShardedVariable sharded_variable(std::string_view variable);

  /// Checks and copies one batch for every replica (or one batch that all replicas use), and
  /// returns before any work on rows. The first call builds.
  ///
  /// Throws StateError if the engine is plain or a queue is full; ValueError, TypeError, or
  /// DataError naming feature, replica, sample, position, value and rule; ValueError for a device
  /// that is not one of the strategy's accelerators, for several batches for one device, or for an
  /// unknown mode. If replicas have several cores, it throws ValueError for ragged ids, which
  /// cannot be cut into equal parts, and for an axis 0 that the number of cores does not divide.
  void enqueue(std::span<const Batch> batches, const EnqueueOptions& options = {});
  void enqueue(const Batch& batch, const EnqueueOptions& options = {});

  /// Looks up the oldest batch of every replica that has not been dequeued. Throws StateError if
  /// there is none, or if a training batch still lacks its gradients (two such batches if
  /// pipelined). On a thread within a SequentialScope the step is not pipelined.
  Activations dequeue(const DequeueOptions& options = {});

  /// Dequeues into caller-owned memory: out[replica * features + feature] has as many floats as the
  /// activation. Throws ValueError naming the path if a span has another size, before anything is
  /// looked up.
  void dequeue(std::span<const std::span<float>> out, const DequeueOptions& options = {});

  /// Applies one gradient per activation of the oldest dequeued training batch: one tree for every
  /// replica. Throws StateError out of order; ValueError or TypeError for another structure or
  /// shape; ValueError naming table and step if a dynamic rate gives an unusable number; depending
  /// on `gradient_policy` DataError naming feature, replica, sample, table, a row and the step.
  /// After an error nothing has changed, and the gradients may be given anew.
  void apply_gradients(std::span<const Nested<Gradient>> gradients);
  void apply_gradients(const Nested<Gradient>& gradients);

  /// One replica's part of the calls above, to be used on a thread of its own. A step of one
  /// replica waits for the others at dequeue and apply_gradients, no longer than the strategy's
  /// timeout, and throws StateError naming the absent ones.
  class EMBERTABLE_API Replica {
   public:
    void enqueue(const Batch& batch,
                 const EnqueueOptions& options = {});  ///< `options.device` must be empty
    Activations dequeue(const DequeueOptions& options = {});
    void apply_gradients(const Nested<Gradient>& gradients);

   private:
    friend class Embedding;
    Replica(engine::Engine* engine, std::int32_t index) : engine_(engine), index_(index) {}
    engine::Engine* engine_;
    std::int32_t index_;
  };

  /// Returns the part of one replica. Throws ValueError unless 0 <= index < replicas, StateError if
  /// plain.
  Replica replica(std::int32_t index);

  /// Bypasses the queue: looks up at once and keeps what the gradients need in a token. Pipelining
  /// does not apply. Tokens may be applied in any order, each once; the gradients are applied to
  /// the rows of that moment.
  ///
  /// Among several processes all call together, and a batch that one of them refuses makes the call
  /// fail on all: it needs no `abandon_step`.
  ///
  /// `look_up` throws what `enqueue` throws for the batches, `apply_gradients` what it throws
  /// without a token, and StateError for a token that is empty or another engine's.
  LookupResult look_up(std::span<const Batch> batches, bool training = true);
  LookupResult look_up(const Batch& batch, bool training = true);
  void apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients);
  void apply_gradients(LookupToken&& token, const Nested<Gradient>& gradients);

  /// The same into caller-owned memory, as `dequeue` does: out[replica * features + feature].
  /// Returns the token, empty unless `training`. Throws StateError too if the engine is not built,
  /// ValueError naming the path if a span has another size than the activation, before anything is
  /// looked up.
  LookupToken look_up(std::span<const Batch> batches, std::span<const std::span<float>> out,
                      bool training = true);

  /// Tells the other processes, in the call that they make together now or next, that this host
  /// cannot take part in it: theirs throws StateError naming this host and `reason`. Nothing
  /// changes on any host, and all can go on. Does nothing if this process is all hosts. Throws
  /// StateError if not built, or if the others do not come by the exchange's deadline.
  void abandon_step(std::string_view reason);

  /// Drops the batches of steps that some replica of this process has enqueued none for, as one
  /// leaves behind that fails alone: the others would be a batch ahead of it from then on. Returns
  /// how many batches of a replica, or of its cores. Other processes are not told. Throws
  /// StateError if plain, or while another thread enqueues.
  std::int64_t drop_unmatched_batches();

  /// Drops the training batches that were dequeued and lack their gradients, as an error of the
  /// model leaves them behind: no row changes, and they are no steps. Those that wait in the queue
  /// stay. Returns how many steps. Waits for a step that another thread runs. Other processes are
  /// not told: like a call that all make together, all must make it after the same dequeue. Throws
  /// StateError if plain, not built or failed, in a forked process, and in a function that a step
  /// calls.
  std::int64_t drop_dequeued_batches();

  /// Drops the newest `steps` steps that every replica has enqueued its batch for and none has
  /// dequeued, by default all, and what drop_unmatched_batches drops: an error between `enqueue`
  /// and `dequeue` leaves them behind, and the next `dequeue` would look up a batch that nobody
  /// expects. Returns how many steps. Waits for a step that another thread runs. Other processes
  /// are not told: if not all make it after the same enqueue, the next call of all throws, or steps
  /// go on with batches that were not enqueued together. Throws ValueError for negative steps;
  /// StateError if plain, not built or failed, in a forked process, in a function that a step
  /// calls, or while another thread enqueues.
  std::int64_t drop_queued_batches(std::optional<std::int64_t> steps = std::nullopt);

  /// Returns for how many steps every replica has enqueued its batch and none has dequeued it.
  /// Throws StateError in a forked process.
  std::int64_t queued_batches() const;

  /// Returns how many training batches were dequeued and lack their gradients: at most one, or two
  /// with pipelining. Throws StateError in a forked process.
  std::int64_t awaiting_gradients() const;

  /// Returns a copy of the sums of the last step's gradients, row by row, over all replicas and
  /// hosts, for a table whose rule is "none". A process that is one of several hosts gets those of
  /// the rows that it stores; there are none after a restore of all tables. Flushes a pending
  /// update. Throws StateError if not built, KeyError for an unknown table, ValueError for a table
  /// with another rule.
  GradientSumsOfTable gradient_sums(std::string_view table) const;

  /// Copies rows of a variable, "video" or "video/accumulators", to out [ids.size(), dim] (or
  /// [ids.size()] for a row-wise slot), in the order of the ids. Flushes a pending update. Throws
  /// StateError unless built or restored, KeyError for an unknown variable, IndexError for an id
  /// outside it, ValueError for another size of out.
  void read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out) const;

  /// Overwrites rows; the last of repeated ids wins, and of several processes the last host. Throws
  /// what read_rows throws; nothing is written then.
  void assign_rows(std::string_view variable, IntegerSpan ids, std::span<const float> values);

  /// Sets the number of updates so far, as a restore does: rules and rates that count steps go on
  /// from there. Flushes a pending update. Throws StateError unless built or restored, ValueError
  /// for a step that is not 0 to 2^62, GivenUp if processes name different steps; no step is set
  /// then.
  void assign_step(std::int64_t step);

  /// Saves every table and slot, the caller's state and the id maps as one step of the run
  /// directory `run`, in one commit: after an error, or a crash at any point, the directory holds
  /// what it held before. Flushes a pending update. Returns the step's directory. Throws StateError
  /// unless built or restored, or if the step is saved already, ValueError, IoError. Of several
  /// processes, each writes its own rows, and host 0 makes the step with its state and id maps; the
  /// run must lie in a file system that all share.
  std::filesystem::path save(const CheckpointRun& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {}) const;

  /// Opens the run for this one save. Also throws what CheckpointRun's constructor throws.
  std::filesystem::path save(const std::filesystem::path& run, const CallerState& state = {},
                             const std::map<std::string, IdMap>& id_maps = {}) const;

  /// Restores tables and slots from a checkpoint, written on any number of hosts in either
  /// sharding, and its step unless `options.tables` selects some. `path` is a step's directory, or
  /// a run's, which stands for its latest step. Slots that the checkpoint lacks keep their values;
  /// variables that only the checkpoint has are ignored; both are reported.
  ///
  /// If not built, tables are created at once, initializers run only for what is not read, and
  /// `build` uses them. If built, everything is checked before the first row changes. Batches in
  /// the queues and tokens stay valid and see the new rows. A restore of every variable, with its
  /// step, drops a pending update; any other flushes it first. On a failed engine a restore of
  /// every variable repairs it; there, and where an update could not be prepared, it also drops
  /// training batches that lack their gradients.
  ///
  /// Throws StateError while a dequeued training batch lacks its gradients otherwise, or on a
  /// failed engine for less than every variable; KeyError for a selected table that engine or
  /// checkpoint lacks; ValueError naming all tables that do not fit, or if nothing is in common;
  /// IoError; DataLoss naming file and block. The engine becomes failed only if reading fails after
  /// all was checked.
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options = {});

  /// Returns one hash of all tables and slots, 32 hexadecimal digits, the same that
  /// `digest_checkpoint` returns for a saved step. Equal for any number of threads and hosts; every
  /// NaN counts as the same number, since which NaN an operation gives is not promised.
  std::string digest() const;

  /// Returns the tables in table order: first occurrence in the flattened features.
  std::vector<TableInfo> tables() const;

  /// Returns the output shapes of one replica, or of one core if it has several, without the dim,
  /// by feature; the rank is unknown before they are known.
  const Nested<Shape>& output_shapes() const;

  const Nested<FeatureConfig>& feature_config() const noexcept;

  /// Returns what TensorFlow's engine would tell an accelerator about this one: see
  /// tensorflow/tpu_embedding_configuration.h. Rates that are functions, and step counters, are
  /// inputs, tagged by first use; step counters that are no function come last. In the batch-size
  /// revision features are counted, else described. Throws StateError unless built and accelerated;
  /// NotImplemented naming table and rule for a rule that has no message; ValueError naming the
  /// feature for a dim beyond 32 bits.
  wire::TPUEmbeddingConfiguration configuration() const;

  /// Returns the number of training batches whose gradients have been applied so far.
  std::int64_t step() const noexcept;

  /// Returns the memory in use. Waits for a running build or step. A batch that another thread is
  /// enqueueing counts with the memory that it had before.
  MemoryReport memory() const;

  /// Returns the statistics of the last dequeue or look_up with its gradients. Waits for a running
  /// step.
  StepStatistics last_step() const;

 private:
  friend engine::Engine& engine::engine_of(const Embedding& embedding) noexcept;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace embertable
