// Binds the steps of an engine: enqueue, dequeue, apply_gradients, look_up, and a replica's part of
// them.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/described.h"
#include "python/src/dlpack/bags.h"
#include "python/src/dlpack/exchange_api.h"
#include "python/src/engine.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Name = std::optional<std::string>;

/// Returns whether a value counts as true, as `if` decides, NumPy's and TensorFlow's included.
/// Throws TypeError for text, of which "no" would be true.
bool truth(nb::handle value, const char* what) {
  if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()))
    throw TypeError(std::string(what) + " must be true or false, got " + type_text(value));
  const int is_true = PyObject_IsTrue(value.ptr());
  if (is_true < 0) throw nb::python_error();
  return is_true != 0;
}

EnqueueOptions enqueue_options(nb::handle training, const Name& name, nb::handle timeout) {
  return {.training = truth(training, "training"),
          .name = name.value_or(""),
          .timeout = wait_of(timeout)};
}

/// Keeps a loan while its arrays live.
nb::object loan(Activations activations) {
  return nb::capsule(new Activations(std::move(activations)),
                     [](void* kept) noexcept { delete static_cast<Activations*>(kept); });
}

/// The kind of arrays that activations are.
struct ArrayKind {
  nb::handle convert;              ///< makes one of NumPy's array, or None
  const dlpack::ExchangeApi* api;  ///< makes one at once, or null
};

ArrayKind array_kind_of(const Engine& engine) { return {engine.convert(), engine.exchange_api()}; }

/// Returns arrays over the activations, in the containers of the configuration. The caller may
/// change the memory until the last of them is gone.
nb::object arrays_of(const Engine& engine, const Activations& activations, const ArrayKind& kind) {
  const nb::object owner = kind.api ? nb::object() : loan(activations);
  std::vector<nb::object> trees;
  for (std::int32_t r = 0; r < activations.replicas(); ++r) {
    trees.push_back(engine.configuration().pack(
        kind.api ? dlpack::arrays_of(activations, r, *kind.api)
                 : numpy_views(activations, r, owner, nb::borrow(kind.convert))));
  }
  return per_replica(trees);
}

nb::object arrays_of(const Engine& engine, const Activations& activations) {
  return arrays_of(engine, activations, array_kind_of(engine));
}

void enqueue(Engine& self, nb::handle features, nb::handle weights, nb::handle training,
             const Name& name, const Name& device, const Name& mode_override, nb::handle timeout) {
  if (!self.embedding().accelerated())
    return self.run([](Embedding& embedding) { embedding.enqueue(Batch{FeatureIds()}); });
  EnqueueOptions options = enqueue_options(training, name, timeout);
  options.device = device.value_or("");
  options.mode_override = mode_override.value_or("");
  const Batches read =
      read_batches(features, weights, self.configuration().structure(), Features::kAll);
  self.run([&](Embedding& embedding) { embedding.enqueue(read.batches, options); });
}

/// Memory that a call writes to, and its name in messages.
struct Output {
  std::span<float> memory;
  std::string what;
};

/// Throws ValueError if two outputs have an element in common, which would hold the second.
void check_apart(std::vector<Output> outputs) {
  std::erase_if(outputs, [](const Output& one) { return one.memory.empty(); });
  std::sort(outputs.begin(), outputs.end(), [](const Output& a, const Output& b) {
    return std::less<>()(a.memory.data(), b.memory.data());
  });
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    const Output &before = outputs[i - 1], &next = outputs[i];
    if (std::less<>()(next.memory.data(), before.memory.data() + before.memory.size()))
      throw ValueError(next.what + " must share no memory with " + before.what);
  }
}

/// The caller's arrays that a call writes to, of which there is one for each activation.
struct CallersArrays {
  std::vector<WritableArray> arrays;
  std::vector<std::span<float>> spans;
};

/// Throws TypeError for arrays of another type, ValueError for another structure and for arrays
/// that share memory.
CallersArrays callers_arrays(const Engine& engine, const nb::object& out) {
  CallersArrays found;
  std::vector<Output> outputs;
  for (const nb::object& one : by_replica(out)) {
    const Tree tree = to_tree(one, Lists::kOfNumbersAreLeaves, engine.configuration().structure());
    assert_same_structure(engine.configuration().structure(), tree.structure(), "out");
    for (std::int64_t i = 0; i < tree.size(); ++i) {
      const std::string what = "feature '" + tree.path(i) + "': out";
      found.arrays.emplace_back(tree[i], what);
      found.spans.push_back(found.arrays.back().span());
      outputs.push_back({found.spans.back(), what});
    }
  }
  check_apart(std::move(outputs));
  return found;
}

nb::object dequeue(Engine& self, nb::object out, nb::handle timeout) {
  const DequeueOptions options{wait_of(timeout)};
  if (!out.is_none()) {
    const CallersArrays to = callers_arrays(self, out);
    self.run([&](Embedding& embedding) { embedding.dequeue(to.spans, options); });
    return out;
  }
  return arrays_of(self,
                   self.run([&](Embedding& embedding) { return embedding.dequeue(options); }));
}

/// What `look_up` keeps of a batch, and the engine that it belongs to.
struct Token {
  nb::object engine;
  LookupToken token;

  template <class Visit>
  void references(Visit visit) {
    visit(engine);
  }
};

/// Throws StateError unless a batch awaits its gradients. Other processes would be told of these
/// gradients, of no replica: where there are some, what is wrong with the caller's stands.
void require_awaiting(Engine& self) {
  if (const StrategyPtr strategy = strategy_of(self.strategy());
      strategy && strategy->is_one_of_several())
    return;
  try {
    self.run([](Embedding& e) { e.apply_gradients(std::span<const Nested<Gradient>>()); });
  } catch (const ValueError&) {  // the number of trees: nothing but them is wrong
  }
}

void apply_gradients(Engine& self, nb::handle gradients, nb::handle token) {
  const auto& embedding = self.embedding();
  if (!embedding.accelerated() || !embedding.built())  // before the argument is looked at
    return self.run([](Embedding& e) { e.apply_gradients(Nested<Gradient>(Gradient::none())); });
  Token* kept = nullptr;
  if (!token.is_none() && (!nb::try_cast(token, kept) || !kept))
    throw TypeError("token must be a LookupToken, got " + type_text(token));
  const Gradients read = [&] {
    try {
      return read_gradients(gradients, self.configuration().structure());
    } catch (const std::exception&) {
      if (!kept) require_awaiting(self);
      throw;
    }
  }();
  self.run([&](Embedding& e) {
    if (kept) {
      e.apply_gradients(std::move(kept->token), read.trees);
    } else {
      e.apply_gradients(read.trees);
    }
  });
}

nb::object token_of(nb::handle engine, LookupToken token) {
  if (!token.valid()) return nb::none();
  return nb::cast(Token{nb::borrow(engine), std::move(token)});
}

nb::tuple look_up(nb::handle self, nb::handle features, nb::handle weights, nb::handle training,
                  nb::handle outputs, const nb::object& out) {
  auto& engine = nb::cast<Engine&>(self);
  const bool trains = truth(training, "training");
  if (!out.is_none()) {
    if (!outputs.is_none()) throw ValueError("look_up: outputs and out exclude each other");
    const CallersArrays to = callers_arrays(engine, out);
    const Batches read =
        read_batches(features, weights, engine.configuration().structure(), Features::kAll);
    LookupToken token = engine.run(
        [&](Embedding& embedding) { return embedding.look_up(read.batches, to.spans, trains); });
    return nb::make_tuple(out, token_of(self, std::move(token)));
  }
  const nb::object convert = outputs.is_none() ? engine.convert() : converter_of(outputs);
  const ArrayKind kind =
      outputs.is_none() ? array_kind_of(engine) : ArrayKind{convert, exchange_api_of(outputs)};
  const Batches read =
      read_batches(features, weights, engine.configuration().structure(), Features::kAll);
  LookupResult result =
      engine.run([&](Embedding& embedding) { return embedding.look_up(read.batches, trains); });
  const nb::object token = token_of(self, std::move(result.token));
  return nb::make_tuple(arrays_of(engine, result.activations, kind), token);
}

/// Looks up tensors as a training loop brings them. Returns (list of tensors, token, samples of the
/// first feature), or None if another road must read them, before anything is done.
nb::object look_up_bags(nb::handle self, nb::handle values, int form, bool training) {
  auto& engine = nb::cast<Engine&>(self);
  const std::optional<Bags> bags =
      read_bags(values, static_cast<BagForm>(form), engine.configuration().structure());
  if (!bags) return nb::none();
  LookupResult result = engine.run([&](Embedding& embedding) {
    return embedding.look_up(std::span(&bags->batch, 1), training);
  });
  const nb::object token = token_of(self, std::move(result.token));
  nb::list tensors;
  for (const nb::object& tensor : dlpack::arrays_of(result.activations, 0, *bags->api))
    tensors.append(tensor);
  return nb::make_tuple(tensors, token, result.activations(0, 0).shape[0]);
}

/// One replica of an engine, for a thread of its own.
struct Replica {
  nb::object object;
  Embedding::Replica replica;

  Engine& engine() const { return nb::cast<Engine&>(object); }
  template <class Visit>
  void references(Visit visit) {
    visit(object);
  }
};

Replica replica(nb::handle self, nb::handle index) {
  const std::int32_t number = integer32(index, "replica: index");
  return {nb::borrow(self), nb::cast<Engine&>(self).embedding().replica(number)};
}

void enqueue_replica(Replica& self, nb::handle features, nb::handle weights, nb::handle training,
                     const Name& name, const Name& mode_override, nb::handle timeout) {
  const Batches read =
      read_batches(features, weights, self.engine().configuration().structure(), Features::kAll);
  const Batch& batch = read.only();
  EnqueueOptions options = enqueue_options(training, name, timeout);
  options.mode_override = mode_override.value_or("");
  self.engine().run([&](Embedding&) { self.replica.enqueue(batch, options); });
}

nb::object dequeue_replica(Replica& self, nb::handle timeout) {
  const DequeueOptions options{wait_of(timeout)};
  return arrays_of(self.engine(),
                   self.engine().run([&](Embedding&) { return self.replica.dequeue(options); }));
}

void apply_gradients_replica(Replica& self, nb::handle gradients) {
  const Gradients read = read_gradients(gradients, self.engine().configuration().structure());
  if (read.trees.size() != 1)
    throw ValueError("a replica takes one tree of gradients, got a PerReplica of " +
                     std::to_string(read.trees.size()));
  self.engine().run([&](Embedding&) { self.replica.apply_gradients(read.trees.front()); });
}

}  // namespace

std::chrono::milliseconds wait_of(nb::handle value) {
  const double seconds = number(value, "timeout");
  if (!(seconds >= 0 && seconds <= 1e9))
    throw ValueError("timeout must be 0..1e9 seconds, got " + text(value));
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

void bind_steps_of(nb::class_<Engine>& type) {
  type.def(
      "enqueue", enqueue, nb::arg("features").none(), nb::arg("weights") = nb::none(),
      nb::arg("training").none() = true, nb::arg("name") = nb::none(),
      nb::arg("device") = nb::none(), nb::kw_only(), nb::arg("mode_override") = nb::none(),
      nb::arg("timeout") = 0,
      R"(Checks and copies one batch, and returns before any work on rows. The first call builds.

features: ids in the containers of feature_config: an array of dense ids [n] or S + [1], RaggedIds or
SparseIds, or their equivalents of TensorFlow and PyTorch. For several replicas a PerReplica of one
batch each, a tree that has PerReplicas, or one batch that all use. weights: the same containers, with
RaggedWeights, SparseWeights or None as leaves; None: all 1. training: gradients will follow. name:
labels the batch in messages. device: the name of a core ("TPU:1"), whose batch this is alone.
mode_override: "train", "training" or "unspecified", or "inference", instead of training. timeout: seconds to wait
for another thread to make room in a full queue; Ctrl-C ends the wait.

Raises RuntimeError if the engine is plain or a queue is full; TypeError and ValueError for another
structure or shape, DataError for wrong ids, naming feature, replica, position, value and rule.
Nothing has changed then.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 2])))");
  type.def(
      "dequeue", dequeue, nb::arg("out") = nb::none(), nb::kw_only(), nb::arg("timeout") = 0,
      R"(Looks up the oldest batch. Gives arrays S + [dim] in the containers of feature_config, for several
replicas a PerReplica of them. The arrays are yours; the engine reuses their memory once they are gone.

out: float32 arrays of the same form to write to instead, which share no memory; they are returned.
timeout: seconds to wait for another thread's batch; Ctrl-C ends the wait.
Raises RuntimeError if the engine is plain, no batch waits, or the training batch before lacks its
gradients; ValueError naming the feature for an out that does not fit.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 2]), training=False)
>>> embedding.dequeue().shape
(2, 4))");
  type.def(
      "apply_gradients", apply_gradients, nb::arg("gradients").none(),
      nb::arg("token") = nb::none(),
      R"(Updates the rows of the oldest dequeued training batch, each once, by the rule of its table.

gradients: one array for each activation, of its shape, float32 or float64, in the containers of
feature_config; None: zeros. token: of look_up, whose batch it is instead. Raises RuntimeError if no
batch awaits gradients; TypeError or ValueError for another structure, shape or kind of number; with
gradient_policy "error" DataError for infinite and NaN gradients. Nothing has changed then.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 2]))
>>> embedding.apply_gradients(np.ones_like(embedding.dequeue()))
>>> embedding.step
1)");
  type.def(
      "drop_unmatched_batches",
      [](Engine& self) {
        return self.run([](Embedding& embedding) { return embedding.drop_unmatched_batches(); });
      },
      R"(Drops the batches of steps that some replica of this process has enqueued none for, as one leaves behind
that fails alone: the others would be a batch ahead of it from then on. Gives how many batches. Other processes
are not told. Raises RuntimeError if the engine is plain, and while another thread enqueues.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> strategy = embertable.EngineStrategy(replicas_per_host=2, threads=1)
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), strategy)
>>> embedding.replica(0).enqueue(np.array([1, 2]))
>>> embedding.drop_unmatched_batches()
1)");
  type.def(
      "drop_queued_batches",
      [](Engine& self, nb::handle steps) {
        std::optional<std::int64_t> newest;
        if (!steps.is_none()) newest = integer(steps, "drop_queued_batches: steps");
        return self.run(
            [&](Embedding& embedding) { return embedding.drop_queued_batches(newest); });
      },
      nb::arg("steps") = nb::none(),
      R"(Drops the newest `steps` steps that every replica has enqueued its batch for and none has dequeued, by default
all, and what drop_unmatched_batches drops: an error between enqueue and dequeue leaves them behind, and the next dequeue
would look up a batch that nobody expects. Gives how many steps. Waits for a step that another thread runs. Other processes
are not told: if not all call it after the same enqueue, the next call of all raises, or steps go on with batches that were
not enqueued together. Raises ValueError for negative steps; RuntimeError if plain, not built or failed, in a forked
process, in a function that a step calls, and while another thread enqueues.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> for ids in ([1, 2], [3, 4], [5, 6]):
...     embedding.enqueue(np.array(ids))
>>> embedding.drop_queued_batches(1), embedding.drop_queued_batches()
(1, 2))");
  type.def(
      "drop_dequeued_batches",
      [](Engine& self) {
        return self.run([](Embedding& embedding) { return embedding.drop_dequeued_batches(); });
      },
      R"(Drops the training batches that were dequeued and lack their gradients, as an error of the model leaves them
behind: no row changes, and they are no steps. Those that wait in the queue stay. Gives how many steps. Waits for a step
that another thread runs. Other processes are not told: all must call it after the same dequeue. Raises RuntimeError if
plain, not built or failed, in a forked process, and in a function that a step calls.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 2]))
>>> activations = embedding.dequeue()
>>> embedding.drop_dequeued_batches()
1
>>> embedding.step
0)");
  type.def_prop_ro(
      "queued_batches",
      [](Engine& self) {
        return self.ask([](const Embedding& embedding) { return embedding.queued_batches(); });
      },
      "For how many steps every replica has enqueued its batch and none has dequeued it.");
  type.def_prop_ro(
      "awaiting_gradients",
      [](Engine& self) {
        return self.ask([](const Embedding& embedding) { return embedding.awaiting_gradients(); });
      },
      "How many training batches were dequeued and lack their gradients: at most one, or two with "
      "pipelining.");
  type.def(
      "abandon_step",
      [](Engine& self, nb::handle reason) {
        const std::string why = utf8(reason, "abandon_step: reason");
        self.run([&](Embedding& embedding) { embedding.abandon_step(why); });
      },
      nb::arg("reason").none(),
      R"(Tells the other processes, in the call that they make together now or next, that this one cannot take part
in it: theirs raises RuntimeError naming this host and the reason. Nothing changes on any host, and all can go on.
Does nothing if this process is all hosts. Raises TypeError, and RuntimeError unless built.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.build(per_replica_batch_size=2)
>>> embedding.abandon_step("the reader has no more batches"))");
  type.def(
      "look_up", look_up, nb::arg("features").none(), nb::arg("weights") = nb::none(),
      nb::arg("training").none() = true, nb::kw_only(), nb::arg("outputs") = nb::none(),
      nb::arg("out") = nb::none(),
      R"(Looks a batch up at once, without the queue. Gives (activations, token), the token being what
apply_gradients takes; None unless training. Tokens may be applied in any order, each once.

features, weights, training: as for enqueue. outputs: the kind of arrays that these activations are, one
of those of the engine's argument, whose kind None is. out: arrays to write to instead, as for dequeue,
if the engine is built. Raises what enqueue raises, ValueError for another kind and for an out that does
not fit.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> activations, token = embedding.look_up(np.array([1, 2]))
>>> embedding.apply_gradients(activations, token)
>>> token.valid
False)");
  type.def("replica", replica, nb::arg("index").none(),
           R"(Gives one replica's part of the calls, for a thread of its own: see Replica.

index: the replica's number among those of this process. Raises ValueError if there is none of that
number, RuntimeError if the engine is plain.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.replica(0).enqueue(np.array([1, 2])))");
}

void bind_replica(nb::module_& module) {
  module.def("_look_up_bags", look_up_bags, nb::arg("engine"), nb::arg("values").none(),
             nb::arg("form"), nb::arg("training"));
  module.def(
      "_exchanges", [](nb::handle type) { return dlpack::api_of_type(type) != nullptr; },
      nb::arg("type"));
  nb::class_<Token>(module, "LookupToken", nb::type_slots(Collected<Token>::seen),
                    R"(What look_up keeps of a training batch for its gradients. Used once.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> activations, token = embedding.look_up(np.array([1, 2]))
>>> token
LookupToken(valid))")
      .def_prop_ro("valid", [](const Token& self) { return self.token.valid(); })
      .def("__repr__", described);
  nb::class_<Replica>(module, "Replica", nb::type_slots(Collected<Replica>::seen),
                      R"(One replica of an Embedding, for a thread of its own.

>>> embedding = embertable.Embedding(embertable.FeatureConfig(embertable.TableConfig(8, 4)), embertable.SGD(0.1),
...                                  embertable.EngineStrategy(replicas_per_host=2, threads=1))
>>> for i in range(2):
...     embedding.replica(i).enqueue(np.array([i]), training=False)
>>> [activations.shape for activations in embedding.dequeue()]
[(1, 4), (1, 4)])")
      .def("enqueue", enqueue_replica, nb::arg("features").none(), nb::arg("weights") = nb::none(),
           nb::arg("training").none() = true, nb::arg("name") = nb::none(), nb::kw_only(),
           nb::arg("mode_override") = nb::none(), nb::arg("timeout") = 0,
           R"(Enqueues this replica's batch; other replicas do so on their threads.

features, weights, training, name, mode_override, timeout: as for Embedding.enqueue, but for one replica.
Raises what that raises.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.replica(0).enqueue(np.array([1, 2]), training=False))")
      .def("__repr__", [](const Replica&) { return "Replica of an Embedding"; })
      .def("dequeue", dequeue_replica, nb::kw_only(), nb::arg("timeout") = 0,
           R"(Gives this replica's activations of the oldest batch, once all replicas have called.

timeout: seconds to wait for the batch of another thread. Raises RuntimeError naming the absent
replicas after the strategy's timeout. Ctrl-C ends both waits.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> replica = embedding.replica(0)
>>> replica.enqueue(np.array([1, 2]), training=False)
>>> replica.dequeue().shape
(2, 4))")
      .def("apply_gradients", apply_gradients_replica, nb::arg("gradients").none(),
           R"(Hands this replica's gradients over; the update runs once all replicas have called.

gradients: one array for each activation, as for Embedding.apply_gradients. Raises what that raises,
and RuntimeError naming the absent replicas after the strategy's timeout. Ctrl-C ends the wait.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> replica = embedding.replica(0)
>>> replica.enqueue(np.array([1, 2]))
>>> replica.apply_gradients(replica.dequeue()))");
}

}  // namespace embertable::python
