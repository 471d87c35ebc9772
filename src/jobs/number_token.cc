#include "jobs/number_token.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/math.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kTabled = 1 << 14;
constexpr std::size_t kMostDigits = 18;

using Token = std::span<char, kNumberTokenBytes>;

template <class Number>
std::string_view as_it_is(Number value, Token out) noexcept {
  const char* const end = std::to_chars(out.data(), out.data() + out.size(), value).ptr;
  return {out.data(), static_cast<std::size_t>(end - out.data())};
}

std::int64_t bucket_number(double value) noexcept {
  const double log = math::log(value);
  return static_cast<std::int64_t>(log * log);
}

std::string_view bucket(std::int64_t number, Token out) noexcept {
  out[0] = '~';
  const char* const end = std::to_chars(out.data() + 1, out.data() + out.size(), number).ptr;
  return {out.data(), static_cast<std::size_t>(end - out.data())};
}

// The codes.
constexpr std::int32_t kNegatives = 16;
constexpr std::int32_t kZero = kNegatives + 1;
constexpr std::int32_t kBuckets = kZero + 3;

std::int32_t code_of(std::int64_t value) noexcept {
  if (value <= 2) return kZero + static_cast<std::int32_t>(value);
  return kBuckets + static_cast<std::int32_t>(bucket_number(static_cast<double>(value)));
}

/// Codes of the whole numbers from 0, which are most of what there is.
struct SmallCodes {
  SmallCodes() noexcept {
    for (std::int64_t v = 0; v < kTabled; ++v)
      codes[static_cast<std::size_t>(v)] = static_cast<std::int16_t>(code_of(v));
  }
  std::array<std::int16_t, kTabled> codes;
};

/// The whole number that 1 to 8 digits are, all at once, or -1 where they are none. 8 bytes must be
/// readable.
std::int64_t up_to_8_digits(std::string_view text) noexcept {
  std::uint64_t bytes;
  std::memcpy(&bytes, text.data(), sizeof(bytes));
  const std::size_t missing = 8 * (8 - text.size());  // bits
  bytes <<= missing;
  bytes |= 0x3030303030303030u & ((std::uint64_t{1} << missing) - 1);
  constexpr std::uint64_t kHigh = 0xf0f0f0f0f0f0f0f0u;
  const bool digits = (bytes & kHigh) == 0x3030303030303030u &&
                      ((bytes + 0x0606060606060606u) & kHigh) == 0x3030303030303030u;
  if (!digits) return -1;
  bytes -= 0x3030303030303030u;
  bytes = bytes * 10 + (bytes >> 8);  // pairs
  constexpr std::uint64_t kPairs = 0x000000ff000000ffu;
  const std::uint64_t both = (bytes & kPairs) * (100 + (1000000ull << 32)) +
                             ((bytes >> 16) & kPairs) * (1 + (10000ull << 32));
  return static_cast<std::int64_t>(both >> 32);
}

/// A whole number without a sign, or -1.
std::int64_t small_integer(std::string_view text) noexcept {
  if (text.size() > kMostDigits) return -1;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::int32_t number_code(std::string_view text) noexcept {
  static const SmallCodes small;
  if (text.empty()) return 0;
  if (text.size() > 8) return -1;
  if (text[0] == '-') {
    const std::int64_t value = text.size() > 1 ? small_integer(text.substr(1)) : -1;
    if (value == 0) return kZero;
    return value <= kNegatives ? static_cast<std::int32_t>(value) : -1;
  }
  const std::int64_t value = up_to_8_digits(text);
  if (value >= kTabled) return code_of(value);
  return value >= 0 ? small.codes[static_cast<std::size_t>(value)] : -1;
}

std::string_view code_token(std::int32_t code, Token out) noexcept {
  if (code == 0) return {};
  if (code < kZero) return as_it_is(-code, out);
  return code < kBuckets ? as_it_is(code - kZero, out) : bucket(code - kBuckets, out);
}

std::optional<std::string_view> number_token(std::string_view text, Token out) noexcept {
  if (text.empty()) return text;
  double value = 0;
  if (const std::int64_t whole = small_integer(text); whole >= 0) {
    value = static_cast<double>(whole);
  } else {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
        !std::isfinite(value))
      return std::nullopt;
  }
  if (value > 2) return bucket(bucket_number(value), out);
  return as_it_is(value == 0 ? 0.0 : value, out);  // -0 is 0
}

}  // namespace embertable::jobs
