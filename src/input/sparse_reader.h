#pragma once

#include <cstdint>
#include <span>

#include "base/memory.h"
#include "embertable/batch.h"
#include "input/entry_tile.h"
#include "input/feature_spec.h"
#include "input/sparse_order.h"

namespace embertable::input {

/// Reads the entries of a sparse feature by their coordinates: tile by tile if they are in
/// canonical order, else all at once. Borrows what FeatureReader borrows.
class SparseReader {
 public:
  /// Returns S of the batch. Throws ValueError or DataError, see Refusal.
  Shape start(const SparseIds& ids, const Refusal& refuse);

  /// Reads the entries of a tile if they are in order.
  void read_tile(const EntryCopy& copy, EntryTile& tile, std::int64_t tile_index) const noexcept;

  /// Reads all entries again in canonical order, and writes all tiles. The copy's ids and weights
  /// become sorted ones in memory of the arena. Returns how many entries were cut off; where one
  /// is outside of the dense shape, nothing is written.
  std::int64_t sort(EntryCopy& copy, std::span<EntryTile> tiles, Arena& arena);

  /// Throws if an entry is outside of the dense shape.
  void require_all_inside(const Refusal& refuse) const;

  /// Returns the position of an entry of the copy in the caller's arrays, and the output row of an
  /// entry of those.
  std::int64_t position_of(std::int64_t entry) const;
  std::int64_t output_of(std::int64_t position) const;

  bool all_inside() const noexcept { return outside_ < 0; }

 private:
  Coordinates coordinates_;
  std::span<const PlacedEntry> order_;  ///< canonical, if entries were sorted
  std::int64_t outside_ = -1;           ///< first entry outside of the dense shape, or -1
};

}  // namespace embertable::input
