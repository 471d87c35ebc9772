#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "embertable/nested.h"
#include "embertable/shape.h"

namespace embertable {

/// Integers of the caller's, int32 or int64. Borrowed.
class IntegerSpan {
 public:
  IntegerSpan() = default;
  IntegerSpan(std::span<const std::int32_t> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())), wide_(false) {}
  IntegerSpan(std::span<const std::int64_t> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())) {}
  IntegerSpan(const std::vector<std::int32_t>& values)
      : IntegerSpan(std::span(values)) {}  // NOLINT
  IntegerSpan(const std::vector<std::int64_t>& values)
      : IntegerSpan(std::span(values)) {}  // NOLINT

  std::int64_t size() const noexcept { return size_; }
  bool is_int64() const noexcept { return wide_; }
  const void* data() const noexcept { return data_; }
  std::int64_t operator[](std::int64_t i) const noexcept {
    return wide_ ? static_cast<const std::int64_t*>(data_)[i]
                 : static_cast<const std::int32_t*>(data_)[i];
  }

 private:
  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  bool wide_ = true;
};

/// Floating-point numbers of the caller's, float or double. Borrowed.
class FloatSpan {
 public:
  FloatSpan() = default;
  FloatSpan(std::span<const float> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())) {}
  FloatSpan(std::span<const double> values)  // NOLINT: a view
      : data_(values.data()), size_(static_cast<std::int64_t>(values.size())), wide_(true) {}
  FloatSpan(const std::vector<float>& values) : FloatSpan(std::span(values)) {}   // NOLINT
  FloatSpan(const std::vector<double>& values) : FloatSpan(std::span(values)) {}  // NOLINT

  std::int64_t size() const noexcept { return size_; }
  bool is_double() const noexcept { return wide_; }
  const void* data() const noexcept { return data_; }
  float operator[](std::int64_t i) const noexcept {
    return wide_ ? static_cast<float>(static_cast<const double*>(data_)[i])
                 : static_cast<const float*>(data_)[i];
  }

 private:
  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  bool wide_ = false;
};

/// One id per output row: shape `S` or `S + [1]`, row-major. An unset shape is that of a vector.
struct DenseIds {
  IntegerSpan values;
  Shape shape;
};

/// Ids at coordinates of a dense shape, rank 2 or more, in any order; the last axis is the one that
/// is combined.
struct SparseIds {
  IntegerSpan indices;  ///< [nnz, rank] row-major, each within dense_shape
  IntegerSpan values;   ///< [nnz]
  Shape dense_shape;    ///< fully defined
};

/// Rows of ids of varying length.
struct RaggedIds {
  IntegerSpan row_splits;  ///< [rows + 1], from 0, never falling, to nnz
  IntegerSpan values;      ///< [nnz]
};

/// The ids of one feature in one replica's batch. Borrowed for the call.
using FeatureIds = std::variant<DenseIds, SparseIds, RaggedIds>;

/// Weights of the entries of a feature, in the order of its values: none (all 1), or of the kind of
/// the ids.
struct SparseWeights {
  FloatSpan values;  ///< [nnz]
};
struct RaggedWeights {
  FloatSpan values;  ///< [nnz]
};
struct DenseWeights {  ///< no feature takes these: dense ids have no weights
  FloatSpan values;
};
using FeatureWeights = std::variant<std::monostate, SparseWeights, RaggedWeights, DenseWeights>;

/// What one replica looks up in one step. To reuse between steps: change the leaves in place.
struct Batch {
  Nested<FeatureIds> features;  ///< in the structure of the features' configuration
  std::optional<Nested<FeatureWeights>> weights = {};  ///< unset: every weight is 1
};

/// A gradient with respect to one activation, shape `S + [dim]`, float or double; or none, which
/// counts as zeros. Borrowed for the call.
struct Gradient {
  FloatSpan values;
  Shape shape;  ///< unset: that of the activation, if the number of values is right
  static Gradient none() { return {}; }
  bool is_none() const noexcept { return values.data() == nullptr; }
};

}  // namespace embertable
