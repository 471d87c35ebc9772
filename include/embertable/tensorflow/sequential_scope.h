#pragma once

#include "embertable/export.h"

namespace embertable {

/// While it lives, steps that its thread dequeues are not pipelined, in any engine: a pending
/// update runs before their lookup, and theirs runs with their gradients. A replica's thread speaks
/// for all replicas of its step. Scopes nest; each ends with what was in force at its construction,
/// and on the thread of its construction. Source: TF tpu_embedding_v2_utils.py,
/// SequentialEmbeddingContext.
class EMBERTABLE_API SequentialScope {
 public:
  SequentialScope() noexcept;
  ~SequentialScope();
  SequentialScope(const SequentialScope&) = delete;
  SequentialScope& operator=(const SequentialScope&) = delete;

  /// Whether the calling thread is within one.
  static bool active() noexcept;

 private:
  const bool before_;
};

}  // namespace embertable
