#include "input/feature_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "testing/feature_reader.h"

namespace embertable::input {
namespace {

using Ids = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// A table of 16 rows, and an output shape.
FeatureSpec spec(Shape shape, Combiner combiner = Combiner::kSum) {
  return {.path = "user/1", .vocabulary_size = 16, .combiner = combiner, .output_shape = shape};
}

FeatureSpec sequence(std::int64_t samples, std::int64_t length,
                     Combiner combiner = Combiner::kSum) {
  FeatureSpec made = spec({samples, length}, combiner);
  made.max_sequence_length = length;
  return made;
}

FeatureSpec dropping(FeatureSpec made) {
  made.drop_out_of_range = true;
  return made;
}

FeatureSpec varying(FeatureSpec made) {
  made.variable_batch = true;
  return made;
}

// Two samples: ids 3 and 0, 1, 2.
const Ids kSplits = {0, 1, 4};
const Ids kFriends = {3, 0, 1, 2};
const Ids kFriendsAt = {0, 0, 1, 0, 1, 1, 1, 2};
const RaggedIds kRagged = {kSplits, kFriends};
const SparseIds kSparse = {kFriendsAt, kFriends, {2, 3}};

TEST(FeatureReader, CopiesDenseIdsWhateverTheCombiner) {
  const Ids ids = {5, 0, 15, 5};
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    const ReadPlan plan = read(spec({2, 2}, combiner), DenseIds{ids, {2, 2, 1}});
    EXPECT_EQ(plan, (ReadPlan{.outputs = 4, .row = ids, .shape = {2, 2}}));
  }
}

TEST(FeatureReader, IgnoresTheSequenceLengthOfDenseIds) {
  FeatureSpec three = spec({4});
  three.max_sequence_length = 3;
  EXPECT_EQ(read(three, DenseIds{kFriends}).row, kFriends);
}

TEST(FeatureReader, CombinesRaggedAndSparseRowsAlike) {
  const ReadPlan plan = read(spec({2}), kRagged);
  EXPECT_EQ(plan, (ReadPlan{.outputs = 2, .row = kFriends, .split = kSplits, .shape = {2}}));
  EXPECT_EQ(read(spec({2}), kSparse), plan);
}

TEST(FeatureReader, DividesByTheNumberOfEntriesOrItsRoot) {
  EXPECT_EQ(read(spec({2}, Combiner::kMean), kRagged).denominator, (Floats{1, 3}));
  EXPECT_EQ(read(spec({2}, Combiner::kSqrtN), kSparse).denominator, (Floats{1, std::sqrt(3.0f)}));
}

TEST(FeatureReader, DividesByTheWeightsOrTheRootOfTheirSquares) {
  const Ids splits = {0, 2, 3}, ids = {1, 3, 2};
  const Floats weights = {2, 0.5f, 3};
  const ReadOptions weighted = {.weights = RaggedWeights{weights}};
  EXPECT_EQ(read(spec({2}), RaggedIds{splits, ids}, weighted).weight, weights);
  EXPECT_EQ(read(spec({2}, Combiner::kMean), RaggedIds{splits, ids}, weighted).denominator,
            (Floats{2.5f, 3}));
  EXPECT_EQ(read(spec({2}, Combiner::kSqrtN), RaggedIds{splits, ids}, weighted).denominator,
            (Floats{std::sqrt(4.25f), 3}));
}

TEST(FeatureReader, AddsWeightsLeftToRightFromTheFirst) {
  const Ids splits = {0, 3}, ids = {1, 2, 3};
  const Floats weights = {1e8f, 1, -1e8f};  // 1e8 + 1 is 1e8
  EXPECT_EQ(
      read(spec({1}, Combiner::kMean), RaggedIds{splits, ids}, {.weights = RaggedWeights{weights}})
          .denominator,
      (Floats{0}));
}

TEST(FeatureReader, LeavesOutWeightsAndDenominatorsThatAreAllOne) {
  const Floats ones = {1, 1, 1, 1};
  const ReadOptions weighted = {.weights = RaggedWeights{ones}};
  EXPECT_EQ(read(spec({2}), kRagged, weighted), read(spec({2}), kRagged));
  const Ids splits = {0, 1, 1};
  EXPECT_EQ(read(spec({2}, Combiner::kMean), RaggedIds{splits, Ids{7}}),
            (ReadPlan{.outputs = 2, .row = {7}, .split = splits, .shape = {2}}));
}

TEST(FeatureReader, SeesThatEveryOutputRowHasOneEntry) {
  const Ids splits = {0, 1, 2, 3}, ids = {4, 4, 2}, at = {0, 1, 1, 0, 2, 1};
  const Floats ones = {1, 1, 1};
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    const ReadPlan copy = {.outputs = 3, .row = ids, .shape = {3}};
    EXPECT_EQ(read(spec({3}, combiner), RaggedIds{splits, ids}), copy);
    EXPECT_EQ(read(spec({3}, combiner), RaggedIds{splits, ids}, {.weights = RaggedWeights{ones}}),
              copy);
    EXPECT_EQ(read(spec({3}, combiner), SparseIds{at, ids, {3, 2}}), copy);
  }
}

TEST(FeatureReader, KeepsTheWeightsOfSingleEntries) {
  const Ids splits = {0, 1, 2}, ids = {4, 2};
  const Floats weights = {1, -2};
  const ReadPlan plan = read(spec({2}, Combiner::kSqrtN), RaggedIds{splits, ids},
                             {.weights = RaggedWeights{weights}});
  EXPECT_EQ(plan.split, splits);
  EXPECT_EQ(plan.weight, weights);
  EXPECT_EQ(plan.denominator, (Floats{1, 2}));
}

TEST(FeatureReader, NarrowsDoublesAndTakesShortIntegers) {
  const std::vector<std::int32_t> splits = {0, 1, 4}, ids = {3, 0, 1, 2},
                                  at = {0, 0, 1, 0, 1, 1, 1, 2};
  const std::vector<double> weights = {0.1, 0.2, 0.3, 1e-50};
  const Floats narrowed = {0.1f, 0.2f, 0.3f, 0};
  EXPECT_EQ(read(spec({2}), RaggedIds{splits, ids}, {.weights = RaggedWeights{weights}}),
            read(spec({2}), kRagged, {.weights = RaggedWeights{narrowed}}));
  EXPECT_EQ(read(spec({2}), SparseIds{at, ids, {2, 3}}, {.weights = SparseWeights{weights}}),
            read(spec({2}), kRagged, {.weights = RaggedWeights{narrowed}}));
}

TEST(FeatureReader, GivesWideRowNumbersOnRequest) {
  FeatureSpec wide = spec({2});
  wide.wide = true;
  wide.vocabulary_size = std::int64_t{1} << 40;
  const Ids ids = {wide.vocabulary_size - 1, 7};
  EXPECT_EQ(read(wide, DenseIds{ids}).row, ids);
}

TEST(FeatureReader, ReinterpretsRowsByTheOutputShape) {
  const Ids at = {0, 0, 1, 1, 3, 0, 3, 1}, splits = {0, 1, 2, 2, 4};
  const ReadPlan plan = {.outputs = 4, .row = kFriends, .split = splits, .shape = {2, 2}};
  EXPECT_EQ(read(spec({2, 2}), SparseIds{at, kFriends, {4, 2}}), plan);
  EXPECT_EQ(read(spec({2, 2}), RaggedIds{splits, kFriends}), plan);
}

TEST(FeatureReader, CombinesOverTheLastAxisOfHighRank) {
  const Ids at = {0, 0, 1, /**/ 1, 0, 0, /**/ 1, 0, 2, /**/ 1, 1, 1};
  EXPECT_EQ(read(spec({2, 2}), SparseIds{at, kFriends, {2, 2, 3}}),
            (ReadPlan{.outputs = 4, .row = kFriends, .split = {0, 1, 1, 3, 4}, .shape = {2, 2}}));
}

TEST(FeatureReader, GivesEachPositionOfASequenceItsOwnOutputRow) {
  const ReadPlan plan = {
      .outputs = 6, .row = kFriends, .split = {0, 1, 1, 1, 2, 3, 4}, .shape = {2, 3}};
  EXPECT_EQ(read(sequence(2, 3, Combiner::kMean), kRagged), plan);
  EXPECT_EQ(read(sequence(2, 3, Combiner::kMean), kSparse), plan);
}

TEST(FeatureReader, CutsSequencesOffAndDoesNotLookAtTheRest) {
  const Ids ids = {3, 0, 1, 99};
  const ReadPlan plan = {
      .outputs = 4, .row = {3, 0, 1}, .split = {0, 1, 1, 2, 3}, .shape = {2, 2}, .truncated = 1};
  EXPECT_EQ(read(sequence(2, 2), RaggedIds{kSplits, ids}), plan);
  EXPECT_EQ(read(sequence(2, 2), SparseIds{kFriendsAt, ids, {2, 3}}), plan);
}

TEST(FeatureReader, SequencesOfLengthOneTakeTheFirstInsteadOfCombining) {
  const Ids splits = {0, 2}, ids = {1, 2};
  EXPECT_EQ(read(sequence(1, 1, Combiner::kMean), RaggedIds{splits, ids}),
            (ReadPlan{.outputs = 1, .row = {1}, .shape = {1, 1}, .truncated = 1}));
}

TEST(FeatureReader, PutsSparseEntriesOfASequenceWhereTheirColumnIs) {
  const auto split = [](std::int64_t column) {
    const Ids at = {0, column, 1, 0};
    return read(sequence(2, 2), SparseIds{at, Ids{3, 0}, {2, 3}}).split;
  };
  EXPECT_EQ(split(1), (Ids{0, 0, 1, 2, 2}));
  EXPECT_EQ(split(2), (Ids{0, 0, 0, 1, 1}));
}

TEST(FeatureReader, WeighsPositionsOfASequenceByTheCombiner) {
  const Floats weights = {0.5f, -2, 0, 4};
  const auto denominator = [&](Combiner combiner) {
    return read(sequence(2, 3, combiner), kRagged, {.weights = RaggedWeights{weights}}).denominator;
  };
  EXPECT_EQ(denominator(Combiner::kSum), Floats{});
  EXPECT_EQ(denominator(Combiner::kMean), (Floats{0.5f, 1, 1, -2, 0, 4}));
  EXPECT_EQ(denominator(Combiner::kSqrtN), (Floats{0.5f, 1, 1, 2, 0, 4}));
}

TEST(FeatureReader, SpreadsFewRaggedRowsOverABuiltShape) {
  const Floats weights = {9, 9, 9, 9};
  const ReadPlan plan = {
      .outputs = 8, .row = kFriends, .split = {0, 1, 1, 1, 1, 2, 3, 4, 4}, .shape = {2, 4}};
  EXPECT_EQ(read(spec({2, 4}, Combiner::kMean), kRagged), plan);
  EXPECT_EQ(read(spec({2, 4}, Combiner::kMean), kRagged, {.weights = RaggedWeights{weights}}),
            plan);
  EXPECT_EQ(read(spec({2, 2, 2}), kRagged).shape, (Shape{2, 2, 2}));
}

TEST(FeatureReader, SpreadsRaggedRowsOverABuiltShapeThatIsNotOfTheSequenceLength) {
  FeatureSpec built = spec({2, 2, 2});
  built.max_sequence_length = 3;
  EXPECT_EQ(read(built, kRagged), read(spec({2, 2, 2}), kRagged));
}

TEST(FeatureReader, OrdersSparseEntriesRowMajorAndKeepsEqualOnesAsTheyCome) {
  const Ids at = {1, 2, /**/ 0, 0, /**/ 1, 0, /**/ 1, 2, /**/ 1, 1}, ids = {9, 3, 0, 8, 1};
  const Floats weights = {1, 2, 3, 4, 5};
  const ReadPlan plan = read(spec({2}, Combiner::kMean), SparseIds{at, ids, {2, 3}},
                             {.weights = SparseWeights{weights}});
  EXPECT_EQ(plan.row, (Ids{3, 0, 1, 9, 8}));
  EXPECT_EQ(plan.split, (Ids{0, 1, 5}));
  EXPECT_EQ(plan.weight, (Floats{2, 3, 5, 1, 4}));
  EXPECT_EQ(plan.denominator, (Floats{2, 13}));
}

TEST(FeatureReader, CombinesEntriesOfOnePositionOfASequence) {
  const Ids at = {0, 1, 0, 1}, ids = {5, 6};
  EXPECT_EQ(
      read(sequence(1, 2, Combiner::kMean), SparseIds{at, ids, {1, 2}}),
      (ReadPlan{
          .outputs = 2, .row = ids, .split = {0, 0, 2}, .denominator = {1, 2}, .shape = {1, 2}}));
}

TEST(FeatureReader, DropsIdsOutsideTheTableBeforeItDivides) {
  const Ids splits = {0, 3, 5, 6}, ids = {0, 16, 1, 3, -1, 99};
  EXPECT_EQ(read(dropping(spec({3}, Combiner::kMean)), RaggedIds{splits, ids}),
            (ReadPlan{.outputs = 3,
                      .row = {0, 1, 3},
                      .split = {0, 2, 3, 3},
                      .denominator = {2, 1, 1},
                      .shape = {3},
                      .dropped = 3}));
}

TEST(FeatureReader, SeesSingleEntriesThatDroppingLeaves) {
  const Ids splits = {0, 2, 3}, ids = {16, 1, 3};
  const Floats weights = {7, 1, 1};
  EXPECT_EQ(read(dropping(spec({2}, Combiner::kMean)), RaggedIds{splits, ids},
                 {.weights = RaggedWeights{weights}}),
            (ReadPlan{.outputs = 2, .row = {1, 3}, .shape = {2}, .dropped = 1}));
}

TEST(FeatureReader, DropsDenseAndSparseIdsToo) {
  const Ids ids = {3, 99, 1, -5};
  EXPECT_EQ(
      read(dropping(spec({4})), DenseIds{ids}),
      (ReadPlan{
          .outputs = 4, .row = {3, 1}, .split = {0, 1, 1, 2, 2}, .shape = {4}, .dropped = 2}));
  const Ids few = {3, 99, -5, 1};
  EXPECT_EQ(read(dropping(spec({2})), SparseIds{kFriendsAt, few, {2, 3}}),
            (ReadPlan{.outputs = 2, .row = {3, 1}, .shape = {2}, .dropped = 2}));
}

TEST(FeatureReader, DropsNothingWhereNothingIsWrong) {
  EXPECT_EQ(read(dropping(spec({2}, Combiner::kMean)), kRagged),
            read(spec({2}, Combiner::kMean), kRagged));
}

TEST(FeatureReader, TakesEmptyBatches) {
  const Ids zero = {0};
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    const ReadPlan nothing = {.shape = {0}};
    EXPECT_EQ(read(spec({0}, combiner), DenseIds{}), nothing);
    EXPECT_EQ(read(spec({0}, combiner), RaggedIds{zero, {}}), nothing);
    EXPECT_EQ(read(spec({0}, combiner), SparseIds{{}, {}, {0, 3}}), nothing);
    const ReadPlan no_ids = {.outputs = 2, .split = {0, 0, 0}, .shape = {2}};
    EXPECT_EQ(read(spec({2}, combiner), RaggedIds{Ids{0, 0, 0}, {}}), no_ids);
    EXPECT_EQ(read(spec({2}, combiner), SparseIds{{}, {}, {2, 0}}), no_ids);
  }
}

TEST(FeatureReader, TakesShorterBatchesWhereTheyMayVary) {
  EXPECT_EQ(read(varying(spec({8})), kRagged).shape, Shape{2});
  EXPECT_EQ(read(varying(spec({8})), kSparse).shape, Shape{2});
  EXPECT_EQ(read(varying(spec({8})), DenseIds{kFriends}).shape, Shape{4});
  EXPECT_EQ(read(varying(spec({8, 2})), DenseIds{kFriends}).shape, (Shape{2, 2}));
  EXPECT_EQ(read(varying(sequence(8, 3)), kRagged), read(sequence(2, 3), kRagged));
  EXPECT_EQ(read(varying(sequence(8, 3)), kSparse), read(sequence(2, 3), kSparse));
  EXPECT_EQ(read(varying(spec({8, 3})), kRagged), read(spec({2, 3}), kRagged));
  EXPECT_EQ(read(varying(spec({8})), DenseIds{}).shape, Shape{0});
}

TEST(FeatureReader, CountsEntriesPerBucketAndTile) {
  Ids ids;
  for (std::int64_t i = 0; i < kTileRows + 3; ++i) ids.push_back(i % 16 * 1000);
  FeatureSpec large = spec({kTileRows + 3});
  large.vocabulary_size = 16000;
  for (const bool wide : {false, true}) {
    large.wide = wide;
    std::vector<std::uint32_t> expected(2 * 16);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto tile = i / static_cast<std::size_t>(kTileRows);
      ++expected[tile * 16 + bucket_of(static_cast<std::uint32_t>(ids[i]), 5)];
    }
    for (const SimdLevel level : usable_levels()) {
      EXPECT_EQ(read(large, DenseIds{ids}, {.buckets = 5, .level = level}).counts, expected);
    }
  }
  EXPECT_TRUE(read(large, DenseIds{ids}, {.buckets = 1}).counts.empty());
}

TEST(FeatureReader, StartsEachTilesCountsOnACacheLine) {
  Arena arena;
  FeatureReader reader;
  reader.start(spec({4}), DenseIds{kFriends}, {}, 0, 17, arena);
  EXPECT_EQ(reader.plan().counts_stride, 32);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reader.plan().counts.data()) % 64, 0u);
}

TEST(FeatureReader, KnowsTheNumbersOfIdsAndOutputRowsFromTheStart) {
  Arena arena;
  FeatureReader reader;
  reader.start(spec({2}), kRagged, {}, 0, 0, arena);
  EXPECT_EQ(reader.plan().row.size, 4);
  EXPECT_EQ(reader.plan().outputs, 2);
}

TEST(FeatureReader, SaysWhichWeightsAreOfTheWrongKind) {
  const Floats weights = {1, 1, 1, 1};
  EXPECT_EQ(refusal(spec({4}), DenseIds{kFriends}, {.weights = SparseWeights{weights}}),
            "feature 'user/1', replica 0: dense ids have no weights, got sparse weights");
  EXPECT_EQ(refusal(spec({4}), DenseIds{kFriends}, {.weights = DenseWeights{weights}}),
            "feature 'user/1', replica 0: dense ids have no weights, got dense weights");
  EXPECT_EQ(
      refusal(spec({2}), kSparse, {.weights = RaggedWeights{weights}, .replica = 3}),
      "feature 'user/1', replica 3: weights of sparse ids must be sparse, got ragged weights");
  EXPECT_EQ(
      refusal(spec({2}), kRagged, {.weights = SparseWeights{weights}}),
      "feature 'user/1', replica 0: weights of ragged ids must be ragged, got sparse weights");
}

TEST(FeatureReader, SaysHowManyWeightsThereMustBe) {
  const Floats weights = {1, 1, 1};
  EXPECT_EQ(refusal(spec({2}), kRagged, {.weights = RaggedWeights{weights}}),
            "feature 'user/1', replica 0: weights must be as many as the ids, 4, got 3");
  EXPECT_EQ(refusal(spec({2, 4}), kRagged, {.weights = RaggedWeights{weights}}),
            "feature 'user/1', replica 0: weights must be as many as the ids, 4, got 3");
}

TEST(FeatureReader, SaysWhichRankIsWrong) {
  EXPECT_EQ(refusal(spec({4}), DenseIds{kFriends, {2, 2}}),
            "feature 'user/1', replica 0: dense ids of rank 2 or more must have 1 as last dim, got "
            "shape (2, 2); several ids of a sample are RaggedIds");
  EXPECT_EQ(refusal(spec({4}), SparseIds{kSplits, kSplits, {3}}),
            "feature 'user/1', replica 0: sparse ids must have rank 2 or more, got rank 1");
}

TEST(FeatureReader, SaysHowManyElementsThereMustBe) {
  EXPECT_EQ(refusal(spec({2, 4}), DenseIds{kFriends}),
            "feature 'user/1', replica 0: dense ids must give one id per element of output shape "
            "(2, 4), got 4");
  EXPECT_EQ(refusal(spec({3}), DenseIds{kFriends, {3}}),
            "feature 'user/1', replica 0: dense ids of shape (3) must number 3, got 4");
  EXPECT_EQ(refusal(spec({3}), kSparse),
            "feature 'user/1', replica 0: dense_shape (2, 3) must give as many output rows as "
            "output shape (3) has elements, 3, got 2");
  EXPECT_EQ(refusal(sequence(4, 3), kSparse),
            "feature 'user/1', replica 0: dense_shape (2, 3) with max_sequence_length 3 must give "
            "as many output rows as output shape (4, 3) has elements, 12, got 6");
  for (const std::int64_t rows : {3, 5}) {
    EXPECT_EQ(refusal(spec({rows}), kRagged),
              "feature 'user/1', replica 0: ragged rows must be as many as output shape (" +
                  std::to_string(rows) + ") has elements, " + std::to_string(rows) +
                  ", or divide them; got 2 rows");
  }
  EXPECT_EQ(refusal(sequence(4, 3), kRagged),
            "feature 'user/1', replica 0: 2 rows of max_sequence_length 3 must fill output shape "
            "(4, 3)");
}

TEST(FeatureReader, RefusesLargerAndUnevenBatchesThatMayVary) {
  EXPECT_NE(refusal(varying(spec({1})), kRagged), "");
  EXPECT_NE(refusal(varying(spec({1})), kSparse), "");
  EXPECT_NE(refusal(varying(spec({3})), DenseIds{kFriends}), "");
  EXPECT_NE(refusal(varying(spec({4, 3})), DenseIds{kFriends}), "");
  EXPECT_NE(refusal(varying(sequence(1, 3)), kRagged), "");
}

TEST(FeatureReader, RefusesShapesWhoseProductsOverflow) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_NE(refusal(spec({0}), SparseIds{{}, {}, {large, large, 2}}).find("got more than 2^63"),
            std::string::npos);
  FeatureSpec long_sequence = spec({2});
  long_sequence.max_sequence_length = std::int64_t{1} << 62;
  EXPECT_NE(refusal(long_sequence, kSparse), "");
  EXPECT_NE(refusal(sequence(0, std::int64_t{1} << 62), kRagged), "");
}

TEST(FeatureReader, RefusesTwoToTheThirtyFirstIds) {
  const std::int32_t one = 0;
  const std::span<const std::int32_t> many(&one, std::size_t{1} << 31);
  EXPECT_EQ(refusal(spec({std::int64_t{1} << 31}), DenseIds{many}),
            "feature 'user/1', replica 0: a feature must have fewer than 2^31 ids per replica, "
            "got 2147483648");
  const Ids none = {0};
  EXPECT_EQ(refusal(spec({std::int64_t{1} << 31}), SparseIds{{}, {}, {std::int64_t{1} << 31, 1}}),
            "feature 'user/1', replica 0: a feature must have fewer than 2^31 output rows per "
            "replica, got 2147483648");
}

TEST(FeatureReader, SaysWhichSplitIsWrong) {
  const auto said = [](const Ids& splits) {
    return refusal(spec({3}), RaggedIds{splits, kFriends});
  };
  EXPECT_EQ(said({}),
            "feature 'user/1', replica 0: row_splits must have one number or more, got none");
  EXPECT_EQ(said({1, 2, 3, 4}),
            "feature 'user/1', replica 0, position 0: row_splits must start at 0, got 1");
  EXPECT_EQ(said({0, 2, 3, 5}),
            "feature 'user/1', replica 0, position 3: row_splits must end at the number of ids, 4, "
            "got 5");
  EXPECT_EQ(
      said({0, 3, 2, 4}),
      "feature 'user/1', replica 0, sample 1, position 2: row_splits must not fall, got 2 after 3");
  EXPECT_EQ(said({0, 3, -2, 4}),
            "feature 'user/1', replica 0, sample 1, position 2: row_splits must not fall, got -2 "
            "after 3");
  EXPECT_EQ(refusal(spec({3, 4}), RaggedIds{Ids{0, 3, 2, 4}, kFriends}),
            "feature 'user/1', replica 0, sample 4, position 2: row_splits must not fall, got 2 "
            "after 3");
}

TEST(FeatureReader, SaysWhichSplitIsWrongAcrossTiles) {
  const std::int64_t last = std::numeric_limits<std::int64_t>::max();
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t value : {last, lowest}) {
    for (const std::int64_t at : {kTileRows - 1, kTileRows, kTileRows + 1}) {
      Ids splits(static_cast<std::size_t>(2 * kTileRows + 1), 0);
      splits[at] = value;
      const std::int64_t fall = value == last ? at + 1 : at;
      for (const FeatureSpec& each : {spec({2 * kTileRows}), sequence(2 * kTileRows, 3)}) {
        const std::string message = refusal(each, RaggedIds{splits, {}});
        EXPECT_NE(message.find("position " + std::to_string(fall) + ":"), std::string::npos)
            << message;
      }
    }
  }
}

TEST(FeatureReader, SaysWhichIndexIsOutsideTheDenseShape) {
  EXPECT_EQ(refusal(spec({2}), SparseIds{Ids{0, 0, 1}, Ids{1, 2}, {2, 3}}),
            "feature 'user/1', replica 0: indices must be [2, 2], one row per id, got 3 numbers");
  const auto said = [](const Ids& at) {
    return refusal(spec({2}), SparseIds{at, Ids{1, 99}, {2, 3}});
  };
  EXPECT_EQ(said({0, 0, 1, 3}),
            "feature 'user/1', replica 0, position 1: indices must lie within dense_shape (2, 3), "
            "got 3 on axis 1");
  EXPECT_EQ(said({2, 0, 1, 0}),
            "feature 'user/1', replica 0, position 0: indices must lie within dense_shape (2, 3), "
            "got 2 on axis 0");
  EXPECT_EQ(said({0, -1, 1, 0}),
            "feature 'user/1', replica 0, position 0: indices must lie within dense_shape (2, 3), "
            "got -1 on axis 1");
  EXPECT_EQ(refusal(spec({0}), SparseIds{Ids{0, 0}, Ids{1}, {0, 3}}),
            "feature 'user/1', replica 0, position 0: indices must lie within dense_shape (0, 3), "
            "got 0 on axis 0");
}

TEST(FeatureReader, SaysWhichIdIsOutsideTheTable) {
  const Ids ids = {3, 0, 16, -1};
  const auto said = [&](std::int64_t sample) {
    return "feature 'user/1', replica 2, sample " + std::to_string(sample) +
           ", position 2: id must be in 0..15 (vocabulary_size 16), got 16";
  };
  const ReadOptions second = {.replica = 2};
  EXPECT_EQ(refusal(spec({4}), DenseIds{ids}, second), said(2));
  EXPECT_EQ(refusal(spec({2}), RaggedIds{kSplits, ids}, second), said(1));
  EXPECT_EQ(refusal(sequence(2, 3), RaggedIds{kSplits, ids}, second), said(4));
  EXPECT_EQ(refusal(spec({2}), SparseIds{kFriendsAt, ids, {2, 3}}, second), said(1));
  EXPECT_EQ(refusal(sequence(2, 3), SparseIds{kFriendsAt, ids, {2, 3}}, second), said(4));
}

TEST(FeatureReader, NamesTheFirstBadIdInCanonicalOrderAtItsPlaceWithTheCaller) {
  const Ids at = {1, 0, 0, 1}, ids = {-7, 16};
  EXPECT_EQ(refusal(spec({2}), SparseIds{at, ids, {2, 3}}),
            "feature 'user/1', replica 0, sample 0, position 1: id must be in 0..15 "
            "(vocabulary_size 16), got 16");
}

TEST(FeatureReader, TellsWhereThingsAreAsNumbersToo) {
  try {
    read(spec({2}), RaggedIds{kSplits, Ids{3, 0, 16, 2}}, {.replica = 2});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.where().feature, "user/1");
    EXPECT_EQ(error.where().replica, 2);
    EXPECT_EQ(error.where().sample, 1);
    EXPECT_EQ(error.where().position, 2);
  }
}

TEST(FeatureReader, ReadsOnAfterARefusal) {
  Arena arena;
  FeatureReader reader;
  const FeatureSpec two = spec({2});
  const auto next = [&](const RaggedIds& ids) {
    arena.reset();
    reader.start(two, ids, {}, 0, 0, arena);
    reader.read_tile(0, SimdLevel::kScalar);
    reader.finish();
    return plan_of(reader);
  };
  EXPECT_THROW(next({kSplits, Ids{3, 0, 16, 2}}), DataError);
  EXPECT_THROW(next({Ids{0, 1, 2, 4}, kFriends}), ValueError);
  EXPECT_EQ(next(kRagged), read(two, kRagged));
}

TEST(FeatureReader, ReadsTilesOnSeveralThreads) {
  const std::int64_t outputs = 9 * kTileRows + 5;
  Ids splits = {0}, ids, at;
  for (std::int64_t i = 0; i < outputs; ++i) {
    for (std::int64_t k = 0; k < i % 4; ++k) {
      ids.push_back((i + k) % 16);
      at.insert(at.end(), {i, k});
    }
    splits.push_back(static_cast<std::int64_t>(ids.size()));
  }
  for (const FeatureSpec& each :
       {dropping(spec({outputs}, Combiner::kMean)), sequence(outputs, 2)}) {
    for (const FeatureIds& batch :
         {FeatureIds(RaggedIds{splits, ids}), FeatureIds(SparseIds{at, ids, {outputs, 4}})}) {
      Arena arena;
      FeatureReader reader;
      reader.start(each, batch, {}, 0, 9, arena);
      std::vector<std::thread> threads;
      for (std::int64_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          for (std::int64_t i = t; i < reader.tiles(); i += 3) reader.read_tile(i, simd_level());
        });
      }
      for (std::thread& thread : threads) thread.join();
      reader.finish();
      EXPECT_EQ(plan_of(reader), read(each, batch, {.buckets = 9}));
    }
  }
}

}  // namespace
}  // namespace embertable::input
