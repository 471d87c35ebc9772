#include "rows/shard.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <limits>

#include "base/float_environment.h"

namespace embertable {
namespace {

constexpr std::int64_t kLineFloats = 16;

/// Returns the number of cache lines that 16 consecutive records touch, counted per record.
std::int64_t lines_touched(std::int64_t record, std::int64_t stride) {
  std::int64_t lines = 0;
  for (std::int64_t i = 0; i < kLineFloats; ++i) {
    const std::int64_t first = i * stride % kLineFloats;
    lines += (first + record + kLineFloats - 1) / kLineFloats;
  }
  return lines;
}

/// Returns the largest int64 if the product exceeds it: no machine has that much memory.
std::int64_t bytes_of(std::int64_t rows, std::int64_t floats) {
  std::int64_t bytes = 0;
  const auto row_bytes = floats * static_cast<std::int64_t>(sizeof(float));
  return __builtin_mul_overflow(rows, row_bytes, &bytes) ? std::numeric_limits<std::int64_t>::max()
                                                         : bytes;
}

}  // namespace

std::int64_t record_stride(std::int64_t record) {
  std::int64_t best = record;
  for (std::int64_t stride = record + 1; stride <= record + record / 8; ++stride) {
    if (lines_touched(record, stride) < lines_touched(record, best)) best = stride;
  }
  return best;
}

Shard::Shard(const Placement& placement, std::int32_t host, std::int32_t dim,
             const std::vector<bool>& row_wise)
    : placement_(placement),
      host_(host),
      rows_(placement.shard_rows(host)),
      row_wise_(row_wise.size()) {
  const auto full = std::count(row_wise.begin(), row_wise.end(), false);
  block_.dim = dim;
  block_.rows = rows_;
  block_.slots = static_cast<std::int32_t>(row_wise.size());
  block_.stride = record_stride(dim * (1 + full));
  if (rows_ > 0) records_ = Mapping(bytes_of(rows_, block_.stride));
  block_.row = reinterpret_cast<float*>(records_.data());
  float* next_in_record = block_.row;
  for (std::size_t slot = 0; slot < row_wise.size(); ++slot) {
    if (row_wise[slot]) {
      if (rows_ > 0) row_wise_[slot] = Mapping(bytes_of(rows_, 1));
      block_.slot[slot] = reinterpret_cast<float*>(row_wise_[slot].data());
      block_.slot_stride[slot] = 1;
    } else {
      if (next_in_record != nullptr) next_in_record += dim;
      block_.slot[slot] = next_in_record;
      block_.slot_stride[slot] = block_.stride;
    }
  }
}

std::int32_t Shard::width(std::int32_t slot) const noexcept {
  return slot >= 0 && is_row_wise(slot) ? 1 : block_.dim;
}

float* Shard::at(std::int32_t slot, std::int64_t row) const noexcept {
  return slot < 0 ? block_.row + row * block_.stride
                  : block_.slot[slot] + row * block_.slot_stride[slot];
}

void Shard::initialize(std::int32_t slot, const Initializer& initializer, std::uint64_t stream,
                       Executor& executor) {
  if (initializer.is_zero() || rows_ == 0) return;
  constexpr std::int64_t kBlockFloats = 1 << 16;
  const std::int64_t rows = std::max<std::int64_t>(1, kBlockFloats / width(slot));
  std::vector<std::vector<float>> buffers(executor.workers());
  std::exception_ptr error;
  std::atomic<bool> failed = false;
  executor.run((rows_ + rows - 1) / rows, [&](const WorkItem& item) {
    const FloatEnvironment ours;
    try {
      const std::int64_t first = item.index * rows;
      fill_rows(slot, initializer, stream, first, std::min(rows_, first + rows),
                buffers[item.worker]);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

void Shard::fill_rows(std::int32_t slot, const Initializer& initializer, std::uint64_t stream,
                      std::int64_t first, std::int64_t last, std::vector<float>& buffer) {
  const std::int32_t floats = width(slot);
  // With MOD, neighbours in a shard are not neighbours in the table: rows are filled one by one.
  const std::int64_t run = placement_.holds_blocks() ? last - first : 1;
  buffer.resize(run * floats);
  for (std::int64_t row = first; row < last; row += run) {
    const RowRange range{placement_.global_row(host_, row), run, placement_.rows(), floats};
    initializer.fill(range, stream, buffer);
    for (std::int64_t i = 0; i < run; ++i) {
      std::memcpy(at(slot, row + i), buffer.data() + i * floats,
                  static_cast<std::size_t>(floats) * sizeof(float));
    }
  }
}

}  // namespace embertable
