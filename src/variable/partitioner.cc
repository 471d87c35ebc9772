#include "embertable/variables/partitioner.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/enumerators.h"
#include "embertable/errors.h"
#include "tensor/dtypes.h"

namespace embertable {
namespace {

__extension__ using Product128 = unsigned __int128;

void require_positive(std::int64_t value, const std::string& what) {
  if (value >= 1) return;
  throw ValueError(what + " must be positive, got " + std::to_string(value));
}

/// Returns the axis counted from the front. Throws IndexError if the shape lacks it.
int counted_from_front(const Shape& shape, int axis) {
  const int rank = std::max(shape.rank(), 0);
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  throw IndexError("partitioner: axis must be " + std::to_string(-rank) + ".." +
                   std::to_string(rank - 1) + " for shape " + shape.to_string() + ", got " +
                   std::to_string(axis));
}

void require_rank(const Shape& shape) {
  if (!shape.has_rank()) throw ValueError("partitioner: a shape must have a rank, got none");
}

/// Returns the bytes of all elements of the dims except `without`; the largest Product128 if there
/// are more.
Product128 bytes_of(const Shape& shape, std::int64_t element_bytes, int without = -1) {
  Product128 product = static_cast<Product128>(element_bytes);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis == without) continue;
    const auto dim = static_cast<Product128>(shape[axis]);
    if (__builtin_mul_overflow(product, dim, &product)) product = ~Product128{0};
  }
  return product;
}

std::vector<std::int64_t> all_one_but(const Shape& shape, int axis, std::int64_t parts) {
  std::vector<std::int64_t> counts(shape.rank(), 1);
  counts[axis] = std::max<std::int64_t>(parts, 1);
  return counts;
}

bool has_no_elements(const Shape& shape) {
  return std::ranges::find(shape.dims(), 0) != shape.dims().end();
}

}  // namespace

ElementBytes::ElementBytes(DType dtype) : bytes_(byte_width(dtype)), dtype_(dtype) {
  check_enumerator(dtype, "partitioner: dtype");
}

ElementBytes::ElementBytes(std::int64_t bytes) : bytes_(bytes) {
  require_positive(bytes, "partitioner: bytes of an element");
}

FixedShardsPartitioner::FixedShardsPartitioner(std::int64_t num_shards) : num_shards_(num_shards) {
  require_positive(num_shards, "FixedShardsPartitioner: num_shards");
}

std::vector<std::int64_t> FixedShardsPartitioner::operator()(const Shape& shape, ElementBytes,
                                                             int axis) const {
  require_rank(shape);
  axis = counted_from_front(shape, axis);
  if (shape[axis] == Shape::kUnknown)
    throw ValueError("FixedShardsPartitioner: the dim of axis " + std::to_string(axis) +
                     " must be known, got shape " + shape.to_string());
  return all_one_but(shape, axis, std::min(num_shards_, shape[axis]));
}

MinSizePartitioner::MinSizePartitioner(std::int64_t min_shard_bytes, std::int64_t max_shards,
                                       std::int64_t bytes_per_string)
    : min_shard_bytes_(min_shard_bytes),
      max_shards_(max_shards),
      bytes_per_string_(bytes_per_string) {
  require_positive(min_shard_bytes, "MinSizePartitioner: min_shard_bytes");
  require_positive(max_shards, "MinSizePartitioner: max_shards");
  require_positive(bytes_per_string, "MinSizePartitioner: bytes_per_string");
}

std::vector<std::int64_t> MinSizePartitioner::operator()(const Shape& shape, ElementBytes element,
                                                         int axis) const {
  require_rank(shape);
  if (axis >= shape.rank())
    throw ValueError("MinSizePartitioner: cannot partition variable along axis " +
                     std::to_string(axis) + " of shape " + shape.to_string());
  axis = counted_from_front(shape, axis);
  if (!shape.fully_defined())
    throw ValueError("MinSizePartitioner: every dim must be known, got shape " + shape.to_string());
  const auto target = static_cast<Product128>(min_shard_bytes_);
  const Product128 bytes = bytes_of(shape, element.bytes(bytes_per_string_));
  const Product128 parts = bytes / target + (bytes % target != 0);
  const std::int64_t most = std::min(shape[axis], max_shards_);
  return all_one_but(
      shape, axis, parts < static_cast<Product128>(most) ? static_cast<std::int64_t>(parts) : most);
}

MaxSizePartitioner::MaxSizePartitioner(std::int64_t max_shard_bytes,
                                       std::optional<std::int64_t> max_shards,
                                       std::int64_t bytes_per_string)
    : max_shard_bytes_(max_shard_bytes),
      max_shards_(max_shards),
      bytes_per_string_(bytes_per_string) {
  require_positive(max_shard_bytes, "MaxSizePartitioner: max_shard_bytes");
  require_positive(bytes_per_string, "MaxSizePartitioner: bytes_per_string");
  if (max_shards) require_positive(*max_shards, "MaxSizePartitioner: max_shards, where given,");
}

std::vector<std::int64_t> MaxSizePartitioner::operator()(const Shape& shape, ElementBytes element,
                                                         int axis) const {
  if (!shape.fully_defined())
    throw ValueError("MaxSizePartitioner: the shape is not fully defined: " + shape.to_string());
  axis = counted_from_front(shape, axis);
  if (has_no_elements(shape)) return all_one_but(shape, axis, 1);
  const Product128 slice_bytes = bytes_of(shape, element.bytes(bytes_per_string_), axis);
  const auto fitting =
      static_cast<std::int64_t>(static_cast<Product128>(max_shard_bytes_) / slice_bytes);
  const std::int64_t rows = std::max<std::int64_t>(fitting, 1);
  const std::int64_t parts = shape[axis] / rows + (shape[axis] % rows != 0);
  return all_one_but(
      shape, axis, std::min(parts, max_shards_.value_or(std::numeric_limits<std::int64_t>::max())));
}

}  // namespace embertable
