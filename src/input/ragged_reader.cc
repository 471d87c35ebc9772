#include <algorithm>
#include <string>

#include "input/feature_reader.h"
#include "kernels/narrow.h"

namespace embertable {

using input::EntryTile;
using input::EntryWriter;

void FeatureReader::start_ragged(const RaggedIds& ids) {
  splits_ = ids.row_splits;
  const std::int64_t rows = splits_.size() - 1;
  const std::int64_t entries = ids.values.size();
  if (rows < 0) refuse_data(-1, -1, "row_splits must have one number or more, got none");
  if (splits_[0] != 0) {
    refuse_data(-1, 0, "row_splits must start at 0, got " + std::to_string(splits_[0]));
  }
  if (splits_[rows] != entries) {
    refuse_data(-1, rows,
                "row_splits must end at the number of ids, " + std::to_string(entries) + ", got " +
                    std::to_string(splits_[rows]));
  }
  // A built shape that does not come from max_sequence_length follows the rule of configured
  // shapes.
  const Shape& built = spec_->output_shape;
  if (is_sequence(2) && built.rank() == 2 && built[1] == spec_->max_sequence_length) {
    sequence_ = spec_->max_sequence_length;
    std::int64_t outputs = 0;
    if (__builtin_mul_overflow(rows, sequence_, &outputs) || !set_shape(outputs)) {
      refuse(std::to_string(rows) + " rows of max_sequence_length " + std::to_string(sequence_) +
             " must fill output shape " + spec_->output_shape.to_string());
    }
  } else {
    choose_ragged_form(rows);
  }
}

void FeatureReader::choose_ragged_form(std::int64_t rows) {
  const Shape& built = spec_->output_shape;
  const std::int64_t elements = built.num_elements();
  std::int64_t length = 0;  // output rows per row; 0: the shape does not fit
  if (rows == elements) {
    length = 1;
  } else if (spec_->variable_batch && built.rank() > 0 && rows <= built[0] && elements > 0) {
    length = elements / built[0];
  } else if (rows > 0 && elements % rows == 0) {
    length = elements / rows;
  }
  if (length == 0 || !set_shape(rows * length)) {
    refuse("ragged rows must be as many as output shape " + built.to_string() + " has elements, " +
           std::to_string(elements) + ", or divide them; got " + std::to_string(rows) + " rows");
  }
  if (length == 1) return;
  sequence_ = length;
  copy_.weighted = false;
  copy_.combiner = Combiner::kSum;
}

/// A split below 0 in a tile without a falling split means that another tile's splits fall.
template <class Int>
void FeatureReader::note_fall(const Int* splits, std::int64_t rows, EntryTile& tile) noexcept {
  const Int* const fall = std::is_sorted_until(splits, splits + rows + 1);
  if (fall == splits + rows + 1) return;
  tile.bad_split = fall - static_cast<const Int*>(splits_.data());
}

template <class Int>
void FeatureReader::read_ragged(const Int* splits, EntryTile& tile, SimdLevel level) noexcept {
  const Int* const from = splits + tile.first;
  const std::int64_t outputs = tile.outputs();
  // The ends alone tell whether rows of one id each are possible.
  const bool one_each =
      static_cast<std::uint64_t>(from[outputs]) - static_cast<std::uint64_t>(from[0]) ==
      static_cast<std::uint64_t>(outputs);
  std::int64_t* const to = copy_.split + tile.first;
  // The next tile writes the last split.
  const CopySplits<Int> copy = {from, outputs - 1, to};
  // Splits that rise by 1 need not be written.
  const SplitsSeen seen =
      copy_splits(one_each ? CopySplits<Int>{from, outputs - 1, nullptr} : copy, level);
  const std::int64_t begin = from[0];
  const std::int64_t end = from[outputs];
  if (!seen.rising || end < from[outputs - 1]) {
    note_fall(from, outputs, tile);
    return;
  }
  if (end > copy_.ids.size()) return;  // another tile's splits fall
  const bool one_hot = one_each && seen.one_each;
  if (one_each && !one_hot) copy_splits(copy, level);
  EntryWriter writer(copy_, tile, begin, level);
  writer.take(begin, end - begin);
  writer.finish(&tile - tile_.data(), one_hot);
}

template <class Int>
void FeatureReader::read_ragged_sequences(const Int* splits, EntryTile& tile,
                                          SimdLevel level) noexcept {
  const std::int64_t length = sequence_;
  const std::int64_t first_row = tile.first / length;
  const std::int64_t last_row = (tile.last - 1) / length;
  const Int* const from = splits + first_row;
  const std::int64_t rows = last_row + 1 - first_row;
  if (kChecksInput && (from[0] < 0 || !std::is_sorted(from, from + rows + 1))) {
    note_fall(from, rows, tile);
    return;
  }
  if (from[rows] > copy_.ids.size()) return;  // another tile's splits fall
  const std::int64_t offset = tile.first - first_row * length;
  const std::int64_t begin = from[0] + std::min<std::int64_t>(offset, from[1] - from[0]);
  EntryWriter writer(copy_, tile, begin, level);
  for (std::int64_t row = first_row, output = tile.first; row <= last_row; ++row) {
    const std::int64_t ids = splits[row + 1] - splits[row];
    const std::int64_t position = output - row * length;
    const std::int64_t end = std::min(length, tile.last - row * length);
    const std::int64_t count = std::max<std::int64_t>(0, std::min(ids, end) - position);
    const std::int64_t next = writer.next();
    for (std::int64_t i = 0; i < end - position; ++i) {
      copy_.split[output++] = next + std::min(i, count);
    }
    if (count > 0) writer.take(splits[row] + position, count);
    if (end == length) tile.truncated += std::max<std::int64_t>(0, ids - length);
  }
  writer.finish(&tile - tile_.data(), false);
}

template void FeatureReader::read_ragged(const std::int32_t*, EntryTile&, SimdLevel) noexcept;
template void FeatureReader::read_ragged(const std::int64_t*, EntryTile&, SimdLevel) noexcept;
template void FeatureReader::read_ragged_sequences(const std::int32_t*, EntryTile&,
                                                   SimdLevel) noexcept;
template void FeatureReader::read_ragged_sequences(const std::int64_t*, EntryTile&,
                                                   SimdLevel) noexcept;

}  // namespace embertable
