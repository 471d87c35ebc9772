// Calls that read and assign rows, whose ids change while they run: the ids count as they were when
// they were checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "embertable/direct_embedding.h"
#include "embertable/embedding.h"
#include "exchange/threads_exchange.h"
#include "testing/exchange/altered_exchange.h"
#include "testing/tensors.h"

namespace embertable {
namespace {

using Ids = std::vector<std::int64_t>;

/// An id of no table.
constexpr std::int64_t kBad = std::int64_t{1} << 40;

/// A table of 8 rows {r, r, r, r}.
Nested<FeatureConfig> feature_of_films(bool replicated = false) {
  return Nested<FeatureConfig>(
      FeatureConfig{.table = make_table({.vocabulary_size = 8,
                                         .dim = 4,
                                         .initializer = Initializer::row_id(),
                                         .name = "films",
                                         .replicated = replicated})});
}

/// Reads rows 1 and 2 into the memory that holds their ids.
template <class Engine>
Floats read_over_ids(Engine& engine) {
  const std::int64_t ids[] = {1, 2};
  alignas(std::int64_t) std::byte memory[8 * sizeof(float)];
  std::memcpy(memory, ids, sizeof(ids));
  engine.read_rows("films", std::span(reinterpret_cast<const std::int64_t*>(memory), 2),
                   std::span(reinterpret_cast<float*>(memory), 8));
  Floats rows(8);
  std::memcpy(rows.data(), memory, sizeof(memory));
  return rows;
}

TEST(ChangingIds, RowsAreReadOverTheirOwnIds) {
  Embedding engine(feature_of_films(), Optimizer("sgd", 0.1), nullptr);
  engine.build(1);
  EXPECT_EQ(read_over_ids(engine), (Floats{1, 1, 1, 1, 2, 2, 2, 2}));
  DirectEmbedding direct(feature_of_films(), Optimizer("sgd", 0.1), make_strategy({}));
  EXPECT_EQ(read_over_ids(direct), (Floats{1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(ChangingIds, RowsThatHoldTheIdsAreAssigned) {
  Embedding engine(feature_of_films(), Optimizer("sgd", 0.1), nullptr);
  engine.build(1);
  float* const first = engine.embedding_tables().begin()->second.data;
  const std::int64_t ids[] = {0, 1}, bad[] = {kBad, kBad};
  std::memcpy(first, ids, sizeof(ids));
  Floats values = {0, 0, 0, 0, 5, 6, 7, 8};
  std::memcpy(values.data(), bad, sizeof(bad));
  engine.assign_rows("films", std::span(reinterpret_cast<const std::int64_t*>(first), 2), values);
  Floats rows(8);
  engine.read_rows("films", Ids{0, 1}, rows);
  EXPECT_EQ(std::memcmp(rows.data(), values.data(), 8 * sizeof(float)), 0);
}

/// A call of one of two processes, in whose round number `changed` the id becomes a bad one.
class ChangingCall {
 public:
  ChangingCall(Embedding& engine, AlteredExchange& exchange, std::int64_t id, int changed)
      : engine_(engine), exchange_(exchange), ids_{id} {
    exchange_.before_start = [this, changed](Channel, const Stage&) {
      if (rounds_++ == changed) ids_[0] = kBad;
    };
  }
  ~ChangingCall() {
    exchange_.before_start = [](Channel, const Stage&) {};
  }

  Floats read() {
    Floats row(4);
    engine_.read_rows("films", ids_, row);
    return row;
  }
  void assign(float value) { engine_.assign_rows("films", ids_, Floats(4, value)); }

  int rounds() const { return rounds_; }

 private:
  Embedding& engine_;
  AlteredExchange& exchange_;
  Ids ids_;
  int rounds_ = 0;
};

/// Runs body(engine, exchange, host) on two threads that are processes to each other. Host 0 owns
/// rows 0 to 3.
void on_two(bool replicated,
            const std::function<void(Embedding&, AlteredExchange&, std::int32_t)>& body) {
  std::vector<std::unique_ptr<Exchange>> exchanges = make_threads_exchange(2);
  const auto run = [&](std::int32_t host) {
    const auto altered = std::make_shared<AlteredExchange>(*exchanges[host]);
    Embedding engine(feature_of_films(replicated), Optimizer("sgd", 0.1),
                     make_strategy({.hosts = 2, .exchange = altered}));
    engine.build(1);
    engine.digest();  // the hosts have met
    body(engine, *altered, host);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

TEST(ChangingIds, OfSeveralProcessesAreTakenAsTheyWereChecked) {
  for (const bool replicated : {false, true}) {
    on_two(replicated, [](Embedding& engine, AlteredExchange& exchange, std::int32_t host) {
      // Each asks for a row of the other.
      const std::int64_t id = host == 0 ? 6 : 1;
      int rounds = 0;
      for (int changed = 0; changed <= rounds; ++changed) {
        SCOPED_TRACE(changed);
        engine.assign_rows("films", Ids{id}, Floats(4, static_cast<float>(id)));
        ChangingCall read(engine, exchange, id, changed);
        EXPECT_EQ(read.read(), Floats(4, static_cast<float>(id)));
        ChangingCall assign(engine, exchange, id, changed);
        assign.assign(-1);
        EXPECT_EQ(ChangingCall(engine, exchange, id, -1).read(), Floats(4, -1));
        rounds = std::max(read.rounds(), assign.rounds());
        EXPECT_GE(rounds, 3);
      }
    });
  }
}

}  // namespace
}  // namespace embertable
