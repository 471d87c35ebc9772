#pragma once

#include <span>
#include <string_view>

#include "bench/loads/load.h"

namespace embertable::bench {

/// Returns the workloads W1 to W6, in this order: tables of one shape with one feature each.
std::span<const Load> standard_loads();

/// Returns the workload of this name. Throws std::invalid_argument naming the known ones.
const Load& find_standard_load(std::string_view name);

}  // namespace embertable::bench
