#pragma once

#include <span>
#include <string>
#include <vector>

namespace embertable::jobs {

/// Expands columns as a job file writes them: "3-5" stands for the columns 3, 4 and 5 unless the
/// header has a column of this name. `header` is empty if there is none, or before it is read.
std::vector<std::string> expand_ranges(std::span<const std::string> written,
                                       std::span<const std::string> header);

/// True if one of them is written as a range.
bool has_range(std::span<const std::string> written);

}  // namespace embertable::jobs
