#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/reader.h"
#include "embertable/embedding.h"
#include "engine/activation_buffer.h"
#include "engine/intake/batch_intake.h"
#include "engine/intake/feed.h"
#include "engine/replica_calls.h"
#include "engine/schedule/progress.h"
#include "engine/schedule/schedule.h"
#include "engine/setup/setup.h"
#include "engine/step_runner.h"
#include "engine/table_store.h"

namespace embertable::engine {

/// Tables without a pending update, and the lock that keeps steps from them.
struct SettledTables {
  std::shared_ptr<Tables> held;  ///< keeps tables and lock of another engine, which may go
  std::unique_lock<ReentrancyGuard> no_step;  ///< no build, of an engine that is only restored
  Tables& tables;
  StepCount& count;  ///< the number of steps that they have taken
};

/// The objects behind one Embedding, and the operations that need several of them. A plain engine
/// never steps.
struct Engine {
  Engine(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
         StrategyPtr strategy, EmbeddingOptions options);

  /// Wakes all waiting threads and returns when they have left.
  ~Engine();

  /// Makes tables and, if accelerated, hosts, for output shapes that are resolved. Requires:
  /// `store.building()` is locked.
  void build(std::span<const Shape> shapes);
  void build_from_inputs(const Nested<Shape>& inputs);
  void build_from_batch_size(std::int64_t batch_size);

  /// Returns the tables that the strategy holds now, with no update pending. They may be those of a
  /// later engine with the same variables. Throws StateError if not built, gone or not alike.
  SettledTables settled_tables(std::string_view call);

  /// Returns the same of a built engine, else the tables that a restore has made. Throws StateError
  /// if there are none.
  SettledTables settled_or_restored(std::string_view call);

  /// Throws StateError unless the engine is built or restored.
  void require_tables(std::string_view call) const;

  /// Throws StateError unless an accelerated engine can step, and in a function that it calls:
  /// nobody would end what that waits for.
  void require_usable(std::string_view call) const;

  /// Checks the batches of a call, all but their values. The first valid ones are checked
  /// completely, and build. `replica`: as make_feed.
  Feed accept(std::string_view call, std::span<const Batch> batches, const EnqueueOptions& options,
              std::optional<std::int32_t> replica = {});

  /// Accepts batches and queues them as part of a step.
  void enqueue(std::span<const Batch> batches, const EnqueueOptions& options,
               std::optional<std::int32_t> replica = {});

  /// Looks up the oldest queued step, once there is one: into these outputs, of which there is one
  /// for each activation, or into a buffer of the pool. A thread that waits holds no lock.
  using Outputs = std::span<const std::span<float>>;
  LentBuffer dequeue(const DequeueOptions& options, bool sequential,
                     std::optional<Outputs> outputs = {});

  /// Looks up batches outside the queues: into these outputs, or into a buffer that it lends.
  /// Returns the step that awaits its gradients, null unless `training`. Outputs need an engine
  /// that is built.
  Step* look_up(std::span<const Batch> batches, bool training, LentBuffer& buffer,
                std::optional<Outputs> outputs = {});

  /// Applies the gradients of the oldest dequeued training step. `check`, which may throw, is
  /// called before they are looked at.
  void apply_gradients(FunctionRef<void()> check, GradientsOfReplica gradients);

  /// Applies the gradients of a step that `look_up` returned: the one that `checked` gives, which
  /// may throw. Calls `used` unless nothing has changed: the step takes no others then.
  void apply_looked_up(FunctionRef<Step*()> checked, GradientsOfReplica gradients,
                       FunctionRef<void()> used);

  /// One replica's part of calls that all replicas make together, each on a thread of its own.
  ActivationBuffer* dequeue_of(std::int32_t replica, const DequeueOptions& options);
  void apply_gradients_of(std::int32_t replica, const Nested<Gradient>& gradients);

  /// Returns the outputs if they fit the step's activations, else throws ValueError; without any,
  /// memory of the pool, lent to `buffer`.
  Outputs memory_for(std::string_view call, const Step& step, LentBuffer& buffer,
                     std::optional<Outputs> outputs);

  /// Sets the shapes of a step's activations, once all cores have enqueued: those of a replica's
  /// cores are joined on axis 0.
  void join_shapes(Step& step) const;

  RestoreReport restore(const checkpoint::StepSource& source, const RestoreOptions& options);
  MemoryReport memory() const;

  const Setup setup;
  Schedule schedule;
  ReplicaCalls replica_calls;
  Progress progress;
  TableStore store;
  BatchIntake intake;
  StepRunner runner;
  const std::shared_ptr<ActivationPool> pool =
      std::make_shared<ActivationPool>(setup.features.structure());
};

/// Returns the engine behind an Embedding, for library code that needs more than the public
/// interface.
Engine& engine_of(const Embedding& embedding) noexcept;

}  // namespace embertable::engine
