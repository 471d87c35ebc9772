#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "tensor/concatenate.h"
#include "tensor/index_parts.h"
#include "variable/sharded_operations.h"

namespace embertable::sharded {
namespace {

struct Block {
  std::int64_t begin, end;
};

std::int64_t ceiling(std::int64_t x, std::int64_t y) {
  return x <= 0 ? -(-x / y) : (x - 1) / y + 1;
}

/// Returns the part of a slice of the whole that is within a block.
CutSlice within(const CutSlice& slice, Block block) {
  const std::int64_t step = slice.step > 0 ? slice.step : -slice.step;
  // The elements before the k-th are before the block, in the direction of the slice.
  const std::int64_t to_block =
      slice.step > 0 ? block.begin - slice.start : slice.start - (block.end - 1);
  const std::int64_t to_end =
      slice.step > 0 ? block.end - slice.start : slice.start - (block.begin - 1);
  const std::int64_t first = std::max<std::int64_t>(0, ceiling(to_block, step));
  const std::int64_t last = std::min(slice.count, std::max<std::int64_t>(0, ceiling(to_end, step)));
  if (last <= first) return {0, slice.step, 0};
  return {slice.start + first * slice.step - block.begin, slice.step, last - first};
}

/// Returns the rows of a mask that a block has.
Tensor mask_within(const Tensor& mask, Block block) {
  return mask.view(block.begin * mask.byte_strides()[0],
                   mask.shape().with_leading(block.end - block.begin), mask.byte_strides());
}

std::int64_t trues_in(std::span<const std::byte> mask) {
  return std::ssize(mask) - std::ranges::count(mask, std::byte{0});
}

/// Returns a mask that keeps only the selected elements number first to last - 1.
Tensor selecting(const Tensor& mask, std::int64_t first, std::int64_t last) {
  Tensor kept = mask.copy();
  std::int64_t count = 0;
  for (std::byte& element : kept.mutable_bytes()) {
    if (element == std::byte{0}) continue;
    if (count < first || count >= last) element = std::byte{0};
    ++count;
  }
  return kept;
}

/// Elements that a mask over rows selects: those of the blocks before one, and its own.
struct Selected {
  std::int64_t before = 0, here = 0;
};

/// Cuts a mask over rows to the block, and with it the masks that go along element by element.
void cut_masks(IndexParts& parts, std::size_t part, Block block, Selected selected) {
  IndexPart& rows = parts.parts[part];
  rows.mask = mask_within(rows.mask, block);
  for (IndexPart& other : parts.parts) {
    if (&other == &rows || other.kind != IndexPart::kMask) continue;
    if (rows.trues <= 1 || other.trues <= 1) continue;
    other.mask = selecting(other.mask, selected.before, selected.before + selected.here);
  }
}

/// Returns the part of the index that takes axis 0.
std::size_t row_part(const IndexParts& parts) {
  std::size_t i = 0;
  while (parts.parts[i].axes() == 0) ++i;
  return i;
}

/// Returns the same index for a block: `part` takes the block's share. `selected` is of masks.
IndexParts parts_within(const IndexParts& parts, std::size_t part, Block block,
                        Selected selected = {}) {
  IndexParts local = parts;
  IndexPart& rows = local.parts[part];
  if (rows.kind == IndexPart::kInteger) {
    rows.position -= block.begin;
  } else if (rows.kind == IndexPart::kSlice) {
    rows.slice = within(rows.slice, block);
  } else {
    cut_masks(local, part, block, selected);
  }
  return local;
}

}  // namespace

Tensor at(const ShardedState& state, std::span<const Index> parts) {
  const std::span<const std::int64_t> offsets = state.locator.offsets();
  const IndexParts whole = index_parts(state.shape, parts, state);
  const std::size_t part = row_part(whole);
  const IndexPart& rows = whole.parts[part];
  const auto block = [&](std::size_t i) { return Block{offsets[i], offsets[i + 1]}; };
  const auto piece = [&](std::size_t i, const IndexParts& local) {
    return index_by_parts(state.components[i].value(), local);
  };
  if (rows.kind == IndexPart::kInteger) {
    const std::size_t i = state.locator.block(rows.position);
    return piece(i, parts_within(whole, part, block(i)));
  }
  const bool down = rows.kind == IndexPart::kSlice && rows.slice.step < 0;
  const std::size_t count = state.components.size();
  std::vector<Tensor> pieces;
  Selected selected;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = down ? count - 1 - k : k;
    if (rows.kind == IndexPart::kMask) {
      selected.before +=
          std::exchange(selected.here, trues_in(mask_within(rows.mask, block(i)).bytes()));
      if (selected.here == 0) continue;
    } else if (within(rows.slice, block(i)).count == 0) {
      continue;
    }
    pieces.push_back(piece(i, parts_within(whole, part, block(i), selected)));
  }
  if (!pieces.empty()) return concatenate(pieces, whole.result_axis(part), state.executor());
  return index_by_parts(Tensor(state.dtype(), state.rows_shape(0)),
                        parts_within(whole, part, {0, 0}));
}

}  // namespace embertable::sharded
