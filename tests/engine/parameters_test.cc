// Shards of tables and slots, loaded and retrieved.
#include "embertable/tensorflow/parameters.h"

#include <gtest/gtest.h>

#include <numeric>

#include "embertable/optimizer.h"
#include "engine/engine.h"
#include "testing/engine/saved_tables.h"

namespace embertable {
namespace {

using namespace engine_fixture;
using F = std::vector<float>;

Embedding built(StrategyPtr strategy, const Optimizer& optimizer = adagrad(),
                Nested<FeatureConfig> of = features()) {
  Embedding engine = engine_with(std::move(strategy), std::move(of), optimizer);
  engine.build(2);
  return engine;
}

ShardOperation operation(std::string algorithm, std::string table, std::int64_t num_shards = 1,
                         std::int64_t shard_id = 0) {
  ShardOperation one;
  one.algorithm = std::move(algorithm);
  one.table_name = std::move(table);
  one.num_shards = num_shards;
  one.shard_id = shard_id;
  return one;
}

std::vector<MatrixView> views(const std::vector<Matrix>& matrices) {
  std::vector<MatrixView> all;
  for (const Matrix& matrix : matrices) all.push_back({matrix.values, matrix.shape});
  return all;
}

Matrix filled(Shape shape, float value) {
  return {F(static_cast<std::size_t>(shape.num_elements()), value), shape};
}

Nested<FeatureConfig> one_table(std::int64_t rows, std::int32_t dim = 2) {
  TableConfig table = {.vocabulary_size = rows, .dim = dim, .initializer = counting()};
  table.name = "t";
  return Nested<FeatureConfig>(feature(make_table(std::move(table))));
}

/// The global rows of table "t" that a shard has, by what the counting initializer wrote in them.
std::vector<int> rows_of_shard(const Embedding& engine, std::int64_t shards, std::int64_t shard) {
  const Matrix rows =
      retrieve_parameters(engine, operation("StochasticGradientDescent", "t", shards, shard))
          .front();
  std::vector<int> ids;
  for (std::size_t i = 0; i < rows.values.size(); i += 2)
    ids.push_back(static_cast<int>(rows.values[i]) / 2);
  return ids;
}

using Shards = std::vector<std::vector<int>>;
Shards all_shards(const Embedding& engine, std::int64_t shards) {
  Shards all;
  for (std::int64_t s = 0; s < shards; ++s) all.push_back(rows_of_shard(engine, shards, s));
  return all;
}

TEST(ConfigCases, Case68_ShardsAreBlocksOrResidues) {
  const Embedding div = built(accelerator(5, 5), sgd(0.1), one_table(13));
  EXPECT_EQ(all_shards(div, 5), (Shards{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
  const Embedding mod = built(accelerator(5, 5, Sharding::kMod), sgd(0.1), one_table(13));
  EXPECT_EQ(all_shards(mod, 5), (Shards{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
  EXPECT_EQ(all_shards(div, 2), (Shards{{0, 1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}}));
}

TEST(EngineCases, Case098_EachIdHasOneHostAndOneRowThere) {
  const Shards div = all_shards(built(accelerator(5, 5), sgd(0.1), one_table(13)), 5);
  EXPECT_EQ(div[0][0], 0);
  EXPECT_EQ(div[2][2], 8);
  EXPECT_EQ(div[3][0], 9);
  EXPECT_EQ(div[4][1], 12);
  const Shards mod =
      all_shards(built(accelerator(5, 5, Sharding::kMod), sgd(0.1), one_table(13)), 5);
  EXPECT_EQ(mod[2][2], 12);
  EXPECT_EQ(mod[4][0], 4);
}

TEST(ConfigCases, Case69_RefusesShardsThatAreNot) {
  const Embedding engine = built(accelerator(), sgd(0.1), one_table(2));
  const auto refused = [&](std::int64_t shards, std::int64_t shard) {
    return refusal<ValueError>([&] { rows_of_shard(engine, shards, shard); });
  };
  EXPECT_EQ(refused(0, 0), "table 't': num_shards must be 1 <= num_shards < 2^31, got 0");
  EXPECT_EQ(refused(5, -1), "table 't': shard_id must be 0 <= shard_id < 5, got -1");
  EXPECT_EQ(refused(5, 5), "table 't': shard_id must be 0 <= shard_id < 5, got 5");
  EXPECT_EQ(refused(3, 2), "table 't': shard 2 of 3 has none of the 2 rows");
  EXPECT_EQ(refused(2, 1), "");
}

TEST(ConfigCases, Case70_ATableIsNamedOnce) {
  const Embedding engine = built(accelerator());
  ShardOperation both = operation("Adagrad", "user");
  both.table_id = 1;
  EXPECT_EQ(refusal<ValueError>([&] { retrieve_parameters(engine, both); }),
            "an operation must have one of table_id >= 0 and table_name, got 1 and 'user'");
  EXPECT_EQ(refusal<ValueError>([&] { retrieve_parameters(engine, operation("Adagrad", "")); }),
            "an operation must have one of table_id >= 0 and table_name, got -1 and ''");
  EXPECT_EQ(
      refusal<ValueError>([&] { retrieve_parameters(engine, operation("Adagrad", "users")); }),
      "table 'users': must be one of the 2 tables of the engine");
  both.table_name = "";
  EXPECT_EQ(retrieve_parameters(engine, both).front().shape, (Shape{16, 2}));
  both.table_id = 2;
  EXPECT_EQ(refusal<ValueError>([&] { retrieve_parameters(engine, both); }),
            "table id 2: must be one of the 2 tables of the engine");
}

/// All rules, hosts and cuts: what one engine has, another of other first values takes.
TEST(ConfigCases, Case71_EveryAlgorithmComesBackBitForBit) {
  for (const std::string& rule : optimizer_rules()) {
    if (rule == "frequency_estimator") continue;  // needs tables one number wide
    for (const std::int32_t hosts : {1, 2, 3}) {
      const Optimizer optimizer(rule, 0.1);
      Embedding from = built(accelerator(hosts, hosts), optimizer);
      if (rule != "none") train_once(from, hosts);
      Embedding to =
          built(accelerator(hosts, hosts, Sharding::kDiv), optimizer, constant_features(7));
      EXPECT_NE(to.digest(), from.digest());
      for (std::int64_t shard = 0; shard < hosts; ++shard) {
        const AllParameters<Matrix> all = retrieve_all_parameters(from, hosts, shard);
        AllParameters<MatrixView> given;
        given.parameters = views(all.parameters);
        for (std::size_t i = 0; i < 7; ++i) given.auxiliary[i] = views(all.auxiliary[i]);
        load_all_parameters(to, hosts, shard, given);
      }
      EXPECT_EQ(to.digest(), from.digest()) << rule << " on " << hosts;
    }
  }
}

TEST(ConfigCases, Case72_HostsWithoutRowsLoadPadding) {
  Embedding engine = built(accelerator(3, 3), sgd(0.1), one_table(2));
  const std::string before = engine.digest();
  const std::vector<Matrix> zeros = {filled({1, 2}, 0)};
  load_parameters(engine, operation("StochasticGradientDescent", "t", 3, 2), views(zeros));
  EXPECT_EQ(engine.digest(), before);
  EXPECT_EQ(all_shards(engine, 3), (Shards{{0}, {1}, {0}}));
  HostVariables variables(engine);
  variables.retrieve();
  const auto& shards = variables.variables.at("t").at("parameters");
  ASSERT_EQ(shards.size(), 2u);
  EXPECT_EQ(shards[0].name, "t_0");
  EXPECT_EQ(shards[1].matrix.values, (F{2, 3}));
}

TEST(EngineCases, Case097_TwoRowsOnFourHosts) {
  Embedding engine = built(accelerator(4, 4), sgd(0.1), one_table(2));
  const std::vector<Matrix> zeros = {filled({1, 2}, 0)};
  for (const std::int64_t host : {2, 3})
    load_parameters(engine, operation("StochasticGradientDescent", "t", 4, host), views(zeros));
  HostVariables variables(engine);
  variables.retrieve();
  EXPECT_EQ(variables.variables.at("t").at("parameters").size(), 2u);
  const std::vector<std::int64_t> ids = {1, 0}, outside = {2, 0};
  engine.enqueue(Batch{Nested<FeatureIds>(DenseIds{ids})}, {.training = false});
  EXPECT_EQ(values(engine.dequeue(), 0, 3), (F{2, 3, 0, 1}));
  EXPECT_THROW(engine.enqueue(Batch{Nested<FeatureIds>(DenseIds{outside})}, {.training = false}),
               DataError);
}

TEST(ConfigCases, Case73_RefusesTensorsThatDoNotFit) {
  Embedding engine = built(accelerator());
  const std::string before = engine.digest();
  const auto refused = [&](std::vector<Matrix> tensors) {
    return refusal<ValueError>(
        [&] { load_parameters(engine, operation("Adagrad", "user"), views(tensors)); });
  };
  const Matrix good = filled({16, 2}, 1);
  EXPECT_EQ(
      refused({good, filled({16, 3}, 1)}),
      "table 'user': accumulators, slot 0 must have shape (16, 2), got (16, 3) with 48 numbers");
  EXPECT_EQ(refused({filled({15, 2}, 1), good}),
            "table 'user': parameters must have shape (16, 2), got (15, 2) with 30 numbers");
  EXPECT_EQ(refused({filled({32}, 1), good}),
            "table 'user': parameters must have shape (16, 2), got (32) with 32 numbers");
  EXPECT_EQ(refused({good}),
            "table 'user': accumulators, slot 0 is missing: there must be 2 tensors, got 1");
  EXPECT_EQ(refused({good, good, good}),
            "table 'user': slot 1 is one too many: there must be 2 tensors, got 3");
  EXPECT_EQ(engine.digest(), before);
  EXPECT_EQ(refused({good, good}), "");
  EXPECT_EQ(row(engine, "user/accumulators", 15, 2), (F{1, 1}));
}

TEST(ConfigCases, Case74_OperationsAreOfTheAlgorithmAndOneForEachTable) {
  Embedding engine = built(accelerator(), Optimizer("adam", 0.1));
  EXPECT_EQ(refusal<ValueError>([&] { retrieve_parameters(engine, operation("Adagrad", "user")); }),
            "table 'user': its optimizer needs operations of ADAM, got one of Adagrad");
  std::vector<ShardOperation> both = {operation("ADAM", "video"), operation("ADAM", "user")};
  EXPECT_EQ(refusal<ValueError>([&] { retrieve_shard(engine, both); }),
            "one of the operations must have a config, got none");
  both[0].config = both[1].config = "a";
  EXPECT_EQ(retrieve_shard(engine, both)[1].size(), 3u);
  EXPECT_EQ(refusal<ValueError>([&] {
              retrieve_shard(engine, std::vector<ShardOperation>{both[0], both[1], both[0]});
            }),
            "table 'video': there must be one operation, got a second");
  EXPECT_EQ(refusal<KeyError>([&] { retrieve_shard(engine, std::span(both).first(1)); }),
            "table 'user', id 1: there must be one operation, got none");
  const auto with = [&](auto change) {
    std::vector<ShardOperation> changed = both;
    change(changed[1]);
    return refusal<ValueError>([&] { retrieve_shard(engine, changed); });
  };
  EXPECT_EQ(with([](ShardOperation& o) { o.config = "bb"; }),
            "operations of one shard must have equal configurations, got two of 1 and 2 bytes that "
            "differ");
  EXPECT_EQ(with([](ShardOperation& o) { o.config = ""; }), "");
  EXPECT_EQ(with([](ShardOperation& o) { o.num_shards = 2; }),
            "operations of one shard must have one num_shards, got '1' and '2'");
  EXPECT_EQ(with([](ShardOperation& o) { o.shard_id = 1; }),
            "operations of one shard must have one shard_id, got '0' and '1'");
  EXPECT_EQ(with([](ShardOperation& o) { o.device = "TPU:1"; }),
            "operations of one shard must have one device, got '' and 'TPU:1'");
}

TEST(LoadShard, ChangesNothingUnlessAllFits) {
  Embedding engine = built(accelerator());
  const std::string before = engine.digest();
  const Matrix video = filled({8, 4}, 5), user = filled({16, 2}, 6);
  ShardOperation first = operation("Adagrad", "video");
  first.config = "c";
  std::vector<LoadOperation> all = {
      {first, {{video.values, video.shape}, {video.values, video.shape}}},
      {operation("Adagrad", "user"), {{user.values, user.shape}}}};
  EXPECT_THROW(load_shard(engine, all), ValueError);
  EXPECT_EQ(engine.digest(), before);
  all[1].tensors.push_back(all[1].tensors[0]);
  load_shard(engine, all);
  EXPECT_EQ(row(engine, "video", 7, 4), (F{5, 5, 5, 5}));
  EXPECT_EQ(row(engine, "user/accumulators", 0, 2), (F{6, 6}));
}

TEST(LoadAllParameters, RefusesListsThatDoNotFitTheTables) {
  Embedding engine = built(accelerator(), sgd(0.1));
  const Matrix video = filled({8, 4}, 5), user = filled({16, 2}, 6);
  AllParameters<MatrixView> given;
  const auto refused = [&] {
    return refusal<ValueError>([&] { load_all_parameters(engine, 1, 0, given); });
  };
  EXPECT_EQ(refused(), "parameters must have one entry for each of 2 tables, got 0");
  given.parameters = {{video.values, video.shape}, {user.values, user.shape}};
  given.auxiliary[0] = {{}};
  EXPECT_EQ(refused(), "auxiliary1 must have one entry for each of 2 tables, got 1");
  given.auxiliary[0] = {{}, {user.values, user.shape}};
  EXPECT_EQ(refused(), "table 'user': slot 0 is one too many: there must be 1 tensors, got 2");
  given.auxiliary[0] = {};
  given.auxiliary[3] = {{}, {user.values, user.shape}};
  EXPECT_EQ(refused(), "table 'user': slot 2 is missing, got one after it");
  given.auxiliary[3] = {{}, {}};
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(row(engine, "user", 3, 2), (F{6, 6}));
  const AllParameters<Matrix> now = retrieve_all_parameters(engine, 1, 0);
  EXPECT_EQ(now.auxiliary[6][1].shape, (Shape{0, 0}));
}

TEST(AlgorithmName, IsThatOfTheOperations) {
  const auto name = [](const char* rule) { return algorithm_name(Optimizer(rule, 0.1)); };
  EXPECT_EQ(name("sgd"), "StochasticGradientDescent");
  EXPECT_EQ(name("adagrad"), "Adagrad");
  EXPECT_EQ(name("adagrad_momentum"), "AdagradMomentum");
  EXPECT_EQ(name("adam"), "ADAM");
  EXPECT_EQ(name("ftrl"), "FTRL");
  EXPECT_EQ(name("rms_prop"), "RMSProp");
  EXPECT_EQ(name("centered_rms_prop"), "CenteredRMSProp");
  EXPECT_EQ(name("mdl_adagrad_light"), "MDLAdagradLight");
  EXPECT_EQ(name("proximal_yogi"), "ProximalYogi");
  EXPECT_EQ(name("frequency_estimator"), "FrequencyEstimator");
}

TEST(ConfigCases, Case47_ParametersOfACallersRuleAreNotMoved) {
  CustomRule rule;
  rule.name = "mine";
  rule.function = CustomRule::Tiles([](const CustomTile&) {});
  const Embedding engine = built(accelerator(), Optimizer::custom(rule));
  EXPECT_THROW(retrieve_parameters(engine, operation("UserDefinedProgram", "user")),
               NotImplemented);
}

TEST(RetrieveParameters, NeedABuiltEngineWithAStrategy) {
  const Embedding plain = engine_with(nullptr);
  EXPECT_THROW(retrieve_parameters(plain, operation("StochasticGradientDescent", "user")),
               StateError);
  const Embedding unbuilt = engine_with(accelerator());
  EXPECT_THROW(retrieve_parameters(unbuilt, operation("StochasticGradientDescent", "user")),
               StateError);
}

TEST(EngineCases, Case108_HooksOfPlainOrUnbuiltEnginesDoNothing) {
  for (StrategyPtr strategy : {StrategyPtr(), accelerator()}) {
    Embedding engine = engine_with(strategy);
    HostVariables variables(engine);
    SaveHook hook;
    hook.before_save();
    hook.after_restore();
    hook.load = [&] { variables.load(); };
    hook.retrieve = [&] { variables.retrieve(); };
    hook.before_save();
    hook.after_restore();
    EXPECT_EQ(hook.name, "TPUEmbedding_saveable");
    EXPECT_TRUE(variables.variables.empty());
    EXPECT_FALSE(engine.built());
  }
}

TEST(HostVariables, AreCurrentRightAfterRetrieveAndTakenByLoad) {
  Embedding engine = built(accelerator(2, 2));
  HostVariables host(engine);
  EXPECT_THROW(host.load(), StateError);
  host.retrieve();
  const std::string before = engine.digest();
  train_once(engine, 2);
  EXPECT_NE(engine.digest(), before);
  host.load();
  EXPECT_EQ(engine.digest(), before);
  auto& rows = host.variables.at("video").at("parameters")[1];
  EXPECT_EQ(rows.name, "video_1");
  EXPECT_EQ(host.variables.at("user").at("accumulators")[0].name, "user/accumulators_0");
  rows.matrix.values.assign(rows.matrix.values.size(), 9);
  host.load();
  EXPECT_EQ(row(engine, "video", 4, 4), (F{9, 9, 9, 9}));
  rows.matrix.shape = {2, 8};
  EXPECT_THROW(host.load(), ValueError);
}

/// Two engines of alike tables one after the other on one strategy.
struct TwoEngines {
  StrategyPtr strategy = accelerator();
  Embedding first = built(strategy, adagrad(), constant_features(1));
  Embedding second = next();

  Embedding next() {
    strategy->initialize();
    return built(strategy, adagrad(), constant_features(2));
  }
};

TEST(EngineCases, Case100_TheFirstEngineSavesWhatTheAcceleratorHolds) {
  const TemporaryDirectory directory;
  TwoEngines engines;
  engines.first.save(directory.path());
  ServingEmbedding served = ServingEmbedding::open(directory.path());
  F rows(4);
  const std::vector<std::int64_t> ids = {7};
  served.read_rows("video", ids, rows);
  EXPECT_EQ(rows, (F{2, 2, 2, 2}));
  EXPECT_EQ(served.table("video").vocabulary_size, 8);
}

TEST(HostVariables, KnowTheStepOfTheTablesThatAreThere) {
  const TemporaryDirectory directory;
  TwoEngines engines;
  for (int i = 0; i < 3; ++i) train_once(engines.second, 1);
  engines.first.save(directory.path());
  Embedding restored = built(accelerator(), adagrad(), constant_features(1));
  EXPECT_EQ(restored.restore(directory.path()).step, 3);
  EXPECT_EQ(restored.digest(), engines.second.digest());
  engines.first.assign_step(9);
  EXPECT_EQ(engines.second.step(), 9);
}

TEST(HostVariables, OfAnEngineThatFailedAreRefusedInTheNameOfTheCall) {
  const StrategyPtr strategy = accelerator();
  const Embedding first = built(strategy, adagrad());
  strategy->initialize();
  Embedding second = built(strategy, adagrad());
  engine::engine_of(second).progress.fail_in_step("no threads today");
  const std::vector<std::int64_t> ids = {0};
  F rows(4);
  EXPECT_EQ(refusal<StateError>([&] { first.read_rows("video", ids, rows); }),
            "read_rows: the engine failed in an earlier step: no threads today");
}

TEST(ConfigCases, Case75_TheFirstEngineRetrievesWhatTheSecondLoaded) {
  TwoEngines engines;
  HostVariables host(engines.first);
  host.retrieve();
  EXPECT_EQ(host.variables.at("user").at("parameters")[0].matrix.values, F(32, 2.0f));
  EXPECT_EQ(retrieve_parameters(engines.first, operation("Adagrad", "video")).front().values,
            F(32, 2.0f));
  EXPECT_EQ(engines.first.digest(), engines.second.digest());
  EXPECT_EQ(row(engines.first, "user", 3, 2), (F{2, 2}));
  const auto data = owned(1);
  EXPECT_THROW(engines.first.enqueue(data[0].ragged()), StateError);
  EXPECT_THROW(engines.first.dequeue(), StateError);
  train_once(engines.second, 1);  // the second goes on
  EXPECT_EQ(engines.first.digest(), engines.second.digest());
}

TEST(HostVariables, SeeAPendingUpdateOfTheEngineThatIsThere) {
  const StrategyPtr strategy = accelerator();
  Embedding first = built(strategy, adagrad(), constant_features(1));
  strategy->initialize();
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding second = engine_with(strategy, constant_features(2), adagrad(), options);
  train_once(second, 1);
  const std::string flushed = first.digest();
  EXPECT_EQ(second.digest(), flushed);
  EXPECT_NE(row(first, "video", 0, 4), (F{2, 2, 2, 2}));
}

TEST(HostVariables, OfAnotherEngineMustBeAlike) {
  const StrategyPtr strategy = accelerator();
  const Embedding first = built(strategy, adagrad());
  strategy->initialize();
  EXPECT_NE(refusal<StateError>([&] { first.digest(); }).find("tables of this engine are gone"),
            std::string::npos);
  const Embedding second = built(strategy, sgd(0.1));
  EXPECT_EQ(
      refusal<StateError>([&] { first.digest(); }),
      "digest: the strategy holds the tables of another engine, and they are not alike: table "
      "0 must be 'video' of 8 rows of 4 floats, slot 'accumulators', got 'video' of 8 rows of "
      "4 floats");
  EXPECT_EQ(refusal<StateError>([&] {
              retrieve_parameters(first, operation("Adagrad", "user"));
            }).substr(0, 20),
            "retrieve_parameters:");
}

TEST(ConfigCases, Case76_TwoHostsSaveWhatOneRestores) {
  const TemporaryDirectory directory;
  Embedding two = built(accelerator(2, 2));
  train_once(two, 2);
  two.save(directory.path());
  Embedding one = built(accelerator(), adagrad(), constant_features(3));
  one.restore(directory.path());
  EXPECT_EQ(one.digest(), two.digest());
}

TEST(ConfigCases, Case77_VariablesHaveTheirNamesInBothModes) {
  for (const char* rule : {"sgd", "adagrad", "adam", "ftrl"}) {
    const Embedding accelerated = engine_with(accelerator(), features(), Optimizer(rule, 0.1));
    const Embedding plain = engine_with(nullptr, features(), Optimizer(rule, 0.1));
    const std::vector<TableInfo> ours = accelerated.tables(), theirs = plain.tables();
    for (std::size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(ours[t].name, theirs[t].name);
      std::vector<std::string> a, b;
      for (const TableInfo::Slot& slot : ours[t].slots) a.push_back(slot.name);
      for (const TableInfo::Slot& slot : theirs[t].slots) b.push_back(slot.name);
      EXPECT_EQ(a, b);
    }
  }
}

TEST(EngineCases, Case101_RestoredValuesAreOnTheAccelerator) {
  const TemporaryDirectory directory;
  built(accelerator(), adagrad(), constant_features(1)).save(directory.path());
  Embedding engine = built(accelerator(), adagrad(), constant_features(2));
  engine.restore(directory.path());
  HostVariables host(engine);
  host.retrieve();
  EXPECT_EQ(host.variables.at("video").at("parameters")[0].matrix.values, F(32, 1.0f));
}

}  // namespace
}  // namespace embertable
