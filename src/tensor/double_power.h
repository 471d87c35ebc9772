#pragma once

namespace embertable {

/// x^y in binary64, within 2 units in the last place, of + - * / and bit operations alone: the same
/// bits on every CPU and C library. Special values as C's pow; no flags, no errno.
double power(double x, double y) noexcept;

}  // namespace embertable
