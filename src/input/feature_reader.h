#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/config.h"
#include "input/entry_tile.h"
#include "input/sparse_order.h"
#include "kernels/level.h"
#include "rows/plan.h"

namespace embertable {

/// How the ids of one feature become entries; resolved once per engine (and per build for the
/// shape).
struct FeatureSpec {
  std::string path;  ///< names the feature in messages
  std::int64_t vocabulary_size = 0;
  Combiner combiner = Combiner::kSum;
  std::int64_t max_sequence_length = 0;
  /// By FeatureConfig or build arguments: max_sequence_length is ignored.
  bool shape_is_configured = false;
  Shape output_shape;  ///< S of one replica, fully defined once built
  bool drop_out_of_range = false;
  bool variable_batch = false;  ///< S[0] may be smaller in a batch
  bool wide = false;            ///< row numbers are uint64
};

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
  /// Most ids and most output rows of one feature in one replica's batch.
  static constexpr std::int64_t kMaxEntries = (std::int64_t{1} << 31) - 1;

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
  enum class Kind : std::uint8_t { kDense, kSparse, kRagged };

  void start_kind(const DenseIds& ids);
  void start_kind(const SparseIds& ids);
  void start_kind(const RaggedIds& ids);
  void fill_with_sequences(std::int64_t rows);
  void choose_ragged_form(std::int64_t rows);
  void take_weights(const FeatureWeights& weights);
  bool set_shape(std::int64_t outputs);
  bool is_sequence(int rank) const;

  template <class Int>
  void note_fall(const Int* splits, std::int64_t rows, input::EntryTile& tile) noexcept;
  template <class Int>
  void read_ragged(const Int* splits, input::EntryTile& tile, SimdLevel level) noexcept;
  template <class Int>
  void read_ragged_sequences(const Int* splits, input::EntryTile& tile, SimdLevel level) noexcept;
  void read_sparse(input::EntryTile& tile, SimdLevel level) noexcept;

  bool tiles_adjoin() const;
  bool entries_in_order() const;
  void sort_entries();
  [[noreturn]] void refuse_first_offence() const;
  std::int64_t output_of(std::int64_t position) const;

  [[noreturn]] void refuse_number(std::string_view what, std::int64_t number) const;
  [[noreturn]] void refuse_dense(const DenseIds& ids) const;
  [[noreturn]] void refuse_ends(const RaggedIds& ids) const;
  [[noreturn]] void refuse(const std::string& rule) const;
  [[noreturn]] void refuse_data(std::int64_t sample, std::int64_t position,
                                const std::string& rule) const;

  Arena* arena_ = nullptr;  ///< borrowed from `start` until `finish`
  std::int32_t replica_ = 0;
  Kind kind_ = Kind::kDense;
  std::int64_t sequence_ = 0;  ///< output rows of one sample; 0: its entries are combined in one
  IntegerSpan splits_;         ///< splits of ragged ids
  input::Coordinates coordinates_;  ///< coordinates of sparse ids
  input::SortSpace sorted_;
  std::int64_t outside_ = -1;  ///< first sparse entry outside of the dense shape, or -1
  input::EntryCopy copy_;
  std::span<input::EntryTile> tile_;

  Shape shape_;
  std::int64_t dropped_ = 0;
  std::int64_t truncated_ = 0;
  std::int64_t empty_ = 0;
};

}  // namespace embertable
