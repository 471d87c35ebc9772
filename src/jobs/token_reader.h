#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/text_source.h"

namespace embertable::jobs {

/// Reads text as tokens with blanks (spaces, tabs, line ends) between them, from several files one
/// after the other, in memory bounded by the longest token. A file's end ends a line.
class TokenReader {
 public:
  /// Longest token, in bytes.
  static constexpr std::int64_t kMaxToken = 16 << 20;

  /// Throws IoError if a file cannot be read.
  explicit TokenReader(std::span<const std::string> paths);
  explicit TokenReader(const std::string& path) : TokenReader(std::span(&path, 1)) {}

  /// Goes to the next token; false at the end. Throws as TextSource::read, ValueError for a token
  /// that is too long.
  bool next();

  /// The token. Valid until next().
  std::string_view text() const noexcept { return {token_, size_}; }

  /// Whether it is the first of its line.
  bool begins_line() const noexcept { return begins_line_; }

  /// The token as an integer; see `refuse` for another.
  std::int64_t integer() const;

  /// Throws ValueError: "FILE:LINE:COLUMN: a token must be EXPECTED, got 'text'".
  [[noreturn]] void refuse(std::string_view expected) const;

  /// 1-based, of the token.
  std::int64_t line() const noexcept { return line_; }

  /// As a message names the place of the token: "FILE:LINE:COLUMN".
  std::string position() const;

 private:
  bool fill();
  bool next_file();
  void open();
  std::int64_t offset(const char* p) const noexcept {
    return buffer_offset_ + (p - buffer_.data());
  }

  std::vector<std::string> paths_;
  std::size_t file_ = 0;  ///< of paths_
  TextSource source_;
  std::vector<char> buffer_;
  std::int64_t buffer_offset_ = 0;  ///< in the file, of the buffer
  const char* rest_ = nullptr;      ///< what comes after the token
  const char* end_ = nullptr;
  const char* token_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t line_offset_ = 0;  ///< in the file, of the line's start
  std::int64_t line_ = 1;
  bool line_has_token_ = false;
  bool begins_line_ = false;
};

}  // namespace embertable::jobs
