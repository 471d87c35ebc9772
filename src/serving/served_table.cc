#include "serving/served_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/float_environment.h"
#include "rows/placement.h"

namespace embertable::serving {
namespace {

/// Number of floats in a cache line.
constexpr std::int64_t kLineFloats = 16;

constexpr std::int64_t kFloatBytes = sizeof(float);

/// Number of bytes that one work item copies or checks.
constexpr std::int64_t kItemBytes = 1 << 20;

std::int64_t floats_between(const float* from, const float* to) noexcept {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) -
                                   reinterpret_cast<std::uintptr_t>(from)) /
         kFloatBytes;
}

}  // namespace

void run_all(Executor& executor, std::int64_t items, FunctionRef<void(std::int64_t)> body) {
  std::mutex failing;
  std::int64_t failed = items;
  std::exception_ptr error;
  executor.run(items, [&](const WorkItem& item) {
    const FloatEnvironment ours;
    try {
      body(item.index);
    } catch (...) {
      const std::lock_guard lock(failing);
      if (item.index < failed) failed = item.index, error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

ServedTable::ServedTable(Shard shard)
    : rows_(shard.rows()),
      dim_(shard.dim()),
      row_bytes_(dim_ * kFloatBytes),
      shard_(std::make_unique<const Shard>(std::move(shard))),
      base_(shard_->block().row),
      stride_(shard_->block().stride) {}

ServedTable::ServedTable(std::int64_t rows, std::int32_t dim, std::vector<Part> parts, bool check)
    : rows_(rows),
      dim_(dim),
      row_bytes_(dim * kFloatBytes),
      parts_(std::move(parts)),
      step_(parts_.front().rows.step),
      check_(check),
      stride_(dim) {
  std::ranges::sort(parts_, {}, [](const Part& part) { return part.rows.first; });
  base_ = first_row(parts_.front());
  bool lines = dim % kLineFloats == 0;
  for (const Part& part : parts_) {
    first_.push_back(part.rows.first);
    base_ = std::min(base_, first_row(part), std::less<>());
    lines = lines && reinterpret_cast<std::uintptr_t>(first_row(part)) % 64 == 0;
  }
  if (parts_.size() > 1) stride_ = lines ? kLineFloats : 1;
}

const float* ServedTable::first_row(const Part& part) const noexcept {
  return reinterpret_cast<const float*>(part.file->data() + part.offset);
}

Rows ServedTable::rows() const noexcept {
  const bool renumbered = parts_.size() > 1;
  return {base_, stride_, rows_, dim_, renumbered || check_ ? this : nullptr, renumbered};
}

ServedTable::Place ServedTable::place_of(std::int64_t id) const noexcept {
  if (parts_.size() == 1) return {0, id};
  if (step_ > 1) return {static_cast<std::size_t>(id % step_), id / step_};
  const auto part =
      static_cast<std::size_t>(std::ranges::upper_bound(first_, id) - first_.begin() - 1);
  return {part, id - first_[part]};
}

void ServedTable::place(const std::uint64_t* id, std::int64_t count, std::uint64_t* number) const {
  if (in_memory()) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const Place place = place_of(static_cast<std::int64_t>(id[i]));
    const Part& part = parts_[place.part];
    if (check_) check(part, place.local, 1);
    if (parts_.size() > 1) {
      const float* row = first_row(part) + place.local * dim_;
      number[i] = static_cast<std::uint64_t>(floats_between(base_, row) / stride_);
    }
  }
}

void ServedTable::copy(std::span<const std::uint64_t> ids, float* out, std::int64_t stride) const {
  std::array<std::uint64_t, 512> numbers;
  while (!ids.empty()) {
    const std::size_t count = std::min(ids.size(), numbers.size());
    std::copy_n(ids.data(), count, numbers.data());
    place(numbers.data(), static_cast<std::int64_t>(count), numbers.data());
    for (std::size_t i = 0; i < count; ++i, out += stride)
      std::memcpy(out, base_ + static_cast<std::int64_t>(numbers[i]) * stride_, row_bytes_);
    ids = ids.subspan(count);
  }
}

std::shared_ptr<const ServedTable> ServedTable::copied(Executor& executor) const {
  Shard shard(Placement(rows_, 1, Sharding::kDiv), 0, dim_, {});
  const RowBlock block = shard.block();
  const std::int64_t at_once = std::max<std::int64_t>(1, kItemBytes / row_bytes_);
  run_all(executor, (rows_ + at_once - 1) / at_once, [&](std::int64_t item) {
    const std::int64_t first = item * at_once;
    std::vector<std::uint64_t> ids(std::min(at_once, rows_ - first));
    std::iota(ids.begin(), ids.end(), static_cast<std::uint64_t>(first));
    copy(ids, block.row + first * block.stride, block.stride);
  });
  return std::make_shared<const ServedTable>(std::move(shard));
}

void ServedTable::check_all(Executor& executor) const {
  for (const Part& part : parts_) {
    const std::int64_t end = part.offset + part.rows.count * row_bytes_;
    const std::int64_t size = part.file->block_bytes(), first = part.offset / size;
    run_all(executor, (end - 1) / size + 1 - first,
            [&](std::int64_t item) { part.file->check((first + item) * size, 1); });
  }
}

TableView ServedTable::view() const noexcept {
  return {const_cast<float*>(base_), rows_, stride_, dim_};
}

}  // namespace embertable::serving
