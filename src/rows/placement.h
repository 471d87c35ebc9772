#pragma once

#include <cstdint>

#include "embertable/strategy.h"

namespace embertable {

/// Which host owns a row of a table, and where it lies there. DIV: contiguous blocks, longer ones
/// first; MOD: row modulo hosts. Source: config-and-optimizers 5.2 of TPUEmbedding's load and
/// retrieve operations.
class Placement {
 public:
  Placement(std::int64_t rows, std::int32_t hosts, Sharding sharding)
      : rows_(rows),
        hosts_(hosts),
        quotient_(rows / hosts),
        remainder_(rows % hosts),
        sharding_(sharding) {}

  std::int64_t rows() const noexcept { return rows_; }
  std::int32_t hosts() const noexcept { return hosts_; }
  Sharding sharding() const noexcept { return sharding_; }

  /// Rows of a host's shard, 0 where there are fewer rows than hosts.
  std::int64_t shard_rows(std::int32_t host) const noexcept {
    return quotient_ + (host < remainder_ ? 1 : 0);
  }

  /// Requires: 0 <= row < rows().
  std::int32_t host_of(std::int64_t row) const noexcept {
    if (sharding_ == Sharding::kMod) return static_cast<std::int32_t>(row % hosts_);
    const std::int64_t in_long_blocks = remainder_ * (quotient_ + 1);
    if (row < in_long_blocks) return static_cast<std::int32_t>(row / (quotient_ + 1));
    return static_cast<std::int32_t>(remainder_ + (row - in_long_blocks) / quotient_);
  }

  std::int64_t local_row(std::int64_t row) const noexcept {
    if (sharding_ == Sharding::kMod) return row / hosts_;
    return row - first_row(host_of(row));
  }

  /// Returns the table's row number of a host's local row.
  std::int64_t global_row(std::int32_t host, std::int64_t local) const noexcept {
    return sharding_ == Sharding::kMod ? host + local * hosts_ : first_row(host) + local;
  }

 private:
  std::int64_t first_row(std::int32_t host) const noexcept {
    return host * quotient_ + (host < remainder_ ? host : remainder_);
  }

  std::int64_t rows_;
  std::int32_t hosts_;
  std::int64_t quotient_;
  std::int64_t remainder_;
  Sharding sharding_;
};

}  // namespace embertable
