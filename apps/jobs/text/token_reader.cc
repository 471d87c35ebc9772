#include "apps/jobs/text/token_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace embertable::jobs {
namespace {

constexpr std::int64_t kChunk = 1 << 20;

bool is_space(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

}  // namespace

TokenReader::TokenReader(std::span<const std::string> paths, std::int64_t skip_bad)
    : paths_(paths.begin(), paths.end()),
      source_(paths_.at(0)),
      left_out_(skip_bad),
      buffer_(kChunk) {
  open();
}

/// Begins to read source_.
void TokenReader::open() {
  token_ = rest_ = end_ = buffer_.data();
  buffer_offset_ = line_offset_ = 0;
  line_ = 1;
  line_has_token_ = skips_token_ = skips_line_ = false;
  while (end_ - rest_ < std::ssize(kByteOrderMark) && fill()) {
  }
  if (std::string_view(rest_, end_ - rest_).starts_with(kByteOrderMark)) {
    rest_ += kByteOrderMark.size();
    line_offset_ = offset(rest_);
  }
}

bool TokenReader::next_file() {
  if (file_ + 1 == paths_.size()) return false;
  source_ = TextSource(paths_[++file_]);
  open();
  return true;
}

/// Reads more bytes after those at rest_, which are kept.
bool TokenReader::fill() {
  const std::int64_t kept = end_ - rest_;
  buffer_offset_ = offset(rest_);
  std::memmove(buffer_.data(), rest_, kept);
  if (kept + kChunk > std::ssize(buffer_)) buffer_.resize(2 * kept + kChunk);
  token_ = rest_ = buffer_.data();
  const std::int64_t got = source_.read(buffer_.data() + kept, kChunk);
  end_ = rest_ + kept + got;
  return got > 0;
}

/// Skips what is to be left out, as far as it is in the buffer; returns false if more must be read.
bool TokenReader::skip() {
  while (rest_ != end_ && (skips_line_ ? *rest_ != '\n' : !is_space(*rest_))) ++rest_;
  if (rest_ == end_) return false;
  skips_line_ = skips_token_ = false;
  return true;
}

bool TokenReader::next() {
  for (;;) {
    if ((skips_line_ || skips_token_) && !skip()) {
      if (!fill() && !next_file()) return false;
      continue;
    }
    for (; rest_ != end_ && is_space(*rest_); ++rest_) {
      if (*rest_ != '\n') continue;
      ++line_;
      line_offset_ = offset(rest_) + 1;
      line_has_token_ = false;
    }
    if (rest_ == end_) {
      if (!fill() && !next_file()) return false;
      continue;
    }
    const char* p = rest_;
    while (p != end_ && !is_space(*p)) ++p;
    token_ = rest_;
    size_ = static_cast<std::size_t>(p - rest_);
    begins_line_ = !line_has_token_;
    if (static_cast<std::int64_t>(size_) > kMaxToken) {
      rest_ = p;
      skips_token_ = line_has_token_ = true;
      if (begins_line_) left_out_.count_read();
      refuse(fmt::format("at most {} bytes long", kMaxToken));
    }
    if (p == end_ && fill()) continue;
    rest_ = token_ + size_;
    line_has_token_ = true;
    if (begins_line_) left_out_.count_read();
    return true;
  }
}

std::int64_t TokenReader::integer() const {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(token_, token_ + size_, value);
  if (parsed.ec != std::errc() || parsed.ptr != token_ + size_) refuse("an integer of 64 bits");
  return value;
}

std::string TokenReader::position() const {
  return fmt::format("{}:{}:{}", paths_[file_], line_, offset(token_) - line_offset_ + 1);
}

void TokenReader::refuse(std::string_view expected) const {
  const std::string_view shown = text().substr(0, kShownBytes);
  throw BrokenRecord(position(), fmt::format("a token must be {}", expected),
                     fmt::format("'{}{}'", shown, shown.size() < size_ ? "..." : ""));
}

}  // namespace embertable::jobs
