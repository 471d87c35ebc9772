// Tables whose rows are bfloat16: what they take, how they are written and read, and that no bit
// depends on a restart. Their steps are compared in reference_test.cc, random_calls_test.cc and
// levels_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/byte_watch.h"
#include "checkpoint/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/writer.h"
#include "embertable/variables/sharded_variable.h"
#include "testing/engine/saved_tables.h"
#include "testing/slow_bfloat16.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::HasSubstr;

/// One feature on a table "t".
struct Program {
  RowType row_type = RowType::kBfloat16;
  std::int64_t rows = 11;
  std::int32_t dim = 5;
  Optimizer optimizer = adagrad();
  Initializer initializer = Initializer::uniform(-1, 1, 3);

  Nested<FeatureConfig> features() const {
    return Nested<FeatureConfig>(feature(make_table({.vocabulary_size = rows,
                                                     .dim = dim,
                                                     .initializer = initializer,
                                                     .optimizer = optimizer,
                                                     .combiner = Combiner::kSum,
                                                     .name = "t",
                                                     .row_type = row_type})));
  }
  Embedding engine(std::int32_t hosts = 1, Sharding sharding = Sharding::kDiv) const {
    return Embedding(features(), std::nullopt, accelerator(2, hosts, sharding), {.seed = 9});
  }
};

F all_rows(const Embedding& engine, const Program& of) {
  return variable(engine, "t", of.rows, of.dim);
}

F nearest(F values) {
  for (float& x : values) x = slow::nearest_bfloat16(x);
  return values;
}

/// One step with ids and gradients that depend on its number.
void train(Embedding& engine, const Program& of, std::int64_t step) {
  std::vector<Ids> ids(2);
  std::vector<Batch> batches;
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t i = 0; i < 6; ++i) ids[r].push_back((step * 7 + r * 3 + i * i) % of.rows);
    batches.push_back({Nested<FeatureIds>(FeatureIds(DenseIds{ids[r], {}})), {}});
  }
  engine.enqueue(batches);
  const Activations activations = engine.dequeue();
  engine.apply_gradients(
      Gradients(activations, [&](const Activation& activation, std::int64_t, std::int32_t replica) {
        F g(activation.values.begin(), activation.values.end());
        for (std::size_t i = 0; i < g.size(); ++i)
          g[i] = 0.25f * g[i] - 0.01f * static_cast<float>(i % 7 + replica);
        return g;
      }).all());
}

TEST(Bfloat16Rows, AreFirstValuesRoundedToNearest) {
  const Program half, full = {.row_type = RowType::kFloat32};
  Embedding a = half.engine(), b = full.engine();
  a.build(6);
  b.build(6);
  EXPECT_EQ(all_rows(a, half), nearest(all_rows(b, full)));
  EXPECT_EQ(variable(a, "t/accumulators", 11, 5), variable(b, "t/accumulators", 11, 5));
  EXPECT_EQ(a.tables()[0].row_type, RowType::kBfloat16);
}

TEST(Bfloat16Rows, AreAssignedRoundedToNearest) {
  const Program half;
  Embedding engine = half.engine(2, Sharding::kMod);
  engine.build(6);
  const F values = {1, slow::float_of(0x3f808000), slow::float_of(0x3f818000), INFINITY, NAN};
  engine.assign_rows("t", Ids{7}, values);
  F got(5);
  engine.read_rows("t", Ids{7}, got);
  EXPECT_EQ(F(got.begin(), got.begin() + 4), (F{1, 1, slow::float_of(0x3f820000), INFINITY}));
  EXPECT_TRUE(std::isnan(got[4]));
}

TEST(Bfloat16Rows, TakeHalfTheMemory) {
  for (const std::int32_t dim : {1, 33, 64}) {
    Program of = {.rows = 1 << 16, .dim = dim, .optimizer = Optimizer("sgd", 0.1)};
    std::int64_t bytes[2] = {};
    for (const RowType type : {RowType::kFloat32, RowType::kBfloat16}) {
      of.row_type = type;
      Embedding engine = of.engine();
      engine.build(6);
      bytes[static_cast<int>(type)] = engine.memory().entries[0].bytes;
    }
    EXPECT_NEAR(static_cast<double>(bytes[1]) / static_cast<double>(bytes[0]), 0.5, 0.03) << dim;
  }
}

TEST(Bfloat16Rows, GoOnAfterARestartAsIfThereWasNone) {
  OptimizerOptions by_entry;
  by_entry.use_gradient_accumulation = false;
  for (const Optimizer& optimizer :
       {adagrad(), Optimizer("adam", 0.1), Optimizer("rowwise_adagrad", 0.1), Optimizer("sgd", 0.1),
        Optimizer("sgd", 0.1, {}, by_entry)}) {
    for (const std::int32_t dim : {1, 5, 32}) {
      const Program of = {.dim = dim, .optimizer = optimizer};
      const TemporaryDirectory run;
      Embedding whole = of.engine();
      for (int step = 0; step < 4; ++step) train(whole, of, step);
      Embedding first = of.engine(2, Sharding::kMod);
      for (int step = 0; step < 2; ++step) train(first, of, step);
      first.save(run.path());
      EXPECT_EQ(digest_checkpoint(run.path()), first.digest());
      for (const bool before_build : {true, false}) {
        Embedding second = of.engine(2);
        if (!before_build) second.build(6);
        second.restore(run.path());
        for (int step = 2; step < 4; ++step) train(second, of, step);
        EXPECT_EQ(second.digest(), whole.digest()) << optimizer.to_string() << " dim " << dim;
      }
    }
  }
}

// 0.1 lies between two numbers of bfloat16. sgd with the rate 1 and gradients of -1 takes every row
// beyond the limits.
TEST(Bfloat16Rows, StayBetweenTheLimitsOfTheirOptimizer) {
  OptimizerOptions limits;
  limits.clip_weight_min = -0.3;
  limits.clip_weight_max = 0.1;
  const Program of = {.dim = 40, .optimizer = Optimizer("sgd", 1, {}, limits)};
  Embedding engine = of.engine();
  engine.build(6);
  const Ids ids = {0, 1, 2, 3, 4, 5};
  const Batch batch{Nested<FeatureIds>(FeatureIds(DenseIds{ids, {}})), {}};
  for (const float sign : {-1.0f, 1.0f}) {
    engine.enqueue(std::vector<Batch>(2, batch));
    const Activations activations = engine.dequeue();
    engine.apply_gradients(
        Gradients(activations, [&](const Activation& activation, std::int64_t, std::int32_t) {
          return F(activation.values.size(), sign);
        }).all());
    const F rows = all_rows(engine, of);
    for (std::int64_t i = 0; i < 6 * of.dim; ++i)  // the nearest within: 0x3dcc0000, 0xbe990000
      ASSERT_EQ(rows[i], sign < 0 ? 0.099609375f : -0.298828125f) << i;
  }
}

TEST(Bfloat16Rows, NeedANumberBetweenTheirLimits) {
  OptimizerOptions limits;
  limits.clip_weight_min = limits.clip_weight_max = 0.1;
  Program of = {.optimizer = Optimizer("sgd", 1, {}, limits)};
  EXPECT_THAT(refusal<ValueError>([&] { of.engine(); }),
              HasSubstr("table 't': there must be a number of bfloat16 between clip_weight_min and "
                        "clip_weight_max, got 0.1 and 0.1"));
  of.optimizer = Optimizer("sgd", 1, {}, {.clip_weight_min = 3.395e38});
  EXPECT_THAT(refusal<ValueError>([&] { of.engine(); }), HasSubstr("got 3.395e+38 and none"));
  of.row_type = RowType::kFloat32;
  EXPECT_NO_THROW(of.engine());
}

TEST(Bfloat16Rows, OfAnotherSeedOrTableAreRoundedOtherwise) {
  const Program of = {.optimizer = Optimizer("sgd", 0.001)};
  std::vector<std::string> digests;
  for (const std::uint64_t seed : {1u, 2u}) {
    Embedding engine(of.features(), std::nullopt, accelerator(2), {.seed = seed});
    engine.build(6);
    Ids ids(of.rows);
    std::iota(ids.begin(), ids.end(), 0);
    engine.assign_rows("t", ids, F(of.rows * of.dim, 1.0f));
    train(engine, of, 0);
    digests.push_back(engine.digest());
  }
  EXPECT_NE(digests[0], digests[1]);
}

TEST(Bfloat16Rows, StandInFilesAsBf16) {
  for (const std::int32_t dim : {1, 5, 32}) {  // 11 rows of 5: slots start at an odd place
    const Program of = {.dim = dim};
    const TemporaryDirectory run;
    Embedding engine = of.engine(2);
    train(engine, of, 0);
    engine.save(run.path());
    const checkpoint::Reader reader(checkpoint::local_files(), run.path());
    EXPECT_NO_THROW(reader.verify());
    EXPECT_EQ(reader.manifest().tables[0].row_type, RowType::kBfloat16);
    for (const checkpoint::FileRecord& file : reader.manifest().files) {
      EXPECT_EQ(file.tensors[0].dtype, "BF16");
      EXPECT_EQ(file.tensors[0].bytes, file.rows.count * dim * 2);
      EXPECT_EQ(file.tensors[1].dtype, "F32");
    }
    F rows(of.rows * dim);
    reader.variable("t").read(0, rows);
    EXPECT_EQ(rows, all_rows(engine, of));
    F backwards(dim * 3);
    reader.variable("t").read({1, 4, 3}, backwards.data(), dim);
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t c = 0; c < dim; ++c)
        EXPECT_EQ(backwards[i * dim + c], rows[(1 + 4 * i) * dim + c]);
  }
}

TEST(Bfloat16Rows, AreRestoredFromAndToFloat32) {
  for (const std::int32_t dim : {1, 5, 40})
    for (const std::int32_t hosts : {1, 2})
      for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod})
        for (const RowType saved : {RowType::kFloat32, RowType::kBfloat16})
          for (const bool before_build : {false, true}) {
            const Program from = {.row_type = saved, .dim = dim};
            Program to = from;
            to.row_type = saved == RowType::kFloat32 ? RowType::kBfloat16 : RowType::kFloat32;
            const TemporaryDirectory run;
            Embedding engine = from.engine(hosts, sharding);
            train(engine, from, 0);
            engine.save(run.path());
            Embedding other = to.engine(3 - hosts);
            if (!before_build) other.build(6);
            other.restore(run.path());
            other.build(6);
            EXPECT_EQ(all_rows(other, to), nearest(all_rows(engine, from)));
            EXPECT_EQ(variable(other, "t/accumulators", 11, dim),
                      variable(engine, "t/accumulators", 11, dim));
          }
}

TEST(Bfloat16Rows, GrowOnRestore) {
  const Program small;
  Program large = small;
  large.rows = 29;
  const TemporaryDirectory run;
  Embedding engine = small.engine();
  train(engine, small, 0);
  engine.save(run.path());
  Embedding grown = large.engine(2), fresh = large.engine();
  RestoreOptions options;
  options.grow = {"t"};
  grown.restore(run.path(), options);
  grown.build(6);
  fresh.build(6);
  F want = all_rows(fresh, large);
  const F kept = all_rows(engine, small);
  std::copy(kept.begin(), kept.end(), want.begin());
  EXPECT_EQ(all_rows(grown, large), want);
}

TEST(Bfloat16Rows, AreViewedAsWhatTheyAre) {
  const Program of;
  Embedding engine = of.engine();
  engine.build(6);
  const ShardedVariable view = engine.sharded_variable("t");
  EXPECT_EQ(view.dtype(), DType::kBFloat16);
  Embedding plain(of.features(), std::nullopt, nullptr);
  plain.build();
  const auto tables = plain.embedding_tables();
  const TableView& rows = tables.begin()->second;
  EXPECT_EQ(rows.data, nullptr);
  F got(5);
  plain.read_rows("t", Ids{3}, got);
  for (std::int64_t c = 0; c < 5; ++c)
    EXPECT_EQ(slow::float_of(std::uint32_t{rows.bfloat16[3 * rows.row_stride + c]} << 16), got[c]);
}

// What a save says that it will write is what its files hold of tables.
TEST(Bfloat16Rows, AreExpectedByTheirBytesInASave) {
  for (const RowType type : {RowType::kFloat32, RowType::kBfloat16}) {
    const Program of = {.row_type = type, .rows = 5000, .dim = 7};
    const TemporaryDirectory run;
    Embedding engine = of.engine(2);
    engine.build(6);
    std::int64_t expected = 0, done = 0;
    {
      const ByteWatch watch([&](std::int64_t more, std::int64_t now) {
        expected += more;
        done += now;
      });
      engine.save(run.path());
    }
    std::int64_t bytes = 0;
    const checkpoint::Reader reader(checkpoint::local_files(), run.path());
    for (const checkpoint::FileRecord& file : reader.manifest().files)
      for (const checkpoint::StoredTensor& tensor : file.tensors) bytes += tensor.bytes;
    EXPECT_EQ(expected, bytes);
    EXPECT_GE(done, expected);
  }
}

/// A run of one table of int8 rows.
void save_int8(const std::filesystem::path& run) {
  checkpoint::Manifest manifest;
  manifest.tables = {{.name = "t",
                      .vocabulary_size = 11,
                      .dim = 5,
                      .combiner = "sum",
                      .row_type = RowType::kInt8}};
  checkpoint::RowSource source{.rows = 11};
  source.fill.push_back([](std::int64_t, std::span<float> out) { std::ranges::fill(out, 1.0f); });
  checkpoint::make_directories(checkpoint::local_files(), run);
  checkpoint::save(checkpoint::OpenRun(checkpoint::local_files(), run), manifest,
                   [&](std::int64_t, std::int32_t) { return source; }, {}, {});
}

TEST(Bfloat16Rows, AreNotRestoredFromInt8) {
  const TemporaryDirectory folder;
  save_int8(folder.path() / "run");
  for (const RowType type : {RowType::kFloat32, RowType::kBfloat16})
    for (const bool built : {false, true}) {
      const Program of = {.row_type = type};
      Embedding engine = of.engine();
      if (built) engine.build(6);
      EXPECT_THAT(refusal<ValueError>([&] { engine.restore(folder.path() / "run"); }),
                  HasSubstr("must have float32 or bfloat16 rows, got int8"));
      train(engine, of, 0);  // nothing has changed
      EXPECT_EQ(engine.step(), 1);
    }
}

TEST(Bfloat16Rows, OfInt8AreNotTrained) {
  EXPECT_THAT(refusal<ValueError>(
                  [] { make_table({.vocabulary_size = 2, .dim = 4, .row_type = RowType::kInt8}); }),
              HasSubstr("row_type must be 'float32' or 'bfloat16', got 'int8'"));
  EXPECT_THAT(refusal<ValueError>([] { parse_row_type("float16"); }),
              HasSubstr("row_type must be 'float32', 'bfloat16' or 'int8', got 'float16'"));
}

}  // namespace
}  // namespace embertable
