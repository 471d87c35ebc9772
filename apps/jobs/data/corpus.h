#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/spec/model.h"
#include "apps/jobs/spec/split.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// How a text is split into tokens.
enum class TokenRule : std::uint8_t {
  /// A token is a run of letters a to z, which may continue once after an apostrophe:
  /// [a-z]+('[a-z]+)?. Capital letters of ASCII count as small ones, U+2019 as an apostrophe.
  kWords,

  /// A token is what stands between blanks, unchanged.
  kBlanks,
};

/// Returns the spelling that a token of kWords has in place of this text.
std::string as_word(std::string_view text);

/// Maximum length of a token of kWords, in bytes.
inline constexpr std::int64_t kMaxWord = 1 << 16;

/// Calls token(text) for each token of some files, one after the other, in memory bounded by the
/// longest token. Leaves out at most `skip_bad` tokens that are too long, and returns which.
/// Throws what TextSource throws, BrokenRecord naming file, line and column for a token that is too
/// long.
LeftOut for_each_token(std::span<const std::string> paths, TokenRule rule,
                       const std::function<void(std::string_view)>& token,
                       std::int64_t skip_bad = 0);

struct CorpusSpec {
  TokenRule rule = TokenRule::kWords;
  std::int64_t min_count = 1;  ///< rarer words of the trained text get no row
  /// Share of the tokens, rounded down, that ends the text as its test part.
  double test_share = 0;
  double validation_share = 0;  ///< share that forms the validation part, before the test part
  bool train_on_validation = false;
};

/// A text as the numbers of its words, without words that are too rare.
class Corpus {
 public:
  Corpus() = default;

  /// Reads the files; throws as for_each_token.
  Corpus(std::span<const std::string> paths, const CorpusSpec& spec, std::int64_t skip_bad = 0);

  /// Number of tokens that were too long.
  const LeftOut& left_out() const noexcept { return left_out_; }

  /// Rows are numbered by falling count in the text that trains; of two equal counts the word seen
  /// earlier comes first.
  const IdMap& words() const noexcept { return words_; }

  /// Count of each word in the text that trains, by row.
  std::span<const std::int64_t> counts() const noexcept { return counts_; }

  /// The words of a part in the order of the text.
  std::span<const std::int32_t> text(Part part) const noexcept;

  /// Text used for training: the training part and, if it trains too, the validation part.
  std::span<const std::int32_t> trained_text() const noexcept {
    return std::span(text_).first(trained_);
  }

  /// Returns the number of tokens of a part, rare words included.
  std::int64_t tokens(Part part) const noexcept { return of(part).tokens; }

  /// Returns a hash of the words and one of the text with its parts.
  std::map<std::string, std::string> digests() const;

  /// Passes the fields to DataCache.
  template <class File>
  void fields(File& file) {
    file(words_, counts_, text_, parts_, trained_);
    left_out_.fields(file);
  }

  /// True if the text is of these words, and each part is within it.
  bool is_consistent() const noexcept;

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;  ///< range of text_
    std::int64_t tokens = 0;
  };
  std::vector<std::int32_t> number_words(const Vocabulary& seen, std::int64_t trained,
                                         std::int64_t min_count);
  std::int64_t leave_out(const std::vector<std::int32_t>& row, std::int64_t to, std::int64_t begin,
                         std::int64_t end);
  const Range& of(Part part) const noexcept { return parts_[static_cast<std::size_t>(part)]; }

  IdMap words_ = IdMap::hashed(KeyKind::kString, 1);
  std::vector<std::int64_t> counts_;
  std::vector<std::int32_t> text_;
  std::array<Range, 3> parts_;  ///< by Part
  std::int64_t trained_ = 0;    ///< words of text_
  LeftOut left_out_;
};

/// Reads the files, or what an earlier run has left in the cache for them.
Corpus read_corpus(const std::vector<std::string>& paths, const CorpusSpec& spec,
                   const DataOptions& options);

}  // namespace embertable::jobs
