#include "apps/jobs/text/number_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/math.h"

namespace embertable::jobs {
namespace {

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

/// Parses a whole number without a sign; -1 for other texts.
std::int64_t small_integer(std::string_view text) noexcept {
  if (text.size() > kMostDigits) return -1;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<double> finite_number(std::string_view text) noexcept {
  if (const std::int64_t whole = small_integer(text); whole >= 0) return static_cast<double>(whole);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return good && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

struct NumberCodes::Small {
  Small() noexcept {
    for (std::uint64_t v = 0; v < kTabled; ++v)
      codes[v] = static_cast<std::int16_t>(code_of(static_cast<std::int64_t>(v)));
    codes[kTabled] = 0;
  }
  std::array<std::int16_t, kTabled + 1> codes;
};

NumberCodes::NumberCodes() noexcept {
  static const Small small;
  small_ = small.codes.data();
}

/// Returns the code of a large number, or of a text that is not all digits.
std::int32_t NumberCodes::of_rare(std::string_view text, std::uint64_t value) noexcept {
  if (value != kNone) return code_of(static_cast<std::int64_t>(value));
  if (text[0] != '-' || text.size() == 1) return -1;
  const std::int64_t below = small_integer(text.substr(1));
  if (below == 0) return kZero;
  return below <= kNegatives ? static_cast<std::int32_t>(below) : -1;
}

std::string_view code_token(std::int32_t code, Token out) noexcept {
  if (code == 0) return {};
  if (code < kZero) return as_it_is(-code, out);
  return code < kBuckets ? as_it_is(code - kZero, out) : bucket(code - kBuckets, out);
}

std::optional<std::string_view> number_token(std::string_view text, Token out) noexcept {
  if (text.empty()) return text;
  const std::optional<double> value = finite_number(text);
  if (!value) return std::nullopt;
  if (*value > 2) return bucket(bucket_number(*value), out);
  return as_it_is(*value == 0 ? 0.0 : *value, out);  // -0 is 0
}

std::optional<std::string> limit_token(std::string_view text, std::span<const double> limits) {
  if (text.empty()) return "";
  const std::optional<double> value = finite_number(text);
  if (!value) return std::nullopt;
  const auto above = std::upper_bound(limits.begin(), limits.end(), *value);
  if (above == limits.begin()) return fmt::format("<{}", limits.front());
  if (above == limits.end()) return fmt::format(">={}", limits.back());
  return fmt::format("{}..{}", *(above - 1), *above);
}

}  // namespace embertable::jobs
