#pragma once

#include <string>

#include "bench/workload_bench.h"

namespace embertable::bench {

/// A table for people: rates in millions of lookups a second, times in ns per lookup.
std::string to_text(const WorkloadResult& result);

/// One JSON object on one line. Rates are lookups per second, `stages` are ns per lookup, null
/// where nothing ran.
std::string to_json(const WorkloadResult& result);

}  // namespace embertable::bench
