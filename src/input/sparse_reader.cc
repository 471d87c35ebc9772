#include "input/sparse_reader.h"

#include <optional>
#include <string>

namespace embertable::input {
namespace {

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

Shape SparseReader::start(const SparseIds& ids, const Refusal& refuse) {
  const FeatureSpec& spec = *refuse.spec;
  const int rank = ids.dense_shape.rank();
  const std::int64_t entries = ids.values.size();
  require_indices(ids, refuse.place());
  const std::int64_t sequence = spec.makes_sequences(rank) ? spec.max_sequence_length : 0;
  coordinates_ = {.indices = ids.indices,
                  .dense_shape = ids.dense_shape,
                  .sequence = sequence,
                  .entries = entries};
  std::optional<std::int64_t> outputs = count_samples(ids.dense_shape);
  if (sequence > 0 && outputs && __builtin_mul_overflow(*outputs, sequence, &*outputs)) {
    outputs.reset();
  }
  const std::optional<Shape> shape = outputs ? spec.shape_of(*outputs) : std::nullopt;
  if (shape) return *shape;
  refuse("dense_shape " + ids.dense_shape.to_string() +
         (sequence > 0 ? " with max_sequence_length " + std::to_string(sequence) : "") +
         " must give as many output rows as output shape " + spec.output_shape.to_string() +
         " has elements, " + std::to_string(spec.output_shape.num_elements()) + ", got " +
         (outputs ? std::to_string(*outputs) : "more than 2^63"));
}

void SparseReader::read_tile(const EntryCopy& copy, EntryTile& tile,
                             std::int64_t tile_index) const noexcept {
  const auto read = [&](const auto& view) {
    const std::int64_t begin = tile.first == 0 ? 0 : view.lower_bound(tile.first);
    const std::int64_t end =
        tile.last == copy.plan.outputs ? coordinates_.entries : view.lower_bound(tile.last);
    EntryWriter writer(copy, tile, begin, tile.level);
    tile.in_order = begin <= end && read_in_order(view, begin, end, copy, tile, writer);
    if (!tile.in_order) return;
    tile.end = end;
    writer.finish(tile_index, false);
  };
  if (coordinates_.indices.is_int64()) {
    read(CoordinateView<std::int64_t>(coordinates_));
  } else {
    read(CoordinateView<std::int32_t>(coordinates_));
  }
}

std::int64_t SparseReader::sort(EntryCopy& copy, std::span<EntryTile> tiles, Arena& arena) {
  // Taken only here: most batches are in order, and this is several times what their rows take.
  const std::int64_t all = coordinates_.entries;
  const SortSpace space = {.order = arena.take<PlacedEntry>(all),
                           .spare = arena.take<PlacedEntry>(all)};
  const auto ids = arena.take<std::int64_t>(all);
  const auto weights = arena.take<float>(copy.weighted ? all : 0);
  outside_ = order_entries(coordinates_, copy.plan.outputs, copy.split, space);
  if (!all_inside()) return 0;
  const std::int64_t kept = copy.split[copy.plan.outputs];
  for (std::size_t i = 0; i < static_cast<std::size_t>(kept); ++i) {
    ids[i] = copy.ids[space.order[i].entry];
    if (copy.weighted) weights[i] = copy.weights[space.order[i].entry];
  }
  order_ = space.order;
  copy.ids = std::span<const std::int64_t>(ids);
  copy.weights = std::span<const float>(weights);
  for (EntryTile& tile : tiles) {
    tile = EntryTile{.first = tile.first, .last = tile.last, .level = tile.level};
    const std::int64_t begin = copy.split[tile.first];
    EntryWriter writer(copy, tile, begin, tile.level);
    writer.take(begin, copy.split[tile.last] - begin);
    writer.finish(&tile - tiles.data(), false);
  }
  return all - kept;
}

void SparseReader::require_all_inside(const Refusal& refuse) const {
  if (!all_inside()) refuse.at(-1, outside_, broken_index_rule(coordinates_, outside_));
}

std::int64_t SparseReader::position_of(std::int64_t entry) const {
  return order_.empty() ? entry : order_[entry].entry;
}

std::int64_t SparseReader::output_of(std::int64_t position) const {
  return output_row_of(coordinates_, place_of(coordinates_, position));
}

}  // namespace embertable::input
