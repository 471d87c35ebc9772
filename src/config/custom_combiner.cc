#include "embertable/tensorflow/custom_combiner.h"

#include "embertable/errors.h"

namespace embertable {

std::string CustomCombiner::name() const {
  const std::hash<std::shared_ptr<const Computation>> hash;
  return "custom_combiner_" + std::to_string(hash(combiner_computation));
}

std::vector<std::string> CustomCombiner::slot_names() const {
  if (num_weights == 0) return {};
  return {"custom_combiner_variables"};
}

void validate(const CustomCombiner& combiner) {
  if (!combiner.combiner_computation || !*combiner.combiner_computation)
    throw ValueError("custom_combiner: combiner_computation must be a function, got none");
  const std::string weights = std::to_string(combiner.num_weights);
  if (combiner.num_weights < 0)
    throw ValueError("custom_combiner: num_weights must be >= 0, got " + weights);
  if (combiner.num_weights > 0 && !combiner.initializer) {
    throw ValueError("custom_combiner: an initializer must be given where num_weights > 0, got " +
                     weights + " and none");
  }
}

}  // namespace embertable
