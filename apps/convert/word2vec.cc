#include "apps/convert/word2vec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "apps/convert/printable.h"
#include "base/interruption.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kReadAtOnce = 1 << 20;
constexpr std::size_t kMaxLine = 64 << 20;
constexpr std::int64_t kRowsAtOnce = 1024;
constexpr std::string_view kBlanks = " \t\r\n\v\f";

void append_row(std::string& bytes, Word2vecForm form, std::span<const float> row) {
  if (form == Word2vecForm::kBinary) {
    bytes += ' ';
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
  } else {
    for (const float value : row) bytes += fmt::format(" {}", value);
  }
  bytes += '\n';
}

/// Removes the text before the next space and returns it.
std::string_view take_field(std::string_view& rest) {
  const std::string_view field = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  return field;
}

template <class Number>
bool parse_whole(std::string_view text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

enum class Parsed : std::uint8_t { kNumber, kTooLarge, kNothing };

/// Parses a number. One that is too small for a float becomes the nearest float, perhaps zero.
Parsed parse_number(std::string_view text, float& number) {
  if (parse_whole(text, number)) return Parsed::kNumber;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc::result_out_of_range || parsed.ptr != text.data() + text.size())
    return Parsed::kNothing;
  double wide = 0;  // where even this has no such number, the sign of the exponent says which end
  if (!parse_whole(text, wide))
    wide = text.find("e-") != text.npos || text.find("E-") != text.npos ? 0 : 2;
  if (std::abs(wide) >= 1) return Parsed::kTooLarge;
  number = static_cast<float>(wide);
  return Parsed::kNumber;
}

}  // namespace

void write_word2vec(const std::filesystem::path& path, Word2vecForm form, std::int64_t rows,
                    std::int64_t dim, const std::function<std::string(std::int64_t row)>& word,
                    const formats::ReadRows& read) {
  checkpoint::NewFile file(checkpoint::local_files(), path);
  const auto width = static_cast<std::size_t>(dim);
  std::vector<float> chunk(static_cast<std::size_t>(std::min(kRowsAtOnce, rows)) * width);
  std::string bytes = fmt::format("{} {}\n", rows, dim);
  for (std::int64_t first = 0; first < rows; first += kRowsAtOnce) {
    Interruption::ask();
    const auto count = static_cast<std::size_t>(std::min(kRowsAtOnce, rows - first));
    read(first, std::span(chunk).first(count * width));
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = word(first + static_cast<std::int64_t>(i));
      if (name.empty() || name.find_first_of(kBlanks) != std::string::npos) {
        throw ValueError(
            fmt::format("{}: the word of row {} must have no blanks and not be empty, got '{}'",
                        path.string(), first + static_cast<std::int64_t>(i), name));
      }
      bytes += name;
      append_row(bytes, form, std::span(chunk).subspan(i * width, width));
    }
    file.write(checkpoint::bytes_of(bytes));
    bytes.clear();
  }
  file.write(checkpoint::bytes_of(bytes));  // without rows, the first line
  file.commit();
}

Word2vecReader::Word2vecReader(const std::filesystem::path& path, Word2vecForm form)
    : source_(path.string()), form_(form) {
  std::string_view rest = line();
  while (!rest.empty() && kBlanks.find(rest.back()) != std::string_view::npos)
    rest.remove_suffix(1);
  const std::string_view first(rest);
  const bool counts = parse_whole(take_field(rest), rows_) && parse_whole(rest, dim_);
  if (!counts || rows_ < 1 || dim_ < 1)
    refuse(fmt::format("the first line must be the number of rows and of columns, got '{}'",
                       first.substr(0, 40)));
}

std::string Word2vecReader::place() const {
  return form_ == Word2vecForm::kText || row_ < 0 ? fmt::format("{}:{}", source_.path(), row_ + 2)
                                                  : fmt::format("{}: row {}", source_.path(), row_);
}

void Word2vecReader::refuse(const std::string& what) const {
  throw ValueError(fmt::format("{}: {}", place(), what));
}

bool Word2vecReader::fill() {
  buffer_.erase(0, std::exchange(at_, 0));
  const std::size_t held = buffer_.size();
  buffer_.resize(held + static_cast<std::size_t>(kReadAtOnce));
  const std::int64_t read = source_.read(buffer_.data() + held, kReadAtOnce);
  buffer_.resize(held + static_cast<std::size_t>(read));
  return read > 0;
}

/// Returns the next line, without its end.
std::string_view Word2vecReader::line() {
  std::size_t searched = 0;
  std::size_t end;
  while ((end = buffer_.find('\n', at_ + searched)) == std::string::npos) {
    searched = buffer_.size() - at_;
    if (searched > kMaxLine) refuse("the line is too long");
    if (fill()) continue;
    if (buffer_.empty()) {
      refuse(row_ < 0 ? "the file is empty"
                      : fmt::format("there must be {} rows, got {}", rows_, row_));
    }
    end = buffer_.size();
    break;
  }
  const std::string_view found = std::string_view(buffer_).substr(at_, end - at_);
  at_ = std::min(end + 1, buffer_.size());
  return found.ends_with('\r') ? found.substr(0, found.size() - 1) : found;
}

std::string_view Word2vecReader::next(std::span<float> out) {
  ++row_;
  return form_ == Word2vecForm::kText ? next_text(out) : next_binary(out);
}

/// Takes numbers from the end, so that a word may have spaces, as those of other programs do.
std::string_view Word2vecReader::next_text(std::span<float> out) {
  std::string_view rest = line();
  while (rest.ends_with(' ') || rest.ends_with('\t')) rest.remove_suffix(1);
  for (std::size_t i = out.size(); i-- > 0;) {
    const std::size_t blank = rest.find_last_of(" \t");
    const std::string_view number = blank == std::string_view::npos ? "" : rest.substr(blank + 1);
    const Parsed parsed = parse_number(number, out[i]);
    if (parsed == Parsed::kTooLarge)
      refuse(fmt::format("a number must fit into float32, got '{}'", number.substr(0, 40)));
    if (parsed == Parsed::kNothing)
      refuse(fmt::format("a line must be a word and {} numbers, got '{}' as number {} of them",
                         out.size(), printable(number.substr(0, 40)), i + 1));
    rest = rest.substr(0, blank);
  }
  if (rest.empty()) refuse("a word must not be empty");
  return rest;
}

std::string_view Word2vecReader::next_binary(std::span<float> out) {
  const auto char_at = [&](std::size_t i) {
    while (at_ + i >= buffer_.size())
      if (!fill()) refuse(fmt::format("the file ends; there must be {} rows", rows_));
    return buffer_[at_ + i];
  };
  while (char_at(0) == '\n') ++at_;
  std::size_t length = 0;
  while (char_at(length) != ' ')
    if (++length > kMaxLine) refuse("the word is too long");
  if (length == 0) refuse("a word must not be empty");
  word_ = buffer_.substr(at_, length);
  at_ += length + 1;
  char_at(out.size_bytes() - 1);
  std::memcpy(out.data(), buffer_.data() + at_, out.size_bytes());
  at_ += out.size_bytes();
  return word_;
}

void Word2vecReader::finish() {
  ++row_;
  do {
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    if (rest.find_first_not_of(kBlanks) != std::string_view::npos)
      refuse(fmt::format("there must be {} rows, got more", rows_));
    at_ = buffer_.size();
  } while (fill());
}

}  // namespace embertable::jobs
