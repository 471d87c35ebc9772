// What several hosts add to a step.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "embertable/errors.h"
#include "exchange/threads_exchange.h"
#include "step/backward.h"
#include "step/exchange_gradients.h"
#include "step/fetch_remote_rows.h"
#include "step/forward.h"
#include "step/row_places.h"
#include "step/row_router.h"
#include "testing/step/tiny_step.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

/// Two hosts of one core each: host 0 owns rows 0 and 1, host 1 rows 2 and 3.
class TwoHosts : public testing::Test {
 protected:
  TwoHosts() {
    for (std::int32_t host = 0; host < 2; ++host)
      steps.push_back(std::make_unique<TinyStep>(4, 1, 2, host));
    steps[0]->add({{0, 2}}, {1, 1}, false, 0);
    steps[1]->add({{2, 3}, {1}, {2}}, {2, 2, 3, 3, 4, 4}, false, 1);
  }

  void on_both(const std::function<void(TinyStep&, Messages&)>& body) {
    auto hosts = make_threads_exchange(2);
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
    RowRouter(simd_level()).run(tiny.step, messages.host(), workers);
    ask_for_rows(tiny.step, messages, Channel::kStep);
    hear_questions(tiny.step, messages, Channel::kStep);
    check_update_sizes(tiny.step);
    swap_rows(tiny.step, messages, workers, simd_level(), false);
    ForwardRun().run(tiny.step, workers, simd_level());
  }

  static void step(TinyStep& tiny, Messages& messages) {
    look_up(tiny, messages);
    const std::shared_ptr<Executor> executor = make_inline_executor();
    Workers workers(*executor, 0);
    select_zeros(tiny.step, workers);
    GradientExchange(simd_level()).run(tiny.step, messages, workers);
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

TEST_F(TwoHosts, AskForEachRowOnceInTheOrderOfItsFirstEntry) {
  const std::shared_ptr<Executor> executor = make_inline_executor();
  Workers workers(*executor, 0);
  TinyStep tiny(8, 1, 2, 0);  // this host owns rows 0 to 3
  tiny.add({{6, 1}, {4, 6}}, {1, 1, 2, 2});
  tiny.add({{1}, {4}}, {3, 3, 4, 4}, true);
  RowRouter(simd_level()).run(tiny.step, 0, workers);
  const TableRoute& route = tiny.table().route;
  EXPECT_TRUE(route.asked[0].empty());
  EXPECT_EQ(std::vector<std::uint64_t>(route.asked[1].begin(), route.asked[1].end()),
            (std::vector<std::uint64_t>{2, 0}));
  constexpr std::uint32_t kReceived = kReceivedBit<std::uint32_t>;
  std::vector<std::uint32_t> rows;
  for (const FeatureRun& feature : tiny.table().features)
    rows.insert(rows.end(), feature.plan->row.as<std::uint32_t>(),
                feature.plan->row.as<std::uint32_t>() + feature.plan->row.size);
  EXPECT_EQ(rows,
            (std::vector<std::uint32_t>{kReceived, 1, kReceived | 1, kReceived, 1, kReceived | 1}));
}

TEST_F(TwoHosts, RefuseMoreIdsThanCanBeGrouped) {
  const std::shared_ptr<Executor> executor = make_inline_executor();
  Workers workers(*executor, 0);
  const auto refusal = [&](std::int64_t most) -> std::string {
    try {
      RowRouter(simd_level()).run(steps[1]->step, 1, workers, most);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(3),
            "table 'tiny': with several hosts, a step may look up at most 3 ids on each, got 4");
  EXPECT_FALSE(steps[1]->table().route.translated);
  EXPECT_EQ(refusal(4), "");
}

TEST_F(TwoHosts, SendTheOwnersTheGradientsOfTheirRows) {
  on_both(step);
  EXPECT_EQ(steps[0]->rows(), (Floats{-1, 0, 7, 8}));
  EXPECT_EQ(steps[1]->rows(), (Floats{13, 14, 28, 29}));
}

TEST_F(TwoHosts, SetApartRowsThatOneCoreOfOneHostNames) {
  for (const auto& tiny : steps)
    tiny->table().once_ranges = RowRanges::of_rows(tiny->table().rows.rows, 2);
  on_both(step);
  EXPECT_EQ(steps[0]->table().plan.once, 2);  // rows 0 and 1
  EXPECT_EQ(steps[1]->table().plan.once, 1);  // row 3
  EXPECT_EQ(steps[0]->rows(), (Floats{-1, 0, 7, 8}));
  EXPECT_EQ(steps[1]->rows(), (Floats{13, 14, 28, 29}));
}

TEST_F(TwoHosts, ListRowsThatAreSetApartByRange) {
  steps.clear();
  for (std::int32_t host = 0; host < 2; ++host)
    steps.push_back(std::make_unique<TinyStep>(8, 1, 2, host));  // host 0 owns rows 0 to 3
  steps[0]->add({{3, 0, 5}, {6}}, {1, 1, 1, 1}, false, 0);
  steps[1]->add({{2, 1, 6}}, {1, 1}, false, 1);
  for (const auto& tiny : steps) tiny->table().once_ranges = RowRanges::of_rows(4, 2);
  on_both(step);
  const UpdatePlan& plan = steps[0]->table().plan;
  EXPECT_EQ(plan.lists(), 3);
  ASSERT_EQ(plan.once, 4);
  std::vector<std::uint32_t> rows;
  for (std::int64_t i = plan.bucket.back(); i < plan.entries(); ++i)
    rows.push_back(static_cast<const UpdateEntry<std::uint32_t>*>(plan.entry)[i].row);
  EXPECT_EQ(rows, (std::vector<std::uint32_t>{0, 1, 3, 2})) << "by range, then core";
}

TEST_F(TwoHosts, SendEveryEntrysGradientWithoutAccumulation) {
  for (const auto& tiny : steps) tiny->table().accumulates = false;
  on_both(step);
  EXPECT_EQ(steps[0]->rows(), (Floats{-1, 0, 7, 8}));
  EXPECT_EQ(steps[1]->rows(), (Floats{13, 14, 28, 29}));
}

TEST_F(TwoHosts, PutTheNumbersOfTheTablesRowsBack) {
  on_both([](TinyStep& tiny, Messages& messages) {
    const RowNumbers& rows = tiny.table().features.front().plan->row;
    const auto numbers = [&] {
      return std::vector<std::uint32_t>(rows.as<std::uint32_t>(),
                                        rows.as<std::uint32_t>() + rows.size);
    };
    const std::vector<std::uint32_t> before = numbers();
    look_up(tiny, messages);
    EXPECT_NE(numbers(), before);
    put_rows_back(tiny.step, messages.host());
    EXPECT_EQ(numbers(), before);
    put_rows_back(tiny.step, messages.host());  // they are back already
    EXPECT_EQ(numbers(), before);
  });
}

/// The numbers of a step are given to the check; nobody has memory for them.
TEST(UpdateSize, CountsWhatOtherHostsSend) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 32) - 1;
  TableRun table;
  table.name = "big";
  table.route.owed = {{}, {}};
  table.accumulates = false;
  table.route.entries_elsewhere = kMost - 2 * kPieceRows;
  EXPECT_NO_THROW(check_update_size(table, 1, kMost));
  table.route.entries_elsewhere = kMost;
  EXPECT_THROW(check_update_size(table, 1, kMost), ValueError);
  table.accumulates = true;  // then one sum for each row comes
  EXPECT_NO_THROW(check_update_size(table, 1, kMost));
}

TEST(UpdateSize, OfAReplicatedTableIsCheckedWhenItIsPlanned) {
  TableRun table;
  table.name = "small";
  std::vector<std::int64_t> bucket = {0, 3, 7};
  table.plan.bucket = bucket;
  EXPECT_NO_THROW(check_planned_size(table, 4));
  EXPECT_THROW(check_planned_size(table, 3), ValueError);
  bucket[2] = std::int64_t{1} << 32;
  EXPECT_THROW(check_planned_size(table, bucket[2]), ValueError);
}

TEST(RowPlaces, NumberDistinctRowsInTheirOrder) {
  RowPlaces places;
  for (const std::int64_t table_rows : {200, 130}) {  // nothing is left of what was before
    places.clear(table_rows);
    for (const int row : {129, 64, 0, 63, 64}) places.add(static_cast<std::uint64_t>(row));
    ASSERT_EQ(places.number(), 4);
    std::vector<std::uint64_t> rows(4);
    places.list(rows);
    EXPECT_EQ(rows, (std::vector<std::uint64_t>{0, 63, 64, 129}));
    for (std::uint32_t place = 0; place < 4; ++place) EXPECT_EQ(places[rows[place]], place);
  }
}

TEST_F(TwoHosts, SendZerosForOutputRowsThatAreZerosByRule) {
  for (const bool accumulates : {true, false}) {
    SCOPED_TRACE(accumulates);
    steps.clear();
    for (std::int32_t host = 0; host < 2; ++host) {
      TinyStep& tiny = *steps.emplace_back(std::make_unique<TinyStep>(4, 1, 2, host));
      tiny.add({{0, 2}, {2, 0}}, {std::nanf(""), std::nanf(""), 1, 2}, false, host);
      tiny.divide_by({0, 1});
      tiny.table().accumulates = accumulates;
    }
    on_both(step);
    EXPECT_EQ(steps[0]->rows(), (Floats{-2, -3, 10, 11}));
    EXPECT_EQ(steps[1]->rows(), (Floats{18, 17, 30, 31}));
  }
}

}  // namespace
}  // namespace embertable
