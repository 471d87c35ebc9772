// What readers take for the worst input of a megabyte: allocations, and where a loop can be
// watched, its rounds. Time is not measured, since machines differ.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "apps/convert/found_arrays.h"
#include "apps/convert/import_tables.h"
#include "apps/convert/npy.h"
#include "apps/convert/saved_table_parts.h"
#include "apps/convert/text_source.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/text/csv_reader.h"
#include "apps/jobs/text/token_reader.h"
#include "checkpoint/json_text.h"
#include "embertable/errors.h"
#include "testing/temporary_files.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // inlined, the pair below is taken apart
#endif

namespace {
std::atomic<std::int64_t> allocations{0}, allocated{0};
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  allocated += static_cast<std::int64_t>(bytes);
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  allocated += static_cast<std::int64_t>(bytes);
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace embertable::jobs {
namespace {

constexpr std::int64_t kMega = 1 << 20;

/// What a call takes; an error is an answer too.
struct Cost {
  std::int64_t allocations = 0, bytes = 0;
  std::string error;
};

template <class Call>
Cost cost_of(const Call& call) {
  const std::int64_t before = allocations, bytes = allocated;
  Cost cost;
  try {
    call();
  } catch (const std::exception& error) {
    cost.error = error.what();
  }
  cost.allocations = allocations - before;
  cost.bytes = allocated - bytes;
  return cost;
}

/// A text over and over, a megabyte in all.
std::string mega(const std::string& text) {
  std::string all;
  while (std::ssize(all) < kMega) all += text;
  return all;
}

class InputCosts : public testing::Test {
 protected:
  Cost of_csv(const std::string& content) {
    const std::string path = files_.write("data.csv", content);
    return cost_of([&] {
      CsvReader reader(std::span(&path, 1), {}, std::vector<std::string>{"1"}, kMega);
      while (reader.next()) ++records_;
    });
  }
  Cost of_words(const std::string& content, bool binary) {
    const std::string path = files_.write("words", content);
    return cost_of([&] {
      import_tables({.format = TableFormat::kWord2vec,
                     .from = path,
                     .out = files_.path("run"),
                     .binary = binary},
                    [](const ConvertedArray&) {});
    });
  }
  TemporaryFiles files_;
  std::int64_t records_ = 0;
};

TEST_F(InputCosts, CsvTakesAFewBuffersWhateverItsQuotes) {
  for (const char* text : {"\"", "\"\"", "\"\"\"\n", "a\"", ",", "\n", "\"\n", "\"x\"y\n", "\r"}) {
    const Cost cost = of_csv("h\n" + mega(text));
    // A line that is left out has a message; half a million such lines are a megabyte.
    EXPECT_LT(cost.bytes, 256 * kMega) << text;
    EXPECT_LT(cost.allocations, 4 * kMega) << text;
  }
  const Cost one_field = of_csv("h\n\"" + mega("\"\"") + "\"\n");
  EXPECT_EQ(one_field.error, "");
  EXPECT_LT(one_field.allocations, 2000);
}

TEST_F(InputCosts, ManySmallPartsOfACompressedFileAreReadTogether) {
  for (const auto& part : {gzip("a"), zstd("a")}) {
    TextSource source(files_.write("parts", mega(part)));
    std::string buffer(kMega, '\0');
    std::int64_t reads = 0, bytes = 0;
    while (const std::int64_t got = source.read(buffer.data(), kMega)) {
      ++reads;
      bytes += got;
    }
    EXPECT_GT(bytes, kMega / 64);
    EXPECT_LT(reads, 20);
  }
}

TEST_F(InputCosts, TokensTakeOneBuffer) {
  for (const char* text : {"a", "a ", " ", "\n", "\xff"}) {
    const std::string path = files_.write("tokens", mega(text));
    const Cost cost = cost_of([&] {
      TokenReader reader(std::span(&path, 1), 0);
      while (reader.next()) ++records_;
    });
    EXPECT_LT(cost.bytes, 16 * kMega) << text;
    EXPECT_LT(cost.allocations, 100) << text;
  }
}

TEST_F(InputCosts, AJobIsRefusedBeforeItIsParsed) {
  const std::string path = files_.write("job.toml", mega("a.b = 1\n"));
  const Cost large = cost_of([&] { read_job(path); });
  EXPECT_NE(large.error.find("must have at most 262144 bytes"), std::string::npos) << large.error;
  EXPECT_LT(large.bytes, kMega);
  std::string keys;
  for (int i = 0; std::ssize(keys) < 200'000; ++i) keys += fmt::format("a{} = 1\n", i);
  for (const std::string& text : {std::string(200'000, '['), "a" + std::string(200'000, '.'), keys,
                                  "[optimizer]\nrule = \"sgd\"\nlearning_rate = 1\n" + keys,
                                  "[model]\nkind = \"" + std::string(200'000, 'x') + "\"\n"}) {
    const Cost cost = cost_of([&] { parse_job(text, "job.toml"); });
    EXPECT_NE(cost.error, "");
    EXPECT_LT(cost.bytes, 64 * kMega) << cost.error.substr(0, 200);
  }
}

TEST_F(InputCosts, AnNpyFileTakesWhatItHolds) {
  for (const char* shape : {"(1, 4294967300)", "(1099511627776, 4096)", "(4611686018427387904,)"}) {
    const std::string header =
        formats::npy_header(std::vector<std::int64_t>{1, 1}).substr(0, 10) +
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape);
    const std::string path = files_.write("table.npy", header + std::string(200, ' ') + "\n");
    const Cost cost = cost_of([&] { find_npy(path); });
    EXPECT_NE(cost.error, "") << shape;
    EXPECT_LT(cost.bytes, kMega) << shape;
  }
}

TEST_F(InputCosts, ArraysAreGroupedInProportionToTheirNumber) {
  std::vector<FoundArray> arrays;
  for (int i = 0; i < 20'000; ++i) {
    for (const char* slot : {"", "/accumulators"}) {
      const std::string name = fmt::format("{}{}", i, slot);
      arrays.push_back({.name = name, .place = "", .source = name, .shape = {3, 2}, .read = {}});
    }
  }
  std::vector<FoundTable> tables;
  const Cost cost = cost_of([&] { tables = group_tables(arrays, {}, {}, ""); });
  EXPECT_EQ(tables.size(), 20'000u);
  EXPECT_EQ(tables[7].saved.name, "7");
  ASSERT_EQ(tables[7].saved.slots.size(), 1u);
  EXPECT_EQ(tables[7].saved.slots[0].name, "accumulators");
  EXPECT_TRUE(arrays.empty());
  EXPECT_LT(cost.allocations, 40'000 * 40);
}

TEST_F(InputCosts, AWordFileTakesWhatItHolds) {
  const std::string claim = "9223372036854775807 4096\n";
  for (const std::string& content :
       {claim, claim + mega("a"), claim + mega("a "), claim + mega("1 "), mega("1"), mega(" "),
        "1 9223372036854775807\n" + mega("a ")}) {
    for (const bool binary : {false, true}) {
      const Cost cost = of_words(content, binary);
      EXPECT_NE(cost.error, "");
      EXPECT_LT(cost.bytes, 64 * kMega) << content.substr(0, 30) << " " << cost.error.substr(0, 99);
    }
  }
}

TEST_F(InputCosts, JsonTakesWhatItHolds) {
  std::string keys = "{";
  for (int i = 0; std::ssize(keys) < kMega; ++i) keys += fmt::format("\"{}\":0,", i);
  keys += "\"x\":0}";
  for (const std::string& text : {mega("["), mega("{\"a\":"), keys, "[" + mega("0,") + "0]"}) {
    const Cost cost = cost_of([&] { checkpoint::parse_json(text, "run"); });
    EXPECT_LT(cost.bytes, 200 * kMega) << text.substr(0, 20);
    const IdMap keys_of_names = IdMap::hashed(KeyKind::kString, 1);
    const Cost names = cost_of([&] {
      saved_names("x", keys_of_names, {.json = "", .tensors = {}, .blobs = {{"names.x", text}}},
                  "run");
    });
    EXPECT_NE(names.error, "");
    EXPECT_LT(names.bytes, 200 * kMega) << text.substr(0, 20);
  }
}

}  // namespace
}  // namespace embertable::jobs
