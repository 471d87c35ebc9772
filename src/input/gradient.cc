#include "input/gradient.h"

#include "embertable/errors.h"

namespace embertable {

void check_gradient(const Gradient& gradient, const Shape& expected, const std::string& path,
                    std::int32_t replica) {
  if (gradient.is_none()) return;
  const bool right_shape = !gradient.shape.has_rank() || gradient.shape == expected;
  if (right_shape && gradient.values.size() == expected.num_elements()) return;
  const std::string got = gradient.shape.has_rank() ? gradient.shape.to_string() : "";
  throw ValueError("feature '" + path + "': the gradient " +
                   (replica < 0 ? "" : "of replica " + std::to_string(replica) + " ") +
                   "must have shape " + expected.to_string() + ", got " + got +
                   (got.empty() ? "" : " with ") + std::to_string(gradient.values.size()) +
                   " values");
}

const float* floats_of(const Gradient& gradient, bool copy, Arena& memory) {
  if (gradient.is_none()) return nullptr;
  const FloatSpan values = gradient.values;
  if (!copy && !values.is_double()) return static_cast<const float*>(values.data());
  const std::span<float> kept = memory.take<float>(values.size());
  for (std::int64_t k = 0; k < values.size(); ++k) kept[k] = values[k];
  return kept.data();
}

}  // namespace embertable
