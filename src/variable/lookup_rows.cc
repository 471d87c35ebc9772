#include "variable/lookup_rows.h"

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/enumerators.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "tensor/element_type.h"
#include "tensor/index_parts.h"
#include "tensor/ranges.h"
#include "tensor/strides.h"
#include "variable/block_text.h"

namespace embertable::sharded {
namespace {

/// True if the elements of every row are row-major without gaps.
bool has_whole_rows(const Tensor& part) {
  const Tensor::Strides packed = packed_strides(part.shape(), byte_width(part.dtype()));
  if (part.byte_strides()[0] < 0) return false;
  for (int axis = 1; axis < part.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (part.shape()[axis] != 1 && part.byte_strides()[i] != packed[i]) return false;
  }
  return true;
}

void check_parts(const std::vector<Tensor>& parts) {
  if (parts.empty()) throw ValueError("lookup: Need at least one param, got none");
  const Tensor& first = parts.front();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string subject = "lookup: part " + std::to_string(i) + " ";
    if (parts[i].rank() < 1) throw ValueError(subject + "must have rank >= 1, got a scalar");
    if (parts[i].dtype() != first.dtype())
      throw ValueError(subject + "must be " + std::string(to_string(first.dtype())) +
                       " as part 0, got " + std::string(to_string(parts[i].dtype())));
    if (!(parts[i].shape().with_leading(0) == first.shape().with_leading(0)))
      throw ValueError(subject + "must have rows like those of part 0, of shape " +
                       first.shape().to_string() + ", got shape " + parts[i].shape().to_string());
  }
}

std::vector<Tensor> checked_parts(std::vector<Tensor> parts) {
  check_parts(parts);
  for (Tensor& part : parts)
    if (!has_whole_rows(part)) part = part.packed();
  return parts;
}

std::vector<std::int64_t> row_counts(const std::vector<Tensor>& parts) {
  std::vector<std::int64_t> rows;
  for (const Tensor& part : parts) rows.push_back(part.shape()[0]);
  return rows;
}

std::vector<RowBlockPlace> places_of(const std::vector<Tensor>& parts) {
  std::vector<RowBlockPlace> places;
  for (const Tensor& part : parts)
    places.push_back({part.data(), part.byte_strides()[0], part.shape()[0]});
  return places;
}

/// The type that computes with elements of type T.
template <class T>
using NumberOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Returns the sum of the squares: 16 lanes, then folded by halves.
template <class Number, class T>
Number sum_of_squares(const T* row, std::int64_t width) {
  Number lanes[16] = {};
  for (std::int64_t c = 0; c < width; ++c) {
    const Number x = static_cast<NumberOf<T>>(row[c]);
    lanes[c % 16] += x * x;
  }
  for (int half = 8; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

template <class Number, class T>
void limit_norm(T* row, std::int64_t width, double max_norm) {
  const auto most = static_cast<Number>(max_norm);
  const Number norm = std::sqrt(sum_of_squares<Number>(row, width));
  const Number divisor = norm <= most ? most : norm;  // NaN stays NaN
  if constexpr (!std::is_same_v<Number, long double>) {
    // The norms may be beyond this type's range, and so may products, of which the largest is about
    // norm * most. Elements are right that are at least epsilon^2 of the norm.
    using Wider = std::conditional_t<std::is_same_v<Number, float>, double, long double>;
    using Limits = std::numeric_limits<Number>;
    constexpr Number kLeast = Limits::min() / (Limits::epsilon() * Limits::epsilon());
    const Number product = norm * most;
    if (!(divisor > 0 && product >= kLeast && std::isfinite(product)))
      return limit_norm<Wider>(row, width, max_norm);
  }
  for (std::int64_t c = 0; c < width; ++c) {
    const Number x = static_cast<NumberOf<T>>(row[c]);
    row[c] = static_cast<T>(static_cast<NumberOf<T>>(x * most / divisor));
  }
}

template <class T>
void limit_all(Tensor& rows, std::int64_t width, double max_norm, Executor* executor) {
  T* values = rows.mutable_values<T>().data();
  const auto bytes = width * static_cast<std::int64_t>(sizeof(T));
  for_ranges(rows.size() / width, bytes, executor, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      limit_norm<NumberOf<T>>(values + i * width, width, max_norm);
  });
}

}  // namespace

LookupRows::LookupRows(const LookupParams& params, Sharding strategy)
    : subject_(params.is_container() ? "sharded variable '" + params.name() + "': " : ""),
      part_names_(params.part_names()),
      parts_(checked_parts(params.parts())),
      strategy_(params.is_container() ? Sharding::kDiv : strategy),
      row_shape_(parts_.front().shape().dims().subspan(1)),
      locator_(offsets_of(row_counts(parts_), "lookup: ")),
      addresses_(locator_, places_of(parts_)) {
  check_enumerator(strategy, "lookup: partition_strategy");
}

bool LookupRows::has(std::int64_t id) const noexcept {
  if (id < 0) return false;
  if (strategy_ == Sharding::kDiv) return id < locator_.rows();
  const auto parts = static_cast<std::int64_t>(parts_.size());
  return id / parts < parts_[id % parts].shape()[0];
}

std::string LookupRows::part_text(std::size_t part) const {
  const std::string text = (subject_.empty() ? "part " : "component ") + std::to_string(part);
  return part_names_.empty() ? text : text + " ('" + part_names_[part] + "')";
}

void LookupRows::refuse(std::int64_t id, std::int64_t position) const {
  const std::string what = position < 0 ? "default_id" : "ids[" + std::to_string(position) + "]";
  std::string why;
  if (strategy_ == Sharding::kMod && id >= 0) {
    const auto part = static_cast<std::size_t>(id % std::ssize(parts_));
    const std::int64_t rows = parts_[part].shape()[0];
    why = "is row " + std::to_string(id / std::ssize(parts_)) + " of " + part_text(part) +
          " by 'mod', which is out of bounds for axis 0 with size " + std::to_string(rows);
  } else {
    why = out_of_bounds_text(0, locator_.rows());
    if (strategy_ == Sharding::kDiv)
      why += block_text(locator_, id, [&](std::size_t part) { return part_text(part); });
  }
  throw IndexError(subject_ + "lookup: " + what + " = " + std::to_string(id) + " " + why);
}

RowIndices LookupRows::rows_of(IntegerSpan ids, std::span<const std::int64_t> positions,
                               std::vector<std::int64_t>& memory) const {
  const bool div = strategy_ == Sharding::kDiv;
  const auto parts = static_cast<std::int64_t>(parts_.size());
  if (!div) memory.resize(ids.size());
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids[i];
    if (!has(id)) refuse(id, positions.empty() ? i : positions[i]);
    if (!div) memory[i] = locator_.offsets()[id % parts] + id / parts;
  }
  if (div) return {static_cast<const std::byte*>(ids.data()), ids.size(), ids.is_int64()};
  return {reinterpret_cast<const std::byte*>(memory.data()), ids.size(), true};
}

void check_max_norm(const EmbeddingLookupOptions& options, DType dtype) {
  if (!options.max_norm) return;
  if (!(std::isfinite(*options.max_norm) && *options.max_norm > 0))
    throw ValueError("lookup: max_norm must be finite and > 0, got " +
                     std::to_string(*options.max_norm));
  if (!is_floating(dtype))
    throw ValueError("lookup: max_norm needs a table of floating-point numbers, got " +
                     std::string(to_string(dtype)));
}

void limit_norms(Tensor& rows, std::int64_t width, double max_norm, Executor* executor) {
  if (rows.size() == 0) return;
  with_element_type(rows.dtype(), [&]<class T>(ElementType<T>) {
    if constexpr (!std::is_integral_v<T>) limit_all<T>(rows, width, max_norm, executor);
  });
}

}  // namespace embertable::sharded
