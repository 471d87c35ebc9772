#pragma once

#include <cstdint>
#include <vector>

#include "apps/jobs/data/samples.h"
#include "apps/jobs/spec/measures.h"

namespace embertable::jobs {

/// Measures of the `test` samples after a look at the `training` ones, clipped like the model's
/// predictions, for four guesses: the mean of all labels, of the labels of the same user, of the
/// same item (of all where there is none), and mean + user bias + item bias, found by alternating
/// regularised least squares. `user` and `item` are cells. Sums are in double, in the order of the
/// samples.
std::vector<Baseline> rating_baselines(const Samples& training, const Samples& test,
                                       std::int32_t user, std::int32_t item, double lowest,
                                       double highest);

}  // namespace embertable::jobs
