#include "input/detected_shape.h"

#include "embertable/errors.h"

namespace embertable {
namespace input {
namespace {

std::string broken_rule_of_dense(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return "dense ids must have rank 1 or more, got rank 0";
  if (!shape.fully_defined()) {
    return "the shape of dense ids must be fully defined, got " + shape.to_string();
  }
  if (rank >= 2 && shape[rank - 1] != 1) {
    return "dense ids of rank 2 or more must have 1 as last dim, got shape " + shape.to_string() +
           "; several ids of a sample are RaggedIds";
  }
  return "";
}

std::string broken_rule(const DenseIds& ids) {
  return ids.shape.has_rank() ? broken_rule_of_dense(ids.shape) : "";  // a vector breaks none
}

std::string broken_rule(const SparseIds& ids) {
  const Shape& shape = ids.dense_shape;
  if (!shape.has_rank()) return "sparse ids must have a dense_shape, got unknown rank";
  if (shape.rank() < 2) {
    return "sparse ids must have rank 2 or more, got rank " + std::to_string(shape.rank());
  }
  if (!shape.fully_defined()) {
    return "the dense_shape of sparse ids must be fully defined, got " + shape.to_string();
  }
  return "";
}

std::string broken_rule(const RaggedIds&) { return ""; }

}  // namespace

Shape shape_of(const DenseIds& ids) {
  return ids.shape.has_rank() ? ids.shape : Shape{ids.values.size()};
}

std::string broken_rank_rule(const FeatureIds& ids) {
  return std::visit([](const auto& kind) { return broken_rule(kind); }, ids);
}

}  // namespace input

namespace {

[[noreturn]] void refuse_no_splits(const std::string& path) {
  throw DataError("feature '" + path + "': row_splits must have one number or more, got none",
                  {.feature = path});
}

struct Detect {
  std::int64_t sequence;  ///< length, or 0
  const std::string& path;

  Shape operator()(const DenseIds& ids) const {
    const Shape shape = input::shape_of(ids);
    return shape.rank() == 1 ? shape : shape.without_last();
  }

  Shape operator()(const SparseIds& ids) const {
    const Shape shape = ids.dense_shape.without_last();
    return sequence > 0 && shape.rank() == 1 ? shape.append(sequence) : shape;
  }

  Shape operator()(const RaggedIds& ids) const {
    if (ids.row_splits.size() == 0) refuse_no_splits(path);
    const Shape shape{ids.row_splits.size() - 1};
    return sequence > 0 ? shape.append(sequence) : shape;
  }
};

}  // namespace

Shape detected_output_shape(const FeatureIds& ids, std::int64_t max_sequence_length,
                            bool configured, const std::string& path) {
  if (const std::string rule = input::broken_rank_rule(ids); !rule.empty()) {
    throw ValueError("feature '" + path + "': " + rule);
  }
  return std::visit(Detect{configured ? 0 : max_sequence_length, path}, ids);
}

}  // namespace embertable
