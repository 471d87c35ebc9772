#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "embertable/shape.h"
#include "embertable/variables/tensor.h"
#include "embertable/version.h"

namespace embertable {

/// Tells a partitioner the size of one element of a variable.
class EMBERTABLE_API ElementBytes {
 public:
  /// Throws ValueError unless bytes >= 1.
  ElementBytes(std::int64_t bytes);  // NOLINT: 4 is a weight

  /// Takes the size of a tensor's element. Throws ValueError for a value that is no dtype.
  ElementBytes(DType dtype);  // NOLINT: its size is meant

  /// Stands for strings of any length; each partitioner chooses the size it assumes.
  static ElementBytes strings() noexcept { return {}; }

  /// Returns the size; a string counts as bytes_per_string.
  std::int64_t bytes(std::int64_t bytes_per_string) const noexcept {
    return bytes_ == 0 ? bytes_per_string : bytes_;
  }

  /// Returns the dtype, if the element is one of a tensor.
  const std::optional<DType>& dtype() const noexcept { return dtype_; }

 private:
  ElementBytes() = default;
  std::int64_t bytes_ = 0;  ///< 0: a string
  std::optional<DType> dtype_;
};

/// Decides into how many parts a variable is cut: one count for each axis of `shape`, all 1 except
/// that of `axis`, which counts from the end if negative. Any function will do; the creator of
/// variables refuses counts that it cannot follow.
using Partitioner =
    std::function<std::vector<std::int64_t>(const Shape& shape, ElementBytes element, int axis)>;

// Three partitioners follow, values to copy and to use as a Partitioner. Sizes are targets of the
// given formula: parts are cut like DIV's and differ by one row at most, so a part may be smaller
// or, because of a cap or a single row, larger. A dim of 0 gives 1 part. All throw IndexError for
// an axis that the shape lacks, ValueError naming the shape for an unknown dim that the formula
// needs. Source: TF distribute/sharded_variable.py.

/// Makes min(num_shards, dim) parts.
class EMBERTABLE_API FixedShardsPartitioner {
 public:
  /// Throws ValueError unless num_shards >= 1.
  explicit FixedShardsPartitioner(std::int64_t num_shards);

  std::vector<std::int64_t> operator()(const Shape& shape, ElementBytes element,
                                       int axis = 0) const;

  std::int64_t num_shards() const noexcept { return num_shards_; }

 private:
  std::int64_t num_shards_;
};

/// Makes one part for every min_shard_bytes of the variable, rounded up: min(dim, max_shards,
/// ceil(bytes / min_shard_bytes)). So a part may be smaller than min_shard_bytes: 20 bytes at 8
/// make three parts.
class EMBERTABLE_API MinSizePartitioner {
 public:
  static constexpr std::int64_t kDefaultShardBytes = 256 << 10;
  static constexpr std::int64_t kDefaultStringBytes = 16;

  /// Throws ValueError unless all are >= 1.
  explicit MinSizePartitioner(std::int64_t min_shard_bytes = kDefaultShardBytes,
                              std::int64_t max_shards = 1,
                              std::int64_t bytes_per_string = kDefaultStringBytes);

  /// Returns the counts. An axis beyond the last is a ValueError here.
  std::vector<std::int64_t> operator()(const Shape& shape, ElementBytes element,
                                       int axis = 0) const;

  std::int64_t min_shard_bytes() const noexcept { return min_shard_bytes_; }
  std::int64_t max_shards() const noexcept { return max_shards_; }
  std::int64_t bytes_per_string() const noexcept { return bytes_per_string_; }

 private:
  std::int64_t min_shard_bytes_;
  std::int64_t max_shards_;
  std::int64_t bytes_per_string_;
};

/// Makes the fewest parts that keep each within max_shard_bytes, up to a cap: min(max_shards,
/// ceil(dim / rows)) with rows = max_shard_bytes / bytes of one index of the axis, at least 1. If
/// max_shards does not cut the count, and one index fits, no part is larger.
class EMBERTABLE_API MaxSizePartitioner {
 public:
  /// Throws ValueError unless all that are given are >= 1.
  explicit MaxSizePartitioner(
      std::int64_t max_shard_bytes, std::optional<std::int64_t> max_shards = {},
      std::int64_t bytes_per_string = MinSizePartitioner::kDefaultStringBytes);

  std::vector<std::int64_t> operator()(const Shape& shape, ElementBytes element,
                                       int axis = 0) const;

  std::int64_t max_shard_bytes() const noexcept { return max_shard_bytes_; }
  std::optional<std::int64_t> max_shards() const noexcept { return max_shards_; }
  std::int64_t bytes_per_string() const noexcept { return bytes_per_string_; }

 private:
  std::int64_t max_shard_bytes_;
  std::optional<std::int64_t> max_shards_;
  std::int64_t bytes_per_string_;
};

}  // namespace embertable
