// Serving from checkpoints: any topology, maps and copies, damage, restores.
#include <gmock/gmock.h>

#include <fstream>
#include <numeric>

#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "testing/refusal.h"
#include "testing/serving/lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

FeatureConfig random_table(std::string name, std::int64_t rows, std::int32_t dim) {
  return feature(make_table({.vocabulary_size = rows,
                             .dim = dim,
                             .initializer = Initializer::uniform(-1, 1, 5),
                             .optimizer = {},
                             .combiner = Combiner::kMean,
                             .name = std::move(name)}));
}

/// Dims with rows on cache lines and off them, and a table of fewer rows than hosts.
Nested<FeatureConfig> three_tables() {
  return Nested<FeatureConfig>::map({{"lines", random_table("lines", 29, 16)},
                                     {"odd", random_table("odd", 17, 5)},
                                     {"tiny", random_table("tiny", 2, 64)}});
}

/// Saves tables as `hosts` hosts have them, with the slots of Adagrad, and gives all their rows.
std::vector<F> save(const fs::path& run, const Nested<FeatureConfig>& config, std::int32_t hosts,
                    Sharding sharding, const CallerState& state = {},
                    const std::map<std::string, IdMap>& maps = {}) {
  Embedding engine =
      engine_with(accelerator(hosts, hosts, sharding), config, Optimizer("adagrad", 0.1));
  engine.build(4);
  engine.save(run, state, maps);
  std::vector<F> all;
  for (const TableInfo& table : engine.tables())
    all.push_back(variable(engine, table.name, table.vocabulary_size, table.dim));
  return all;
}

Ids backwards(std::int64_t rows) {
  Ids ids(rows);
  std::iota(ids.rbegin(), ids.rend(), 0);
  return ids;
}

F rows_backwards(const F& table, std::int32_t dim) {
  F out;
  for (auto row = table.end(); row != table.begin();) {
    row -= dim;
    out.insert(out.end(), row, row + dim);
  }
  return out;
}

void expect_tables(ServingEmbedding& serving, const std::vector<F>& want) {
  const std::vector<TableInfo> tables = serving.tables();
  ASSERT_EQ(tables.size(), want.size());
  const auto views = serving.embedding_tables();
  for (std::size_t t = 0; t < tables.size(); ++t) {
    SCOPED_TRACE(tables[t].name);
    const Ids ids = backwards(tables[t].vocabulary_size);
    const F wanted = rows_backwards(want[t], tables[t].dim);
    const Batch batch{Nested<FeatureIds>::map({{tables[t].name, FeatureIds(DenseIds{ids, {}})}}),
                      {}};
    EXPECT_EQ(values_of(serving(batch)), wanted);
    F read(wanted.size());
    serving.read_rows(tables[t].name, ids, read);
    EXPECT_EQ(read, wanted);

    const TableView& view = views.at(serving.feature_config()[static_cast<std::int64_t>(t)].table);
    F viewed;
    for (const std::int64_t id : ids)
      viewed.insert(viewed.end(), view.data + id * view.row_stride,
                    view.data + id * view.row_stride + view.dim);
    EXPECT_EQ(viewed, wanted);
  }
}

TEST(ServingCheckpoint, AnyTopologyIsServedByMapAndByCopyWithAnyChecks) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod})
    for (const std::int32_t hosts : {1, 3, 5}) {
      const TemporaryDirectory run;
      const std::vector<F> want = save(run.path(), three_tables(), hosts, sharding);
      for (const OpenTables tables : {OpenTables::kMap, OpenTables::kLoad})
        for (const Checks checks : {Checks::kLazy, Checks::kFull, Checks::kNone}) {
          SCOPED_TRACE(std::to_string(hosts) + " hosts, sharding " +
                       std::to_string(static_cast<int>(sharding)) + ", tables " +
                       std::to_string(static_cast<int>(tables)) + ", checks " +
                       std::to_string(static_cast<int>(checks)));
          const ServingOptions options{
              .tables = tables, .checks = checks, .executor = make_thread_pool(2)};
          ServingEmbedding serving = ServingEmbedding::open(run.path(), three_tables(), options);
          expect_tables(serving, want);
        }
    }
}

// The gradients of rows in mapped memory, which is read-only.
TEST(ServingCheckpoint, GivesGradientsOfMappedTables) {
  for (const RowType type : {RowType::kFloat32, RowType::kBfloat16}) {
    const TemporaryDirectory run;
    TableConfig table = *random_table("t", 29, 16).table;
    table.row_type = type;
    const auto config = Nested<FeatureConfig>(feature(make_table(table)));
    save(run.path(), config, 1, Sharding::kDiv);
    ServingEmbedding serving =
        ServingEmbedding::open(run.path(), config, {.tables = OpenTables::kMap});
    const Ids ids = {7, 3, 7, 28};
    F gradient;  // i for the i-th sample
    for (int i = 1; i <= 4; ++i) gradient.insert(gradient.end(), 16, static_cast<float>(i));
    const auto sums =
        serving_embedding_gradients({Nested<FeatureIds>(FeatureIds(DenseIds{ids, {}})), {}},
                                    Nested<Gradient>(Gradient{gradient, {}}),
                                    serving.embedding_tables(), serving.feature_config());
    ASSERT_EQ(sums.size(), 1u);
    const GradientSumsOfTable& of = sums.begin()->second;
    EXPECT_THAT(of.ids, ElementsAre(3, 7, 28));
    F want(16, 2);
    want.insert(want.end(), 16, 4.0f);
    want.insert(want.end(), 16, 4.0f);
    EXPECT_EQ(of.sums, want);
  }
}

TEST(ServingCheckpoint, CombinesRowsOfSeveralFiles) {
  const TemporaryDirectory run;
  const auto config = Nested<FeatureConfig>(random_table("t", 29, 16));
  save(run.path(), config, 3, Sharding::kMod);
  const Rows rows({{0, 1, 2}, {28, 3}, {}, {5}});
  ServingEmbedding initial(config), opened = ServingEmbedding::open(run.path(), config);
  EXPECT_EQ(values_of(opened(batch_of(rows.sparse()))),
            values_of(initial(batch_of(rows.sparse()))));
}

TEST(ServingCheckpoint, APlainObjectsTablesAreServed) {
  const TemporaryDirectory run;
  Embedding plain(three_tables(), {}, nullptr);
  plain.build();
  plain.save(run.path());
  std::vector<F> want;
  for (const TableInfo& table : plain.tables())
    want.push_back(variable(plain, table.name, table.vocabulary_size, table.dim));
  ServingEmbedding serving = ServingEmbedding::open(run.path(), three_tables());
  expect_tables(serving, want);
  ServingEmbedding initial(three_tables());
  expect_tables(initial, want);  // first values are the engine's
}

TEST(ServingCheckpoint, OpensWithoutAConfiguration) {
  const TemporaryDirectory run;
  FeatureConfig watched = random_table("video", 9, 4), shown = watched;
  watched.name = "w";
  watched.max_sequence_length = 3;
  shown.validate_weights_and_indices = false;
  shown.output_shape = {4, Shape::kUnknown};
  Embedding plain(
      Nested<FeatureConfig>::map({{"user", Nested<FeatureConfig>::tuple({watched, shown})}}), {},
      nullptr);
  plain.build();
  plain.save(run.path());
  const ServingEmbedding serving = ServingEmbedding::open(run.path());
  const Nested<FeatureConfig>& got = serving.feature_config();
  EXPECT_EQ(got.structure().to_string(), "{user/0: *, user/1: *}");
  EXPECT_EQ(got[0].table, got[1].table);
  EXPECT_EQ(got[0].table->vocabulary_size, 9);
  EXPECT_EQ(got[0].table->dim, 4);
  EXPECT_EQ(got[0].table->combiner, Combiner::kMean);
  EXPECT_EQ(got[0].table->name, "video");
  EXPECT_EQ(got[0].name, "w");
  EXPECT_EQ(got[0].max_sequence_length, 3);
  EXPECT_FALSE(got[1].validate_weights_and_indices);
  EXPECT_EQ(got[1].output_shape, (Shape{4, Shape::kUnknown}));
  EXPECT_FALSE(got[0].output_shape.has_rank());
}

TEST(ServingCheckpoint, AConfigurationThatNobodyCanHaveSavedIsDamage) {
  const TemporaryDirectory run;
  save(run.path(), three_tables(), 1, Sharding::kDiv);
  const fs::path path = find_checkpoint(run.path()) / checkpoint::kManifestName;
  checkpoint::Manifest manifest = checkpoint::parse_manifest(
      checkpoint::read_file(checkpoint::local_files(), path, 1 << 20), path);
  manifest.tables[0].combiner = "median";
  std::ofstream(path) << to_text(manifest);
  EXPECT_EQ(refusal<DataLoss>([&] { ServingEmbedding::open(run.path()); }).find(path.string()), 0u);
}

TEST(ServingCheckpoint, GivesWhatTheWriterKept) {
  const TemporaryDirectory run;
  CallerState state;
  state.json = R"({"epoch": 3})";
  IdMapBuilder builder(KeyKind::kString);
  builder.add("a");
  const IdMap map = builder.build();
  save(run.path(), three_tables(), 1, Sharding::kDiv, state, {{"users", map}});
  ServingEmbedding serving = ServingEmbedding::open(run.path());
  EXPECT_EQ(serving.caller_state(), state);
  EXPECT_EQ(serving.id_maps().at("users"), map);
  EXPECT_EQ(serving.step(), 0);
  ServingEmbedding fresh(three_tables());
  const RestoreReport report = fresh.restore(run.path());
  EXPECT_EQ(report.caller, state);
  EXPECT_EQ(report.id_maps.at("users"), map);
  EXPECT_EQ(report.directory, find_checkpoint(run.path()));
  EXPECT_EQ(fresh.caller_state(), state);
  ServingEmbedding chosen(three_tables());
  chosen.restore(run.path(), {.tables = {"lines"}});  // the others may be of another step
  EXPECT_EQ(chosen.caller_state(), CallerState());
  EXPECT_TRUE(chosen.id_maps().empty());
}

/// Two of three tables, one of another size, and one that no checkpoint has.
Nested<FeatureConfig> other_tables() {
  return Nested<FeatureConfig>::list(
      {random_table("lines", 29, 16), random_table("odd", 18, 5), random_table("new", 3, 2)});
}

TEST(ServingCheckpoint, ReportsWhatDoesNotFit) {
  const TemporaryDirectory run;
  const std::vector<F> want = save(run.path(), three_tables(), 2, Sharding::kDiv);
  ServingEmbedding serving(other_tables());
  EXPECT_THAT(refusal<ValueError>([&] { serving.restore(run.path()); }),
              AllOf(HasSubstr("new"), HasSubstr("odd")));
  EXPECT_FALSE(serving.built());
  const RestoreReport report = serving.restore(run.path(), {.tables = {}, .partial = true});
  EXPECT_THAT(report.missing, ElementsAre("new"));
  ASSERT_EQ(report.mismatched.size(), 1u);
  EXPECT_THAT(report.mismatched[0],
              AllOf(HasSubstr("odd"), HasSubstr("[17, 5]"), HasSubstr("[18, 5]")));
  EXPECT_THAT(report.extra,
              ElementsAre("lines/accumulators", "odd/accumulators", "tiny", "tiny/accumulators"));
  F rows(want[0].size());
  serving.read_rows("lines", backwards(29), rows);
  EXPECT_EQ(rows, rows_backwards(want[0], 16));
  EXPECT_TRUE(serving.built());  // the others have their first values
}

TEST(ServingCheckpoint, NothingInCommonIsRefused) {
  const TemporaryDirectory run;
  save(run.path(), three_tables(), 1, Sharding::kDiv);
  ServingEmbedding serving(Nested<FeatureConfig>(random_table("new", 3, 2)));
  EXPECT_THAT(
      refusal<ValueError>([&] { serving.restore(run.path(), {.tables = {}, .partial = true}); }),
      HasSubstr("must have a table in common with the ServingEmbedding, which has 'new'"));
}

TEST(ServingCheckpoint, RestoresChosenTables) {
  const TemporaryDirectory run;
  const std::vector<F> want = save(run.path(), three_tables(), 2, Sharding::kMod);
  std::vector<FeatureConfig> leaves = three_tables().leaves();
  for (FeatureConfig& leaf : leaves) {
    TableConfig zeros = *leaf.table;
    zeros.initializer = Initializer::zeros();
    leaf.table = make_table(zeros);
  }
  ServingEmbedding serving(Nested<FeatureConfig>(three_tables().structure(), leaves));
  serving.build();
  EXPECT_THAT(refusal<KeyError>([&] { serving.restore(run.path(), {.tables = {"unknown"}}); }),
              HasSubstr("the ServingEmbedding has no table 'unknown'"));
  serving.restore(run.path(), {.tables = {"odd"}});
  F odd(want[1].size()), lines(want[0].size());
  serving.read_rows("odd", backwards(17), odd);
  serving.read_rows("lines", backwards(29), lines);
  EXPECT_EQ(odd, rows_backwards(want[1], 5));
  EXPECT_EQ(lines, F(lines.size(), 0));
}

TEST(ServingCheckpoint, AFailedRestoreLeavesTheTables) {
  const TemporaryDirectory run;
  save(run.path(), three_tables(), 1, Sharding::kDiv);
  ServingEmbedding serving =
      ServingEmbedding::open(run.path(), three_tables(), {.tables = OpenTables::kMap});
  const Ids ids = {1};
  F before(16), after(16);
  serving.read_rows("lines", ids, before);
  EXPECT_THROW(serving.restore(run.path() / "nothing"), IoError);
  serving.read_rows("lines", ids, after);
  EXPECT_EQ(before, after);
}

TEST(ServingCheckpoint, ReadRowsNamesWhatIsWrong) {
  ServingEmbedding serving(three_tables());
  F out(5);
  EXPECT_THAT(refusal<KeyError>([&] { serving.read_rows("odds", Ids{1}, out); }),
              HasSubstr("there is no table 'odds'; the nearest is 'odd'"));
  EXPECT_EQ(refusal<IndexError>([&] { serving.read_rows("odd", Ids{17}, out); }),
            "table 'odd': row must be 0 <= row < 17, got 17 at position 0");
  EXPECT_EQ(refusal<ValueError>([&] {
              serving.read_rows("odd", Ids{1, 2}, out);
            }),
            "table 'odd': 2 rows of 5 floats need 10, got 5");
}

/// A table of several blocks in one file or more.
constexpr std::int64_t kBigRows = 9000;
Nested<FeatureConfig> big_table() {
  return Nested<FeatureConfig>(random_table("big", kBigRows, 100));
}

void flip(const fs::path& file, std::int64_t offset) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(offset);
  const int byte = stream.get();
  stream.seekp(offset);
  stream.put(static_cast<char>(byte ^ 1));
}

std::vector<fs::path> table_files(const fs::path& run) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(find_checkpoint(run)))
    if (entry.path().filename().string().starts_with("t00000")) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

constexpr std::int64_t kBlock = 1 << 20;
constexpr std::int64_t kHeader = 4096;

/// How many rows of the table a lookup refuses, one at a time, naming the file and the block.
std::int64_t refused_rows(ServingEmbedding& serving, const fs::path& file, std::int64_t block) {
  std::int64_t refused = 0;
  LookupOutput output;
  for (std::int64_t row = 0; row < kBigRows; ++row) {
    const Ids id = {row};
    const Batch batch = batch_of(DenseIds{id, {}});
    const std::string why = refusal<DataLoss>([&] { serving.embedding_lookup(batch, output); });
    if (why.empty()) continue;
    EXPECT_THAT(why,
                AllOf(HasSubstr(file.string()), HasSubstr("block " + std::to_string(block) + " ")));
    ++refused;
  }
  return refused;
}

TEST(ServingCheckpoint, EveryFlippedBlockIsRefusedAtEveryTouch) {
  const TemporaryDirectory run;
  save(run.path(), big_table(), 2, Sharding::kDiv);
  constexpr std::int64_t kRowBytes = 400, kFileRows = kBigRows / 2;
  for (const fs::path& file : table_files(run.path())) {
    const std::int64_t blocks = (kHeader + kFileRows * kRowBytes + kBlock - 1) / kBlock;
    for (std::int64_t block = 0; block < blocks; ++block) {
      SCOPED_TRACE(file.string() + " block " + std::to_string(block));
      const std::int64_t at = block * kBlock + kHeader + 7;
      flip(file, at);
      ServingEmbedding lazy =
          ServingEmbedding::open(run.path(), big_table(), {.tables = OpenTables::kMap});
      const std::int64_t first = std::max<std::int64_t>(0, block * kBlock - kHeader) / kRowBytes;
      const std::int64_t end =
          std::min(kFileRows, ((block + 1) * kBlock - kHeader + kRowBytes - 1) / kRowBytes);
      EXPECT_EQ(refused_rows(lazy, file, block), end - first);
      EXPECT_EQ(refused_rows(lazy, file, block), end - first);
      EXPECT_THROW(lazy.embedding_tables(), DataLoss);
      const auto open_as = [&](OpenTables tables, Checks checks) {
        return refusal<DataLoss>([&] {
          ServingEmbedding::open(run.path(), big_table(), {.tables = tables, .checks = checks});
        });
      };
      EXPECT_THAT(open_as(OpenTables::kMap, Checks::kFull),
                  HasSubstr("block " + std::to_string(block)));
      EXPECT_THAT(open_as(OpenTables::kLoad, Checks::kLazy),
                  HasSubstr("block " + std::to_string(block)));
      EXPECT_EQ(open_as(OpenTables::kLoad, Checks::kNone), "");
      EXPECT_EQ(open_as(OpenTables::kMap, Checks::kNone), "");
      flip(file, at);
    }
  }
  ServingEmbedding sound =
      ServingEmbedding::open(run.path(), big_table(), {.checks = Checks::kFull});
  EXPECT_EQ(refused_rows(sound, "", 0), 0);
}

TEST(ServingCheckpoint, DamagedSlotsDoNotMatter) {
  const TemporaryDirectory run;
  save(run.path(), big_table(), 1, Sharding::kDiv);
  flip(table_files(run.path())[0], kHeader + kBigRows * 800 - 5);
  ServingEmbedding serving =
      ServingEmbedding::open(run.path(), big_table(), {.checks = Checks::kFull});
  EXPECT_EQ(refused_rows(serving, "", 0), 0);
}

TEST(ServingCheckpoint, ADamagedHeaderIsRefusedWithoutChecks) {
  const TemporaryDirectory run;
  save(run.path(), big_table(), 1, Sharding::kDiv);
  const fs::path file = table_files(run.path())[0];
  flip(file, 0);  // a byte of the header's length
  EXPECT_THAT(refusal<DataLoss>([&] {
                ServingEmbedding::open(run.path(), big_table(), {.checks = Checks::kNone});
              }),
              HasSubstr(file.string()));
}

TEST(ServingCheckpoint, AMapOutlivesItsFiles) {
  const TemporaryDirectory run;
  save(run.path(), three_tables(), 2, Sharding::kDiv);
  ServingEmbedding serving =
      ServingEmbedding::open(run.path(), three_tables(), {.tables = OpenTables::kMap});
  fs::remove_all(find_checkpoint(run.path()));
  F out(16);
  serving.read_rows("lines", Ids{28}, out);
  ServingEmbedding initial(three_tables());
  F want(16);
  initial.read_rows("lines", Ids{28}, want);
  EXPECT_EQ(out, want);
}

}  // namespace
}  // namespace embertable
