#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/fork_guard.h"
#include "base/memory.h"
#include "embertable/shape.h"

namespace embertable::engine {

class ActivationPool;

/// Memory of one step's activations with its shapes; counts the views that hold it.
struct ActivationBuffer {
  explicit ActivationBuffer(const Structure& of) : structure(of) {}

  const Structure structure;
  std::atomic<std::int32_t> holders = 0;
  std::vector<Shape> shape;              ///< [replicas * features], S + [dim]
  std::vector<std::span<float>> values;  ///< parallel
  Arena memory;
  std::shared_ptr<ActivationPool> pool;  ///< while lent
};

/// Gives a buffer back to its pool.
struct GiveBack {
  void operator()(ActivationBuffer* buffer) const noexcept;
};
using LentBuffer = std::unique_ptr<ActivationBuffer, GiveBack>;

/// Buffers that are not lent. Outlives its engine for as long as loans are out.
class ActivationPool : public std::enable_shared_from_this<ActivationPool> {
 public:
  /// `structure` is that of the features.
  explicit ActivationPool(const Structure& structure) : structure_(structure) {}

  /// Returns a buffer with one holder and memory for all activations. `shape` gives S + [dim] of
  /// each.
  LentBuffer lend(std::span<const Shape> shape);

  std::int64_t bytes() const;

 private:
  friend struct GiveBack;

  void add_buffer();

  const Structure structure_;
  const ForkGuard home_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<ActivationBuffer>> all_;
  std::vector<ActivationBuffer*> free_;
};

}  // namespace embertable::engine
