#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace embertable::jobs {

inline constexpr int kNumberTokenBytes = 32;

/// The token of a number v that is to be a category: v itself in its shortest form if v <= 2, else
/// "~k" with k = floor(ln(v)^2), which no number up to 2 is written as; an empty text stays empty.
/// Nothing for a text that is no finite number. The token stands in `out`, or is constant.
/// Source: the preprocessing of the winners of the Criteo Display Advertising Challenge, 2014
/// (Juan, Zhuang, Chin: 3 Idiots' Approach).
std::optional<std::string_view> number_token(std::string_view text,
                                             std::span<char, kNumberTokenBytes> out) noexcept;

/// The tokens of short whole numbers are also numbered, 0 to kNumberCodes - 1, so that what a token
/// has come to can stand in an array: "", "-1" to "-16", "0", "1", "2", "~0", "~1", ...
inline constexpr std::int32_t kNumberCodes = 360;

/// The code of the token of a text, or -1 for one that number_token must see. 8 bytes from the
/// text's first on must be readable.
std::int32_t number_code(std::string_view text) noexcept;

/// The token of a code, in `out`.
std::string_view code_token(std::int32_t code, std::span<char, kNumberTokenBytes> out) noexcept;

}  // namespace embertable::jobs
