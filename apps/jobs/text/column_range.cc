#include "apps/jobs/text/column_range.h"

#include <charconv>

namespace embertable::jobs {
namespace {

/// Returns the numbers of "3-5"; empty for any other text.
std::vector<std::string> columns_of_range(std::string_view text) {
  constexpr int kMost = 1 << 14;
  int first = 0, last = 0;
  const char* const end = text.data() + text.size();
  const auto begin = std::from_chars(text.data(), end, first);
  if (begin.ec != std::errc() || begin.ptr == end || *begin.ptr != '-') return {};
  const auto rest = std::from_chars(begin.ptr + 1, end, last);
  if (rest.ec != std::errc() || rest.ptr != end || first < 1 || last > kMost) return {};
  std::vector<std::string> columns;
  for (int column = first; column <= last; ++column) columns.push_back(std::to_string(column));
  return columns;
}

}  // namespace

std::vector<std::string> expand_ranges(std::span<const std::string> written) {
  std::vector<std::string> columns;
  for (const std::string& text : written) {
    const std::vector<std::string> range = columns_of_range(text);
    if (range.empty()) columns.push_back(text);
    columns.insert(columns.end(), range.begin(), range.end());
  }
  return columns;
}

bool is_range(std::string_view text) { return !columns_of_range(text).empty(); }

}  // namespace embertable::jobs
