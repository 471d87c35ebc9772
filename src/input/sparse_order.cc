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
/// caller's order.
template <class Int>
void count_and_place(const CoordinateView<Int>& view, std::int64_t entries, std::int64_t outputs,
                     std::int64_t* split, std::span<PlacedEntry> order) {
  std::fill(split, split + outputs + 1, 0);
  for (std::int64_t i = 0; i < entries; ++i) {
    const Place place = view[i];
    if (view.kept(place)) ++split[view.output(place) + 1];
  }
  for (std::int64_t o = 0; o < outputs; ++o) split[o + 1] += split[o];
  for (std::int64_t i = 0; i < entries; ++i) {
    const Place place = view[i];
    if (!view.kept(place)) continue;
    const std::int64_t to = split[view.output(place)]++;
    order[to] = {place.column, static_cast<std::uint32_t>(i)};
  }
  for (std::int64_t o = outputs; o > 0; --o) split[o] = split[o - 1];
  split[0] = 0;
}

}  // namespace

std::int64_t first_outside(const Coordinates& coordinates) {
  return with_view(coordinates, [&](const auto& view) {
    for (std::int64_t i = 0; i < coordinates.entries; ++i) {
      if (!view[i].inside) return i;
    }
    return std::int64_t{-1};
  });
}

std::string broken_index_rule(const Coordinates& coordinates, std::int64_t entry) {
  const Shape& shape = coordinates.dense_shape;
  int axis = 0;
  const auto index = [&] { return coordinates.indices[entry * shape.rank() + axis]; };
  while (index() >= 0 && index() < shape[axis]) ++axis;
  return "indices must lie within dense_shape " + shape.to_string() + ", got " +
         std::to_string(index()) + " on axis " + std::to_string(axis);
}

void order_entries(const Coordinates& coordinates, std::int64_t outputs, std::int64_t* split,
                   const SortSpace& space) {
  with_view(coordinates, [&](const auto& view) {
    count_and_place(view, coordinates.entries, outputs, split, space.order);
    if (coordinates.sequence > 0) return;
    for (std::int64_t o = 0; o < outputs; ++o) {
      const auto begin = static_cast<std::size_t>(split[o]);
      const auto count = static_cast<std::size_t>(split[o + 1]) - begin;
      sort_by_column(space.order.subspan(begin, count), space.spare.subspan(begin, count));
    }
  });
}

Place place_of(const Coordinates& coordinates, std::int64_t entry) {
  return with_view(coordinates, [&](const auto& view) { return view[entry]; });
}

std::int64_t output_row_of(const Coordinates& coordinates, const Place& place) {
  return with_view(coordinates, [&](const auto& view) { return view.output(place); });
}

}  // namespace embertable::input
