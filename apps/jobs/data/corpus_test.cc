#include "apps/jobs/data/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "apps/jobs/text/broken_record.h"
#include "testing/sanitized.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using Texts = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

Texts tokens(const std::string& text, TokenRule rule = TokenRule::kWords) {
  const TemporaryFiles files;
  const std::string path = files.write("text", text);
  Texts found;
  for_each_token(std::span(&path, 1), rule,
                 [&](std::string_view token) { found.emplace_back(token); });
  return found;
}

Corpus corpus(const std::string& text, const CorpusSpec& spec) {
  const TemporaryFiles files;
  const std::string path = files.write("text", text);
  return Corpus(std::span(&path, 1), spec);
}

Ids ids(const Corpus& corpus, Part part) {
  const auto text = corpus.text(part);
  return {text.begin(), text.end()};
}

TEST(Tokens, AreRunsOfLettersWithOneApostrophe) {
  EXPECT_EQ(tokens("The CAT's here; don't-stop 42nd"),
            (Texts{"the", "cat's", "here", "don't", "stop", "nd"}));
  EXPECT_EQ(tokens("'tis rock'n'roll dogs' ''a'' b'"),
            (Texts{"tis", "rock'n", "roll", "dogs", "a", "b"}));
}

TEST(Tokens, TakeTheCurlyApostropheForOne) {
  EXPECT_EQ(tokens("don\xE2\x80\x99t \xE2\x80\x98yes\xE2\x80\x99 it's"),
            (Texts{"don't", "yes", "it's"}));
  EXPECT_EQ(tokens("a\xE2\x80\x9D"
                   "b\xE2\xE2\x80\x99"
                   "c\xE2\x80"),
            (Texts{"a", "b", "c"}));
}

TEST(Tokens, OtherLettersAreBetweenWords) {
  EXPECT_EQ(tokens("Mis\xC3\xA9rables"), (Texts{"mis", "rables"}));
}

TEST(Tokens, OfBlanksStayAsTheyAre) {
  EXPECT_EQ(tokens("The  cat's\n42,\tx", TokenRule::kBlanks), (Texts{"The", "cat's", "42,", "x"}));
}

TEST(Tokens, DoNotDependOnWhereTheTextIsCut) {
  std::string text;
  Texts expected;
  for (int i = 0; i < 200000; ++i) {
    text +=
        "ab\xE2\x80\x99"
        "c ";
    expected.push_back("ab'c");
  }
  EXPECT_EQ(tokens(text), expected);
}

TEST(Tokens, AWordHasALongestLength) {
  EXPECT_EQ(tokens(std::string(kMaxWord, 'x')).size(), 1u);
  const TemporaryFiles files;
  const std::string path = files.write("text", "a\nb " + std::string(kMaxWord + 1, 'x'));
  EXPECT_EQ(
      refusal<ValueError>(
          files.path(),
          [&] { for_each_token(std::span(&path, 1), TokenRule::kWords, [](std::string_view) {}); }),
      "text:2:3: a word must be at most 65536 bytes long, got '" + std::string(60, 'x') + "...'");
}

TEST(Tokens, ThoseThatAreTooLongCanBeLeftOut) {
  const TemporaryFiles files;
  const auto left = [&](std::size_t size, TokenRule rule, std::int64_t skip_bad) {
    const std::string longest(size, 'x');
    const std::string path = files.write("text", longest + " a\nb " + longest + "y c\n" + longest);
    std::string all;
    const LeftOut left_out = for_each_token(
        std::span(&path, 1), rule, [&](std::string_view token) { all += token; }, skip_bad);
    return all + std::to_string(left_out.total());
  };
  EXPECT_EQ(left(kMaxWord + 1, TokenRule::kWords, 3), "abc3");
  EXPECT_EQ(left(2 * kMaxWord + 2, TokenRule::kWords, 9), "abc3");
  EXPECT_THROW(left(kMaxWord + 1, TokenRule::kWords, 2), BrokenRecord);
  if (kSanitized) return;  // the longest words are too slow: every byte is looked at several times
  EXPECT_EQ(left((16 << 20) + 1, TokenRule::kBlanks, 3), "abc3");
  EXPECT_THROW(left((16 << 20) + 1, TokenRule::kBlanks, 2), BrokenRecord);
}

TEST(Corpus, NumbersWordsByFallingCountThenByTheirFirstPlace) {
  const Corpus found = corpus("c a b a b a d", {});
  EXPECT_EQ(found.words().string_key(0), "a");
  EXPECT_EQ(found.words().string_key(1), "b");
  EXPECT_EQ(found.words().string_key(2), "c");
  EXPECT_EQ(found.words().string_key(3), "d");
  EXPECT_EQ(std::vector<std::int64_t>(found.counts().begin(), found.counts().end()),
            (std::vector<std::int64_t>{3, 2, 1, 1}));
  EXPECT_EQ(ids(found, Part::kTraining), (Ids{2, 0, 1, 0, 1, 0, 3}));
}

TEST(Corpus, LeavesRareWordsOutOfTheTextAndCountsThemAsTokens) {
  const Corpus found = corpus("a b a c b d", {.min_count = 2});
  EXPECT_EQ(found.words().num_keys(), 2);
  EXPECT_EQ(ids(found, Part::kTraining), (Ids{0, 1, 0, 1}));
  EXPECT_EQ(found.tokens(Part::kTraining), 6);
}

TEST(Corpus, HoldsTheLastTokensOut) {
  // 11 tokens: floor(11 / 5) = 2 test, floor(11 * 0.3) = 3 validation before them.
  const std::string text = "a a b b a b c a b c a";
  const Corpus found = corpus(text, {.test_share = 0.2, .validation_share = 0.3});
  EXPECT_EQ(found.words().num_keys(), 2);  // c trains nowhere
  EXPECT_EQ(ids(found, Part::kTraining), (Ids{0, 0, 1, 1, 0, 1}));
  EXPECT_EQ(ids(found, Part::kValidation), (Ids{0, 1}));
  EXPECT_EQ(ids(found, Part::kTest), (Ids{0}));
  EXPECT_EQ(found.tokens(Part::kValidation), 3);
  EXPECT_EQ(found.tokens(Part::kTest), 2);

  const Corpus all =
      corpus(text, {.test_share = 0.2, .validation_share = 0.3, .train_on_validation = true});
  EXPECT_EQ(all.words().num_keys(), 3);
  const auto trained = all.trained_text();
  EXPECT_EQ(Ids(trained.begin(), trained.end()), (Ids{0, 0, 1, 1, 0, 1, 2, 0, 1}));
  EXPECT_EQ(ids(all, Part::kTraining), (Ids{0, 0, 1, 1, 0, 1}));
  EXPECT_EQ(ids(all, Part::kValidation), (Ids{2, 0, 1}));
  EXPECT_EQ(ids(all, Part::kTest), (Ids{2, 0}));
  EXPECT_EQ(all.tokens(Part::kTraining), 6);
}

TEST(Corpus, MayBeEmpty) {
  const Corpus found = corpus("1 2 3", {.test_share = 0.5});
  EXPECT_EQ(found.words().num_keys(), 0);
  EXPECT_EQ(found.text(Part::kTraining).size(), 0u);
  EXPECT_EQ(found.tokens(Part::kTest), 0);
}

TEST(Corpus, ASecondRunTakesItFromTheCache) {
  const TemporaryFiles files;
  const std::vector<std::string> paths = {
      files.write("text", "b a " + std::string(kMaxWord + 1, 'x') + " a c c a b")};
  const CorpusSpec spec = {.min_count = 2, .test_share = 0.15, .validation_share = 0.15};
  const DataOptions options = {.root = files.path(), .cache = files.path("cache"), .skip_bad = 1};
  const Corpus first = read_corpus(paths, spec, options);
  const auto written = std::filesystem::last_write_time(files.path("cache/text.bin"));
  const Corpus again = read_corpus(paths, spec, options);
  EXPECT_EQ(std::filesystem::last_write_time(files.path("cache/text.bin")), written);
  EXPECT_EQ(again.digests(), first.digests());
  EXPECT_EQ(again.left_out().total(), 1);
  EXPECT_TRUE(std::equal(again.counts().begin(), again.counts().end(), first.counts().begin(),
                         first.counts().end()));
  EXPECT_EQ(again.tokens(Part::kTest), 1);
  EXPECT_NE(read_corpus(paths, {}, options).digests(), first.digests());
}

TEST(Corpus, HashesSayWhetherTextsAreEqual) {
  const auto digests = corpus("a b a", {}).digests();
  EXPECT_EQ(digests, corpus("A, b; A", {}).digests());
  EXPECT_NE(digests, corpus("a a b", {}).digests());
  EXPECT_EQ(digests.at("words"), corpus("a a b", {}).digests().at("words"));
  EXPECT_NE(digests, corpus("a b a", {.test_share = 0.4}).digests());
}

}  // namespace
}  // namespace embertable::jobs
