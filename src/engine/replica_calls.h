#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "engine/activation_buffer.h"
#include "engine/gradient_intake.h"
#include "engine/schedule/rendezvous.h"

namespace embertable::engine {

/// The calls that the replicas of an engine make together, each on a thread of its own. Throws as
/// Rendezvous::meet, and what the work of all throws.
class ReplicaCalls {
 public:
  ReplicaCalls(std::int32_t replicas, std::chrono::milliseconds timeout)
      : calls_(replicas), at_dequeue_(replicas, timeout), at_apply_(replicas, timeout) {}

  /// Takes part in a dequeue. The last replica to come runs `look_up`, whether any of them is in a
  /// SequentialScope, and all get the buffer, of which each is a holder.
  ActivationBuffer* dequeue(std::int32_t replica, FunctionRef<LentBuffer(bool sequential)> look_up);

  /// Brings the gradients of a replica; the last to come runs `apply` with those of all.
  void apply_gradients(std::int32_t replica, const Nested<Gradient>& gradients,
                       FunctionRef<void(GradientsOfReplica)> apply);

  /// Stop, resume and close both calls, as Rendezvous does.
  void stop(const std::string& why);
  void resume();
  void close();

 private:
  struct Call {
    bool sequential = false;
    const Nested<Gradient>* gradients = nullptr;
  };
  std::vector<Call> calls_;           ///< by replica
  ActivationBuffer* lent_ = nullptr;  ///< by the last dequeue
  Rendezvous at_dequeue_;
  Rendezvous at_apply_;
};

}  // namespace embertable::engine
