#pragma once

/// Functions that the library's results depend on. They give the same bits on every CPU and C
/// library, because they consist of binary64 operations (add, subtract, multiply, divide, sqrt) and
/// bit operations alone. Unless stated otherwise the error is below 2 units in the last place of
/// binary64, so that a result rounded to float is within 1 of float's. Special values are those of
/// C's <math.h>; flags and errno are not set. Requires: the rounding mode is to nearest.
namespace embertable::math {

double exp(double x) noexcept;
double log(double x) noexcept;
double log1p(double x) noexcept;

/// Returns exp(y * log(x)), with a relative error below 1e-13 where the result is a normal float.
/// Requires: x >= 0; a negative x gives NaN.
double pow(double x, double y) noexcept;

/// Returns the x below which a standard normal number lies with probability p: -inf at 0, inf at 1,
/// NaN outside. The relative error is below 2e-15, except near 0, where the error is absolute.
/// Source: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
double normal_quantile(double p) noexcept;

/// Sets out[i] = normal_quantile(p[i]) for 0 <= i < n; faster.
void normal_quantiles(const double* p, double* out, int n) noexcept;

}  // namespace embertable::math
