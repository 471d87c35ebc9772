#include "step/scratch_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "step/bucket_policy.h"

namespace embertable {

void ScratchPool::reserve(std::span<const std::int64_t> entries, bool wide, std::int32_t dim,
                          std::int32_t workers) {
  const std::int64_t all = std::accumulate(entries.begin(), entries.end(), std::int64_t{0});
  const std::int64_t own = own_scratch_entries(all, workers);
  std::int64_t largest = 0, count = 0, bytes = 0;
  large_of_.assign(entries.size(), -1);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] <= own) {
      largest = std::max(largest, entries[i]);
      continue;
    }
    large_of_[i] = count++;
    bytes += GroupScratch::group_bytes(entries[i], wide);
  }
  if (std::cmp_less(own_.size(), workers)) own_.resize(workers);
  for (GroupScratch& scratch : own_) scratch.reserve(largest, wide, dim);
  if (bytes > large_memory_.bytes()) {
    large_memory_ = Mapping();
    large_memory_ = Mapping(bytes + bytes / 8);
  }
  if (std::cmp_less(large_.size(), count)) large_.resize(count);
  std::byte* memory = large_memory_.data();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (large_of_[i] < 0) continue;
    large_[large_of_[i]].use(memory, entries[i], wide, dim);
    memory += GroupScratch::group_bytes(entries[i], wide);
  }
}

std::int64_t ScratchPool::bytes() const noexcept {
  std::int64_t bytes = large_memory_.bytes();
  for (const GroupScratch& scratch : own_) bytes += scratch.bytes();
  for (const GroupScratch& scratch : large_) bytes += scratch.bytes();
  return bytes;
}

}  // namespace embertable
