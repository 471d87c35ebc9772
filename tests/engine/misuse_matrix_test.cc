// Every public call of Embedding in every state that its objects have: what it says, and that the
// object goes on as if nothing had been said.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "embertable/tensorflow/sequential_scope.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/batches.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

/// The states, a letter each; the columns of the table below.
constexpr std::string_view kStates = "PUBTIFD2NXR";
// P plain, not built               U accelerated, not built
// B built                          T a training batch is queued
// I an inference batch is queued   F the queue is full
// D a training batch is dequeued   2 two are (pipelined)
// N an update is pending (pipel.)  X the engine failed in an update
// R the strategy was initialized anew

class Failing final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    if (fails) throw std::runtime_error("tired");
    for (std::int64_t i = 0; i < items; ++i) body({i, -1, 0});
  }
  bool fails = false;
};

const OwnedBatch& data() {
  static const OwnedBatch batch(0);
  return batch;
}
Batch good() { return data().ragged(); }

/// Gradients of the fixture's activations, all 0.5.
const Nested<Gradient>& half_gradients() {
  static const F eight(8, 0.5f), four(4, 0.5f);
  static const Nested<Gradient> tree =
      Nested<Gradient>::tuple({Gradient{eight, {}}, Gradient{eight, {}}, Gradient{four, {}}});
  return tree;
}

/// An object brought into a state by lawful calls.
class MisuseScene {
 public:
  MisuseScene(char state, const std::filesystem::path& start) : state_(state), start_(start) {
    EmbeddingOptions options;
    options.queue_capacity = 2;
    options.pipeline_execution_with_tensor_core = state == '2' || state == 'N';
    options.tuning = {.bucket_bytes = 16, .inline_floats = 0};
    if (state != 'P') strategy_ = make_strategy({.executor = executor_});
    engine_.emplace(features(), Optimizer("adagrad", 0.1), strategy_, options);
    if (state == 'P' || state == 'U') return;
    train();
    enter();
  }

  Embedding& engine() { return *engine_; }

  /// A lawful end of the program from any state, and a step after it. The digest of the tables
  /// then.
  std::string go_on() {
    if (state_ == 'P') return engine_->build(), engine_->digest();
    if (state_ == 'R') {  // the strategy is free for another engine
      EXPECT_THROW(engine_->digest(), StateError);
      engine_.emplace(features(), Optimizer("adagrad", 0.1), strategy_);
    }
    if (state_ == 'X') {
      executor_->fails = false;
      engine_->restore(start_);
    }
    if (engine_->built()) finish();
    train();
    return engine_->digest();
  }

 private:
  void train() {
    engine_->enqueue(good());
    engine_->dequeue();
    engine_->apply_gradients(half_gradients());
  }

  void enter() {
    const int queued = state_ == 'F' || state_ == '2' ? 2 : state_ == 'B' || state_ == 'N' ? 0 : 1;
    if (state_ != 'R')
      for (int i = 0; i < queued; ++i) engine_->enqueue(good(), {.training = state_ != 'I'});
    const int dequeued = state_ == '2' ? 2 : state_ == 'D' || state_ == 'X' ? 1 : 0;
    for (int i = 0; i < dequeued; ++i) engine_->dequeue();
    if (state_ == 'R') strategy_->initialize();
    if (state_ == 'X') {
      executor_->fails = true;
      EXPECT_THROW(engine_->apply_gradients(half_gradients()), std::runtime_error);
      executor_->fails = false;
    }
  }

  /// Gradients for all that was dequeued, then the same for all that is queued.
  void finish() {
    const auto apply_all = [&] {
      while (refusal<StateError>([&] { engine_->apply_gradients(half_gradients()); }).empty()) {
      }
    };
    apply_all();
    while (refusal<StateError>([&] { engine_->dequeue(); }).empty()) apply_all();
  }

  const char state_;
  const std::filesystem::path start_;
  const std::shared_ptr<Failing> executor_ = std::make_shared<Failing>();
  StrategyPtr strategy_;
  std::optional<Embedding> engine_;
};

/// The error's letter; '.' where nothing is thrown.
char outcome(const std::function<void()>& call) {
  try {
    call();
  } catch (const StateError&) {
    return 'S';
  } catch (const DataError&) {
    return 'D';
  } catch (const ValueError&) {
    return 'V';
  } catch (const TypeError&) {
    return 'T';
  } catch (const KeyError&) {
    return 'K';
  } catch (const IndexError&) {
    return 'O';
  } catch (const IoError&) {
    return 'E';
  }
  return '.';
}

struct Call {
  std::string name;
  std::string_view outcomes;  ///< by state
  bool keeps_state = true;    ///< also where it succeeds
  std::function<void(Embedding&)> call;
};

const Rows& outside() {
  static const Rows rows(Samples{{0}, {8}});
  return rows;
}
Batch bad_id() {
  return batch_of(data().watched.ragged(), outside().ragged(), data().friends.ragged());
}
Batch two_features() {
  const FeatureIds ids = data().watched.ragged();
  return {Nested<FeatureIds>::tuple({ids, ids}), {}};
}

std::vector<std::span<float>> outputs(std::size_t of_last) {
  static F watched(8), favorited(8), friends(4);
  return {watched, favorited, std::span(friends).first(of_last)};
}

/// Gradients of activations that do not exist.
Nested<Gradient> too_wide() {
  static const F nine(9);
  Nested<Gradient> tree = half_gradients();
  tree[2] = {nine, {}};
  return tree;
}

// P plain, Unbuilt, Built, Training queued, Inference queued, Full, Dequeued, 2 dequeued, peNding,
// X failed, Reinitialized.
std::vector<Call> calls(const TemporaryDirectory& directory, const std::filesystem::path& start) {
  using E = Embedding;
  constexpr bool kChanges = false, kKeeps = true;
  return {
      {"accelerated, built, names", "...........", kKeeps,
       [](E& e) {
         EXPECT_EQ(e.tables().size(), 2u);
         e.accelerated(), e.built(), e.output_shapes(), e.feature_config(), e.step(), e.last_step(),
             e.memory();
       }},
      {"set_verify", "...........", kKeeps,
       [](E& e) {
         e.set_verify_output_shapes_on_enqueue(false);
         e.set_verify_output_shapes_on_enqueue(true);
       }},
      //                    PUBTIFD2NXR
      {"build()", /*     */ ".V.........", kKeeps, [](E& e) { e.build(); }},
      {"build(2)", /*    */ "...........", kKeeps, [](E& e) { e.build(2); }},
      {"build(-1)", /*   */ "VV.........", kKeeps, [](E& e) { e.build(-1); }},
      {"build(shapes)", /**/ "...........", kKeeps,
       [](E& e) {
         e.build(three({2, 2}, {2, 2}, {2, 3}));
       }},
      {"build(one shape)", ".V.........", kKeeps, [](E& e) { e.build(Nested<Shape>(Shape{2})); }},
      {"embedding_tables", ".SSSSSSSSSS", kKeeps, [](E& e) { e.embedding_tables(); }},
      {"configuration", /**/ "SS.........", kKeeps, [](E& e) { e.configuration(); }},

      //                    PUBTIFD2NXR
      {"enqueue", /*     */ "S....S...SS", kChanges, [](E& e) { e.enqueue(good()); }},
      {"enqueue span", /**/ "S....S...SS", kChanges,
       [](E& e) { e.enqueue(std::vector<Batch>{good()}, {.training = false}); }},
      {"enqueue mode", /**/ "S....S...SS", kChanges,
       [](E& e) { e.enqueue(good(), {.mode_override = "inference", .name = "a"}); }},
      {"enqueue device", "S....S...SS", kChanges,
       [](E& e) { e.enqueue(good(), {.device = "TPU:0"}); }},
      {"enqueue replica", "S....S...SS", kChanges, [](E& e) { e.replica(0).enqueue(good()); }},
      {"enqueue, waits", "S....S...SS", kChanges,
       [](E& e) { e.enqueue(good(), {.timeout = std::chrono::milliseconds(5)}); }},
      {"enqueue bad id", "SDDDDSDDDSS", kKeeps, [](E& e) { e.enqueue(bad_id()); }},
      {"enqueue two features", "SVVVVVVVVSV", kKeeps, [](E& e) { e.enqueue(two_features()); }},
      {"enqueue two batches", "SVVVVVVVVSV", kKeeps,
       [](E& e) {
         e.enqueue(std::vector<Batch>{good(), good()});
       }},
      {"enqueue no mode", "SVVVVVVVVSV", kKeeps,
       [](E& e) { e.enqueue(good(), {.mode_override = "foo"}); }},
      {"enqueue no device", "SVVVVVVVVSV", kKeeps,
       [](E& e) { e.enqueue(good(), {.device = "CPU:0"}); }},
      {"enqueue timeout", "SVVVVVVVVSV", kKeeps,
       [](E& e) { e.enqueue(good(), {.timeout = std::chrono::milliseconds(-1)}); }},
      {"replica(1)", /*  */ "SVVVVVVVVVV", kKeeps, [](E& e) { e.replica(1); }},

      //                    PUBTIFD2NXR
      {"dequeue", /*     */ "SSS...SSSSS", kChanges, [](E& e) { e.dequeue(); }},
      {"dequeue, waits", "SSS...SSSSS", kChanges,
       [](E& e) { e.dequeue({.timeout = std::chrono::milliseconds(5)}); }},
      {"dequeue replica", "SSS...SSSSS", kChanges, [](E& e) { e.replica(0).dequeue(); }},
      {"dequeue into", /**/ "SSS...SSSSS", kChanges, [](E& e) { e.dequeue(outputs(4)); }},
      {"dequeue into less", "SSSVVVSSSSS", kKeeps, [](E& e) { e.dequeue(outputs(3)); }},
      {"dequeue sequential", "SSS...SSSSS", kChanges,
       [](E& e) {
         const SequentialScope scope;
         e.dequeue();
       }},

      //                    PUBTIFD2NXR
      {"apply", /*       */ "SSSSSS..SSS", kChanges,
       [](E& e) { e.apply_gradients(half_gradients()); }},
      {"apply replica", "SSSSSS..SSS", kChanges,
       [](E& e) { e.replica(0).apply_gradients(half_gradients()); }},
      {"apply too wide", "SSSSSSVVSSS", kKeeps, [](E& e) { e.apply_gradients(too_wide()); }},
      {"apply one leaf", "SSSSSSVVSSS", kKeeps,
       [](E& e) { e.apply_gradients(Nested<Gradient>(Gradient::none())); }},
      {"apply two trees", "SSSSSSVVSSS", kKeeps,
       [](E& e) {
         e.apply_gradients(std::vector<Nested<Gradient>>{half_gradients(), half_gradients()});
       }},
      {"apply no token", "SSSSSSSSSSS", kKeeps,
       [](E& e) { e.apply_gradients(LookupToken(), half_gradients()); }},
      {"look_up", /*     */ "S........SS", kChanges, [](E& e) { e.look_up(good()); }},
      {"look_up, apply", "S........SS", kChanges,
       [](E& e) { e.apply_gradients(e.look_up(good()).token, half_gradients()); }},
      {"look_up, no step", "S........SS", kChanges, [](E& e) { e.look_up(good(), false); }},
      {"look_up into", /**/ "SS.......SS", kChanges,
       [](E& e) { e.look_up(std::vector{good()}, outputs(4)); }},
      {"look_up into less", "SSVVVVVVVSS", kKeeps,
       [](E& e) { e.look_up(std::vector{good()}, outputs(3)); }},
      {"look_up bad id", "SDDDDDDDDSS", kKeeps, [](E& e) { e.look_up(bad_id()); }},

      //                    PUBTIFD2NXR
      {"gradient_sums", "SSVVVVVVVSS", kKeeps, [](E& e) { e.gradient_sums("video"); }},
      {"gradient_sums?", "SSKKKKKKKSS", kKeeps, [](E& e) { e.gradient_sums("nope"); }},
      {"read_rows", /*   */ "SS.......SS", kKeeps, [](E& e) { row(e, "video", 7, 4); }},
      {"read_rows?", /*  */ "SSKKKKKKKSS", kKeeps, [](E& e) { row(e, "nope", 7, 4); }},
      {"read_rows 8", /* */ "SSOOOOOOOSS", kKeeps, [](E& e) { row(e, "video", 8, 4); }},
      {"read_rows wide", "SSVVVVVVVSS", kKeeps, [](E& e) { row(e, "video", 7, 5); }},
      {"assign_rows", /* */ "SS.......SS", kKeeps,
       [](E& e) {
         e.assign_rows("video", Ids{7}, F{28, 29, 30, 31});
       }},
      {"assign_rows?", /**/ "SSKKKKKKKSS", kKeeps,
       [](E& e) {
         e.assign_rows("nope", Ids{7}, F{0, 0, 0, 0});
       }},
      {"assign_rows 8", "SSOOOOOOOSS", kKeeps,
       [](E& e) {
         e.assign_rows("video", Ids{0, 8}, F(8));
       }},
      {"digest", /*      */ "SS.......SS", kKeeps, [](E& e) { e.digest(); }},

      //                    PUBTIFD2NXR
      {"save", /*        */ "SS.......SS", kKeeps,
       [&directory, run = 0](E& e) mutable {
         e.save(directory.path() / ("run" + std::to_string(run++)));
       }},
      {"restore", /*     */ "......SS..S", kChanges, [start](E& e) { e.restore(start); }},
      {"restore?", /*    */ "EEEEEESSEES", kKeeps,
       [&directory](E& e) { e.restore(directory.path() / "nothing"); }},
      {"restore a table?", "KKKKKKSSKKS", kKeeps,
       [start](E& e) { e.restore(start, {.tables = {"nope"}}); }},
      {"restore one", /* */ "......SS.SS", kChanges,
       [start](E& e) { e.restore(start, {.tables = {"video"}}); }},
  };
}

TEST(EngineMisuse, EveryCallInEveryStateSaysWhatItMustAndLeavesTheRest) {
  const TemporaryDirectory directory;
  const std::filesystem::path start = directory.path() / "start";
  {
    MisuseScene first('B', start);
    first.engine().save(start);
  }
  std::map<char, std::string> undisturbed;
  for (const char state : kStates) undisturbed[state] = MisuseScene(state, start).go_on();
  for (const Call& call : calls(directory, start)) {
    ASSERT_EQ(call.outcomes.size(), kStates.size()) << call.name;
    for (std::size_t i = 0; i < kStates.size(); ++i) {
      SCOPED_TRACE(call.name + " in state " + kStates[i]);
      MisuseScene scene(kStates[i], start);
      const bool built = scene.engine().built();
      const std::int64_t steps = scene.engine().step();
      const char got = outcome([&] { call.call(scene.engine()); });
      EXPECT_EQ(got, call.outcomes[i]);
      if (got != '.') {
        EXPECT_EQ(scene.engine().built(), built);
        EXPECT_EQ(scene.engine().step(), steps);
      }
      const std::string digest = scene.go_on();
      if (got != '.' || call.keeps_state) {
        EXPECT_EQ(digest, undisturbed[kStates[i]]);
      }
    }
  }
}

}  // namespace
}  // namespace embertable
