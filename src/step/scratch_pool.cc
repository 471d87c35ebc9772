#include "step/scratch_pool.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "kernels/row_tile.h"
#include "step/bucket_policy.h"

namespace embertable {
namespace {

/// Cuts a mapping into pieces, each starting at another cache set than the piece before.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  /// Only counts while there is no memory.
  template <class T>
  T* take(std::int64_t count) {
    std::byte* at = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64 +
              (pieces_++ * 7 % 61 + 1) * 64;
    return reinterpret_cast<T*>(at);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::int64_t bytes_ = 0;
  std::int64_t pieces_ = 0;
};

}  // namespace

/// Places the arrays in memory, or only counts their bytes if there is none yet.
std::int64_t GroupScratch::carve(std::byte* memory, std::int64_t entries, bool wide) {
  Carver carver(memory);
  const std::int64_t n = entries + GroupArrays::kSlack;
  for (void** rows : {&row_, &single_row_, &multi_row_})
    *rows =
        wide ? static_cast<void*>(carver.take<std::uint64_t>(n)) : carver.take<std::uint32_t>(n);
  GroupArrays& m = arrays_;
  for (std::uint32_t** array : {&out_, &m.hash, &m.first, &m.count, &m.start, &m.loser,
                                &m.single_out, &m.multi_start, &m.order})
    *array = carver.take<std::uint32_t>(n);
  m.table = carver.take<std::uint32_t>(GroupArrays::table_size(entries));
  gain_ = carver.take<float>(n);
  m.single_gain = carver.take<float>(n);
  m.order_gain = carver.take<float>(n);
  entries_ = entries;
  wide_ = wide;
  return carver.bytes();
}

std::int64_t GroupScratch::group_bytes(std::int64_t entries, bool wide) {
  return GroupScratch().carve(nullptr, entries, wide);
}

void GroupScratch::use(std::byte* memory, std::int64_t entries, bool wide, std::int32_t dim) {
  EMBERTABLE_ASSERT(entries <= kMostGrouped);
  reserve_sums(RowTile::kRows * padded(dim), 0);
  carve(memory, entries, wide);
}

void GroupScratch::reserve(std::int64_t entries, bool wide, std::int32_t dim) {
  reserve_sums(RowTile::kRows * padded(dim), 0);
  if (entries_ == 0 || entries > entries_ || wide > wide_) grow(entries, wide);
}

void GroupScratch::grow(std::int64_t entries, bool wide) {
  EMBERTABLE_ASSERT(entries <= kMostGrouped);
  const std::int64_t most = std::min(std::max(entries, entries_) * 9 / 8 + 1, kMostGrouped);
  const bool widest = wide || wide_;
  constexpr std::int64_t kHugePage = 2 << 20;
  entries_ = 0;  // in case memory cannot be had
  groups_ = Mapping();
  groups_ = Mapping((group_bytes(most, widest) + kHugePage - 1) / kHugePage * kHugePage);
  groups_.touch();
  carve(groups_.data(), most, widest);
}

void GroupScratch::reserve_wide_rows(std::int32_t dim) {
  const std::int64_t bytes =
      RowTile::kRows * padded(dim) * static_cast<std::int64_t>(sizeof(float));
  if (bytes <= wide_rows_.bytes()) return;
  wide_rows_ = Mapping();
  wide_rows_ = Mapping(bytes);
  wide_rows_.touch();
}

void GroupScratch::reserve_small(std::int64_t rows, std::int64_t floats) {
  reserve_sums(floats, rows);
}

void GroupScratch::reserve_sums(std::int64_t floats, std::int64_t rows) {
  if (floats > num_sums_ || rows > num_touched_) grow_sums(floats, rows);
}

void GroupScratch::grow_sums(std::int64_t floats, std::int64_t rows) {
  const std::int64_t most_floats = std::max(floats, num_sums_);
  const std::int64_t most_rows = std::max(rows, num_touched_);
  num_sums_ = num_touched_ = 0;  // in case memory cannot be had
  sums_ = Mapping();
  sums_ = Mapping(most_floats * 4 + most_rows);
  sums_.touch();
  num_sums_ = most_floats;
  num_touched_ = most_rows;
}

void ScratchPool::reserve(std::int64_t items, std::int32_t workers,
                          FunctionRef<Need(std::int64_t)> need_of) {
  std::int64_t all = 0;
  Need most;
  for (std::int64_t i = 0; i < items; ++i) {
    const Need need = need_of(i);
    if (need.entries < 0) continue;
    all += need.entries;
    most.entries = std::max(most.entries, need.entries);
    most.wide |= need.wide;
    most.dim = std::max(most.dim, need.dim);
  }
  const std::int64_t own = own_scratch_entries(all, workers);
  if (std::cmp_less(own_.size(), workers)) own_.resize(workers);
  for (GroupScratch& scratch : own_)
    if (most.entries >= 0) scratch.reserve(std::min(most.entries, own), most.wide, most.dim);

  if (std::cmp_less(large_of_.size(), items)) large_of_.resize(items);
  std::ranges::fill(large_of_, -1);
  if (most.entries > own) reserve_large(items, own, need_of);
}

/// Gives items that group more than `own` entries memory by themselves.
void ScratchPool::reserve_large(std::int64_t items, std::int64_t own,
                                FunctionRef<Need(std::int64_t)> need_of) {
  std::int64_t count = 0, bytes = 0;
  for (std::int64_t i = 0; i < items; ++i) {
    const Need need = need_of(i);
    if (need.entries <= own) continue;
    large_of_[i] = count++;
    bytes += GroupScratch::group_bytes(need.entries, need.wide);
  }
  // Backed only where it is used.
  if (bytes > large_memory_.bytes()) {
    large_memory_ = Mapping();
    large_memory_ = Mapping(bytes + bytes / 8);
  }
  if (std::cmp_less(large_.size(), count)) large_.resize(count);
  std::byte* memory = large_memory_.data();
  for (std::int64_t i = 0; i < items; ++i) {
    if (large_of_[i] < 0) continue;
    const Need need = need_of(i);
    large_[large_of_[i]].use(memory, need.entries, need.wide, need.dim);
    memory += GroupScratch::group_bytes(need.entries, need.wide);
  }
}

void ScratchPool::reserve_small(std::int64_t rows, std::int64_t floats) {
  for (GroupScratch& scratch : own_) scratch.reserve_small(rows, floats);
}

void ScratchPool::reserve_wide_rows(std::int32_t dim) {
  for (GroupScratch& scratch : own_) scratch.reserve_wide_rows(dim);
  for (GroupScratch& scratch : large_) scratch.reserve_wide_rows(dim);
}

std::int64_t ScratchPool::bytes() const noexcept {
  std::int64_t bytes = large_memory_.bytes();
  for (const GroupScratch& scratch : own_) bytes += scratch.bytes();
  for (const GroupScratch& scratch : large_) bytes += scratch.bytes();
  return bytes;
}

}  // namespace embertable
