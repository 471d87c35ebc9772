#include "embertable/tensorflow/step_descriptor.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"

namespace embertable {
namespace {

template <class T>
const T& only(std::span<const T> given, const char* call, const char* what) {
  if (given.size() == 1) return given.front();
  throw ValueError(std::string(call) + ": a replica's step has one " + what + ", got " +
                   std::to_string(given.size()));
}

template <class Function>
void require_function(const Function& function, const char* call, const char* what) {
  if (!function)
    throw ValueError(std::string(call) + ": " + what + " must be a function, got none");
}

}  // namespace

void StepDescriptor::enqueue(Batches batches, std::string tag, bool training) {
  require_function(batches, "enqueue", "batches");
  calls_.push_back({.kind = Kind::kEnqueue,
                    .tag = std::move(tag),
                    .training = training,
                    .batches = std::move(batches)});
}

void StepDescriptor::dequeue(Receiver receive, std::string tag) {
  require_function(receive, "dequeue", "receive");
  calls_.push_back({.kind = Kind::kDequeue, .tag = std::move(tag), .receive = std::move(receive)});
}

void StepDescriptor::apply_gradients(GradientTrees gradients, std::string tag) {
  require_function(gradients, "apply_gradients", "gradients");
  calls_.push_back(
      {.kind = Kind::kApplyGradients, .tag = std::move(tag), .gradients = std::move(gradients)});
}

/// Returns the tags of the calls of one kind, in their order.
std::vector<std::string> StepDescriptor::tags(Kind kind) const {
  std::vector<std::string> tags;
  for (const Call& call : calls_)
    if (call.kind == kind && !call.tag.empty()) tags.push_back(call.tag);
  return tags;
}

/// Returns the position of the first such call; calls_.size() if there is none.
std::size_t StepDescriptor::place(Kind kind, const std::string& tag) const {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.kind == kind && call.tag == tag;
  });
  return static_cast<std::size_t>(found - calls_.begin());
}

bool StepDescriptor::trains(std::string_view tag) const {
  return !tag.empty() && place(Kind::kApplyGradients, std::string(tag)) < calls_.size();
}

void StepDescriptor::check(const std::string& tag) const {
  const auto refuse = [&](const std::string& rule) {
    throw StateError("step: tag '" + tag + "' must have " + rule);
  };
  const auto count = [&](Kind kind) {
    const std::vector<std::string> all = tags(kind);
    return std::count(all.begin(), all.end(), tag);
  };
  const auto enqueues = count(Kind::kEnqueue), dequeues = count(Kind::kDequeue),
             applies = count(Kind::kApplyGradients);
  if (enqueues != 1) refuse("one enqueue, got " + std::to_string(enqueues));
  if (dequeues != 1) refuse("one dequeue, got " + std::to_string(dequeues));
  if (applies > 1) refuse("one apply_gradients at most, got " + std::to_string(applies));
  const std::size_t dequeue = place(Kind::kDequeue, tag);
  if (dequeue < place(Kind::kEnqueue, tag)) refuse("its enqueue before its dequeue");
  if (place(Kind::kApplyGradients, tag) < dequeue) refuse("its dequeue before its apply_gradients");
}

/// Checks the order of calls, because the queues are first in, first out.
void StepDescriptor::check_order(Kind kind, Kind before) const {
  const std::vector<std::string> later = tags(kind);
  for (std::size_t i = 1; i < later.size(); ++i) {
    if (place(before, later[i]) > place(before, later[i - 1])) continue;
    throw StateError("step: tag '" + later[i] + "' must come before tag '" + later[i - 1] +
                     "' in each kind of call, as it does in one");
  }
}

void StepDescriptor::check() const {
  for (const Call& call : calls_)
    if (!call.tag.empty()) check(call.tag);
  check_order(Kind::kDequeue, Kind::kEnqueue);
  check_order(Kind::kApplyGradients, Kind::kDequeue);
}

template <class Enqueue, class Dequeue, class Apply>
void StepDescriptor::run(Enqueue enqueue, Dequeue dequeue, Apply apply) const {
  check();
  for (const Call& call : calls_) {
    switch (call.kind) {
      case Kind::kEnqueue:
        enqueue(call.batches(), call.tag.empty() ? call.training : trains(call.tag), call.tag);
        break;
      case Kind::kDequeue:
        call.receive(dequeue());
        break;
      case Kind::kApplyGradients:
        apply(call.gradients());
        break;
    }
  }
}

void StepDescriptor::run(Embedding& engine) const {
  run([&](std::span<const Batch> batches, bool training,
          const std::string& tag) { engine.enqueue(batches, {.training = training, .name = tag}); },
      [&] { return engine.dequeue(); },
      [&](std::span<const Nested<Gradient>> trees) { engine.apply_gradients(trees); });
}

void StepDescriptor::run(Embedding::Replica replica) const {
  run(
      [&](std::span<const Batch> batches, bool training, const std::string& tag) {
        replica.enqueue(only(batches, "enqueue", "batch"), {.training = training, .name = tag});
      },
      [&] { return replica.dequeue(); },
      [&](std::span<const Nested<Gradient>> trees) {
        replica.apply_gradients(only(trees, "apply_gradients", "tree of gradients"));
      });
}

}  // namespace embertable
