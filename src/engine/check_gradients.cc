#include "engine/check_gradients.h"

#include <fmt/format.h>

#include "embertable/errors.h"
#include "engine/output_shapes.h"
#include "kernels/finite.h"

namespace embertable::engine {
namespace {

void check_finite(const Setup& setup, Step& step, std::int64_t number, std::int32_t core,
                  std::int64_t feature, ReachedRow reached_row) {
  const float* gradient = step.gradient[core * setup.features.size() + feature];
  if (!gradient) return;
  const std::int64_t count = activation_floats(setup, step, core, feature);
  const std::int64_t bad = first_not_finite(gradient, count, setup.level);
  if (bad == count) return;
  const std::int32_t replica = core / setup.cores_per_replica;
  std::int64_t before = 0;  // floats of the replica's other cores
  for (std::int32_t c = replica * setup.cores_per_replica; c < core; ++c)
    before += activation_floats(setup, step, c, feature);
  const ResolvedTable& table = setup.table(feature);
  const std::int64_t dim = table.config.dim, sample = (before + bad) / dim;
  const std::string path = setup.features.path(feature);
  throw DataError(
      fmt::format("feature '{}', replica {}, sample {}: the gradient must be finite, got {} in "
                  "column {}; in step {} it would reach {} of table '{}'",
                  path, replica, sample, gradient[bad], bad % dim, number,
                  reached_row(core, feature, bad / dim), table.name()),
      {.feature = path, .replica = replica, .sample = sample, .position = before + bad});
}

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

const float* floats_of(const Gradient& gradient, bool copy, Arena& memory) {
  if (gradient.is_none()) return nullptr;
  const FloatSpan values = gradient.values;
  if (!copy && !values.is_double()) return static_cast<const float*>(values.data());
  const std::span<float> kept = memory.take<float>(values.size());
  for (std::int64_t k = 0; k < values.size(); ++k) kept[k] = values[k];
  return kept.data();
}

void check_gradient_structure(const Setup& setup, const Nested<Gradient>& gradients) {
  assert_same_structure(setup.features.structure(), gradients.structure(), "gradients");
}

void check_gradient_trees(const Setup& setup, std::span<const Nested<Gradient>> trees) {
  if (std::ssize(trees) != setup.replicas) refuse_number(setup, trees.size());
  for (const Nested<Gradient>& tree : trees) check_gradient_structure(setup, tree);
}

void check_finite(const Setup& setup, Step& step, std::int64_t number, ReachedRow reached_row) {
  for (std::int32_t c = 0; c < setup.cores; ++c)
    for (std::int64_t i = 0; i < setup.features.size(); ++i)
      check_finite(setup, step, number, c, i, reached_row);
}

}  // namespace embertable::engine
