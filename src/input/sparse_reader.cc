#include <algorithm>
#include <optional>
#include <string>

#include "input/feature_reader.h"

namespace embertable {
namespace {

using input::CoordinateView;
using input::EntryCopy;
using input::EntryTile;
using input::EntryWriter;
using input::Place;

/// Returns the product of all dims but the last; empty on overflow.
std::optional<std::int64_t> count_samples(const Shape& dense_shape) {
  std::int64_t samples = 1;
  for (int axis = 0; axis + 1 < dense_shape.rank(); ++axis) {
    if (__builtin_mul_overflow(samples, dense_shape[axis], &samples)) return std::nullopt;
  }
  return samples;
}

/// Reads the entries that belong to a tile if all are in order: from the first one that does not
/// belong before the tile to the first one that does not belong before the next tile. If each tile
/// finds its own entries in order, all are in order.
template <class Int>
bool read_in_order(const CoordinateView<Int>& view, std::int64_t begin, std::int64_t end,
                   const EntryCopy& copy, EntryTile& tile, EntryWriter& writer) {
  std::int64_t output = tile.first;
  Place before{.sample = -1};
  for (std::int64_t i = begin; i < end; ++i) {
    const Place place = view[i];
    const bool kept = view.kept(place);
    const std::int64_t to = view.output(place);
    if (!place.inside || place.sample < before.sample ||
        (place.sample == before.sample && place.column < before.column) || to < tile.first ||
        to > tile.last - kept) {
      return false;
    }
    before = place;
    if (!kept) {
      ++tile.truncated;
      continue;
    }
    while (output <= to) copy.split[output++] = writer.next();
    writer.take(i, 1);
  }
  while (output < tile.last) copy.split[output++] = writer.next();
  return true;
}

}  // namespace

void FeatureReader::start_kind(const SparseIds& ids) {
  const int rank = ids.dense_shape.rank();
  const std::int64_t entries = ids.values.size();
  if (ids.indices.size() != entries * rank) {
    refuse_data(-1, -1,
                "indices must be [" + std::to_string(entries) + ", " + std::to_string(rank) +
                    "], one row per id, got " + std::to_string(ids.indices.size()) + " numbers");
  }
  if (is_sequence(rank)) sequence_ = copy_.spec->max_sequence_length;
  coordinates_ = {.indices = ids.indices,
                  .dense_shape = ids.dense_shape,
                  .sequence = sequence_,
                  .entries = entries};
  std::optional<std::int64_t> outputs = count_samples(ids.dense_shape);
  if (sequence_ > 0 && outputs && __builtin_mul_overflow(*outputs, sequence_, &*outputs)) {
    outputs.reset();
  }
  if (!outputs || !set_shape(*outputs)) {
    refuse("dense_shape " + ids.dense_shape.to_string() +
           (sequence_ > 0 ? " with max_sequence_length " + std::to_string(sequence_) : "") +
           " must give as many output rows as output shape " +
           copy_.spec->output_shape.to_string() + " has elements, " +
           std::to_string(copy_.spec->output_shape.num_elements()) + ", got " +
           (outputs ? std::to_string(*outputs) : "more than 2^63"));
  }
}

void FeatureReader::read_sparse(EntryTile& tile, SimdLevel level) noexcept {
  const auto read = [&](const auto& view) {
    const std::int64_t begin = tile.first == 0 ? 0 : view.lower_bound(tile.first);
    const std::int64_t end =
        tile.last == copy_.plan.outputs ? coordinates_.entries : view.lower_bound(tile.last);
    EntryWriter writer(copy_, tile, begin, level);
    tile.in_order = begin <= end && read_in_order(view, begin, end, copy_, tile, writer);
    if (!tile.in_order) return;
    tile.end = end;
    writer.finish(&tile - tile_.data(), false);
  };
  if (coordinates_.indices.is_int64()) {
    read(CoordinateView<std::int64_t>(coordinates_));
  } else {
    read(CoordinateView<std::int32_t>(coordinates_));
  }
}

bool FeatureReader::entries_in_order() const {
  if (tile_.empty()) return coordinates_.entries == 0;
  return tiles_adjoin() &&
         std::all_of(tile_.begin(), tile_.end(), [](const EntryTile& t) { return t.in_order; });
}

void FeatureReader::sort_entries() {
  // Taken only here: most batches are in order, and this is several times what their rows take.
  sorted_.order = arena_->take<input::PlacedEntry>(coordinates_.entries);
  sorted_.spare = arena_->take<input::PlacedEntry>(coordinates_.entries);
  sorted_.ids = arena_->take<std::int64_t>(coordinates_.entries);
  if (copy_.weighted) sorted_.weights = arena_->take<float>(coordinates_.entries);
  outside_ = input::order_entries(coordinates_, copy_.plan.outputs, copy_.split, sorted_);
  if (outside_ >= 0) return;
  const std::int64_t entries = copy_.split[copy_.plan.outputs];
  for (std::size_t i = 0; i < static_cast<std::size_t>(entries); ++i) {
    sorted_.ids[i] = copy_.ids[sorted_.order[i].entry];
    if (copy_.weighted) sorted_.weights[i] = copy_.weights[sorted_.order[i].entry];
  }
  sorted_.used = true;
  copy_.ids = std::span<const std::int64_t>(sorted_.ids);
  copy_.weights = std::span<const float>(sorted_.weights);
  for (EntryTile& tile : tile_) {
    tile = EntryTile{.first = tile.first, .last = tile.last, .level = tile.level};
    const std::int64_t begin = copy_.split[tile.first];
    EntryWriter writer(copy_, tile, begin, tile.level);
    writer.take(begin, copy_.split[tile.last] - begin);
    writer.finish(&tile - tile_.data(), false);
  }
  truncated_ = coordinates_.entries - entries;
}

}  // namespace embertable
