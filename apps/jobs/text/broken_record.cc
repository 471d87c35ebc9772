#include "apps/jobs/text/broken_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace embertable::jobs {

SkipBad SkipBad::parse(const std::string& text) {
  const bool is_share = text.ends_with('%');
  const char* const begin = text.data();
  const char* const end = begin + text.size() - (is_share ? 1 : 0);
  SkipBad skip_bad;
  double percent = 0;
  const auto parsed =
      is_share ? std::from_chars(begin, end, percent) : std::from_chars(begin, end, skip_bad.most_);
  const bool in_range = is_share ? percent / 100 > 0 && percent <= 100 : skip_bad.most_ >= 0;
  if (parsed.ec != std::errc() || parsed.ptr != end || !in_range) {
    throw ValueError(fmt::format(
        "must be a number of records from 0, or a share of them as 1%, got '{}'", text));
  }
  skip_bad.percent_ = percent;
  return skip_bad;
}

std::string SkipBad::text() const {
  return percent_ > 0 ? fmt::format("{}%", percent_) : fmt::format("{}", most_);
}

SkipBad SkipBad::after(const LeftOut& left_out) const noexcept {
  SkipBad rest = *this;
  rest.most_ -= percent_ > 0 ? 0 : left_out.total();
  return rest;
}

std::int64_t LeftOut::total() const noexcept {
  std::int64_t sum = 0;
  for (const Reason& reason : reasons) sum += reason.count;
  return sum;
}

LeftOut& LeftOut::operator+=(const LeftOut& other) {
  read += other.read;
  for (const Reason& more : other.reasons) {
    const auto same = std::find_if(reasons.begin(), reasons.end(),
                                   [&](const Reason& one) { return one.rule == more.rule; });
    if (same == reasons.end()) {
      reasons.push_back(more);
    } else {
      same->count += more.count;
    }
  }
  return *this;
}

void check_share(const SkipBad& skip_bad, const LeftOut& left_out) {
  if (skip_bad.share() == 0) return;
  const auto most = skip_bad.share() * static_cast<double>(left_out.read);
  if (static_cast<double>(left_out.total()) <= most) return;
  const LeftOut::Reason& first = left_out.reasons.front();
  throw ValueError(fmt::format("{}: {}; of {} records {} are broken, more than {}", first.first,
                               first.rule, left_out.read, left_out.total(), skip_bad.text()));
}

void LeftOutCounter::count() {
  if (most_ == 0) throw;
  try {
    throw;
  } catch (const BrokenRecord& error) {
    if (left_out_.total() < most_) {
      left_out_ += {.reasons = {{error.rule(), 1, error.position()}}};
      return;
    }
    throw BrokenRecord(error, fmt::format("; {} broken before it {} left out, and no more may be",
                                          most_, most_ == 1 ? "is" : "are"));
  }
}

}  // namespace embertable::jobs
