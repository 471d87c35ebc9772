#include "apps/jobs/sweep/swept_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "apps/jobs/spec/change.h"
#include "base/math.h"
#include "base/random.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return good && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool is_integer(std::string_view text) {
  return text.find_first_not_of("-0123456789") == std::string_view::npos;
}

/// Parts a text at commas that are in no brackets, braces or quotes.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  bool escaped = false;  // the character belongs to the backslash before it
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote && !escaped) quote = 0;
      escaped = quote == '"' && c == '\\' && !escaped;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  return parts;
}

void check_swept(const std::vector<SweptKey>& keys) {
  if (keys.empty()) throw ValueError("a sweep must have keys with values, got none");
  std::set<std::string> seen;
  for (const SweptKey& key : keys) {
    if (!seen.insert(key.key).second)
      throw ValueError(fmt::format("a sweep must name each key once, got '{}' twice", key.key));
  }
}

/// Returns the number of combinations of values, at most kMostSweptRuns + 1; without a limit with a
/// range.
std::int64_t combinations(const std::vector<SweptKey>& keys) {
  std::int64_t all = 1;
  for (const SweptKey& key : keys) {
    if (key.range) return kMostSweptRuns + 1;
    all = std::min(kMostSweptRuns + 1, all * std::ssize(key.values));
  }
  return all;
}

std::string drawn(const SweptKey& key, std::uint64_t bits) {
  if (!key.range) return key.values[uniform_below(bits, key.values.size())];
  const auto& [low, high, integers] = *key.range;
  const double share = uniform_double(bits);
  const double above = integers ? high + 1 : high;
  const double value =
      low > 0 ? low * math::exp(share * math::log(above / low)) : low + share * (above - low);
  if (integers)
    return fmt::format("{}", static_cast<std::int64_t>(std::min(high, std::floor(value))));
  // Four digits, and more where the ends of the range agree in the first ones.
  const double largest = std::max(std::abs(low), std::abs(high));
  int digits = 4;
  for (double width = 10 * (high - low); width <= largest && digits < 17; width *= 10) ++digits;
  const std::string text = fmt::format("{:.{}g}", value, digits);
  const double rounded = *number_of(text);
  return rounded < low || rounded > high ? fmt::format("{}", std::clamp(rounded, low, high)) : text;
}

}  // namespace

SweptKey SweptKey::parse(const std::string& text) {
  const std::size_t equals = end_of_key(text);
  if (equals == 0 || equals + 1 >= text.size())
    throw ValueError(
        fmt::format("a swept key must be KEY=VALUE,VALUE or KEY=LOW..HIGH, got '{}'", text));
  SweptKey key{.key = text.substr(0, equals), .values = {}, .range = {}};
  const std::string_view values = std::string_view(text).substr(equals + 1);
  if (const std::size_t dots = values.find(".."); dots != std::string_view::npos) {
    const std::string_view low = values.substr(0, dots), high = values.substr(dots + 2);
    const std::optional<double> first = number_of(low), last = number_of(high);
    if (first && last) {
      if (!(*first < *last))
        throw ValueError(fmt::format("{}: a range must rise, got {}..{}", key.key, low, high));
      key.range = {*first, *last, is_integer(low) && is_integer(high)};
      if (key.range->integers && (*first <= -0x1p63 || *last >= 0x1p63))
        throw ValueError(
            fmt::format("{}: whole numbers of a range must be between -2^63 and 2^63, got {}..{}",
                        key.key, low, high));
      return key;
    }
  }
  key.values = parts_of(values);
  std::set<std::string> seen;
  for (const std::string& value : key.values) {
    if (value.empty() || !seen.insert(value).second)
      throw ValueError(
          fmt::format("{}: values must be different and not empty, got '{}'", key.key, values));
  }
  return key;
}

std::vector<SweepSetting> grid_of(const std::vector<SweptKey>& keys) {
  check_swept(keys);
  for (const SweptKey& key : keys) {
    if (key.range)
      throw ValueError(fmt::format(
          "{}: a grid must have values, got a range; a random sweep draws from it", key.key));
  }
  if (combinations(keys) > kMostSweptRuns)
    throw ValueError(fmt::format("a grid must have at most {} runs, got more", kMostSweptRuns));
  std::vector<SweepSetting> settings(1);
  for (const SweptKey& key : keys) {
    std::vector<SweepSetting> longer;
    for (const SweepSetting& setting : settings) {
      for (const std::string& value : key.values) {
        longer.push_back(setting);
        longer.back().emplace_back(key.key, value);
      }
    }
    settings = std::move(longer);
  }
  return settings;
}

std::vector<SweepSetting> random_settings(const std::vector<SweptKey>& keys, std::int64_t count,
                                          std::uint64_t seed) {
  check_swept(keys);
  if (count < 1 || count > kMostSweptRuns)
    throw ValueError(
        fmt::format("a sweep must draw 1 to {} settings, got {}", kMostSweptRuns, count));
  if (combinations(keys) <= count) return grid_of(keys);
  constexpr std::int64_t kTries = 1000;  // for each setting that was not drawn before
  const std::uint64_t stream = stream_of(seed, "sweep");
  std::vector<SweepSetting> settings;
  std::set<SweepSetting> seen;
  for (std::int64_t draw = 0, tries = 0; std::ssize(settings) < count && tries < kTries; ++draw) {
    const RandomRow random(stream, static_cast<std::uint64_t>(draw));
    SweepSetting setting;
    for (std::size_t k = 0; k < keys.size(); ++k)
      setting.emplace_back(keys[k].key, drawn(keys[k], random.bits(k)));
    const bool is_new = seen.insert(setting).second;
    tries = is_new ? 0 : tries + 1;
    if (is_new) settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace embertable::jobs
