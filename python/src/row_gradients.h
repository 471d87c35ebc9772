#pragma once

#include <nanobind/nanobind.h>

#include <map>

#include "embertable/embedding.h"
#include "python/src/configuration.h"

namespace embertable::python {

namespace nb = nanobind;

/// The gradient of a table by row, in Python's arrays.
struct RowGradients {
  nb::object indices;      ///< int64 [n], rising
  nb::object values;       ///< float32 [n, dim]
  nb::object dense_shape;  ///< tuple (vocabulary_size, dim)
};

/// Converts gradients to a dict of RowGradients by TableConfig.
nb::dict row_gradients(const std::map<TablePtr, GradientSumsOfTable>& sums,
                       const Configuration& configuration);

/// Returns int64 and float32 arrays of their own.
nb::object copy_of(std::span<const std::int64_t> numbers);
nb::object copy_of(std::span<const float> numbers, const Shape& shape);

}  // namespace embertable::python
