#pragma once

#include <cstdint>
#include <string>

#include "embertable/batch.h"

namespace embertable {
namespace input {

/// Returns the shape of dense ids; that of a vector if they give none.
Shape shape_of(const DenseIds& ids);

/// Returns the rule on ranks and shapes that the ids break, with the received value, or "". Source:
/// engine.md 2.2, rC.
std::string broken_rank_rule(const FeatureIds& ids);

}  // namespace input

/// Returns the shape of one replica's activations that a batch implies, without the dim (engine.md
/// 2.2, rC). Throws ValueError naming path and shape or rank. `configured`: the feature has an
/// output shape of its own, so `max_sequence_length` does not count.
Shape detected_output_shape(const FeatureIds& ids, std::int64_t max_sequence_length,
                            bool configured, const std::string& path);

}  // namespace embertable
