// Tables of an engine as sharded variables, without a copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/parameters.h"
#include "embertable/variables/embedding_lookup.h"
#include "testing/refusal.h"
#include "testing/tensors.h"

namespace embertable {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TablePtr kFilms = make_table(
    {.vocabulary_size = 7, .dim = 2, .initializer = Initializer::row_id(), .name = "films"});

Embedding engine_of(StrategyPtr strategy, const Optimizer& optimizer = Optimizer("adagrad", 0.1)) {
  return Embedding(Nested<FeatureConfig>(FeatureConfig{.table = kFilms}), optimizer,
                   std::move(strategy));
}

const Floats kRows = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6};

TEST(ShardedViews, HaveAComponentForEachHost) {
  Embedding engine = engine_of(make_strategy({.hosts = 3}));
  engine.build(3);
  const ShardedVariable films = engine.sharded_variable("films");
  EXPECT_EQ(films.name(), "films");
  EXPECT_EQ(films.shape(), Shape({7, 2}));
  EXPECT_THAT(films.offsets(), ElementsAre(0, 3, 5, 7));
  EXPECT_EQ(films.variables()[2].name(), "films_2");
  EXPECT_EQ(floats_of(films.value()), kRows);
  EXPECT_EQ(floats_of(embedding_lookup(films, ints({6, 0}))), (Floats{6, 6, 0, 0}));
}

TEST(ShardedViews, ShowSlotsOfBothKinds) {
  Embedding full = engine_of(make_strategy({.hosts = 2}));
  full.build(2);
  const ShardedVariable accumulators = full.sharded_variable("films/accumulators");
  EXPECT_EQ(accumulators.shape(), Shape({7, 2}));
  EXPECT_EQ(floats_of(accumulators.value()), Floats(14, 0.1f));
  Embedding row_wise = engine_of(make_strategy({.hosts = 2}), Optimizer("rowwise_adagrad", 0.1));
  row_wise.build(2);
  const std::string slot = row_wise.tables()[0].slots.at(0).name;
  EXPECT_EQ(row_wise.sharded_variable("films/" + slot).shape(), Shape({7}));
}

TEST(ShardedViews, OfAnEngineThatTrainsAreReadOnlyAndShowItsSteps) {
  Embedding engine = engine_of(make_strategy({.hosts = 1}), Optimizer("sgd", 1.0));
  engine.build(1);
  ShardedVariable films = engine.sharded_variable("films");
  EXPECT_FALSE(films.assignable());
  EXPECT_THAT(refusal<StateError>([&] {
                films.scatter_add(ints({0}), counting({1, 2}));
              }),
              HasSubstr("is read-only"));
  EXPECT_THROW(films.assign(counting({7, 2})), StateError);
  const Int64s ids = {4};
  const Floats gradient = {1, 2};
  engine.enqueue(Batch{Nested<FeatureIds>(DenseIds{ids, {}})});
  engine.dequeue();
  engine.apply_gradients(Nested<Gradient>(Gradient{.values = gradient}));
  EXPECT_EQ(floats_of(films[4]), (Floats{3, 2}));
}

TEST(ShardedViews, OfAPlainEngineAreItsTables) {
  Embedding engine = engine_of(nullptr);
  ShardedVariable films = engine.sharded_variable("films");  // builds
  ASSERT_TRUE(films.assignable());
  const TableView table = engine.embedding_tables().at(kFilms);
  EXPECT_EQ(films.variables()[0].value().data(), reinterpret_cast<const std::byte*>(table.data));
  films.scatter_update(ints({2, 5}), floats({20, 21, 50, 51}, {2, 2}));
  EXPECT_EQ(table.data[2 * table.row_stride], 20);
  Floats read(2);
  engine.read_rows("films", Int64s{5}, read);
  EXPECT_EQ(read, (Floats{50, 51}));
  films.assign(floats(Floats(14, 3), {7, 2}));
  engine.read_rows("films", Int64s{0}, read);
  EXPECT_EQ(read, (Floats{3, 3}));
  EXPECT_EQ(floats_of(engine.sharded_variable("films/accumulators").value()), Floats(14, 0.1f));
}

TEST(ShardedViews, KeepTheMemoryBeyondTheEngineAndItsStrategy) {
  const StrategyPtr strategy = make_strategy({.hosts = 2});
  std::optional<ShardedVariable> films;
  {
    Embedding engine = engine_of(strategy);
    engine.build(2);
    films = engine.sharded_variable("films");
    strategy->initialize();
    EXPECT_THROW(engine.sharded_variable("films"), StateError);
  }
  EXPECT_EQ(floats_of(films->value()), kRows);
  std::optional<Tensor> rows;
  {
    Embedding plain = engine_of(nullptr);
    rows = plain.sharded_variable("films")[Slice{1, 3}];
  }
  EXPECT_EQ(floats_of(*rows), (Floats{1, 1, 2, 2}));
}

TEST(ShardedViews, AreRefusedWhereRowsAreNotInBlocks) {
  Embedding modulo = engine_of(make_strategy({.hosts = 2, .sharding = Sharding::kMod}));
  EXPECT_THROW(modulo.sharded_variable("films"), StateError);  // not built
  modulo.build(2);
  EXPECT_EQ(refusal<StateError>([&] { modulo.sharded_variable("films"); }),
            "sharded_variable: the hosts of 'films' must own blocks of rows (div), got rows by "
            "modulo; read_rows copies them in their order");
  Embedding one_host = engine_of(make_strategy({.hosts = 1, .sharding = Sharding::kMod}));
  one_host.build(2);
  EXPECT_EQ(floats_of(one_host.sharded_variable("films").value()), kRows);
  EXPECT_THAT(refusal<KeyError>([&] { one_host.sharded_variable("books"); }),
              HasSubstr("no variable 'books'; there are 'films', 'films/accumulators'"));
}

TEST(ShardedCases, Case70_HostsBeyondTheRowsLoadZerosAndAreNotRetrieved) {
  const TablePtr three = make_table({.vocabulary_size = 3, .dim = 2, .name = "x"});
  Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = three}), Optimizer("sgd", 0.1),
                   make_strategy({.hosts = 5}));
  engine.build(5);
  const ShardedVariable made = engine.sharded_variable("x");
  ASSERT_EQ(made.variables().size(), 3u);
  EXPECT_EQ(made.variables()[2].name(), "x_2");
  const Floats zeros = {0, 0}, row = {7, 8};
  for (std::int64_t host = 0; host < 5; ++host) {
    const MatrixView tensor{host < 3 ? row : zeros, {1, 2}};
    load_parameters(engine,
                    {.algorithm = "StochasticGradientDescent",
                     .table_name = "x",
                     .num_shards = 5,
                     .shard_id = host},
                    std::span(&tensor, 1));
  }
  EXPECT_EQ(floats_of(made.value()), (Floats{7, 8, 7, 8, 7, 8}));
  const auto retrieved = retrieve_parameters(engine, {.algorithm = "StochasticGradientDescent",
                                                      .table_name = "x",
                                                      .num_shards = 5,
                                                      .shard_id = 4});
  EXPECT_EQ(retrieved[0].values, zeros);
}

}  // namespace
}  // namespace embertable
