#pragma once

// Every public header includes this one: the version of the library, and the mark of what its
// shared object exports.

/// Exports a symbol from libembertable.so; all other symbols are hidden.
#define EMBERTABLE_API __attribute__((visibility("default")))

namespace embertable {

/// Version of the library, MAJOR.MINOR.PATCH.
inline constexpr const char* kVersion = "0.1.0";

/// Version of the numerics: results are bit-identical only between builds with the same value.
///
/// 2 differs from 1 where the denominator of a mean or sqrtn is zero: the gradient of that output
/// row counts as zeros, whatever it is. Before, it was multiplied by 0, which gave NaN for an
/// infinite or NaN gradient, and -0 for a negative one.
inline constexpr int kNumericsVersion = 2;

}  // namespace embertable
