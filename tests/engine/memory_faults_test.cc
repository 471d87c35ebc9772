// Each allocation of a call fails once. The object is then as it was before, so that the same call
// succeeds; or it has failed, says so, and a restore mends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <thread>

#include "base/random.h"
#include "testing/engine/saved_tables.h"
#include "testing/exchange/processes.h"
#include "testing/failing_allocation.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AnyOf;
using testing::HasSubstr;

/// A batch of every kind of ids: ragged, and sparse out of order with weights.
class MixedBatch {
 public:
  explicit MixedBatch(std::uint64_t seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) {
      return static_cast<std::int64_t>(random_bits(seed, 0, 0, draw++) % n);
    };
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      for (std::int64_t i = below(9); i > 0; --i) ragged_.push_back(below(kRows));
      splits_.push_back(std::ssize(ragged_));
      indices_.insert(indices_.end(), {kSamples - 1 - sample, 0});
      sparse_.push_back(below(kRows));
      weights_.push_back(0.5F + static_cast<float>(below(8)));
    }
  }
  Batch batch() const {
    return {
        Nested<FeatureIds>::list({FeatureIds(RaggedIds{splits_, ragged_}),
                                  FeatureIds(SparseIds{indices_, sparse_, {kSamples, 1}})}),
        Nested<FeatureWeights>::list({FeatureWeights(), FeatureWeights(SparseWeights{weights_})})};
  }

  static constexpr std::int64_t kSamples = 600;
  static constexpr std::int64_t kRows = 3000;

 private:
  Ids ragged_, splits_ = {0}, sparse_, indices_;
  F weights_;
};

Nested<FeatureConfig> two_tables(float start = 0.5F) {
  const auto table = [&](std::string name, std::int32_t dim, Combiner combiner) {
    return feature(make_table({.vocabulary_size = MixedBatch::kRows,
                               .dim = dim,
                               .initializer = Initializer::constant(start),
                               .optimizer = {},
                               .combiner = combiner,
                               .name = std::move(name)}));
  };
  return Nested<FeatureConfig>::list(
      {table("words", 8, Combiner::kMean), table("items", 3, Combiner::kSum)});
}

struct Form {
  std::int32_t hosts = 1;
  bool pipelined = false;
};

std::unique_ptr<Embedding> make_engine(const Form& form, float start = 0.5F) {
  StrategyOptions strategy;
  strategy.hosts = form.hosts;
  strategy.executor = make_thread_pool(2);
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = form.pipelined;
  return std::make_unique<Embedding>(two_tables(start), adagrad(), make_strategy(strategy),
                                     options);
}

/// Makes a call while an allocation may fail; returns its error, or "" if it succeeded.
std::string attempt(FailingAllocation& fault, const std::function<void()>& call) {
  try {
    fault.during(call);
    return "";
  } catch (const std::bad_alloc& error) {
    return error.what();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), AnyOf(HasSubstr("Cannot allocate memory"), HasSubstr("bad_alloc")));
    return error.what();
  } catch (const StateError& error) {
    ADD_FAILURE() << "the cause is lack of memory, but the call said: " << error.what();
    return error.what();
  }
}

/// Whether an engine says that it has failed.
bool failed(const Embedding& engine) {
  try {
    engine.digest();
    return false;
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the engine failed in"));
    return true;
  }
}

/// Calls `trial` with n = 0, 1, ... until it returns false: its calls make n allocations or fewer.
void at_each_allocation(const std::function<bool(std::int64_t n)>& trial) {
  std::int64_t n = 0;
  while (!testing::Test::HasFailure()) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    if (!trial(n)) break;
    n += kSanitized && n > 40 ? 7 : 1;
  }
  EXPECT_GT(n, 5);
}

/// Two steps of training whose allocations fail, one in each trial.
class Steps {
 public:
  explicit Steps(const Form& form, bool by_token = false) : form_(form), by_token_(by_token) {
    const auto engine = make_engine(form_);
    engine->build(MixedBatch::kSamples);
    engine->save(run_.path());
    for (std::int32_t step = 0; step < kSteps; ++step) take(*engine, batch(step), nullptr);
    expected_ = engine->digest();
  }

  void run() {
    at_each_allocation([&](std::int64_t n) { return trial(n); });
    EXPECT_GT(unharmed_, 0);
  }

 private:
  static constexpr std::int32_t kSteps = 2;

  bool trial(std::int64_t n) {
    const auto engine = make_engine(form_);
    engine->build(MixedBatch::kSamples);
    FailingAllocation fault(n);
    for (std::int32_t step = 0; step < kSteps; ++step) {
      if (take(*engine, batch(step), &fault)) continue;
      EXPECT_THROW(engine->enqueue(batch(step)), StateError);
      EXPECT_THROW(engine->save(run_.path()), StateError);
      engine->restore(run_.path());
      if (queued_) {  // what a restore leaves in the queues is not part of the repeated steps
        take_dequeued(*engine, nullptr);
        engine->restore(run_.path());
      }
      step = -1;
    }
    EXPECT_EQ(engine->digest(), expected_);
    return fault.hit();
  }

  /// Takes one step; a call that fails is made again. False if the engine has failed.
  bool take(Embedding& engine, const Batch& batch, FailingAllocation* fault) {
    return by_token_ ? take_by_token(engine, batch, fault) : take_queued(engine, batch, fault);
  }

  bool take_queued(Embedding& engine, const Batch& batch, FailingAllocation* fault) {
    queued_ = succeeds(engine, fault, [&] { engine.enqueue(batch); });
    return queued_ && take_dequeued(engine, fault);
  }

  bool take_dequeued(Embedding& engine, FailingAllocation* fault) {
    Activations activations;
    if (!succeeds(engine, fault, [&] { activations = engine.dequeue(); })) return false;
    queued_ = false;
    return with_gradients(activations, [&](std::span<const Nested<Gradient>> gradients) {
      return succeeds(engine, fault, [&] { engine.apply_gradients(gradients); });
    });
  }

  bool take_by_token(Embedding& engine, const Batch& batch, FailingAllocation* fault) {
    LookupResult result;
    return succeeds(engine, fault, [&] { result = engine.look_up(batch); }) &&
           with_gradients(result.activations, [&](std::span<const Nested<Gradient>> gradients) {
             return succeeds(engine, fault,
                             [&] { engine.apply_gradients(std::move(result.token), gradients); });
           });
  }

  template <class Call>
  static bool with_gradients(const Activations& activations, Call call) {
    const Gradients gradients(activations, filled(0.25F));
    return call(gradients.all());
  }

  bool succeeds(const Embedding& engine, FailingAllocation* fault,
                const std::function<void()>& call) {
    if (!fault) return call(), true;
    if (attempt(*fault, call).empty()) return true;
    EXPECT_TRUE(fault->hit());
    if (failed(engine)) return false;
    ++unharmed_;
    call();
    return true;
  }

  static Batch batch(std::int32_t step) {
    static const MixedBatch batches[kSteps] = {MixedBatch(1), MixedBatch(2)};
    return batches[step].batch();
  }

  const Form form_;
  const bool by_token_;
  const TemporaryDirectory run_;
  std::string expected_;
  bool queued_ = false;  ///< a batch waits to be dequeued
  std::int64_t unharmed_ = 0;
};

TEST(MemoryFaults, InStepsOfOneHost) { Steps(Form{}).run(); }
TEST(MemoryFaults, InStepsOfTwoHosts) { Steps(Form{.hosts = 2}).run(); }
TEST(MemoryFaults, InPipelinedSteps) { Steps(Form{.pipelined = true}).run(); }
TEST(MemoryFaults, InStepsByToken) { Steps(Form{}, true).run(); }

/// One of two processes, here threads, and what its step came to.
struct Peer {
  std::unique_ptr<Embedding> engine;
  std::string error;
  bool is_echo = false;  ///< the error is that of the other

  explicit Peer(std::shared_ptr<Exchange> exchange)
      : engine(std::make_unique<Embedding>(
            two_tables(), adagrad(),
            make_strategy({.executor = make_thread_pool(1), .exchange = std::move(exchange)}))) {
    engine->build(MixedBatch::kSamples);
  }

  void step() {
    try {
      if (!looked_up_) activations_ = engine->dequeue();
      looked_up_ = true;
      engine->apply_gradients(computed().all());
      error.clear();
    } catch (const GivenUp& given_up) {
      error = given_up.what();
      is_echo = true;
    } catch (const std::exception& cause) {
      error = cause.what();
    }
  }

 private:
  /// What the caller computes; the others learn of it where that fails.
  Gradients computed() {
    try {
      return Gradients(activations_, filled(0.25F));
    } catch (const std::bad_alloc& cause) {
      engine->abandon_step(cause.what());
      throw;
    }
  }

  Activations activations_;
  bool looked_up_ = false;
};

void on_both(const std::function<void(std::int32_t host)>& body) {
  std::thread second(body, 1);
  body(0);
  second.join();
}

TEST(MemoryFaults, OnOneOfTwoProcessesRaiseOnBoth) {
  const MixedBatch batches[2] = {MixedBatch(1), MixedBatch(2)};
  std::string expected;
  std::int64_t unharmed = 0;
  const auto trial = [&](std::int64_t n) {
    const std::vector<std::shared_ptr<Exchange>> exchanges = exchanges_of(2);
    std::optional<Peer> peers[2];
    std::string digests[2];
    on_both([&](std::int32_t host) {
      peers[host].emplace(exchanges[host]);
      peers[host]->engine->digest();
      peers[host]->engine->enqueue(batches[host].batch());
    });
    FailingAllocation fault(n);  // It may be either one's, since both allocate at once.
    on_both([&](std::int32_t host) {
      if (host == 0)
        fault.during([&] { peers[0]->step(); });
      else
        peers[1]->step();
    });
    EXPECT_EQ(peers[0]->error.empty(), peers[1]->error.empty())
        << "'" << peers[0]->error << "' and '" << peers[1]->error << "'";
    const bool raised = !peers[0]->error.empty();
    if (raised) {
      EXPECT_NE(peers[0]->is_echo, peers[1]->is_echo)
          << "'" << peers[0]->error << "' and '" << peers[1]->error << "'";
    }
    on_both([&](std::int32_t host) {
      if (raised) peers[host]->step();
      if (peers[host]->error.empty()) digests[host] = peers[host]->engine->digest();
    });
    EXPECT_EQ(digests[0], digests[1]);
    if (expected.empty() && !raised) expected = digests[0];
    if (raised && peers[0]->error.empty()) {
      ++unharmed;
      if (!expected.empty()) {
        EXPECT_EQ(digests[0], expected);
      }
    }
    return fault.hit();
  };
  EXPECT_FALSE(trial(1'000'000));  // none fails: this gives the digest
  at_each_allocation(trial);
  EXPECT_GT(unharmed, 0);
}

TEST(MemoryFaults, InABuild) {
  const auto whole = make_engine({.hosts = 2});
  whole->build(MixedBatch::kSamples);
  at_each_allocation([&](std::int64_t n) {
    std::unique_ptr<Embedding> engine = make_engine({.hosts = 2});
    FailingAllocation fault(n);
    if (!attempt(fault, [&] { engine->build(MixedBatch::kSamples); }).empty()) {
      EXPECT_FALSE(engine->built());
      engine->build(MixedBatch::kSamples);
    }
    EXPECT_EQ(engine->digest(), whole->digest());
    return fault.hit();
  });
}

TEST(MemoryFaults, InAConstruction) {
  at_each_allocation([&](std::int64_t n) {
    const Nested<FeatureConfig> tables = two_tables();
    const StrategyPtr strategy = accelerator();
    FailingAllocation fault(n);
    std::optional<Embedding> engine;
    if (!attempt(fault, [&] { engine.emplace(tables, adagrad(), strategy); }).empty())
      engine.emplace(tables, adagrad(), strategy);
    engine->build(1);
    return fault.hit();
  });
}

/// Where files are opened, the JSON library's destructors allocate, and end the process if they
/// cannot. They never take as much as this.
constexpr std::size_t kMoreThanJsonTakes = 2048;

TEST(MemoryFaults, InARestore) {
  const TemporaryDirectory run;
  const auto saved = make_engine({}, 2);
  saved->build(MixedBatch::kSamples);
  saved->save(run.path());
  for (const bool built : {false, true}) {
    SCOPED_TRACE(built);
    at_each_allocation([&](std::int64_t n) {
      const auto engine = make_engine({});
      if (built) engine->build(MixedBatch::kSamples);
      const std::string before = built ? engine->digest() : "";
      FailingAllocation fault(n, kMoreThanJsonTakes);
      if (!attempt(fault, [&] { engine->restore(run.path()); }).empty()) {
        if (built && !failed(*engine)) {
          EXPECT_EQ(engine->digest(), before);
        }
        engine->restore(run.path());
      }
      engine->build(MixedBatch::kSamples);
      EXPECT_EQ(engine->digest(), saved->digest());
      return fault.hit();
    });
  }
}

TEST(MemoryFaults, InASave) {
  const auto old_engine = make_engine({}), new_engine = make_engine({});
  old_engine->build(MixedBatch::kSamples);
  train(*new_engine, MixedBatch(1).batch(), filled(1));
  const auto restored = [](const std::filesystem::path& run) {
    const auto engine = make_engine({}, 3);
    engine->restore(run);
    engine->build(MixedBatch::kSamples);
    return engine->digest();
  };
  at_each_allocation([&](std::int64_t n) {
    const TemporaryDirectory run;
    old_engine->save(run.path());
    FailingAllocation fault(n, kMoreThanJsonTakes);
    const std::string error = attempt(fault, [&] { new_engine->save(run.path()); });
    const std::string digest = restored(run.path());
    EXPECT_TRUE(digest == new_engine->digest() ||
                (!error.empty() && digest == old_engine->digest()));
    if (!error.empty() && digest != new_engine->digest()) new_engine->save(run.path());
    EXPECT_EQ(restored(run.path()), new_engine->digest());
    return fault.hit();
  });
}

TEST(MemoryFaults, InLookupsOfAServer) {
  const TemporaryDirectory run;
  const auto saved = make_engine({}, 2);
  saved->build(MixedBatch::kSamples);
  const auto step = saved->save(run.path());
  const MixedBatch data(3);
  const Batch batch = data.batch();
  const auto values_of = [](const LookupOutput& output) {
    return F(output(0).values.begin(), output(0).values.end());
  };
  F expected;
  {
    ServingEmbedding serving = ServingEmbedding::open(step);
    expected = values_of(serving(batch));
  }
  at_each_allocation([&](std::int64_t n) {
    FailingAllocation fault(n);
    ServingEmbedding serving = ServingEmbedding::open(step);
    F got;
    const auto look_up = [&] { got = values_of(serving(batch)); };
    if (!attempt(fault, look_up).empty()) look_up();
    EXPECT_EQ(got, expected);
    return fault.hit();
  });
}

TEST(MemoryFaults, InTheOpeningOfAServer) {
  const TemporaryDirectory run;
  const auto saved = make_engine({}, 2);
  saved->build(MixedBatch::kSamples);
  const auto step = saved->save(run.path());
  at_each_allocation([&](std::int64_t n) {
    FailingAllocation fault(n, kMoreThanJsonTakes);
    std::optional<ServingEmbedding> serving;
    const auto open = [&] { serving.emplace(ServingEmbedding::open(step)); };
    if (!attempt(fault, open).empty()) open();
    F row(8);
    serving->read_rows("words", Ids{5}, row);
    EXPECT_EQ(row, F(8, 2));
    return fault.hit();
  });
}

TEST(MemoryFaults, InCallsThatReadRows) {
  const auto engine = make_engine({.hosts = 2});
  engine->build(MixedBatch::kSamples);
  const std::string before = engine->digest();
  const Ids ids = {0, 7, 2999};
  at_each_allocation([&](std::int64_t n) {
    FailingAllocation fault(n);
    F rows(ids.size() * 8);
    const auto read = [&] { engine->read_rows("words", ids, rows); };
    if (!attempt(fault, read).empty()) read();
    EXPECT_EQ(rows, F(ids.size() * 8, 0.5F));
    const auto digest = [&] { EXPECT_EQ(engine->digest(), before); };
    if (!attempt(fault, digest).empty()) digest();
    const auto memory = [&] { EXPECT_GT(engine->memory().total_bytes, 0); };
    if (!attempt(fault, memory).empty()) memory();
    return fault.hit();
  });
}

}  // namespace
}  // namespace embertable
