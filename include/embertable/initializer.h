#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "embertable/version.h"

namespace embertable {

/// A run of rows of one table that is to be filled. Rows have the table's own numbers, whatever the
/// sharding.
struct RowRange {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;             ///< number of rows to fill
  std::int64_t vocabulary_size = 0;  ///< rows of the whole table
  std::int32_t dim = 0;              ///< floats per row
};

/// Gives a table or a slot its first values. A value; copies share memory. Every element depends on
/// (seed, table, row, column) alone, so neither sharding nor threads nor the order of creation
/// shows.
class EMBERTABLE_API Initializer {
 public:
  /// Fills out, [range.rows, range.dim] row-major. The library calls it from several threads at
  /// once on disjoint ranges.
  using Function = std::function<void(const RowRange& range, std::span<float> out)>;

  static Initializer zeros();
  static Initializer constant(float value);

  /// Draws uniformly in [low, high), in 2^24 steps. Throws ValueError unless low < high and both
  /// are finite.
  static Initializer uniform(float low, float high, std::uint64_t seed = 0);

  /// Draws from a normal distribution. Throws ValueError unless mean and stddev >= 0 are finite.
  static Initializer normal(float mean, float stddev, std::uint64_t seed = 0);

  /// Draws from a normal distribution and redraws samples beyond two stddev; stddev is that of the
  /// untruncated normal. Throws what `normal` throws. Source: TF init_ops_v2.TruncatedNormal.
  static Initializer truncated_normal(float mean, float stddev, std::uint64_t seed = 0);

  /// Sets element [r][c] = offset + r, with r the table's own row number.
  static Initializer row_id(float offset = 0);

  /// Takes the values of the whole table, row-major. Building a table of another size throws
  /// ValueError.
  static Initializer values(std::vector<float> values);

  /// Calls a caller-supplied function. Throws ValueError for an empty function.
  static Initializer function(Function function);

  /// Returns the initializer of a table that sets none: truncated normal, mean 0, stddev
  /// 1/sqrt(dim). Throws ValueError for a dim below 1.
  static Initializer default_for(std::int32_t dim);

  /// True for a truncated normal of mean 0 and, to six digits, stddev 1/sqrt(dim).
  bool is_default_for(std::int32_t dim) const noexcept;

  /// True for `zeros()` and `constant(+0)`: tables are mapped as zeros, so nothing is written.
  bool is_zero() const noexcept;

  /// True for `values(...)`: an array that is there already, where all others are functions.
  bool is_materialized() const noexcept;

  /// Fills out, [range.rows, range.dim] row-major. `stream` tells one table or slot from another:
  /// the hash of its name mixed with the engine's seed. Thread-safe. Throws ValueError for another
  /// size of `out` and for rows that `values` lacks, and what a caller-supplied function throws.
  void fill(const RowRange& range, std::uint64_t stream, std::span<float> out) const;

  /// Throws ValueError where this initializer cannot fill a table of that size.
  void check(const std::string& table, std::int64_t vocabulary_size, std::int32_t dim) const;

  /// Returns a text such as "truncated_normal(mean=0, stddev=0.25)"; a seed other than 0 follows.
  std::string to_string() const;

  /// What fills the rows; the library alone defines it.
  class Kind;

 private:
  explicit Initializer(std::shared_ptr<const Kind> kind) : kind_(std::move(kind)) {}
  std::shared_ptr<const Kind> kind_;
};

}  // namespace embertable
