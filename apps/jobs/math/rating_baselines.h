#pragma once

#include <cstdint>
#include <vector>

#include "apps/jobs/data/samples.h"
#include "apps/jobs/spec/measures.h"

namespace embertable::jobs {

/// Measures the `test` samples, given the `training` ones, for four predictors, clipped like the
/// model's predictions: the mean of all labels, of the labels of the same user, of the same item
/// (of all if there are none), and mean + user bias + item bias, found by alternating regularised
/// least squares. `user` and `item` are cells. Sums are in double, in the order of the samples.
std::vector<Baseline> rating_baselines(const Samples& training, const Samples& test,
                                       std::int32_t user, std::int32_t item, double lowest,
                                       double highest);

}  // namespace embertable::jobs
