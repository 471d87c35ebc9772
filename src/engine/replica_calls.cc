#include "engine/replica_calls.h"

#include <algorithm>

#include "embertable/tensorflow/sequential_scope.h"

namespace embertable::engine {

ActivationBuffer* ReplicaCalls::dequeue(std::int32_t replica,
                                        FunctionRef<LentBuffer(bool sequential)> look_up) {
  ActivationBuffer* mine = nullptr;
  at_dequeue_.meet(
      replica, "dequeue", [&] { calls_[replica].sequential = SequentialScope::active(); },
      [&] {
        lent_ = look_up(std::ranges::any_of(calls_, &Call::sequential)).release();
        lent_->holders = static_cast<std::int32_t>(calls_.size());
      },
      [&] { mine = lent_; });
  return mine;
}

void ReplicaCalls::apply_gradients(std::int32_t replica, const Nested<Gradient>& gradients,
                                   FunctionRef<void(GradientsOfReplica)> apply) {
  at_apply_.meet(
      replica, "apply_gradients", [&] { calls_[replica].gradients = &gradients; },
      [&] { apply([&](std::int32_t r) -> auto& { return *calls_[r].gradients; }); }, [] {});
}

void ReplicaCalls::stop(const std::string& why) {
  at_dequeue_.stop(why);
  at_apply_.stop(why);
}

void ReplicaCalls::resume() {
  at_dequeue_.resume();
  at_apply_.resume();
}

void ReplicaCalls::close() {
  at_dequeue_.close();
  at_apply_.close();
}

}  // namespace embertable::engine
