#include "tensor/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "embertable/errors.h"
#include "tensor/element_type.h"
#include "tensor/elementwise.h"
#include "tensor/ranges.h"
#include "tensor/wrapping.h"

namespace embertable {
namespace {

struct MatrixSizes {
  std::int64_t rows, inner, columns;
};

/// Number of rows and columns of a product that are summed at once: the sums stay in the
/// first-level cache, and each row of y that is read serves several of them.
constexpr std::int64_t kTileRows = 4, kTileColumns = 128;

/// Minimum number of rows that one worker multiplies.
constexpr std::int64_t kRowsAtOnce = 4 * kTileRows;

/// Computes one tile: out[i] = the sum of x[i][k] * y[k] over k, from k = 0 on; zeros if there is
/// no k. Columns are contiguous, so that they become vectors.
template <class T>
void multiply_tile(const T* x, const T* y, T* out, const MatrixSizes& size, std::int64_t rows,
                   std::int64_t columns) {
  using Arithmetic = Wrapping<T>;
  T sum[kTileRows][kTileColumns] = {};
  for (std::int64_t k = 0; k < size.inner; ++k) {
    const T* line = y + k * size.columns;
    for (std::int64_t i = 0; i < rows; ++i) {
      const T factor = x[i * size.inner + k];
      T* of_row = sum[i];
      if (k == 0)
        for (std::int64_t j = 0; j < columns; ++j) of_row[j] = Arithmetic::mul(factor, line[j]);
      else
        for (std::int64_t j = 0; j < columns; ++j)
          of_row[j] = Arithmetic::add(of_row[j], Arithmetic::mul(factor, line[j]));
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(sum[i], columns, out + i * size.columns);
}

/// Products of matrices, with the results one after the other.
template <class T>
struct Products {
  const T* x;
  const T* y;
  T* out;
  MatrixSizes size;
  std::span<const std::int64_t> from_x, from_y;  ///< by product

  /// Computes rows first to last of all results.
  void multiply(std::int64_t first, std::int64_t last) const {
    while (first < last) {
      const auto product = static_cast<std::size_t>(first / size.rows);
      const std::int64_t row = first % size.rows;
      const std::int64_t rows = std::min(size.rows - row, last - first);
      multiply_rows(x + (from_x[product] * size.rows + row) * size.inner,
                    y + from_y[product] * size.inner * size.columns, out + first * size.columns,
                    rows);
      first += rows;
    }
  }

 private:
  /// Computes rows of one product, for the columns of y in a tile.
  void multiply_rows(const T* left, const T* right, T* result, std::int64_t rows) const {
    for (std::int64_t j = 0; j < size.columns; j += kTileColumns)
      for (std::int64_t i = 0; i < rows; i += kTileRows)
        multiply_tile(left + i * size.inner, right + j, result + i * size.columns + j, size,
                      std::min(kTileRows, rows - i), std::min(kTileColumns, size.columns - j));
  }
};

/// Returns the axes before the last two.
Shape leading(const Shape& shape) { return Shape(shape.dims().first(shape.dims().size() - 2)); }

/// Returns, by matrix of the result, the matrix of a side from which it is made.
std::vector<std::int64_t> sources(const Shape& side, const Shape& result) {
  std::vector<std::int64_t> source(result.num_elements());
  for (std::int64_t i = 0; i < result.num_elements(); ++i) {
    std::int64_t rest = i, step = 1, at = 0;
    for (int back = 1; back <= result.rank(); ++back) {
      const std::int64_t size = result[result.rank() - back];
      const std::int64_t of_side = back <= side.rank() ? side[side.rank() - back] : 1;
      if (of_side != 1) at += rest % size * step;
      step *= of_side;
      rest /= size;
    }
    source[i] = at;
  }
  return source;
}

}  // namespace

Tensor matrix_product(const Tensor& x, const Tensor& y, Executor* executor) {
  const auto refuse = [&](const char* rule) {
    throw ValueError(fmt::format("matmul: {}, got shapes {} and {}", rule, x.shape().to_string(),
                                 y.shape().to_string()));
  };
  if (x.rank() < 2 || y.rank() < 2) refuse("both sides must have rank 2 at least");
  const MatrixSizes size = {x.shape()[x.rank() - 2], x.shape()[x.rank() - 1],
                            y.shape()[y.rank() - 1]};
  if (size.inner != y.shape()[y.rank() - 2])
    refuse("columns of the first must be as many as rows of the second");
  Shape batch;
  if (!broadcast_shape(leading(x.shape()), leading(y.shape()), &batch))
    refuse("axes before the last two must be broadcast to one shape");
  Tensor result(x.dtype(), batch.append(size.rows).append(size.columns));
  if (result.size() == 0) return result;
  const std::vector<std::int64_t> from_x = sources(leading(x.shape()), batch);
  const std::vector<std::int64_t> from_y = sources(leading(y.shape()), batch);
  const Tensor left = x.packed(), right = y.packed();
  with_element_type(x.dtype(), [&](auto element) {
    using T = typename decltype(element)::Type;
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const Products<T> all = {.x = left.values<T>().data(),
                               .y = right.values<T>().data(),
                               .out = result.mutable_values<T>().data(),
                               .size = size,
                               .from_x = from_x,
                               .from_y = from_y};
      const std::int64_t rows = result.size() / size.columns;
      const std::int64_t work = size.inner * size.columns * std::int64_t{sizeof(T)};
      for_ranges((rows + kRowsAtOnce - 1) / kRowsAtOnce, work, executor,
                 [&](std::int64_t first, std::int64_t last) {
                   all.multiply(first * kRowsAtOnce, std::min(last * kRowsAtOnce, rows));
                 });
    }
  });
  return result;
}

}  // namespace embertable
