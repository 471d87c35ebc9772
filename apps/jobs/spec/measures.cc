#include "apps/jobs/spec/measures.h"

#include <algorithm>
#include <array>
#include <limits>

namespace embertable::jobs {
namespace {

constexpr std::array<std::string_view, 4> kSmallIsGood = {"rmse", "mae", "logloss", "loss"};

}  // namespace

double value_of(const Measures& measures, std::string_view name) {
  for (const Measure& measure : measures) {
    if (measure.name == name) return measure.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Measures select(const Measures& measures, const std::vector<std::string>& names) {
  Measures selected;
  for (const std::string& name : names) selected.push_back({name, value_of(measures, name)});
  return selected;
}

bool is_better(std::string_view name, double value, double other) {
  const bool small =
      std::find(kSmallIsGood.begin(), kSmallIsGood.end(), name) != kSmallIsGood.end();
  return small ? value < other : value > other;
}

}  // namespace embertable::jobs
