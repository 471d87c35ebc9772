#include "apps/jobs/keys/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "apps/jobs/keys/vocabulary.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;

std::int32_t add(KeyTable& table, std::string_view key, std::uint32_t times = 1) {
  return table.add(key, KeyTable::hash(key), times);
}
std::int32_t find(const KeyTable& table, std::string_view key) {
  return table.find(key, KeyTable::hash(key));
}

TEST(KeyTable, NumbersKeysAsTheyCome) {
  KeyTable table;
  EXPECT_EQ(find(table, "a"), -1);
  EXPECT_EQ(add(table, "a"), 0);
  EXPECT_EQ(add(table, ""), 1);
  EXPECT_EQ(add(table, "a"), 0);
  EXPECT_EQ(find(table, ""), 1);
  EXPECT_EQ(find(table, "b"), -1);
  EXPECT_EQ(table[0], "a");
  EXPECT_EQ(table[1], "");
}

TEST(KeyTable, CountsWhatItIsTold) {
  KeyTable table;
  for (const std::uint32_t times : {1u, 0u, 1u}) add(table, "a", times);
  add(table, "b", 0);
  for (int i = 0; i < 3; ++i) add(table, "c", 0x80000000u);
  EXPECT_THAT(table.seen(), ElementsAre(2, 0, 0xffffffffu));
}

TEST(KeyTable, TellsKeysApartByEveryByteAndByTheirLength) {
  for (const std::size_t size : {1, 7, 8, 9, 15, 16, 17, 40}) {
    KeyTable table;
    const std::string zeros(size, '\0');
    EXPECT_EQ(add(table, zeros), 0);
    EXPECT_EQ(add(table, zeros + '\0'), 1);
    for (std::size_t i = 0; i < size; ++i) {
      std::string key = zeros;
      key[i] = 1;
      EXPECT_EQ(add(table, key), static_cast<std::int32_t>(2 + i));
      EXPECT_EQ(find(table, key), static_cast<std::int32_t>(2 + i));
    }
  }
}

TEST(KeyHead, HoldsTheFirstBytesHoweverItIsRead) {
  const std::string bytes = "abcdefghijklmnopqrstuvwxyz012345";
  for (std::size_t size = 0; size <= 16; ++size) {
    const std::string_view key = std::string_view(bytes).substr(3, size);
    char expected[16] = {};
    key.copy(expected, size);
    for (const KeyHead head : {KeyHead::of(key), KeyHead::of_padded(key)})
      EXPECT_EQ(std::memcmp(&head, expected, 16), 0) << size;
  }
}

TEST(KeyTable, ComparesWhatHasOneHash) {
  KeyTable table;
  const std::string head(16, 'x');
  EXPECT_EQ(table.add(head + "a", 5, 1), 0);
  EXPECT_EQ(table.add(head + "b", 5, 1), 1);
  EXPECT_EQ(table.add("y", 5, 1), 2);
  EXPECT_EQ(table.find(head + "b", 5), 1);
  EXPECT_EQ(table.find("z", 5), -1);
}

TEST(KeyTable, TellsAnyNumberOfKeysOfOneHashApart) {
  KeyTable table;
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i)
    keys.push_back(std::string(i % 2 == 0 ? 3 : 70, 'k') + std::to_string(i));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(table.find(keys[i], 9), -1);
    EXPECT_EQ(table.add(keys[i], 9, 1), static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(table.find(keys[i], 9), static_cast<std::int32_t>(i));
    EXPECT_EQ(table[static_cast<std::int32_t>(i)], keys[i]);
  }
  EXPECT_EQ(table.find("kkk41", 9), -1);
  EXPECT_EQ(table.find(std::string(70, 'k') + "41", 9), -1);
}

TEST(KeyTable, AGuessIsOfTheKeyOnlyWhereItHasIt) {
  KeyTable table;
  EXPECT_EQ(table.guess(9), -1);
  table.add("a", 9, 1);
  EXPECT_EQ(table.guess(9), 0);
  EXPECT_EQ(table.guess(8), -1);
  EXPECT_TRUE(table.has(0, KeyTable::short_key("a")));
  EXPECT_FALSE(table.has(0, KeyTable::short_key("b")));
  EXPECT_FALSE(table.has(0, KeyTable::short_key(std::string_view("a\0", 2))));
  EXPECT_FALSE(table.has(-1, KeyTable::short_key("a")));
}

// The low halves of hashes are kept, and 0 is none of them.
TEST(KeyTable, HashesWhoseLowHalvesAreNoneOrAlikeDoNotMixKeysUp) {
  KeyTable table;
  const std::uint64_t hashes[] = {0, 1, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1};
  const std::string longs = std::string(100, 'x');
  std::int32_t number = 0;
  for (const std::uint64_t hash : hashes) {
    EXPECT_EQ(table.find(std::to_string(hash), hash), -1);
    EXPECT_EQ(table.add(std::to_string(hash), hash, 1), number++);
    EXPECT_EQ(table.add(longs + std::to_string(hash), hash, 1), number++);
  }
  number = 0;
  for (const std::uint64_t hash : hashes) {
    EXPECT_EQ(table.find(std::to_string(hash), hash), number++);
    EXPECT_EQ(table.find(longs + std::to_string(hash), hash), number++);
    EXPECT_EQ(table.find("y", hash), -1);
  }
}

TEST(KeyTable, LongKeysAreComparedToTheirLastByte) {
  for (const std::size_t size : {65, 256, 100'000}) {
    KeyTable table;
    const std::string key(size, 'k');
    std::string other = key;
    other.back() = '\0';
    EXPECT_EQ(table.add(key, 7, 1), 0);
    for (const std::string& unknown : {other, key.substr(1), key + 'k'})
      EXPECT_EQ(table.find(unknown, 7), -1);
    EXPECT_EQ(table.add(other, 7, 1), 1);
    EXPECT_EQ(table.find(key, 7), 0);
    EXPECT_EQ(table[1], other);
  }
}

TEST(KeyTable, NulBytesArePartOfKeys) {
  KeyTable table;
  std::int32_t number = 0;
  const std::string long_key(80, 'x');
  for (const std::string_view key :
       {std::string_view("", 0), std::string_view("\0", 1), std::string_view("\0\0", 2),
        std::string_view("a", 1), std::string_view("a\0", 2), std::string_view("\0a", 2)}) {
    for (const std::string& before : {std::string(), long_key})
      EXPECT_EQ(add(table, before + std::string(key)), number++);
  }
  for (std::int32_t i = 0; i < number; ++i) EXPECT_EQ(find(table, std::string(table[i])), i);
}

TEST(KeyTable, OneKeyIsTheOnlyOneFound) {
  for (const std::string key : {"", "a", "of exactly 15 b", "of exactly 16 by"}) {
    KeyTable table;
    add(table, key);
    for (const std::string other : {"", "a", "b", "of exactly 15 b", "of exactly 16 by"})
      EXPECT_EQ(find(table, other), other == key ? 0 : -1) << key << ", " << other;
  }
}

TEST(KeyTable, FindsAMillionKeysAndNoOthers) {
  constexpr std::int32_t kKeys = 1 << 20;
  KeyTable table;
  for (std::int32_t i = 0; i < kKeys; ++i) ASSERT_EQ(add(table, std::to_string(i)), i);
  for (std::int32_t i = 0; i < kKeys; ++i) {
    ASSERT_EQ(find(table, std::to_string(i)), i);
    ASSERT_EQ(find(table, "x" + std::to_string(i)), -1);
  }
}

TEST(KeyTable, AgreesWithAMapOnManyRandomKeys) {
  KeyTable table;
  std::map<std::string, std::int32_t> expected;
  std::map<std::string, std::uint32_t> seen;
  std::uint64_t state = 3;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::string key = std::to_string((state >> 40) % 50'000) + std::string(state >> 61, 'k');
    const auto number = expected.try_emplace(key, static_cast<std::int32_t>(expected.size())).first;
    ++seen[key];
    ASSERT_EQ(add(table, key), number->second);
  }
  ASSERT_EQ(static_cast<std::size_t>(table.size()), expected.size());
  const std::vector<std::uint32_t> counts = table.seen();
  for (const auto& [key, number] : expected) {
    ASSERT_EQ(table[number], key);
    ASSERT_EQ(find(table, key), number);
    ASSERT_EQ(counts[number], seen[key]);
  }
}

TEST(KeyTable, ChosenKeysDoNotShareAHash) {
  std::set<std::uint64_t> hashes;
  // The first 8 bytes are zeros after a constant of the hash; long keys as those of id maps.
  const std::string zero = "\x15\x7c\x4a\x7f\xb9\x79\x37\x9e";
  const std::string begin = "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe", end = "0123456789abcdef";
  for (int i = 0; i < 1000; ++i) {
    hashes.insert(KeyTable::hash(zero + std::to_string(1000 + i)));
    hashes.insert(KeyTable::hash(begin + std::to_string(10'000'000 + i) + end));
  }
  EXPECT_EQ(hashes.size(), 2000u);
}

TEST(Vocabulary, KeysOfEitherKindComeBack) {
  Vocabulary numbers(KeyKind::kInteger), texts(KeyKind::kString);
  EXPECT_EQ(numbers.add(std::int64_t{-5}), 0);
  EXPECT_EQ(numbers.add(INT64_MAX), 1);
  EXPECT_EQ(numbers.find(std::int64_t{-5}), 0);
  EXPECT_EQ(numbers.find(std::int64_t{5}), -1);
  EXPECT_EQ(numbers.integer(0), -5);
  EXPECT_EQ(numbers.shown(1), "9223372036854775807");
  EXPECT_EQ(texts.add("x"), 0);
  EXPECT_EQ(texts.text(0), "x");
  EXPECT_EQ(texts.shown(0), "x");
}

TEST(Vocabulary, SortsIntegersByValueAndTextsByBytes) {
  Vocabulary numbers(KeyKind::kInteger), texts(KeyKind::kString);
  for (const std::int64_t key : {300, -1, 2}) numbers.add(key);
  for (const char* key : {"b", "\xff", "a"}) texts.add(std::string_view(key));
  EXPECT_THAT(numbers.sort(), ElementsAre(2, 0, 1));
  EXPECT_THAT(texts.sort(), ElementsAre(1, 2, 0));
  EXPECT_EQ(numbers.integer(0), -1);
  EXPECT_EQ(texts.text(2), "\xff");
}

TEST(Vocabulary, SharedRowsAreThoseOfItsIdMap) {
  Vocabulary keys(KeyKind::kString, 7);
  for (const char* key : {"a", "b"}) keys.add(std::string_view(key));
  const IdMap map = keys.id_map();
  EXPECT_EQ(keys.num_rows(), 9);
  EXPECT_EQ(map.num_rows(), 9);
  for (const std::string key : {"c", "", "a longer key than most"})
    EXPECT_EQ(keys.shared_row(key), map.row(std::string_view(key)));
  EXPECT_TRUE(Vocabulary(map).id_map() == map);
}

}  // namespace
}  // namespace embertable::jobs
