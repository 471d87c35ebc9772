// What happens to files behind our back: flipped bytes, cut ends, missing and foreign files.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/saved_tables.h"

namespace embertable::checkpoint {
namespace {

constexpr const char* kStep = "/run/step_000000000007";
const std::string kManifestPath = std::string(kStep) + "/" + kManifestName;

/// A small checkpoint: two files of one table, one of blobs.
class Damage : public testing::Test {
 protected:
  Damage() {
    Manifest manifest = test_manifest(2, Sharding::kMod);
    manifest.tables.pop_back();
    manifest.features.pop_back();
    save(files, "/run", manifest, test_shards(manifest), {.blobs = {{"reader", "position"}}});
  }

  /// Files of the step.
  std::map<std::string, std::string*> contents() {
    auto all = files.contents();
    std::erase_if(all, [](const auto& file) { return file.first.ends_with(kLockName); });
    return all;
  }

  /// The message of the error that reading everything gives, "" if there is none.
  std::string error() {
    try {
      Reader(files, kStep).verify();
    } catch (const IoError& found) {
      return found.what();
    }
    return "";
  }

  /// True if reading the changed file in full throws DataLoss that names it; `opened` before the
  /// change.
  bool is_noticed(const Reader& opened, const std::filesystem::path& path) {
    try {
      if (path.filename() == kManifestName) {
        Reader(files, kStep);
      } else {
        for (const FileRecord& record : opened.manifest().files)
          if (record.name == path.filename()) opened.blocks_of(record).verify();
      }
    } catch (const DataLoss& loss) {
      return std::string(loss.what()).starts_with(path.string() + ": ");
    }
    return false;
  }

  /// Rewrites the manifest's text and the sum at its end.
  void edit_manifest(const std::string& from, const std::string& to) {
    std::string& text = *contents().at(kManifestPath);
    text.replace(text.find(from), from.size(), to);
    const std::size_t body = text.rfind("\"checksum\": \"");
    text.replace(body + 13, 32, hash_hex(bytes_of(text.substr(0, body))));
  }

  MemoryFiles files;
};

TEST_F(Damage, EveryFlippedByteIsNoticed) {
  const Reader opened(files, kStep);
  opened.verify();
  for (const auto& [path, text] : contents()) {
    for (std::size_t i = 0; i < text->size(); ++i) {
      const char was = (*text)[i];
      (*text)[i] = static_cast<char>(was ^ (1 << i % 8));
      ASSERT_TRUE(is_noticed(opened, path)) << path << " byte " << i;
      (*text)[i] = was;
    }
  }
  opened.verify();
}

TEST_F(Damage, EveryCutEndIsNoticed) {
  const Reader opened(files, kStep);
  for (const auto& [path, text] : contents()) {
    const std::string whole = *text;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      *text = whole.substr(0, size);
      ASSERT_TRUE(is_noticed(opened, path)) << path << " cut to " << size;
    }
    ASSERT_NE(error(), "");
    *text = whole + "\n";
    ASSERT_TRUE(is_noticed(opened, path)) << path << " longer";
    ASSERT_NE(error(), "");
    *text = whole;
  }
}

// The same file as if it had been written in blocks of 4 KiB, which other writers may do.
TEST(DamageOfBlocks, EveryBitOfAFileOfSeveralIsNoticed) {
  MemoryFiles files;
  Manifest manifest = test_manifest();
  manifest.tables = {{.name = "video", .vocabulary_size = 300, .dim = 5, .combiner = "sum"}};
  manifest.features.clear();
  save(files, "/run", manifest, test_shards(manifest));
  FileRecord record = Reader(files, kStep).manifest().files.at(0);
  const std::string path = std::string(kStep) + "/" + record.name;
  std::string& bytes = *files.contents().at(path);
  record.block_bytes = kDataAlignment;
  record.blocks_xxh128.clear();
  for (std::int64_t i = 0; i < record.num_blocks(); ++i)
    record.blocks_xxh128 += hash_hex(bytes_of(bytes.substr(i * kDataAlignment, kDataAlignment)));
  ASSERT_EQ(record.num_blocks(), 3);
  BlockFile(files.open(path), path, record).verify();
  for (std::int64_t at = 0; at < record.bytes; ++at) {
    const std::int64_t block = at / kDataAlignment;
    const std::string_view text =
        std::string_view(bytes).substr(block * kDataAlignment, kDataAlignment);
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
      EXPECT_THROW(
          check_block(block, std::as_bytes(std::span(text.data(), text.size())), record, path),
          DataLoss)
          << at << " " << bit;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
    }
  }
  for (const std::int64_t at : {std::int64_t{0}, kDataAlignment, record.bytes - 1}) {
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    EXPECT_THROW(BlockFile(files.open(path), path, record).verify(), DataLoss) << at;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
  }
}

TEST_F(Damage, NamesFileAndBlock) {
  contents().at(std::string(kStep) + "/blobs.safetensors")->back() ^= 1;
  EXPECT_EQ(error(),
            std::string(kStep) +
                "/blobs.safetensors: cannot read: block 0 (bytes 0 to 4104) does not match "
                "its checksum");
}

TEST_F(Damage, OnlyTouchedFilesAreChecked) {
  contents().at(std::string(kStep) + "/t00000-video-00001-of-00002.safetensors")->back() ^= 1;
  Reader reader(files, kStep);
  VariableReader video = reader.variable("video");
  std::vector<float> row(3);
  EXPECT_NO_THROW(video.read(0, row));
  EXPECT_EQ(row, (std::vector<float>{0, 1, 2}));
  EXPECT_THROW(video.read(1, row), DataLoss);
}

TEST_F(Damage, AMissingFileIsNoticedAtOnce) {
  files.remove(std::string(kStep) + "/blobs.safetensors");
  EXPECT_THROW(Reader(files, kStep), DataLoss);
}

TEST_F(Damage, FilesOfAnotherSaveAreNoticed) {
  // Whole in themselves, but not those of this manifest.
  Manifest other = test_manifest(2, Sharding::kMod);
  other.tables.pop_back();
  other.features.pop_back();
  save(files, "/other", other, test_shards(other, 1));
  const std::string name = "/step_000000000007/t00000-video-00000-of-00002.safetensors";
  *contents().at("/run" + name) = *contents().at("/other" + name);
  EXPECT_NE(error(), "");
}

TEST_F(Damage, ANewerVersionIsRefusedByFileAndVersion) {
  edit_manifest("\"version\": 1", "\"version\": 2");
  EXPECT_EQ(error(), kManifestPath +
                         ": cannot read: format version 2 is newer than 1, the newest that this "
                         "library reads");
  EXPECT_THROW(Reader(files, "/run"), IoError);
}

TEST_F(Damage, UnknownKeysAreIgnored) {
  edit_manifest("\"library\"", "\"mood\": [\"good\"], \"library\"");
  EXPECT_EQ(error(), "");
}

TEST_F(Damage, ContradictoryManifestsAreRefusedByName) {
  const std::string cases[][3] = {
      {"\"format\": \"embertable-checkpoint\"", "\"format\": \"other\"", "format must be"},
      {"\"step\": 7", "\"step\": -7", "step must be an integer in 0.."},
      {"\"name\": \"t00000-video-00000", "\"name\": \"../00000-video-00000", "no plain file name"},
      {"\"name\": \"t00000-video-00000-of-00002.safetensors\"", "\"name\": \"manifest.json\"",
       "no plain file name"},
      {"00001-of-00002.safetensors", "00000-of-00002.safetensors", "is listed twice"},
      {"\"kind\": \"table\"", "\"kind\": \"chair\"", "kind is unknown: 'chair'"},
      {"\"table\": 0,\n   \"shard\"", "\"table\": 1,\n   \"shard\"", "belongs to no table"},
      {"\"first\": 1", "\"first\": 0", "are missing or stored twice"},
      {"\"count\": 6", "\"count\": 5",
       "does not hold the variables of its rows of table 'video': must hold 'video' F32 [5, 3], "
       "got "
       "'video' F32 [6, 3]"},
      {"\"vocabulary_size\": 13", "\"vocabulary_size\": 14", "row count that does not fit"},
      {"\"vocabulary_size\": 13", "\"vocabulary_size\": 0", "vocabulary_size must be an integer"},
      {"\"dim\": 3", "\"dim\": 2", "does not hold the variables"},
      {"\"dtype\": \"F32\"", "\"dtype\": \"I32\"", "does not hold the variables"},
      {"\"dtype\": \"F32\"", "\"dtype\": \"X32\"", "its dtype and shape contradict"},
      {"\"offset\": 4096", "\"offset\": 4095", "not a multiple of 4096"},
      {"\"offset\": 4096", "\"offset\": 8192", "do not end where the file ends"},
      {"\"offset\": 4180", "\"offset\": 4184", "does not start where the one before ends"},
      {"\"block_bytes\": 1048576", "\"block_bytes\": 0", "block_bytes must be an integer in"},
      {"\"block_bytes\": 1048576", "\"block_bytes\": 1048575", "must be a multiple of 8"},
      {"\"block_bytes\": 1048576", "\"block_bytes\": 4096", "must be 64 lowercase hexadecimal"},
      {"\"step\": 7", "\"step\": 7, \"step\": 7", "stands twice"},
  };
  for (const auto& [from, to, rule] : cases) {
    const auto whole = files.copy();
    edit_manifest(from, to);
    EXPECT_NE(error().find(rule), std::string::npos) << to << " gave: " << error();
    *contents().at(kManifestPath) = *whole->contents().at(kManifestPath);
  }
  EXPECT_EQ(error(), "");
}

TEST_F(Damage, LatestFallsBackAndSaysWhy) {
  const Manifest next = test_manifest(1, Sharding::kDiv, 8);
  save(files, "/run", next, test_shards(next));
  EXPECT_EQ(Reader(files, "/run").directory(), "/run/step_000000000008");
  files.remove("/run/step_000000000008/t00000-video-00000-of-00001.safetensors");
  const Reader latest(files, "/run");
  EXPECT_EQ(latest.directory(), kStep);
  ASSERT_EQ(latest.skipped().size(), 1u);
  EXPECT_EQ(latest.skipped()[0],
            "/run/step_000000000008/t00000-video-00000-of-00001.safetensors: cannot open: the "
            "manifest names it, but there is no such file");
}

TEST_F(Damage, LatestIgnoresTemporariesAndStrangers) {
  for (const char* name :
       {".step_000000000009_tmp-1", "step_9", "step_0000000000009", "step_000000000009.old",
        "step_000000000010"}) {  // the last one is empty
    files.make_directory(std::filesystem::path("/run") / name);
  }
  files.rename(kStep, "/run/.step_000000000007_tmp-5");
  EXPECT_THROW(Reader(files, "/run"), IoError);
  files.rename("/run/.step_000000000007_tmp-5", kStep);
  EXPECT_EQ(Reader(files, "/run").directory(), kStep);
  files.rename(kStep, "/run/step_000000000012");  // not what its manifest says
  EXPECT_THROW(Reader(files, "/run"), IoError);
}

TEST_F(Damage, NoCheckpointIsAnErrorThatNamesTheDirectory) {
  EXPECT_THROW(Reader(files, "/none"), IoError);
  files.make_directory("/empty");
  try {
    Reader(files, "/empty");
    FAIL();
  } catch (const IoError& found) {
    EXPECT_STREQ(found.what(), "/empty: cannot open: there is no checkpoint");
  }
}

TEST_F(Damage, EveryFailingReadIsReported) {
  files.fail_at(-1, MemoryFiles::Fault::kError);
  Reader(files, kStep).verify();
  const std::int64_t operations = files.operations();
  EXPECT_GT(operations, 10);
  for (std::int64_t i = 0; i < operations; ++i) {
    files.fail_at(i, MemoryFiles::Fault::kError);
    EXPECT_NE(error().find("made to fail"), std::string::npos) << i;
  }
}

}  // namespace
}  // namespace embertable::checkpoint
