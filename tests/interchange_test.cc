// Engines whose tables went through the files of others: the same bits, and training goes on.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "apps/convert/export_tables.h"
#include "apps/convert/import_tables.h"
#include "testing/engine/saved_tables.h"
#include "testing/golden_bundles.h"

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

}  // namespace
}  // namespace embertable
