#include "tensor/index_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "embertable/errors.h"

namespace embertable {
namespace {

/// Applies Python's rules for the bounds of a slice.
std::int64_t cut(std::int64_t bound, std::int64_t size, std::int64_t low, std::int64_t high) {
  if (bound < 0) bound = bound < -size ? low : bound + size;
  return std::clamp(bound, low, high);
}

CutSlice cut_slice(const Slice& slice, std::int64_t size) {
  // A step as long as the axis reaches one element, as longer ones do.
  const std::int64_t most = std::max<std::int64_t>(size, 1);
  const std::int64_t step = std::clamp(slice.step.value.value_or(1), -most, most);
  const bool up = step > 0;
  const std::int64_t low = up ? 0 : -1, high = up ? size : size - 1;
  const std::int64_t start =
      slice.start.value ? cut(*slice.start.value, size, low, high) : (up ? 0 : high);
  const std::int64_t stop =
      slice.stop.value ? cut(*slice.stop.value, size, low, high) : (up ? high : -1);
  const std::int64_t span = up ? stop - start : start - stop;
  const std::int64_t stride = up ? step : -step;
  return {start, step, span > 0 ? (span - 1) / stride + 1 : 0};
}

std::int64_t axes_of(const Index& part) {
  if (const auto* mask = std::get_if<Tensor>(&part.part())) return mask->rank();
  return std::holds_alternative<std::int64_t>(part.part()) ||
                 std::holds_alternative<Slice>(part.part())
             ? 1
             : 0;
}

/// Turns the parts that a user wrote into those of an IndexParts, from left to right.
class Expansion {
 public:
  Expansion(const Shape& shape, std::span<const Index> parts, const IndexSubject& what)
      : shape_(shape), what_(what) {
    std::int64_t named = 0;
    for (const Index& part : parts) named += axes_of(part);
    if (named > shape.rank())
      throw IndexError(fmt::format("{}index: {} axes are indexed, shape {} has {}", what.subject(),
                                   named, shape.to_string(), shape.rank()));
    left_ = shape.rank() - static_cast<int>(named);
    for (const Index& part : parts) std::visit(*this, part.part());
    add_whole_axes(left_);
    check_axes();
    check_masks();
    result_.mask_first = selectors_apart();
  }

  void operator()(std::int64_t position) {
    const std::int64_t size = shape_[axis_];
    if (position < -size || position >= size) refuse_position(position, size);
    add({.kind = IndexPart::kInteger, .position = position < 0 ? position + size : position});
  }
  void operator()(const Slice& slice) {
    if (slice.step.value == 0) refuse("slice step cannot be zero");
    add({.kind = IndexPart::kSlice, .slice = cut_slice(slice, shape_[axis_])});
  }
  void operator()(Ellipsis) {
    if (std::exchange(ellipsis_, true)) refuse("an index can only have a single ellipsis ('...')");
    breaks_.push_back(result_.parts.size());
    add_whole_axes(std::exchange(left_, 0));
  }
  void operator()(NewAxis) { add({.kind = IndexPart::kNewAxis}); }
  void operator()(const Tensor& mask) {
    for (int i = 0; i < mask.rank(); ++i)
      if (mask.shape()[i] != shape_[axis_ + i])
        refuse(fmt::format("a mask of shape {} does not fit axis {} of shape {}",
                           mask.shape().to_string(), axis_ + i, shape_.to_string()));
    IndexPart part = {.kind = IndexPart::kMask, .mask = mask.packed()};
    const auto selected = part.mask.bytes();
    part.trues = std::ssize(selected) - std::ranges::count(selected, std::byte{0});
    add(std::move(part));
  }

  IndexParts take() { return std::move(result_); }

 private:
  [[noreturn]] void refuse(const std::string& rule) const {
    throw ValueError(what_.subject() + "index: " + rule);
  }

  /// Names the row if the index does: on axis 0 it is the one out of bounds.
  [[noreturn]] void refuse_position(std::int64_t position, std::int64_t size) const {
    const std::string where = axis_ == 0 ? what_.at_row(position) : where_rows_are();
    throw IndexError(fmt::format("{}index {} {}{}", what_.subject(), position,
                                 out_of_bounds_text(axis_, size), where));
  }

  /// Returns where the rows lie that axis 0 was given, if they are in one place.
  std::string where_rows_are() const {
    for (const IndexPart& part : result_.parts) {
      if (part.kind == IndexPart::kInteger && part.axis == 0) return what_.at_row(part.position);
      const CutSlice& rows = part.slice;
      if (part.kind != IndexPart::kSlice || part.axis != 0 || rows.count == 0) continue;
      const std::string first = what_.at_row(rows.start);
      if (first == what_.at_row(rows.start + (rows.count - 1) * rows.step)) return first;
    }
    return "";
  }

  /// Counts the axes of masks too, because they are axes of a view before they are selected from.
  void check_axes() const {
    int axes = 0;
    for (const IndexPart& part : result_.parts)
      axes += part.kind == IndexPart::kNewAxis   ? 1
              : part.kind == IndexPart::kInteger ? 0
                                                 : part.axes();
    if (axes > Shape::kMaxRank)
      refuse(fmt::format("the result has more than {} axes, {}", Shape::kMaxRank, axes));
  }

  /// Checks the masks, which select element by element, or one element for all of another's.
  void check_masks() const {
    std::int64_t most = 1;
    for (const IndexPart& part : result_.parts) {
      if (part.kind != IndexPart::kMask || part.trues == 1) continue;
      if (most != 1 && part.trues != most)
        refuse(fmt::format("masks must select equally many elements, or one, got {} and {}", most,
                           part.trues));
      most = part.trues;
    }
  }

  void add(IndexPart part) {
    part.axis = axis_;
    axis_ += part.axes();
    result_.parts.push_back(std::move(part));
  }
  void add_whole_axes(int count) {
    for (; count > 0; --count) add({.kind = IndexPart::kSlice, .slice = {0, 1, shape_[axis_]}});
  }

  /// Returns false if nothing is between integers and masks, or there is no mask.
  bool selectors_apart() const {
    const auto is_mask = [](const IndexPart& part) { return part.kind == IndexPart::kMask; };
    if (std::ranges::none_of(result_.parts, is_mask)) return false;
    std::optional<std::size_t> first, last;
    for (std::size_t i = 0; i < result_.parts.size(); ++i) {
      const IndexPart::Kind kind = result_.parts[i].kind;
      if (kind != IndexPart::kInteger && kind != IndexPart::kMask) continue;
      if (!first) first = i;
      last = i;
    }
    for (std::size_t i = *first; i < *last; ++i) {
      const IndexPart::Kind kind = result_.parts[i].kind;
      if (kind != IndexPart::kInteger && kind != IndexPart::kMask) return true;
    }
    return std::ranges::any_of(breaks_, [&](std::size_t b) { return *first < b && b <= *last; });
  }

  const Shape& shape_;
  const IndexSubject& what_;
  IndexParts result_;
  std::vector<std::size_t> breaks_;  ///< parts before which an ellipsis stood
  int axis_ = 0;
  int left_ = 0;  ///< axes that an ellipsis stands for
  bool ellipsis_ = false;
};

}  // namespace

int IndexParts::result_axis(std::size_t part) const {
  if (parts[part].kind == IndexPart::kMask && mask_first) return 0;
  int axis = mask_first ? 1 : 0;
  bool counted = mask_first;  // the axis of all masks
  for (std::size_t i = 0; i < part; ++i) {
    const bool mask = parts[i].kind == IndexPart::kMask;
    if (parts[i].kind != IndexPart::kInteger && !(mask && counted)) ++axis;
    counted = counted || mask;
  }
  return axis;
}

IndexParts index_parts(const Shape& shape, std::span<const Index> parts, const IndexSubject& what) {
  return Expansion(shape, parts, what).take();
}

std::string out_of_bounds_text(int axis, std::int64_t size) {
  return fmt::format("is out of bounds for axis {} with size {}", axis, size);
}

}  // namespace embertable
