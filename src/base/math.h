#pragma once

/// Functions that the library's results depend on, with the same bits on every CPU and C library:
/// binary64 from
/// + - * / sqrt and bit operations alone. Their errors are below 2 units in the last place of
/// binary64 unless it says otherwise, so that a result rounded to float is within 1 of float's.
/// Special values as in C's <math.h>; no flags, no errno. Round to nearest is taken for granted.
namespace embertable::math {

double exp(double x) noexcept;
double log(double x) noexcept;
double log1p(double x) noexcept;

/// exp(y * log(x)), within 1e-13 of the truth, relatively, where the result is a normal float. x >=
/// 0; a negative x gives NaN.
double pow(double x, double y) noexcept;

/// |x| <= 2^20; NaN beyond. Absolute error below 2^-52.
double sin(double x) noexcept;
double cos(double x) noexcept;

/// The x below which a standard normal number is with probability p; -inf at 0, inf at 1, NaN
/// outside. Relative error below 2e-15 but near 0, where the error is absolute. Source: Wichura,
/// Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
double normal_quantile(double p) noexcept;

/// The same for out[i] = normal_quantile(p[i]), 0 <= i < n; faster.
void normal_quantiles(const double* p, double* out, int n) noexcept;

}  // namespace embertable::math
