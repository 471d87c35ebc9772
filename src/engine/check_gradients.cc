#include "engine/check_gradients.h"

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

[[noreturn]] void refuse_shape(const Gradient& gradient, const Shape& expected,
                               const std::string& path, std::int32_t replica) {
  const std::string got = gradient.shape.has_rank() ? gradient.shape.to_string() : "";
  throw ValueError("feature '" + path + "': the gradient " +
                   (replica < 0 ? "" : "of replica " + std::to_string(replica) + " ") +
                   "must have shape " + expected.to_string() + ", got " + got +
                   (got.empty() ? "" : " with ") + std::to_string(gradient.values.size()) +
                   " values");
}

[[noreturn]] void refuse_number(const Setup& setup, std::size_t trees) {
  throw ValueError("apply_gradients: there must be one tree of gradients for each of " +
                   std::to_string(setup.replicas) + " replicas, got " + std::to_string(trees));
}

}  // namespace

void check_gradient(const Gradient& gradient, const Shape& expected, const std::string& path,
                    std::int32_t replica) {
  const bool right_shape = !gradient.shape.has_rank() || gradient.shape == expected;
  if (!gradient.is_none() && !(right_shape && gradient.values.size() == expected.num_elements()))
    refuse_shape(gradient, expected, path, replica);
}

void check_gradient_structure(const Setup& setup, const Nested<Gradient>& gradients) {
  assert_same_structure(setup.features.structure(), gradients.structure(), "gradients");
}

void check_gradient_trees(const Setup& setup, std::span<const Nested<Gradient>> trees) {
  if (std::ssize(trees) != setup.replicas) refuse_number(setup, trees.size());
  for (const Nested<Gradient>& tree : trees) check_gradient_structure(setup, tree);
}

}  // namespace embertable::engine
