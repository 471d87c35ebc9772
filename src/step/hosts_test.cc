// What several hosts add to a step.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "exchange/threads_exchange.h"
#include "step/backward_run.h"
#include "step/exchange_gradients.h"
#include "step/fetch_remote_rows.h"
#include "step/forward_run.h"
#include "testing/step/tiny_step.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

/// Two hosts of one replica each: host 0 owns rows 0 and 1, host 1 rows 2 and 3.
class TwoHosts : public testing::Test {
 protected:
  TwoHosts() {
    for (std::int32_t host = 0; host < 2; ++host)
      steps.push_back(std::make_unique<TinyStep>(4, 1, 2, host));
    steps[0]->add({{0, 2}}, {1, 1}, false, 0);
    steps[1]->add({{2, 3}, {1}, {2}}, {2, 2, 3, 3, 4, 4}, false, 1);
  }

  void on_both(const std::function<void(TinyStep&, Messages&)>& body) {
    auto hosts = make_threads_exchange(2, std::chrono::milliseconds(20000));
    const auto run = [&](std::int32_t host) {
      Messages messages(*hosts[host]);
      body(*steps[host], messages);
    };
    std::thread other(run, 1);
    run(0);
    other.join();
  }

  static void look_up(TinyStep& tiny, Messages& messages) {
    const std::shared_ptr<Executor> executor = make_inline_executor();
    Workers workers(*executor, 0);
    fetch_remote_rows(tiny.step, messages);
    ForwardRun forward;
    forward.list(tiny.step, 1);
    forward.run(workers, simd_level());
  }

  static void step(TinyStep& tiny, Messages& messages) {
    look_up(tiny, messages);
    GradientExchange(simd_level()).run(tiny.step, messages);
    const std::shared_ptr<Executor> executor = make_inline_executor();
    Workers workers(*executor, 0);
    BackwardRun backward(simd_level(), 1);
    backward.prepare(tiny.step, workers);
    backward.run(workers);
  }

  std::vector<std::unique_ptr<TinyStep>> steps;
};

TEST_F(TwoHosts, FetchRowsThatTheOtherOwns) {
  on_both(look_up);
  EXPECT_EQ(steps[0]->out(0), (Floats{20, 22}));
  EXPECT_EQ(steps[1]->out(0), (Floats{50, 52, 10, 11, 20, 21}));
}

TEST_F(TwoHosts, KnowTheTablesNumberOfEveryEntrysRow) {
  on_both([](TinyStep& tiny, Messages& messages) {
    look_up(tiny, messages);
    const FeatureRun& feature = tiny.table().features.front();
    std::vector<std::int64_t> rows;
    for (std::int64_t entry = 0; entry < feature.plan->row.size; ++entry)
      rows.push_back(global_row(*tiny.table().placement, tiny.table().route, messages.host(),
                                *feature.plan, entry));
    EXPECT_EQ(rows, messages.host() == 0 ? (std::vector<std::int64_t>{0, 2})
                                         : (std::vector<std::int64_t>{2, 3, 1, 2}));
  });
}

TEST_F(TwoHosts, SendTheOwnersTheGradientsOfTheirRows) {
  on_both(step);
  EXPECT_EQ(steps[0]->rows(), (Floats{-1, 0, 7, 8}));
  EXPECT_EQ(steps[1]->rows(), (Floats{13, 14, 28, 29}));
}

TEST_F(TwoHosts, SendEveryEntrysGradientWithoutAccumulation) {
  for (const auto& tiny : steps) tiny->table().accumulates = false;
  on_both(step);
  EXPECT_EQ(steps[0]->rows(), (Floats{-1, 0, 7, 8}));
  EXPECT_EQ(steps[1]->rows(), (Floats{13, 14, 28, 29}));
}

}  // namespace
}  // namespace embertable
