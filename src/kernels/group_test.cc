#include "kernels/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "testing/executor.h"

namespace embertable {
namespace {

template <class Index>
struct Memory {
  explicit Memory(std::int64_t n) {
    GroupMemory<Index>& m = arrays;
    const auto spared = static_cast<std::size_t>(n + m.kSlack);
    for (std::uint32_t** p :
         {&m.hash, &m.first, &m.count, &m.start, &m.loser, &m.single_out, &m.multi_start, &m.order})
      *p = numbers.emplace_back(spared, 0xabababab).data();
    m.table = numbers.emplace_back(m.table_size(n), 0xabababab).data();
    for (Index** p : {&m.single_row, &m.multi_row}) *p = rows.emplace_back(spared).data();
    for (float** p : {&m.single_gain, &m.order_gain}) *p = gains.emplace_back(spared).data();
  }
  GroupMemory<Index> arrays;
  std::vector<std::vector<std::uint32_t>> numbers;
  std::vector<std::vector<Index>> rows;
  std::vector<std::vector<float>> gains;
};

/// Row -> its entries in canonical order, as (out, gain).
using Groups = std::map<std::uint64_t, std::vector<std::pair<std::uint32_t, float>>>;

struct Result {
  Groups groups;
  std::vector<std::uint64_t> single_order, multi_order;
  bool operator==(const Result&) const = default;
};

template <class Index>
Result run(SimdLevel level, const std::vector<std::uint64_t>& rows, const std::vector<float>& gain,
           Memory<Index>& memory) {
  const auto n = static_cast<std::int64_t>(rows.size());
  std::vector<Index> row(rows.begin(), rows.end());
  std::vector<std::uint32_t> out(rows.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint32_t>(i * 2 + 1);
  float block[16] = {};
  RowBlock table = {.row = block, .stride = 16, .slots = 1, .dim = 16, .rows = 1};
  table.slot[0] = block, table.slot_stride[0] = 1;
  const Group<Index> args = {row.data(), out.data(), gain.empty() ? nullptr : gain.data(),
                             n,          table,      memory.arrays};
  const GroupedEntries<Index> g = group(args, level);
  EXPECT_EQ(g.single_gain == nullptr, gain.empty());
  Result result;
  for (std::int64_t s = 0; s < g.singles; ++s) {
    result.single_order.push_back(g.single_row[s]);
    result.groups[g.single_row[s]].emplace_back(g.single_out[s],
                                                gain.empty() ? 1.0f : g.single_gain[s]);
  }
  for (std::int64_t m = 0; m < g.multis; ++m) {
    result.multi_order.push_back(g.multi_row[m]);
    EXPECT_GE(g.multi_start[m + 1] - g.multi_start[m], 2u);
    for (std::uint32_t k = g.multi_start[m]; k < g.multi_start[m + 1]; ++k)
      result.groups[g.multi_row[m]].emplace_back(g.order[k], gain.empty() ? 1.0f : g.order_gain[k]);
  }
  return result;
}

template <class Index>
Result run(SimdLevel level, const std::vector<std::uint64_t>& rows,
           const std::vector<float>& gain) {
  Memory<Index> memory(std::ssize(rows));
  return run<Index>(level, rows, gain, memory);
}

Result slowly(const std::vector<std::uint64_t>& rows, const std::vector<float>& gain) {
  Result result;
  for (std::size_t i = 0; i < rows.size(); ++i)
    result.groups[rows[i]].emplace_back(static_cast<std::uint32_t>(i * 2 + 1),
                                        gain.empty() ? 1.0f : gain[i]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& entries = result.groups[rows[i]];
    if (entries.front().first != i * 2 + 1) continue;
    (entries.size() == 1 ? result.single_order : result.multi_order).push_back(rows[i]);
  }
  return result;
}

void expect_grouped(const std::vector<std::uint64_t>& rows) {
  std::vector<float> gain(rows.size());
  for (std::size_t i = 0; i < gain.size(); ++i) gain[i] = static_cast<float>(i) * 0.5f;
  for (const std::vector<float>& gains : {std::vector<float>{}, gain}) {
    const Result want = slowly(rows, gains);
    for (const SimdLevel level : usable_levels()) {
      EXPECT_TRUE(run<std::uint32_t>(level, rows, gains) == want)
          << to_string(level) << ", " << rows.size() << " entries";
      EXPECT_TRUE(run<std::uint64_t>(level, rows, gains) == want)
          << to_string(level) << ", " << rows.size() << " entries";
    }
  }
}

TEST(Group, SetsRowsNamedOnceApart) {
  const Result result = run<std::uint32_t>(SimdLevel::kScalar, {7, 5, 9, 5, 7, 5}, {});
  EXPECT_EQ(result.single_order, (std::vector<std::uint64_t>{9}));
  EXPECT_EQ(result.multi_order, (std::vector<std::uint64_t>{7, 5}));
  EXPECT_EQ(result.groups.at(5),
            (std::vector<std::pair<std::uint32_t, float>>{{3, 1}, {7, 1}, {11, 1}}));
}

TEST(FindFirst, NamesTheFirstEntryOfEachRow) {
  const std::vector<std::uint32_t> row = {7, 5, 9, 5, 7, 5};
  for (const SimdLevel level : usable_levels()) {
    Memory<std::uint32_t> memory(std::ssize(row));
    find_first<std::uint32_t>(
        {.row = row.data(), .count = std::ssize(row), .memory = memory.arrays}, level);
    EXPECT_EQ(std::vector<std::uint32_t>(memory.arrays.first, memory.arrays.first + row.size()),
              (std::vector<std::uint32_t>{0, 1, 2, 1, 0, 1}));
  }
}

TEST(Group, WorksAtTheEdgesOfAVector) {
  std::mt19937 random(test_seed(1));
  for (const std::size_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000})
    for (const unsigned distinct : {1u, 2u, 7u, 1000000u}) {
      std::vector<std::uint64_t> rows(n);
      for (auto& r : rows) r = random() % distinct;
      expect_grouped(rows);
    }
}

TEST(Group, WorksForManyEntries) {
  std::mt19937 random(test_seed(2));
  for (const unsigned distinct : {1u, 100u, 20000u, 2000000000u}) {
    std::vector<std::uint64_t> rows(30000);
    for (auto& r : rows) r = random() % distinct;
    expect_grouped(rows);
  }
}

TEST(Group, WorksWhereEntriesAreNumberedBySixteenBitsAndWhereTheyAreNot) {
  std::mt19937 random(test_seed(3));
  for (const std::size_t n : {65535, 65536, 70000})
    for (const unsigned distinct : {1u, 300u, 2000000000u}) {
      std::vector<std::uint64_t> rows(n);
      for (auto& r : rows) r = random() % distinct;
      expect_grouped(rows);
    }
}

TEST(Group, DoesNotSeeWhatEarlierGroupsLeft) {
  for (const SimdLevel level : usable_levels()) {
    Memory<std::uint32_t> memory(70000);
    for (const std::size_t n : {70000, 65535, 100, 40, 17, 16, 9, 1, 0}) {
      std::vector<std::uint64_t> rows(n);  // each named once, so that every entry is a first one
      for (std::size_t i = 0; i < n; ++i) rows[i] = n - i;
      EXPECT_TRUE(run<std::uint32_t>(level, rows, {}, memory) == slowly(rows, {}))
          << to_string(level) << ", " << n << " entries";
    }
  }
}

TEST(Group, WorksForRowsThatDifferInFewBits) {
  for (const int shift : {0, 4, 12, 20, 27}) {
    std::vector<std::uint64_t> rows;
    for (std::uint64_t i = 0; i < 3000; ++i) rows.push_back((i % 2000 << shift) & 0x7fffffff);
    expect_grouped(rows);
  }
}

TEST(Group, TellsWideRowsApartByTheirUpperHalf) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t i = 0; i < 500; ++i) rows.push_back((i % 100 << 32) | i % 3);
  const Result want = slowly(rows, {});
  for (const SimdLevel level : usable_levels())
    EXPECT_TRUE(run<std::uint64_t>(level, rows, {}) == want);
}

TEST(TakeApart, SplitsPairs) {
  for (const SimdLevel level : usable_levels())
    for (const std::size_t n : {0, 1, 7, 16, 100}) {
      std::vector<UpdateEntry<std::uint32_t>> narrow(n);
      std::vector<UpdateEntry<std::uint64_t>> wide(n);
      std::vector<std::uint32_t> row(n), out(n), want(n);
      std::vector<std::uint64_t> wide_row(n), want_wide(n);
      for (std::size_t i = 0; i < n; ++i) {
        want[i] = static_cast<std::uint32_t>(i), want_wide[i] = i << 33;
        narrow[i] = {want[i], want[i]}, wide[i] = {want_wide[i], want[i]};
      }
      take_apart<std::uint32_t>(
          {narrow.data(), static_cast<std::int64_t>(n), row.data(), out.data()}, level);
      EXPECT_TRUE(row == want && out == want);
      std::fill(out.begin(), out.end(), 0);
      take_apart<std::uint64_t>(
          {wide.data(), static_cast<std::int64_t>(n), wide_row.data(), out.data()}, level);
      EXPECT_TRUE(wide_row == want_wide && out == want);
    }
}

}  // namespace
}  // namespace embertable
