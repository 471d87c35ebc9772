#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/memory.h"
#include "embertable/batch.h"
#include "input/entry_tile.h"
#include "input/feature_spec.h"
#include "input/ragged_reader.h"
#include "input/sparse_reader.h"
#include "kernels/level.h"
#include "rows/plan.h"

namespace embertable {

/// Reads one feature of one replica's batch into a plan: `start` checks what does not depend on the
/// values and takes memory, `read_tile` checks and copies the values (tiles in any order, on any
/// thread), `finish` throws what was found or completes the plan. Spec and arrays are borrowed
/// until then. Reused batch after batch; a steady sequence of batches allocates nothing.
///
/// Ragged ids of n rows give one output row per row where S has n elements, and sequences of #S / n
/// output rows per row where n divides #S. A varying batch of fewer than S[0] rows gives sequences
/// as long as the product of the other dims. Where S came from `max_sequence_length`, sequences
/// have that length. Source: engine.md 2.7, 3.
class FeatureReader {
 public:
  /// Checks kind, weight kind, shapes and counts. Throws ValueError or DataError naming spec.path
  /// and replica. `buckets` is that of the table's update plan, 0 for inference; counts are made if
  /// it is > 1.
  void start(const FeatureSpec& spec, const FeatureIds& ids, const FeatureWeights& weights,
             std::int32_t replica, std::int32_t buckets, Arena& arena);

  std::int64_t tiles() const noexcept { return static_cast<std::int64_t>(tile_.size()); }
  void read_tile(std::int64_t tile, SimdLevel level) noexcept;

  /// Throws DataError naming feature, replica, sample, position, value and rule of the first error
  /// in canonical order; errors in splits and coordinates come before errors in ids.
  void finish();

  /// Valid after finish, until the arena is reset. Not const: scatter advances the cursors. After
  /// start, outputs are known, and row.size is the number of the caller's ids.
  LookupPlan& plan() noexcept { return copy_.plan; }

  /// Turns the plan's cursors back into counts, whatever scatters did to them.
  void recount(SimdLevel level) noexcept;

  /// Returns S of this batch: spec.output_shape, or less on axis 0 if batches may vary.
  const Shape& output_shape() const noexcept { return shape_; }

  /// Entries that named an id outside the table and were dropped, entries beyond a sequence's
  /// length, and output rows without entries.
  std::int64_t dropped_ids() const noexcept { return dropped_; }
  std::int64_t truncated_entries() const noexcept { return truncated_; }
  std::int64_t empty_rows() const noexcept { return empty_; }

 private:
  /// One id of weight 1 for each output row: nothing but the ids.
  struct DenseReader {};

  Shape start_dense(const DenseIds& ids) const;
  void require_fewer_than_2_31(std::string_view what, std::int64_t number) const;
  bool tiles_adjoin() const;
  bool entries_in_order() const;
  [[noreturn]] void refuse_id(std::int64_t entry) const;

  input::Refusal refuse_;
  Arena* arena_ = nullptr;  ///< borrowed from `start` until `finish`
  std::variant<DenseReader, input::SparseReader, input::RaggedReader> kind_;
  input::EntryCopy copy_;
  std::span<input::EntryTile> tile_;

  Shape shape_;
  std::int64_t dropped_ = 0;
  std::int64_t truncated_ = 0;
  std::int64_t empty_ = 0;
};

}  // namespace embertable
