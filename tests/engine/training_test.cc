// Engine cases F, G 82-84, H 90-91, I 96, 97, 99, and 142: training, gradients, order, rows by
// index. 85 and 86, of several cores: cores_test.cc. Left out: 81 (a codec of later work).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;
using D = std::vector<double>;

/// The ways in which the fixture reaches the engine. HD data gives each replica the four samples
/// twice.
enum class Kind { kRagged, kSparse, kStacked };

std::vector<Batch> batches_of(Kind kind, const std::vector<OwnedBatch>& owned,
                              const StackedBatch& stacked) {
  if (kind == Kind::kRagged) return ragged_batches(owned);
  if (kind == Kind::kSparse) return sparse_batches(owned);
  return std::vector<Batch>(owned.size(), stacked.batch());
}

/// Calls test(engine, batches, replicas) for each kind, number of replicas and hosts, and sharding.
template <class Test>
void for_every_form(const Optimizer& optimizer, Test test) {
  for (const Kind kind : {Kind::kRagged, Kind::kSparse, Kind::kStacked}) {
    for (const auto& [replicas, hosts] :
         {std::pair(1, 1), std::pair(2, 1), std::pair(2, 2), std::pair(6, 3), std::pair(4, 4)}) {
      for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
        SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + ", " +
                     std::to_string(replicas) + " replicas, " + std::to_string(hosts) + " hosts");
        Embedding engine =
            engine_with(accelerator(replicas, hosts, sharding), features(), optimizer);
        const auto data = owned(replicas);
        const StackedBatch stacked;
        test(engine, batches_of(kind, data, stacked), replicas);
      }
    }
  }
}

auto of_the_loss(std::int32_t replicas) {
  return [replicas](const Activation& activation, std::int64_t, std::int32_t) {
    return loss_gradient(activation, replicas);
  };
}

/// All but the first `trained` rows are still those of the fixture.
void expect_untouched(const Embedding& engine, std::string_view table, std::int64_t rows,
                      std::int64_t dim, std::int64_t trained) {
  const F got = variable(engine, table, rows, dim);
  for (std::int64_t i = trained * dim; i < rows * dim; ++i)
    EXPECT_EQ(got[i], static_cast<float>(i));
}

F first(F values, std::size_t n) {
  values.resize(n);
  return values;
}

TEST(EngineCases, Case067_Config80_OneStepOfSgd) {
  for_every_form(sgd(0.1),
                 [](Embedding& engine, const std::vector<Batch>& batches, std::int32_t replicas) {
                   train(engine, batches, of_the_loss(replicas));
                   expect_close(first(variable(engine, "video", 8, 4), 8),
                                {-0.8, -0.3, 0.2, 0.7, 2.8, 3.3, 3.8, 4.3});
                   expect_close(first(variable(engine, "user", 16, 2), 8),
                                {-0.2 / 3, 0.9, 2 - 0.2 / 3, 2.9, 4 - 0.2 / 3, 4.9, 5.4, 6.3});
                   expect_untouched(engine, "video", 8, 4, 2);
                   expect_untouched(engine, "user", 16, 2, 4);
                 });
}

TEST(EngineCases, Case068_Config80_OneStepOfAdagrad) {
  const Optimizer adagrad("adagrad", 0.1, {{"initial_accumulator_value", 0.1}});
  for_every_form(adagrad, [](Embedding& engine, const std::vector<Batch>& batches,
                             std::int32_t replicas) {
    train(engine, batches, of_the_loss(replicas));
    D video_accumulators = {64.1, 169.1, 324.1, 529.1, 144.1, 289.1, 484.1, 729.1};
    D user_accumulators = {0.1 + 4.0 / 9, 1.1, 0.1 + 4.0 / 9, 1.1, 0.1 + 4.0 / 9, 1.1, 36.1, 49.1};
    expect_close(
        first(variable(engine, "video", 8, 4), 8),
        {-0.0999220, 0.9000296, 1.9000154, 2.9000095, 3.9000347, 4.9000173, 5.9000103, 6.9000069});
    expect_close(
        first(variable(engine, "user", 16, 2), 8),
        {-0.0903508, 0.9046537, 1.9096492, 2.9046537, 3.9096492, 4.9046537, 5.9001386, 6.9001019});
    expect_untouched(engine, "video", 8, 4, 2);
    expect_untouched(engine, "user", 16, 2, 4);
    const F video_slots = variable(engine, "video/accumulators", 8, 4),
            user_slots = variable(engine, "user/accumulators", 16, 2);
    expect_close(first(video_slots, 8), video_accumulators);
    expect_close(first(user_slots, 8), user_accumulators);
    EXPECT_TRUE(
        std::all_of(video_slots.begin() + 8, video_slots.end(), [](float a) { return a == 0.1f; }));
    EXPECT_TRUE(
        std::all_of(user_slots.begin() + 8, user_slots.end(), [](float a) { return a == 0.1f; }));
  });
}

/// Rows of a variable from one on, within a tolerance.
struct RowsFrom {
  std::string variable;
  std::int64_t rows, width;
  D expected;
  double tolerance;
  std::int64_t first = 0;
};
F rows_of(const Embedding& engine, const RowsFrom& want) {
  const F all = variable(engine, want.variable, want.rows, want.width);
  const auto begin = all.begin() + want.first * want.width;
  return {begin, begin + static_cast<std::ptrdiff_t>(want.expected.size())};
}

/// One step of the fixture in every form.
void expect_one_step(const Optimizer& optimizer, const std::vector<RowsFrom>& expected) {
  for_every_form(optimizer,
                 [&](Embedding& engine, const std::vector<Batch>& batches, std::int32_t replicas) {
                   train(engine, batches, of_the_loss(replicas));
                   for (const RowsFrom& want : expected)
                     expect_close(rows_of(engine, want), want.expected, want.tolerance);
                   expect_untouched(engine, "video", 8, 4, 2);
                   expect_untouched(engine, "user", 16, 2, 4);
                 });
}

TEST(EngineCases, Case069_Config80_OneStepOfAdam) {
  expect_one_step(
      Optimizer("adam", 0.1),
      {{"video",
        8,
        4,
        {-0.3162276, 0.6837723, 1.6837723, 2.6837723, 3.6837723, 4.6837723, 5.6837723, 6.6837723},
        1e-4},
       {"user", 16, 2, {-0.3162263, 0.6837732}, 1e-4},
       {"user", 16, 2, {5.6837724, 6.6837724}, 1e-4, 3},
       {"user/momenta", 16, 2, {0.6, 0.7}, 1e-6, 3},
       {"video/momenta", 8, 4, {0.8, 1.3, 1.8, 2.3, 1.2, 1.7, 2.2, 2.7}, 1e-6},
       {"video/velocities", 8, 4, {0.064, 0.169, 0.324, 0.529}, 1e-4}});
}

TEST(EngineCases, Case070_Config80_OneStepOfFtrl) {
  expect_one_step(
      Optimizer("ftrl", 0.1),
      {{"video",
        8,
        4,
        {-0.0999220, 0.8757116, 1.8648844, 2.8587662, 3.7946620, 4.8070252, 5.8137753, 6.8180275},
        5e-5},
       {"user",
        16,
        2,
        {-0.0903508, 0.6031424, 1.0525064, 2.0001197, 2.1953635, 3.3970970, 5.5843491, 6.5841963},
        5e-5},
       {"video/linears", 8, 4, {8, -113.87618, -335.73100, -657.57838}, 5e-4},
       {"user/linears", 16, 2, {-335.52599, -461.36380}, 5e-4, 3}});
}

TEST(EngineCases, Case071_Config80_OneStepOfAdagradMomentum) {
  expect_one_step(
      Optimizer("adagrad_momentum", 0.1,
                {{"momentum", 0.9},
                 {"use_nesterov", true},
                 {"exponent", 3},
                 {"epsilon", 0.1},
                 {"beta2", 0.9}}),
      {{"video",
        8,
        4,
        {-0.8144651, 0.0393895, 0.9283203, 1.8366167, 3.0649988, 3.9486761, 4.8537945, 5.7725332},
        1e-3},
       {"user", 16, 2, {-0.2414138, 0.6751046}, 1e-3},
       {"user", 16, 2, {5.2629376, 6.2222113}, 1e-3, 3},
       {"video/accumulators", 8, 4, {6.4, 16.9, 32.4, 52.9}, 1e-3},
       {"video/momenta", 8, 4, {4.2866583, 5.0558445, 5.6404192, 6.1230698}, 1e-3}});
}

TEST(StepStatistics, CountsTheRowsOfASmallOneHotTable) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kSum));
  const Ids ids = {3, 1, 3, 3, 0, 1, 15, 3, 1, 0};
  engine.enqueue(batch_of(DenseIds{ids}));
  const Activations activations = engine.dequeue();
  engine.apply_gradients(Gradients(activations, filled(1)).all());
  EXPECT_EQ(engine.last_step().tables[0].unique_rows, 4);
  EXPECT_EQ(engine.last_step().tables[0].entries, 10);
}

TEST(EngineCases, Case072_InferenceChangesNothing) {
  Embedding engine = engine_with(accelerator(2), features(), Optimizer("adagrad", 0.1));
  engine.build(2);
  const std::string before = engine.digest();
  const auto data = owned(2);
  for (int i = 0; i < 3; ++i) {
    engine.enqueue(ragged_batches(data), {.training = false});
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0, 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
    EXPECT_EQ(values(activations, 1, 1), (F{0, 1, 2, 3, 4, 6, 8, 10}));
    EXPECT_EQ(engine.last_step().tables[0].unique_rows, 0);
  }
  EXPECT_EQ(engine.digest(), before);
  EXPECT_EQ(engine.step(), 0);
}

TEST(EngineCases, Case073_OnesForEveryActivation) {
  for (const std::int32_t replicas : {1, 2, 4}) {
    for (const bool sparse : {false, true}) {
      Embedding engine = engine_with(accelerator(replicas));
      const auto data = owned(replicas);
      const auto batches = sparse ? sparse_batches(data) : ragged_batches(data);
      train(engine, batches, filled(1));
      engine.enqueue(batches, {.training = false});
      const Activations after = engine.dequeue();
      const double v = 0.3 * replicas, u = 0.1 * replicas;
      expect_close(values(after, 0),
                   {-v, 1 - v, 2 - v, 3 - v, 4 - 2 * v, 6 - 2 * v, 8 - 2 * v, 10 - 2 * v});
      expect_close(values(after, 1),
                   {4 - 2 * v, 6 - 2 * v, 8 - 2 * v, 10 - 2 * v, 4 - v, 5 - v, 6 - v, 7 - v});
      expect_close(values(after, 2), {6 - u, 7 - u, 2 - u / 3, 3 - u / 3});
    }
  }
}

TEST(EngineTraining, WarnsOfRowsThatWouldStayZeros) {
  for (const char* rule : {"lamb", "partial_rowwise_lamb", "lars_sgd", "adamw"}) {
    std::vector<std::string> warnings;
    EmbeddingOptions options;
    options.log = [&](std::string_view text) { warnings.emplace_back(text); };
    const TablePtr zeros = make_table(
        {.vocabulary_size = 8, .dim = 4, .initializer = Initializer::zeros(), .name = "zeros"});
    engine_with(accelerator(), features(zeros), Optimizer(rule, 0.1), options);
    if (rule == std::string("adamw")) {
      EXPECT_THAT(warnings, testing::IsEmpty());
    } else {
      EXPECT_THAT(warnings,
                  testing::ElementsAre("table 'zeros' starts at zero, and " + std::string(rule) +
                                       " never moves a row of zeros"));
    }
  }
}

TEST(EngineCases, Case074_NullGradientsAreZeros) {
  std::vector<std::string> warnings;
  EmbeddingOptions options;
  options.log = [&](std::string_view text) { warnings.emplace_back(text); };
  Embedding engine = engine_with(accelerator(), features(), sgd(0.1), options);
  const OwnedBatch data(0);
  const Batch batch = data.ragged();
  train(engine, batch, [](const Activation& activation, std::int64_t i, std::int32_t) {
    return i == 2 ? F(activation.values.size(), 1.0f) : F();
  });
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("'0'"), HasSubstr("'1'")));
  EXPECT_EQ(engine.last_step().tables[0].unique_rows, 2);
  engine.enqueue(batch, {.training = false});
  const Activations after = engine.dequeue();
  EXPECT_EQ(values(after, 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(values(after, 1), (F{4, 6, 8, 10, 4, 5, 6, 7}));
  expect_close(values(after, 2), {5.9, 6.9, 2 - 0.1 / 3, 3 - 0.1 / 3});
}

TEST(EngineCases, Case074_NullGradientsGiveTheBitsOfZeros) {
  for (const char* rule : {"sgd", "adagrad", "rowwise_adagrad"}) {
    const auto trained = [&](bool null) {
      Embedding engine = engine_with(accelerator(2), features(), Optimizer(rule, 0.1));
      const auto data = owned(2);
      for (int i = 0; i < 2; ++i) {
        train(engine, ragged_batches(data),
              [&](const Activation& a, std::int64_t feature, std::int32_t replica) {
                if (feature == 2 || replica == 1) return F(a.values.size(), 0.7f);
                return null ? F() : F(a.values.size(), 0.0f);
              });
      }
      return engine.digest();
    };
    EXPECT_EQ(trained(true), trained(false)) << rule;
  }
}

TEST(EngineCases, Case075_Config83_NullGradientsMoveMomenta) {
  Embedding engine = engine_with(accelerator(), features(), Optimizer("adam", 0.1));
  const OwnedBatch data(0);
  train(engine, data.ragged(), filled(1));
  const F momenta = variable(engine, "video/momenta", 8, 4), rows = variable(engine, "video", 8, 4);
  train(engine, data.ragged(), [](const Activation&, std::int64_t, std::int32_t) { return F(); });
  const F later_momenta = variable(engine, "video/momenta", 8, 4),
          later_rows = variable(engine, "video", 8, 4);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(later_momenta[i], 0.9 * static_cast<double>(momenta[i]), 1e-6);
    EXPECT_NE(later_rows[i], rows[i]);
  }
  EXPECT_TRUE(std::equal(rows.begin() + 8, rows.end(), later_rows.begin() + 8));
  EXPECT_TRUE(std::equal(momenta.begin() + 8, momenta.end(), later_momenta.begin() + 8));
}

TEST(EngineCases, Case076_SequencesTrainTheirPositions) {
  for (const std::int32_t replicas : {1, 2, 4}) {
    for (const bool sparse : {false, true}) {
      Embedding engine = engine_with(accelerator(replicas), features_with(2, 2, 3));
      const auto data = owned(replicas);
      const auto batches = sparse ? sparse_batches(data) : ragged_batches(data);
      train(engine, batches, filled(1));
      engine.enqueue(batches, {.training = false});
      const Activations after = engine.dequeue();
      const double v = 0.3 * replicas, u = 0.1 * replicas;
      const D r0 = {-v, 1 - v, 2 - v, 3 - v}, r1 = {4 - v, 5 - v, 6 - v, 7 - v};
      D watched = r0, favorited = r0;
      watched.resize(8);  // padding stays 0
      watched.insert(watched.end(), r0.begin(), r0.end());
      watched.insert(watched.end(), r1.begin(), r1.end());
      favorited.insert(favorited.end(), r1.begin(), r1.end());
      favorited.insert(favorited.end(), r1.begin(), r1.end());
      favorited.resize(16);
      expect_close(values(after, 0), watched);
      expect_close(values(after, 1), favorited);
      expect_close(values(after, 2),
                   {6 - u, 7 - u, 0, 0, 0, 0, -u, 1 - u, 2 - u, 3 - u, 4 - u, 5 - u});
      for (const std::size_t i : {4u, 5u, 6u, 7u}) EXPECT_EQ(values(after, 0)[i], 0.0f);
    }
  }
}

TEST(EngineCases, Case077_CutEntriesGetNoGradient) {
  for (const bool sparse : {false, true}) {
    Embedding engine = engine_with(accelerator(), features_with(0, 0, 2));
    const OwnedBatch data(0);
    train(engine, sparse ? data.sparse() : data.ragged(), filled(1));
    EXPECT_EQ(row(engine, "user", 2, 2), (F{4, 5}));
    expect_close(row(engine, "user", 1, 2), {1.9, 2.9});
    EXPECT_EQ(engine.last_step().tables[1].unique_rows, 3);
  }
}

TEST(EngineCases, Case078_WeightedGradients) {
  const auto gradients = [](Combiner combiner, const F& weights) {
    Embedding engine = engine_with(accelerator(), one_feature(combiner), sgd(1));
    const Rows rows(Samples{{1, 3}, {2}});
    train(engine, batch_of(rows.ragged(), RaggedWeights{weights}),
          [](const Activation&, std::int64_t, std::int32_t) {
            return F{1, 2, 3, 4};
          });
    F all = variable(engine, "user", 16, 2);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i) - all[i];
    EXPECT_EQ(all[0], 0.0f);
    EXPECT_TRUE(std::all_of(all.begin() + 8, all.end(), [](float g) { return g == 0; }));
    return F(all.begin() + 2, all.begin() + 8);
  };
  const F weights = {2, 0.5f, 3};
  expect_close(gradients(Combiner::kMean, weights), {0.8, 1.6, 3, 4, 0.2, 0.4});
  expect_close(gradients(Combiner::kSqrtN, weights),
               {0.9701425, 1.9402850, 3, 4, 0.2425356, 0.4850713});
  expect_close(gradients(Combiner::kSum, weights), {2, 4, 9, 12, 0.5, 1});
  // A denominator of zero: no gradient (K-3).
  EXPECT_EQ(gradients(Combiner::kMean, {1, -1, 1}), (F{0, 0, 3, 4, 0, 0}));
  EXPECT_EQ(gradients(Combiner::kSqrtN, {0, 0, 1}), (F{0, 0, 3, 4, 0, 0}));
}

TEST(EngineCases, Case079_Config86_OneOptimizerStepForARow) {
  for (const std::int32_t hosts : {1, 2}) {
    Embedding engine = engine_with(accelerator(2, hosts), features(), Optimizer("adagrad", 0.1));
    const Rows watched(Samples{{5, 5}, {}}), favorited(Samples{{}, {5}}), friends(Samples{{}, {}});
    const Batch batch = batch_of(watched.ragged(), favorited.ragged(), friends.ragged());
    engine.enqueue(batch);  // both replicas
    const Activations activations = engine.dequeue();
    engine.apply_gradients(Gradients(activations, filled(0.5f)).all());
    expect_close(row(engine, "video/accumulators", 5, 4), D(4, 0.1 + 9));  // (2 * 3 * 0.5)^2
    EXPECT_EQ(engine.last_step().tables[0].unique_rows, 1);
    EXPECT_EQ(engine.last_step().tables[0].entries, 6);
  }
}

TEST(EngineCases, Case080_GradientsAreSummedOverReplicas) {
  for (const std::int32_t hosts : {1, 2, 4}) {
    Embedding engine = engine_with(accelerator(4, hosts), one_zero_table(3, 1), sgd(1));
    const Ids ids = {0};
    train(engine, std::vector<Batch>(4, batch_of(DenseIds{ids, {}})), filled(1));
    EXPECT_EQ(variable(engine, "t", 3, 1), (F{-4, 0, 0}));
  }
}

/// An engine of the fixture with one dequeued training batch, and gradients for it to spoil.
struct Dequeued {
  Embedding engine = engine_with(accelerator());
  OwnedBatch data{0};
  Activations activations = (engine.enqueue(data.ragged()), engine.dequeue());
  F watched = F(8, 1.0f), friends = F(4, 1.0f);
  Gradient good{watched, Shape{2, 4}}, good_friends{friends, Shape{2, 2}};

  void expect_unharmed() {
    EXPECT_EQ(row(engine, "user", 3, 2), (F{6, 7}));
    engine.apply_gradients(Nested<Gradient>::tuple({good, good, good_friends}));
    expect_close(row(engine, "user", 3, 2), {5.9, 6.9});
    expect_close(row(engine, "video", 0, 4), {-0.3, 0.7, 1.7, 2.7});
  }
};

// A number in place of an array cannot be expressed; a gradient of no shape and one value is as
// near as it gets.
TEST(EngineCases, Case082_GradientsAreArraysInTheStructureOfTheFeatures) {
  Dequeued d;
  const F number = {1};
  const Gradient bad{number, {}};
  EXPECT_THAT(refusal<ValueError>([&] {
                d.engine.apply_gradients(Nested<Gradient>::tuple({bad, bad, bad}));
              }),
              HasSubstr("'0'"));
  EXPECT_THROW(d.engine.apply_gradients(Nested<Gradient>::list({bad, bad, bad})), TypeError);
  d.expect_unharmed();
}

TEST(EngineCases, Case083_GradientsHaveTheShapeOfTheActivations) {
  Dequeued d;
  const F six(6, 1.0f);
  const auto text = [&](const Gradient& bad) {
    return refusal<ValueError>([&] {
      d.engine.apply_gradients(Nested<Gradient>::tuple({d.good, bad, d.good_friends}));
    });
  };
  EXPECT_THAT(text({six, Shape{2, 3}}),
              AllOf(HasSubstr("'1'"), HasSubstr("(2, 3)"), HasSubstr("(2, 4)")));
  EXPECT_THAT(text({d.watched, Shape{4, 2}}),
              AllOf(HasSubstr("'1'"), HasSubstr("(4, 2)"), HasSubstr("(2, 4)")));
  EXPECT_THAT(text({d.watched, Shape{8}}),
              AllOf(HasSubstr("'1'"), HasSubstr("(8)"), HasSubstr("(2, 4)")));
  EXPECT_THAT(text({six, Shape{2, 4}}), HasSubstr("'1'"));
  EXPECT_THAT(text({six, {}}), HasSubstr("'1'"));
  EXPECT_THROW(d.engine.apply_gradients(Nested<Gradient>::tuple({d.good, d.good})), ValueError);
  EXPECT_THROW(d.engine.apply_gradients(std::vector<Nested<Gradient>>{}), ValueError);
  d.expect_unharmed();
}

TEST(EngineCases, Case083_GradientsMayBeDoubles) {
  Dequeued d;
  const std::vector<double> watched(8, 1.0), friends(4, 1.0);
  d.engine.apply_gradients(Nested<Gradient>::tuple(
      {Gradient{watched, {}}, Gradient{watched, Shape{2, 4}}, Gradient{friends, {}}}));
  expect_close(row(d.engine, "user", 3, 2), {5.9, 6.9});
  expect_close(row(d.engine, "video", 1, 4), {3.7, 4.7, 5.7, 6.7});
}

TEST(EngineCases, Case084_Config79_ADynamicRateIsAskedAtEveryStep) {
  for (const auto& [replicas, hosts] : {std::pair(1, 1), std::pair(2, 1), std::pair(4, 2)}) {
    int step = 0, calls = 0;
    const Optimizer optimizer("sgd", LearningRate::dynamic([&] {
                                ++calls;
                                return std::max(0.5, 1 - 0.05 * step);
                              }));
    Embedding engine = engine_with(accelerator(replicas, hosts), one_zero_table(5, 1), optimizer);
    const Ids ids = {0};
    const std::vector<Batch> batches(replicas, batch_of(DenseIds{ids, {}}));
    const D expected = {0, -1, -1.95, -2.85, -3.7, -4.5, -5.25, -5.95, -6.6, -7.2};
    for (; step < 10; ++step) {
      const Activations activations =
          train(engine, batches, filled(1.0f / static_cast<float>(replicas)));
      for (std::int32_t r = 0; r < replicas; ++r)
        expect_close(values(activations, 0, r), {expected[step]});
    }
    EXPECT_EQ(calls, 10);
  }
}

/// Forwards of row ids[k] in step k, every gradient 1, SGD 1; then what an inference batch and
/// read_rows give of row 0.
F forwards(bool pipelined, const Ids& ids, std::int32_t hosts = 1) {
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = pipelined;
  Embedding engine = engine_with(accelerator(hosts, hosts), one_zero_table(2, 1), sgd(1), options);
  F seen;
  for (const std::int64_t id : ids) {
    const Ids one = {id};
    const Batch batch = batch_of(DenseIds{one, {}});
    const Activations activations =
        train(engine, std::vector<Batch>(hosts, batch), filled(1.0f / static_cast<float>(hosts)));
    seen.push_back(values(activations, 0)[0]);
  }
  const Ids zero = {0};
  seen.push_back(forward(engine, batch_of(DenseIds{zero, {}}))[0]);
  seen.push_back(row(engine, "t", 0, 1)[0]);
  return seen;
}

TEST(EngineCases, Case090_Config89_PipelinedForwardsAreOneStepStale) {
  const Ids zeros(5);
  for (const std::int32_t hosts : {1, 2}) {
    EXPECT_EQ(forwards(false, zeros, hosts), (F{0, -1, -2, -3, -4, -5, -5}));
    EXPECT_EQ(forwards(true, zeros, hosts), (F{0, 0, -1, -2, -3, -5, -5}));
  }
}

TEST(EngineCases, Case090_ReadingAndSavingFlush) {
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding engine = engine_with(accelerator(), one_zero_table(1, 1), sgd(1), options);
  Embedding plain = engine_with(accelerator(), one_zero_table(1, 1), sgd(1));
  const Ids ids = {0};
  for (int i = 1; i <= 3; ++i) {
    train(engine, batch_of(DenseIds{ids, {}}), filled(1));
    train(plain, batch_of(DenseIds{ids, {}}), filled(1));
    EXPECT_EQ(engine.step(), i);
    EXPECT_EQ(engine.digest(), plain.digest());
    EXPECT_EQ(row(engine, "t", 0, 1)[0], static_cast<float>(-i));
  }
  engine.assign_rows("t", Ids{0}, F{7});
  EXPECT_EQ(row(engine, "t", 0, 1)[0], 7.0f);
}

TEST(EngineCases, Case091_PipeliningHidesWhereRowsDoNotMeet) {
  const Ids alternating = {0, 1, 0, 1, 0, 1};
  EXPECT_EQ(forwards(true, alternating), forwards(false, alternating));
  EXPECT_EQ(forwards(true, alternating), (F{0, 0, -1, -1, -2, -2, -3, -3}));
}

TEST(EngineCases, Case096_InitializersSeeTheTablesOwnRows) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    std::mutex mutex;
    std::multiset<std::int64_t> filled_rows;
    std::set<std::int64_t> block_starts;
    const auto initializer =
        Initializer::function([&](const RowRange& range, std::span<float> out) {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(range.vocabulary_size, 13);
          EXPECT_EQ(static_cast<std::int64_t>(out.size()), range.rows * range.dim);
          block_starts.insert(range.first_row);
          for (std::int64_t r = 0; r < range.rows; ++r) filled_rows.insert(range.first_row + r);
          for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<float>(range.first_row * range.dim) + static_cast<float>(i);
        });
    Embedding engine =
        engine_with(accelerator(5, 5, sharding),
                    Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 13,
                                                              .dim = 3,
                                                              .initializer = initializer,
                                                              .optimizer = {},
                                                              .combiner = Combiner::kSum,
                                                              .name = "t"}))));
    engine.build(1);
    std::multiset<std::int64_t> each_once;
    for (std::int64_t r = 0; r < 13; ++r) each_once.insert(r);
    EXPECT_EQ(filled_rows, each_once);
    if (sharding == Sharding::kDiv) {
      EXPECT_EQ(block_starts, (std::set<std::int64_t>{0, 3, 6, 9, 11}));
    }
    const F rows = variable(engine, "t", 13, 3);
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], static_cast<float>(i));
  }
}

TEST(EngineCases, Case097_FewerRowsThanHosts) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    const TablePtr table = make_table({.vocabulary_size = 2,
                                       .dim = 2,
                                       .initializer = counting(),
                                       .optimizer = {},
                                       .combiner = Combiner::kSum,
                                       .name = "t"});
    Embedding engine =
        engine_with(accelerator(4, 4, sharding), Nested<FeatureConfig>(feature(table)), sgd(1));
    const Ids ids = {1, 0}, bad = {1, 2};
    EXPECT_EQ(forward(engine, batch_of(DenseIds{ids, {}})), (F{2, 3, 0, 1}));
    EXPECT_THAT(refusal<DataError>([&] {
                  engine.enqueue(batch_of(DenseIds{bad, {}}));
                }),
                HasSubstr("2"));
    EXPECT_THROW(row(engine, "t", 2, 2), IndexError);
    EXPECT_THROW(engine.assign_rows("t", Ids{3}, F{0, 0}), IndexError);
    train(engine, std::vector<Batch>(4, batch_of(DenseIds{ids, {}})), filled(0.25f));
    EXPECT_EQ(variable(engine, "t", 2, 2), (F{-1, 0, 1, 2}));
    EXPECT_EQ(engine.configuration().table_descriptor[0].vocabulary_size, 4);
  }
}

TEST(EngineCases, Case099_RowsAtTheBordersOfShards) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    const TablePtr table = make_table({.vocabulary_size = 13,
                                       .dim = 2,
                                       .initializer = counting(),
                                       .optimizer = {},
                                       .combiner = Combiner::kSum,
                                       .name = "t"});
    Embedding engine =
        engine_with(accelerator(5, 5, sharding), Nested<FeatureConfig>(feature(table)),
                    Optimizer("rowwise_adagrad", 0.1));
    engine.build(1);
    for (const std::int64_t id : {0, 3, 6, 9, 11, 12, 2, 5, 8, 10})
      EXPECT_EQ(row(engine, "t", id, 2),
                (F{static_cast<float>(2 * id), static_cast<float>(2 * id + 1)}));
    F out(6);
    engine.read_rows("t", std::vector<std::int32_t>{11, 3, 11}, out);
    EXPECT_EQ(out, (F{22, 23, 6, 7, 22, 23}));
    for (const std::int64_t id : {-1, 13}) {
      EXPECT_THROW(row(engine, "t", id, 2), IndexError);
      EXPECT_THROW(engine.assign_rows("t", Ids{0, id}, F{9, 9, 9, 9}), IndexError);
    }
    EXPECT_EQ(row(engine, "t", 0, 2), (F{0, 1}));
    EXPECT_THROW(row(engine, "u", 0, 2), KeyError);
    EXPECT_THROW(row(engine, "t/momenta", 0, 2), KeyError);
    EXPECT_THROW(row(engine, "t", 0, 3), ValueError);

    engine.assign_rows("t", Ids{9, 3, 9}, F{1, 1, 5, 6, 7, 8});
    EXPECT_EQ(row(engine, "t", 9, 2), (F{7, 8}));
    EXPECT_EQ(row(engine, "t", 3, 2), (F{5, 6}));
    engine.assign_rows("t/accumulators", Ids{12, 0}, F{4, 5});
    F slots(13);
    Ids all;
    for (std::int64_t id = 0; id < 13; ++id) all.push_back(id);
    engine.read_rows("t/accumulators", all, slots);
    EXPECT_EQ(slots, (F{5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4}));
  }
}

TEST(EngineCases, Case142_EveryRowGetsItsOwnSamplesGradients) {
  const auto table = [](const char* name) {
    return make_table({.vocabulary_size = 512,
                       .dim = 3,
                       .initializer = Initializer::constant(1),
                       .optimizer = {},
                       .combiner = Combiner::kSum,
                       .name = name});
  };
  const auto gradient = [](std::int64_t feature, std::int64_t sample) {
    return static_cast<float>(feature == 0 ? sample + 1 : -2 * sample);
  };
  Samples samples(16);
  for (std::int64_t id = 0; id < 512; ++id) samples[id % 16].push_back(id);
  const Rows rows(samples);
  const auto make = [&](const Activation& activation, std::int64_t feature, std::int32_t) {
    F values;
    for (std::size_t i = 0; i < activation.values.size(); ++i)
      values.push_back(gradient(feature, static_cast<std::int64_t>(i / 3)));
    return values;
  };
  const Batch batch{
      Nested<FeatureIds>::list({FeatureIds(rows.ragged()), FeatureIds(rows.sparse())}), {}};

  const TablePtr shared = table("shared");
  Embedding one = engine_with(
      accelerator(), Nested<FeatureConfig>::list({feature(shared), feature(shared)}), sgd(1));
  train(one, batch, make);
  Embedding two =
      engine_with(accelerator(),
                  Nested<FeatureConfig>::list({feature(table("a")), feature(table("b"))}), sgd(1));
  train(two, batch, make);
  for (std::int64_t id = 0; id < 512; ++id) {
    const float g1 = gradient(0, id % 16), g2 = gradient(1, id % 16);
    EXPECT_EQ(row(one, "shared", id, 3), F(3, 1 - g1 - g2));
    EXPECT_EQ(row(two, "a", id, 3), F(3, 1 - g1));
    EXPECT_EQ(row(two, "b", id, 3), F(3, 1 - g2));
  }
}

// the same steps through tokens and through the queue.
TEST(EngineCases, TokensGiveTheBitsOfTheQueue) {
  for (const auto& [replicas, hosts] : {std::pair(1, 1), std::pair(4, 2), std::pair(3, 3)}) {
    for (const char* rule : {"sgd", "adagrad", "rowwise_adagrad"}) {
      Embedding queued =
          engine_with(accelerator(replicas, hosts), features(), Optimizer(rule, 0.1));
      Embedding direct =
          engine_with(accelerator(replicas, hosts), features(), Optimizer(rule, 0.1));
      const auto data = owned(replicas);
      const auto batches = ragged_batches(data);
      for (int i = 0; i < 3; ++i) {
        const Activations a = train(queued, batches, of_the_loss(replicas));
        LookupResult b = direct.look_up(batches);
        EXPECT_TRUE(b.token.valid());
        for (std::int64_t f = 0; f < 3; ++f) {
          for (std::int32_t r = 0; r < replicas; ++r)
            EXPECT_EQ(values(a, f, r), values(b.activations, f, r));
        }
        direct.apply_gradients(std::move(b.token),
                               Gradients(b.activations, of_the_loss(replicas)).all());
        EXPECT_EQ(queued.digest(), direct.digest());
      }
      EXPECT_EQ(direct.step(), 3);
      EXPECT_FALSE(direct.look_up(batches, false).token.valid());
    }
  }
}

// a lookup may write to the caller's memory.
TEST(EngineCases, LookupsIntoMemoryOfTheCallerGiveTheSameBits) {
  for (const auto& [replicas, hosts] : {std::pair(1, 1), std::pair(4, 2)}) {
    Embedding lent =
        engine_with(accelerator(replicas, hosts), features(), Optimizer("adagrad", 0.1));
    Embedding direct =
        engine_with(accelerator(replicas, hosts), features(), Optimizer("adagrad", 0.1));
    const auto data = owned(replicas);
    const auto batches = ragged_batches(data);
    direct.look_up(batches, false);  // builds
    for (int i = 0; i < 3; ++i) {
      LookupResult expected = lent.look_up(batches);
      std::vector<F> memory;
      for (std::int32_t r = 0; r < replicas; ++r) {
        for (std::int64_t f = 0; f < 3; ++f)
          memory.emplace_back(values(expected.activations, f, r).size(), -1.0f);
      }
      std::vector<std::span<float>> out(memory.begin(), memory.end());
      const F before = memory[0];
      const auto into_less = [&] {
        std::vector<std::span<float>> less = out;
        less.back() = less.back().first(1);
        direct.look_up(batches, less);
      };
      EXPECT_THROW(into_less(), ValueError);
      EXPECT_THROW(direct.look_up(batches, std::span(out).first(1)), ValueError);
      EXPECT_EQ(memory[0], before);
      LookupToken token = direct.look_up(batches, out);
      for (std::int32_t r = 0; r < replicas; ++r) {
        for (std::int64_t f = 0; f < 3; ++f)
          EXPECT_EQ(memory[3 * r + f], values(expected.activations, f, r));
      }
      const Gradients gradients(expected.activations, of_the_loss(replicas));
      lent.apply_gradients(std::move(expected.token), gradients.all());
      direct.apply_gradients(std::move(token), gradients.all());
      EXPECT_EQ(lent.digest(), direct.digest());
    }
    EXPECT_EQ(direct.step(), 3);
  }
}

// tokens do not pass through the queue, and so do not disturb it.
TEST(EngineCases, TokensAndTheQueueLiveSideBySide) {
  Embedding engine = engine_with(accelerator(), one_zero_table(2, 1), sgd(1));
  const Ids zero = {0};
  const Batch batch = batch_of(DenseIds{zero, {}});
  const F one = {1};
  engine.enqueue(batch);
  LookupResult first = engine.look_up(batch);
  const Activations queued = engine.dequeue();
  LookupResult second = engine.look_up(batch);
  engine.apply_gradients(Nested<Gradient>(Gradient{one, {}}));
  EXPECT_EQ(row(engine, "t", 0, 1)[0], -1.0f);
  engine.apply_gradients(std::move(second.token), Nested<Gradient>(Gradient{one, {}}));
  engine.apply_gradients(std::move(first.token), Nested<Gradient>(Gradient{one, {}}));
  EXPECT_EQ(row(engine, "t", 0, 1)[0], -3.0f);
  EXPECT_THROW(engine.dequeue(), StateError);
  { const LookupResult dropped = engine.look_up(batch); }
  EXPECT_EQ(row(engine, "t", 0, 1)[0], -3.0f);
}

}  // namespace
}  // namespace embertable
