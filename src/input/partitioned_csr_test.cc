#include "embertable/tensorflow/partitioned_csr.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/flush_to_zero.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using Ids = std::vector<std::int64_t>;
using Floats = std::vector<float>;

TEST(EngineCases, Case140_EntriesHaveTheCombinerInTheirGains) {
  const Ids splits = {0, 3}, ids = {5, 5, 2};
  const auto coo = [&](Combiner combiner) {
    return to_coo(RaggedIds{splits, ids}, {}, combiner, 1);
  };
  const float third = 1.0f / 3, root = 1 / std::sqrt(3.0f);
  EXPECT_EQ(coo(Combiner::kSum), (std::vector<CooEntry>{{0, 5, 2}, {0, 2, 1}}));
  EXPECT_EQ(coo(Combiner::kMean), (std::vector<CooEntry>{{0, 5, third + third}, {0, 2, third}}));
  EXPECT_EQ(coo(Combiner::kSqrtN), (std::vector<CooEntry>{{0, 5, root + root}, {0, 2, root}}));
}

TEST(ToCoo, KeepsDenormalGainsWhereTheThreadFlushesThem) {
  const Ids splits = {0, 3}, ids = {5, 7, 9};
  const Floats weights = {1e-39f, 2e-39f, 3};
  const auto coo = [&] { return to_coo(RaggedIds{splits, ids}, weights, Combiner::kMean, 1); };
  const std::vector<CooEntry> entries = flushing_to_zero(coo);
  ASSERT_EQ(entries.size(), 3u);
  const auto bits = [&](std::size_t i) { return std::bit_cast<std::uint32_t>(entries[i].gain); };
  EXPECT_EQ(bits(0), 0x0003a133u);
  EXPECT_EQ(bits(1), 0x00074265u);
  EXPECT_EQ(bits(2), 0x3f800000u);
}

TEST(Partition, KeepsDenormalGainsWhereTheThreadFlushesThem) {
  const std::vector<CooEntry> twice = {{0, 5, 1e-39f}, {0, 5, 1e-39f}};
  const PartitionedCsr all = flushing_to_zero([&] { return partition(twice, 1); });
  EXPECT_EQ(std::bit_cast<std::uint32_t>(all.gain.front()),
            2 * std::bit_cast<std::uint32_t>(1e-39f));
}

TEST(ToCoo, KeepsEqualIdsApartThatDoNotFollowEachOther) {
  const Ids splits = {0, 3, 4}, ids = {5, 2, 5, 5};
  EXPECT_EQ(to_coo(RaggedIds{splits, ids}, {}, Combiner::kSum, 2),
            (std::vector<CooEntry>{{0, 5, 1}, {0, 2, 1}, {0, 5, 1}, {1, 5, 1}}));
}

TEST(ToCoo, TakesWeightsOfEveryKind) {
  const Ids indices = {0, 0, 0, 1, 2, 5}, ids = {4, 1, 4};
  const Floats weights = {2, -2, 3}, one = {0.5f};
  const SparseIds sparse = {indices, ids, Shape{3, 6}};
  EXPECT_EQ(to_coo(sparse, weights, Combiner::kSum, 4),
            (std::vector<CooEntry>{{0, 4, 2}, {0, 1, -2}, {2, 4, 3}}));
  EXPECT_EQ(to_coo(sparse, weights, Combiner::kMean, 3),
            (std::vector<CooEntry>{{0, 4, 0}, {0, 1, 0}, {2, 4, 1}}));
  EXPECT_EQ(to_coo(sparse, one, Combiner::kSum, 3),
            (std::vector<CooEntry>{{0, 4, 0.5f}, {0, 1, 0.5f}, {2, 4, 0.5f}}));
  EXPECT_EQ(to_coo(DenseIds{ids}, one, Combiner::kMean, 3),
            (std::vector<CooEntry>{{0, 4, 1}, {1, 1, 1}, {2, 4, 1}}));
  EXPECT_TRUE(to_coo(DenseIds{}, {}, Combiner::kSum, 3).empty());
}

TEST(ToCoo, RefusesWhatIsOutOfPlace) {
  const Ids ids = {1, 2}, two = {0, 0}, falling = {1, 0, 0, 0}, outside = {0, 0, 3, 0};
  const Floats three = {1, 1, 1};
  const auto sparse = [&](const Ids& indices, Shape shape = {3, 1}) {
    return [=, &ids] { return to_coo(SparseIds{indices, ids, shape}, {}, Combiner::kSum, 3); };
  };
  EXPECT_EQ(refusal<DataError>(sparse(falling)),
            "to_coo, sample 0, position 1: samples must rise and be below 3, got 0 after 1");
  EXPECT_EQ(refusal<DataError>(sparse(outside)),
            "to_coo, sample 3, position 1: samples must rise and be below 3, got 3 after 0");
  EXPECT_EQ(refusal<ValueError>(sparse(falling, {4, 1})),
            "dense_shape must be of rank 2 with at most 3 samples, got (4, 1)");
  EXPECT_EQ(refusal<ValueError>(sparse(falling, {3, 1, 1})),
            "dense_shape must be of rank 2 with at most 3 samples, got (3, 1, 1)");
  EXPECT_EQ(refusal<ValueError>([&] { to_coo(DenseIds{ids}, three, Combiner::kSum, 2); }),
            "weights must be none, one or as many as the ids, 2, got 3");
  EXPECT_EQ(refusal<ValueError>([&] { to_coo(DenseIds{ids}, {}, Combiner::kSum, 3); }),
            "dense ids must be none or one for each of 3 samples, got 2");
  const Ids negative = {1, -7};
  EXPECT_EQ(refusal<DataError>([&] { to_coo(DenseIds{negative}, {}, Combiner::kSum, 2); }),
            "to_coo, sample 1, position 1: id must be >= 0, got -7");
  for (const Ids& splits : {Ids{0, 2, 1}, Ids{0, 1, 3}, Ids{1, 1, 2}, Ids{0, 1, 1}, Ids{0, -1, 2}})
    EXPECT_NE(refusal<DataError>([&] {
                to_coo(RaggedIds{splits, ids}, {}, Combiner::kSum, 2);
              }),
              "");
  EXPECT_EQ(refusal<DataError>([&] {
              to_coo(RaggedIds{two, ids}, {}, Combiner::kSum, 2);
            }),
            "to_coo, position 2: row_splits must be one number more than the 2 samples, got 2");
}

TEST(Partition, PadsEverySegmentToEight) {
  const std::vector<CooEntry> entries = {{0, 7, 1}, {0, 4, 2}, {1, 7, 3}, {1, 4, 4}, {1, 1, 5}};
  const PartitionedCsr csr = partition(entries, 3);
  EXPECT_EQ(csr.segment_begin, (Ids{0, 0, 8}));
  EXPECT_EQ(csr.segment_end, (Ids{0, 5, 8}));
  EXPECT_EQ(csr.row, (Ids{0, 1, 1, 2, 2, -1, -1, -1}));
  EXPECT_EQ(csr.sample, (Ids{1, 0, 1, 0, 1, -1, -1, -1}));
  EXPECT_EQ(csr.gain, (Floats{5, 2, 4, 1, 3, 0, 0, 0}));
  EXPECT_THROW(partition(entries, 0), ValueError);
  EXPECT_THROW(partition(std::vector<CooEntry>{{0, -1, 1}}, 3), ValueError);
}

/// What the entries of random ids say, one map entry at a time, in double.
TEST(Partition, AgreesWithAMapForRandomIds) {
  std::mt19937 random(test_seed(11));
  for (int round = 0; round < 300; ++round) {
    const std::int64_t samples = random() % 6, shards = 1 + random() % 5;
    const auto combiner = static_cast<Combiner>(random() % 3);
    Ids splits = {0}, ids;
    Floats weights;
    std::map<std::pair<std::int64_t, std::int64_t>, double> want;  // (id, sample) -> gain
    for (std::int64_t s = 0; s < samples; ++s) {
      double sum = 0, squares = 0;
      const std::size_t first = ids.size();
      for (unsigned n = random() % 7; n > 0; --n) {
        ids.push_back(random() % 9);
        weights.push_back(static_cast<float>(random() % 8) / 4);
        sum += weights.back();
        squares += double{weights.back()} * weights.back();
      }
      const double by = combiner == Combiner::kSum    ? 1
                        : combiner == Combiner::kMean ? sum
                                                      : std::sqrt(squares);
      for (std::size_t i = first; i < ids.size(); ++i)
        want[{ids[i], s}] += by == 0 ? 0 : weights[i] / by;
      splits.push_back(static_cast<std::int64_t>(ids.size()));
    }
    // FloatSpan: no weights count as ones, which is not what no ids have
    const PartitionedCsr csr =
        partition(to_coo(RaggedIds{splits, ids}, weights, combiner, samples), shards);
    std::map<std::pair<std::int64_t, std::int64_t>, double> got;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const auto s = static_cast<std::size_t>(shard);
      EXPECT_EQ(csr.segment_begin[s] % 8, 0);
      std::pair<std::int64_t, std::int64_t> before = {-1, -1};
      for (auto i = csr.segment_begin[s]; i < csr.segment_end[s]; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::pair<std::int64_t, std::int64_t> key = {csr.row[at] * shards + shard,
                                                           csr.sample[at]};
        EXPECT_LT(before, key);  // sorted, and each once
        before = key;
        got[key] = csr.gain[at];
      }
    }
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [key, gain] : want) ASSERT_NEAR(got.at(key), gain, 1e-6);
    EXPECT_EQ(csr.row.size() % 8, 0u);
    EXPECT_EQ(csr.row.size(), csr.gain.size());
  }
}

}  // namespace
}  // namespace embertable
