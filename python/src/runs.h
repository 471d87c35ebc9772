#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "apps/jobs/spec/measures.h"
#include "apps/jobs/spec/model.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns measures by name; None where there was nothing to measure.
nb::dict measures_dict(const jobs::Measures& measures);

/// Returns the number of broken records to leave out, or the share, "1%". Throws TypeError,
/// ValueError.
jobs::SkipBad skip_bad_of(nb::handle given, const char* what);

/// Returns a number of threads or of runs, 0 for the default. Throws TypeError, ValueError.
std::int32_t threads_of(nb::handle given, const char* what);

}  // namespace embertable::python
