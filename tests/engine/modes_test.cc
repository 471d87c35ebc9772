// Engine cases H: modes, tags and the order of updates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "embertable/tensorflow/sequential_scope.h"
#include "embertable/tensorflow/step_descriptor.h"
#include "testing/engine/batches.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;

/// Calls of the fixture for one replica, in the recorded forms.
struct Recorded {
  OwnedBatch data{0};
  Batch batch = data.ragged();
  std::vector<Activations> received;
  std::optional<Gradients> ones;

  StepDescriptor::Batches batches() {
    return [this] { return std::span<const Batch>(&batch, 1); };
  }
  StepDescriptor::Receiver receive() {
    return [this](Activations activations) { received.push_back(std::move(activations)); };
  }
  StepDescriptor::GradientTrees gradients() {
    return [this] {
      ones.emplace(received.back(), filled(1));
      return ones->all();
    };
  }
};

TEST(EngineCases, Case087_ATagTrainsIfItHasGradients) {
  Recorded calls;
  StepDescriptor call1, call2;
  call1.enqueue(calls.batches(), "call1");
  call1.dequeue(calls.receive(), "call1");
  call2.enqueue(calls.batches(), "call2", false);
  call2.dequeue(calls.receive(), "call2");
  call2.apply_gradients(calls.gradients(), "call2");
  EXPECT_FALSE(call1.trains("call1"));
  EXPECT_TRUE(call2.trains("call2"));
  EXPECT_FALSE(call2.trains("call1"));

  Embedding engine = engine_with(accelerator());
  call2.run(engine);
  EXPECT_EQ(engine.step(), 1);
  call1.run(engine);
  call1.run(engine);
  EXPECT_EQ(engine.step(), 1);
  EXPECT_EQ(values(calls.received[0], 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  for (const std::size_t run : {1u, 2u}) {
    expect_close(values(calls.received[run], 0), {-0.3, 0.7, 1.7, 2.7, 3.4, 5.4, 7.4, 9.4});
    expect_close(values(calls.received[run], 1), {3.4, 5.4, 7.4, 9.4, 3.7, 4.7, 5.7, 6.7});
    expect_close(values(calls.received[run], 2), {5.9, 6.9, 1.9666667, 2.9666667});
  }
}

TEST(EngineCases, Case087_UntaggedCallsAreNeverAltered) {
  Recorded calls;
  StepDescriptor step;
  step.enqueue(calls.batches());
  step.enqueue(calls.batches(), "", false);
  step.dequeue(calls.receive());
  step.apply_gradients(calls.gradients());
  step.dequeue(calls.receive());
  Embedding engine = engine_with(accelerator());
  step.run(engine);
  EXPECT_EQ(engine.step(), 1);
  EXPECT_THROW(engine.apply_gradients(calls.ones->all()), StateError);
  StepDescriptor lonely;  // training as recorded, although no gradients follow
  lonely.enqueue(calls.batches());
  lonely.run(engine);
  engine.dequeue();
  engine.apply_gradients(calls.ones->all());
  EXPECT_EQ(engine.step(), 2);
}

TEST(EngineCases, Case087_EachReplicaRunsTheStepOnItsOwnThread) {
  Embedding engine = engine_with(accelerator(2)), whole = engine_with(accelerator(2));
  const auto data = owned(2);
  train(whole, ragged_batches(data), filled(1));
  engine.build(2);
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Recorded calls;
      calls.batch = data[r].ragged();
      StepDescriptor step;
      step.enqueue(calls.batches(), "s", false);
      step.dequeue(calls.receive(), "s");
      step.apply_gradients(calls.gradients(), "s");
      step.run(engine.replica(r));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine.digest(), whole.digest());
}

TEST(StepDescriptor, RefusesEmptyFunctionsBeforeItRecords) {
  StepDescriptor step;
  EXPECT_EQ(refusal<ValueError>([&] { step.enqueue({}, "s"); }),
            "enqueue: batches must be a function, got none");
  EXPECT_EQ(refusal<ValueError>([&] { step.dequeue({}, "s"); }),
            "dequeue: receive must be a function, got none");
  EXPECT_EQ(refusal<ValueError>([&] { step.apply_gradients({}, "s"); }),
            "apply_gradients: gradients must be a function, got none");
  EXPECT_NO_THROW(step.check());
}

/// What a step of such calls is refused_mode with: e(nqueue), d(equeue) or a(pply) and a tag's
/// letter.
std::string refused_mode(const std::string& recorded) {
  Recorded calls;
  StepDescriptor step;
  for (std::size_t i = 0; i + 1 < recorded.size(); i += 3) {
    const std::string tag(1, recorded[i + 1]);
    if (recorded[i] == 'e') step.enqueue(calls.batches(), tag);
    if (recorded[i] == 'd') step.dequeue(calls.receive(), tag);
    if (recorded[i] == 'a') step.apply_gradients(calls.gradients(), tag);
  }
  Embedding engine = engine_with(accelerator());
  const std::string text = refusal<StateError>([&] { step.check(); });
  if (text.empty()) return text;
  EXPECT_EQ(refusal<StateError>([&] { step.run(engine); }), text);
  EXPECT_FALSE(engine.built());  // nothing was called
  return text;
}

TEST(EngineCases, Case088_ATagThatDoesNotHoldTogetherIsNamed) {
  EXPECT_THAT(refused_mode("eX eX dX"), AllOf(HasSubstr("'X'"), HasSubstr("one enqueue, got 2")));
  EXPECT_THAT(refused_mode("eY dY eX"), AllOf(HasSubstr("'X'"), HasSubstr("one dequeue, got 0")));
  EXPECT_THAT(refused_mode("dX"), AllOf(HasSubstr("'X'"), HasSubstr("one enqueue, got 0")));
  EXPECT_THAT(refused_mode("eX dX dX"), AllOf(HasSubstr("'X'"), HasSubstr("one dequeue, got 2")));
  EXPECT_THAT(refused_mode("eX dX aX aX"), AllOf(HasSubstr("'X'"), HasSubstr("apply_gradients")));
  EXPECT_THAT(refused_mode("aX"), HasSubstr("'X'"));
  EXPECT_THAT(refused_mode("dX eX"), HasSubstr("'X'"));
  EXPECT_THAT(refused_mode("eX aX dX"), HasSubstr("'X'"));
  EXPECT_THAT(refused_mode("eX eY dY dX"), AllOf(HasSubstr("'X'"), HasSubstr("'Y'")));
  EXPECT_THAT(refused_mode("eX eY dX dY aY aX"), AllOf(HasSubstr("'X'"), HasSubstr("'Y'")));
  EXPECT_EQ(refused_mode("eX eY dX aX dY aY"), "");
  EXPECT_EQ(refused_mode("eX dX eY dY aY"), "");
}

TEST(EngineCases, Case089_ModesByName) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch data(0);
  const Batch batch = data.ragged();
  for (const char* unknown : {"backward_pass_only", "foo", "TRAIN", " train"}) {
    EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(batch, {.mode_override = unknown}); }),
                HasSubstr("'" + std::string(unknown) + "'"));
    EXPECT_THROW(engine.replica(0).enqueue(batch, {.mode_override = unknown}), ValueError);
  }
  EXPECT_FALSE(engine.built());
  std::int64_t steps = 0;
  for (const bool training : {false, true}) {
    for (const char* mode : {"train", "training", "unspecified", "inference", ""}) {
      const EnqueueOptions options = {.training = training, .mode_override = mode};
      if (steps % 2 == 0) {
        engine.enqueue(batch, options);
      } else {
        engine.replica(0).enqueue(batch, options);
      }
      const Activations activations = engine.dequeue();
      const Gradients ones(activations, filled(1));
      const bool trains = *mode == 0 ? training : std::string(mode) != "inference";
      if (trains) {
        engine.apply_gradients(ones.all());
        EXPECT_EQ(engine.step(), ++steps);
      } else {
        EXPECT_THROW(engine.apply_gradients(ones.all()), StateError);
      }
    }
  }
}

/// One row of one zero, SGD 1, gradients 1: what each training step sees.
class Staleness {
 public:
  explicit Staleness(std::int32_t hosts = 1)
      : engine_(engine_with(accelerator(hosts, hosts), one_zero_table(1, 1), sgd(1), pipelined())),
        hosts_(hosts) {}
  float step() {
    const Batch batch = batch_of(DenseIds{ids_, {}});
    const Activations activations = train(engine_, std::vector<Batch>(hosts_, batch),
                                          filled(1.0f / static_cast<float>(hosts_)));
    return values(activations, 0)[0];
  }
  float row_now() { return row(engine_, "t", 0, 1)[0]; }
  Embedding& engine() { return engine_; }
  Batch batch() const { return batch_of(DenseIds{ids_, {}}); }

 private:
  static EmbeddingOptions pipelined() {
    EmbeddingOptions options;
    options.pipeline_execution_with_tensor_core = true;
    return options;
  }
  const Ids ids_ = {0};
  Embedding engine_;
  std::int32_t hosts_;
};

TEST(EngineCases, Case092_WithinASequentialScopeNothingIsStale) {
  for (const std::int32_t hosts : {1, 2}) {
    Staleness program(hosts);
    F seen;
    for (int i = 0; i < 3; ++i) seen.push_back(program.step());
    {
      const SequentialScope scope;
      for (int i = 0; i < 3; ++i) seen.push_back(program.step());
    }
    for (int i = 0; i < 3; ++i) seen.push_back(program.step());
    EXPECT_EQ(seen, (F{0, 0, -1, /**/ -3, -4, -5, /**/ -6, -6, -7}));
    EXPECT_EQ(program.row_now(), -9);
  }
}

TEST(EngineCases, Case092_ScopesNestAndAreOfTheirThread) {
  EXPECT_FALSE(SequentialScope::active());
  {
    const SequentialScope outer;
    {
      const SequentialScope inner;
      EXPECT_TRUE(SequentialScope::active());
    }
    EXPECT_TRUE(SequentialScope::active());
    std::thread([] {
      EXPECT_FALSE(SequentialScope::active());
      const SequentialScope own;
      EXPECT_TRUE(SequentialScope::active());
    }).join();
    try {
      const SequentialScope inner;
      throw 1;
    } catch (int) {
    }
    EXPECT_TRUE(SequentialScope::active());
  }
  EXPECT_FALSE(SequentialScope::active());
}

// The last replica to come works for all; the scope of any of them counts.
TEST(EngineCases, Case092_OneReplicasScopeIsThatOfTheStep) {
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding engine = engine_with(accelerator(2), one_zero_table(1, 1), sgd(1), options);
  engine.build(1);
  const Ids zero = {0};
  std::vector<F> seen(2);
  for (const bool scoped : {false, true, false, false}) {
    std::vector<std::thread> threads;
    for (std::int32_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        std::optional<SequentialScope> scope;
        if (scoped && r == 0) scope.emplace();
        Embedding::Replica mine = engine.replica(r);
        mine.enqueue(batch_of(DenseIds{zero, {}}));
        const Activations activations = mine.dequeue();
        seen[r].push_back(values(activations, 0)[0]);
        mine.apply_gradients(Gradients(activations, filled(0.5f))[0]);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const F& of_replica : seen) EXPECT_EQ(of_replica, (F{0, -1, -2, -2}));
}

// A sequential step is complete before another one is dequeued, whoever dequeues that.
TEST(EngineCases, Case092_ASequentialStepWaitsForNothingAndNothingOvertakesIt) {
  Staleness program;
  Embedding& engine = program.engine();
  program.step();
  engine.enqueue(program.batch());
  engine.enqueue(program.batch());
  const Activations first = engine.dequeue();  // pipelined: the update of the step before runs now
  {
    const SequentialScope scope;
    EXPECT_THROW(engine.dequeue(), StateError);
  }
  const Gradients ones(first, filled(1));
  engine.apply_gradients(ones.all());
  {
    const SequentialScope scope;
    EXPECT_EQ(values(engine.dequeue(), 0), F{-2});
  }
  engine.enqueue(program.batch());
  EXPECT_THROW(engine.dequeue(), StateError);
  engine.apply_gradients(ones.all());
  EXPECT_EQ(values(engine.dequeue(), 0), F{-3});
  engine.apply_gradients(ones.all());
  EXPECT_EQ(program.row_now(), -4);
}

/// The pipelined engine with an update pending, and what each call makes of it.
TEST(EngineModes, EveryCallButATrainingLookupSeesPendingUpdates) {
  const TemporaryDirectory directory;
  const auto after_three = [] {
    auto program = std::make_unique<Staleness>();
    for (int i = 0; i < 3; ++i) program->step();
    return program;
  };
  EXPECT_EQ(after_three()->row_now(), -3);
  auto program = after_three();
  program->engine().enqueue(program->batch(), {.training = false});
  EXPECT_EQ(values(program->engine().dequeue(), 0), F{-3});
  program = after_three();
  EXPECT_EQ(values(program->engine().look_up(program->batch(), false).activations, 0), F{-3});
  program = after_three();
  program->engine().assign_rows("t", Ids{0}, F{7});
  EXPECT_EQ(program->row_now(), 7);
  program = after_three();
  program->engine().save(directory.path());
  EXPECT_EQ(program->step(), -3);
  const std::string digest = program->engine().digest();
  program->engine().restore(directory.path());
  EXPECT_EQ(program->row_now(), -3);
  EXPECT_EQ(program->engine().step(), 3);
  EXPECT_NE(program->engine().digest(), digest);
}

TEST(EngineModes, GradientSumsAreThoseOfAPendingUpdate) {
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding engine =
      engine_with(accelerator(), one_zero_table(3, 1), Optimizer("none", 0), options);
  const Ids ids = {2, 0, 2};
  train(engine, batch_of(DenseIds{ids, {}}), filled(1));
  const GradientSumsOfTable sums = engine.gradient_sums("t");
  EXPECT_EQ(sums.step, 1);
  EXPECT_EQ(sums.ids, (Ids{0, 2}));
  EXPECT_EQ(sums.sums, (F{1, 2}));
}

}  // namespace
}  // namespace embertable
