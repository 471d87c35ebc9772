#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace embertable::jobs {

/// Something measured: "auc", 0.7655. Names as in the metrics of a job file.
struct Measure {
  std::string name;
  double value = 0;
};
using Measures = std::vector<Measure>;

/// The value of that name; NaN if there is none.
double value_of(const Measures& measures, std::string_view name);

/// The measures of `names`, in their order.
Measures select(const Measures& measures, const std::vector<std::string>& names);

/// Whether `value` of the measure `name` is better than `other`: errors and losses ("rmse", "mae",
/// "logloss", "loss") want to be small, all others great. NaN is never better.
bool is_better(std::string_view name, double value, double other);

}  // namespace embertable::jobs
