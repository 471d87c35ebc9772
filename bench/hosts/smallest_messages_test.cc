#include "bench/hosts/smallest_messages.h"

#include <gtest/gtest.h>

namespace embertable::bench {
namespace {

LoadIds one_sample(std::vector<std::int64_t> ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  return {.ids = std::move(ids), .splits = {0, count}, .weights = {}};
}

Load load_of(std::int64_t rows, std::int32_t dim, std::int32_t hosts) {
  Load load;
  load.tables = {{.rows = rows, .dim = dim}};
  load.features = {{}};
  load.samples = 1;
  load.replicas = hosts;
  return load;
}

TEST(SmallestMessages, CountsEachRowOfAnotherHostOnce) {
  // Host 0 owns rows 0 to 4. It names row 7 of host 1; host 1 names rows 0 and 4.
  const LoadBatch batch = {one_sample({1, 7, 7}), one_sample({4, 0, 4, 9})};
  EXPECT_EQ(smallest_message_bytes(load_of(10, 4, 2), batch), 3 * (1 + 2 * 16));
}

TEST(SmallestMessages, GivesTheFirstHostsTheLongerBlocks) {
  // 10 rows on three hosts: 0 to 3, 4 to 6, 7 to 9. Every host names rows of its own alone.
  const LoadBatch own = {one_sample({0, 3}), one_sample({4, 6}), one_sample({7, 9})};
  EXPECT_EQ(smallest_message_bytes(load_of(10, 4, 3), own), 0);
  const LoadBatch next = {one_sample({4}), one_sample({3}), one_sample({6})};
  EXPECT_EQ(smallest_message_bytes(load_of(10, 4, 3), next), 3 * (1 + 2 * 16));
}

TEST(SmallestMessages, WidensNumbersWithTheOwnersRows) {
  const auto bytes = [](std::int64_t rows) {
    return smallest_message_bytes(load_of(rows, 1, 2), {one_sample({rows - 1}), one_sample({})});
  };
  EXPECT_EQ(bytes(2 * 256), 1 + 8);
  EXPECT_EQ(bytes(2 * 257), 2 + 8);
  EXPECT_EQ(bytes(2 * 65536), 2 + 8);
  EXPECT_EQ(bytes(2 * 65537), 4 + 8);
}

TEST(SmallestMessages, JoinsTheFeaturesOfATable) {
  Load load = load_of(10, 4, 2);
  load.features = {{}, {}};
  const LoadBatch batch = {one_sample({7}), one_sample({7, 8}), one_sample({}), one_sample({})};
  EXPECT_EQ(smallest_message_bytes(load, batch), 2 * (1 + 2 * 16));
}

TEST(SmallestMessages, AcceptsFewerRowsThanHosts) {
  const LoadBatch batch = {one_sample({0, 1}), one_sample({0, 1}), one_sample({1})};
  EXPECT_EQ(smallest_message_bytes(load_of(2, 4, 3), batch), 3 * (1 + 2 * 16));
}

}  // namespace
}  // namespace embertable::bench
