// Binds the steps of an engine: enqueue, dequeue, apply_gradients, look_up, and a replica's part of
// them.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"
#include "python/src/collected.h"
#include "python/src/engine.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Name = std::optional<std::string>;

/// Timeout of calls that might wait at a queue for another thread: they do not, since Ctrl-C could
/// not end that.
constexpr std::chrono::milliseconds kAtOnce{0};

EnqueueOptions enqueue_options(bool training, const Name& name) {
  return {.training = training, .name = name.value_or(""), .timeout = kAtOnce};
}

/// Keeps a loan while its arrays live.
nb::object loan(Activations activations) {
  return nb::capsule(new Activations(std::move(activations)),
                     [](void* kept) noexcept { delete static_cast<Activations*>(kept); });
}

/// Returns NumPy arrays over the activations, in the containers of the configuration. The caller
/// may change the memory until the last of them is gone.
nb::object arrays_of(const Engine& engine, const Activations& activations) {
  const nb::object owner = loan(activations);
  std::vector<nb::object> trees;
  for (std::int32_t r = 0; r < activations.replicas(); ++r) {
    std::vector<nb::object> leaves;
    for (std::int64_t i = 0; i < activations.features(); ++i) {
      const Activation activation = activations(i, r);
      leaves.push_back(
          numpy_view(const_cast<float*>(activation.values.data()), activation.shape.dims(), owner));
    }
    trees.push_back(engine.configuration().pack(leaves));
  }
  return per_replica(trees);
}

void enqueue(Engine& self, nb::handle features, nb::handle weights, bool training,
             const Name& name) {
  if (!self.embedding().accelerated())
    return self.run([](Embedding& embedding) { embedding.enqueue(Batch{FeatureIds()}); });
  const Batches read = read_batches(features, weights, self.configuration().structure());
  self.run([&](Embedding& embedding) {
    embedding.enqueue(read.batches, enqueue_options(training, name));
  });
}

/// Memory that a dequeue writes to, and its name in messages.
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

nb::object dequeue_into(Engine& self, const nb::object& out) {
  std::vector<WritableArray> arrays;
  std::vector<std::span<float>> spans;
  std::vector<Output> outputs;
  for (const nb::object& one : by_replica(out)) {
    const Tree tree = to_tree(one, Lists::kOfNumbersAreLeaves, self.configuration().structure());
    assert_same_structure(self.configuration().structure(), tree.structure(), "out");
    for (std::int64_t i = 0; i < tree.size(); ++i) {
      const std::string what = "feature '" + tree.path(i) + "': out";
      arrays.emplace_back(tree[i], what);
      spans.push_back(arrays.back().span());
      outputs.push_back({spans.back(), what});
    }
  }
  check_apart(std::move(outputs));
  self.run([&](Embedding& embedding) { embedding.dequeue(spans, {kAtOnce}); });
  return out;
}

nb::object dequeue(Engine& self, nb::object out) {
  if (!out.is_none()) return dequeue_into(self, out);
  return arrays_of(self,
                   self.run([](Embedding& embedding) { return embedding.dequeue({kAtOnce}); }));
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

void apply_gradients(Engine& self, nb::handle gradients, nb::handle token) {
  const auto& embedding = self.embedding();
  if (!embedding.accelerated() || !embedding.built())  // before the argument is looked at
    return self.run([](Embedding& e) { e.apply_gradients(Nested<Gradient>(Gradient::none())); });
  Token* kept = nullptr;
  if (!token.is_none() && (!nb::try_cast(token, kept) || !kept))
    throw TypeError("token must be a LookupToken, got " + type_text(token));
  const Gradients read = read_gradients(gradients, self.configuration().structure());
  self.run([&](Embedding& e) {
    if (kept) {
      e.apply_gradients(std::move(kept->token), read.trees);
    } else {
      e.apply_gradients(read.trees);
    }
  });
}

nb::tuple look_up(nb::handle self, nb::handle features, nb::handle weights, bool training) {
  auto& engine = nb::cast<Engine&>(self);
  const Batches read = read_batches(features, weights, engine.configuration().structure());
  LookupResult result =
      engine.run([&](Embedding& embedding) { return embedding.look_up(read.batches, training); });
  nb::object token = nb::none();
  if (result.token.valid()) token = nb::cast(Token{nb::borrow(self), std::move(result.token)});
  return nb::make_tuple(arrays_of(engine, result.activations), token);
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

void enqueue_replica(Replica& self, nb::handle features, nb::handle weights, bool training,
                     const Name& name) {
  const Batches read = read_batches(features, weights, self.engine().configuration().structure());
  const Batch& batch = read.only();
  self.engine().run(
      [&](Embedding&) { self.replica.enqueue(batch, enqueue_options(training, name)); });
}

nb::object dequeue_replica(Replica& self) {
  return arrays_of(self.engine(),
                   self.engine().run([&](Embedding&) { return self.replica.dequeue({kAtOnce}); }));
}

void apply_gradients_replica(Replica& self, nb::handle gradients) {
  const Gradients read = read_gradients(gradients, self.engine().configuration().structure());
  if (read.trees.size() != 1)
    throw ValueError("a replica takes one tree of gradients, got a PerReplica of " +
                     std::to_string(read.trees.size()));
  self.engine().run([&](Embedding&) { self.replica.apply_gradients(read.trees.front()); });
}

}  // namespace

void bind_steps_of(nb::class_<Engine>& type) {
  type.def(
      "enqueue", enqueue, nb::arg("features").none(), nb::arg("weights") = nb::none(),
      nb::arg("training") = true, nb::arg("name") = nb::none(),
      "Checks and copies one batch (for several replicas a PerReplica of one each, or one that "
      "all\nuse). The first call builds.");
  type.def("dequeue", dequeue, nb::arg("out") = nb::none(),
           "Looks up the oldest batch: arrays in the containers of feature_config, for several "
           "replicas a\nPerReplica of them. The arrays are yours; the engine reuses their memory "
           "once they are gone.\nout: float32 arrays of the same form to write to instead, which "
           "share no memory.");
  type.def("apply_gradients", apply_gradients, nb::arg("gradients").none(),
           nb::arg("token") = nb::none(),
           "Applies one gradient per activation (None: zeros) of the oldest dequeued training "
           "batch, or of\nthe batch that the token is of.");
  type.def("look_up", look_up, nb::arg("features").none(), nb::arg("weights") = nb::none(),
           nb::arg("training") = true,
           "Without the queue: (activations, token), the token being what apply_gradients takes; "
           "None\nunless training.");
  type.def("replica", replica, nb::arg("index").none(),
           "One replica's part of the calls, for a thread of its own.");
}

void bind_replica(nb::module_& module) {
  nb::class_<Token>(module, "LookupToken", nb::type_slots(Collected<Token>::seen),
                    "What look_up keeps of a training batch for its gradients. Used once.")
      .def_prop_ro("valid", [](const Token& self) { return self.token.valid(); });
  nb::class_<Replica>(module, "Replica", nb::type_slots(Collected<Replica>::seen),
                      "One replica of an Embedding, for a thread of its own.")
      .def("enqueue", enqueue_replica, nb::arg("features").none(), nb::arg("weights") = nb::none(),
           nb::arg("training") = true, nb::arg("name") = nb::none())
      .def("dequeue", dequeue_replica)
      .def("apply_gradients", apply_gradients_replica, nb::arg("gradients").none());
}

}  // namespace embertable::python
