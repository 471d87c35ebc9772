#include "kernels/tile_update.h"

#include "base/bfloat16.h"
#include "base/entries.h"
#include "base/random.h"
#include "kernels/row_tile.h"

#define EMBERTABLE_LEVEL_BODY "kernels/tile_update.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
void update_by_tiles(const TileUpdate<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, update_by_tiles(args));
}
template void update_by_tiles(const TileUpdate<std::uint32_t>&, SimdLevel) noexcept;
template void update_by_tiles(const TileUpdate<std::uint64_t>&, SimdLevel) noexcept;

template <class Index>
void update_by_occurrences(const TileUpdate<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, update_by_occurrences(args));
}
template void update_by_occurrences(const TileUpdate<std::uint32_t>&, SimdLevel) noexcept;
template void update_by_occurrences(const TileUpdate<std::uint64_t>&, SimdLevel) noexcept;

template <class Index>
void update_by_entries(const EntryUpdate<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, update_by_entries(args));
}
template void update_by_entries(const EntryUpdate<std::uint32_t>&, SimdLevel) noexcept;
template void update_by_entries(const EntryUpdate<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
