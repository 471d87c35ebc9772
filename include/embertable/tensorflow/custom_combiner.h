#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embertable/initializer.h"
#include "embertable/version.h"

namespace embertable {

/// Combines the rows of one sample into one activation by a caller-supplied function, which may
/// have weights of its own. A value to keep, check and describe: SparseCores run one; engines of
/// this library refuse a table that has one. Source: TF tpu_embedding_v2_utils.py, CustomCombiner.
struct CustomCombiner {
  /// Receives the rows of a sample, [entries], each dim floats; their weights, [entries]; and the
  /// trained weights, [num_weights]. Writes the activation, [dim].
  using Computation =
      std::function<void(std::span<const float* const> rows, std::span<const float> weights,
                         std::span<const float> trained, std::span<float> activation)>;

  /// The function. Not null. Copies of one pointer are one computation.
  std::shared_ptr<const Computation> combiner_computation;

  /// Maximum number of entries of a sample that are combined. Kept as given.
  std::int32_t max_valency = 0;

  /// Number of weights of its own, >= 0. They are trained by plain gradient descent.
  std::int32_t num_weights = 0;

  /// First values of the weights. Required if num_weights > 0.
  std::optional<Initializer> initializer;

  /// Rate of the gradient descent. Kept as given.
  double combiner_weights_learning_rate = 0.01;

  /// Returns "custom_combiner_" and a number that identifies the computation.
  EMBERTABLE_API std::string name() const;

  /// Returns "custom_combiner_variables" if there are weights, else no names.
  EMBERTABLE_API std::vector<std::string> slot_names() const;
};

/// Checks the function, num_weights and initializer. Throws ValueError naming field, rule and
/// received value.
EMBERTABLE_API void validate(const CustomCombiner& combiner);

}  // namespace embertable
