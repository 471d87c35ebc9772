#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace embertable {

/// Returns the least number of letters to insert, drop or replace to turn one name into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate at the least edit distance from `name`, the first of several; "" without
/// candidates.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace embertable
