#include "tensorflow/bundle/string_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/golden_bundles.h"

namespace embertable::formats {
namespace {

using Entries = std::map<std::string, std::string>;

std::string table_of(const Entries& entries, TableLayout layout = {}) {
  StringTableWriter writer(layout);
  for (const auto& [key, value] : entries) writer.add(key, value);
  return writer.finish();
}

Entries read(const std::string& bytes) {
  const StringTable table(bytes, "t");
  Entries entries;
  table.each([&](std::string_view key, std::string_view value) {
    EXPECT_EQ(table.find(key), value);
    entries.emplace(key, value);
  });
  return entries;
}

/// Keys that share much, of any bytes.
Entries random_entries(std::uint64_t seed, std::size_t count) {
  Entries entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    const RandomRow random(test_seed(seed), i);
    std::string key(uniform_below(random.bits(0), 3) == 0 ? "" : "shared/prefix/");
    for (std::uint64_t k = 0; k < uniform_below(random.bits(1), 6); ++k)
      key += static_cast<char>(
          "\0\x01"
          "abz\x7f\x80\xff"[uniform_below(random.bits(2, k), 8)]);
    entries[key] =
        std::string(uniform_below(random.bits(3), 40), static_cast<char>(random.bits(4)));
  }
  return entries;
}

TEST(StringTable, WhatIsWrittenInAnyLayoutIsRead) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Entries entries = random_entries(seed, seed * 40);
    for (const std::size_t block_bytes : {1, 100, 4096, 262144}) {
      for (const std::size_t restart : {1, 7, 16, 1000}) {
        for (const BlockType type : {BlockType::kPlain, BlockType::kSnappy})
          EXPECT_EQ(read(table_of(entries, {block_bytes, restart, type})), entries) << seed;
      }
    }
  }
}

TEST(StringTable, KeysThatAreNotThereAreNotFound) {
  const Entries entries = random_entries(7, 300);
  const std::string bytes = table_of(entries, {.block_bytes = 200});
  const StringTable table(bytes, "t");
  for (const auto& [key, value] : random_entries(8, 300)) {
    const auto found = entries.find(key);
    EXPECT_EQ(table.find(key).has_value(), found != entries.end());
  }
}

TEST(StringTable, OfEqualKeysTheFirstCounts) {
  for (const std::size_t block_bytes : {1, 262144}) {
    StringTableWriter writer({.block_bytes = block_bytes, .restart_every = 2});
    for (const char* value : {"1", "2", "3", "4", "5"}) writer.add("k", value);
    const std::string bytes = writer.finish();
    EXPECT_EQ(StringTable(bytes, "t").find("k"), "1");
  }
}

// 20 keys: restarts at entries 0 and 16, and the last index key is what is behind "k19".
TEST(ShardedCases, Case94_RestartsAndTheLastIndexKey) {
  Entries entries;
  for (int i = 0; i < 20; ++i) entries[fmt::format("k{:02d}", i)] = "v";
  const std::string bytes = table_of(entries);
  // Each entry: 3 lengths, its own bytes, 1 of value.
  std::string block;
  const auto entry = [&](std::size_t shared, const std::string& own) {
    block += static_cast<char>(shared);
    block += static_cast<char>(own.size());
    block += '\x01' + own + "v";
  };
  std::size_t restart = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string key = fmt::format("k{:02d}", i);
    const std::size_t shared = i % 16 == 0 ? 0 : i == 10 ? 1 : 2;
    if (i == 16) restart = block.size();
    entry(shared, key.substr(shared));
  }
  block += std::string(4, '\0') + static_cast<char>(restart) + std::string(3, '\0') +
           std::string("\x02\0\0\0", 4);
  ASSERT_EQ(bytes.substr(0, block.size()), block);
  const std::string index_entry = std::string("\0\x01\x02l\0", 5);
  EXPECT_NE(bytes.find(index_entry), std::string::npos);
}

std::string string_table_refusal(const std::string& bytes) {
  try {
    read(bytes);
    return "";
  } catch (const DataLoss& error) {
    return error.what();
  }
}

TEST(ShardedCases, Case90_EveryTruncationIsRefused) {
  const std::string bytes = table_of(random_entries(3, 60), {.block_bytes = 300});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string said = string_table_refusal(bytes.substr(0, size));
    EXPECT_NE(said.find(size < 48 ? "too short to be an sstable" : "bad magic number"),
              std::string::npos)
        << size << ": " << said;
  }
}

TEST(ShardedCases, Case90_AChangedByteIsRefusedOrMeansNothing) {
  const Entries entries = random_entries(4, 60);
  for (const BlockType type : {BlockType::kPlain, BlockType::kSnappy}) {
    const std::string bytes = table_of(entries, {.block_bytes = 300, .type = type});
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const char change : {'\x01', '\x80', '\xff'}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ change);
        try {
          EXPECT_EQ(read(changed), entries) << at;
        } catch (const DataLoss&) {
        }
      }
    }
  }
}

/// A block with its trailer.
std::string block(std::string contents, char type = 0) {
  contents += type;
  char sum[4];
  store_little_endian(masked_crc32c(crc32c(contents)), sum);
  return contents + std::string(sum, 4);
}

/// A table of one block with these contents, checksums right.
std::string table_of_block(const std::string& contents, char type = 0) {
  const std::string data = block(contents, type);
  std::string index = std::string("\0\x01\x02~\0", 5) + static_cast<char>(contents.size());
  index += std::string("\0\0\0\0\x01\0\0\0", 8);
  std::string footer =
      std::string("\0\0", 2) + static_cast<char>(data.size()) + static_cast<char>(index.size());
  footer.resize(40);
  char magic[8];
  store_little_endian(kTableMagic, magic);
  return data + block(index) + footer + std::string(magic, 8);
}

const std::string kOneRestart("\0\0\0\0\x01\0\0\0", 8);

TEST(StringTable, SaysWhatIsWrongWithABlock) {
  const std::string good = std::string("\0\x01\x01kv", 5);
  EXPECT_EQ(string_table_refusal(table_of_block(good + kOneRestart)), "");
  const std::pair<std::string, std::string> bad[] = {
      {"", "no restarts"},
      {good + std::string("\0\0\0\0\0\0\0\0", 8), "0 restarts"},
      {good + std::string("\0\0\0\0\xff\0\0\0", 8), "255 restarts"},
      {good + std::string("\x01\0\0\0\x01\0\0\0", 8), "a restart is no entry"},
      {std::string("\x01\x01\x01kv", 5) + kOneRestart, "bad entry in block"},
      {std::string("\0\x02\x01kv", 5) + kOneRestart, "bad entry in block"},
      {std::string("\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 13) + kOneRestart,
       "bad entry in block"},
      {good + std::string("\0\x01\x01jv", 5) + kOneRestart, "bad entry in block"},
      {std::string("\0\x01\x01\x7f\x01", 5) + kOneRestart, "behind that of the index"},
  };
  for (const auto& [contents, said] : bad)
    EXPECT_NE(string_table_refusal(table_of_block(contents)).find(said), std::string::npos)
        << said << ", got " << string_table_refusal(table_of_block(contents));
  EXPECT_NE(string_table_refusal(table_of_block(good + kOneRestart, 2)).find("bad block type 2"),
            std::string::npos);
}

// Two bytes that claim 4 GiB, a claim beyond what so few bytes can hold, and a copy from nowhere.
TEST(StringTable, TakesNoMemoryForWhatABlockClaims) {
  for (const std::string& claim :
       {std::string("\xff\xff\xff\xff\x0f", 5), std::string("\x80\x20\0x", 4),
        std::string("\x08\x05\x10", 3), std::string()})
    EXPECT_NE(string_table_refusal(table_of_block(claim, 1)).find("corrupted compressed block"),
              std::string::npos);
}

}  // namespace
}  // namespace embertable::formats
