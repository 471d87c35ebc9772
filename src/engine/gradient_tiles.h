#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "embertable/batch.h"
#include "embertable/executor.h"
#include "kernels/level.h"

namespace embertable::engine {

/// Part of a gradient of a replica that is one core's, on its way into a step.
struct GradientPart {
  std::int64_t core = 0, feature = 0;
  FloatSpan values;        ///< the replica's, caller-owned
  std::int64_t first = 0;  ///< first number of the part among them
  std::int64_t count = 0;  ///< numbers of the part
  float* copy = nullptr;   ///< where the part goes; null: it is read in place
};

/// Copies the numbers of a part to where they go, rounded to binary32.
void copy_floats(const GradientPart& part) noexcept;

/// The gradients of a step on their way in, cut into tiles that workers copy and check in one
/// parallel region. Its memory is reused.
class GradientTiles {
 public:
  /// Forgets all parts.
  void clear() noexcept;

  /// Requires: doubles have a copy.
  void add(const GradientPart& part);

  /// A number of one core's gradient.
  struct Place {
    std::int64_t core = 0, feature = 0, position = 0;
    auto operator<=>(const Place&) const = default;
  };

  /// Copies the parts that have a copy. If `check`, returns the first number that is infinite or
  /// NaN, by core, feature and position. Requires: as run_items.
  std::optional<Place> run(Executor& executor, std::int64_t inline_floats, bool check,
                           SimdLevel level);

 private:
  struct Tile {
    GradientPart part;
    std::int64_t before = 0;  ///< numbers of the core's part before the tile
    std::int64_t bad = -1;    ///< first number of the core's part that is not finite; -1: none
  };
  std::vector<Tile> tiles_;
  std::int64_t floats_ = 0;
};

}  // namespace embertable::engine
