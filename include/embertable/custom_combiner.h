#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embertable/export.h"
#include "embertable/initializer.h"

namespace embertable {

/// How the rows of one sample become one activation, by a function of the caller's that may have
/// weights of its own. A value to keep, check and describe: SparseCores run one, engines of this
/// library refuse a table that has one. Source: TF tpu_embedding_v2_utils.py, CustomCombiner.
struct CustomCombiner {
  /// Gets the rows of a sample, as many weights, and what is trained with it: [num_weights].
  using Computation =
      std::function<void(std::span<const float* const> rows, std::span<const float> weights,
                         std::span<const float> trained, std::span<float> activation)>;

  /// Not null. Copies of one pointer are one computation.
  std::shared_ptr<const Computation> combiner_computation;

  /// Most entries of a sample that are combined.
  std::int32_t max_valency = 0;

  /// Weights of its own, >= 0. They are trained by plain gradient descent.
  std::int32_t num_weights = 0;

  /// First values of the weights; needed where there are any.
  std::optional<Initializer> initializer;
  double combiner_weights_learning_rate = 0.01;

  /// "custom_combiner_" and a number of the computation.
  EMBERTABLE_API std::string name() const;

  /// "custom_combiner_variables" where there are weights, else none.
  EMBERTABLE_API std::vector<std::string> slot_names() const;
};

/// Throws ValueError naming field, rule and received value.
EMBERTABLE_API void validate(const CustomCombiner& combiner);

}  // namespace embertable
