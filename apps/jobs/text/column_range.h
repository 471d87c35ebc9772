#pragma once

#include <span>
#include <string>
#include <vector>

namespace embertable::jobs {

/// Columns as a job file writes them, in which "3-5" stands for the columns 3, 4 and 5 unless the
/// header has a column of this name. `header`: empty without one, or before it was read.
std::vector<std::string> expand_ranges(std::span<const std::string> written,
                                       std::span<const std::string> header);

/// True if one of them is written as a range.
bool has_range(std::span<const std::string> written);

}  // namespace embertable::jobs
