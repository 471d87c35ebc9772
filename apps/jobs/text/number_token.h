#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace embertable::jobs {

inline constexpr int kNumberTokenBytes = 32;

/// Returns the token of a number v that is used as a category: v itself in its shortest form if v
/// <= 2, else "~k" with k = floor(ln(v)^2), which is not the form of any number up to 2; an empty
/// text stays empty. Empty for a text that is not a finite number. The token is stored in `out`, or
/// constant. Source: the preprocessing of the winners of the Criteo Display Advertising Challenge,
/// 2014 (Juan, Zhuang, Chin: 3 Idiots' Approach).
std::optional<std::string_view> number_token(std::string_view text,
                                             std::span<char, kNumberTokenBytes> out) noexcept;

/// Returns the token of a number between rising limits: "<18" below the first, "18..30" for 18 <= v
/// < 30, ">=30" from the last on; an empty text stays empty. Empty for a text that is not a finite
/// number. Requires: there is a limit.
std::optional<std::string> limit_token(std::string_view text, std::span<const double> limits);

/// The tokens of short whole numbers also have codes, 0 to kNumberCodes - 1, so that an array can
/// hold a value for each: "", "-1" to "-16", "0", "1", "2", "~0", "~1", ...
inline constexpr std::int32_t kNumberCodes = 360;

/// Finds codes. A value to copy. Thread-safe.
class NumberCodes {
 public:
  NumberCodes() noexcept;

  /// Returns the code of the token of a text, or -1 for a text that needs number_token. Requires: 8
  /// bytes from the text's first on are readable.
  std::int32_t of(std::string_view text) const noexcept {
    if (text.size() > sizeof(std::uint64_t)) return -1;
    const std::uint64_t value = up_to_8_digits(text);
    if (value >= kTabled) return of_rare(text, value);
    return small_[text.empty() ? kTabled : value];  // one load, as empty fields come unforeseen
  }

 private:
  static constexpr std::uint64_t kTabled = 1 << 14;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Small;

  /// Parses at most 8 digits at once; no digits give 0. Returns kNone for other bytes.
  static std::uint64_t up_to_8_digits(std::string_view text) noexcept {
    std::uint64_t bytes;
    std::memcpy(&bytes, text.data(), sizeof(bytes));
    const std::size_t half = 4 * (8 - text.size());  // half of the bits that are no digits
    bytes = bytes << half << half;
    bytes |= 0x3030303030303030u & ~(~std::uint64_t{0} << half << half);
    constexpr std::uint64_t kHigh = 0xf0f0f0f0f0f0f0f0u;
    const std::uint64_t wrong = ((bytes & kHigh) ^ 0x3030303030303030u) |
                                (((bytes + 0x0606060606060606u) & kHigh) ^ 0x3030303030303030u);
    bytes -= 0x3030303030303030u;
    bytes = bytes * 10 + (bytes >> 8);  // pairs
    constexpr std::uint64_t kPairs = 0x000000ff000000ffu;
    const std::uint64_t both = (bytes & kPairs) * (100 + (1000000ull << 32)) +
                               ((bytes >> 16) & kPairs) * (1 + (10000ull << 32));
    return wrong == 0 ? both >> 32 : kNone;
  }
  static std::int32_t of_rare(std::string_view text, std::uint64_t value) noexcept;

  const std::int16_t*
      small_;  ///< codes of the numbers below kTabled, and behind them the code of no text
};

/// Returns the token of a code, stored in `out`.
std::string_view code_token(std::int32_t code, std::span<char, kNumberTokenBytes> out) noexcept;

}  // namespace embertable::jobs
