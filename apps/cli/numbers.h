#pragma once

#include <cstdint>
#include <string>

namespace embertable::tools {

/// Returns a text such as "1,234,567".
std::string grouped(std::int64_t number);

/// Returns a text such as "512 B", "1.5 KiB" or "23 MiB", with at least two significant digits.
std::string size_text(std::int64_t bytes);

/// Returns a text such as "1 file" or "2 files".
std::string counted(std::int64_t number, const std::string& what);

}  // namespace embertable::tools
