// Rows from any files to any shards, and the bytes that it takes.
#include "checkpoint/row_load.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "checkpoint/manifest.h"
#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/memory_files.h"
#include "testing/saved_tables.h"
#include "testing/slow_bfloat16.h"

namespace embertable::checkpoint {
namespace {

constexpr Sharding kBothShardings[] = {Sharding::kDiv, Sharding::kMod};

/// "t", `rows` rows of `dim` with a full-size and a row-wise slot, on `hosts`.
Manifest one_table(std::int64_t rows, std::int32_t dim, std::int32_t hosts, Sharding sharding) {
  Manifest manifest = test_manifest(hosts, sharding);
  manifest.tables = {{.name = "t",
                      .vocabulary_size = rows,
                      .dim = dim,
                      .combiner = "sum",
                      .slots = {{"full", false}, {"wise", true}}}};
  manifest.features = {};
  return manifest;
}

/// The memory of one shard's variable, rows `gap` floats further apart than they are long.
struct ShardMemory {
  ShardMemory(const Manifest& manifest, std::int32_t slot, std::int64_t gap,
              const Topology& topology, std::int32_t host)
      : table(manifest.tables[0]),
        variable(slot),
        rows(rows_of_host(topology, table.vocabulary_size, host)),
        width(slot == 1 ? 1 : table.dim),
        stride(width + gap),
        values(static_cast<std::size_t>(rows.count * stride), -1) {}

  RowTarget target() { return {0, variable, rows, values.data(), stride}; }

  void expect_full() const {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      for (std::int64_t column = 0; column < stride; ++column) {
        const float want = column < width ? test_value(0, variable + 1, rows[i], column) : -1;
        ASSERT_EQ(values[i * stride + column], want) << "row " << rows[i] << " column " << column;
      }
    }
  }

  const SavedTable& table;
  std::int32_t variable;
  Progression rows;
  std::int64_t width, stride;
  std::vector<float> values;
};

/// Loads every shard of `topology` at once and compares.
void expect_loaded(const Reader& reader, const Topology& topology, std::int64_t gap,
                   Executor& executor) {
  std::vector<ShardMemory> shards;
  for (std::int32_t host = 0; host < topology.hosts; ++host)
    for (const std::int32_t slot : {-1, 0, 1})
      shards.emplace_back(reader.manifest(), slot, gap, topology, host);
  std::vector<RowTarget> targets;
  for (ShardMemory& shard : shards) targets.push_back(shard.target());
  RowLoad(reader, targets).load(executor);
  for (const ShardMemory& shard : shards) shard.expect_full();
}

TEST(RowLoad, AnyShardingBecomesAnyOther) {
  TestExecutor executor(test_seed(), 3);
  for (const std::int32_t from : {1, 2, 3, 5}) {
    for (const std::int32_t to : {1, 2, 5, 16}) {
      for (const Sharding saved_as : kBothShardings) {
        for (const Sharding wanted_as : kBothShardings) {
          MemoryFiles files;
          const Manifest manifest = one_table(13, 3, from, saved_as);
          save(files, "/run", manifest, test_shards(manifest));
          const Reader reader(files, "/run");
          for (const std::int64_t gap : {0, 2})
            expect_loaded(reader, {.hosts = to, .sharding = wanted_as}, gap, executor);
        }
      }
    }
  }
}

TEST(RowLoad, RowsAcrossBlocksAreWhole) {
  TestExecutor executor(test_seed(), 4);
  for (const Sharding sharding :
       kBothShardings) {  // 8 MB and rows of 28 bytes: no block ends with one
    MemoryFiles files;
    const Manifest manifest = one_table(150'001, 7, 2, sharding);
    save(files, "/run", manifest, test_shards(manifest));
    const Reader reader(files, "/run");
    expect_loaded(reader, {.hosts = 1}, 0, executor);
    expect_loaded(reader, {.hosts = 3, .sharding = Sharding::kMod}, 1, executor);
    expect_loaded(reader, {.hosts = 3, .sharding = Sharding::kDiv}, 0, executor);
  }
}

/// Makes the saved step one of blocks of `size` bytes, which other writers may choose.
void cut_into_blocks(MemoryFiles& files, std::int64_t size) {
  const std::string step = "/run/step_000000000007/";
  Manifest manifest = Reader(files, "/run").manifest();
  for (FileRecord& record : manifest.files) {
    const std::string& bytes = *files.contents().at(step + record.name);
    record.block_bytes = size;
    record.blocks_xxh128.clear();
    for (std::int64_t i = 0; i < record.num_blocks(); ++i)
      record.blocks_xxh128 += hash_hex(bytes_of(bytes.substr(i * size, size)));
  }
  *files.contents().at(step + kManifestName) = to_text(manifest);
}

/// Loads the parameters of a shard as another type than they are saved as.
template <class Element>
std::vector<Element> converted(const Reader& reader, RowType to, const Progression& rows,
                               std::int64_t stride, Executor& executor) {
  std::vector<Element> values(rows.count * stride, Element{7});
  RowLoad(reader, {{0, -1, rows, values.data(), stride, to}}).load(executor);
  return values;
}

TEST(RowLoad, ConvertsRowsAcrossBordersOfBlocks) {
  TestExecutor executor(test_seed(), 3);
  for (const std::int64_t block : {4096, 4104, 1 << 20})
    for (const std::int32_t dim : {1, 5, 7})
      for (const Sharding sharding : kBothShardings)
        for (const RowType saved : {RowType::kFloat32, RowType::kBfloat16}) {
          MemoryFiles files;
          Manifest manifest = one_table(3001, dim, 2, sharding);
          manifest.tables[0].row_type = saved;
          save(files, "/run", manifest, test_shards(manifest));
          cut_into_blocks(files, block);
          const Reader reader(files, "/run");
          const Progression rows = rows_of_host({.hosts = 3, .sharding = Sharding::kMod}, 3001, 1);
          const std::int64_t stride = dim + 2;
          std::vector<float> got;
          if (saved == RowType::kBfloat16) {
            got = converted<float>(reader, RowType::kFloat32, rows, stride, executor);
          } else {
            for (const std::uint16_t half :
                 converted<std::uint16_t>(reader, RowType::kBfloat16, rows, stride, executor))
              got.push_back(half == 7 ? 7 : slow::float_of(std::uint32_t{half} << 16));
          }
          for (std::int64_t i = 0; i < rows.count; ++i)
            for (std::int64_t c = 0; c < stride; ++c)
              ASSERT_EQ(got[i * stride + c],
                        c < dim ? slow::nearest_bfloat16(test_value(0, 0, rows[i], c)) : 7.0f)
                  << "blocks of " << block << ", dim " << dim << ", row " << rows[i] << ", column "
                  << c;
        }
}

/// What one host of `hosts` reads of the parameters.
std::int64_t bytes_read(MemoryFiles& files, const Reader& reader, std::int32_t hosts,
                        Sharding sharding) {
  ShardMemory memory(reader.manifest(), -1, 0, {.hosts = hosts, .sharding = sharding}, hosts - 1);
  const std::int64_t before = files.bytes_read();
  const auto executor = make_inline_executor();
  RowLoad(reader, {memory.target()}).load(*executor);
  memory.expect_full();
  return files.bytes_read() - before;
}

TEST(RowLoad, AHostReadsItsOwnBytes) {
  const Manifest manifest = one_table(1 << 18, 16, 1, Sharding::kDiv);  // 16 MiB of parameters
  MemoryFiles files;
  save(files, "/run", manifest, test_shards(manifest));
  const Reader reader(files, "/run");
  constexpr std::int64_t kMiB = 1 << 20;
  // 2 of 16 MiB lie in 3 blocks, since the header shifts them; 1 more to compare the header.
  EXPECT_EQ(bytes_read(files, reader, 8, Sharding::kDiv), 4 * kMiB);
  // Every second row is in every block, the last of which ends behind the parameters.
  EXPECT_EQ(bytes_read(files, reader, 2, Sharding::kMod), 18 * kMiB);
}

TEST(RowLoad, AHostOfTheSameShardingReadsItsOwnFile) {
  const Manifest manifest = one_table(1 << 18, 16, 4, Sharding::kMod);
  MemoryFiles files;
  save(files, "/run", manifest, test_shards(manifest));
  const Reader reader(files, "/run");
  for (const char* other : {"0", "1", "2"})
    files.remove("/run/step_000000000007/t00000-t-0000" + std::string(other) +
                 "-of-00004.safetensors");
  EXPECT_EQ(bytes_read(files, reader, 4, Sharding::kMod), 6 << 20);  // 4, and 1 at each end
}

TEST(RowLoad, OfSeveralDamagedBlocksTheFirstIsNamed) {
  const Manifest manifest = one_table(1 << 16, 16, 1, Sharding::kDiv);
  MemoryFiles files;
  save(files, "/run", manifest, test_shards(manifest));
  const Reader reader(files, "/run");
  std::string& bytes =
      *files.contents().at("/run/step_000000000007/t00000-t-00000-of-00001.safetensors");
  for (const std::size_t block : {7, 3, 5}) bytes[(block << 20) + 77] ^= 1;
  ShardMemory memory(manifest, 0, 0, {.hosts = 1}, 0);
  RowLoad load(reader, {memory.target()});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TestExecutor executor(test_seed(seed), 4);
    try {
      load.check(executor);
      FAIL();
    } catch (const DataLoss& loss) {
      EXPECT_NE(std::string(loss.what()).find("block 5 "), std::string::npos) << loss.what();
    }
  }
  EXPECT_EQ(memory.values, std::vector<float>(memory.values.size(), -1));
}

TEST(RowLoad, FilesThatWereCheckedMayGoBeforeTheyAreLoaded) {
  MemoryFiles files;
  const Manifest manifest = one_table(13, 3, 2, Sharding::kMod);
  save(files, "/run", manifest, test_shards(manifest));
  Reader reader(files, "/run");
  ShardMemory memory(manifest, 0, 1, {.hosts = 1}, 0);
  RowLoad load(reader, {memory.target()});
  const auto executor = make_inline_executor();
  load.check(*executor);
  remove_all(*files.open_directory("/"), "run");
  load.load(*executor);
  memory.expect_full();
  EXPECT_NO_THROW(load.load(*executor));  // the reader keeps them
  reader.close_tables();
  EXPECT_THROW(load.load(*executor), IoError);
}

TEST(RowLoad, NothingWantedReadsNothing) {
  MemoryFiles files;
  const Manifest manifest = one_table(2, 1, 1, Sharding::kDiv);
  save(files, "/run", manifest, test_shards(manifest));
  const Reader reader(files, "/run");
  const std::int64_t before = files.bytes_read();
  const auto executor = make_inline_executor();
  RowLoad(reader, {}).load(*executor);
  RowLoad(reader, {{.rows = {2, 1, 0}}}).load(*executor);
  EXPECT_EQ(files.bytes_read(), before);
}

}  // namespace
}  // namespace embertable::checkpoint
