#pragma once

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

}  // namespace embertable::jobs
