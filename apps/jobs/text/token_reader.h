#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/convert/text_source.h"
#include "apps/jobs/text/broken_record.h"

namespace embertable::jobs {

/// Reads text as tokens separated by blanks (spaces, tabs, line ends), from several files one after
/// the other, in memory bounded by the longest token. A file's end ends a line. Broken tokens can
/// be left out, up to a maximum.
class TokenReader {
 public:
  /// Maximum length of a token, in bytes.
  static constexpr std::int64_t kMaxToken = 16 << 20;

  /// `skip_bad` is how much to leave out before a broken token is an error. Throws IoError if a
  /// file cannot be read.
  explicit TokenReader(std::span<const std::string> paths, std::int64_t skip_bad = 0);
  explicit TokenReader(const std::string& path) : TokenReader(std::span(&path, 1)) {}

  /// Moves to the next token; returns false at the end. Throws what TextSource::read throws,
  /// BrokenRecord for a token that is too long, which the next call skips.
  bool next();

  /// Counts what is left out, or rethrows if that would be one too many. Called in a handler of
  /// BrokenRecord.
  void leave_out() { left_out_.count(); }
  const LeftOut& left_out() const noexcept { return left_out_.so_far(); }

  /// Makes the next token one of another line.
  void skip_line() noexcept { skips_line_ = true; }

  /// Returns the token. Valid until next().
  std::string_view text() const noexcept { return {token_, size_}; }

  /// True if the token is the first of its line.
  bool begins_line() const noexcept { return begins_line_; }

  /// Returns the token as an integer; throws as `refuse` for another.
  std::int64_t integer() const;

  /// Throws BrokenRecord: "FILE:LINE:COLUMN: a token must be EXPECTED, got 'text'".
  [[noreturn]] void refuse(std::string_view expected) const;

  /// Returns the 1-based line of the token.
  std::int64_t line() const noexcept { return line_; }

  /// Returns the place of the token for messages: "FILE:LINE:COLUMN".
  std::string position() const;

 private:
  bool skip();
  bool fill();
  bool next_file();
  void open();
  std::int64_t offset(const char* p) const noexcept {
    return buffer_offset_ + (p - buffer_.data());
  }

  std::vector<std::string> paths_;
  std::size_t file_ = 0;  ///< index into paths_
  TextSource source_;
  LeftOutCounter left_out_;
  std::vector<char> buffer_;
  std::int64_t buffer_offset_ = 0;  ///< position of the buffer in the file
  const char* rest_ = nullptr;      ///< what follows the token
  const char* end_ = nullptr;
  const char* token_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t line_offset_ = 0;  ///< position of the line's start in the file
  std::int64_t line_ = 1;
  bool line_has_token_ = false;
  bool begins_line_ = false;
  bool skips_token_ = false;  ///< skips the rest of a token that is too long
  bool skips_line_ = false;
};

}  // namespace embertable::jobs
