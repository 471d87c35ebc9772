#pragma once

namespace embertable {

/// Of the library.
inline constexpr const char* kVersion = "0.1.0";

/// Of the arithmetic. Another number: the same job gives other bits.
inline constexpr int kNumericsVersion = 1;

}  // namespace embertable
