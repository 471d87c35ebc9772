#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <filesystem>

#include "apps/jobs/spec/measures.h"
#include "apps/jobs/spec/model.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns measures by name; None where there was nothing to measure.
nb::dict measures_dict(const jobs::Measures& measures);

/// Returns the number of broken records to leave out, or the share, "1%". Throws TypeError,
/// ValueError.
jobs::SkipBad skip_bad_of(nb::handle given, const char* what);

/// Warns, as UserWarning, of steps of a run that are newer than the one that `call` reads but
/// cannot be opened. Throws what opening a step throws, and what the warning raises.
void warn_of_skipped(const char* call, const std::filesystem::path& run);

/// Returns a number of threads or of runs, 0 for the default. Throws TypeError, ValueError.
std::int32_t threads_of(nb::handle given, const char* what);

}  // namespace embertable::python
