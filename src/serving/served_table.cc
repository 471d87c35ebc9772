#include "serving/served_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/run_all.h"
#include "checkpoint/stored_rows.h"
#include "rows/placement.h"

namespace embertable::serving {
namespace {

/// Number of bytes that one work item copies or checks.
constexpr std::int64_t kItemBytes = 1 << 20;

constexpr std::int64_t kCacheLineBytes = 64;

}  // namespace

ServedTable::ServedTable(Shard shard)
    : rows_(shard.rows()),
      dim_(shard.dim()),
      type_(shard.type(-1)),
      row_bytes_(checkpoint::stored_row_bytes(type_, dim_)),
      shard_(std::make_unique<const Shard>(std::move(shard))),
      base_(shard_->memory(-1)),
      stride_(shard_->stride(-1)) {}

ServedTable::ServedTable(std::int64_t rows, std::int32_t dim, RowType type, Mapping memory)
    : rows_(rows),
      dim_(dim),
      type_(type),
      row_bytes_(checkpoint::stored_row_bytes(type, dim)),
      memory_(std::move(memory)),
      base_(memory_.data()),
      stride_(checkpoint::stored_columns(type, dim)) {}

ServedTable::ServedTable(std::int64_t rows, std::int32_t dim, RowType type, std::vector<Part> parts,
                         bool check)
    : rows_(rows),
      dim_(dim),
      type_(type),
      row_bytes_(checkpoint::stored_row_bytes(type, dim)),
      parts_(std::move(parts)),
      step_(parts_.front().rows.step),
      check_(check),
      stride_(checkpoint::stored_columns(type, dim)) {
  std::ranges::sort(parts_, {}, [](const Part& part) { return part.rows.first; });
  base_ = first_row(parts_.front());
  bool lines = row_bytes_ % kCacheLineBytes == 0;
  for (const Part& part : parts_) {
    first_.push_back(part.rows.first);
    base_ = std::min(base_, first_row(part), std::less<>());
    lines = lines && reinterpret_cast<std::uintptr_t>(first_row(part)) % kCacheLineBytes == 0;
  }
  if (parts_.size() > 1) stride_ = lines ? kCacheLineBytes / bytes_per_element(type) : 1;
}

const std::byte* ServedTable::row(std::uint64_t number) const noexcept {
  return base_ + static_cast<std::int64_t>(number) * stride_ * bytes_per_element(type_);
}

Rows ServedTable::rows() const noexcept {
  const bool renumbered = parts_.size() > 1;
  return {base_, stride_, rows_, dim_, renumbered || check_ ? this : nullptr, renumbered, type_};
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
      const std::byte* row = first_row(part) + place.local * row_bytes_;
      const auto bytes = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) -
                                                   reinterpret_cast<std::uintptr_t>(base_));
      number[i] = static_cast<std::uint64_t>(bytes / (stride_ * bytes_per_element(type_)));
    }
  }
}

template <class Take>
void ServedTable::for_rows(std::span<const std::uint64_t> ids, Take take) const {
  std::array<std::uint64_t, 512> numbers;
  while (!ids.empty()) {
    const std::size_t count = std::min(ids.size(), numbers.size());
    std::copy_n(ids.data(), count, numbers.data());
    place(numbers.data(), static_cast<std::int64_t>(count), numbers.data());
    for (std::size_t i = 0; i < count; ++i) take(row(numbers[i]));
    ids = ids.subspan(count);
  }
}

void ServedTable::copy(std::span<const std::uint64_t> ids, float* out, std::int64_t stride) const {
  for_rows(ids, [&](const std::byte* row) {
    checkpoint::unstore_rows(type_, dim_, row, {out, static_cast<std::size_t>(dim_)});
    out += stride;
  });
}

/// Copies rows as they are, `stride` bytes apart.
void ServedTable::copy_stored(std::span<const std::uint64_t> ids, std::byte* out,
                              std::int64_t stride) const {
  for_rows(ids, [&](const std::byte* row) {
    std::memcpy(out, row, row_bytes_);
    out += stride;
  });
}

/// Calls copy(ids) for all rows, some at a time, on the executor's workers.
template <class Copy>
void ServedTable::copy_all(Executor& executor, Copy copy) const {
  const std::int64_t at_once = std::max<std::int64_t>(1, kItemBytes / row_bytes_);
  run_all(executor, (rows_ + at_once - 1) / at_once, [&](const WorkItem& item) {
    const std::int64_t first = item.index * at_once;
    std::vector<std::uint64_t> ids(std::min(at_once, rows_ - first));
    std::iota(ids.begin(), ids.end(), static_cast<std::uint64_t>(first));
    copy(ids);
  });
}

std::shared_ptr<const ServedTable> ServedTable::copied(Executor& executor) const {
  if (type_ == RowType::kInt8) {
    Mapping memory(rows_ * row_bytes_);
    copy_all(executor, [&](std::span<const std::uint64_t> ids) {
      copy_stored(ids, memory.data() + static_cast<std::int64_t>(ids[0]) * row_bytes_, row_bytes_);
    });
    return std::make_shared<const ServedTable>(rows_, dim_, type_, std::move(memory));
  }
  Shard shard(Placement(rows_, 1, Sharding::kDiv), 0, dim_, {}, {.type = type_});
  copy_all(executor, [&](std::span<const std::uint64_t> ids) {
    const std::int64_t stride = shard.stride_bytes(-1);
    copy_stored(ids, shard.memory(-1) + static_cast<std::int64_t>(ids[0]) * stride, stride);
  });
  return std::make_shared<const ServedTable>(std::move(shard));
}

std::shared_ptr<const ServedTable> ServedTable::widened(Executor& executor) const {
  Shard shard(Placement(rows_, 1, Sharding::kDiv), 0, dim_, {});
  const RowBlock block = shard.block();
  copy_all(executor, [&](std::span<const std::uint64_t> ids) {
    copy(ids, block.row + static_cast<std::int64_t>(ids[0]) * block.stride, block.stride);
  });
  return std::make_shared<const ServedTable>(std::move(shard));
}

void ServedTable::check_all(Executor& executor) const {
  for (const Part& part : parts_) {
    const std::int64_t end = part.offset + part.rows.count * row_bytes_;
    const std::int64_t size = part.file->block_bytes(), first = part.offset / size;
    run_all(executor, (end - 1) / size + 1 - first,
            [&](const WorkItem& item) { part.file->check((first + item.index) * size, 1); });
  }
}

TableView ServedTable::view() const noexcept {
  auto* const first = const_cast<std::byte*>(base_);
  TableView view = {nullptr, rows_, stride_, dim_};
  if (type_ == RowType::kBfloat16)
    view.bfloat16 = reinterpret_cast<std::uint16_t*>(first);
  else
    view.data = reinterpret_cast<float*>(first);
  return view;
}

}  // namespace embertable::serving
