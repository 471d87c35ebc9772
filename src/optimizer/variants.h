#pragma once

#include <span>
#include <string_view>

#include "embertable/optimizer.h"

namespace embertable {

/// Every variant, sorted by name.
std::span<const OptimizerVariant> all_variants();

/// Returns the variant of that name, or null.
const OptimizerVariant* find_variant(std::string_view name);

}  // namespace embertable
