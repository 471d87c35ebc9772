#include "engine/gradient_tiles.h"

#include <algorithm>
#include <cstring>

#include "kernels/finite.h"
#include "step/bucket_policy.h"
#include "step/workers.h"

namespace embertable::engine {

void copy_floats(const GradientPart& part) noexcept {
  if (part.count == 0) return;
  if (part.values.is_double()) {
    const double* const from = static_cast<const double*>(part.values.data()) + part.first;
    for (std::int64_t i = 0; i < part.count; ++i) part.copy[i] = static_cast<float>(from[i]);
  } else {
    std::memcpy(part.copy, static_cast<const float*>(part.values.data()) + part.first,
                static_cast<std::size_t>(part.count) * sizeof(float));
  }
}

void GradientTiles::clear() noexcept {
  tiles_.clear();
  floats_ = 0;
}

void GradientTiles::add(const GradientPart& part) {
  for (std::int64_t at = 0; at < part.count; at += kGradientTileFloats) {
    Tile& tile = tiles_.emplace_back(Tile{.part = part, .before = at});
    tile.part.first += at;
    tile.part.count = std::min(part.count - at, kGradientTileFloats);
    if (part.copy != nullptr) tile.part.copy += at;
  }
  floats_ += part.count;
}

std::optional<GradientTiles::Place> GradientTiles::run(Executor& executor,
                                                       std::int64_t inline_floats, bool check,
                                                       SimdLevel level) {
  if (tiles_.empty()) return std::nullopt;
  run_items(executor, inline_floats, std::ssize(tiles_), floats_, [&](const WorkItem& work) {
    Tile& tile = tiles_[work.index];
    const GradientPart& part = tile.part;
    if (part.copy != nullptr) copy_floats(part);
    if (!check) return;
    const float* const values = part.copy != nullptr
                                    ? part.copy
                                    : static_cast<const float*>(part.values.data()) + part.first;
    const std::int64_t bad = first_not_finite(values, part.count, level);
    if (bad < part.count) tile.bad = tile.before + bad;
  });
  std::optional<Place> first;
  for (const Tile& tile : tiles_) {
    if (tile.bad < 0) continue;
    const Place place = {tile.part.core, tile.part.feature, tile.bad};
    first = first ? std::min(*first, place) : place;
  }
  return first;
}

}  // namespace embertable::engine
