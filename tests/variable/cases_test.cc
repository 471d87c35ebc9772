// Numbered cases of sharded variables: construction, dense assignment, indexing, sparse operations,
// operators.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "embertable/errors.h"
#include "embertable/variables/export_scope.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor_operators.h"
#include "testing/refusal.h"
#include "testing/variable/slow_array.h"
#include "testing/variable/slow_index.h"

namespace embertable {
namespace {

using namespace sharded_test;  // NOLINT: arrays as lists of numbers
using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

Tensor ids(const Ints& values) {
  return Tensor::of<std::int64_t>(values, {static_cast<std::int64_t>(values.size())});
}
Tensor floats(const F& values, const Shape& shape) { return Tensor::of<float>(values, shape); }

F values(const Tensor& tensor) {
  const Tensor packed = tensor.packed();
  const auto all = packed.values<float>();
  return {all.begin(), all.end()};
}
F values(const ShardedVariable& variable) { return values(variable.value()); }

/// float32 [rows, columns] = first, first + 1, ...
SlowArray counting(std::int64_t rows, std::int64_t columns, double first = 0) {
  SlowArray array = {DType::kFloat32, {rows, columns}, {}};
  for (std::int64_t i = 0; i < rows * columns; ++i)
    array.cell.push_back({.real = first + static_cast<double>(i)});
  return array;
}

/// Rows [1, 2], [3, 4], ..., [15, 16] in shards of 3, 3 and 2.
ShardedVariable t8() { return sharded(counting(8, 2, 1), {3, 3, 2}); }

/// The numbers of the rows of T8 that these are.
Ints row_numbers(const Tensor& rows) {
  EXPECT_EQ(rows.shape().without_last().append(2), rows.shape());
  Ints numbers;
  const F all = values(rows);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    EXPECT_EQ(all[i] + 1, all[i + 1]);
    numbers.push_back((static_cast<std::int64_t>(all[i]) - 1) / 2);
  }
  return numbers;
}

const std::nullopt_t kNone = std::nullopt;

// ---- Construction

TEST(ShardedCases, Case15_HasNameShapeDTypeAndItsComponents) {
  const Variable a(Tensor::of<std::int32_t>({0}, {1}), "a"),
      b(Tensor::of<std::int32_t>({1}, {1}), "b");
  const ShardedVariable s({a, b}, {.name = "s"});
  EXPECT_EQ(s.name(), "s");
  EXPECT_EQ(s.shape(), Shape({2}));
  EXPECT_EQ(s.dtype(), DType::kInt32);
  ASSERT_EQ(s.variables().size(), 2u);
  EXPECT_TRUE(s.variables()[0] == a && s.variables()[1] == b);
  EXPECT_EQ(ShardedVariable({Variable(Tensor::scalar(1.0f).reshaped({1}))}).name(),
            "ShardedVariable");
}

TEST(ShardedCases, Case16_NoComponentsOrNoVariableAreRefused) {
  EXPECT_EQ(refusal<TypeError>([] { ShardedVariable({}, {.name = "s"}); }),
            "sharded variable 's': components should be a non-empty list of variables, got none");
  EXPECT_EQ(
      refusal<TypeError>([] {
        ShardedVariable({Variable(Tensor()), Variable()});
      }),
      "sharded variable 'ShardedVariable': components should be a non-empty list of variables, "
      "got no variable at 1");
}

TEST(ShardedCases, Case17_DTypesAreTheSame) {
  EXPECT_EQ(refusal<ValueError>([] {
              ShardedVariable({Variable(Tensor(DType::kInt64, {2})),
                               Variable(Tensor(DType::kInt32, {2}), "b")});
            }),
            "sharded variable 'ShardedVariable': component 1 ('b') must have the same dtype as "
            "component 0, int64, got int32");
}

TEST(ShardedCases, Case18_ShapesAreTheSameButForRows) {
  const auto of = [](const Shape& a, const Shape& b) {
    return refusal<ValueError>([&] {
      ShardedVariable(
          {Variable(Tensor(DType::kFloat32, a)), Variable(Tensor(DType::kFloat32, b), "b")});
    });
  };
  EXPECT_EQ(
      of({5, 10}, {5, 20}),
      "sharded variable 'ShardedVariable': component 1 ('b') must have the same shapes except "
      "for the first axis as component 0, (5, 10), got (5, 20)");
  EXPECT_NE(of({5, 10}, {5}), "");
  EXPECT_NE(of({5}, Shape::scalar()).find("must have an axis of rows, got shape ()"),
            std::string::npos);
}

TEST(ShardedCases, Case19_AComponentBelongsToOneVariable) {
  const Variable a(Tensor(DType::kFloat32, {2}), "a"), b(Tensor(DType::kFloat32, {2}), "b");
  const ShardedVariable first({a}, {.name = "first"});
  EXPECT_EQ(refusal<ValueError>([&] {
              ShardedVariable({b, a}, {.name = "second"});
            }),
            "sharded variable 'second': component 1 ('a') is part of 'first' already: "
            "`SaveSliceInfo` should not be set");
  EXPECT_FALSE(b.save_slice_info().has_value());
  EXPECT_NE(refusal<ValueError>([&] { ShardedVariable({b, b}); }), "");
  EXPECT_FALSE(b.save_slice_info().has_value());
}

TEST(ShardedCases, Case20_OffsetsAreSumsOfRows) {
  const ShardedVariable s = sharded(counting(30, 100), {10, 15, 5});
  EXPECT_EQ(s.shape(), Shape({30, 100}));
  EXPECT_EQ(Ints(s.offsets().begin(), s.offsets().end()), Ints({0, 10, 25, 30}));
  const SaveSliceInfo& info = *s.variables()[1].save_slice_info();
  EXPECT_EQ(info.full_name, "ShardedVariable");
  EXPECT_EQ(info.full_shape, Shape({30, 100}));
  EXPECT_EQ(info.var_offset, Ints({10, 0}));
  EXPECT_EQ(info.var_shape, Shape({15, 100}));
}

TEST(ShardedCases, Case21_IterationYieldsComponents) {
  const ShardedVariable s = sharded(counting(4, 2), {3, 1});
  Ints rows;
  for (const Variable& component : s) rows.push_back(component.shape()[0]);
  EXPECT_EQ(rows, Ints({3, 1}));
}

// ---- Dense assignment: shards of 1, 2 and 1 rows [0, 0], [1, 1], [2, 2], [3, 3]

ShardedVariable four_rows() {
  return sharded({DType::kFloat32, {4, 2}, {{0}, {0}, {1}, {1}, {2}, {2}, {3}, {3}}}, {1, 2, 1});
}
Tensor rows_of_twos(const F& one_each) {
  F all;
  for (const float x : one_each) all.insert(all.end(), 2, x);
  return floats(all, {static_cast<std::int64_t>(one_each.size()), 2});
}

TEST(ShardedCases, Case22_AssignSetsEveryComponent) {
  ShardedVariable s = four_rows();
  EXPECT_EQ(&s.assign(rows_of_twos({4, 5, 6, 7})), &s);
  EXPECT_EQ(values(s.variables()[0].value()), F({4, 4}));
  EXPECT_EQ(values(s.variables()[1].value()), F({5, 5, 6, 6}));
  EXPECT_EQ(values(s.variables()[2].value()), F({7, 7}));
}

TEST(ShardedCases, Case23_AssignAddAdds) {
  ShardedVariable s = four_rows();
  EXPECT_EQ(values(s.assign_add(rows_of_twos({1, 1, 2, 2}))), F({1, 1, 2, 2, 4, 4, 5, 5}));
}

TEST(ShardedCases, Case24_AssignSubSubtracts) {
  ShardedVariable s = four_rows();
  EXPECT_EQ(values(s.assign_sub(rows_of_twos({0, 1, 1, 3}))), F({0, 0, 0, 0, 1, 1, 0, 0}));
}

TEST(ShardedCases, Case25_AValueOfAnotherShapeChangesNothing) {
  ShardedVariable s = four_rows();
  const F before = values(s);
  for (const Shape& shape :
       {Shape({3, 2}), Shape({5, 2}), Shape({4, 3}), Shape({4}), Shape({1, 2})}) {
    const Tensor value(DType::kFloat32, shape);
    EXPECT_EQ(
        refusal<ValueError>([&] { s.assign(value); }),
        "sharded variable 'ShardedVariable': assign needs float32 of shape (4, 2), got float32 "
        "of shape " +
            shape.to_string());
    EXPECT_THROW(s.assign_add(value), ValueError);
    EXPECT_THROW(s.assign_sub(value), ValueError);
  }
  EXPECT_THROW(s.assign(Tensor(DType::kInt32, {4, 2})), ValueError);
  EXPECT_EQ(values(s), before);
}

TEST(ShardedCases, Case26_IsDenseWhereItIsAskedFor) {
  EXPECT_EQ(values(four_rows()), F({0, 0, 1, 1, 2, 2, 3, 3}));
}

// ---- Slices of T8

struct SliceCase {
  SliceBound start, stop, step;
  Ints rows;
};
void expect_rows(const std::vector<SliceCase>& cases) {
  const ShardedVariable s = t8();
  for (const SliceCase& c : cases) {
    const Tensor result = s[Slice{c.start, c.stop, c.step}];
    EXPECT_EQ(row_numbers(result), c.rows);
    EXPECT_EQ(result.shape(), Shape({static_cast<std::int64_t>(c.rows.size()), 2}));
  }
}

TEST(ShardedCases, Case27_SlicesOfStepOne) {
  expect_rows({{kNone, kNone, kNone, {0, 1, 2, 3, 4, 5, 6, 7}},
               {kNone, 2, kNone, {0, 1}},
               {-8, 2, kNone, {0, 1}},
               {-10, 2, kNone, {0, 1}},
               {5, kNone, kNone, {5, 6, 7}},
               {5, -1, kNone, {5, 6}}});
}
TEST(ShardedCases, Case28_StepsAcrossShards) {
  expect_rows({{kNone, kNone, 3, {0, 3, 6}},
               {kNone, kNone, 5, {0, 5}},
               {1, kNone, 6, {1, 7}},
               {1, 5, 6, {1}},
               {1, kNone, 7, {1}}});
}
TEST(ShardedCases, Case29_StepsWithinBounds) {
  expect_rows({{2, 7, kNone, {2, 3, 4, 5, 6}}, {2, 7, 2, {2, 4, 6}}, {2, 7, 3, {2, 5}}});
}
TEST(ShardedCases, Case30_StepsOfMinusOne) {
  expect_rows({{kNone, kNone, -1, {7, 6, 5, 4, 3, 2, 1, 0}},
               {2, kNone, -1, {2, 1, 0}},
               {2, -10, -1, {2, 1, 0}},
               {2, -8, -1, {2, 1}},
               {4, kNone, -1, {4, 3, 2, 1, 0}},
               {-1, -3, -1, {7, 6}}});
}
TEST(ShardedCases, Case31_LongNegativeSteps) {
  expect_rows(
      {{kNone, kNone, -5, {7, 2}}, {6, kNone, -6, {6, 0}}, {6, 5, -6, {6}}, {6, kNone, -7, {6}}});
}
TEST(ShardedCases, Case32_NegativeStepsWithBounds) {
  expect_rows({{7, 1, -1, {7, 6, 5, 4, 3, 2}}, {7, 1, -2, {7, 5, 3}}, {7, 1, -4, {7, 3}}});
}
TEST(ShardedCases, Case33_EmptySlicesKeepTheOtherAxes) {
  expect_rows(
      {{0, 0, kNone, {}}, {5, 3, kNone, {}}, {3, 5, -1, {}}, {-1, 0, kNone, {}}, {2, -1, -1, {}}});
  EXPECT_EQ(t8().at({Slice{5, 3}, 0}).shape(), Shape({0}));
}
TEST(ShardedCases, Case34_AColumn) {
  const ShardedVariable s = t8();
  EXPECT_EQ(values(s.at({Slice{}, 0})), F({1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(s.at({Slice{}, Slice{0, 1}}).shape(), Shape({8, 1}));
  EXPECT_EQ(values(s.at({Slice{}, Slice{0, 1}})), F({1, 3, 5, 7, 9, 11, 13, 15}));
}
TEST(ShardedCases, Case35_AStartOutsideIsCutFirst) {
  expect_rows(
      {{-12, kNone, 3, {0, 3, 6}}, {8, kNone, -2, {7, 5, 3, 1}}, {100, kNone, -3, {7, 4, 1}}});
}
TEST(ShardedCases, Case36_AStepOfZeroIsRefused) {
  EXPECT_EQ(refusal<ValueError>([] {
              t8()[Slice{kNone, kNone, 0}];
            }),
            "sharded variable 'ShardedVariable': index: slice step cannot be zero");
}
TEST(ShardedCases, Case37_EverySliceOfEveryLayoutIsPythons) {
  for (const Ints& sizes : {Ints{3, 3, 2}, Ints{3, 3, 4}, Ints{1, 2, 1}, Ints{4}, Ints{2, 0, 3}}) {
    const std::int64_t rows = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    const SlowArray whole = counting(rows, 2);
    const ShardedVariable s = sharded(whole, sizes);
    std::vector<std::optional<std::int64_t>> bounds = {kNone};
    for (std::int64_t i = -rows - 4; i <= rows + 4; ++i) bounds.emplace_back(i);
    for (const auto& start : bounds)
      for (const auto& stop : bounds)
        for (const std::int64_t step : {1, 2, 3, 5, -1, -2, -3, -5}) {
          SlowPart part;
          part.start = start, part.stop = stop, part.step = step;
          ASSERT_TRUE(agree(to_array(s[to_index(part)]), slow_index(whole, {part}))) << shown(part);
        }
  }
}

// ---- Other indices of T8

TEST(ShardedCases, Case38_IntegersTakeARow) {
  const ShardedVariable s = t8();
  EXPECT_EQ(values(s[2]), F({5, 6}));
  EXPECT_EQ(values(s[6]), F({13, 14}));
  EXPECT_EQ(values(s[-2]), F({13, 14}));
  EXPECT_EQ(values(s.at({2, 1})), F({6}));
  EXPECT_EQ(s.at({2, 1}).shape(), Shape::scalar());
}
TEST(ShardedCases, Case39_EveryRowIsItsOwnFirstRowsOfShardsToo) {
  for (const Ints& sizes : {Ints{3, 3, 2}, Ints{2, 2}, Ints{10, 10, 10}, Ints{1, 1, 1},
                            Ints{11, 11, 10}, Ints{0, 2, 0, 0, 3, 0}}) {
    const std::int64_t rows = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    const ShardedVariable s = sharded(counting(rows, 1), sizes);
    for (std::int64_t i = -rows; i < rows; ++i)
      EXPECT_EQ(values(s[i]), F({static_cast<float>(i < 0 ? i + rows : i)})) << i;
  }
}
TEST(ShardedCases, Case40_RowsOutsideAreRefused) {
  const ShardedVariable s = t8();
  const std::string subject = "sharded variable 'ShardedVariable': ";
  for (const int i : {100, -100, 8, -9})
    EXPECT_EQ(refusal<IndexError>([&] { s[i]; }),
              subject + "index " + std::to_string(i) + " is out of bounds for axis 0 with size 8" +
                  (i < 0 ? ", before component 0 ('part_0') of rows [0, 3)"
                         : ", behind component 2 ('part_2') of rows [6, 8)"));
  EXPECT_EQ(refusal<IndexError>([&] {
              s.at({-4, 2});
            }),
            subject +
                "index 2 is out of bounds for axis 1 with size 2, in component 1 "
                "('part_1') of rows [3, 6)");
  EXPECT_EQ(refusal<IndexError>([&] {
              s.at({Slice{}, -3});
            }),
            subject + "index -3 is out of bounds for axis 1 with size 2");
  EXPECT_EQ(refusal<IndexError>([&] {
              s.at({0, 0, 0});
            }),
            subject + "index: 3 axes are indexed, shape (8, 2) has 2");
  EXPECT_EQ(refusal<IndexError>([] {
              sharded(counting(0, 2), {0, 0})[0];
            }),
            subject +
                "index 0 is out of bounds for axis 0 with size 0, behind component 0 "
                "('part_0') of rows [0, 0)");
}
TEST(ShardedCases, Case41_EllipsisFirst) {
  const ShardedVariable s = t8();
  EXPECT_TRUE(identical(s[Ellipsis{}], s.value()));
  EXPECT_EQ(values(s.at({Ellipsis{}, 0})), F({1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(s.at({Slice{0, 1}, Ellipsis{}}).shape(), Shape({1, 2}));
  EXPECT_EQ(values(s.at({Slice{0, 1}, Ellipsis{}})), F({1, 2}));
}
TEST(ShardedCases, Case42_NewAxisFirst) {
  EXPECT_EQ(t8().at({NewAxis{}, Ellipsis{}}).shape(), Shape({1, 8, 2}));
}
TEST(ShardedCases, Case43_PartsBehindNewAxisAndEllipsisAreOfTheWhole) {
  const ShardedVariable s = t8();
  EXPECT_EQ(s.at({NewAxis{}, Slice{2, 5}}).shape(), Shape({1, 3, 2}));
  EXPECT_EQ(values(s.at({NewAxis{}, Slice{2, 5}})), F({5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(s.at({NewAxis{}, 0}).shape(), Shape({1, 2}));
  EXPECT_EQ(values(s.at({NewAxis{}, 0})), F({1, 2}));
  EXPECT_EQ(values(s.at({Ellipsis{}, 2, 1})), F({6}));
  const ShardedVariable line = sharded({DType::kFloat32, {3}, {{1}, {2}, {3}}}, {2, 1});
  EXPECT_EQ(values(line.at({Ellipsis{}, 0})), F({1}));
  EXPECT_EQ(values(line.at({Ellipsis{}, 2})), F({3}));
}
TEST(ShardedCases, Case44_MasksSelect) {
  const ShardedVariable s = t8();
  EXPECT_EQ(values(s[s > 10]), F({11, 12, 13, 14, 15, 16}));
  const Tensor rows = Tensor::of<bool>({true, false, false, true, false, false, false, true}, {8});
  EXPECT_EQ(row_numbers(s[rows]), Ints({0, 3, 7}));
  EXPECT_EQ(values(s.at({rows, 1})), F({2, 8, 16}));
  EXPECT_THROW(s[Tensor(DType::kBool, {7})], ValueError);
  EXPECT_THROW(s[Tensor(DType::kBool, {8, 3})], ValueError);
  EXPECT_THROW(s[true], ValueError);
  EXPECT_EQ(values(s.at({1, 0})), F({3}));
  EXPECT_EQ(s[Tensor(DType::kBool, {8})].shape(), Shape({0, 2}));
}
TEST(ShardedCases, Case45_TensorsAreNoPositions) {
  const ShardedVariable s = t8();
  const Tensor one = Tensor::scalar(std::int64_t{1});
  EXPECT_NE(refusal<TypeError>([&] { s[one]; }).find("not allowed"), std::string::npos);
  EXPECT_NE(refusal<TypeError>([&] { s[Slice{one, {}}]; }).find("not allowed"), std::string::npos);
  EXPECT_NE(refusal<TypeError>([&] { s[Slice{{}, one}]; }).find("not allowed"), std::string::npos);
}

// ---- Sparse operations

constexpr ScatterOperation kEveryOperation[] = {ScatterOperation::kAdd,   ScatterOperation::kSub,
                                                ScatterOperation::kMul,   ScatterOperation::kDiv,
                                                ScatterOperation::kMin,   ScatterOperation::kMax,
                                                ScatterOperation::kUpdate};

/// The same done to one piece and to shards.
void expect_same_as_whole(const SlowArray& start, const Ints& sizes,
                          const std::function<void(ShardedVariable&)>& change) {
  ShardedVariable parts = sharded(start, sizes), whole = sharded(start, {start.dims[0]});
  change(parts);
  change(whole);
  EXPECT_TRUE(identical(parts.value(), whole.value()));
}

TEST(ShardedCases, Case46_ScatterAddTwice) {
  const Tensor rows = ids({0, 10, 11, 12, 30, 31}), add = floats({0, 1, 2, 3, 4, 5}, {6, 1});
  SlowArray zeros = counting(32, 1);
  for (Number& x : zeros.cell) x.real = 0;
  expect_same_as_whole(zeros, {11, 11, 10}, [&](ShardedVariable& s) {
    s.scatter_add(rows, add).scatter_add(rows, add);
    EXPECT_EQ(values(s.sparse_read(rows)), F({0, 2, 4, 6, 8, 10}));
  });
}
TEST(ShardedCases, Case47_EveryScatterOnZeros) {
  const Tensor rows = ids({0, 10, 12, 21, 22}), with = floats({1, 2, 3, 4, 5}, {5, 1});
  const F expected[] = {{1, 2, 3, 4, 5}, {-1, -2, -3, -4, -5}, F(5, 0),        F(5, 0),
                        F(5, 0),         {1, 2, 3, 4, 5},      {1, 2, 3, 4, 5}};
  SlowArray zeros = counting(30, 1);
  for (Number& x : zeros.cell) x.real = 0;
  for (const ScatterOperation op : kEveryOperation)
    expect_same_as_whole(zeros, {10, 10, 10}, [&](ShardedVariable& s) {
      EXPECT_EQ(values(s.scatter(op, rows, with).sparse_read(rows)),
                expected[static_cast<std::size_t>(op)]);
    });
}
TEST(ShardedCases, Case48_BatchScatterUpdateIsAnUpdate) {
  ShardedVariable s = sharded(counting(32, 1), {11, 11, 10});
  s.batch_scatter_update(ids({10, 11, 12, 13, 14, 15}), floats({0, 1, 2, 3, 4, 5}, {6, 1}));
  EXPECT_EQ(values(s[Slice{9, 17}]), F({9, 0, 1, 2, 3, 4, 5, 16}));
}
TEST(ShardedCases, Case49_SparseReadOfSortedIds) {
  EXPECT_EQ(values(sharded(counting(30, 1), {10, 10, 10}).sparse_read(ids({0, 10, 12, 21, 22}))),
            F({0, 10, 12, 21, 22}));
}
TEST(ShardedCases, Case50_SparseReadKeepsTheCallersOrder) {
  const ShardedVariable s = sharded(counting(32, 1), {11, 11, 10});
  EXPECT_EQ(values(s.sparse_read(ids({22, 0, 31, 10, 11, 0}))), F({22, 0, 31, 10, 11, 0}));
  EXPECT_EQ(values(s.sparse_read(Tensor::of<std::int32_t>({22, 0, 31}, {3}))), F({22, 0, 31}));
  EXPECT_EQ(s.sparse_read(ids({})).shape(), Shape({0, 1}));
  std::vector<float> mine(2);
  s.sparse_read(ids({5, 25}), std::as_writable_bytes(std::span(mine)));
  EXPECT_EQ(mine, F({5, 25}));
}
TEST(ShardedCases, Case51_DuplicatesMeetWhatEarlierOnesLeft) {
  const auto fives = [](auto change) {
    ShardedVariable s = sharded(counting(8, 1), {3, 3, 2});
    change(s, ids({5, 5}), floats({1, 2}, {2, 1}));
    return values(s[5])[0];
  };
  EXPECT_EQ(fives([](auto& s, auto i, auto v) { s.scatter_add(i, v); }), 8);
  EXPECT_EQ(fives([](auto& s, auto i, auto v) { s.scatter_sub(i, v); }), 2);
  EXPECT_EQ(fives([](auto& s, auto i, auto v) { s.scatter_mul(i, v); }), 10);
  EXPECT_EQ(fives([](auto& s, auto i, auto v) { s.scatter_div(i, v); }), 2.5f);
  EXPECT_EQ(fives([](auto& s, auto i, auto v) { s.scatter_update(i, v); }), 2);
  EXPECT_EQ(fives([](auto& s, auto i, auto v) { s.batch_scatter_update(i, v); }), 2);
}
TEST(ShardedCases, Case52_AnIndexOutsideChangesNothing) {
  ShardedVariable s = t8();
  const F before = values(s);
  for (const ScatterOperation op : kEveryOperation) {
    EXPECT_THROW(s.scatter(op, ids({0, -1}), floats(F(4, 9), {2, 2})), IndexError);
    EXPECT_THROW(s.scatter(op, ids({0, 8}), floats(F(4, 9), {2, 2})), IndexError);
  }
  EXPECT_EQ(refusal<IndexError>([&] {
              s.scatter_add(ids({0, 7, 8, -1}), floats(F(8, 9), {4, 2}));
            }),
            "sharded variable 'ShardedVariable': scatter_add: indices[2] = 8 is out of bounds for "
            "axis 0 with size 8, behind component 2 ('part_2') of rows [6, 8)");
  EXPECT_EQ(refusal<IndexError>([&] {
              s.sparse_read(ids({3, -1}));
            }),
            "sharded variable 'ShardedVariable': sparse_read: indices[1] = -1 is out of bounds for "
            "axis 0 with size 8, before component 0 ('part_0') of rows [0, 3)");
  EXPECT_EQ(values(s), before);
}
TEST(ShardedCases, Case53_IndicesAreOneLine) {
  ShardedVariable s = t8();
  const Tensor square(DType::kInt64, {1, 1});
  EXPECT_EQ(
      refusal<ValueError>([&] { s.sparse_read(square); }),
      "sharded variable 'ShardedVariable': sparse_read: indices must be 1D, got shape (1, 1)");
  EXPECT_THROW(s.scatter_add(square, floats({1, 2}, {1, 2})), ValueError);
  EXPECT_THROW(s.sparse_read(Tensor::scalar(std::int64_t{0})), ValueError);
  EXPECT_THROW(s.sparse_read(floats({0}, {1})), TypeError);
}
TEST(ShardedCases, Case54_StrictModeWantsADivision) {
  const Tensor rows = ids({3, 0}), with = floats({1, 1, 2, 2}, {2, 2});
  ShardedVariable strict = sharded(counting(4, 2), {1, 2, 1}, {.require_div_sharding = true});
  EXPECT_NE(
      refusal<NotImplemented>([&] { strict.scatter_add(rows, with); }).find("\"div\" sharding"),
      std::string::npos);
  EXPECT_THROW(strict.sparse_read(rows), NotImplemented);
  EXPECT_EQ(values(strict), values(to_tensor(counting(4, 2))));
  ShardedVariable any = sharded(counting(4, 2), {1, 2, 1});
  EXPECT_EQ(values(any.scatter_add(rows, with)), F({2, 3, 2, 3, 4, 5, 7, 8}));
  ShardedVariable divided = sharded(counting(4, 2), {2, 1, 1}, {.require_div_sharding = true});
  EXPECT_EQ(values(divided.sparse_read(rows)), F({6, 7, 0, 1}));
  // Fewer rows than components: the first ones have one each.
  ShardedVariable few = sharded(counting(2, 1), {1, 1, 0, 0}, {.require_div_sharding = true});
  EXPECT_EQ(values(few.sparse_read(ids({1, 0}))), F({1, 0}));
}

// ---- Operators and conversion

TEST(ShardedCases, Case55_OperatorsAreThoseOfTheWhole) {
  const auto pair = [] { return sharded({DType::kFloat32, {2}, {{1}, {2}}}, {1, 1}); };
  EXPECT_TRUE(identical(pair() == pair(), Tensor::of<bool>({true, true}, {2})));
  EXPECT_EQ(values(pair() + pair()), F({2, 4}));
}
TEST(ShardedCases, AnExporterSeesOneVariableOfTheWholeShape) {
  const ShardedVariable s({Variable(floats({1, 2}, {2, 1})), Variable(floats({3}, {1, 1}))},
                          {.name = "w"});
  {
    const ExportScope outer;
    { const ExportScope inner; }
    ASSERT_EQ(s.variables().size(), 1u);
    const Variable whole = *s.begin();
    EXPECT_EQ(whole.name(), "w");
    EXPECT_EQ(whole.dtype(), DType::kFloat32);
    EXPECT_EQ(whole.shape(), (Shape{3, 1}));
    EXPECT_EQ(refusal<StateError>([&] { whole.value(); }),
              "variable 'w': is a placeholder, which has no value");
    EXPECT_THROW(Variable(whole).assign(s.value()), StateError);
    EXPECT_EQ(refusal<ValueError>([&] { ShardedVariable({whole}, {.name = "v"}); }),
              "sharded variable 'v': component 0 ('w') must have a value, got a placeholder");
    EXPECT_EQ(values(s.value()), (F{1, 2, 3}));
    EXPECT_EQ(values(s[-1]), F{3});
    EXPECT_EQ(s.components().size(), 2u);
    std::size_t elsewhere = 0;
    std::thread([&] { elsewhere = s.variables().size(); }).join();
    EXPECT_EQ(elsewhere, 2u);
  }
  EXPECT_EQ(s.variables().size(), 2u);
}
TEST(ShardedCases, Case56_ConvertsToItsOwnDTypeOnly) {
  const ShardedVariable s = t8();
  EXPECT_EQ(
      refusal<ValueError>([&] { s.value(DType::kFloat64); }),
      "sharded variable 'ShardedVariable': Incompatible type conversion: it is float32, asked "
      "for as float64");
  EXPECT_THROW(s.value(DType::kFloat32, true), NotImplemented);
  EXPECT_TRUE(identical(s.value(DType::kFloat32), s.value()));
}
TEST(ShardedCases, Case57_NothingBecomesATensorByItself) {
  static_assert(!std::is_convertible_v<ShardedVariable, Tensor>);
  static_assert(!std::is_constructible_v<Tensor, ShardedVariable>);
}

}  // namespace
}  // namespace embertable
