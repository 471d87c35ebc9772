#include "input/feature_spec.h"

#include "embertable/errors.h"
#include "input/batch_rules.h"

namespace embertable {

std::optional<Shape> FeatureSpec::shape_of(std::int64_t outputs) const {
  const std::int64_t built = output_shape.num_elements();
  if (outputs == built) return output_shape;
  if (!variable_batch || output_shape.rank() == 0 || outputs > built) return std::nullopt;
  const std::int64_t inner = built / output_shape[0];
  if (outputs % inner != 0) return std::nullopt;
  return output_shape.with_leading(outputs / inner);
}

namespace input {

void Refusal::operator()(const std::string& rule) const {
  throw ValueError(subject_of(place()) + ": " + rule);
}

void Refusal::at(std::int64_t sample, std::int64_t position, const std::string& rule) const {
  refuse_data({spec->path, replica, sample, position}, rule);
}

}  // namespace input
}  // namespace embertable
