#include "apps/jobs/data/corpus.h"

#include <fmt/format.h>

#include <cmath>

#include "apps/convert/text_source.h"
#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/text/token_reader.h"
#include "base/hash.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kPart = 1 << 18;
constexpr std::size_t kShownOfWord = 60;

constexpr std::string_view kRightQuote = "\xE2\x80\x99";  // U+2019

char small_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Splits the bytes of a text into its words.
class WordCutter {
 public:
  WordCutter(const std::string& path, const std::function<void(std::string_view)>& token,
             LeftOutCounter& left_out)
      : path_(path), token_(token), left_out_(left_out) {}

  void take(std::string_view bytes) {
    for (const char byte : bytes) {
      ++column_;
      take(byte);
    }
  }

  void finish() { other(); }

 private:
  enum class State : std::uint8_t { kOutside, kWord, kApostrophe, kTail, kTooLong };

  void take(char byte) {
    if (quote_bytes_ > 0 || byte == kRightQuote[0]) {
      if (takes_quote(byte)) return;
    }
    if (const char small = small_letter(byte); small >= 'a' && small <= 'z') {
      letter(small);
    } else if (byte == '\'') {
      apostrophe();
    } else {
      other();
      if (byte == '\n') {
        ++line_;
        column_ = 0;
      }
    }
  }

  /// True if the byte may belong to U+2019, given the bytes so far.
  bool takes_quote(char byte) {
    if (byte != kRightQuote[quote_bytes_]) {
      quote_bytes_ = 0;
      other();
      if (byte != kRightQuote[0]) return false;
    }
    if (++quote_bytes_ == kRightQuote.size()) {
      quote_bytes_ = 0;
      apostrophe();
    }
    return true;
  }

  void letter(char lower) {
    if (state_ == State::kTooLong) return;
    if (state_ == State::kApostrophe) {
      word_ += '\'';
      state_ = State::kTail;
    } else if (state_ == State::kOutside) {
      state_ = State::kWord;
      word_column_ = column_;
    }
    word_ += lower;
    if (static_cast<std::int64_t>(word_.size()) > kMaxWord) leave_out();
  }

  void leave_out() {
    try {
      throw BrokenRecord(fmt::format("{}:{}:{}", path_, line_, word_column_),
                         fmt::format("a word must be at most {} bytes long", kMaxWord),
                         fmt::format("'{}...'", std::string_view(word_).substr(0, kShownOfWord)));
    } catch (const BrokenRecord&) {
      left_out_.count();
    }
    word_.clear();
    state_ = State::kTooLong;
  }

  void apostrophe() {
    if (state_ == State::kWord)
      state_ = State::kApostrophe;
    else
      other();
  }

  void other() {
    if (state_ == State::kOutside) return;
    left_out_.count_read();
    if (state_ != State::kTooLong) token_(word_);
    word_.clear();
    state_ = State::kOutside;
  }

  const std::string& path_;
  const std::function<void(std::string_view)>& token_;
  std::string word_;
  LeftOutCounter& left_out_;
  std::int64_t line_ = 1;
  std::int64_t column_ = 0;
  std::int64_t word_column_ = 0;
  std::size_t quote_bytes_ = 0;  ///< bytes of U+2019 read so far
  State state_ = State::kOutside;
};

void for_each_word(const std::string& path, const std::function<void(std::string_view)>& token,
                   LeftOutCounter& left_out) {
  TextSource source(path);
  WordCutter cutter(path, token, left_out);
  std::string buffer(kPart, '\0');
  while (const std::int64_t got = source.read(buffer.data(), kPart))
    cutter.take(std::string_view(buffer).substr(0, got));
  cutter.finish();
}

}  // namespace

std::string as_word(std::string_view text) {
  std::string word;
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.starts_with(kRightQuote)) {
      text.remove_prefix(kRightQuote.size() - 1);
      word += '\'';
    } else {
      word += small_letter(text.front());
    }
  }
  return word;
}

LeftOut for_each_token(std::span<const std::string> paths, TokenRule rule,
                       const std::function<void(std::string_view)>& token, std::int64_t skip_bad) {
  if (rule == TokenRule::kWords) {
    LeftOutCounter left_out(skip_bad);
    for (const std::string& path : paths) for_each_word(path, token, left_out);
    return left_out.so_far();
  }
  TokenReader reader(paths, skip_bad);
  for (bool more = true; more;) {
    try {
      more = reader.next();
      if (more) token(reader.text());
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
  }
  return reader.left_out();
}

Corpus::Corpus(std::span<const std::string> paths, const CorpusSpec& spec, std::int64_t skip_bad) {
  Vocabulary seen(KeyKind::kString);
  left_out_ = for_each_token(
      paths, spec.rule, [&](std::string_view token) { text_.push_back(seen.add(token)); },
      skip_bad);
  const auto size = static_cast<std::int64_t>(text_.size());
  const auto share = [&](double part) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(size) * part));
  };
  const std::int64_t test = size - share(spec.test_share);
  const std::int64_t validation = test - share(spec.validation_share);
  const std::int64_t trained = spec.train_on_validation ? test : validation;
  const std::vector<std::int32_t> row = number_words(seen, trained, spec.min_count);

  const std::int64_t validation_at = leave_out(row, 0, 0, validation);
  const std::int64_t test_at = leave_out(row, validation_at, validation, test);
  const std::int64_t end_at = leave_out(row, test_at, test, size);
  text_.resize(end_at);
  text_.shrink_to_fit();
  const auto set = [this](Part part, const Range& range) {
    parts_[static_cast<std::size_t>(part)] = range;
  };
  set(Part::kTraining, {0, validation_at, validation});
  trained_ = spec.train_on_validation ? test_at : validation_at;
  set(Part::kValidation, {validation_at, test_at, test - validation});
  set(Part::kTest, {test_at, end_at, size - test});
}

/// Makes words_ and counts_ from the first `trained` tokens. Returns the row of each word that was
/// seen, -1 for a rare one.
std::vector<std::int32_t> Corpus::number_words(const Vocabulary& seen, std::int64_t trained,
                                               std::int64_t min_count) {
  std::vector<std::int64_t> count(seen.size());
  for (const std::int32_t id : std::span(text_).first(trained)) ++count[id];
  IdMapBuilder builder(KeyKind::kString);
  for (std::int32_t id = 0; id < seen.size(); ++id) {
    if (const std::int64_t times = count[id]; times > 0) builder.add(seen.text(id), times);
  }
  words_ = builder.build({.min_count = min_count, .row_order = RowOrder::kMostFrequent});
  counts_.resize(words_.num_keys());
  std::vector<std::int32_t> row(count.size(), -1);
  for (std::size_t id = 0; id < row.size(); ++id) {
    const auto found = words_.find(seen.text(static_cast<std::int32_t>(id)));
    if (!found) continue;
    row[id] = static_cast<std::int32_t>(*found);
    counts_[*found] = count[id];
  }
  return row;
}

/// Writes the rows of the tokens [begin, end), without those of rare words, to position `to` of the
/// text, and returns where they end.
std::int64_t Corpus::leave_out(const std::vector<std::int32_t>& row, std::int64_t to,
                               std::int64_t begin, std::int64_t end) {
  std::int32_t* next = text_.data() + to;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t of_token = row[text_[i]];
    if (of_token >= 0) *next++ = of_token;
  }
  return next - text_.data();
}

std::span<const std::int32_t> Corpus::text(Part part) const noexcept {
  const Range& range = of(part);
  return std::span(text_).subspan(range.begin, range.end - range.begin);
}

bool Corpus::is_consistent() const noexcept {
  const std::int64_t words = words_.num_keys(), size = std::ssize(text_);
  const auto in_text = [size](const Range& range) {
    return range.begin >= 0 && range.begin <= range.end && range.end <= size && range.tokens >= 0;
  };
  return words_.kind() == KeyKind::kString && std::ssize(counts_) == words &&
         std::all_of(counts_.begin(), counts_.end(), [](std::int64_t n) { return n >= 1; }) &&
         std::all_of(text_.begin(), text_.end(),
                     [&](std::int32_t word) { return word >= 0 && word < words; }) &&
         std::all_of(parts_.begin(), parts_.end(), in_text) && trained_ >= 0 && trained_ <= size;
}

std::map<std::string, std::string> Corpus::digests() const {
  const std::string words = words_.to_bytes();
  std::string parts = std::to_string(trained_) + " ";
  for (const Part part : {Part::kTraining, Part::kValidation, Part::kTest})
    parts += hash_hex(std::as_bytes(text(part)));
  return {{"words", hash_hex(std::as_bytes(std::span(words)))},
          {"text", hash_hex(std::as_bytes(std::span(parts)))}};
}

Corpus read_corpus(const std::vector<std::string>& paths, const CorpusSpec& spec,
                   const DataOptions& options) {
  const DataCache cache(
      options.cache, "text",
      fmt::format("{} {} {} {} {} {}\n{}", static_cast<int>(spec.rule), spec.min_count,
                  spec.test_share, spec.validation_share, spec.train_on_validation,
                  options.skip_bad.text(), file_stamps(paths)));
  return cache.get<Corpus>([&] { return Corpus(paths, spec, options.skip_bad.most()); },
                           [](auto& file, Corpus& corpus) { corpus.fields(file); },
                           [](const Corpus& corpus) { return corpus.is_consistent(); });
}

}  // namespace embertable::jobs
