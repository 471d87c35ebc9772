#include "engine/engine.h"

#include <mutex>
#include <string>
#include <utility>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "engine/intake/output_shapes.h"

namespace embertable::engine {
namespace {

/// Sends the text of the configuration to the log that asks for it.
void log_configuration(const Setup& setup, std::span<const Shape> shapes) {
  const auto& log = setup.options.log_configuration;
  if (!log) return;
  wire::TPUEmbeddingConfiguration configuration;
  try {
    configuration = describe(setup.assembly, setup.features, shapes, setup.machine());
  } catch (const std::logic_error& error) {
    return log(std::string("no configuration: ") + error.what());
  }
  wire::log_lines(configuration, log);
}

}  // namespace

Engine::Engine(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
               StrategyPtr strategy, EmbeddingOptions options)
    : setup(std::move(features), optimizer, std::move(strategy), std::move(options), nullptr),
      schedule({.replicas = setup.replicas,
                .cores_per_replica = setup.cores_per_replica,
                .features = setup.features.size(),
                .hosts = setup.hosts,
                .capacity = setup.options.queue_capacity,
                .pipelined = setup.options.pipeline_execution_with_tensor_core,
                .timeout = setup.timeout()}),
      replica_calls(setup.replicas, setup.timeout()),
      progress(
          [this](const std::string& why) {
            schedule.stop(why);
            replica_calls.stop(why);
          },
          [this] {
            schedule.resume();
            replica_calls.resume();
          }),
      store(setup),
      intake(setup),
      runner(setup, store, schedule, progress) {}

Engine::~Engine() {
  if (setup.process.forked()) return;  // nobody waits in a child
  schedule.close();
  replica_calls.close();
  const std::lock_guard no_step(runner.stepping());  // an alike engine may be using the tables
  runner.steps()->set_flush(nullptr);
  store.leave_strategy();
}

void Engine::build(std::span<const Shape> shapes) {
  if (!setup.accelerated()) return store.adopt(store.prepare());
  store.require_free_strategy();
  log_configuration(setup, shapes);
  std::shared_ptr<Tables> tables = store.prepare();
  std::unique_ptr<HostTeam> hosts = runner.make_hosts(*tables);
  tables->steps = runner.steps();
  tables->steps->set_flush([this](std::string_view call) {
    progress.require_not_failed(call);
    runner.flush();
  });
  store.claim_strategy(tables);
  intake.use(shapes, hosts->host(0).tables(), runner.shares());
  runner.use(std::move(hosts));
  store.adopt(std::move(tables));
}

void Engine::build_from_inputs(const Nested<Shape>& inputs) {
  setup.require_same_process("build");
  const std::lock_guard lock(store.building());
  if (store.built()) return;
  if (setup.accelerated() && setup.has_one_batch_size()) {
    throw ValueError(
        "build: the batch-size revision takes a per_replica_batch_size, got per_replica_input_"
        "shapes");
  }
  if (!setup.accelerated()) return build({});
  assert_same_structure(setup.features.structure(), inputs.structure(), "per_replica_input_shapes");
  build(intake.shapes().resolve(shapes_from_inputs(setup.features, inputs.leaves())));
}

void Engine::build_from_batch_size(std::int64_t batch_size) {
  setup.require_same_process("build");
  const std::lock_guard lock(store.building());
  if (store.built()) return;
  if (batch_size < 0)
    throw ValueError("build: per_replica_batch_size must be >= 0, got " +
                     std::to_string(batch_size));
  if (!setup.accelerated()) return build({});
  if (batch_size == 0 && setup.has_one_batch_size())
    throw ValueError("build: the batch-size revision takes a per_replica_batch_size, got none");
  build(intake.shapes().resolve(batch_size > 0 ? shapes_from_batch_size(setup.features, batch_size)
                                               : std::vector<Shape>()));
}

SettledTables Engine::settled_tables(std::string_view call) {
  std::shared_ptr<Tables> tables;  // outlives the lock, which may be theirs
  auto lock = runner.lock(call);
  setup.group->meet();
  tables = store.held(call);
  if (store.owns(*tables)) {
    runner.flush();
    return {tables, std::move(lock), *tables, progress.steps()};
  }
  lock.unlock();  // two engines that each hold their own and want the other's would wait for ever
  lock = tables->steps->settle(call);
  if (store.held(call) != tables)
    throw StateError(std::string(call) + ": the strategy was given other tables meanwhile");
  return {tables, std::move(lock), *tables, tables->steps->count()};
}

SettledTables Engine::settled_or_restored(std::string_view call) {
  setup.require_same_process(call);
  if (!store.built()) {
    std::unique_lock no_build(store.building());
    if (Tables* const restored = store.restored()) {
      progress.require_not_failed(call);
      setup.group->meet();
      return {nullptr, std::move(no_build), *restored, progress.steps()};
    }
  }
  return settled_tables(call);
}

void Engine::require_tables(std::string_view call) const {
  setup.require_same_process(call);
  if (store.built()) return;
  const std::lock_guard no_build(store.building());
  if (store.restored() == nullptr) store.require_built(call);
}

void Engine::require_usable(std::string_view call) const {
  setup.require_accelerated(call);
  setup.require_same_process(call);
  progress.require_not_failed(call);
  runner.stepping().refuse_reentry();
  store.building().refuse_reentry();
}

Feed Engine::accept(std::string_view call, std::span<const Batch> batches,
                    const EnqueueOptions& options, std::optional<std::int32_t> replica) {
  Feed feed = make_feed(setup, batches, options, replica);
  intake.check(feed, call, store.built());
  const std::lock_guard no_build(store.building());
  if (store.built())
    intake.check_built(feed);
  else
    build(intake.first_shapes(feed, call));
  return feed;
}

void Engine::enqueue(std::span<const Batch> batches, const EnqueueOptions& options,
                     std::optional<std::int32_t> replica) {
  require_usable("enqueue");
  const FloatEnvironment ours;
  const Feed feed = accept("enqueue", batches, options, replica);
  store.own();
  Step& step = schedule.open(feed.cores, feed.timeout);
  try {
    intake.read(step, feed);
    schedule.commit(feed.cores, feed.training, feed.name);
  } catch (...) {
    schedule.release(feed.cores);
    throw;
  }
}

Engine::Outputs Engine::memory_for(std::string_view call, const Step& step, LentBuffer& buffer,
                                   std::optional<Outputs> outputs) {
  if (!outputs) return (buffer = pool->lend(step.shape))->values;
  check_outputs(call, setup, step.shape, *outputs);
  return *outputs;
}

LentBuffer Engine::dequeue(const DequeueOptions& options, bool sequential,
                           std::optional<Outputs> outputs) {
  setup.require_accelerated("dequeue");
  const FloatEnvironment ours;
  const Schedule::Timeout timeout = Schedule::checked_timeout("dequeue", options.timeout);
  std::optional<Patience> patience;
  for (;; schedule.await_batches(timeout, patience)) {
    try {
      const auto lock = runner.lock("dequeue");
      store.own();
      Step* step = schedule.next_to_dequeue(sequential);
      if (!step) continue;
      join_shapes(*step);
      LentBuffer buffer;
      setup.group->or_tell([&] { outputs = memory_for("dequeue", *step, buffer, outputs); });
      runner.look_up_queued(*step, *outputs);
      schedule.dequeued();
      return buffer;
    } catch (...) {
      schedule.pass_on();
      throw;
    }
  }
}

Step* Engine::look_up(std::span<const Batch> batches, bool training, LentBuffer& buffer,
                      std::optional<Outputs> outputs) {
  require_usable("look_up");
  const FloatEnvironment ours;
  EnqueueOptions options;
  options.training = training;
  Feed feed;
  // What fails before anything is sent fails the call of the other hosts too.
  const auto tell_others = [&](std::string_view reason) {
    if (!setup.group->several()) return;
    const std::lock_guard lock(runner.stepping());
    setup.group->tell(reason);
  };
  try {
    if (outputs) store.require_built("look_up");  // a refused call builds nothing
    feed = accept("look_up", batches, options);
  } catch (const std::exception& error) {
    tell_others(error.what());
    throw;
  } catch (...) {
    tell_others("unknown error");
    throw;
  }
  const auto lock = runner.lock("look_up");
  store.own();
  Step* step = schedule.take();
  try {
    setup.group->or_tell([&] {
      intake.read(*step, feed);
      step->training = training;
      join_shapes(*step);
      outputs = memory_for("look_up", *step, buffer, outputs);
    });
    runner.look_up(*step, *outputs);
  } catch (...) {
    schedule.give_back(step);
    throw;
  }
  if (training) return step;
  schedule.give_back(step);
  return nullptr;
}

void Engine::apply_gradients(FunctionRef<void()> check, GradientsOfReplica gradients) {
  setup.require_accelerated("apply_gradients");
  const FloatEnvironment ours;
  const auto lock = runner.lock("apply_gradients");
  store.own();
  const Schedule::Awaiting awaiting = schedule.awaiting_gradients();
  setup.group->or_tell(check);
  runner.apply_queued(awaiting, gradients);
}

void Engine::apply_looked_up(FunctionRef<Step*()> checked, GradientsOfReplica gradients,
                             FunctionRef<void()> used) {
  const FloatEnvironment ours;
  const auto lock = runner.lock("apply_gradients");
  store.own();
  Step* step = nullptr;
  setup.group->or_tell([&] { step = checked(); });
  try {
    runner.apply(*step, gradients);
  } catch (...) {
    if (!progress.failure().empty()) used();
    throw;
  }
  used();
}

ActivationBuffer* Engine::dequeue_of(std::int32_t replica, const DequeueOptions& options) {
  setup.require_accelerated("dequeue");
  store.require_built("dequeue");
  require_usable("dequeue");
  Schedule::checked_timeout("dequeue", options.timeout);
  schedule.note();
  return replica_calls.dequeue(replica,
                               [&](bool sequential) { return dequeue(options, sequential); });
}

void Engine::apply_gradients_of(std::int32_t replica, const Nested<Gradient>& gradients) {
  setup.require_accelerated("apply_gradients");
  store.require_built("apply_gradients");
  require_usable("apply_gradients");
  schedule.awaiting_gradients();
  check_gradient_structure(setup, gradients);
  replica_calls.apply_gradients(replica, gradients,
                                [&](GradientsOfReplica all) { apply_gradients([] {}, all); });
}

void Engine::join_shapes(Step& step) const {
  step.shape.clear();
  for (std::int32_t first = 0; first < setup.cores; first += setup.cores_per_replica) {
    for (std::int64_t i = 0; i < setup.features.size(); ++i) {
      Shape shape = step.reader(first, i).output_shape();
      for (std::int32_t c = first + 1; c < first + setup.cores_per_replica; ++c)
        shape = shape.with_leading(shape[0] + step.reader(c, i).output_shape()[0]);
      step.shape.push_back(shape.append(setup.table(i).config.dim));
    }
  }
}

RestoreReport Engine::restore(const checkpoint::StepSource& source, const RestoreOptions& options) {
  setup.require_same_process("restore");
  const std::lock_guard no_step(runner.stepping());
  const std::lock_guard no_build(store.building());
  setup.group->meet();
  const bool failed = !progress.failure().empty(), refused = schedule.awaits_refused();
  setup.group->together("restore", [&] {
    if (store.built()) store.own();
    if (!failed && !refused) schedule.require_no_gradients_outstanding("restore");
  });
  // Hosts that gave up on each other cannot meet again.
  std::unique_ptr<HostTeam> hosts;
  return store.restore(source, options, progress,
                       {.before_rows_change =
                            [&](bool all) {
                              // What is overwritten need not be updated, and an update that cannot
                              // be prepared must not stand in the way.
                              if (!failed && all && options.tables.empty()) {
                                if (refused) schedule.drop_dequeued();
                                runner.forget_last_step();
                              } else if (!failed) {
                                schedule.require_no_gradients_outstanding("restore");
                                runner.flush();
                              } else if (setup.accelerated() && store.built()) {
                                hosts = runner.make_hosts(store.own());
                              }
                            },
                        .recovered = [&] { runner.recover(std::move(hosts)); }});
}

MemoryReport Engine::memory() const {
  setup.require_same_process("memory");
  const std::lock_guard no_step(runner.stepping());
  const std::lock_guard no_build(store.building());
  MemoryReport report;
  store.report(report);
  MemoryReport::Entry scratch;
  scratch.name = "scratch";
  scratch.bytes = schedule.scratch_bytes() + pool->bytes() + runner.scratch_bytes();
  report.total_bytes += scratch.bytes;
  report.entries.push_back(std::move(scratch));
  return report;
}

Engine& engine_of(const Embedding& embedding) noexcept { return *embedding.engine_; }

}  // namespace embertable::engine
