#pragma once

#include <cstdint>
#include <string>

namespace embertable::tools {

/// "1,234,567".
std::string grouped(std::int64_t number);

/// "512 B", "1.5 KiB", "23 MiB": two digits or more that count.
std::string size_text(std::int64_t bytes);

/// "1 file", "2 files".
std::string counted(std::int64_t number, const std::string& what);

}  // namespace embertable::tools
