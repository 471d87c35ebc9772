#pragma once

#include <string>

#include "apps/jobs/spec/measures.h"

namespace embertable::jobs {

/// Measures of a simple predictor, for comparison with a model.
struct Baseline {
  std::string name;
  Measures measures;
};

}  // namespace embertable::jobs
