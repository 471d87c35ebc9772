#include "sharded/matmul.h"

#include <fmt/format.h>

#include <type_traits>
#include <vector>

#include "embertable/errors.h"
#include "sharded/element_type.h"
#include "sharded/elementwise.h"
#include "sharded/wrapping.h"

namespace embertable {
namespace {

struct MatrixSizes {
  std::int64_t rows, inner, columns;
};

/// out[i] = the sum of x[i][k] * y[k] over k, from k = 0 on; zeros where there is no k. Columns lie
/// side by side, so that they are vectors.
template <class T>
void multiply_matrices(const T* x, const T* y, T* out, const MatrixSizes& size) {
  using Arithmetic = Wrapping<T>;
  for (std::int64_t i = 0; i < size.rows; ++i, out += size.columns) {
    for (std::int64_t k = 0; k < size.inner; ++k) {
      const T factor = x[i * size.inner + k];
      const T* row = y + k * size.columns;
      if (k == 0)
        for (std::int64_t j = 0; j < size.columns; ++j) out[j] = Arithmetic::mul(factor, row[j]);
      else
        for (std::int64_t j = 0; j < size.columns; ++j)
          out[j] = Arithmetic::add(out[j], Arithmetic::mul(factor, row[j]));
    }
  }
}

/// The axes before the last two.
Shape leading(const Shape& shape) { return Shape(shape.dims().first(shape.dims().size() - 2)); }

/// By matrix of the result: which matrix of a side it is made of.
std::vector<std::int64_t> sources(const Shape& side, const Shape& result) {
  std::vector<std::int64_t> source(static_cast<std::size_t>(result.num_elements()));
  for (std::int64_t i = 0; i < result.num_elements(); ++i) {
    std::int64_t rest = i, step = 1, at = 0;
    for (int back = 1; back <= result.rank(); ++back) {
      const std::int64_t size = result[result.rank() - back];
      const std::int64_t of_side = back <= side.rank() ? side[side.rank() - back] : 1;
      if (of_side != 1) at += rest % size * step;
      step *= of_side;
      rest /= size;
    }
    source[static_cast<std::size_t>(i)] = at;
  }
  return source;
}

}  // namespace

Tensor matrix_product(const Tensor& x, const Tensor& y) {
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
  const std::vector<std::int64_t> from_x = sources(leading(x.shape()), batch);
  const std::vector<std::int64_t> from_y = sources(leading(y.shape()), batch);
  const Tensor left = x.packed(), right = y.packed();
  Tensor result(x.dtype(), batch.append(size.rows).append(size.columns));
  if (result.size() == 0) return result;
  with_element_type(x.dtype(), [&](auto element) {
    using T = typename decltype(element)::Type;
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      T* out = result.mutable_values<T>().data();
      for (std::size_t i = 0; i < from_x.size(); ++i, out += size.rows * size.columns)
        multiply_matrices(left.values<T>().data() + from_x[i] * size.rows * size.inner,
                          right.values<T>().data() + from_y[i] * size.inner * size.columns, out,
                          size);
    }
  });
  return result;
}

}  // namespace embertable
