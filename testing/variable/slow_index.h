#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testing/variable/slow_array.h"

namespace embertable::sharded_test {

/// What stands between two commas of an index, as a plain struct.
struct SlowPart {
  enum Kind : std::uint8_t { kInteger, kSlice, kEllipsis, kNewAxis, kMask };
  Kind kind = kSlice;
  std::int64_t position = 0;
  std::optional<std::int64_t> start, stop, step;
  SlowArray mask;
};

inline Index to_index(const SlowPart& part) {
  const auto bound = [](const std::optional<std::int64_t>& value) {
    return value ? SliceBound(*value) : SliceBound();
  };
  switch (part.kind) {
    case SlowPart::kInteger:
      return part.position;
    case SlowPart::kSlice:
      return Slice{bound(part.start), bound(part.stop), bound(part.step)};
    case SlowPart::kEllipsis:
      return Ellipsis{};
    case SlowPart::kNewAxis:
      return NewAxis{};
    case SlowPart::kMask:
      return to_tensor(part.mask);
  }
  return 0;
}

inline std::string shown(const SlowPart& part) {
  const auto bound = [](const std::optional<std::int64_t>& value) {
    return value ? std::to_string(*value) : std::string();
  };
  switch (part.kind) {
    case SlowPart::kInteger:
      return std::to_string(part.position);
    case SlowPart::kSlice:
      return bound(part.start) + ":" + bound(part.stop) + ":" + bound(part.step);
    case SlowPart::kEllipsis:
      return "...";
    case SlowPart::kNewAxis:
      return "newaxis";
    case SlowPart::kMask:
      return "mask " + shown(part.mask);
  }
  return "";
}

/// The positions of a slice: from its start in steps while it has not met its stop. Bounds outside
/// of the axis are moved to its ends, as CPython's PySlice_AdjustIndices does.
inline Dims slice_positions(const SlowPart& part, std::int64_t size) {
  const std::int64_t step = part.step.value_or(1);
  const auto adjusted = [&](std::int64_t bound) {
    if (bound < 0) {
      bound += size;
      if (bound < 0) bound = step < 0 ? -1 : 0;
    } else if (bound >= size) {
      bound = step < 0 ? size - 1 : size;
    }
    return bound;
  };
  const std::int64_t start = part.start ? adjusted(*part.start) : (step < 0 ? size - 1 : 0);
  const std::int64_t stop = part.stop ? adjusted(*part.stop) : (step < 0 ? -1 : size);
  Dims positions;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) positions.push_back(i);
  return positions;
}

/// One axis of a result: at each of its places, how far it moves in the indexed array.
struct SlowAxis {
  Dims offsets;
};

/// array[parts] by NumPy's rules, every element fetched for itself.
inline SlowArray slow_index(const SlowArray& array, const std::vector<SlowPart>& parts) {
  Dims step(array.dims.size() + 1, 1);
  for (std::size_t i = array.dims.size(); i-- > 0;) step[i] = step[i + 1] * array.dims[i];
  std::size_t named = 0;
  for (const SlowPart& part : parts)
    named += part.kind == SlowPart::kMask ? part.mask.dims.size()
             : part.kind == SlowPart::kInteger || part.kind == SlowPart::kSlice ? 1u
                                                                                : 0u;
  const SlowPart everything;
  std::size_t axis = 0;
  std::int64_t base = 0;
  std::vector<SlowAxis> axes;
  std::vector<int> order;  // 0 fancy, 1 other: as the parts stand
  std::optional<std::size_t> mask_at;
  const auto take_slice = [&](const SlowPart& part) {
    SlowAxis taken;
    for (const std::int64_t i : slice_positions(part, array.dims[axis]))
      taken.offsets.push_back(i * step[axis + 1]);
    axes.push_back(taken);
    ++axis;
  };
  const auto take_mask = [&](const SlowArray& mask) {
    SlowAxis taken;
    for (std::int64_t i = 0; i < product(mask.dims); ++i) {
      if (mask.cell[i].integer == 0) continue;
      std::int64_t rest = i, offset = 0;
      for (std::size_t k = mask.dims.size(); k-- > 0;) {
        offset += rest % mask.dims[k] * step[axis + k + 1];
        rest /= mask.dims[k];
      }
      taken.offsets.push_back(offset);
    }
    axis += mask.dims.size();
    if (!mask_at) {
      mask_at = axes.size();
      axes.push_back(taken);
      return;
    }
    Dims& before = axes[*mask_at].offsets;  // pairs, or one beside all
    if (before.size() == 1) before.assign(taken.offsets.size(), before[0]);
    for (std::size_t i = 0; i < before.size(); ++i)
      before[i] += taken.offsets[taken.offsets.size() == 1 ? 0 : i];
  };
  for (const SlowPart& part : parts) {
    order.push_back(part.kind == SlowPart::kInteger || part.kind == SlowPart::kMask ? 0 : 1);
    if (part.kind == SlowPart::kInteger) {
      const std::int64_t i = part.position + (part.position < 0 ? array.dims[axis] : 0);
      base += i * step[++axis];
    } else if (part.kind == SlowPart::kSlice) {
      take_slice(part);
    } else if (part.kind == SlowPart::kNewAxis) {
      axes.push_back({{0}});
    } else if (part.kind == SlowPart::kMask) {
      take_mask(part.mask);
    } else {
      for (std::size_t left = array.dims.size() - named; left > 0; --left) take_slice(everything);
    }
  }
  while (axis < array.dims.size()) take_slice(everything);
  if (mask_at) {  // fancy parts with others between them: their axis goes first
    std::string kinds;
    for (const int kind : order) kinds += kind == 0 ? 'f' : 'o';
    const std::size_t first = kinds.find('f'), last = kinds.rfind('f');
    if (kinds.substr(first, last - first).find('o') != std::string::npos) {
      const SlowAxis moved = axes[*mask_at];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(*mask_at));
      axes.insert(axes.begin(), moved);
    }
  }
  SlowArray result = {array.dtype, {}, {}};
  for (const SlowAxis& a : axes) result.dims.push_back(static_cast<std::int64_t>(a.offsets.size()));
  for (std::int64_t i = 0; i < product(result.dims); ++i) {
    std::int64_t rest = i, offset = base;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto size = static_cast<std::int64_t>(axes[k].offsets.size());
      offset += axes[k].offsets[rest % size];
      rest /= size;
    }
    result.cell.push_back(array.cell[offset]);
  }
  return result;
}

}  // namespace embertable::sharded_test
