#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/jobs/spec/toml_section.h"

namespace embertable::jobs {

/// Completes a job that leaves out roles of its model, tables, the optimizer or the schedule, with
/// the defaults of its kind of model: docs/jobs.md lists them. A job that has all of these stays as
/// it is. What the job says itself is never changed, except that `model.dim`, the dim of tables
/// that the job lacks, is taken out. Values of a wrong type are left to those who read them.
/// Returns whether anything was changed.
bool fill_defaults(toml::table& job);

/// Returns a sentence on the keys that a job with all of these leaves out, and that jobs of its
/// kind without some of them have otherwise; "" if there are none.
std::string note_of_defaults(const toml::table& job);

/// Returns the largest power of two for the batch of an `mf` job in which some key has this share
/// of the ratings, or nothing where the default is as good. A step adds up the gradients of a row:
/// its rate is the job's times the times that the row occurs in the batch, and is stable below 2
/// over the curvature of a rating's loss, which is taken as 4: 1 from the bias, and the square of
/// the other vector. Requires: 0 < share <= 1.
std::optional<std::int64_t> stable_batch_of_ratings(double share);

}  // namespace embertable::jobs
