// Every operation of a sharded variable beside the same on the concatenated array, element by
// element: a table of operation x dtype x number of shards x rank, each cell with 50 random cases.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor_operators.h"
#include "testing/executor.h"
#include "testing/variable/slow_array.h"
#include "testing/variable/slow_index.h"
#include "testing/variable/slow_operations.h"

namespace embertable {
namespace {

using namespace sharded_test;  // NOLINT: arrays as lists of numbers

constexpr int kCases = 50;

struct Cell {
  DType dtype;
  std::int64_t shards;
  std::size_t rank;
};

/// One random variable and its twin, the whole array.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  Number number(DType dtype) {
    if (dtype == DType::kBool) return {.integer = below(2)};
    if (whole(dtype)) {
      if (!one_in(20)) return {.integer = between(-9, 9)};
      return {.integer = dtype == DType::kInt32 ? std::numeric_limits<std::int32_t>::min()
                                                : std::numeric_limits<std::int64_t>::max()};
    }
    if (one_in(30)) return {.real = std::nan("")};
    if (one_in(30)) return {.real = one_in(2) ? HUGE_VAL : -HUGE_VAL};
    return {.real =
                rounded(dtype, static_cast<double>(between(-1000, 1000)) / (one_in(2) ? 8 : 7))};
  }
  SlowArray array(DType dtype, const Dims& dims) {
    SlowArray array = {dtype, dims, {}};
    for (std::int64_t i = product(dims); i > 0; --i) array.cell.push_back(number(dtype));
    return array;
  }

  /// Small dims, now and then 0.
  Dims dims(std::size_t rank) {
    Dims dims = {between(one_in(10) ? 0 : 1, 9)};
    while (dims.size() < rank) dims.push_back(between(one_in(12) ? 0 : 1, 4));
    return dims;
  }

  /// Any sizes whose sum is `rows`.
  Dims sizes(std::int64_t rows, std::int64_t shards) {
    Dims cuts = {0, rows};
    while (static_cast<std::int64_t>(cuts.size()) <= shards) cuts.push_back(between(0, rows));
    std::sort(cuts.begin(), cuts.end());
    Dims sizes;
    for (std::size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
    return sizes;
  }

  SlowPart slice(std::int64_t size) {
    SlowPart part;
    const auto bound = [&] { return between(-size - 4, size + 4); };
    if (!one_in(3)) part.start = bound();
    if (!one_in(3)) part.stop = bound();
    if (!one_in(3)) part.step = between(1, 5) * (one_in(2) ? 1 : -1);
    return part;
  }
  /// With any number of trues, or with as many as `trues`, or one.
  SlowPart mask(const Dims& dims, std::optional<std::int64_t>& trues) {
    SlowPart part = {.kind = SlowPart::kMask};
    part.mask = array(DType::kBool, dims);
    std::vector<Number>& cell = part.mask.cell;
    if (trues) {
      const bool one = *trues > std::ssize(cell) || (!cell.empty() && one_in(4));
      const std::int64_t wanted = one ? std::min<std::int64_t>(1, std::ssize(cell)) : *trues;
      for (std::int64_t i = 0; i < std::ssize(cell); ++i) cell[i].integer = i < wanted;
      std::shuffle(cell.begin(), cell.end(), random_);
    }
    const auto count = std::ranges::count(cell, 1, &Number::integer);
    if (!trues || *trues == 1) trues = count;
    return part;
  }
  /// Parts for the axes from the first on, with an ellipsis or new axes between them.
  std::vector<SlowPart> parts(const Dims& dims) {
    std::vector<SlowPart> parts;
    bool may_mask = one_in(3), may_ellipsis = true;
    std::optional<std::int64_t> trues;
    std::size_t axis = 0;
    while (axis < dims.size() && !one_in(5)) {
      if (one_in(6)) parts.push_back({.kind = SlowPart::kNewAxis});
      if (may_ellipsis && one_in(6)) {
        may_ellipsis = false;
        parts.push_back({.kind = SlowPart::kEllipsis});
        axis += static_cast<std::size_t>(below(static_cast<std::int64_t>(dims.size() - axis) + 1));
        continue;
      }
      if (may_mask && one_in(2)) {
        const std::size_t end =
            axis + 1 +
            static_cast<std::size_t>(below(static_cast<std::int64_t>(dims.size() - axis)));
        parts.push_back(mask({dims.begin() + static_cast<std::ptrdiff_t>(axis),
                              dims.begin() + static_cast<std::ptrdiff_t>(end)},
                             trues));
        may_mask = product(parts.back().mask.dims) > 0;
        axis = end;
        continue;
      }
      if (dims[axis] > 0 && one_in(3))
        parts.push_back(
            {.kind = SlowPart::kInteger, .position = between(-dims[axis], dims[axis] - 1)});
      else
        parts.push_back(slice(dims[axis]));
      ++axis;
    }
    // Behind an ellipsis the last axes are named, all of them.
    for (; !may_ellipsis && axis < dims.size(); ++axis) parts.push_back(slice(dims[axis]));
    return parts;
  }

  SlowArray indices(std::int64_t rows) {
    SlowArray all = {
        one_in(2) ? DType::kInt32 : DType::kInt64, {rows == 0 ? 0 : between(0, 12)}, {}};
    for (std::int64_t i = 0; i < all.dims[0]; ++i) all.cell.push_back({.integer = below(rows)});
    return all;
  }

 private:
  std::mt19937_64 random_;
};

struct Twin {
  SlowArray whole;
  Dims sizes;
  ShardedVariable variable;

  Twin(const Cell& cell, Dice& dice, const Dims& dims)
      : whole(dice.array(cell.dtype, dims)),
        sizes(dice.sizes(dims[0], cell.shards)),
        variable(sharded(whole, sizes,
                         {.executor = std::make_shared<TestExecutor>(
                              static_cast<std::uint64_t>(dice.below(1000)), 3)})) {}
};

std::string shown(const Dims& dims) { return shape_of(dims).to_string(); }

/// Runs `one` 50 times for every dtype, number of shards and rank that there is.
template <class One>
void for_each_cell(const One& one) {
  std::uint64_t seed = test_seed();
  for (const DType dtype : kDTypes)
    for (const std::int64_t shards : {1, 2, 3, 8})
      for (const std::size_t rank : {1u, 2u, 3u})
        for (int i = 0; i < kCases; ++i) {
          Dice dice(++seed);
          const Cell cell = {dtype, shards, rank};
          SCOPED_TRACE(std::string(to_string(dtype)) + ", shards " + std::to_string(shards) +
                       ", rank " + std::to_string(rank) + ", seed " + std::to_string(seed));
          one(cell, dice);
          if (testing::Test::HasFailure()) return;
        }
}

void expect_agree(const Tensor& result, const SlowArray& expected, double tolerance = 0) {
  const SlowArray found = to_array(result);
  EXPECT_TRUE(agree(found, expected, tolerance)) << shown(found) << "\nnot " << shown(expected);
}

TEST(ShardedProperty, IndexingIsThatOfTheWhole) {
  for_each_cell([](const Cell& cell, Dice& dice) {
    const Twin twin(cell, dice, dice.dims(cell.rank));
    const std::vector<SlowPart> parts = dice.parts(twin.whole.dims);
    std::vector<Index> spec;
    std::string text = shown(twin.whole.dims) + " in " + shown(twin.sizes) + " [";
    for (const SlowPart& part : parts) spec.push_back(to_index(part)), text += shown(part) + ", ";
    SCOPED_TRACE(text);
    expect_agree(twin.variable.at(spec), slow_index(twin.whole, parts));
  });
}

TEST(ShardedProperty, WholeAndSparseReadsAreThoseOfTheWhole) {
  for_each_cell([](const Cell& cell, Dice& dice) {
    const Twin twin(cell, dice, dice.dims(cell.rank));
    expect_agree(twin.variable.value(), twin.whole);
    const SlowArray indices = dice.indices(twin.whole.dims[0]);
    SlowArray expected = {cell.dtype, twin.whole.dims, {}};
    expected.dims[0] = indices.dims[0];
    for (const Number& i : indices.cell) {
      const SlowArray row = rows_of(twin.whole, i.integer, 1);
      expected.cell.insert(expected.cell.end(), row.cell.begin(), row.cell.end());
    }
    expect_agree(twin.variable.sparse_read(to_tensor(indices)), expected);
  });
}

class Scatters : public testing::TestWithParam<ScatterOperation> {};

TEST_P(Scatters, IsThatOfTheWhole) {
  const ScatterOperation op = GetParam();
  for_each_cell([&](const Cell& cell, Dice& dice) {
    if (cell.dtype == DType::kBool && op != ScatterOperation::kUpdate) return;
    Twin twin(cell, dice, dice.dims(cell.rank));
    const SlowArray indices = dice.indices(twin.whole.dims[0]);
    Dims dims = twin.whole.dims;
    dims[0] = indices.dims[0];
    SlowArray with = dice.array(cell.dtype, dims);
    if (op == ScatterOperation::kDiv)
      for (Number& x : with.cell) x.integer += x.integer == 0 ? 3 : 0;
    const std::size_t width = twin.whole.row_cells();
    for (std::size_t i = 0; i < indices.cell.size(); ++i)
      for (std::size_t c = 0; c < width; ++c) {
        Number& x = twin.whole.cell[static_cast<std::size_t>(indices.cell[i].integer) * width + c];
        x = scattered(op, cell.dtype, x, with.cell[i * width + c]);
      }
    const Tensor before = twin.variable.value();
    const SlowArray kept = to_array(before);
    twin.variable.scatter(op, to_tensor(indices), to_tensor(with));
    expect_agree(twin.variable.value(), twin.whole);
    expect_agree(before, kept);
  });
}

INSTANTIATE_TEST_SUITE_P(ShardedProperty, Scatters,
                         testing::Values(ScatterOperation::kAdd, ScatterOperation::kSub,
                                         ScatterOperation::kMul, ScatterOperation::kDiv,
                                         ScatterOperation::kMin, ScatterOperation::kMax,
                                         ScatterOperation::kUpdate));

TEST(ShardedProperty, AssignmentsAreThoseOfTheWhole) {
  for_each_cell([](const Cell& cell, Dice& dice) {
    Twin twin(cell, dice, dice.dims(cell.rank));
    const SlowArray value = dice.array(cell.dtype, twin.whole.dims);
    const auto expected = [&](ScatterOperation op) {
      SlowArray result = twin.whole;
      for (std::size_t i = 0; i < result.cell.size(); ++i)
        result.cell[i] = scattered(op, cell.dtype, result.cell[i], value.cell[i]);
      return result;
    };
    const SlowArray sum = expected(ScatterOperation::kAdd), rest = expected(ScatterOperation::kSub);
    const Tensor with = to_tensor(value);
    if (cell.dtype != DType::kBool) {
      ShardedVariable adds = sharded(twin.whole, twin.sizes);
      expect_agree(adds.assign_add(with).value(), sum);
      ShardedVariable subs = sharded(twin.whole, twin.sizes);
      expect_agree(subs.assign_sub(with).value(), rest);
    }
    expect_agree(twin.variable.assign(with).value(), value);
  });
}

class Operators : public testing::TestWithParam<int> {};

/// Dims of a side that can be broadcast with `dims`: the same, fewer axes, ones in places, one more
/// axis.
Dims other_dims(const Dims& dims, Dice& dice) {
  Dims other = dims;
  if (dice.one_in(3))
    other.erase(other.begin(),
                other.begin() + dice.between(0, static_cast<std::int64_t>(dims.size())));
  for (std::int64_t& dim : other)
    if (dice.one_in(4)) dim = 1;
  if (other.size() == dims.size() && dice.one_in(5)) other.insert(other.begin(), 2);
  return other;
}

/// Loses at most a unit in the last place where the truth itself is rounded twice.
double tolerance(BinaryOperator op, DType dtype) {
  if (op != BinaryOperator::kPow || whole(dtype)) return 0;
  return dtype == DType::kFloat64   ? 5e-16
         : dtype == DType::kFloat32 ? 1.2e-7
         : dtype == DType::kFloat16 ? 1e-3
                                    : 8e-3;
}

TEST_P(Operators, AreThoseOfTheWhole) {
  const auto op = static_cast<BinaryOperator>(GetParam());
  for_each_cell([&](const Cell& cell, Dice& dice) {
    if (!taken(op, cell.dtype)) return;
    const Twin twin(cell, dice, dice.dims(cell.rank));
    SlowArray other = dice.array(cell.dtype, other_dims(twin.whole.dims, dice));
    for (Number& x : other.cell) {
      if (!whole(cell.dtype)) continue;
      if (op == BinaryOperator::kPow) x.integer = x.integer < 0 || x.integer > 9 ? 2 : x.integer;
      if ((op == BinaryOperator::kFloorDiv || op == BinaryOperator::kMod) && x.integer == 0)
        x.integer = -3;
    }
    expect_agree(binary(op, twin.variable, to_tensor(other)), slow_binary(op, twin.whole, other),
                 tolerance(op, cell.dtype));
  });
}

INSTANTIATE_TEST_SUITE_P(ShardedProperty, Operators,
                         testing::Range(0, static_cast<int>(BinaryOperator::kMatMul)));

TEST(ShardedProperty, MatricesAreMultipliedAsTheWhole) {
  for_each_cell([](const Cell& cell, Dice& dice) {
    if (cell.dtype == DType::kBool || cell.rank == 1) return;
    const Twin twin(cell, dice, dice.dims(cell.rank));
    Dims dims = {twin.whole.dims.back(), dice.between(0, 3)};
    if (dice.one_in(2))
      dims.insert(dims.begin(), cell.rank == 3 && dice.one_in(2) ? twin.whole.dims[0] : 1);
    const SlowArray other = dice.array(cell.dtype, dims);
    expect_agree(matmul(twin.variable, to_tensor(other)), slow_matmul(twin.whole, other));
  });
}

TEST(ShardedProperty, UnaryOperatorsAreThoseOfTheWhole) {
  for_each_cell([](const Cell& cell, Dice& dice) {
    const Twin twin(cell, dice, dice.dims(cell.rank));
    for (const UnaryOperator op :
         {UnaryOperator::kNegate, UnaryOperator::kAbs, UnaryOperator::kInvert}) {
      const bool invert = op == UnaryOperator::kInvert;
      if (invert ? !whole(cell.dtype) : cell.dtype == DType::kBool) continue;
      SlowArray expected = twin.whole;
      for (Number& x : expected.cell) x = negated(op, cell.dtype, x);
      expect_agree(unary(op, twin.variable), expected);
    }
  });
}

}  // namespace
}  // namespace embertable
