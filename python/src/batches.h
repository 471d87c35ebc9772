#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "python/src/arrays.h"
#include "python/src/trees.h"

namespace embertable::python {

// The Python classes of ids and weights, which hold the caller's arrays.

struct DenseIdsObject {
  IntegerArray values;
};
struct SparseIdsObject {
  IntegerArray indices, values;
  Shape dense_shape;
};
struct RaggedIdsObject {
  IntegerArray values, row_splits;
};
struct SparseWeightsObject {
  FloatArray values;
};
struct RaggedWeightsObject {
  FloatArray values;
};

/// Batches of one call, with everything that they borrow from. Created and destroyed with the GIL.
struct Batches {
  std::vector<Batch> batches;
  std::vector<nb::object> leaves;
  std::vector<std::shared_ptr<const void>> arrays;

  /// Throws ValueError unless there is exactly one.
  const Batch& only() const;
};

/// Reads one batch for each replica of a PerReplica, else one. `expected` is the form that the
/// features should have. Leaves are the classes above, TensorFlow's equivalents, or arrays of dense
/// ids. Throws TypeError and ValueError naming path and rule.
Batches read_batches(nb::handle features, nb::handle weights, const Structure& expected);

/// Gradients of one call, with everything that they borrow from.
struct Gradients {
  std::vector<Nested<Gradient>> trees;
  std::vector<FloatArray> arrays;
};
Gradients read_gradients(nb::handle gradients, const Structure& expected);

}  // namespace embertable::python
