#pragma once

#include <cstdint>

#include "embertable/strategy.h"

namespace embertable {

/// Which rows of a table each host holds, and where they lie there. A table's shards hold each row
/// once: DIV gives contiguous blocks, longer ones first; MOD row modulo hosts. Of a replicated
/// table every host holds all rows in their order. Source: config-and-optimizers 5.2 of
/// TPUEmbedding's load and retrieve operations.
class Placement {
 public:
  /// A table on one host is never replicated.
  Placement(std::int64_t rows, std::int32_t hosts, Sharding sharding, bool replicated = false)
      : rows_(rows),
        hosts_(hosts),
        quotient_(rows / hosts),
        remainder_(rows % hosts),
        sharding_(sharding),
        replicated_(replicated && hosts > 1) {}

  std::int64_t rows() const noexcept { return rows_; }
  std::int32_t hosts() const noexcept { return hosts_; }
  Sharding sharding() const noexcept { return sharding_; }
  bool replicated() const noexcept { return replicated_; }

  /// Returns the placement that the table would have in shards. Each host of a replicated table
  /// writes these rows to checkpoints, so that files do not depend on it.
  Placement shares() const noexcept { return {rows_, hosts_, sharding_}; }

  /// True if the rows of a host are neighbours in the table.
  bool holds_blocks() const noexcept {
    return sharding_ == Sharding::kDiv || hosts_ == 1 || replicated_;
  }

  /// Rows that a host holds, 0 where there are fewer rows than hosts.
  std::int64_t shard_rows(std::int32_t host) const noexcept {
    return replicated_ ? rows_ : quotient_ + (host < remainder_ ? 1 : 0);
  }

  /// Returns the host whose shard has a row. Requires: 0 <= row < rows(), not replicated.
  std::int32_t host_of(std::int64_t row) const noexcept {
    if (sharding_ == Sharding::kMod) return static_cast<std::int32_t>(row % hosts_);
    const std::int64_t in_long_blocks = remainder_ * (quotient_ + 1);
    if (row < in_long_blocks) return static_cast<std::int32_t>(row / (quotient_ + 1));
    return static_cast<std::int32_t>(remainder_ + (row - in_long_blocks) / quotient_);
  }

  /// Returns the host that `host` reads a row from: itself if it holds the row.
  std::int32_t host_of(std::int64_t row, std::int32_t host) const noexcept {
    return replicated_ ? host : host_of(row);
  }

  std::int64_t local_row(std::int64_t row) const noexcept {
    if (replicated_) return row;
    if (sharding_ == Sharding::kMod) return row / hosts_;
    return row - first_row(host_of(row));
  }

  /// A shard, and a row's number in it.
  template <class Index>
  struct Place {
    std::int32_t host;
    Index local;
  };

  /// Returns host_of and local_row of a row by one division, as wide as an Index. Requires: an
  /// Index, which is unsigned, holds rows(); the table is not replicated.
  template <class Index>
  Place<Index> place_of(Index row) const noexcept {
    const auto hosts = static_cast<Index>(hosts_), block = static_cast<Index>(quotient_);
    if (sharding_ == Sharding::kMod)
      return {static_cast<std::int32_t>(row % hosts), static_cast<Index>(row / hosts)};
    const auto long_blocks = static_cast<Index>(remainder_);
    const auto in_long_blocks = static_cast<Index>(long_blocks * (block + 1));
    if (row < in_long_blocks)
      return {static_cast<std::int32_t>(row / (block + 1)), static_cast<Index>(row % (block + 1))};
    row = static_cast<Index>(row - in_long_blocks);
    return {static_cast<std::int32_t>(long_blocks + row / block), static_cast<Index>(row % block)};
  }

  /// Returns the table's row number of a host's local row.
  std::int64_t global_row(std::int32_t host, std::int64_t local) const noexcept {
    if (replicated_) return local;
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
  bool replicated_;
};

}  // namespace embertable
