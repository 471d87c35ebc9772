// What a model reports of itself: named values. `math/metrics.h` computes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace embertable::jobs {

/// A measured value: "auc", 0.7655. Names are those of the metrics in a job file. NaN: there was
/// nothing to measure.
struct Measure {
  std::string name;
  double value = 0;
};
using Measures = std::vector<Measure>;

/// Measures of a simple predictor, which a model is compared with.
struct Baseline {
  std::string name;
  Measures measures;
};

/// Returns the value of that name; NaN if there is none.
double value_of(const Measures& measures, std::string_view name);

/// Returns the measures of `names`, in their order.
Measures select(const Measures& measures, const std::vector<std::string>& names);

/// True if `value` of the measure `name` is better than `other`: lower is better for errors and
/// losses ("rmse", "mae", "logloss", "loss"), higher for all others. NaN is never better.
bool is_better(std::string_view name, double value, double other);

}  // namespace embertable::jobs
