#include "rows/shard.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/bfloat16.h"
#include "base/run_all.h"

namespace embertable {
namespace {

/// Returns the number of cache lines that as many consecutive records touch as a line has elements,
/// counted per record.
std::int64_t lines_touched(std::int64_t record, std::int64_t stride, std::int64_t line) {
  std::int64_t lines = 0;
  for (std::int64_t i = 0; i < line; ++i) {
    const std::int64_t first = i * stride % line;
    lines += (first + record + line - 1) / line;
  }
  return lines;
}

/// Returns the largest int64 if the product exceeds it: no machine has that much memory.
std::int64_t bytes_of(std::int64_t rows, std::int64_t row_bytes) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(rows, row_bytes, &bytes) ? std::numeric_limits<std::int64_t>::max()
                                                         : bytes;
}

}  // namespace

std::int64_t record_stride(std::int64_t record, std::int64_t line) {
  std::int64_t best = record;
  for (std::int64_t stride = record + 1; stride <= record + record / 8; ++stride) {
    if (lines_touched(record, stride, line) < lines_touched(record, best, line)) best = stride;
  }
  return best;
}

Shard::Shard(const Placement& placement, std::int32_t host, std::int32_t dim,
             const std::vector<bool>& row_wise, RowStorage storage)
    : placement_(placement),
      host_(host),
      rows_(placement.shard_rows(host)),
      row_wise_(row_wise.size()) {
  const auto full = std::count(row_wise.begin(), row_wise.end(), false);
  block_.dim = dim;
  block_.rows = rows_;
  block_.slots = static_cast<std::int32_t>(row_wise.size());
  block_.type = storage.type;
  block_.rounding = {storage.rounding_stream, placement.global_row(host, 0), 1};
  if (rows_ > 1) block_.rounding.step = placement.global_row(host, 1) - block_.rounding.first;
  constexpr std::int64_t kLineBytes = 64;
  const std::int64_t element = block_.element_bytes();
  // Slots in the record of a row of halves start on the border of a float, and so does each record.
  const std::int64_t floats = (dim * element + 3) / 4 + dim * full;
  block_.stride =
      full == 0 ? record_stride(dim, kLineBytes / element) : record_stride(floats) * (4 / element);
  if (rows_ > 0) records_ = Mapping(bytes_of(rows_, block_.stride * element));
  if (block_.is_half())
    block_.half = reinterpret_cast<std::uint16_t*>(records_.data());
  else
    block_.row = reinterpret_cast<float*>(records_.data());
  auto* next_in_record = reinterpret_cast<float*>(records_.data());
  std::int64_t floats_before = (dim * element + 3) / 4;
  for (std::size_t slot = 0; slot < row_wise.size(); ++slot) {
    if (row_wise[slot]) {
      if (rows_ > 0) row_wise_[slot] = Mapping(bytes_of(rows_, sizeof(float)));
      block_.slot[slot] = reinterpret_cast<float*>(row_wise_[slot].data());
      block_.slot_stride[slot] = 1;
    } else {
      if (next_in_record != nullptr) next_in_record += floats_before;
      floats_before = dim;
      block_.slot[slot] = next_in_record;
      block_.slot_stride[slot] = block_.stride * element / 4;
    }
  }
}

std::int32_t Shard::width(std::int32_t slot) const noexcept {
  return slot >= 0 && is_row_wise(slot) ? 1 : block_.dim;
}

void Shard::read(std::int32_t slot, std::int64_t first, std::int64_t step, std::int64_t count,
                 float* out) const noexcept {
  const std::int64_t floats = width(slot), stride = stride_bytes(slot);
  const std::byte* from = memory(slot) + first * stride;
  const bool is_half = type(slot) == RowType::kBfloat16;
  if (!is_half && step * stride == floats * static_cast<std::int64_t>(sizeof(float))) {
    if (count > 0) std::memcpy(out, from, static_cast<std::size_t>(count * floats) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, from += step * stride, out += floats) {
    if (is_half)
      std::transform(reinterpret_cast<const std::uint16_t*>(from),
                     reinterpret_cast<const std::uint16_t*>(from) + floats, out, widened);
    else
      std::memcpy(out, from, static_cast<std::size_t>(floats) * sizeof(float));
  }
}

void Shard::write(std::int32_t slot, std::int64_t row, const float* values) const noexcept {
  std::byte* const to = memory(slot) + row * stride_bytes(slot);
  if (type(slot) == RowType::kBfloat16)
    std::transform(values, values + width(slot), reinterpret_cast<std::uint16_t*>(to),
                   rounded_to_nearest);
  else
    std::memcpy(to, values, static_cast<std::size_t>(width(slot)) * sizeof(float));
}

void Shard::initialize(std::int32_t slot, const Initializer& initializer, std::uint64_t stream,
                       Executor& executor) {
  in_blocks(slot, executor, [&](std::int64_t first, std::int64_t last, std::vector<float>& buffer) {
    fill_rows(slot, initializer, stream, first, last, buffer);
  });
}

void Shard::copy(std::int32_t slot, const Shard& from, Executor& executor) {
  in_blocks(slot, executor, [&](std::int64_t first, std::int64_t last, std::vector<float>& buffer) {
    const std::int32_t floats = width(slot);
    buffer.resize((last - first) * floats);
    from.read(slot, first, 1, last - first, buffer.data());
    for (std::int64_t row = first; row < last; ++row)
      write(slot, row, buffer.data() + (row - first) * floats);
  });
}

/// Calls `block` for rows first to last - 1, in parallel, with memory of the worker's.
void Shard::in_blocks(std::int32_t slot, Executor& executor, Block block) const {
  if (rows_ == 0) return;
  constexpr std::int64_t kBlockFloats = 1 << 16;
  const std::int64_t rows = std::max<std::int64_t>(1, kBlockFloats / width(slot));
  std::vector<std::vector<float>> buffers(executor.workers());
  run_all(executor, (rows_ + rows - 1) / rows, [&](const WorkItem& item) {
    const std::int64_t first = item.index * rows;
    block(first, std::min(rows_, first + rows), buffers[item.worker]);
  });
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
    for (std::int64_t i = 0; i < run; ++i) write(slot, row + i, buffer.data() + i * floats);
  }
}

}  // namespace embertable
