#include "embertable/variables/tensor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using F = std::vector<float>;

F floats(const Tensor& tensor) {
  const Tensor packed = tensor.packed();
  const auto values = packed.values<float>();
  return {values.begin(), values.end()};
}

TEST(DType, HasWidthAndName) {
  std::string all;
  for (const DType dtype : kDTypes)
    all += std::string(to_string(dtype)) + " " + std::to_string(byte_width(dtype)) + ", ";
  EXPECT_EQ(all, "float32 4, float64 8, int32 4, int64 8, bool 1, bfloat16 2, float16 2, ");
}

TEST(Tensor, ADefaultOneIsEmpty) {
  Tensor none;
  EXPECT_EQ(none.shape(), Shape({0}));
  EXPECT_TRUE(none.values<float>().empty());
  EXPECT_TRUE(none.mutable_values<float>().empty());
}

TEST(Tensor, IsZerosUntilFilled) {
  EXPECT_EQ(floats(Tensor(DType::kFloat32, {2, 2})), F(4, 0));
  EXPECT_EQ(Tensor(DType::kFloat64, Shape::scalar()).values<double>()[0], 0);
  const Tensor large(DType::kInt64, {1 << 20, 2});
  EXPECT_EQ(large.values<std::int64_t>().back(), 0);
}

TEST(Tensor, ACopySharesMemoryUntilOneChanges) {
  Tensor a = Tensor::of<float>({1, 2, 3}, {3});
  const Tensor b = a;
  EXPECT_EQ(a.data(), b.data());
  a.mutable_values<float>()[0] = 9;
  EXPECT_EQ(floats(a), F({9, 2, 3}));
  EXPECT_EQ(floats(b), F({1, 2, 3}));
  const std::byte* alone = a.data();
  a.mutable_values<float>()[1] = 8;
  EXPECT_EQ(a.data(), alone);
}

TEST(Tensor, WrappedMemoryIsSeenAndNeverWritten) {
  const auto memory = std::make_shared<F>(F{1, 2, 3, 4});
  Tensor wrapped = Tensor::wrap(memory->data(), DType::kFloat32, {4}, memory);
  EXPECT_EQ(memory.use_count(), 2);
  (*memory)[0] = 7;
  EXPECT_EQ(floats(wrapped), F({7, 2, 3, 4}));
  wrapped.mutable_values<float>()[0] = 5;
  EXPECT_EQ((*memory)[0], 7);
  EXPECT_FALSE(wrapped.wrapped());
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(Tensor, StridesMayBeNegativeZeroAndWide) {
  const F memory = {0, 1, 2, 3, 4, 5};
  const auto wrapped = [&](std::size_t first, const Shape& shape,
                           const std::vector<std::int64_t>& strides) {
    return floats(Tensor::wrap(&memory[first], DType::kFloat32, shape, strides, nullptr));
  };
  EXPECT_EQ(wrapped(5, {6}, {-4}), F({5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(wrapped(2, {3}, {0}), F({2, 2, 2}));
  EXPECT_EQ(wrapped(0, {3, 2}, {4, 12}), F({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(wrapped(1, {2, 1, 2}, {8, 100, 4}), F({1, 2, 3, 4}));
}

TEST(Tensor, StridedElementsOfEveryWidthArePacked) {
  const auto reversed = [](auto tensor) {
    const std::int64_t width = byte_width(tensor.dtype());
    const Tensor::Strides strides = {-2 * width, width};
    return tensor.view(2 * width, {2, 2}, strides).packed();
  };
  EXPECT_TRUE(identical(reversed(Tensor::of<bool>({true, false, false, true}, {4})),
                        Tensor::of<bool>({false, true, true, false}, {2, 2})));
  EXPECT_TRUE(identical(
      reversed(Tensor::of<Float16>({Float16(1), Float16(2), Float16(3), Float16(4)}, {4})),
      Tensor::of<Float16>({Float16(3), Float16(4), Float16(1), Float16(2)}, {2, 2})));
  EXPECT_TRUE(identical(reversed(Tensor::of<double>({1, 2, 3, 4}, {4})),
                        Tensor::of<double>({3, 4, 1, 2}, {2, 2})));
}

TEST(Tensor, AViewOutlivesTheTensor) {
  Tensor part;
  {
    const Tensor whole = Tensor::of<float>({1, 2, 3, 4}, {2, 2});
    part = whole.view(8, {2}, {4});
    EXPECT_EQ(part.data(), whole.data() + 8);
  }
  EXPECT_EQ(floats(part), F({3, 4}));
}

TEST(Tensor, ReshapesWithoutACopyWhereItCan) {
  const Tensor a = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(a.reshaped({3, 2}).data(), a.data());
  EXPECT_EQ(a.reshaped({6, 1}).shape(), Shape({6, 1}));
  EXPECT_EQ(refusal<ValueError>([&] { a.reshaped({4}); }),
            "tensor: shape (2, 3) cannot become (4)");
}

TEST(Tensor, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal<ValueError>([] {
              Tensor::of<float>({1, 2}, {3});
            }),
            "tensor: shape (3) has 3 elements, got 2 values");
  EXPECT_EQ(refusal<ValueError>([] { Tensor(DType::kBool, Shape()); }),
            "tensor: shape must be fully defined, got (unknown rank)");
  EXPECT_EQ(refusal<ValueError>([] {
              Tensor(DType::kInt64, {1LL << 40, 1LL << 21});
            }),
            "tensor: int64 of shape (1099511627776, 2097152) has more than 2^63 bytes");
  EXPECT_EQ(refusal<TypeError>([] { Tensor::scalar(1.0f).values<double>(); }),
            "tensor: its elements are float32, asked for as float64");
  EXPECT_EQ(refusal<TypeError>([] { Tensor::scalar(1.0f).mutable_values<bool>(); }),
            "tensor: its elements are float32, asked for as bool");
  const F memory(4);
  EXPECT_EQ(refusal<ValueError>([&] {
              Tensor::wrap(reinterpret_cast<const char*>(memory.data()) + 2, DType::kFloat32, {2},
                           nullptr);
            }),
            "tensor: float32 needs addresses and strides that are multiples of 4");
  const std::int64_t strides[] = {8, 4};
  EXPECT_EQ(refusal<ValueError>(
                [&] { Tensor::wrap(memory.data(), DType::kFloat32, {2}, strides, nullptr); }),
            "tensor: shape (2) needs 1 strides, got 2");
  const std::int64_t wide[] = {8};
  const Tensor apart = Tensor::wrap(memory.data(), DType::kFloat32, {2}, wide, nullptr);
  EXPECT_EQ(refusal<ValueError>([&] { apart.values<float>(); }),
            "tensor: elements of shape (2) do not stand side by side; take packed() first");
}

TEST(Tensor, TakesNoNumberThatIsNoDType) {
  const float one = 1;
  constexpr auto kNone = static_cast<DType>(7);
  EXPECT_EQ(refusal<ValueError>([] { Tensor(kNone, {1}); }), "tensor: dtype: unknown value 7");
  EXPECT_EQ(refusal<ValueError>([&] { Tensor::wrap(&one, kNone, {1}, nullptr); }),
            "tensor: dtype: unknown value 7");
  EXPECT_EQ(to_string(kNone), "?");
}

TEST(Tensor, IdenticalComparesDTypeShapeAndBits) {
  const Tensor a = Tensor::of<float>({0, 1}, {2});
  EXPECT_TRUE(identical(a, Tensor::of<float>({0, 1}, {2})));
  EXPECT_FALSE(identical(a, Tensor::of<float>({-0.0f, 1}, {2})));
  EXPECT_FALSE(identical(a, Tensor::of<float>({0, 1}, {1, 2})));
  EXPECT_FALSE(identical(Tensor::scalar(std::int32_t{0}), Tensor::scalar(0.0f)));
}

}  // namespace
}  // namespace embertable
