#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "apps/convert/npy.h"
#include "apps/convert/text_source.h"

namespace embertable::jobs {

/// The two forms of the files of word2vec: a line "<rows> <dim>", then for each row its word, a
/// space, and its numbers, as text on a line or as binary32 bytes. Source: Mikolov, word2vec.c.
enum class Word2vecForm : std::uint8_t { kText, kBinary };

/// Writes a file. `word` names a row and must not be empty or contain blanks; else ValueError
/// naming the row. Numbers as text give the same float32 back. Throws IoError.
void write_word2vec(const std::filesystem::path& path, Word2vecForm form, std::int64_t rows,
                    std::int64_t dim, const std::function<std::string(std::int64_t row)>& word,
                    const formats::ReadRows& read);

/// Reads a file, plain or compressed, row by row. Errors are ValueErrors naming file and line, or
/// row if there are no lines.
class Word2vecReader {
 public:
  /// Reads the first line. Throws IoError.
  Word2vecReader(const std::filesystem::path& path, Word2vecForm form);

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t dim() const noexcept { return dim_; }

  /// Reads the numbers of the next row into `out`, [dim]. Returns its word, valid until the next
  /// call.
  std::string_view next(std::span<float> out);

  /// Returns where the row stands that was read last: "FILE:LINE", of the binary form "FILE: row
  /// N".
  std::string place() const;

  /// Requires: the last row was read. Throws unless the file ends there.
  void finish();

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  bool fill();
  std::string_view line();
  std::string_view next_text(std::span<float> out);
  std::string_view next_binary(std::span<float> out);

  TextSource source_;
  Word2vecForm form_;
  std::string buffer_;  ///< bytes read; those from at_ on are not used yet
  std::size_t at_ = 0;
  std::string word_;
  std::int64_t rows_ = 0, dim_ = 0;
  std::int64_t row_ = -1;  ///< row that was read last
};

}  // namespace embertable::jobs
