#include "jobs/number_token.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/math.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kTabled = 1024;
constexpr std::size_t kMostDigits = 18;

using Token = std::span<char, kNumberTokenBytes>;

template <class Number>
std::string_view as_it_is(Number value, Token out) noexcept {
  const char* const end = std::to_chars(out.data(), out.data() + out.size(), value).ptr;
  return {out.data(), static_cast<std::size_t>(end - out.data())};
}

std::string_view bucket(double value, Token out) noexcept {
  const double log = math::log(value);
  out[0] = '~';
  const auto number = static_cast<std::int64_t>(log * log);
  const char* const end = std::to_chars(out.data() + 1, out.data() + out.size(), number).ptr;
  return {out.data(), static_cast<std::size_t>(end - out.data())};
}

/// Of the whole numbers from 0, which are most of what there is.
struct SmallTokens {
  SmallTokens() noexcept {
    for (std::int64_t v = 0; v < kTabled; ++v) {
      std::array<char, kNumberTokenBytes> text;
      const std::string_view token =
          v <= 2 ? as_it_is(v, text) : bucket(static_cast<double>(v), text);
      Entry& entry = entries[static_cast<std::size_t>(v)];
      entry.size = static_cast<char>(token.copy(entry.text, sizeof(entry.text)));
    }
  }
  struct Entry {
    char text[7];  ///< ln(1023)^2 has two digits
    char size;
  };
  std::array<Entry, kTabled> entries;
};

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

std::optional<std::string_view> number_token(std::string_view text, Token out) noexcept {
  static const SmallTokens small;
  if (text.empty()) return text;
  const std::int64_t whole = small_integer(text);
  if (whole >= 0 && whole < kTabled) {
    const SmallTokens::Entry& entry = small.entries[static_cast<std::size_t>(whole)];
    return std::string_view(entry.text, static_cast<std::size_t>(entry.size));
  }
  if (whole >= 0) return bucket(static_cast<double>(whole), out);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  if (value > 2) return bucket(value, out);
  return as_it_is(value == 0 ? 0.0 : value, out);  // -0 is 0
}

}  // namespace embertable::jobs
