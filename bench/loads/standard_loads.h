#pragma once

#include <span>
#include <string_view>

#include "bench/loads/load.h"

namespace embertable::bench {

/// Returns the workloads W1 to W6, in this order: tables of one shape with one feature each.
std::span<const Load> standard_loads();

/// Returns the workload of this name. Requires: there is one.
const Load& find_standard_load(std::string_view name);

}  // namespace embertable::bench
