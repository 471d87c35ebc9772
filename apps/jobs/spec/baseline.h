#pragma once

#include <string>

#include "apps/jobs/spec/measures.h"

namespace embertable::jobs {

/// What a simple predictor reaches, to hold a model against.
struct Baseline {
  std::string name;
  Measures measures;
};

}  // namespace embertable::jobs
