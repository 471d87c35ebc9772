#include "input/sparse_order.h"

#include <algorithm>

namespace embertable::input {
namespace {

/// Calls use(view) for the type of the indices.
template <class Use>
auto with_view(const Coordinates& coordinates, Use use) {
  return coordinates.indices.is_int64() ? use(CoordinateView<std::int64_t>(coordinates))
                                        : use(CoordinateView<std::int32_t>(coordinates));
}

/// Sorts stably by merging runs of doubling length, without heap memory.
void sort_by_column(std::span<PlacedEntry> entries, std::span<PlacedEntry> spare) {
  const auto before = [](const PlacedEntry& a, const PlacedEntry& b) {
    return a.column < b.column;
  };
  if (std::is_sorted(entries.begin(), entries.end(), before)) return;
  const std::size_t count = entries.size();
  PlacedEntry* from = entries.data();
  PlacedEntry* to = spare.data();
  for (std::size_t length = 1; length < count; length *= 2) {
    for (std::size_t begin = 0; begin < count; begin += 2 * length) {
      const std::size_t middle = std::min(begin + length, count);
      const std::size_t end = std::min(begin + 2 * length, count);
      std::merge(from + begin, from + middle, from + middle, from + end, to + begin, before);
    }
    std::swap(from, to);
  }
  if (from != entries.data()) std::copy(from, from + count, entries.data());
}

/// Counts the entries of each output row into split[output + 1], and moves them there in the
/// caller's order. Returns the first entry outside of the dense shape, or -1.
template <class Int>
std::int64_t count_and_place(const CoordinateView<Int>& view, std::int64_t entries,
                             std::int64_t outputs, std::int64_t* split, const SortSpace& space) {
  std::fill(split, split + outputs + 1, 0);
  // Another thread may change the coordinates: what was counted is noted for the second pass.
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < entries; ++i) {
    const Place place = view[i];
    if (!place.inside) return i;
    if (!view.kept(place)) continue;
    const std::int64_t output = view.output(place);
    ++split[output + 1];
    space.spare[kept++] = {place.column, static_cast<std::uint32_t>(i),
                           static_cast<std::uint32_t>(output)};
  }
  for (std::int64_t o = 0; o < outputs; ++o) split[o + 1] += split[o];
  for (const PlacedEntry& entry : space.spare.first(kept))
    space.order[split[entry.output]++] = entry;
  for (std::int64_t o = outputs; o > 0; --o) split[o] = split[o - 1];
  split[0] = 0;
  return -1;
}

}  // namespace

std::string broken_index_rule(const Coordinates& coordinates, std::int64_t entry) {
  const Shape& shape = coordinates.dense_shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t index = coordinates.indices[entry * shape.rank() + axis];
    if (index < 0 || index >= shape[axis])
      return "indices must lie within dense_shape " + shape.to_string() + ", got " +
             std::to_string(index) + " on axis " + std::to_string(axis);
  }
  return "indices must not change during the call";
}

std::int64_t order_entries(const Coordinates& coordinates, std::int64_t outputs,
                           std::int64_t* split, const SortSpace& space) {
  return with_view(coordinates, [&](const auto& view) {
    const std::int64_t outside = count_and_place(view, coordinates.entries, outputs, split, space);
    if (outside >= 0 || coordinates.sequence > 0) return outside;
    for (std::int64_t o = 0; o < outputs; ++o) {
      const auto begin = static_cast<std::size_t>(split[o]);
      const auto count = static_cast<std::size_t>(split[o + 1]) - begin;
      sort_by_column(space.order.subspan(begin, count), space.spare.subspan(begin, count));
    }
    return outside;
  });
}

Place place_of(const Coordinates& coordinates, std::int64_t entry) {
  return with_view(coordinates, [&](const auto& view) { return view[entry]; });
}

std::int64_t output_row_of(const Coordinates& coordinates, const Place& place) {
  return with_view(coordinates, [&](const auto& view) { return view.output(place); });
}

}  // namespace embertable::input
