#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "python/src/arrays.h"
#include "python/src/trees.h"

namespace embertable::python {

// The kinds of ids and weights as Python has them: they hold the caller's arrays.

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

/// Batches of one call, with whatever they borrow from. Made and dropped with the GIL.
struct Batches {
  std::vector<Batch> batches;
  std::vector<nb::object> leaves;
  std::vector<std::shared_ptr<const void>> arrays;

  /// Throws ValueError unless there is one.
  const Batch& only() const;
};

/// One batch for each replica of a PerReplica, else one. `expected` is the form that the features
/// should have. Leaves are the classes above, what TensorFlow calls them, or arrays of dense ids.
/// Throws TypeError and ValueError naming path and rule.
Batches read_batches(nb::handle features, nb::handle weights, const Structure& expected);

/// Gradients of one call, likewise.
struct Gradients {
  std::vector<Nested<Gradient>> trees;
  std::vector<FloatArray> arrays;
};
Gradients read_gradients(nb::handle gradients, const Structure& expected);

}  // namespace embertable::python
