// Serving from files that fail, are damaged or cut.
#include "serving/served.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "testing/memory_files.h"
#include "testing/saved_tables.h"

namespace embertable::serving {
namespace {

using checkpoint::MemoryFiles;
using ::testing::HasSubstr;

constexpr const char* kRun = "/run";

std::unique_ptr<MemoryFiles> saved(std::int32_t hosts, Sharding sharding) {
  auto files = std::make_unique<MemoryFiles>();
  checkpoint::Manifest manifest = checkpoint::test_manifest(hosts, sharding);
  const auto source = checkpoint::test_shards(manifest);
  checkpoint::save(*files, kRun, std::move(manifest), source);
  return files;
}

std::vector<float> rows_of(Served& served, const TableInfo& table) {
  std::vector<std::int64_t> rows(table.vocabulary_size);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> values(rows.size() * static_cast<std::size_t>(table.dim));
  served.read_rows(table.name, rows, values);
  return values;
}

std::vector<float> true_rows(const TableInfo& info) {
  const std::int64_t table = info.name == "video" ? 0 : 1;
  std::vector<float> values;
  for (std::int64_t row = 0; row < info.vocabulary_size; ++row)
    for (std::int64_t column = 0; column < info.dim; ++column)
      values.push_back(checkpoint::test_value(table, 0, row, column));
  return values;
}

void expect_true_rows(Served& served) {
  for (const TableInfo& table : served.tables())
    EXPECT_EQ(rows_of(served, table), true_rows(table));
}

std::vector<ServingOptions> all_options() {
  std::vector<ServingOptions> all;
  for (const OpenTables tables : {OpenTables::kMap, OpenTables::kLoad})
    for (const Checks checks : {Checks::kLazy, Checks::kFull, Checks::kNone})
      all.push_back({.tables = tables, .checks = checks});
  return all;
}

TEST(Served, GivesTheTableOrAnErrorWhateverOperationFails) {
  const auto files = saved(3, Sharding::kMod);
  for (const ServingOptions& options : all_options()) {
    files->fail_at(-1, MemoryFiles::Fault::kError);
    expect_true_rows(*Served::open_all(*files, {*files, kRun}, options));
    const std::int64_t operations = files->operations();
    ASSERT_GT(operations, 5);
    for (std::int64_t at = 0; at < operations; ++at) {
      files->fail_at(at, MemoryFiles::Fault::kError);
      EXPECT_THROW(expect_true_rows(*Served::open_all(*files, {*files, kRun}, options)), IoError)
          << "operation " << at;
    }
    files->heal();
  }
}

/// What is read of a damaged checkpoint is right, or refused.
void expect_right_or_refused(MemoryFiles& files, const std::string& path,
                             const ServingOptions& options, std::int64_t& refused) {
  try {
    expect_true_rows(*Served::open_all(files, {files, kRun}, options));
  } catch (const DataLoss& loss) {
    EXPECT_THAT(loss.what(), HasSubstr(path));
    ++refused;
  }
}

TEST(Served, NoFlippedByteShows) {
  const auto files = saved(2, Sharding::kDiv);
  std::int64_t refused = 0;
  for (auto& [path, contents] : files->contents()) {
    if (!path.ends_with(".safetensors")) continue;
    for (std::size_t at = 0; at < contents->size(); at += at < 300 || at > 4090 ? 1 : 97) {
      (*contents)[at] ^= 1;
      expect_right_or_refused(*files, path, {.tables = OpenTables::kMap}, refused);
      (*contents)[at] ^= 1;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Served, DamageBetweenOpenAndTouchIsFound) {
  const auto files = saved(1, Sharding::kDiv);
  const auto lazy = Served::open_all(*files, {*files, kRun}, {.tables = OpenTables::kMap});
  for (auto& [path, contents] : files->contents())
    if (path.ends_with(".safetensors")) (*contents)[4100] ^= 1;
  for (const TableInfo& table : lazy->tables())
    for (int touch = 0; touch < 3; ++touch) EXPECT_THROW(rows_of(*lazy, table), DataLoss);
}

TEST(Served, ACutOrMissingFileIsRefused) {
  for (const ServingOptions& options : all_options()) {
    const auto files = saved(1, Sharding::kDiv);
    for (auto& [path, contents] : files->contents()) {
      if (!path.ends_with(".safetensors")) continue;
      const std::string whole = *contents;
      contents->resize(whole.size() - 1);
      EXPECT_THROW(Served::open_all(*files, {*files, kRun}, options), IoError);
      contents->resize(10);
      EXPECT_THROW(Served::open_all(*files, {*files, kRun}, options), IoError);
      *contents = whole;
    }
    expect_true_rows(*Served::open_all(*files, {*files, kRun}, options));
  }
}

TEST(Served, OpensTheLatestStepThatIsWhole) {
  MemoryFiles files;
  for (const std::int64_t step : {1, 2}) {
    auto manifest = checkpoint::test_manifest(1, Sharding::kDiv, step);
    const auto source = checkpoint::test_shards(manifest);
    checkpoint::save(files, kRun, std::move(manifest), source);
  }
  EXPECT_EQ(Served::open_all(files, {files, kRun}, {})->step(), 2);
  for (auto& [path, contents] : files.contents())
    if (path.find("step_000000000002/t00000") != std::string::npos) contents->clear();
  const auto served = Served::open_all(files, {files, kRun}, {});
  EXPECT_EQ(served->step(), 1);
  const RestoreReport report = served->restore(kRun, {});
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_THAT(report.skipped[0], HasSubstr("step_000000000002"));
}

TEST(Served, TablesWithoutFeaturesAreReadByName) {
  MemoryFiles files;
  auto manifest = checkpoint::test_manifest();
  manifest.features.clear();
  const auto source = checkpoint::test_shards(manifest);
  checkpoint::save(files, kRun, std::move(manifest), source);
  const auto served = Served::open_all(files, {files, kRun}, {});
  EXPECT_EQ(served->features().size(), 0);
  ASSERT_EQ(served->tables().size(), 2u);
  expect_true_rows(*served);
}

}  // namespace
}  // namespace embertable::serving
