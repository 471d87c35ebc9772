#pragma once

#include <cstdint>
#include <span>

namespace embertable {

/// Turns the counts of each (bucket, source, tile) into the position of its first entry, and fills
/// bucket [buckets + 1]. for_each_tile(visit) calls visit(counts of a tile) in canonical order.
/// Returns the number of all entries.
template <class ForEachTile>
std::int64_t counts_to_cursors(std::span<std::int64_t> bucket, ForEachTile for_each_tile) {
  std::int64_t at = 0;
  const auto buckets = static_cast<std::int64_t>(bucket.size()) - 1;
  for (std::int64_t b = 0; b < buckets; ++b) {
    bucket[b] = at;
    for_each_tile([&](std::uint32_t* counts) {
      const std::uint32_t count = counts[b];
      counts[b] = static_cast<std::uint32_t>(at);
      at += count;
    });
  }
  bucket.back() = at;
  return at;
}

}  // namespace embertable
