#pragma once

// Every public header includes this one: the version of the library, and the mark of what its
// shared object exports.

/// Exports a symbol from libembertable.so; all other symbols are hidden.
#define EMBERTABLE_API __attribute__((visibility("default")))

namespace embertable {

/// Version of the library, MAJOR.MINOR.PATCH.
inline constexpr const char* kVersion = "0.1.0";

/// Version of the numerics: results are bit-identical only between builds with the same value.
inline constexpr int kNumericsVersion = 1;

}  // namespace embertable
