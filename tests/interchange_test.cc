// Engines whose tables went through the files of others: the same bits, and training goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "apps/convert/export_tables.h"
#include "apps/convert/import_tables.h"
#include "base/byte_watch.h"
#include "testing/engine/saved_tables.h"
#include "testing/golden_bundles.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using jobs::TableFormat;

void ignore(const jobs::ConvertedArray&) {}

/// A run that was exported and imported again, under `folder`.
std::filesystem::path through(const std::filesystem::path& run, const std::filesystem::path& folder,
                              TableFormat format, std::int32_t shards, std::int64_t step) {
  jobs::ExportOptions out;
  out.format = format;
  out.from = run;
  out.out = folder / "theirs";
  out.shards = shards;
  out.slots = true;
  jobs::export_tables(out, ignore);
  jobs::ImportOptions in;
  in.format = format;
  in.from = out.out;
  in.out = folder / "ours";
  in.step = step;
  EXPECT_EQ(jobs::import_tables(in, ignore).left_out, std::vector<std::string>());
  return in.out;
}

struct Way {
  TableFormat format;
  std::int32_t shards;  ///< shards of what is written
  std::int32_t hosts;   ///< hosts of the engine that reads
};

const Way kWays[] = {
    {TableFormat::kTensorFlow, 0, 1}, {TableFormat::kTensorFlow, 5, 2}, {TableFormat::kNpy, 0, 4}};

const Optimizer kOptimizers[] = {sgd(0.1), adagrad(), Optimizer("rowwise_adagrad", 0.1),
                                 Optimizer("adam", 0.1), Optimizer("ftrl", 0.1)};

TEST(Interchange, TrainingGoesOnAsIfNothingHadBeen) {
  for (const Optimizer& optimizer : kOptimizers) {
    SavedStep saved(4, 2, Sharding::kMod, optimizer);
    const std::string digest = saved.engine.digest();
    std::vector<Embedding> engines;
    for (const Way& way : kWays) {
      const TemporaryDirectory folder;
      Embedding& engine = engines.emplace_back(
          engine_with(accelerator(4, way.hosts), features_of_no_initializer(), optimizer));
      engine.restore(
          through(saved.run(), folder.path(), way.format, way.shards, saved.engine.step()));
      engine.build(2);
      EXPECT_EQ(engine.digest(), digest) << optimizer.rule() << ", shards " << way.shards;
    }
    train_once(saved.engine, 4);
    EXPECT_NE(saved.engine.digest(), digest);
    for (Embedding& engine : engines) {
      train_once(engine, 4);
      EXPECT_EQ(engine.digest(), saved.engine.digest()) << optimizer.rule();
    }
  }
}

/// The files of a checkpoint of TensorFlow's in a directory; gives its prefix.
std::filesystem::path lay_out(const std::string& folder, const std::filesystem::path& directory) {
  for (const auto& [name, hex] : formats::golden_bundles().at(folder)["files"].items())
    std::ofstream(directory / name, std::ios::binary) << wire::from_hex(hex);
  return directory / "ckpt";
}

/// What TensorFlow's checkpoint says of one tensor of its TPUEmbedding.
F golden_floats(const std::string& name) {
  const std::string key = "embedding/" + name + "/.ATTRIBUTES/VARIABLE_VALUE";
  for (const nlohmann::json& tensor :
       formats::golden_bundles()["tpu_embedding"]["truth"]["tensors"]) {
    if (tensor["key"] != key) continue;
    const std::string bytes = wire::from_hex(tensor["hex"]);
    F values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  ADD_FAILURE() << "no " << key;
  return {};
}

F row_of(const F& table, std::size_t row, std::size_t dim) {
  return {table.begin() + static_cast<std::ptrdiff_t>(row * dim),
          table.begin() + static_cast<std::ptrdiff_t>((row + 1) * dim)};
}

// Adagrad by hand: accumulator += g * g, row -= 0.1 * g / sqrt(accumulator).
TEST(Interchange, AnEngineTrainsOnFromATpuEmbedding) {
  const TemporaryDirectory folder;
  jobs::ImportOptions in;
  in.from = lay_out("tpu_embedding", folder.path());
  in.out = folder.path() / "run";
  jobs::import_tables(in, ignore);
  Embedding engine =
      engine_with(accelerator(1, 1),
                  Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 7,
                                                            .dim = 4,
                                                            .initializer = Initializer::zeros(),
                                                            .optimizer = {},
                                                            .combiner = Combiner::kSum,
                                                            .name = "user"}))),
                  adagrad());
  engine.restore(in.out, {.tables = {"user"}});
  engine.build(1);
  const F rows = golden_floats("user"), accumulators = golden_floats("user.Saccumulators");
  for (std::size_t id = 0; id < 7; ++id) {
    EXPECT_EQ(row(engine, "user", static_cast<std::int64_t>(id), 4), row_of(rows, id, 4));
    EXPECT_EQ(row(engine, "user/accumulators", static_cast<std::int64_t>(id), 4),
              row_of(accumulators, id, 4));
  }

  const Rows ids(Samples{{3}});
  engine.enqueue(batch_of(ids.ragged()));
  const Activations activations = engine.dequeue();
  EXPECT_EQ(values(activations, 0), row_of(rows, 3, 4));
  engine.apply_gradients(Gradients(activations, filled(0.5f)).all());
  for (std::size_t id = 0; id < 7; ++id) {
    F expected = row_of(rows, id, 4);
    for (std::size_t i = 0; id == 3 && i < 4; ++i)
      expected[i] -= 0.1f * 0.5f / std::sqrt(accumulators[12 + i] + 0.25f);
    const F found = row(engine, "user", static_cast<std::int64_t>(id), 4);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << id;
  }
  EXPECT_EQ(row(engine, "user/accumulators", 3, 4)[0], accumulators[12] + 0.25f);
}

constexpr std::int64_t kRows = 41;
constexpr std::int32_t kDim = 6;

Nested<FeatureConfig> one_table(RowType type, Combiner combiner = Combiner::kSum) {
  return Nested<FeatureConfig>(feature(make_table({.vocabulary_size = kRows,
                                                   .dim = kDim,
                                                   .initializer = Initializer::uniform(-1, 1, 3),
                                                   .optimizer = adagrad(),
                                                   .combiner = combiner,
                                                   .name = "t",
                                                   .row_type = type})));
}

/// Saves the first rows of a table on three hosts, but for `assigned`, which row 7 becomes. Returns
/// all rows.
F save_rows(const std::filesystem::path& run, RowType type, const F& assigned = {},
            Combiner combiner = Combiner::kSum) {
  Embedding engine(one_table(type, combiner), std::nullopt, accelerator(3, 3, Sharding::kMod));
  engine.build(1);
  if (!assigned.empty()) engine.assign_rows("t", Ids{7}, assigned);
  engine.save(run);
  return variable(engine, "t", kRows, kDim);
}

jobs::ExportOptions export_to(TableFormat format, const std::filesystem::path& run,
                              const std::filesystem::path& out) {
  jobs::ExportOptions options;
  options.format = format;
  options.from = run;
  options.out = out;
  return options;
}

std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ExportOfBfloat16, GivesItsRowsAsFloats) {
  const TemporaryDirectory folder;
  const std::filesystem::path run = folder.path() / "run", out = folder.path() / "out";
  const F rows = save_rows(run, RowType::kBfloat16);
  const std::size_t bytes = rows.size() * sizeof(float);
  F got(rows.size());

  jobs::export_tables(export_to(TableFormat::kTensorFlow, run, out), ignore);
  const TensorBundleReader bundle(out / "ckpt-1");
  const std::vector<std::byte> tensor = bundle.read("embedding/t/.ATTRIBUTES/VARIABLE_VALUE");
  ASSERT_EQ(tensor.size(), bytes);
  std::memcpy(got.data(), tensor.data(), bytes);
  EXPECT_EQ(got, rows);

  jobs::export_tables(export_to(TableFormat::kNpy, run, out), ignore);
  const std::string npy = bytes_of_file(out / "t.npy");
  ASSERT_GT(npy.size(), bytes);
  EXPECT_NE(npy.find("'descr': '<f4'"), std::string::npos);
  std::memcpy(got.data(), npy.data() + npy.size() - bytes, bytes);
  EXPECT_EQ(got, rows);

  jobs::export_tables(export_to(TableFormat::kWord2vec, run, out / "words.txt"), ignore);
  std::ifstream words(out / "words.txt");
  std::int64_t count = 0, dim = 0;
  words >> count >> dim;
  ASSERT_EQ(count, kRows);
  ASSERT_EQ(dim, kDim);
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::string word, number;
    words >> word;
    EXPECT_EQ(word, std::to_string(row));
    for (std::int32_t c = 0; c < kDim; ++c) {
      words >> number;
      EXPECT_EQ(std::strtof(number.c_str(), nullptr), rows[row * kDim + c]);
    }
  }
}

/// The steps of a run.
std::int64_t steps_in(const std::filesystem::path& run) {
  std::int64_t steps = 0;
  if (!std::filesystem::exists(run)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(run))
    steps += entry.path().filename().string().starts_with("step_") ? 1 : 0;
  return steps;
}

TEST(ExportOfInt8, RefusesWhatHasNo256Numbers) {
  struct Case {
    F row;
    std::string says;
  };
  const Case cases[] = {{{1, 2, NAN, 4, 5, 6},
                         "table 't': numbers must be finite for int8, got nan in row 7, column 2"},
                        {{1, 2, 3, 4, 5, -INFINITY}, "got -inf in row 7, column 5"},
                        {{1, 3e38f, 3, 4, -3e38f, 6}, "must be less than 3.4e38 apart for int8"}};
  for (const Case& of : cases) {
    const TemporaryDirectory folder;
    save_rows(folder.path() / "run", RowType::kFloat32, of.row);
    EXPECT_THAT(refusal<ValueError>([&] {
                  jobs::export_tables(
                      export_to(TableFormat::kInt8, folder.path() / "run", folder.path() / "out"),
                      ignore);
                }),
                testing::HasSubstr(of.says));
    EXPECT_EQ(steps_in(folder.path() / "out"), 0);
  }
}

TEST(ExportOfInt8, RefusesSlots) {
  const TemporaryDirectory folder;
  save_rows(folder.path() / "run", RowType::kFloat32);
  jobs::ExportOptions options =
      export_to(TableFormat::kInt8, folder.path() / "run", folder.path() / "out");
  options.slots = true;
  EXPECT_THAT(refusal<ValueError>([&] { jobs::export_tables(options, ignore); }),
              testing::HasSubstr("slots must stay behind in int8"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
}

TEST(ExportOfInt8, ExpectsTheBytesThatItReadsAndWrites) {
  for (const auto& [type, row_bytes] :
       {std::pair(RowType::kFloat32, 24), std::pair(RowType::kBfloat16, 12)}) {
    const TemporaryDirectory folder;
    save_rows(folder.path() / "run", type);
    std::int64_t expected = 0, done = 0;
    const ByteWatch watch([&](std::int64_t more, std::int64_t now) {
      expected += more;
      done += now;
    });
    jobs::export_tables(export_to(TableFormat::kInt8, folder.path() / "run", folder.path() / "out"),
                        ignore);
    EXPECT_EQ(expected, kRows * (row_bytes + kDim + 8));
    EXPECT_GE(done, expected);
  }
}

// docs/interchange.md: half the sum of abs(weight) * scale, divided by the denominator.
TEST(ExportOfInt8, IsLookedUpWithinTheStatedError) {
  const Ids ids = {3, 7, 7, 40, 12, 0, 5};
  const std::vector<std::int64_t> splits = {0, 4, 5, 7};
  const F weights = {0.5f, -2, 1, 3, -0.25f, 1, 1};
  const Batch batch{Nested<FeatureIds>(FeatureIds(RaggedIds{splits, ids})),
                    Nested<FeatureWeights>(FeatureWeights(RaggedWeights{weights}))};
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    const TemporaryDirectory folder;
    const F rows = save_rows(folder.path() / "run", RowType::kFloat32,
                             {-300, 20, 3, 0.5f, 100, 250}, combiner);
    jobs::export_tables(export_to(TableFormat::kInt8, folder.path() / "run", folder.path() / "out"),
                        ignore);
    const auto features = one_table(RowType::kFloat32, combiner);
    ServingEmbedding exact = ServingEmbedding::open(folder.path() / "run", features);
    ServingEmbedding served = ServingEmbedding::open(folder.path() / "out", features);
    const LookupOutput want = exact(batch), got = served(batch);
    double largest = 0;
    for (std::size_t sample = 0; sample + 1 < splits.size(); ++sample) {
      double bound = 0, sum = 0, squares = 0, numbers = 0;
      for (std::int64_t i = splits[sample]; i < splits[sample + 1]; ++i) {
        const float* row = rows.data() + ids[i] * kDim;
        const auto [low, high] = std::minmax_element(row, row + kDim);
        bound += std::fabs(weights[i]) * (double{*high} - double{*low}) / 255 / 2;
        numbers += std::fabs(weights[i]) * std::max(std::fabs(*low), std::fabs(*high));
        sum += weights[i];
        squares += weights[i] * weights[i];
      }
      const double denominator = combiner == Combiner::kSum    ? 1
                                 : combiner == Combiner::kMean ? std::fabs(sum)
                                                               : std::sqrt(squares);
      bound = (bound + numbers * 1e-6) / denominator;
      for (std::int32_t c = 0; c < kDim; ++c) {
        const std::size_t at = sample * kDim + c;
        const double off = std::fabs(double{got(0).values[at]} - double{want(0).values[at]});
        EXPECT_LE(off, bound) << "sample " << sample << " column " << c;
        largest = std::max(largest, off / bound);
      }
    }
    EXPECT_GT(largest, 0.1) << "the bound says nothing";
  }
}

}  // namespace
}  // namespace embertable
