#include "input/feature_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/read_once.h"
#include "embertable/errors.h"
#include "input/detected_shape.h"
#include "kernels/narrow.h"

namespace embertable {
namespace {

using input::EntryTile;
using input::EntryWriter;

std::string_view kind_of(const FeatureWeights& weights) {
  constexpr std::string_view kNames[] = {"no", "sparse", "ragged", "dense"};
  return kNames[weights.index()];
}

/// Moves a tile's entries down to the end of the entries before them.
void move_entries(const input::EntryCopy& copy, EntryTile& tile, std::int64_t to) {
  const auto size = static_cast<std::size_t>(tile.kept);
  const std::size_t row_bytes = copy.plan.row.wide ? sizeof(std::uint64_t) : sizeof(std::uint32_t);
  char* const row = copy.plan.row.as<char>();
  std::memmove(row + static_cast<std::size_t>(to) * row_bytes,
               row + static_cast<std::size_t>(tile.begin) * row_bytes, size * row_bytes);
  if (copy.weighted) {
    std::memmove(copy.weight + to, copy.weight + tile.begin, size * sizeof(float));
  }
  if (tile.split_written) {
    for (std::int64_t i = tile.first; i < tile.last; ++i) copy.split[i] -= tile.begin - to;
  }
  tile.begin = to;
}

/// True if splits that were copied rise from `begin` to `end`. They are read from the copy, since
/// another thread may change the caller's between two reads.
bool rise(const std::int64_t* split, std::int64_t count, std::int64_t begin, std::int64_t end) {
  const auto bits = [split](std::int64_t i) { return static_cast<std::uint64_t>(split[i]); };
  std::uint64_t signs = bits(0);  // top bit: a split is below 0 or below the one before it
  for (std::int64_t i = 1; i < count; ++i) signs |= bits(i) | (bits(i) - bits(i - 1));
  return split[0] == begin && static_cast<std::int64_t>(signs) >= 0 && split[count - 1] <= end;
}

}  // namespace

void FeatureReader::start(const FeatureSpec& spec, const FeatureIds& ids,
                          const FeatureWeights& weights, std::int32_t replica, std::int32_t buckets,
                          Arena& arena) {
  EMBERTABLE_ASSERT(spec.output_shape.fully_defined());
  *this = FeatureReader();
  arena_ = &arena;
  copy_.spec = &spec;
  replica_ = replica;
  kind_ = static_cast<Kind>(ids.index());
  copy_.ids = std::visit([](const auto& kind) { return kind.values; }, ids);
  copy_.combiner = spec.combiner;
  if (const std::string rule = input::broken_rank_rule(ids); !rule.empty()) refuse(rule);
  if (copy_.ids.size() > kMaxEntries) refuse_number("ids", copy_.ids.size());
  if (!std::holds_alternative<std::monostate>(weights)) take_weights(weights);
  std::visit([&](const auto& kind) { start_kind(kind); }, ids);

  LookupPlan& plan = copy_.plan;
  const std::int64_t outputs = plan.outputs;
  const std::int64_t entries = copy_.ids.size();
  if (outputs > kMaxEntries) refuse_number("output rows", outputs);
  plan.row.wide = spec.wide;
  plan.row.size = entries;
  plan.row.data = spec.wide ? static_cast<void*>(arena.take<std::uint64_t>(entries).data())
                            : static_cast<void*>(arena.take<std::uint32_t>(entries).data());
  copy_.split = arena.take<std::int64_t>(outputs + 1).data();
  if (copy_.weighted) copy_.weight = arena.take<float>(entries).data();
  if (copy_.combiner != Combiner::kSum) copy_.denominator = arena.take<float>(outputs).data();
  if (buckets > 1) {
    copy_.buckets = static_cast<std::uint32_t>(buckets);
    plan.counts_stride = counts_stride_of(buckets);
    plan.counts = arena.take<std::uint32_t>(plan.tiles() * plan.counts_stride);
  }
  tile_ = arena.take<EntryTile>(plan.tiles());
  for (std::int64_t t = 0; t < tiles(); ++t) {
    tile_[t] = EntryTile{.first = t * kTileRows, .last = std::min(outputs, (t + 1) * kTileRows)};
  }
}

void FeatureReader::take_weights(const FeatureWeights& weights) {
  if (kind_ == Kind::kDense) {
    refuse("dense ids have no weights, got " + std::string(kind_of(weights)) + " weights");
  }
  const auto* const sparse = std::get_if<SparseWeights>(&weights);
  const auto* const ragged = std::get_if<RaggedWeights>(&weights);
  if (kind_ == Kind::kSparse ? sparse == nullptr : ragged == nullptr) {
    const std::string kind = kind_ == Kind::kSparse ? "sparse" : "ragged";
    refuse("weights of " + kind + " ids must be " + kind + ", got " +
           std::string(kind_of(weights)) + " weights");
  }
  copy_.weighted = true;
  copy_.weights = sparse != nullptr ? sparse->values : ragged->values;
  if (copy_.weights.size() != copy_.ids.size()) {
    refuse_data(-1, -1,
                "weights must be as many as the ids, " + std::to_string(copy_.ids.size()) +
                    ", got " + std::to_string(copy_.weights.size()));
  }
}

bool FeatureReader::is_sequence(int rank) const {
  return rank == 2 && !copy_.spec->shape_is_configured && copy_.spec->max_sequence_length > 0;
}

bool FeatureReader::set_shape(std::int64_t outputs) {
  shape_ = copy_.spec->output_shape;
  copy_.plan = {.outputs = outputs};
  const std::int64_t built = shape_.num_elements();
  if (outputs == built) return true;
  if (!copy_.spec->variable_batch || shape_.rank() == 0 || outputs > built) return false;
  const std::int64_t inner = built / shape_[0];
  if (outputs % inner != 0) return false;
  shape_ = shape_.with_leading(outputs / inner);
  return true;
}

void FeatureReader::start_kind(const DenseIds& ids) {
  // One id of weight 1 per output row is a plain copy, whatever the combiner.
  copy_.combiner = Combiner::kSum;
  const bool fill_shape = !ids.shape.has_rank() || ids.shape.num_elements() == ids.values.size();
  if (!fill_shape || !set_shape(ids.values.size())) refuse_dense(ids);
}

void FeatureReader::start_kind(const RaggedIds& ids) {
  splits_ = ids.row_splits;
  const std::int64_t rows = splits_.size() - 1;
  if (rows < 0 || splits_[0] != 0 || splits_[rows] != ids.values.size()) refuse_ends(ids);
  // A built shape that does not come from max_sequence_length follows the rule of configured
  // shapes.
  const Shape& built = copy_.spec->output_shape;
  if (is_sequence(2) && built.rank() == 2 && built[1] == copy_.spec->max_sequence_length)
    fill_with_sequences(rows);
  else if (rows == built.num_elements())
    set_shape(rows);
  else
    choose_ragged_form(rows);
}

void FeatureReader::fill_with_sequences(std::int64_t rows) {
  sequence_ = copy_.spec->max_sequence_length;
  std::int64_t outputs = 0;
  if (__builtin_mul_overflow(rows, sequence_, &outputs) || !set_shape(outputs)) {
    refuse(std::to_string(rows) + " rows of max_sequence_length " + std::to_string(sequence_) +
           " must fill output shape " + copy_.spec->output_shape.to_string());
  }
}

/// Reads rows that are not as many as the shape has elements.
void FeatureReader::choose_ragged_form(std::int64_t rows) {
  const Shape& built = copy_.spec->output_shape;
  const std::int64_t elements = built.num_elements();
  std::int64_t length = 0;  // output rows per row; 0: the shape does not fit
  if (copy_.spec->variable_batch && built.rank() > 0 && rows <= built[0] && elements > 0) {
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

void FeatureReader::read_tile(std::int64_t index, SimdLevel level) noexcept {
  EntryTile& tile = tile_[index];
  tile.level = level;
  if (kind_ == Kind::kDense) {
    tile.end = tile.last;
    EntryWriter writer(copy_, tile, tile.first, level);
    writer.take(tile.first, tile.outputs());
    writer.finish(index, true);
  } else if (kind_ == Kind::kSparse) {
    read_sparse(tile, level);
  } else if (splits_.is_int64()) {
    read_ragged(static_cast<const std::int64_t*>(splits_.data()), tile, level);
  } else {
    read_ragged(static_cast<const std::int32_t*>(splits_.data()), tile, level);
  }
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
  if (sequence_ > 0) return read_ragged_sequences(splits, tile, level);
  const Int* const from = splits + tile.first;
  const std::int64_t outputs = tile.outputs();
  const std::int64_t begin = read_once(from[0]), end = read_once(from[outputs]);
  // The ends alone tell whether rows of one id each are possible.
  const bool one_each = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin) ==
                        static_cast<std::uint64_t>(outputs);
  std::int64_t* const to = copy_.split + tile.first;
  // The next tile writes the last split.
  const CopySplits<Int> copy = {from, outputs - 1, to};
  // Splits that rise by 1 need not be written.
  const SplitsSeen seen =
      copy_splits(one_each ? CopySplits<Int>{from, outputs - 1, nullptr} : copy, level);
  const bool one_hot = one_each && seen.one_each;
  if (one_each && !one_hot) copy_splits(copy, level);
  if (!seen.rising || begin > end || (!one_hot && !rise(to, outputs, begin, end))) {
    note_fall(from, outputs, tile);
    return;
  }
  if (begin < 0 || end > copy_.ids.size()) return;  // another tile's splits fall
  tile.end = end;
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
  const auto fits = [&](std::int64_t begin, std::int64_t end) {
    return 0 <= begin && begin <= end && end <= copy_.ids.size();
  };
  // Each split is read once, since another thread may change it between two reads.
  std::int64_t row_begin = read_once(from[0]), row_end = read_once(from[1]);
  if (!fits(row_begin, row_end)) return note_fall(from, rows, tile);
  const std::int64_t offset = tile.first - first_row * length;
  EntryWriter writer(copy_, tile, row_begin + std::min(offset, row_end - row_begin), level);
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
      copy_.split[output++] = next + std::min(i, count);
    }
    if (count > 0) writer.take(row_begin + position, count);
    if (end == length) tile.truncated += std::max<std::int64_t>(0, ids - length);
    read_to = end == length ? row_end : row_begin + std::min(ids, end);
  }
  tile.end = read_to;
  writer.finish(&tile - tile_.data(), false);
}

/// False if tiles did not read the caller's entries one after the other: splits fall, coordinates
/// are not in order, or another thread has changed them between two tiles.
bool FeatureReader::tiles_adjoin() const {
  std::int64_t end = 0;
  for (const EntryTile& tile : tile_) {
    if (tile.begin != end || tile.end < end) return false;
    end = tile.end;
  }
  return tile_.empty() || end == copy_.ids.size();
}

void FeatureReader::recount(SimdLevel level) noexcept {
  if (copy_.buckets == 0) return;
  for (EntryTile& tile : tile_) count_tile(copy_, tile, &tile - tile_.data(), level);
}

void FeatureReader::finish() {
  if (kind_ == Kind::kSparse && !entries_in_order()) sort_entries();
  bool sound = outside_ < 0 && (kind_ != Kind::kRagged || tiles_adjoin());
  for (const EntryTile& tile : tile_) sound = sound && tile.bad_entry < 0;
  if (!sound) refuse_first_offence();

  LookupPlan& plan = copy_.plan;
  bool one_hot = true, plain_weights = true, plain_denominators = true;
  std::int64_t entries = 0;
  for (EntryTile& tile : tile_) {
    if (tile.begin != entries) move_entries(copy_, tile, entries);
    entries += tile.kept;
    one_hot = one_hot && tile.one_hot;
    plain_weights = plain_weights && tile.plain_weights;
    plain_denominators = plain_denominators && tile.plain_denominators;
    plan.zero_denominators = plan.zero_denominators || tile.zero_denominators;
    dropped_ += tile.dropped;
    truncated_ += tile.truncated;
    empty_ += tile.empty;
  }
  plan.row.size = entries;
  if (one_hot && plain_weights) return;

  const auto outputs = static_cast<std::size_t>(plan.outputs);
  for (EntryTile& tile : tile_) {
    if (!tile.split_written) write_one_hot_splits(copy_, tile);
    if (!plain_denominators && !tile.denominator_written) {
      std::fill(copy_.denominator + tile.first, copy_.denominator + tile.last, 1.0f);
    }
  }
  copy_.split[outputs] = entries;
  plan.split = {copy_.split, outputs + 1};
  if (!plain_weights) plan.weight = {copy_.weight, static_cast<std::size_t>(entries)};
  if (!plain_denominators) plan.denominator = {copy_.denominator, outputs};
}

}  // namespace embertable
