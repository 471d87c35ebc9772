// The engine cases of gradient interception, with a tape by hand, and a training with it.
#include "embertable/tensorflow/gradient_interception.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/tensorflow/v1.h"
#include "embertable/variables/tensor.h"
#include "testing/engine/batches.h"
#include "testing/small_tape.h"

namespace embertable::v1 {
namespace {

using engine_fixture::F;
using testing::AllOf;
using testing::HasSubstr;
using Tensor = SmallTape::Tensor;
using Registry = GradientRegistry<Tensor>;

/// Table video with favorited and watched, user with friends; 2 samples.
InterleavedLayout cases_layout(std::int64_t watched_length = 0) {
  return InterleavedLayout(
      {{"video", 4}, {"user", 2}},
      {{"favorited", "video", 0}, {"watched", "video", watched_length}, {"friends", "user", 0}}, 2);
}

/// A step up to the hooked activations.
struct Step {
  explicit Step(std::int64_t watched_length = 0) : registry(cases_layout(watched_length)) {
    dummies = create_dummy_table_variables(tape, registry);
    for (std::int64_t f = 0; f < 3; ++f) {
      const Shape shape = registry.layout().feature_shape(f);
      F values;
      for (std::int64_t i = 0; i < shape.num_elements(); ++i)
        values.push_back(static_cast<float>(100 * f + i));
      raw.emplace_back(registry.layout().features()[f].name, tape.watched(values, shape));
    }
    hooked = hook_dummy_table_variables_to_activations(tape, registry, raw, dummies.variables);
  }

  const Tensor& of(std::size_t feature) const { return hooked[feature].second; }

  /// What the registry has, as numbers; "null" is an empty list.
  F kept(std::size_t table, std::size_t lookup) const {
    const auto& gradient = registry.gradients()[table][lookup];
    return gradient ? tape.values(*gradient) : F{};
  }
  Ordered<F> gradients() {
    Ordered<F> all;
    for (const auto& [feature, gradient] : get_gradients_through_dummy_table_variables(
             tape, registry, [this](std::string_view text) { log.emplace_back(text); }))
      all.emplace_back(feature, tape.values(gradient));
    return all;
  }

  SmallTape tape;
  Registry registry;
  DummyTableVariables<Tensor> dummies;
  Ordered<Tensor> raw, hooked;
  std::vector<std::string> log;
};

/// Loss of case 132: 2 * sum(watched) + sum(friends).
Tensor loss_132(Step& step) {
  return step.tape.plus(step.tape.scaled(step.tape.sum(step.of(1)), 2), step.tape.sum(step.of(2)));
}

TEST(EngineCases, Case131_DummyVariablesHaveOneNumberForEachTable) {
  SmallTape tape;
  Registry registry(cases_layout());
  const DummyTableVariables<Tensor> dummies = create_dummy_table_variables(tape, registry);
  ASSERT_EQ(dummies.variables.size(), 2U);
  EXPECT_EQ(dummies.variables[0].first, "video");
  EXPECT_EQ(dummies.variables[1].first, "user");
  for (const auto& [table, variable] : dummies.variables) EXPECT_EQ(tape.shape(variable), Shape{1});
  EXPECT_EQ(tape.names[0], "tpu_embedding_dummy_table_variable_video");
  dummies.initialize();
  EXPECT_EQ(tape.values(dummies.variables[1].second), F{0.5f});
  EXPECT_EQ(registry.gradients()[0].size(), 2U);
  EXPECT_EQ(registry.gradients()[1].size(), 1U);
  for (const auto& list : registry.gradients())
    for (const auto& gradient : list) EXPECT_FALSE(gradient);

  EXPECT_THAT(refusal<StateError>([&] { create_dummy_table_variables(tape, registry); }),
              HasSubstr("table 'video' with id 0"));
  EXPECT_EQ(tape.names.size(), 2U);
  registry.clear();
  create_dummy_table_variables(tape, registry);
  EXPECT_EQ(registry.gradients()[0].size(), 2U);
}

TEST(EngineCases, Case132_ABackwardPassLeavesItsGradientsInTheRegistry) {
  Step step;
  for (std::size_t f = 0; f < 3; ++f) {
    EXPECT_EQ(step.hooked[f].first, step.raw[f].first);
    EXPECT_EQ(step.tape.values(step.hooked[f].second), step.tape.values(step.raw[f].second));
  }
  const std::vector<Tensor> asked = {step.dummies.variables[0].second,
                                     step.dummies.variables[1].second, step.raw[1].second,
                                     step.raw[0].second};
  const auto found = step.tape.compute_gradients(loss_132(step), asked);
  EXPECT_EQ(step.kept(0, 0), F{});
  EXPECT_EQ(step.kept(0, 1), F(8, 2));
  EXPECT_EQ(step.kept(1, 0), F(4, 1));
  EXPECT_EQ(step.tape.values(*found[0]), F{0});
  EXPECT_EQ(step.tape.values(*found[1]), F{0});
  EXPECT_EQ(step.tape.values(*found[2]), F(8, 0));
  EXPECT_FALSE(found[3]);  // the loss does not depend on it
}

TEST(EngineCases, Case133_WhereSomeGradientsAreMissingThereAreZerosAndAWarning) {
  Step step;
  step.tape.backward(loss_132(step));
  EXPECT_EQ(step.gradients(),
            (Ordered<F>{{"favorited", F(8, 0)}, {"watched", F(8, 2)}, {"friends", F(4, 1)}}));
  ASSERT_EQ(step.log.size(), 1U);
  EXPECT_THAT(step.log[0], AllOf(HasSubstr("'video'"), HasSubstr("1 of 2")));
  EXPECT_EQ(step.kept(1, 0), F(4, 1));  // not cleared
}

TEST(EngineCases, Case133_ASequenceWithoutGradientHasZerosOfItsLength) {
  Step step(3);
  step.tape.backward(step.tape.plus(step.tape.sum(step.of(0)), step.tape.sum(step.of(2))));
  const auto gradients = get_gradients_through_dummy_table_variables(step.tape, step.registry);
  EXPECT_EQ(gradients[1].first, "watched");
  EXPECT_EQ(step.tape.shape(gradients[1].second), (Shape{2, 3, 4}));
  EXPECT_EQ(step.tape.values(gradients[1].second), F(24, 0));
}

TEST(EngineCases, Case134_ATableWhoseActivationsAreNotUsedIsNamed) {
  Step step;
  step.tape.backward(step.tape.sum(step.of(0)));
  EXPECT_THAT(refusal<ValueError>([&] { step.gradients(); }), HasSubstr("'user' with id 1"));
}

TEST(EngineCases, Case135_UsesOfOneActivationAddUp) {
  Step step;
  step.tape.backward(step.tape.sum(step.tape.plus(step.of(2), step.tape.scaled(step.of(2), 3))));
  EXPECT_EQ(step.kept(1, 0), F(4, 4));
}

TEST(EngineCases, Case136_ABackwardPassThatNobodyWaitsForIsRefused) {
  Step step;
  const Tensor loss = loss_132(step);
  step.registry.clear();
  EXPECT_THAT(refusal<StateError>([&] { step.tape.backward(loss); }),
              HasSubstr("'user' with id 1"));
  EXPECT_TRUE(step.registry.gradients()[1].empty());

  Step twice;
  const Tensor again = loss_132(twice);
  twice.tape.backward(again);
  EXPECT_THAT(refusal<StateError>([&] { twice.tape.backward(again); }),
              HasSubstr("'user' with id 1"));
  EXPECT_EQ(twice.kept(0, 1), F(8, 2));
  EXPECT_EQ(twice.kept(1, 0), F(4, 1));
}

TEST(GradientInterception, ALookupOutsideOfTheListIsRefused) {
  Registry registry(cases_layout());
  registry.open();
  EXPECT_THAT(refusal<StateError>([&] { registry.store(1, 1, {}); }),
              AllOf(HasSubstr("'user' with id 1"), HasSubstr("lookup_id must be < 1, got 1")));
}

TEST(EngineCases, Case137_ThroughComputeGradientsTheOrderIsThatOfTheActivations) {
  SmallTape tape;
  const Ordered<Tensor> activations = {{"watched", tape.watched(F{1, 2}, {1, 2})},
                                       {"friends", tape.watched(F{3}, {1, 1})},
                                       {"favorited", tape.watched(F{4, 5}, {1, 2})}};
  const Tensor loss =
      tape.plus(tape.half_square(activations[0].second), tape.sum(activations[2].second));
  const auto gradients = get_gradients_through_compute_gradients(tape, loss, activations);
  ASSERT_EQ(gradients.size(), 3U);
  EXPECT_EQ(gradients[0].first, "watched");
  EXPECT_EQ(tape.values(*gradients[0].second), (F{1, 2}));
  EXPECT_EQ(gradients[1].first, "friends");
  EXPECT_FALSE(gradients[1].second);
  EXPECT_EQ(tape.values(*gradients[2].second), (F{1, 1}));

  struct Short {
    std::vector<std::optional<Tensor>> compute_gradients(const Tensor&, std::span<const Tensor>) {
      return {};
    }
  } optimizer;
  EXPECT_THAT(refusal<ValueError>(
                  [&] { get_gradients_through_compute_gradients(optimizer, loss, activations); }),
              HasSubstr("3 activations, got 0"));
}

TEST(GradientInterception, NamesWhatItDoesNotKnow) {
  Step step;
  const Ordered<Tensor> stranger = {{"likes", step.raw[0].second}};
  EXPECT_THAT(refusal<KeyError>([&] {
                hook_dummy_table_variables_to_activations(step.tape, step.registry, stranger,
                                                          step.dummies.variables);
              }),
              HasSubstr("'likes'"));
  const Ordered<Tensor> without_user = {step.dummies.variables[0]};
  EXPECT_THAT(refusal<KeyError>([&] {
                hook_dummy_table_variables_to_activations(step.tape, step.registry, step.raw,
                                                          without_user);
              }),
              HasSubstr("'user'"));
}

TEST(GradientInterception, ATapeThatFailsLeavesTheRegistryClosed) {
  struct Failing : SmallTape {
    Tensor make_variable(const std::string&, const Shape&) { throw std::runtime_error("full"); }
  } tape;
  Registry registry(cases_layout());
  EXPECT_THROW(create_dummy_table_variables(tape, registry), std::runtime_error);
  EXPECT_TRUE(registry.gradients()[0].empty());
}

/// The fixture's tables by name.
TPUEmbedding by_name() {
  const auto table = [](std::int64_t rows, std::int32_t dim, Combiner combiner) {
    return TableConfig{.vocabulary_size = rows,
                       .dimension = dim,
                       .initializer = engine_fixture::counting(),
                       .combiner = combiner};
  };
  return TPUEmbedding(
      {{"video", table(8, 4, Combiner::kSum)}, {"user", table(16, 2, Combiner::kMean)}},
      {{"watched", {"video"}}, {"favorited", {"video"}}, {"friends", {"user"}}}, 2, Mode::kTraining,
      AdagradParameters{.learning_rate = 0.1});
}

/// One training step of a model whose loss is half the squares of favorited, watched and friends:
/// its gradients are the activations. Half of them go through the tape.
void train_through_tape(TPUEmbedding& engine, const engine_fixture::OwnedBatch& batch) {
  const std::vector<TPUEmbedding::RaggedFeatureData> data = {
      {{"watched", RaggedEnqueueData::from_ragged(batch.watched.ragged())},
       {"favorited", RaggedEnqueueData::from_ragged(batch.favorited.ragged())},
       {"friends", RaggedEnqueueData::from_ragged(batch.friends.ragged())}}};
  engine.enqueue(data);
  const Activations activations = engine.get_activations();

  SmallTape tape;
  Registry registry(engine.layout());
  const DummyTableVariables<Tensor> dummies = create_dummy_table_variables(tape, registry);
  Ordered<Tensor> outside;
  for (std::int64_t f = 0; f < activations.features(); ++f) {
    outside.emplace_back(
        engine.layout().features()[f].name,
        tape.constant(engine_fixture::values(activations, f), activations(f).shape));
  }
  const Ordered<Tensor> inside =
      hook_dummy_table_variables_to_activations(tape, registry, outside, dummies.variables);
  Tensor loss = tape.half_square(inside[0].second);
  for (const std::size_t f : {1U, 2U}) loss = tape.plus(loss, tape.half_square(inside[f].second));
  tape.backward(loss);
  const Ordered<Tensor> gradients = get_gradients_through_dummy_table_variables(tape, registry);
  std::vector<TPUEmbedding::FeatureGradients> sent(1);
  for (const auto& [feature, gradient] : gradients)
    sent[0][feature] = {tape.values(gradient), tape.shape(gradient)};
  engine.send_gradients(sent);
}

TEST(GradientInterception, TrainsToTheBitsOfGradientsThatAreAppliedDirectly) {
  TPUEmbedding through_tape = by_name();
  Embedding direct = engine_fixture::engine_with(
      engine_fixture::accelerator(), engine_fixture::features(), Optimizer("adagrad", 0.1));
  for (int step = 0; step < 4; ++step) {
    const engine_fixture::OwnedBatch batch(step);
    train_through_tape(through_tape, batch);
    engine_fixture::train(direct, batch.ragged(),
                          [](const Activation& a, std::int64_t, std::int32_t) {
                            return F(a.values.begin(), a.values.end());
                          });
  }
  for (const auto& [name, rows, dim] : {std::tuple{"video", 8, 4}, std::tuple{"user", 16, 2}}) {
    for (const std::string slot : {"", "/accumulators"}) {
      EXPECT_EQ(engine_fixture::variable(through_tape.engine(), name + slot, rows, dim),
                engine_fixture::variable(direct, name + slot, rows, dim))
          << name << slot;
    }
  }
}

}  // namespace
}  // namespace embertable::v1
