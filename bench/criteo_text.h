#pragma once

#include <cstdint>
#include <string>

namespace embertable::bench {

inline constexpr int kCriteoColumns = 40;
inline constexpr int kCriteoNumbers = 13;

/// Lines in the layout of Criteo's click logs: a label, 13 whole numbers and 26 texts of 8
/// hexadecimal digits, tab-separated, some empty. As many different texts a column as the
/// challenge's sample of 123,425 lines has, a few of them most frequent; `distinct` > 0: so many in
/// each of the six widest. The same for equal arguments.
std::string criteo_text(std::int64_t rows, std::int64_t distinct = 0);

}  // namespace embertable::bench
