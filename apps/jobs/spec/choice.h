#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace embertable::jobs {

/// Returns what is wrong with a name that is none of `names`, of which there is at least one: `must
/// be one of a, b, got "x"; the nearest is 'a'`.
std::string must_be_one_of(const std::vector<std::string>& names, std::string_view given);

/// Returns the name that was most likely meant.
std::string_view nearest(std::string_view given, const std::vector<std::string>& names);

}  // namespace embertable::jobs
