#pragma once

namespace embertable {

/// Library version.
inline constexpr const char* kVersion = "0.1.0";

/// Version of the numerics: results are bit-identical only between builds with the same value.
inline constexpr int kNumericsVersion = 1;

}  // namespace embertable
