#pragma once

#include <cstdint>

#include "embertable/batch.h"
#include "input/entry_tile.h"
#include "input/feature_spec.h"

namespace embertable::input {

/// Reads the entries of a ragged feature by their splits. Borrows what FeatureReader borrows, which
/// says how rows become output rows.
class RaggedReader {
 public:
  /// Returns S of the batch. Throws ValueError or DataError, see Refusal.
  Shape start(const RaggedIds& ids, const Refusal& refuse);

  /// Whether each output row takes one id at most because the shape says so. Weights are then not
  /// used.
  bool takes_single_ids() const noexcept { return single_ids_; }

  void read_tile(const EntryCopy& copy, EntryTile& tile, std::int64_t tile_index) const noexcept;

  /// Throws because the first of these splits falls.
  [[noreturn]] void refuse_fall(std::int64_t split, const Refusal& refuse) const;

  /// Returns the output row of an entry. Requires: splits rise.
  std::int64_t output_of(std::int64_t entry) const;

 private:
  std::int64_t choose_length(std::int64_t rows, const Refusal& refuse) const;

  template <class Int>
  void read_rows(const Int* splits, const EntryCopy& copy, EntryTile& tile,
                 std::int64_t tile_index) const noexcept;
  template <class Int>
  void read_sequences(const Int* splits, const EntryCopy& copy, EntryTile& tile,
                      std::int64_t tile_index) const noexcept;
  template <class Int>
  void note_fall(const Int* splits, std::int64_t rows, EntryTile& tile) const noexcept;

  IntegerSpan splits_;
  /// Output rows of one row of ids; 0: its entries are combined in one.
  std::int64_t sequence_ = 0;
  bool single_ids_ = false;
};

}  // namespace embertable::input
