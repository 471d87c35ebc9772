#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"

namespace embertable {

/// One step of a program, recorded before it runs, as often as wanted: which calls it makes of an
/// engine, in which order, under which tags. A tag holds the calls of one batch together: one
/// enqueue, one dequeue, and one apply_gradients or none, which says whether the batch is one of
/// training. Untagged calls are made as they were recorded. Only the public calls of `Embedding`
/// are made. Source: TF tpu_embedding_v2.py, _add_key_attr; TPU embedding rewriting of tagged
/// calls.
class EMBERTABLE_API StepDescriptor {
 public:
  using Batches = std::function<std::span<const Batch>()>;
  using Receiver = std::function<void(Activations)>;
  using GradientTrees = std::function<std::span<const Nested<Gradient>>()>;

  /// `batches` is asked in each run: one for all replicas or one for each. With a tag, `training`
  /// does not count: the batch is one of training if gradients are recorded under the tag.
  void enqueue(Batches batches, std::string tag = {}, bool training = true);

  /// `receive` is called in each run.
  void dequeue(Receiver receive, std::string tag = {});

  /// `gradients` is asked in each run: one tree for each replica.
  void apply_gradients(GradientTrees gradients, std::string tag = {});

  /// Throws StateError naming the tag unless under each one batch is enqueued, then dequeued, then
  /// possibly given gradients, once each, and batches are dequeued in the order in which they are
  /// enqueued, gradients given in the order in which they are dequeued.
  void check() const;

  /// Whether the batch of a tag is one of training. False for an unknown tag.
  bool trains(std::string_view tag) const;

  /// Checks, then makes the calls in their order. What a call throws ends the run; the calls before
  /// it have been made.
  void run(Embedding& engine) const;

  /// The same for one replica on its own thread; batches and gradients are one each.
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
