#include "embertable/variables/tensor_operators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "embertable/errors.h"
#include "embertable/variables/sharded_variable.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

template <class T>
Tensor line(std::initializer_list<T> values) {
  return Tensor::of<T>(values, {static_cast<std::int64_t>(values.size())});
}
#define EXPECT_SAME(a, b) EXPECT_TRUE(identical(a, b))

TEST(TensorOperators, ArithmeticIsElementByElement) {
  const Tensor x = line<float>({1, -2, 6}), y = line<float>({4, 3, -4});
  EXPECT_SAME(x + y, line<float>({5, 1, 2}));
  EXPECT_SAME(x - y, line<float>({-3, -5, 10}));
  EXPECT_SAME(x * y, line<float>({4, -6, -24}));
  EXPECT_SAME(x / y, line<float>({0.25f, -2.0f / 3, -1.5f}));
  EXPECT_SAME(floor_div(x, y), line<float>({0, -1, -2}));
  EXPECT_SAME(x % y, line<float>({1, 1, -2}));
  EXPECT_SAME(pow(x, line<float>({3, 2, -1})), line<float>({1, 4, 1.0f / 6}));
  EXPECT_SAME(-x, line<float>({-1, 2, -6}));
  EXPECT_SAME(abs(x), line<float>({1, 2, 6}));
}

TEST(TensorOperators, IntegersWrapAndDivideToFloat64) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const Tensor x = line<std::int32_t>({7, -7, kLeast}), y = line<std::int32_t>({2, 2, -1});
  EXPECT_SAME(x / y, line<double>({3.5, -3.5, 2147483648.0}));
  EXPECT_SAME(floor_div(x, y), line<std::int32_t>({3, -4, kLeast}));
  EXPECT_SAME(x % y, line<std::int32_t>({1, 1, 0}));
  EXPECT_SAME(x - line<std::int32_t>({1, 1, 1}), line<std::int32_t>({6, -8, 2147483647}));
  EXPECT_SAME(abs(x), line<std::int32_t>({7, 7, kLeast}));
  EXPECT_SAME(pow(x, line<std::int32_t>({3, 2, 1})), line<std::int32_t>({343, 49, kLeast}));
  EXPECT_SAME(pow(line<std::int64_t>({3}), line<std::int64_t>({41})),
              line<std::int64_t>({-420491770248316829}));  // 3^41 modulo 2^64
}

TEST(TensorOperators, RemaindersHaveTheSignOfTheDivisor) {
  EXPECT_SAME(line<std::int64_t>({5, -5, 5, -5}) % line<std::int64_t>({3, 3, -3, -3}),
              line<std::int64_t>({2, 1, -1, -2}));
  EXPECT_SAME(line<double>({5.5, -5.5, 5.5, -5.5}) % line<double>({3, 3, -3, -3}),
              line<double>({2.5, 0.5, -0.5, -2.5}));
}

TEST(TensorOperators, ComparisonsGiveBool) {
  const float nan = std::nanf("");
  const Tensor x = line<float>({1, 2, nan}), y = line<float>({2, 2, nan});
  EXPECT_SAME(x < y, line<bool>({true, false, false}));
  EXPECT_SAME(x <= y, line<bool>({true, true, false}));
  EXPECT_SAME(x > y, line<bool>({false, false, false}));
  EXPECT_SAME(x >= y, line<bool>({false, true, false}));
  EXPECT_SAME(x == y, line<bool>({false, true, false}));
  EXPECT_SAME(x != y, line<bool>({true, false, true}));
}

TEST(TensorOperators, LogicOfBoolAndBitsOfIntegers) {
  const Tensor x = line<bool>({true, true, false}), y = line<bool>({true, false, false});
  EXPECT_SAME(x & y, line<bool>({true, false, false}));
  EXPECT_SAME(x | y, line<bool>({true, true, false}));
  EXPECT_SAME(x ^ y, line<bool>({false, true, false}));
  EXPECT_SAME(~x, line<bool>({false, false, true}));
  EXPECT_SAME(line<std::int32_t>({12, -1}) & line<std::int32_t>({10, 5}),
              line<std::int32_t>({8, 5}));
  EXPECT_SAME(line<std::int64_t>({12}) ^ line<std::int64_t>({10}), line<std::int64_t>({6}));
  EXPECT_SAME(~line<std::int64_t>({0, 5}), line<std::int64_t>({-1, -6}));
}

TEST(TensorOperators, ShapesAreBroadcast) {
  const Tensor column = Tensor::of<float>({1, 2}, {2, 1}), row = line<float>({10, 20, 30});
  EXPECT_SAME(column + row, Tensor::of<float>({11, 21, 31, 12, 22, 32}, {2, 3}));
  EXPECT_SAME(row - column, Tensor::of<float>({9, 19, 29, 8, 18, 28}, {2, 3}));
  EXPECT_SAME(Tensor::scalar(2.0f) * row, line<float>({20, 40, 60}));
  EXPECT_SAME(Tensor(DType::kFloat32, {0, 3}) + row, Tensor(DType::kFloat32, {0, 3}));
  const Tensor a = Tensor::of<float>({1, 2, 3, 4}, {2, 1, 2});
  const Tensor b = Tensor::of<float>({10, 20, 30}, {3, 1});
  EXPECT_SAME(a + b,
              Tensor::of<float>({11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34}, {2, 3, 2}));
}

TEST(TensorOperators, LiteralsTakeTheOtherSidesDType) {
  EXPECT_SAME(1 + line<float>({1}), line<float>({2}));
  EXPECT_SAME(line<float>({1}) * 2.5, line<float>({2.5f}));
  EXPECT_SAME(line<std::int64_t>({5}) - 2, line<std::int64_t>({3}));
  EXPECT_SAME(line<std::int32_t>({5}) / 2, line<double>({2.5}));
  EXPECT_SAME(line<Float16>({Float16(5)}) + 0.5, line<Float16>({Float16(5.5f)}));
  EXPECT_SAME(line<bool>({true}) ^ true, line<bool>({false}));
  const Tensor whole = line<std::int32_t>({5});
  EXPECT_EQ(refusal<TypeError>([&] { whole + 1.5; }),
            "operator: 1.5 is no number of int32, the other side's dtype");
  EXPECT_EQ(refusal<TypeError>([&] { whole + (std::int64_t{1} << 40); }),
            "operator: 1099511627776 is no number of int32, the other side's dtype");
  EXPECT_EQ(refusal<TypeError>([&] { line<bool>({true}) & 1; }),
            "operator: 1 is no number of bool, the other side's dtype");
  EXPECT_EQ(refusal<TypeError>([&] { whole + true; }),
            "operator: true is no number of int32, the other side's dtype");
  EXPECT_EQ(refusal<TypeError>([] { binary(BinaryOperator::kAdd, 1, 2); }),
            "add: one side must be a tensor");
}

TEST(TensorOperators, HalvesAreRoundedOnce) {
  const Float16 large(2048);
  EXPECT_SAME(line<Float16>({large}) + 1, line<Float16>({large}));
  EXPECT_SAME(line<BFloat16>({BFloat16(256)}) + 1, line<BFloat16>({BFloat16(256)}));
  EXPECT_SAME(line<Float16>({Float16(60000)}) * 2, line<Float16>({Float16(kInfinite)}));
  EXPECT_SAME(line<Float16>({Float16(1)}) < 2, line<bool>({true}));
  // 10 / 3.334 is below 3, and 3 once rounded to binary16.
  const Float16 divisor(3.334f);
  ASSERT_LT(10 / static_cast<float>(divisor), 3);
  EXPECT_SAME(floor_div(line<Float16>({Float16(10)}), line<Float16>({divisor})),
              line<Float16>({Float16(
                  std::floor(static_cast<float>(Float16(10 / static_cast<float>(divisor)))))}));
  // A sum of 4,096 ones is exact in float32 and would stay at 2,048 in binary16.
  Tensor ones(DType::kFloat16, {1, 4096});
  for (Float16& x : ones.mutable_values<Float16>()) x = Float16(1);
  EXPECT_SAME(matmul(ones, ones.reshaped({4096, 1})), Tensor::of<Float16>({Float16(4096)}, {1, 1}));
}

TEST(TensorOperators, MatricesAreMultiplied) {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor y = Tensor::of<float>({1, 0, 0, 1, 1, 1}, {3, 2});
  EXPECT_SAME(matmul(x, y), Tensor::of<float>({4, 5, 10, 11}, {2, 2}));
  const Tensor pile = Tensor::of<float>({1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 2, 2}, {2, 3, 2});
  EXPECT_SAME(matmul(x, pile), Tensor::of<float>({4, 5, 10, 11, 8, 10, 20, 22}, {2, 2, 2}));
  EXPECT_SAME(matmul(Tensor(DType::kInt64, {2, 0}), Tensor(DType::kInt64, {0, 2})),
              Tensor(DType::kInt64, {2, 2}));
  EXPECT_EQ(refusal<ValueError>([&] { matmul(x, x); }),
            "matmul: columns of the first must be as many as rows of the second, got shapes (2, 3) "
            "and (2, 3)");
  EXPECT_EQ(refusal<ValueError>([&] {
              matmul(x, line<float>({1, 2, 3}));
            }),
            "matmul: both sides must have rank 2 at least, got shapes (2, 3) and (3)");
}

TEST(TensorOperators, AnEmptyProductTakesNoMemoryForItsMatrices) {
  const Tensor many(DType::kFloat32, {std::int64_t{1} << 40, 0, 3});
  EXPECT_EQ(matmul(many, Tensor(DType::kFloat32, {3, 2})).shape(),
            Shape({std::int64_t{1} << 40, 0, 2}));
}

TEST(TensorOperators, AnyByteButZeroIsTrue) {
  const unsigned char bytes[] = {0, 1, 2, 255};
  const Tensor x = Tensor::wrap(bytes, DType::kBool, {4}, nullptr);
  const Tensor yes = line<bool>({true, true, true, true});
  EXPECT_SAME(x & yes, line<bool>({false, true, true, true}));
  EXPECT_SAME(x == yes, line<bool>({false, true, true, true}));
  EXPECT_SAME(~x, line<bool>({true, false, false, false}));
}

TEST(TensorOperators, WhatCannotBeBroadcastIsRefusedButEqualityIsFalse) {
  const Tensor two = line<float>({1, 2}), three = line<float>({1, 2, 3});
  EXPECT_SAME(two == three, Tensor::scalar(false));
  EXPECT_SAME(two != three, Tensor::scalar(true));
  EXPECT_EQ(refusal<ValueError>([&] { two + three; }),
            "add: shapes (2) and (3) cannot be broadcast to one");
}

TEST(TensorOperators, NothingIsPromotedAndDTypesAreChecked) {
  EXPECT_EQ(refusal<ValueError>([] { line<float>({1}) + line<double>({1}); }),
            "add: both sides must have the same dtype, got float32 and float64");
  EXPECT_EQ(refusal<ValueError>([] { line<bool>({true}) + line<bool>({true}); }),
            "add: is not for bool");
  EXPECT_EQ(refusal<ValueError>([] { line<float>({1}) & line<float>({1}); }),
            "and: is not for float32");
  EXPECT_EQ(refusal<ValueError>([] { ~line<float>({1}); }), "invert: is not for float32");
  EXPECT_EQ(refusal<ValueError>([] { -line<bool>({true}); }), "negative: is not for bool");
  EXPECT_EQ(refusal<ValueError>([] { line<std::int32_t>({1}) % line<std::int32_t>({0}); }),
            "mod: an integer is divided by zero");
  EXPECT_EQ(refusal<ValueError>([] { floor_div(line<std::int64_t>({1}), 0); }),
            "floordiv: an integer is divided by zero");
  EXPECT_EQ(refusal<ValueError>([] { pow(line<std::int64_t>({2}), -1); }),
            "pow: integers to negative integer powers are not allowed");
  EXPECT_SAME(line<std::int32_t>({1}) / 0, line<double>({kInfinite}));
  EXPECT_SAME(floor_div(line<std::int64_t>({}), 0), line<std::int64_t>({}));  // no integer is
  EXPECT_SAME(pow(line<std::int64_t>({}), -1), line<std::int64_t>({}));
}

TEST(TensorOperators, TakeNoNumberThatIsNoOperator) {
  const Tensor x = line<float>({1});
  EXPECT_EQ(refusal<ValueError>([&] { binary(static_cast<BinaryOperator>(40), x, x); }),
            "binary operator: unknown value 40");
  EXPECT_EQ(refusal<ValueError>([&] { binary(static_cast<BinaryOperator>(17), x, x); }),
            "binary operator: unknown value 17");
  EXPECT_EQ(refusal<ValueError>([&] { unary(static_cast<UnaryOperator>(3), x); }),
            "unary operator: unknown value 3");
}

TEST(TensorOperators, AShardedVariableIsItsRows) {
  const ShardedVariable variable({Variable(line<float>({1})), Variable(line<float>({2, 3}))},
                                 {.name = "v"});
  EXPECT_SAME(variable + 1, line<float>({2, 3, 4}));
  EXPECT_SAME(2.0 / variable, line<float>({2, 1, 2.0f / 3}));
  EXPECT_SAME(variable == variable, line<bool>({true, true, true}));
  EXPECT_SAME(-variable, line<float>({-1, -2, -3}));
}

}  // namespace
}  // namespace embertable
