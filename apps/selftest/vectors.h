#pragma once

#include <string>
#include <vector>

#include "embertable/optimizer.h"

namespace embertable::selftest {

/// One row before and after steps, as another program computed it.
struct GoldenVector {
  std::string id;
  std::string source;  ///< the programs that agree on it
  std::string rule;
  Optimizer::Settings settings;
  OptimizerOptions options;
  std::vector<std::string> slots;         ///< names
  std::vector<std::vector<float>> start;  ///< the row, then each slot

  struct Step {
    double learning_rate = 0;
    double step_counter = 1;
    std::vector<std::vector<float>>
        gradients;  ///< gradients of each entry; none: the batch lacks the row
    std::vector<std::vector<double>> expected;  ///< shaped like `start`
    std::vector<std::string>
        bits;  ///< shaped like `start`, 8 hex digits an element; empty: not known
  };
  std::vector<Step> steps;
  double rtol = 0, atol = 0;  ///< |got - expected| <= atol + rtol * |expected|
};

/// At least one for each rule but those whose arithmetic is the caller's.
const std::vector<GoldenVector>& published_vectors();

}  // namespace embertable::selftest
