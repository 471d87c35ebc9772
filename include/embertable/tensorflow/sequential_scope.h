#pragma once

#include "embertable/version.h"

namespace embertable {

/// Turns pipelining off on its thread: while it lives, steps that the thread dequeues are not
/// pipelined, in any engine. A pending update runs before their lookup, and theirs runs with their
/// gradients. A replica's thread decides for all replicas of its step. Scopes nest; each restores
/// what was in force at its construction, and must end on the thread of its construction. Source:
/// TF tpu_embedding_v2_utils.py, SequentialEmbeddingContext.
class EMBERTABLE_API SequentialScope {
 public:
  SequentialScope() noexcept;
  ~SequentialScope();
  SequentialScope(const SequentialScope&) = delete;
  SequentialScope& operator=(const SequentialScope&) = delete;

  /// True if the calling thread is within a scope.
  static bool active() noexcept;

 private:
  const bool before_;
};

}  // namespace embertable
