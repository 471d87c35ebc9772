#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "embertable/shape.h"

/// Marks an argument that the constructed object points into, so that compilers that know the
/// attribute warn of an object that outlives it, as a batch of temporary vectors would.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define EMBERTABLE_LIFETIME_BOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef EMBERTABLE_LIFETIME_BOUND
#define EMBERTABLE_LIFETIME_BOUND
#endif

namespace embertable {

/// A view of caller-owned integers, int32 or int64. The caller keeps them alive while it is used.
/// They must not change while a call reads them. A call that notices a change throws what it throws
/// for integers out of range, such as DataError, and has changed nothing; otherwise each of them is
/// taken as it was before or after.
class IntegerSpan {
 public:
  IntegerSpan() = default;
  IntegerSpan(std::span<const std::int32_t> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())), wide_(false) {}
  IntegerSpan(std::span<const std::int64_t> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())) {}
  IntegerSpan(const std::vector<std::int32_t>& values EMBERTABLE_LIFETIME_BOUND)
      : IntegerSpan(std::span(values)) {}  // NOLINT
  IntegerSpan(const std::vector<std::int64_t>& values EMBERTABLE_LIFETIME_BOUND)
      : IntegerSpan(std::span(values)) {}  // NOLINT

  std::int64_t size() const noexcept { return size_; }
  bool is_int64() const noexcept { return wide_; }

  /// Returns the first integer's address: an int64 if is_int64(), else an int32.
  const void* data() const noexcept { return data_; }

  /// Returns one integer. Requires: 0 <= i < size().
  std::int64_t operator[](std::int64_t i) const noexcept {
    return wide_ ? static_cast<const std::int64_t*>(data_)[i]
                 : static_cast<const std::int32_t*>(data_)[i];
  }

 private:
  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  bool wide_ = true;
};

/// A view of caller-owned numbers, float or double. The caller keeps them alive while it is used.
/// They must not change while a call reads them; a changed one is taken as it was before or after.
class FloatSpan {
 public:
  FloatSpan() = default;
  FloatSpan(std::span<const float> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())), given_(true) {}
  FloatSpan(std::span<const double> values)  // NOLINT: a view
      : data_(values.data()),
        size_(static_cast<std::int64_t>(values.size())),
        wide_(true),
        given_(true) {}
  FloatSpan(const std::vector<float>& values EMBERTABLE_LIFETIME_BOUND)
      : FloatSpan(std::span(values)) {}  // NOLINT
  FloatSpan(const std::vector<double>& values EMBERTABLE_LIFETIME_BOUND)
      : FloatSpan(std::span(values)) {}  // NOLINT

  std::int64_t size() const noexcept { return size_; }
  bool is_double() const noexcept { return wide_; }

  /// True if this views an array of the caller's, even one of no numbers.
  bool is_given() const noexcept { return given_; }

  /// Returns the first number's address: a double if is_double(), else a float.
  const void* data() const noexcept { return data_; }

  /// Returns one number, rounded to binary32. Requires: 0 <= i < size().
  float operator[](std::int64_t i) const noexcept {
    return wide_ ? static_cast<float>(static_cast<const double*>(data_)[i])
                 : static_cast<const float*>(data_)[i];
  }

 private:
  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  bool wide_ = false;
  bool given_ = false;
};

/// One id per output row. The ids have shape `S` or `S + [1]`, row-major; an unset shape means a
/// vector.
struct DenseIds {
  IntegerSpan values;  ///< one for each element of the shape
  Shape shape;
};

/// Ids at coordinates of a dense shape of rank 2 or more, in any order. The entries along the last
/// axis are combined.
struct SparseIds {
  IntegerSpan indices;  ///< [nnz, rank] row-major, each within dense_shape
  IntegerSpan values;   ///< [nnz]
  Shape dense_shape;    ///< fully defined
};

/// Rows of ids of varying length. Both members are integers: name them, as in {.row_splits = s,
/// .values = v}, or call `from_row_splits`, whose order is that of Python and of TensorFlow.
struct RaggedIds {
  IntegerSpan row_splits;  ///< [rows + 1], nondecreasing from 0 to nnz
  IntegerSpan values;      ///< [nnz]

  /// Row r is values[row_splits[r]] to values[row_splits[r + 1]].
  static RaggedIds from_row_splits(IntegerSpan values, IntegerSpan row_splits) noexcept {
    return {.row_splits = row_splits, .values = values};
  }
};

/// The ids of one feature in one replica's batch. Borrowed for the call.
using FeatureIds = std::variant<DenseIds, SparseIds, RaggedIds>;

/// Weights of sparse ids, in the order of their values.
struct SparseWeights {
  FloatSpan values;  ///< [nnz]
};

/// Weights of ragged ids, in the order of their values.
struct RaggedWeights {
  FloatSpan values;  ///< [nnz]
};

/// Weights of dense ids. Dense ids have none, so every feature refuses these.
struct DenseWeights {
  FloatSpan values;
};

/// Weights of the ids of one feature: none (every weight is 1), or the same kind as the ids.
/// Borrowed for the call.
using FeatureWeights = std::variant<std::monostate, SparseWeights, RaggedWeights, DenseWeights>;

/// Everything that one replica looks up in one step. Change the leaves in place to reuse it between
/// steps.
struct Batch {
  Nested<FeatureIds> features;  ///< in the structure of the features' configuration
  std::optional<Nested<FeatureWeights>> weights = {};  ///< unset: every weight is 1
};

/// A gradient with respect to one activation, shape `S + [dim]`, float or double; or none, which
/// counts as zeros. An array of no numbers is not none: it is the gradient of an activation without
/// numbers. Borrowed for the call.
struct Gradient {
  FloatSpan values;  ///< row-major; not given: none
  Shape shape;       ///< unset: the activation's shape, if the number of values is right

  static Gradient none() { return {}; }
  bool is_none() const noexcept { return !values.is_given(); }
};

}  // namespace embertable
