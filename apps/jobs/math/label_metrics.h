#pragma once

#include <span>

namespace embertable::jobs {

/// Returns the area under the ROC curve: the share of pairs of a sample with label 1 and one with
/// label 0 in which the first has the greater score, where equal scores count half. Exact except
/// for the rounding of one division, whatever the order of the samples. 0.5 without such a pair;
/// NaN if a score is NaN.
double area_under_curve(std::span<const float> scores, std::span<const float> labels);

/// Returns the mean over the samples, in their order, of -log(p) for label 1 and -log(1 - p) for
/// label 0, where p = 1 / (1 + exp(-logit)), no nearer than 1e-15 to 0 and 1. 0 without samples.
double log_loss(std::span<const float> logits, std::span<const float> labels);

}  // namespace embertable::jobs
