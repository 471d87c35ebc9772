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
  std::vector<IntegerArray> ids;                    ///< dense ids, which most leaves are
  std::vector<std::shared_ptr<const void>> arrays;  ///< what all other leaves hold

  /// Throws ValueError unless there is exactly one.
  const Batch& only() const;
};

/// Whether a batch has all features that are expected, or may have a part of them.
enum class Features : std::uint8_t { kAll, kSome };

/// Reads one batch for each replica of a PerReplica, or of a tree of them, else one. `expected` is
/// the form that the features should have; with kAll, another form is refused before a leaf is
/// looked at. Leaves are the classes above, equivalents of TensorFlow and PyTorch, or arrays of
/// dense ids. Throws TypeError and ValueError naming path and rule.
Batches read_batches(nb::handle features, nb::handle weights, const Structure& expected,
                     Features wanted = Features::kSome);

/// Reads ids, and weights or None, that no feature has: `ids_name` and `weights_name` stand in
/// messages. Weights may be integers.
Batches read_lookup(nb::handle ids, const std::string& ids_name, nb::handle weights,
                    const std::string& weights_name);

/// Gradients of one call, with everything that they borrow from.
struct Gradients {
  std::vector<Nested<Gradient>> trees;
  std::vector<FloatArray> arrays;
};

/// Reads gradients of that structure, which is compared before a leaf is looked at. Throws
/// ValueError for a leaf that is not an array of floating-point numbers.
Gradients read_gradients(nb::handle gradients, const Structure& expected);

}  // namespace embertable::python
