#pragma once

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

}  // namespace embertable::jobs
