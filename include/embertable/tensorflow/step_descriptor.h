#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"

namespace embertable {

/// One step of a program, recorded before it runs, and run any number of times: the calls that it
/// makes of an engine, their order and their tags. A tag holds the calls of one batch together: one
/// enqueue, one dequeue, and one apply_gradients or none, which says whether the batch is one of
/// training. Untagged calls are made in the recorded order. Only the public calls of `Embedding`
/// are made. Source: TF tpu_embedding_v2.py, _add_key_attr; TPU embedding rewriting of tagged
/// calls.
class EMBERTABLE_API StepDescriptor {
 public:
  using Batches = std::function<std::span<const Batch>()>;
  using Receiver = std::function<void(Activations)>;
  using GradientTrees = std::function<std::span<const Nested<Gradient>>()>;

  /// Records an enqueue. `batches` is called in each run and returns one batch for all replicas or
  /// one for each. With a tag, `training` is ignored: the batch is one of training if gradients are
  /// recorded under the tag. Throws ValueError for an empty function.
  void enqueue(Batches batches, std::string tag = {}, bool training = true);

  /// Records a dequeue. `receive` is called in each run. Throws ValueError for an empty function.
  void dequeue(Receiver receive, std::string tag = {});

  /// Records an apply_gradients. `gradients` is called in each run and returns one tree for each
  /// replica. Throws ValueError for an empty function.
  void apply_gradients(GradientTrees gradients, std::string tag = {});

  /// Checks the calls. Throws StateError naming the tag unless under each tag one batch is
  /// enqueued, then dequeued, then possibly given gradients, once each, and batches are dequeued in
  /// the order in which they are enqueued, gradients given in the order in which they are dequeued.
  void check() const;

  /// True if the batch of a tag is one of training. False for an unknown tag.
  bool trains(std::string_view tag) const;

  /// Checks, then makes the calls in their order. An exception of a call ends the run; the calls
  /// before it have been made.
  void run(Embedding& engine) const;

  /// Runs the calls for one replica on its own thread; there is one batch and one tree of gradients
  /// each.
  void run(Embedding::Replica replica) const;

 private:
  enum class Kind { kEnqueue, kDequeue, kApplyGradients };
  struct Call {
    Kind kind;
    std::string tag;
    bool training = true;
    Batches batches = {};
    Receiver receive = {};
    GradientTrees gradients = {};
  };

  std::vector<std::string> tags(Kind kind) const;
  std::size_t place(Kind kind, const std::string& tag) const;
  void check(const std::string& tag) const;
  void check_order(Kind kind, Kind before) const;
  template <class Enqueue, class Dequeue, class Apply>
  void run(Enqueue enqueue, Dequeue dequeue, Apply apply) const;

  std::vector<Call> calls_;
};

}  // namespace embertable
