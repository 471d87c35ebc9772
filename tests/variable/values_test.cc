// What a sharded variable hands out, what it stands over, and who works on it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "embertable/errors.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/variables/tensor_operators.h"
#include "testing/executor.h"
#include "testing/refusal.h"
#include "testing/sanitized.h"
#include "testing/variable/slow_array.h"

namespace embertable {
namespace {

using namespace sharded_test;  // NOLINT: arrays as lists of numbers
using F = std::vector<float>;

F values_in(const Tensor& tensor) {
  const Tensor packed = tensor.packed();
  const auto all = packed.values<float>();
  return {all.begin(), all.end()};
}
Tensor line(const F& all) {
  return Tensor::of<float>(all, {static_cast<std::int64_t>(all.size())});
}
Tensor id_tensor(const std::vector<std::int64_t>& all) {
  return Tensor::of<std::int64_t>(all, {static_cast<std::int64_t>(all.size())});
}
ShardedVariable three() { return ShardedVariable({Variable(line({1, 2})), Variable(line({3}))}); }

TEST(ShardedValues, ASliceWithinAShardCopiesNothing) {
  const ShardedVariable s =
      sharded({DType::kFloat32, {3, 2}, {{1}, {2}, {3}, {4}, {5}, {6}}}, {1, 2});
  const std::byte* second = s.variables()[1].value().data();
  EXPECT_EQ(s[1].data(), second);
  EXPECT_EQ((s[Slice{2, 3}].data()), second + 8);
  EXPECT_EQ((s[Slice{{}, 0, -1}].data()), second + 8);
  EXPECT_EQ((s.at({Slice{1, 3}, 1}).data()), second + 4);
  const ShardedVariable one = sharded({DType::kFloat32, {2}, {{1}, {2}}}, {0, 2, 0});
  EXPECT_EQ(one.value().data(), one.variables()[1].value().data());
}

TEST(ShardedValues, WhatWasReadStaysAsItWas) {
  ShardedVariable s = three();
  const Tensor row = s[0], part = s[Slice{0, 2}], all = s.value();
  s.assign(line({7, 8, 9}));
  s.scatter_add(id_tensor({0}), line({1}));
  EXPECT_EQ(values_in(row), F({1}));
  EXPECT_EQ(values_in(part), F({1, 2}));
  EXPECT_EQ(values_in(all), F({1, 2, 3}));
  EXPECT_EQ(values_in(s.value()), F({8, 8, 9}));
}

TEST(ShardedValues, WritingMovesNoMemoryThatNobodyElseSees) {
  ShardedVariable s = three();
  const std::byte* before = s.variables()[0].value().data();
  s.assign(line({7, 8, 9})).scatter_add(id_tensor({0}), line({1})).assign_sub(line({1, 1, 1}));
  EXPECT_EQ(s.variables()[0].value().data(), before);
}

TEST(ShardedValues, AChangeOfAComponentIsAChangeOfTheWhole) {
  ShardedVariable s = three();
  const ShardedVariable same = s;
  Variable second = s.variables()[1];
  second.assign(line({5}));
  EXPECT_EQ(values_in(same.value()), F({1, 2, 5}));
  EXPECT_THROW(second.assign(line({5, 6})), ValueError);
  EXPECT_THROW(second.assign(Tensor(DType::kInt32, {1})), ValueError);
}

TEST(ShardedValues, AVariableKeepsNoMemoryOfTheCallers) {
  F mine = {1, 2};
  const Variable v(Tensor::wrap(mine.data(), DType::kFloat32, {2}, nullptr));
  mine[0] = 9;
  EXPECT_EQ(values_in(v.value()), F({1, 2}));
}

TEST(ShardedValues, ItsOwnRowsInAnotherOrderCanBeAssigned) {
  ShardedVariable s = three();
  s.assign(s[Slice{{}, {}, -1}]);
  EXPECT_EQ(values_in(s.value()), F({3, 2, 1}));
  s.scatter_update(id_tensor({0, 1}), s[Slice{1, 3}]);
  EXPECT_EQ(values_in(s.value()), F({2, 1, 1}));
}

/// A block of three rows of two floats, four floats apart, that the caller owns.
struct Foreign {
  std::shared_ptr<F> memory = std::make_shared<F>(F{1, 2, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1});

  Variable variable(bool assignable) const {
    return Variable::over({.data = memory->data(),
                           .dtype = DType::kFloat32,
                           .shape = {3, 2},
                           .row_stride = 16,
                           .assignable = assignable,
                           .owner = memory},
                          "table_0");
  }
};

TEST(ShardedOverMemory, IsReadAndWrittenInPlace) {
  const Foreign foreign;
  ShardedVariable s({foreign.variable(true), Variable(Tensor::of<float>({7, 8}, {1, 2}))});
  const Tensor row = s[1];
  EXPECT_EQ(values_in(row), F({3, 4}));
  EXPECT_EQ(values_in(s.sparse_read(id_tensor({3, 0, 2}))), F({7, 8, 1, 2, 5, 6}));
  s.scatter_add(id_tensor({1, 3, 1}), Tensor::of<float>({1, 1, 2, 2, 3, 3}, {3, 2}));
  EXPECT_EQ(*foreign.memory, F({1, 2, -1, -1, 7, 8, -1, -1, 5, 6, -1, -1}));
  EXPECT_EQ(values_in(row), F({7, 8})) << "a view of somebody else's memory shows what is there";
  s.assign_sub(Tensor::of<float>({1, 1, 1, 1, 1, 1, 1, 1}, {4, 2}));
  EXPECT_EQ(*foreign.memory, F({0, 1, -1, -1, 6, 7, -1, -1, 4, 5, -1, -1}));
  s.assign(Tensor(DType::kFloat32, {4, 2}));
  EXPECT_EQ(*foreign.memory, F({0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1}));
  EXPECT_EQ(values_in(s.value()), F(8, 0));
}

TEST(ShardedOverMemory, ItsOwnRowsInAnotherOrderCanBeAssigned) {
  const Foreign foreign;
  ShardedVariable s({foreign.variable(true)});
  s.assign(s[Slice{{}, {}, -1}]);
  EXPECT_EQ(values_in(s.value()), F({5, 6, 3, 4, 1, 2}));
  s.scatter_update(id_tensor({2, 1}), s[Slice{0, 2}]);
  EXPECT_EQ(values_in(s.value()), F({5, 6, 3, 4, 5, 6}));
  s.assign_add(s[Slice{{}, {}, -1}]);
  EXPECT_EQ(values_in(s.value()), F({10, 12, 6, 8, 10, 12}));
  s.variables()[0].value();
  Variable(s.variables()[0]).assign(s[Slice{{}, {}, -1}]);
  EXPECT_EQ(values_in(s.value()), F({10, 12, 6, 8, 10, 12}));
}

TEST(ShardedOverMemory, ReadOnlyRowsAreNeverWritten) {
  const Foreign foreign;
  ShardedVariable s({Variable(Tensor::of<float>({7, 8}, {1, 2}), "a"), foreign.variable(false)},
                    {.name = "s"});
  EXPECT_FALSE(s.assignable());
  const std::string expected = "sharded variable 's': component 1 ('table_0') is read-only";
  const Tensor two = Tensor::of<float>({1, 1, 2, 2}, {2, 2});
  EXPECT_EQ(refusal<StateError>([&] { s.assign(Tensor(DType::kFloat32, {4, 2})); }), expected);
  EXPECT_EQ(refusal<StateError>([&] { s.assign_add(Tensor(DType::kFloat32, {4, 2})); }), expected);
  EXPECT_EQ(refusal<StateError>([&] { s.scatter_add(id_tensor({0, 1}), two); }), expected);
  EXPECT_EQ(refusal<StateError>([&] {
              foreign.variable(false).assign(Tensor(DType::kFloat32, {3, 2}));
            }),
            "variable 'table_0': is read-only");
  EXPECT_EQ(values_in(s.value()), F({7, 8, 1, 2, 3, 4, 5, 6}));
  s.scatter_add(id_tensor({0, 0}), two);
  EXPECT_EQ(values_in(s[0]), F({10, 11}));
}

TEST(ShardedOverMemory, IndicesMayLieInWhatIsChanged) {
  std::vector<std::int64_t> memory = {3, 2, 1, 0};
  ShardedVariable s({Variable::over({.data = memory.data(),
                                     .dtype = DType::kInt64,
                                     .shape = {4},
                                     .row_stride = 8,
                                     .assignable = true})});
  const Tensor indices = Tensor::wrap(memory.data(), DType::kInt64, {4}, nullptr);
  s.scatter_update(indices, Tensor::of<std::int64_t>({100, 101, 102, 103}, {4}));
  EXPECT_EQ(memory, (std::vector<std::int64_t>{103, 102, 101, 100}));
}

TEST(ShardedOverMemory, SaysWhatMemoryItCannotStandOver) {
  F memory(8);
  const auto refusal = [&](VariableMemory over) -> std::string {
    over.data = memory.data();
    try {
      Variable::over(over, "v");
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.shape = Shape::scalar()}),
            "variable 'v': memory needs a shape of rank 1 at least, got ()");
  EXPECT_EQ(refusal({.shape = {2, 2}, .row_stride = 4}),
            "variable 'v': rows have 8 bytes, got a stride of 4");
  EXPECT_EQ(refusal({.shape = {2, 2}, .row_stride = 9}),
            "tensor: float32 needs addresses and strides that are multiples of 4");
}

TEST(ShardedOverMemory, NeedsAnAddressWhereThereAreElements) {
  EXPECT_EQ(refusal<ValueError>([] {
              Variable::over({.shape = {2, 2}, .row_stride = 8}, "v");
            }),
            "variable 'v': memory of shape (2, 2) must have an address, got null");
  EXPECT_EQ(Variable::over({.shape = {0, 2}, .row_stride = 8}).value().size(), 0);
}

TEST(ShardedSparse, TakesNoNumberThatIsNoOperation) {
  ShardedVariable s = three();
  EXPECT_EQ(refusal<ValueError>(
                [&] { s.scatter(static_cast<ScatterOperation>(200), id_tensor({0}), line({1})); }),
            "scatter operation: unknown value 200");
  EXPECT_EQ(refusal<ValueError>(
                [&] { s.scatter(static_cast<ScatterOperation>(7), id_tensor({0}), line({1})); }),
            "scatter operation: unknown value 7");
  EXPECT_EQ(values_in(s.value()), F({1, 2, 3}));
}

TEST(ShardedSparse, SaysWhatDoesNotFit) {
  ShardedVariable s = three();
  EXPECT_EQ(
      refusal<ValueError>([&] {
        s.scatter_add(id_tensor({0, 1}), line({1}));
      }),
      "sharded variable 'ShardedVariable': scatter_add needs float32 of shape (2), got float32 "
      "of shape (1)");
  std::vector<std::byte> out(3);
  EXPECT_EQ(
      refusal<ValueError>([&] { s.sparse_read(id_tensor({0}), out); }),
      "sharded variable 'ShardedVariable': sparse_read: 1 rows have 4 bytes, got memory of 3");
  ShardedVariable truth({Variable(Tensor::of<bool>({true, false}, {2}))});
  EXPECT_EQ(refusal<ValueError>(
                [&] { truth.scatter_add(id_tensor({0}), Tensor::of<bool>({true}, {1})); }),
            "sharded variable 'ShardedVariable': scatter_add takes numbers, not bool");
  EXPECT_EQ(refusal<ValueError>([&] { truth.assign_add(truth.value()); }),
            "sharded variable 'ShardedVariable': assign_add takes numbers, not bool");
  truth.scatter_update(id_tensor({1}), Tensor::of<bool>({true}, {1}));
  EXPECT_TRUE(identical(truth.value(), Tensor::of<bool>({true, true}, {2})));
  ShardedVariable whole({Variable(Tensor::of<std::int32_t>({5, -7}, {2}))});
  EXPECT_EQ(refusal<ValueError>([&] {
              whole.scatter_div(id_tensor({0, 1}), Tensor::of<std::int32_t>({1, 0}, {2}));
            }),
            "sharded variable 'ShardedVariable': scatter_div: an integer is divided by zero");
  whole.scatter_div(id_tensor({0, 1}), Tensor::of<std::int32_t>({2, 2}, {2}));
  EXPECT_TRUE(identical(whole.value(), Tensor::of<std::int32_t>({2, -3}, {2})));
}

TEST(ShardedOfOneVariable, ChangesItAndLeavesItsSlice) {
  const Variable w(line({1, 2}), "w");
  const ShardedVariable owner({w}, {.name = "owner"});
  ShardedVariable::of(w).scatter_add(id_tensor({1}), line({5}));
  EXPECT_EQ(values_in(owner.value()), F({1, 7}));
  EXPECT_EQ(w.save_slice_info()->full_name, "owner");
  const Variable alone(line({1, 2}));
  ShardedVariable::of(alone);
  EXPECT_FALSE(alone.save_slice_info().has_value());
}

TEST(ShardedOfOneVariable, SpeaksOfIt) {
  ShardedVariable s = ShardedVariable::of(Variable(line({1, 2}), "w"));
  EXPECT_EQ(refusal<IndexError>([&] { s.sparse_read(id_tensor({-1})); }),
            "variable 'w': sparse_read: indices[0] = -1 is out of bounds for axis 0 with size 2");
  EXPECT_EQ(refusal<ValueError>([&] {
              s.scatter_add(id_tensor({0, 1}), line({1}));
            }),
            "variable 'w': scatter_add needs float32 of shape (2), got float32 of shape (1)");
  const Foreign foreign;
  ShardedVariable fixed = ShardedVariable::of(foreign.variable(false));
  EXPECT_EQ(refusal<StateError>([&] {
              fixed.scatter_add(id_tensor({0}), Tensor::of<float>({1, 1}, {1, 2}));
            }),
            "variable 'table_0': is read-only");
  EXPECT_EQ(refusal<ValueError>([] {
              ShardedVariable::of(Variable(Tensor::of<float>({1}, Shape::scalar()), "w"));
            }),
            "variable 'w': must have an axis of rows, got shape ()");
  EXPECT_EQ(refusal<ValueError>(
                [] { ShardedVariable::of(Variable::placeholder(DType::kFloat32, {2}, "w")); }),
            "variable 'w': must have a value, got a placeholder");
}

/// What an IndexError or ValueError says; "" if there is none.
std::string index_refusal(const ShardedVariable& s, std::initializer_list<Index> parts) {
  try {
    s.at(parts);
  } catch (const IndexError& error) {
    return error.what();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

TEST(ShardedIndex, SaysWhichShardAxisIndexAndBound) {
  const ShardedVariable s({Variable(Tensor(DType::kFloat32, {2, 3}), "a"),
                           Variable(Tensor(DType::kFloat32, {4, 3}), "b")},
                          {.name = "s"});
  const std::string subject = "sharded variable 's': ";
  EXPECT_EQ(index_refusal(s, {6}),
            subject +
                "index 6 is out of bounds for axis 0 with size 6, behind component 1 ('b') of "
                "rows [2, 6)");
  const std::string column = subject + "index 3 is out of bounds for axis 1 with size 3";
  const std::string in_b = ", in component 1 ('b') of rows [2, 6)";
  EXPECT_EQ(index_refusal(s, {2, 3}), column + in_b);
  EXPECT_EQ(index_refusal(s, {Slice{2, 6}, 3}), column + in_b);
  EXPECT_EQ(index_refusal(s, {Slice{{}, 1, -2}, 3}), column + in_b);
  EXPECT_EQ(index_refusal(s, {Slice{1, 3}, 3}), column) << "rows of two components";
  EXPECT_EQ(index_refusal(s, {Slice{0, 0}, 3}), column) << "no rows";
}

TEST(ShardedIndex, MoreAxesThanAreOfferedNameTheVariable) {
  const ShardedVariable s({Variable(Tensor(DType::kFloat32, {2, 3}), "a")}, {.name = "s"});
  const NewAxis more;
  EXPECT_EQ(index_refusal(s, {more, more, more, more, more, more, more}),
            "sharded variable 's': index: the result has more than 8 axes, 9");
  EXPECT_EQ(index_refusal(s, {0, more, more, more, more, more, more, more}), "");
  EXPECT_EQ(
      index_refusal(s, {Tensor(DType::kBool, {2, 3}), more, more, more, more, more, more, more}),
      "sharded variable 's': index: the result has more than 8 axes, 9");
}

TEST(ShardedStructure, IsThatOfTheComponents) {
  const ShardedVariable a = sharded({DType::kFloat32, {3}, {{1}, {2}, {3}}}, {2, 1});
  EXPECT_TRUE(a.same_structure(three()));
  EXPECT_FALSE(a.same_structure(sharded({DType::kFloat32, {3}, {{1}, {2}, {3}}}, {1, 2})));
  EXPECT_FALSE(a.same_structure(sharded({DType::kFloat64, {3}, {{1}, {2}, {3}}}, {2, 1})));
  EXPECT_TRUE(a.div_sharded());
  EXPECT_FALSE(sharded({DType::kFloat32, {3}, {{1}, {2}, {3}}}, {1, 2}).div_sharded());
}

// ---- Workers

SlowArray random_array(DType dtype, const Dims& dims, std::uint64_t seed) {
  std::mt19937_64 random(test_seed(seed));
  SlowArray array = {dtype, dims, {}};
  for (std::int64_t i = 0; i < product(dims); ++i) {
    Number x;
    if (whole(dtype))
      x.integer = static_cast<std::int64_t>(random() % 100) + 1;
    else
      x.real = rounded(dtype, 1 + static_cast<double>(random() % 10'000) / 7);
    array.cell.push_back(x);
  }
  return array;
}

/// Many indices, a third of them of a few rows.
Tensor skewed_ids(std::int64_t count, std::int64_t rows, std::uint64_t seed) {
  std::mt19937_64 random(test_seed(seed));
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(static_cast<std::int64_t>(
        random() % static_cast<std::uint64_t>(random() % 3 == 0 ? 5 : rows)));
  return id_tensor(all);
}

TEST(ShardedWorkers, AnyNumberInAnyOrderGivesTheSameBits) {
  constexpr std::int64_t kRows = 1000, kCount = 40'000;
  const Tensor indices = skewed_ids(kCount, kRows, 1);
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBFloat16})
    for (const std::int64_t dim : {3, 16}) {
      const SlowArray start = random_array(dtype, {kRows, dim}, 2);
      const Tensor with = to_tensor(random_array(dtype, {kCount, dim}, 3));
      const auto run = [&](std::shared_ptr<Executor> executor) {
        ShardedVariable s = sharded(start, {300, 0, 450, 250}, {.executor = std::move(executor)});
        s.scatter_add(indices, with).scatter_div(indices, with).scatter_sub(indices, with);
        const Tensor after = s.value();
        s.scatter_update(indices, with);
        return std::vector<Tensor>{after, s.value(), s.sparse_read(indices)};
      };
      const std::vector<Tensor> alone = run(nullptr);
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const auto executor = std::make_shared<TestExecutor>(
            test_seed(seed), static_cast<std::int32_t>(seed * 3 + 1));
        SCOPED_TRACE(executor->to_string());
        const std::vector<Tensor> together = run(executor);
        for (std::size_t i = 0; i < alone.size(); ++i)
          EXPECT_TRUE(identical(alone[i], together[i])) << i;
      }
    }
}

/// Changes whose order shows in every row that is named twice, by workers of any number.
void expect_same_changes(const Tensor& start, const Tensor& indices, const Tensor& with) {
  const auto run = [&](std::shared_ptr<Executor> executor) {
    const std::int64_t rows = start.shape()[0];
    ShardedVariable s({Variable(index(start, {Slice{0, rows / 3}})),
                       Variable(index(start, {Slice{rows / 3, rows}}))},
                      {.executor = std::move(executor)});
    s.scatter_add(indices, with).scatter_div(indices, with).scatter_sub(indices, with);
    const Tensor after = s.value();
    return std::vector<Tensor>{after, s.scatter_update(indices, with).value()};
  };
  const std::vector<Tensor> alone = run(nullptr);
  for (const std::int32_t workers : {2, 3, 8, 17}) {
    SCOPED_TRACE(workers);
    const std::vector<Tensor> together = run(std::make_shared<TestExecutor>(workers, workers));
    for (std::size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(identical(alone[i], together[i])) << i;
  }
}

// With 25,000 and 100,000 rows each row has a bit of its own in what is noted of a call; with
// 400,000 several rows share one.
TEST(ShardedWorkers, RowsThatFewNameTwiceAreChangedInOrder) {
  constexpr std::int64_t kCount = 12'500;
  const Tensor with = to_tensor(random_array(DType::kFloat32, {kCount, 16}, 31));
  for (const std::int64_t rows : {25'000, 100'000, 400'000}) {
    SCOPED_TRACE(rows);
    Tensor all(DType::kFloat32, {rows, 16});
    const auto numbers = all.mutable_values<float>();
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000);
    std::mt19937_64 random(test_seed(33));
    std::vector<std::int64_t> named;
    for (std::int64_t i = 0; i < kCount; ++i)
      named.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows)));
    for (std::size_t i = 0; i < 300; ++i) named[named.size() - 1 - i] = named[i * 7];
    expect_same_changes(all, id_tensor(named), with);
  }
}

TEST(ShardedWorkers, MoreEntriesThanAreSharedOutAtOnceAreChangedInOrder) {
  constexpr std::int64_t kCount = (1 << 20) + 5000, kRows = 300'000;
  std::mt19937_64 random(test_seed(34));
  std::vector<std::int64_t> named;
  for (std::int64_t i = 0; i < kCount; ++i)
    named.push_back(static_cast<std::int64_t>(random() % kRows));
  Tensor values(DType::kFloat16, {kCount, 32});
  const auto half = values.mutable_values<Float16>();
  for (std::size_t i = 0; i < half.size(); ++i)
    half[i] = Float16(static_cast<float>(i % 97) + 0.5f);
  const auto run = [&](std::shared_ptr<Executor> executor) {
    ShardedVariable s({Variable(Tensor(DType::kFloat16, {kRows, 32}))},
                      {.executor = std::move(executor)});
    return s.scatter_add(id_tensor(named), values).scatter_update(id_tensor(named), values).value();
  };
  EXPECT_TRUE(identical(run(nullptr), run(std::make_shared<TestExecutor>(1, 3))));
}

TEST(ShardedWorkers, AnIndexOutsideIsFoundWhereverItStands) {
  constexpr std::int64_t kCount = 100'000;
  const ShardedVariable s({Variable(Tensor(DType::kFloat32, {10, 1}))},
                          {.executor = std::make_shared<TestExecutor>(1, 3)});
  for (const std::int64_t outside :
       {std::int64_t{10}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()})
    for (const std::size_t at : {std::size_t{0}, std::size_t{50'000}, std::size_t{99'999}}) {
      std::vector<std::int64_t> named(kCount, 9);
      named[at] = outside;
      EXPECT_THROW(s.sparse_read(id_tensor(named)), IndexError) << outside << " at " << at;
    }
  const ShardedVariable none({Variable(Tensor(DType::kFloat32, {0, 1}))});
  EXPECT_THROW(none.sparse_read(id_tensor({0})), IndexError);
  EXPECT_EQ(none.sparse_read(id_tensor({})).size(), 0);
}

/// Counts the regions that it is asked to run.
class CountingExecutor : public Executor {
 public:
  explicit CountingExecutor(std::int32_t workers = 2) : workers_(workers) {}
  std::int32_t workers() const noexcept override { return workers_; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    ++regions;
    for (std::int64_t i = items; i-- > 0;) body({.index = i});
  }
  int regions = 0;

 private:
  std::int32_t workers_;
};

/// The regions that adding to rows of zeros takes.
int regions_of_scatter(std::int64_t rows, const Tensor& indices, const Tensor& with,
                       std::int32_t workers) {
  const auto executor = std::make_shared<CountingExecutor>(workers);
  ShardedVariable s({Variable(Tensor(DType::kFloat32, {rows, with.shape()[1]}))},
                    {.executor = executor});
  executor->regions = 0;
  s.scatter_add(indices, with);
  return executor->regions;
}

TEST(ShardedWorkers, ManyEntriesThatWaitAreChangedInOrderByAllWorkers) {
  constexpr std::int64_t kRows = 50'000, kCount = 25'000, kDim = 32;
  Tensor start(DType::kFloat32, {kRows, kDim});
  const auto numbers = start.mutable_values<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000);
  std::mt19937_64 random(test_seed(35));
  std::vector<std::int64_t> named;
  for (std::int64_t i = 0; i < kCount; ++i)
    named.push_back(static_cast<std::int64_t>(random() % kRows));
  const Tensor with = to_tensor(random_array(DType::kFloat32, {kCount, kDim}, 36));
  expect_same_changes(start, id_tensor(named), with);
  // Two note the rows, one changes those that do not wait, and two those that do.
  EXPECT_EQ(regions_of_scatter(kRows, id_tensor(named), with, 8), 5);
}

// Were it not seen, all that waits would be left to one worker.
TEST(ShardedWorkers, ThatMostEntriesWaitIsSeenWhereFewRowsStandTogether) {
  constexpr std::int64_t kRows = 2048, kCount = 4096;
  std::vector<std::int64_t> named;
  for (std::int64_t i = 0; i < kCount; ++i) named.push_back(i % 64 + i / 64 % 2 * 1024);
  const Tensor with = to_tensor(random_array(DType::kFloat32, {kCount, 16}, 37));
  // Two note the rows, two change them; no third in between.
  EXPECT_EQ(regions_of_scatter(kRows, id_tensor(named), with, 2), 4);
}

/// From its third region on, the process gets next to no more memory while this lives.
class NoMoreMemory final : public CountingExecutor {
 public:
  NoMoreMemory() : CountingExecutor(16) { getrlimit(RLIMIT_AS, &before_); }
  ~NoMoreMemory() override { setrlimit(RLIMIT_AS, &before_); }

  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    constexpr rlim_t kMore = 1 << 20;
    if (regions == 2) {
      rlim_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const rlimit low{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMore,
                       before_.rlim_max};
      setrlimit(RLIMIT_AS, &low);
    }
    CountingExecutor::run(items, body);
  }

 private:
  rlimit before_{};
};

TEST(ShardedWorkers, NoMemoryIsTakenOnceRowsHaveChanged) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs memory of its own";
  constexpr std::int64_t kCount = 100'000, kRows = 400'000;
  std::mt19937_64 random(test_seed(38));
  std::vector<std::int64_t> named;
  for (std::int64_t i = 0; i < kCount; ++i)
    named.push_back(static_cast<std::int64_t>(random() % kRows));
  const Tensor indices = id_tensor(named), with(DType::kFloat32, {kCount, 16});
  const auto executor = std::make_shared<NoMoreMemory>();
  ShardedVariable s({Variable(Tensor(DType::kFloat32, {kRows, 16}))}, {.executor = executor});
  executor->regions = 0;
  EXPECT_NO_THROW(s.scatter_add(indices, with));
  // One looks at the indices, two note the rows, one changes those that do not wait, and two those
  // that do.
  EXPECT_EQ(executor->regions, 6);
}

TEST(ShardedWorkers, AssignmentsGiveTheSameBitsInAnyOrder) {
  constexpr std::int64_t kRows = 30'000;
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kFloat16}) {
    const SlowArray start = random_array(dtype, {kRows, 17}, 21);
    const Tensor with = to_tensor(random_array(dtype, {kRows, 17}, 22));
    const Tensor down = index(to_tensor(random_array(dtype, {kRows, 17}, 23)), {Slice{{}, {}, -1}});
    const auto run = [&](std::shared_ptr<Executor> executor) {
      ShardedVariable s = sharded(start, {9000, 0, 1, 20'999}, {.executor = std::move(executor)});
      const Tensor added = s.assign_add(with).assign_sub(down).value();
      return std::vector<Tensor>{added, s.assign(with).value(), s.assign(down).value()};
    };
    const std::vector<Tensor> alone = run(nullptr);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> together = run(std::make_shared<TestExecutor>(test_seed(seed), 3));
      for (std::size_t i = 0; i < alone.size(); ++i)
        EXPECT_TRUE(identical(alone[i], together[i])) << to_string(dtype) << ", " << i;
    }
  }
}

TEST(ShardedWorkers, LargeAssignmentsAreSharedOutAndSmallOnesAreNot) {
  const auto executor = std::make_shared<CountingExecutor>();
  ShardedVariable large = sharded(random_array(DType::kFloat32, {40'000, 8}, 1), {20'000, 20'000},
                                  {.executor = executor});
  const Tensor value = large.value();
  executor->regions = 0;
  large.assign(value).assign_add(value).assign_sub(value);
  EXPECT_EQ(executor->regions, 3);
  ShardedVariable small =
      sharded(random_array(DType::kFloat32, {10, 8}, 1), {5, 5}, {.executor = executor});
  small.assign(small.value()).assign_add(small.value());
  EXPECT_EQ(executor->regions, 3);
}

TEST(ShardedWorkers, RowsOfSomebodyElseAreAssignedWithTheirGapsByWorkers) {
  constexpr std::int64_t kRows = 50'000;
  F memory(kRows * 4, -1);
  ShardedVariable s(
      {Variable::over(
          {.data = memory.data(), .shape = {kRows, 3}, .row_stride = 16, .assignable = true})},
      {.executor = std::make_shared<TestExecutor>(3, 2)});
  const Tensor ones = to_tensor(random_array(DType::kFloat32, {kRows, 3}, 9));
  s.assign(ones).assign_add(ones);
  const auto value = ones.values<float>();
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < memory.size(); ++i)
    wrong += memory[i] != (i % 4 == 3 ? -1 : 2 * value[i / 4 * 3 + i % 4]);
  EXPECT_EQ(wrong, 0);
}

TEST(ShardedWorkers, OperatorsGiveTheSameBitsInAnyOrder) {
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kFloat16}) {
    const SlowArray start = random_array(dtype, {2, 301, 257}, 11);
    const Tensor other = to_tensor(random_array(dtype, {2, 301, 257}, 12));
    const Tensor column = to_tensor(random_array(dtype, {301, 1}, 13));
    const Tensor right = to_tensor(random_array(dtype, {1, 257, 130}, 14));
    const auto run = [&](std::shared_ptr<Executor> executor) {
      const ShardedVariable s = sharded(start, {0, 2}, {.executor = std::move(executor)});
      return std::vector<Tensor>{s + other,  column - s, s * 2,     other < s,
                                 s / column, -s,         s.value(), matmul(s, right)};
    };
    const std::vector<Tensor> alone = run(nullptr);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<Tensor> together = run(std::make_shared<TestExecutor>(test_seed(seed), 3));
      for (std::size_t i = 0; i < alone.size(); ++i)
        EXPECT_TRUE(identical(alone[i], together[i])) << to_string(dtype) << ", " << i;
    }
  }
}

TEST(ShardedWorkers, ThreadsOfAPoolGiveTheSameBits) {
  constexpr std::int64_t kRows = 5000, kCount = 100'000;
  const Tensor indices = skewed_ids(kCount, kRows, 4);
  const SlowArray start = random_array(DType::kFloat32, {kRows, 8}, 5);
  const Tensor with = to_tensor(random_array(DType::kFloat32, {kCount, 8}, 6));
  ShardedVariable alone = sharded(start, {5000});
  ShardedVariable pool = sharded(start, {2000, 1000, 2000}, {.executor = make_thread_pool(4)});
  for (int repeat = 0; repeat < 3; ++repeat) {
    alone.scatter_add(indices, with);
    pool.scatter_add(indices, with);
  }
  EXPECT_TRUE(identical(alone.value(), pool.value()));
  EXPECT_TRUE(identical(alone.sparse_read(indices), pool.sparse_read(indices)));
}

// A race would be for a thread sanitizer to see.
TEST(ShardedWorkers, DtypeAndShapeMayBeAskedForDuringAnAssignment) {
  Variable variable(line({1, 2, 3}));
  const ShardedVariable whole({variable});
  std::atomic<bool> reads = false, done = false;  // relaxed: they order nothing
  std::thread reader([&] {
    std::int64_t wrong = 0;
    while (!done.load(std::memory_order_relaxed)) {
      wrong += variable.shape() == Shape({3}) && whole.dtype() == DType::kFloat32 ? 0 : 1;
      wrong += whole.div_sharded() && variable.has_value() && variable.assignable() ? 0 : 1;
      reads.store(true, std::memory_order_relaxed);
    }
    EXPECT_EQ(wrong, 0);
  });
  while (!reads.load(std::memory_order_relaxed)) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) variable.assign(line({4, 5, 6}));
  done.store(true, std::memory_order_relaxed);
  reader.join();
}

TEST(ShardedWorkers, TensorsAreReadWhileTheVariableChanges) {
  ShardedVariable s = sharded(random_array(DType::kFloat32, {1000, 4}, 7), {500, 500});
  const Tensor ones = to_tensor(random_array(DType::kFloat32, {1000, 4}, 8));
  std::vector<std::thread> readers;
  for (int i = 0; i < 50; ++i) {
    readers.emplace_back([part = s[Slice{100, 400}]] {
      const F first = values_in(part);
      EXPECT_EQ(values_in(part), first);
    });
    s.assign_add(ones);
  }
  for (std::thread& reader : readers) reader.join();
}

// Rows without elements take no memory, however many they are.
TEST(ShardedValues, AxesOfAnyLengthWithoutElements) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const ShardedVariable s({Variable(Tensor(DType::kFloat32, {kMost - 5, 0})),
                           Variable(Tensor(DType::kFloat32, {5, 0}))});
  EXPECT_EQ(s.shape(), (Shape{kMost, 0}));
  EXPECT_EQ(s.at({Slice{{}, {}, kMost}}).shape(), (Shape{1, 0}));
  EXPECT_EQ(s.at({Slice{{}, {}, -2}}).shape(), (Shape{kMost / 2 + 1, 0}));
  EXPECT_EQ(s.at({Slice{-1, {}, -kMost}, NewAxis{}}).shape(), (Shape{1, 1, 0}));
  EXPECT_EQ(s[kMost - 1].shape(), (Shape{0}));
  EXPECT_THROW(s[kMost], IndexError);
  EXPECT_THROW(ShardedVariable({Variable(Tensor(DType::kFloat32, {kMost, 0})),
                                Variable(Tensor(DType::kFloat32, {1, 0}))}),
               ValueError);
  const Tensor wide(DType::kFloat64, {0, kMost / 2});
  EXPECT_EQ(index(wide, {Slice{}, Slice{{}, {}, kMost / 4}}).shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace embertable
