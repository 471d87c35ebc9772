#include "embertable/id_map.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "embertable/errors.h"
#include "input/key_index.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using Rows = std::vector<std::int64_t>;
using Words = std::vector<std::string_view>;

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

IdMap map_of(const Words& seen, const IdMapOptions& options = {}) {
  IdMapBuilder builder(KeyKind::kString);
  builder.add(seen);
  return builder.build(options);
}

IdMap map_of(const Rows& seen, const IdMapOptions& options = {}) {
  IdMapBuilder builder(KeyKind::kInteger);
  builder.add(seen);
  return builder.build(options);
}

std::vector<std::string> keys_of(const IdMap& map) {
  std::vector<std::string> keys;
  for (std::int64_t row = 0; row < map.num_keys(); ++row) keys.emplace_back(map.string_key(row));
  return keys;
}

const Words kSeen = {"b", "a", "c", "a", "c", "c", "d", "a"};  // a and c 3 times, b and d once

TEST(IdMap, GivesRowsAsKeysAreFirstSeen) {
  const IdMap map = map_of(kSeen);
  EXPECT_EQ(keys_of(map), (std::vector<std::string>{"b", "a", "c", "d"}));
  EXPECT_EQ(map.row("b"), 0);
  EXPECT_EQ(map.row("d"), 3);
  EXPECT_EQ(map.num_rows(), 4);
}

TEST(IdMap, GivesTheFirstRowsToTheMostFrequentOnRequest) {
  EXPECT_EQ(keys_of(map_of(kSeen, {.row_order = RowOrder::kMostFrequent})),
            (std::vector<std::string>{"a", "c", "b", "d"}));
}

TEST(IdMap, LeavesOutRareKeys) {
  EXPECT_EQ(keys_of(map_of(kSeen, {.min_count = 2})), (std::vector<std::string>{"a", "c"}));
}

TEST(IdMap, KeepsOnlySoManyOfTheMostFrequent) {
  EXPECT_EQ(keys_of(map_of(kSeen, {.max_keys = 3})), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(keys_of(map_of(kSeen, {.max_keys = 1})), (std::vector<std::string>{"a"}));
  EXPECT_EQ(keys_of(map_of(kSeen, {.max_keys = 9})).size(), 4u);
}

TEST(IdMap, TakesAnyIntegerAndAnyString) {
  const IdMap integers = map_of(Rows{kLowest, -1, 0, 7});
  EXPECT_EQ(integers.row(kLowest), 0);
  EXPECT_EQ(integers.row(-1), 1);
  EXPECT_EQ(integers.integer_key(3), 7);
  const std::string_view zeros("\0\0", 2);
  const IdMap strings = map_of(Words{"", zeros, "\xff"});
  EXPECT_EQ(strings.row(""), 0);
  EXPECT_EQ(strings.row(zeros), 1);
  EXPECT_EQ(strings.string_key(1), zeros);
}

TEST(IdMap, TellsKnownKeysFromOthers) {
  const IdMap map = map_of(kSeen, {.out_of_vocabulary_rows = 5});
  EXPECT_EQ(map.find("c"), 2);
  EXPECT_EQ(map.find("x"), std::nullopt);
  EXPECT_EQ(map_of(Rows{4}).find(5), std::nullopt);
}

TEST(IdMap, SharesTheLastRowsAmongOtherKeysByHash) {
  const IdMap map = map_of(kSeen, {.out_of_vocabulary_rows = 10});
  EXPECT_EQ(map.num_rows(), 14);
  // XXH3-64 of nothing is 2d06800538d394c2: 10 of these over 2^64 is 1.
  EXPECT_EQ(map.row(""), 4 + 1);
  for (const std::string_view key : {"x", "y", "z"}) {
    EXPECT_GE(map.row(key), 4);
    EXPECT_LT(map.row(key), 14);
    EXPECT_EQ(map.row(key), map.row(key));
  }
}

TEST(IdMap, HashesIntegersAsTheirBytes) {
  const char bytes[] = {7, 1, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(IdMap::hashed(KeyKind::kInteger, 1000).row(7 + 256),
            IdMap::hashed(KeyKind::kString, 1000).row(std::string_view(bytes, 8)));
}

TEST(IdMap, SpreadsHashedKeysEvenly) {
  const IdMap map = IdMap::hashed(KeyKind::kInteger, 100);
  EXPECT_EQ(map.num_keys(), 0);
  std::vector<int> hits(100);
  for (std::int64_t key = 0; key < 100000; ++key) ++hits[map.row(key)];
  for (const int count : hits) EXPECT_NEAR(count, 1000, 200);
}

TEST(IdMap, SaysThatAKeyIsUnknown) {
  EXPECT_EQ(refusal<KeyError>([] { map_of(kSeen).row("x"); }),
            "id map: key must be known, as there are no out-of-vocabulary rows; got 'x'");
  EXPECT_EQ(refusal<KeyError>([] { map_of(Rows{1}).row(-3); }),
            "id map: key must be known, as there are no out-of-vocabulary rows; got -3");
  const std::string message = refusal<KeyError>([] { map_of(kSeen).row(std::string(1000, 'x')); });
  EXPECT_LT(message.size(), 200u);
}

TEST(IdMap, LooksUpManyKeysAtOnce) {
  const IdMap map = map_of(kSeen);
  Rows out(3);
  map.rows(Words{"d", "b", "d"}, out);
  EXPECT_EQ(out, (Rows{3, 0, 3}));
  EXPECT_EQ(
      refusal<KeyError>([&] {
        map.rows(Words{"d", "x", "d"}, out);
      }),
      "id map, position 1: key must be known, as there are no out-of-vocabulary rows; got 'x'");
  EXPECT_EQ(refusal<ValueError>([&] { map.rows(Words{"d"}, out); }),
            "id map: out must be as long as keys, 1, got 3");
}

TEST(IdMap, SaysWhichKindOfKeyItHas) {
  const IdMap strings = map_of(kSeen), integers = map_of(Rows{1});
  EXPECT_EQ(refusal<TypeError>([&] { strings.row(1); }), "id map: keys are strings, got integers");
  EXPECT_EQ(refusal<TypeError>([&] { integers.find("a"); }),
            "id map: keys are integers, got strings");
  EXPECT_THROW(strings.integer_key(0), TypeError);
  IdMapBuilder builder(KeyKind::kInteger);
  EXPECT_EQ(refusal<TypeError>([&] { builder.add("a"); }),
            "id map builder: keys are integers, got strings");
}

TEST(IdMap, SaysWhichRowHasNoKey) {
  const IdMap map = map_of(Rows{5}, {.out_of_vocabulary_rows = 3});
  EXPECT_EQ(refusal<IndexError>([&] { map.integer_key(1); }),
            "id map: row with a key of its own must be below 1 and not below 0, got 1");
  EXPECT_THROW(map.integer_key(-1), IndexError);
}

TEST(IdMap, SaysWhichOptionBreaksWhichRule) {
  EXPECT_EQ(refusal<ValueError>([] { map_of(kSeen, {.min_count = 0}); }),
            "id map: min_count must be 1..9223372036854775807, got 0");
  EXPECT_EQ(refusal<ValueError>([] { map_of(kSeen, {.max_keys = -1}); }),
            "id map: max_keys must be 0..9223372036854775807, got -1");
  EXPECT_EQ(refusal<ValueError>([] { map_of(kSeen, {.out_of_vocabulary_rows = -1}); }),
            "id map: out_of_vocabulary_rows must be 0..4611686018427387904, got -1");
  EXPECT_EQ(refusal<ValueError>([] { IdMap::hashed(KeyKind::kString, 0); }),
            "id map: num_rows must be 1..2^62, got 0");
  IdMapBuilder builder(KeyKind::kInteger);
  EXPECT_EQ(refusal<ValueError>([&] { builder.add(1, 0); }),
            "id map builder: count must be 1 or more, got 0");
}

TEST(IdMap, CountsNoFurtherThanItCan) {
  IdMapBuilder builder(KeyKind::kInteger);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  builder.add(1, most);
  builder.add(1, most);
  builder.add(2, 5);
  EXPECT_EQ(builder.num_keys(), 2);
  EXPECT_EQ(builder.build({.min_count = most}).num_keys(), 1);
}

TEST(IdMap, ServesAsABuilderGoesOn) {
  IdMapBuilder builder(KeyKind::kInteger);
  builder.add(8);
  const IdMap before = builder.build();
  builder.add(9);
  EXPECT_EQ(before.num_keys(), 1);
  EXPECT_EQ(builder.build().row(9), 1);
}

TEST(IdMap, FindsEachOfManyKeys) {
  Rows keys;
  for (std::int64_t i = 0; i < 50000; ++i) keys.push_back(i * i * 7919 - 1000);
  std::vector<std::string> words;
  for (const std::int64_t key : keys) words.push_back(std::to_string(key));
  const IdMap integers = map_of(keys), strings = map_of(Words(words.begin(), words.end()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(integers.row(keys[i]), static_cast<std::int64_t>(i));
    ASSERT_EQ(strings.row(words[i]), static_cast<std::int64_t>(i));
  }
}

TEST(IdMap, IsEqualByKeysRowsAndSharedRows) {
  EXPECT_EQ(map_of(Words{"a", "b"}), map_of(Words{"a", "b", "a"}));
  EXPECT_FALSE(map_of(Words{"a", "b"}) == map_of(Words{"b", "a"}));
  EXPECT_FALSE(map_of(Words{"a"}) == map_of(Words{"a", "b"}));
  EXPECT_FALSE(map_of(Words{"a"}) == map_of(Words{"a"}, {.out_of_vocabulary_rows = 1}));
  EXPECT_FALSE(map_of(Words{}) == map_of(Rows{}));
}

TEST(IdMap, LooksUpOnSeveralThreads) {
  const IdMap map = map_of(kSeen);
  std::vector<std::thread> threads;
  std::array<std::int64_t, 4> sums{};
  for (std::int64_t& sum : sums) {
    threads.emplace_back([&, copy = map] {
      for (int i = 0; i < 1000; ++i) sum += map.row("d") + copy.row("c");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, 5000);
}

TEST(IdMapBytes, AreThoseOfTheDocumentedFormat) {
  const std::string bytes = map_of(Words{"ab", "c"}, {.out_of_vocabulary_rows = 3}).to_bytes();
  const std::string_view all(
      "EMBIDMAP\1\0\0\0\2\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\23\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0abc",
      59);
  EXPECT_EQ(bytes.substr(0, 59), all);
  EXPECT_EQ(bytes.size(), 67u);
  EXPECT_EQ(map_of(Rows{-2}).to_bytes().substr(32, 16),
            std::string_view("\10\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16));
}

TEST(IdMapBytes, ReadBackAsTheSameMap) {
  for (const IdMap& map :
       {map_of(kSeen, {.out_of_vocabulary_rows = 4}), map_of(Words{}), map_of(Words{"", "x"}),
        map_of(Rows{3, kLowest, 9}), IdMap::hashed(KeyKind::kInteger, 1 << 20)}) {
    const IdMap again = IdMap::from_bytes(map.to_bytes());
    EXPECT_EQ(again, map);
    EXPECT_EQ(again.to_bytes(), map.to_bytes());
  }
}

TEST(IdMapBytes, AreRefusedWithAnyByteChangedOrMissing) {
  const std::string bytes = map_of(kSeen, {.out_of_vocabulary_rows = 4}).to_bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_THROW(IdMap::from_bytes(changed), DataLoss) << i;
    EXPECT_THROW(IdMap::from_bytes(bytes.substr(0, i)), DataLoss) << i;
  }
  EXPECT_THROW(IdMap::from_bytes(bytes + "x"), DataLoss);
}

/// The message for bytes that were changed by someone who knows the checksum.
std::string forged(std::string bytes, std::size_t at, std::uint64_t value) {
  store_little_endian(value, bytes.data() + at);
  const std::size_t end = bytes.size() - 8;
  store_little_endian(input::hash_of(std::string_view(bytes).substr(0, end)), bytes.data() + end);
  return refusal<DataLoss>([&] { IdMap::from_bytes(bytes); });
}

TEST(IdMapBytes, AreRefusedWhereTheyContradictThemselves) {
  const std::string words = map_of(Words{"ab", "cd"}).to_bytes();
  const std::string numbers = map_of(Rows{5, 6}).to_bytes();
  EXPECT_EQ(forged(words, 8, (std::uint64_t{2} << 32) | 2),
            "id map, reading: version must be 1, got 2");
  EXPECT_EQ(forged(words, 8, (std::uint64_t{3} << 32) | 1),
            "id map, reading: kind of keys must be 1 or 2, got 3");
  EXPECT_EQ(forged(words, 16, std::uint64_t{1} << 61),
            "id map, reading: number of keys must be below 2^32 - 1, got 2305843009213693952");
  EXPECT_EQ(forged(words, 16, 3),
            "id map, reading: length of the keys must be 8 bytes each or more for 3, got 20");
  EXPECT_EQ(forged(words, 24, ~std::uint64_t{0}),
            "id map, reading: out-of-vocabulary rows must be no more than 2^62, got "
            "18446744073709551615");
  EXPECT_EQ(forged(words, 32, 21), "id map, reading: length of the keys must be 20, got 21");
  EXPECT_EQ(forged(words, 40, 5),
            "id map, reading: ends of the keys must rise to no more than 4, got 5 after 0");
  EXPECT_EQ(forged(words, 48, 1),
            "id map, reading: ends of the keys must rise to no more than 4, got 1 after 2");
  EXPECT_EQ(forged(words, 48, 3), "id map, reading: the last key must end at 4, got 3");
  EXPECT_EQ(forged(numbers, 16, 1),
            "id map, reading: length of the keys must be 8 bytes each for 1, got 16");
  EXPECT_EQ(forged(numbers, 48, 5),
            "id map, reading: keys must differ, got the one of row 0 again in row 1");
}

/// Counts how many keys are compared.
struct CountedKeys : input::StringKeys {
  static inline std::int64_t read = 0;
  Key operator[](std::int64_t i) const {
    ++read;
    return StringKeys::operator[](i);
  }
};

TEST(KeyIndex, KeysOfOneHashHavePlacesOfTheirOwn) {
  // The first 8 bytes are those by which XXH3 with seed 0 multiplies the next 8, less themselves:
  // the product is 0 whatever those are.
  const std::string begin = "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe", end = "0123456789abcdef";
  constexpr std::int64_t kKeys = 2000;
  input::KeyIndex<CountedKeys> index;
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < kKeys; ++i) {
    keys.push_back(begin + std::to_string(10'000'000 + i) + end);
    ASSERT_EQ(input::hash_of(std::string_view(keys.back())),
              input::hash_of(std::string_view(keys.front())));
    EXPECT_EQ(index.add(keys.back()), i);
  }
  CountedKeys::read = 0;
  for (std::int64_t i = 0; i < kKeys; ++i) EXPECT_EQ(index.find(keys[i]), i);
  EXPECT_LT(CountedKeys::read, kKeys + 10);
}

}  // namespace
}  // namespace embertable
