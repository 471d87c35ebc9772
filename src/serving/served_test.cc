// Serving from files that fail, are damaged or cut.
#include "serving/served.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "testing/memory_files.h"
#include "testing/refusal.h"
#include "testing/saved_tables.h"
#include "testing/slow_bfloat16.h"

namespace embertable::serving {
namespace {

using checkpoint::MemoryFiles;
using ::testing::HasSubstr;

constexpr const char* kRun = "/run";

std::unique_ptr<MemoryFiles> saved(std::int32_t hosts, Sharding sharding,
                                   RowType type = RowType::kFloat32) {
  auto files = std::make_unique<MemoryFiles>();
  checkpoint::Manifest manifest = checkpoint::test_manifest(hosts, sharding);
  for (checkpoint::SavedTable& table : manifest.tables) table.row_type = type;
  for (checkpoint::SavedFeature& feature : manifest.features) feature.output_shape.reset();
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

/// What a row type makes of a number of a row.
float stored_number(RowType type, float x, std::span<const float> row) {
  if (type == RowType::kFloat32) return x;
  if (type == RowType::kBfloat16) return slow::nearest_bfloat16(x);
  const auto [least, largest] = std::ranges::minmax(row);
  const auto scale = static_cast<float>((double{largest} - double{least}) / 255);
  if (scale == 0) return least;
  const float level = static_cast<float>(std::floor((double{x} - double{least}) / scale + 0.5));
  const float scaled = level * scale;
  return scaled + least;
}

std::vector<float> stored_rows(RowType type, const TableInfo& info) {
  const std::vector<float> rows = true_rows(info);
  std::vector<float> values;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = i / static_cast<std::size_t>(info.dim) * info.dim;
    values.push_back(stored_number(type, rows[i], std::span(rows).subspan(first, info.dim)));
  }
  return values;
}

/// Looks rows of "video" up by a feature: one bag of two rows, and one row.
std::vector<float> looked_up(Served& served) {
  const std::vector<std::int64_t> ids = {12, 3, 7}, splits = {0, 2, 3};
  const std::vector<float> weights = {2, 1, 1};
  const Batch batch{
      Nested<FeatureIds>::map({{"watched", FeatureIds(RaggedIds{splits, ids})}}),
      Nested<FeatureWeights>::map({{"watched", FeatureWeights(RaggedWeights{weights})}})};
  LookupOutput output;
  served.look_up(batch, output);
  const std::span<const float> values = output(0).values;
  return {values.begin(), values.end()};
}

TEST(Served, ServesRowsOfEveryType) {
  for (const RowType type : {RowType::kFloat32, RowType::kBfloat16, RowType::kInt8})
    for (const std::int32_t hosts : {1, 3})
      for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
        const auto files = saved(hosts, sharding, type);
        for (const ServingOptions& options : all_options()) {
          SCOPED_TRACE(std::string(to_string(type)) + ", " + std::to_string(hosts) + " hosts");
          const auto served = Served::open_all(*files, {*files, kRun}, options);
          for (const TableInfo& table : served->tables()) {
            EXPECT_EQ(table.row_type, type);
            EXPECT_EQ(rows_of(*served, table), stored_rows(type, table));
          }
          const TableInfo video = served->table("video");
          const std::vector<float> rows = stored_rows(type, video);
          std::vector<float> want;  // the mean of rows 12, twice, and 3; row 7
          for (std::size_t c = 0; c < 3; ++c)
            want.push_back((2 * rows[12 * 3 + c] + rows[3 * 3 + c]) / 3);
          for (std::size_t c = 0; c < 3; ++c) want.push_back(rows[7 * 3 + c]);
          EXPECT_EQ(looked_up(*served), want);
          for (const auto& [table, view] : served->table_views()) {
            if (*table->name != "video") continue;
            for (std::int64_t i = 0; i < 39; ++i) {
              const std::int64_t at = i / 3 * view.row_stride + i % 3;
              EXPECT_EQ(view.bfloat16 == nullptr
                            ? view.data[at]
                            : slow::float_of(std::uint32_t{view.bfloat16[at]} << 16),
                        rows[i]);
            }
          }
        }
      }
}

TEST(Served, ChecksRowsOfEveryType) {
  for (const RowType type : {RowType::kBfloat16, RowType::kInt8})
    for (const OpenTables tables : {OpenTables::kMap, OpenTables::kLoad}) {
      const auto files = saved(1, Sharding::kDiv, type);
      for (auto& [path, contents] : files->contents())
        if (path.ends_with(".safetensors")) (*contents)[4097] ^= 1;
      EXPECT_THROW(
          {
            const auto served = Served::open_all(*files, {*files, kRun}, {.tables = tables});
            rows_of(*served, served->tables()[0]);
          },
          DataLoss);
    }
}

TEST(Served, BlamesNoCheckpointForALevelThatDoesNotExist) {
  const auto files = saved(1, Sharding::kDiv);
  const char* const given = std::getenv("EMBERTABLE_SIMD");
  const std::string before = given == nullptr ? "" : given;  // "" counts as none
  setenv("EMBERTABLE_SIMD", "sse", 1);
  EXPECT_THAT(refusal<ValueError>([&] {
                Served::open_all(*files, {*files, kRun}, {});
              }),
              testing::StartsWith("EMBERTABLE_SIMD: must be a level"));
  setenv("EMBERTABLE_SIMD", before.c_str(), 1);
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
