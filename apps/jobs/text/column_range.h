#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace embertable::jobs {

/// Expands columns as a job file writes them: "3-5" stands for the columns 3, 4 and 5.
std::vector<std::string> expand_ranges(std::span<const std::string> written);

/// True for "3-5".
bool is_range(std::string_view text);

}  // namespace embertable::jobs
