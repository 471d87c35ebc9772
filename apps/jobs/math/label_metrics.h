#pragma once

#include <span>

namespace embertable::jobs {

/// Area under the ROC curve: the share of pairs of a sample with label 1 and one with label 0 in
/// which the first has the greater score, equal scores counting half. Exact but for the rounding of
/// one division, whatever the order of the samples. 0.5 without such a pair; NaN if a score is.
double area_under_curve(std::span<const float> scores, std::span<const float> labels);

/// Mean over the samples, in their order, of -log(p) where the label is 1 and -log(1 - p) where it
/// is 0; p = 1 / (1 + exp(-logit)), no nearer than 1e-15 to 0 and 1. 0 without samples.
double log_loss(std::span<const float> logits, std::span<const float> labels);

}  // namespace embertable::jobs
