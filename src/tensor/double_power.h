#pragma once

namespace embertable {

/// Returns x^y in binary64, within 2 units in the last place. Consists of binary64 arithmetic and
/// bit operations alone: the same bits on every CPU and C library. Special values are those of C's
/// pow; flags and errno are not set.
double power(double x, double y) noexcept;

}  // namespace embertable
