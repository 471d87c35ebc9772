#include "input/ragged_reader.h"

#include <algorithm>
#include <string>

#include "base/read_once.h"
#include "input/batch_rules.h"
#include "kernels/narrow.h"

namespace embertable::input {
namespace {

/// True if splits that were copied rise from `begin` to `end`. They are read from the copy, since
/// another thread may change the caller's between two reads.
bool rise(const std::int64_t* split, std::int64_t count, std::int64_t begin, std::int64_t end) {
  const auto bits = [split](std::int64_t i) { return static_cast<std::uint64_t>(split[i]); };
  std::uint64_t signs = bits(0);  // top bit: a split is below 0 or below the one before it
  for (std::int64_t i = 1; i < count; ++i) signs |= bits(i) | (bits(i) - bits(i - 1));
  return split[0] == begin && static_cast<std::int64_t>(signs) >= 0 && split[count - 1] <= end;
}

/// Returns the row of ids that has the entry. Requires: splits rise.
std::int64_t row_of(const IntegerSpan& splits, std::int64_t entry) {
  std::int64_t begin = 0;
  for (std::int64_t count = splits.size(); count > 0;) {
    const std::int64_t half = count / 2;
    const bool before = splits[begin + half] <= entry;
    begin += before ? half + 1 : 0;
    count = before ? count - half - 1 : half;
  }
  return begin - 1;
}

}  // namespace

Shape RaggedReader::start(const RaggedIds& ids, const Refusal& refuse) {
  const FeatureSpec& spec = *refuse.spec;
  const Shape& built = spec.output_shape;
  splits_ = ids.row_splits;
  require_ends(splits_, ids.values.size(), {spec.path, refuse.replica});
  const std::int64_t rows = splits_.size() - 1;
  // A built shape that does not come from max_sequence_length follows the rule of configured
  // shapes.
  if (spec.makes_sequences(2) && built.rank() == 2 && built[1] == spec.max_sequence_length) {
    sequence_ = spec.max_sequence_length;
    std::int64_t outputs = 0;
    if (!__builtin_mul_overflow(rows, sequence_, &outputs))
      if (const std::optional<Shape> shape = spec.shape_of(outputs)) return *shape;
    refuse(std::to_string(rows) + " rows of max_sequence_length " + std::to_string(sequence_) +
           " must fill output shape " + built.to_string());
  }
  if (rows == built.num_elements()) return built;
  const std::int64_t length = choose_length(rows, refuse);
  single_ids_ = length > 1;
  if (single_ids_) sequence_ = length;
  return *spec.shape_of(rows * length);
}

/// Returns the output rows of one row of ids where rows are not as many as the shape has elements.
std::int64_t RaggedReader::choose_length(std::int64_t rows, const Refusal& refuse) const {
  const FeatureSpec& spec = *refuse.spec;
  const Shape& built = spec.output_shape;
  const std::int64_t elements = built.num_elements();
  std::int64_t length = 0;  // 0: the shape does not fit
  if (spec.variable_batch && built.rank() > 0 && rows <= built[0] && elements > 0) {
    length = elements / built[0];
  } else if (rows > 0 && elements % rows == 0) {
    length = elements / rows;
  }
  if (length > 0 && spec.shape_of(rows * length)) return length;
  refuse("ragged rows must be as many as output shape " + built.to_string() + " has elements, " +
         std::to_string(elements) + ", or divide them; got " + std::to_string(rows) + " rows");
}

void RaggedReader::read_tile(const EntryCopy& copy, EntryTile& tile,
                             std::int64_t tile_index) const noexcept {
  const auto read = [&](const auto* splits) {
    sequence_ > 0 ? read_sequences(splits, copy, tile, tile_index)
                  : read_rows(splits, copy, tile, tile_index);
  };
  if (splits_.is_int64()) {
    read(static_cast<const std::int64_t*>(splits_.data()));
  } else {
    read(static_cast<const std::int32_t*>(splits_.data()));
  }
}

/// A split below 0 in a tile without a falling split means that another tile's splits fall.
template <class Int>
void RaggedReader::note_fall(const Int* splits, std::int64_t rows, EntryTile& tile) const noexcept {
  const Int* const fall = std::is_sorted_until(splits, splits + rows + 1);
  if (fall == splits + rows + 1) return;
  tile.bad_split = fall - static_cast<const Int*>(splits_.data());
}

template <class Int>
void RaggedReader::read_rows(const Int* splits, const EntryCopy& copy, EntryTile& tile,
                             std::int64_t tile_index) const noexcept {
  const Int* const from = splits + tile.first;
  const std::int64_t outputs = tile.outputs();
  const std::int64_t begin = read_once(from[0]), end = read_once(from[outputs]);
  // The ends alone tell whether rows of one id each are possible.
  const bool one_each = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin) ==
                        static_cast<std::uint64_t>(outputs);
  std::int64_t* const to = copy.split + tile.first;
  // The next tile writes the last split.
  const CopySplits<Int> all = {from, outputs - 1, to};
  // Splits that rise by 1 need not be written.
  const SplitsSeen seen =
      copy_splits(one_each ? CopySplits<Int>{from, outputs - 1, nullptr} : all, tile.level);
  const bool one_hot = one_each && seen.one_each;
  if (one_each && !one_hot) copy_splits(all, tile.level);
  if (!seen.rising || begin > end || (!one_hot && !rise(to, outputs, begin, end))) {
    note_fall(from, outputs, tile);
    return;
  }
  if (begin < 0 || end > copy.ids.size()) return;  // another tile's splits fall
  tile.end = end;
  EntryWriter writer(copy, tile, begin, tile.level);
  writer.take(begin, end - begin);
  writer.finish(tile_index, one_hot);
}

template <class Int>
void RaggedReader::read_sequences(const Int* splits, const EntryCopy& copy, EntryTile& tile,
                                  std::int64_t tile_index) const noexcept {
  const std::int64_t length = sequence_;
  const std::int64_t first_row = tile.first / length;
  const std::int64_t last_row = (tile.last - 1) / length;
  const Int* const from = splits + first_row;
  const std::int64_t rows = last_row + 1 - first_row;
  const auto fits = [&](std::int64_t begin, std::int64_t end) {
    return 0 <= begin && begin <= end && end <= copy.ids.size();
  };
  // Each split is read once, since another thread may change it between two reads.
  std::int64_t row_begin = read_once(from[0]), row_end = read_once(from[1]);
  if (!fits(row_begin, row_end)) return note_fall(from, rows, tile);
  const std::int64_t offset = tile.first - first_row * length;
  EntryWriter writer(copy, tile, row_begin + std::min(offset, row_end - row_begin), tile.level);
  std::int64_t read_to = row_begin;
  for (std::int64_t row = first_row, output = tile.first; row <= last_row; ++row) {
    if (row > first_row) {
      row_begin = row_end;
      row_end = read_once(splits[row + 1]);
      if (!fits(row_begin, row_end)) return note_fall(from, rows, tile);
    }
    const std::int64_t ids = row_end - row_begin;
    const std::int64_t position = output - row * length;
    const std::int64_t end = std::min(length, tile.last - row * length);
    const std::int64_t count = std::max<std::int64_t>(0, std::min(ids, end) - position);
    const std::int64_t next = writer.next();
    for (std::int64_t i = 0; i < end - position; ++i) {
      copy.split[output++] = next + std::min(i, count);
    }
    if (count > 0) writer.take(row_begin + position, count);
    if (end == length) tile.truncated += std::max<std::int64_t>(0, ids - length);
    read_to = end == length ? row_end : row_begin + std::min(ids, end);
  }
  tile.end = read_to;
  writer.finish(tile_index, false);
}

void RaggedReader::refuse_fall(std::int64_t split, const Refusal& refuse) const {
  input::refuse_fall(splits_, split, sequence_, refuse.place());
}

std::int64_t RaggedReader::output_of(std::int64_t entry) const {
  const std::int64_t row = std::max<std::int64_t>(0, row_of(splits_, entry));
  return sequence_ > 0 ? row * sequence_ + (entry - splits_[row]) : row;
}

}  // namespace embertable::input
