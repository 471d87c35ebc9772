#include "tensorflow/bundle/slices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <string_view>

#include "embertable/errors.h"

namespace embertable::formats {

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) empty = true;
    if (dim > 0 && __builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return empty ? 0 : count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::int64_t Box::volume() const noexcept {
  return std::accumulate(length.begin(), length.end(), std::int64_t{1}, std::multiplies<>());
}

bool Box::covers(std::span<const std::int64_t> shape) const noexcept {
  return std::equal(length.begin(), length.end(), shape.begin(), shape.end());
}

Box whole_of(const Dims& shape) { return {Dims(shape.size(), 0), shape}; }

Box box_of(const TensorSlice& slice, std::span<const std::int64_t> shape) {
  if (slice.size() != shape.size()) {
    throw ValueError(fmt::format("Mismatching ranks: a slice of {} axes of the shape {}",
                                 slice.size(), shape_text(shape)));
  }
  Box box;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool whole = slice[i].length == SliceExtent::kWhole;
    const std::int64_t start = whole ? 0 : slice[i].start;
    const std::int64_t length = whole ? shape[i] : slice[i].length;
    if (start < 0 || length < 0 || start > shape[i] || length > shape[i] - start) {
      throw ValueError(fmt::format("slice out of bounds: {} from {} on axis {} of the shape {}",
                                   length, start, i, shape_text(shape)));
    }
    box.start.push_back(start);
    box.length.push_back(length);
  }
  return box;
}

std::optional<Box> intersection(const Box& a, const Box& b) {
  Box common;
  for (std::size_t i = 0; i < a.start.size(); ++i) {
    const std::int64_t start = std::max(a.start[i], b.start[i]);
    const std::int64_t end = std::min(a.start[i] + a.length[i], b.start[i] + b.length[i]);
    if (start >= end) return std::nullopt;
    common.start.push_back(start);
    common.length.push_back(end - start);
  }
  return common;
}

bool share_an_element(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.start.size(); ++i) {
    const std::int64_t end = std::min(a.start[i] + a.length[i], b.start[i] + b.length[i]);
    if (std::max(a.start[i], b.start[i]) >= end) return false;
  }
  return true;
}

namespace {

using Indices = std::vector<std::size_t>;

/// Finds an overlap by comparing each of some boxes with each.
std::optional<OverlappingPair> overlap_of_pairs(std::span<const Box> boxes, const Indices& some) {
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (i == kMaxComparedBoxes)
      throw ValueError(
          fmt::format("{} slices that no plane separates: at most {} can be told apart",
                      some.size(), kMaxComparedBoxes));
    for (std::size_t j = 0; j < i; ++j) {
      if (share_an_element(boxes[some[i]], boxes[some[j]]))
        return OverlappingPair{std::min(some[i], some[j]), std::max(some[i], some[j])};
    }
  }
  return std::nullopt;
}

/// Boxes on both sides of a plane; a box that it cuts is on both.
struct Sides {
  Indices low, high;
  std::size_t larger() const { return std::max(low.size(), high.size()); }
};

Sides cut(std::span<const Box> boxes, const Indices& some, std::size_t axis, std::int64_t at) {
  Sides sides;
  for (const std::size_t i : some) {
    const std::int64_t start = boxes[i].start[axis];
    if (start < at) sides.low.push_back(i);
    if (start + boxes[i].length[axis] > at) sides.high.push_back(i);
  }
  return sides;
}

/// Returns the cut at the middle of the starts, on the axis where it leaves fewest on the larger
/// side.
Sides best_cut(std::span<const Box> boxes, const Indices& some) {
  Sides best{some, some};
  std::vector<std::int64_t> starts(some.size());
  for (std::size_t axis = 0; axis < boxes[some.front()].start.size(); ++axis) {
    std::transform(some.begin(), some.end(), starts.begin(),
                   [&](std::size_t i) { return boxes[i].start[axis]; });
    const auto middle = starts.begin() + std::ssize(starts) / 2;
    std::nth_element(starts.begin(), middle, starts.end());
    Sides sides = cut(boxes, some, axis, *middle);
    if (sides.larger() < best.larger()) best = std::move(sides);
  }
  return best;
}

/// Halves the boxes to compare, as long as that leaves clearly fewer.
std::optional<OverlappingPair> overlap_of(std::span<const Box> boxes, const Indices& some) {
  constexpr std::size_t kFew = 16;
  if (some.size() <= kFew) return overlap_of_pairs(boxes, some);
  const Sides sides = best_cut(boxes, some);
  const bool worth_it = sides.larger() <= some.size() / 8 * 7 &&
                        sides.low.size() + sides.high.size() <= some.size() / 4 * 5;
  if (!worth_it) return overlap_of_pairs(boxes, some);
  const auto low = overlap_of(boxes, sides.low);
  return low ? low : overlap_of(boxes, sides.high);
}

}  // namespace

std::optional<OverlappingPair> find_overlap(std::span<const Box> boxes) {
  Indices all(boxes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return overlap_of(boxes, all);
}

BoxRuns::BoxRuns(const Box& read, const Box& written, const Box& common) {
  std::int64_t read_stride = 1, written_stride = 1;
  run_.count = 1;
  bool covered = true;  // so far runs cover all of every axis, in both
  for (std::size_t i = common.start.size(); i-- > 0;) {
    run_.from += (common.start[i] - read.start[i]) * read_stride;
    read_end_ += (common.start[i] + common.length[i] - 1 - read.start[i]) * read_stride;
    run_.to += (common.start[i] - written.start[i]) * written_stride;
    if (covered) {
      run_.count *= common.length[i];
    } else {
      axes_.push_back({common.length[i], read_stride, written_stride, 0});
    }
    covered =
        covered && common.length[i] == read.length[i] && common.length[i] == written.length[i];
    read_stride *= read.length[i];
    written_stride *= written.length[i];
  }
  std::reverse(axes_.begin(), axes_.end());
}

bool BoxRuns::next(Run& run) {
  if (done_) return false;
  run = run_;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    run_.from += axis->read_stride;
    run_.to += axis->written_stride;
    if (++axis->index < axis->count) return true;
    run_.from -= axis->count * axis->read_stride;
    run_.to -= axis->count * axis->written_stride;
    axis->index = 0;
  }
  done_ = true;
  return true;
}

}  // namespace embertable::formats

namespace embertable {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t cut; (cut = text.find(at)) != std::string_view::npos;
       text.remove_prefix(cut + 1))
    parts.push_back(text.substr(0, cut));
  parts.push_back(text);
  return parts;
}

/// Parses a decimal with or without a sign.
std::optional<std::int64_t> number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

[[noreturn]] void refuse_spec(std::string_view text, const std::string& rule) {
  throw ValueError(fmt::format("slice spec '{}': {}", text, rule));
}

SliceExtent parse_extent(std::string_view item, std::string_view spec) {
  if (item == "-") return {};
  const std::vector<std::string_view> pair = split(item, ',');
  const auto start = number(pair.front());
  const auto length = number(pair.back());
  if (pair.size() != 2 || !start || !length)
    refuse_spec(spec, fmt::format("Expected a pair of numbers or '-', got '{}'", item));
  if (*start < 0 || *length < 1) {
    refuse_spec(spec,
                fmt::format("Expected non-negative start and positive length, got '{}'", item));
  }
  return {*start, *length};
}

}  // namespace

SliceSpec parse_slice_spec(std::string_view text) {
  std::vector<std::string_view> fields = split(text, ' ');
  if (fields.size() < 2)
    refuse_spec(text, fmt::format("Need least two elements, got {}", fields.size()));
  SliceSpec spec;
  const std::string_view slice = fields.back();
  fields.pop_back();
  for (const std::string_view field : fields) {
    const auto dim = number(field);
    if (!dim) refuse_spec(text, fmt::format("Non numerical dimension, got '{}'", field));
    if (*dim < 0) refuse_spec(text, fmt::format("a dimension must be >= 0, got {}", *dim));
    spec.full_shape.push_back(*dim);
  }
  for (const std::string_view item : split(slice, ':'))
    spec.slice.push_back(parse_extent(item, text));
  try {
    formats::box_of(spec.slice, spec.full_shape);
  } catch (const ValueError& error) {
    refuse_spec(text, error.what());
  }
  return spec;
}

std::string to_string(const SliceSpec& spec) {
  std::string text;
  for (const std::int64_t dim : spec.full_shape) text += std::to_string(dim) + " ";
  for (std::size_t i = 0; i < spec.slice.size(); ++i) {
    const SliceExtent& extent = spec.slice[i];
    if (i > 0) text += ":";
    text += extent.length == SliceExtent::kWhole
                ? "-"
                : fmt::format("{},{}", extent.start, extent.length);
  }
  return text;
}

}  // namespace embertable
