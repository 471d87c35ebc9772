#pragma once

#include <cstdint>
#include <string>

namespace embertable::bench {

inline constexpr int kCriteoColumns = 40;
inline constexpr int kCriteoNumbers = 13;

/// Makes synthetic lines in the layout of Criteo's click logs: a label, 13 whole numbers and 26
/// texts of 8 hexadecimal digits, tab-separated, some empty. A column has as many distinct texts as
/// in the challenge's sample of 123,425 lines, a few of them most frequent. Equal arguments give
/// equal lines.
std::string criteo_text(std::int64_t rows);

}  // namespace embertable::bench
