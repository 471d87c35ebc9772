// Random engines under random calls, right and wrong ones in any order, against a model to the last
// bit: no call may leave another trace than the one it is for.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/reference_model.h"
#include "testing/executor.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

constexpr std::chrono::milliseconds kAtOnce{0};

constexpr int kCapacity = 3;
constexpr int kInputs = 3;

/// Which of the scene's inputs each replica brings.
using Choice = std::vector<int>;

/// A rate, with its binary32 as the compiler rounds it: the calling thread may flush to zero.
struct Rate {
  double value = 0.1;
  float rounded = 0.1f;
};
constexpr Rate kRates[] = {{0.1, 0.1f}, {0.5, 0.5f}, {1e-40, 1e-40f}, {0, 0}};

/// Inputs of one step with what the engine gave for them.
struct Looked {
  Choice choice;
  Activations activations;
};

class RandomCalls {
 public:
  RandomCalls(std::uint64_t seed, const SceneLimits& limits)
      : dice_(mix_seeds(seed, 1)), scene_(seed, limits), model_(scene_), engine_(make_engine()) {
    queued_.resize(scene_.replicas);
  }

  void run(int calls) {
    for (int i = 0; i < calls && !testing::Test::HasFailure(); ++i) call_something();
    check_rows();
  }

  std::string configuration() const { return configuration_; }

 private:
  struct Queued {
    int input;
    bool training;
  };
  struct Kept {
    Looked looked;
    LookupToken token;
  };

  Embedding make_engine() {
    StrategyOptions strategy;
    do {
      strategy.hosts = dice_.pick({1, 1, 1, 2, 3, 4});
    } while (scene_.replicas % strategy.hosts != 0);
    strategy.sharding = dice_.pick({Sharding::kDiv, Sharding::kMod});
    switch (dice_.between(0, 2)) {
      case 0:
        strategy.executor = make_inline_executor();
        break;
      case 1:
        strategy.executor = std::make_shared<TestExecutor>(
            static_cast<std::uint64_t>(dice_.between(0, 1 << 30)), 3);
        break;
      case 2:
        strategy.executor = make_thread_pool(2);
        break;
    }
    strategy.timeout = std::chrono::seconds(60);
    EmbeddingOptions options;
    pipelined_ = dice_.chance(50);
    options.pipeline_execution_with_tensor_core = pipelined_;
    options.queue_capacity = kCapacity;
    options.tuning = {.bucket_bytes = dice_.pick({0, 1, 300}),
                      .inline_floats = dice_.pick({0, 1 << 13})};
    options.log = [this](std::string_view) {
      if (log_throws_) throw std::runtime_error("no log today");
    };
    configuration_ = std::to_string(scene_.replicas) + " replicas, " +
                     std::to_string(strategy.hosts) + " hosts, " +
                     (pipelined_ ? "pipelined" : "not pipelined");
    const LearningRate rate = LearningRate::dynamic([this] {
      if (rate_throws_) throw std::runtime_error("no rate today");
      return rate_.value;
    });
    return scene_.engine(strategy, options, Optimizer("sgd", rate));
  }

  void call_something() {
    const unsigned int found = _mm_getcsr();
    if (dice_.chance(20)) _mm_setcsr(found | 0x8040u);  // flush to zero, as frameworks leave it
    try {
      one_of_the_calls();
    } catch (...) {
      _mm_setcsr(found);
      throw;
    }
    _mm_setcsr(found);
  }

  void one_of_the_calls() {
    const std::int64_t which = dice_.between(0, 99);
    if (which < 18) return enqueue_for_all();
    if (which < 28) return enqueue_for_one();
    if (which < 36) return enqueue_what_is_wrong();
    if (which < 54) return dequeue();
    if (which < 58) return dequeue_into_the_wrong_place();
    if (which < 76) return apply();
    if (which < 82) return apply_what_is_wrong();
    if (which < 87) return look_up();
    if (which < 94) return use_a_token();
    if (which < 97) return assign();
    check_rows();
  }

  // What the model says is possible.
  std::size_t replicas() const { return queued_.size(); }
  bool everyone_has_a_batch() const {
    return std::none_of(queued_.begin(), queued_.end(), [](const auto& q) { return q.empty(); });
  }
  bool may_dequeue() const {
    return everyone_has_a_batch() && awaiting_.size() < (pipelined_ ? 2u : 1u);
  }
  Model::Inputs inputs(const Choice& choice) const {
    Model::Inputs all;
    for (std::size_t r = 0; r < choice.size(); ++r) all.push_back(&scene_.steps[choice[r]][r]);
    return all;
  }
  Choice choose() {
    Choice choice;
    for (std::size_t r = 0; r < replicas(); ++r)
      choice.push_back(static_cast<int>(dice_.between(0, kInputs - 1)));
    return choice;
  }
  std::vector<Batch> batches(const Choice& choice) const {
    std::vector<Batch> all;
    for (std::size_t r = 0; r < choice.size(); ++r) all.push_back(scene_.batches[choice[r]][r]);
    return all;
  }

  /// Makes a call that is right or, if `why` says so, out of order.
  template <class Call>
  bool expect(bool right, const char* why, Call call) {
    try {
      call();
    } catch (const StateError& error) {
      if (right) ADD_FAILURE() << why << " was refused: " << error.what();
      return false;
    }
    if (!right) ADD_FAILURE() << why << " was not refused";
    return right;
  }
  template <class Error, class Call>
  void expect_refused(const char* what, Call call) {
    try {
      call();
      ADD_FAILURE() << what << " was not refused";
    } catch (const Error&) {
    } catch (const StateError&) {  // out of order too
    }
  }

  /// Replicas step on threads of their own now and then, but nobody will help a call of this one.
  static EnqueueOptions at_once(bool training) {
    return {.training = training, .timeout = kAtOnce};
  }

  void enqueue_for_all() {
    const Choice choice = choose();
    const bool training = dice_.chance(75);
    bool right = queued_[0].size() < kCapacity;
    for (const auto& queue : queued_) right = right && queue.size() == queued_[0].size();
    // A batch for all replicas where one of them, or more, is ahead may meet a full queue as well.
    if (!expect(right, "enqueue", [&] { engine_.enqueue(batches(choice), at_once(training)); }))
      return;
    for (std::size_t r = 0; r < replicas(); ++r) queued_[r].push_back({choice[r], training});
  }

  void enqueue_for_one() {
    const auto r = static_cast<std::size_t>(dice_.between(0, scene_.replicas - 1));
    const int input = static_cast<int>(dice_.between(0, kInputs - 1));
    const bool training = dice_.chance(75);
    bool right = queued_[r].size() < kCapacity;
    for (const auto& queue : queued_)
      right = right &&
              (queue.size() <= queued_[r].size() || queue[queued_[r].size()].training == training);
    const bool done = expect(right, "enqueue of one replica", [&] {
      engine_.replica(static_cast<std::int32_t>(r))
          .enqueue(scene_.batches[input][r], at_once(training));
    });
    if (done) queued_[r].push_back({input, training});
  }

  /// One feature's ids of one replica's batch broken.
  void enqueue_what_is_wrong() {
    std::vector<Batch> all = batches(choose());
    Batch& batch = all[dice_.between(0, scene_.replicas - 1)];
    const std::int64_t f = dice_.between(0, batch.features.size() - 1);
    Ids ids, indices;
    break_feature(batch, f, ids, indices);
    if (dice_.chance(25)) {
      expect_refused<std::invalid_argument>("a lookup of a broken batch",
                                            [&] { engine_.look_up(all, dice_.chance(50)); });
    } else {
      expect_refused<std::invalid_argument>("a broken batch",
                                            [&] { engine_.enqueue(all, at_once(true)); });
    }
  }

  void break_feature(Batch& batch, std::int64_t f, Ids& ids, Ids& indices) {
    const std::size_t table = scene_.features[f].table;
    const auto copy = [](const IntegerSpan& from, Ids& to) {
      for (std::int64_t i = 0; i < from.size(); ++i) to.push_back(from[i]);
    };
    FeatureIds& leaf = batch.features[f];
    std::visit([&](const auto& kind) { copy(kind.values, ids); }, leaf);
    const bool bad_id = !ids.empty() && !scene_.drop && dice_.chance(50);
    if (bad_id) {
      ids[0] = dice_.pick({std::int64_t{-1}, scene_.tables[table].config->vocabulary_size,
                           std::numeric_limits<std::int64_t>::max(),
                           std::numeric_limits<std::int64_t>::min()});
    }
    if (auto* dense = std::get_if<DenseIds>(&leaf)) {
      if (!bad_id) dense->shape = Shape{dense->values.size(), 2};
      dense->values = ids;
    } else if (auto* sparse = std::get_if<SparseIds>(&leaf)) {
      copy(sparse->indices, indices);
      const int rank = sparse->dense_shape.rank();
      if (bad_id) {
        indices[static_cast<std::size_t>(rank) - 1] = 0;  // within any sequence
      } else {
        ids.push_back(0);
        indices.resize(indices.size() + static_cast<std::size_t>(rank));
        indices[indices.size() - static_cast<std::size_t>(rank)] = sparse->dense_shape[0];
        if (batch.weights) (*batch.weights)[f] = {};
      }
      sparse->indices = indices;
      sparse->values = ids;
    } else {
      auto& ragged = std::get<RaggedIds>(leaf);
      copy(ragged.row_splits, indices);
      if (!bad_id) indices.back() += 1;
      ragged.row_splits = indices;
      ragged.values = ids;
    }
  }

  void take_queued(Choice& choice, bool& training) {
    for (auto& queue : queued_) {
      choice.push_back(queue.front().input);
      training = queue.front().training;
      queue.erase(queue.begin());
    }
  }

  void dequeue() {
    const bool right = may_dequeue();
    const bool inference = right && !queued_[0].front().training;
    if (inference) flush();
    std::vector<F> expected;
    Choice choice;
    bool training = false;
    Activations activations;
    const bool on_threads = right && dice_.chance(20);
    if (!expect(right, "dequeue", [&] {
          activations = on_threads ? dequeue_on_threads() : engine_.dequeue({kAtOnce});
        }))
      return;
    take_queued(choice, training);
    expected = model_.forward(inputs(choice));
    if (!on_threads) expect_activations(activations, expected, choice);
    flush();
    if (training) awaiting_.push_back({choice, activations});
  }

  /// Dequeues like one call; gives what replica 0 was given, if there is but one, else every
  /// replica's is checked here.
  Activations dequeue_on_threads() {
    std::vector<Activations> each(replicas());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < replicas(); ++r) {
      threads.emplace_back(
          [&, r] { each[r] = engine_.replica(static_cast<std::int32_t>(r)).dequeue(); });
    }
    for (std::thread& thread : threads) thread.join();
    Choice choice;
    for (const auto& queue : queued_) choice.push_back(queue.front().input);
    const std::vector<F> expected = model_.forward(inputs(choice));
    for (std::size_t r = 0; r < replicas(); ++r) {
      for (std::size_t f = 0; f < scene_.features.size(); ++f) {
        EXPECT_EQ(difference(each[r](static_cast<std::int64_t>(f)).values,
                             expected[r * scene_.features.size() + f]),
                  "")
            << "replica " << r << " on its thread, feature " << f;
      }
    }
    return each[0];
  }

  void expect_activations(const Activations& got, const std::vector<F>& expected,
                          const Choice& choice) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto f = static_cast<std::int64_t>(i % scene_.features.size());
      const auto r = static_cast<std::int32_t>(i / scene_.features.size());
      const Activation activation = got(f, r);
      EXPECT_EQ(difference(activation.values, expected[i]), "")
          << "replica " << r << ", feature " << f;
      const Input& input = (*inputs(choice)[r])[f];
      EXPECT_EQ(activation.shape, input.outputs.append(got_dim(f)));
    }
  }
  std::int64_t got_dim(std::int64_t f) const {
    return scene_.tables[scene_.features[f].table].config->dim;
  }

  void dequeue_into_the_wrong_place() {
    std::vector<F> memory(replicas() * scene_.features.size(), F(1));
    std::vector<std::span<float>> out(memory.begin(), memory.end());
    memory[0].resize(1000003);
    out[0] = memory[0];
    expect_refused<ValueError>("outputs of another size", [&] { engine_.dequeue(out, {kAtOnce}); });
  }

  /// Gradients of a step, every choice of inputs having its own.
  std::vector<F> gradients_for(const Choice& choice) {
    std::vector<F> all;
    const std::vector<F> like = model_.forward(inputs(choice));
    ++applied_;
    for (std::size_t i = 0; i < like.size(); ++i) {
      const auto f = static_cast<std::int64_t>(i % scene_.features.size());
      const auto r = static_cast<std::int32_t>(i / scene_.features.size());
      all.push_back(scene_.gradient(applied_, r, f, F(like[i].size()), 0));
    }
    return all;
  }
  std::vector<Nested<Gradient>> trees(const std::vector<F>& gradients) const {
    std::vector<Nested<Gradient>> all;
    for (std::size_t r = 0; r < replicas(); ++r) {
      std::vector<Gradient> leaves;
      for (std::size_t f = 0; f < scene_.features.size(); ++f) {
        const F& values = gradients[r * scene_.features.size() + f];
        leaves.push_back(values.empty() ? Gradient::none() : Gradient{values, {}});
      }
      all.emplace_back(structure(), std::move(leaves));
    }
    return all;
  }
  Structure structure() const {
    return Structure::list(std::vector<Structure>(scene_.features.size()));
  }

  struct Update {
    Choice choice;
    std::vector<F> gradients;
    float rate;
  };
  void update(const Update& step) { model_.update(inputs(step.choice), step.gradients, step.rate); }
  void flush() {
    if (pending_) update(*pending_);
    pending_.reset();
  }

  void apply() {
    const Choice choice = awaiting_.empty() ? choose() : awaiting_.front().choice;
    const std::vector<F> gradients = gradients_for(choice);
    rate_ = kRates[dice_.between(0, std::ssize(kRates) - 1)];
    const auto all = trees(gradients);
    const bool on_threads = !awaiting_.empty() && dice_.chance(20);
    if (!expect(!awaiting_.empty(), "apply_gradients",
                [&] { on_threads ? apply_on_threads(all) : engine_.apply_gradients(all); }))
      return;
    const Update step = {choice, gradients, rate_.rounded};
    if (!pipelined_ || awaiting_.size() > 1) {
      update(step);
    } else {
      pending_ = step;
    }
    awaiting_.erase(awaiting_.begin());
  }

  void apply_on_threads(const std::vector<Nested<Gradient>>& all) {
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < replicas(); ++r) {
      threads.emplace_back(
          [&, r] { engine_.replica(static_cast<std::int32_t>(r)).apply_gradients(all[r]); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void apply_what_is_wrong() {
    const Choice choice = awaiting_.empty() ? choose() : awaiting_.front().choice;
    std::vector<F> gradients = gradients_for(choice);
    const auto refuse = [&](const std::vector<Nested<Gradient>>& all) {
      if (!tokens_.empty() && dice_.chance(30)) {
        // The token may belong to another step than the gradients; it is refused all the same.
        engine_.apply_gradients(std::move(tokens_.back().token), all);
      } else {
        engine_.apply_gradients(all);
      }
    };
    switch (dice_.between(0, 3)) {
      case 0:
        gradients.back().resize(1000003);
        return expect_refused<ValueError>("a gradient of another size",
                                          [&] { refuse(trees(gradients)); });
      case 1: {
        auto all = trees(gradients);
        all.emplace_back(all.back());
        return expect_refused<ValueError>("gradients of one replica more", [&] { refuse(all); });
      }
      case 2: {
        rate_throws_ = true;
        if (!uses_the_rate()) break;
        expect_refused<std::runtime_error>("a rate that throws",
                                           [&] { engine_.apply_gradients(trees(gradients)); });
        break;
      }
      default:
        log_throws_ = true;
        gradients.front().clear();
        expect_refused<std::runtime_error>("a log that throws",
                                           [&] { engine_.apply_gradients(trees(gradients)); });
    }
    rate_throws_ = log_throws_ = false;
  }

  bool uses_the_rate() const {
    return std::any_of(scene_.tables.begin(), scene_.tables.end(),
                       [](const Scene::Table& t) { return t.optimizer == sgd(0.1); });
  }

  void look_up() {
    if (tokens_.size() > 3) return;
    const Choice choice = choose();
    const bool training = dice_.chance(80);
    LookupResult result = engine_.look_up(batches(choice), training);
    flush();
    expect_activations(result.activations, model_.forward(inputs(choice)), choice);
    EXPECT_EQ(result.token.valid(), training);
    if (training) tokens_.push_back({{choice, result.activations}, std::move(result.token)});
  }

  void use_a_token() {
    if (tokens_.empty()) return;
    const auto i = dice_.between(0, static_cast<std::int64_t>(tokens_.size()) - 1);
    Kept kept = std::move(tokens_[i]);
    tokens_.erase(tokens_.begin() + i);
    if (dice_.chance(25)) return;  // dropped
    const Update step = {kept.looked.choice, gradients_for(kept.looked.choice), rate_.rounded};
    engine_.apply_gradients(std::move(kept.token), trees(step.gradients));
    flush();
    update(step);
  }

  void assign() {
    if (!engine_.built()) return;
    const auto t = static_cast<std::size_t>(
        dice_.between(0, static_cast<std::int64_t>(scene_.tables.size()) - 1));
    const TableConfig& table = *scene_.tables[t].config;
    const std::int64_t id = dice_.between(0, table.vocabulary_size - 1);
    const F values(static_cast<std::size_t>(table.dim), static_cast<float>(dice_.unit()));
    EXPECT_THROW(engine_.assign_rows(*table.name, Ids{table.vocabulary_size}, values), IndexError);
    EXPECT_THROW(engine_.assign_rows("none", Ids{id}, values), KeyError);
    EXPECT_THROW(engine_.assign_rows(*table.name, Ids{id, id}, values), ValueError);
    engine_.assign_rows(*table.name, Ids{id}, values);
    flush();
    model_.assign(t, id, values);
  }

  void check_rows() {
    if (!engine_.built()) return;
    flush();
    for (std::size_t t = 0; t < scene_.tables.size(); ++t) {
      const TableConfig& table = *scene_.tables[t].config;
      Model::State& state = model_.table(t);
      const std::int64_t rows = table.vocabulary_size;
      EXPECT_EQ(difference(variable(engine_, *table.name, rows, table.dim), state.rows), "")
          << "table " << t << ", dim " << table.dim;
      for (const Model::Slot& slot : state.slots) {
        EXPECT_EQ(difference(variable(engine_, *table.name + "/" + slot.name, rows, slot.width),
                             slot.values),
                  "")
            << slot.name << " of table " << t << ", dim " << table.dim << ", "
            << scene_.tables[t].optimizer.to_string();
      }
    }
  }

  Dice dice_;
  const Scene scene_;
  Model model_;
  bool pipelined_ = false;
  bool rate_throws_ = false;
  bool log_throws_ = false;
  Rate rate_;
  int applied_ = 0;
  std::string configuration_;
  Embedding engine_;
  std::vector<std::vector<Queued>> queued_;  ///< by replica
  std::vector<Looked> awaiting_;
  std::optional<Update> pending_;
  std::vector<Kept> tokens_;
};

void run_engines(bool wild, int bfloat16 = 0) {
  const std::uint64_t engines = (kSanitized ? 25u : 150u) / (bfloat16 > 0 ? 2 : 1);
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < engines && !testing::Test::HasFailure(); ++i) {
    Dice dice(mix_seeds(seed, 3000 + i));
    const SceneLimits limits = {.rows = dice.pick({20, 60, 400}),
                                .outputs = dice.pick({4, 12, 60}),
                                .columns = 5,
                                .replicas = static_cast<std::int32_t>(dice.between(1, 4)),
                                .steps = kInputs,
                                .wild = wild,
                                .variable = dice.chance(50),
                                .any_rule = true,
                                .bfloat16 = bfloat16};
    RandomCalls calls(mix_seeds(seed, i), limits);
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i) +
                 ": " + calls.configuration());
    calls.run(120);
  }
}

TEST(EngineRandomCalls, LeaveTheTraceOfTheRightOnesAlone) { run_engines(false); }

TEST(EngineRandomCalls, WithNumbersThatAreNone) { run_engines(true); }

TEST(EngineRandomCalls, WithRowsOfBfloat16) {
  run_engines(false, 70);
  run_engines(true, 70);
}

}  // namespace
}  // namespace embertable
