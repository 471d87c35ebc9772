#include "embertable/variables/tensor_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using Ints = std::vector<std::int64_t>;

/// 0, 1, 2, ...
Tensor counting(const Shape& shape) {
  Tensor tensor(DType::kInt64, shape);
  std::int64_t next = 0;
  for (std::int64_t& x : tensor.mutable_values<std::int64_t>()) x = next++;
  return tensor;
}

/// "(2, 3)" of shape and the elements.
std::string shown(const Tensor& tensor) {
  std::string text = tensor.shape().to_string();
  const Tensor packed = tensor.packed();
  for (const std::int64_t x : packed.values<std::int64_t>()) text += " " + std::to_string(x);
  return text;
}

template <class Error>
std::string index_refusal(const Tensor& tensor, std::initializer_list<Index> parts) {
  return refusal<Error>([&] { index(tensor, parts); });
}

TEST(TensorIndex, PartsGoFromLeftToRight) {
  const Tensor cube = counting({2, 3, 4});
  EXPECT_EQ(shown(index(cube, {1, 2, 3})), "() 23");
  EXPECT_EQ(shown(index(cube, {-1, Slice{{}, {}, 2}, 0})), "(2) 12 20");
  EXPECT_EQ(shown(index(cube, {Ellipsis{}, -1})), "(2, 3) 3 7 11 15 19 23");
  EXPECT_EQ(shown(index(cube, {0, NewAxis{}, 1})), "(1, 4) 4 5 6 7");
  EXPECT_EQ(shown(index(cube, {0, 0, Slice{{}, {}, -1}, NewAxis{}})), "(4, 1) 3 2 1 0");
  EXPECT_EQ(shown(index(cube, {0, Slice{5, 1}})), "(0, 4)");
  EXPECT_EQ(index(cube, {1}).data(), cube.data() + 12 * 8);
}

TEST(TensorIndex, HugeBoundsAndStepsAreCut) {
  const Tensor line = counting({5});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(shown(index(line, {Slice{kLeast, kMost, kMost}})), "(1) 0");
  EXPECT_EQ(shown(index(line, {Slice{kMost, kLeast, kLeast}})), "(1) 4");
  EXPECT_EQ(shown(index(line, {Slice{1, kMost, 2}})), "(2) 1 3");
  EXPECT_EQ(shown(index(counting({0}), {Slice{{}, {}, -1}})), "(0)");
}

TEST(TensorIndex, AMaskSelectsInRowMajorOrder) {
  const Tensor table = counting({2, 3});
  const Tensor odd = Tensor::of<bool>({false, true, false, true, false, true}, {2, 3});
  EXPECT_EQ(shown(index(table, {odd})), "(3) 1 3 5");
  const Tensor rows = Tensor::of<bool>({false, true}, {2});
  EXPECT_EQ(shown(index(table, {rows})), "(1, 3) 3 4 5");
  EXPECT_EQ(shown(index(table, {rows, 1})), "(1) 4");
  const Tensor columns = Tensor::of<bool>({true, false, true}, {3});
  EXPECT_EQ(shown(index(table, {Slice{}, columns})), "(2, 2) 0 2 3 5");
  EXPECT_EQ(shown(index(table, {Ellipsis{}, columns, NewAxis{}})), "(2, 2, 1) 0 2 3 5");
  EXPECT_EQ(shown(index(table, {Tensor(DType::kBool, {2})})), "(0, 3)");
}

// numpy: arange(24).reshape(2, 3, 4)[1, :, [True, False, False, True]] has shape (2, 3).
TEST(TensorIndex, AMaskApartFromAnIntegerComesFirst) {
  const Tensor cube = counting({2, 3, 4});
  const Tensor mask = Tensor::of<bool>({true, false, false, true}, {4});
  EXPECT_EQ(shown(index(cube, {1, Slice{}, mask})), "(2, 3) 12 16 20 15 19 23");
  EXPECT_EQ(shown(index(cube, {Slice{}, 1, mask})), "(2, 2) 4 7 16 19");
  EXPECT_EQ(shown(index(cube, {1, NewAxis{}, 2, mask})), "(2, 1) 20 23");
}

// numpy: arange(24).reshape(2, 3, 4)[[False, True], :, [True, False, False, True]] is refused; with
// as many trues, or one, masks go along element by element.
TEST(TensorIndex, SeveralMasksSelectElementByElement) {
  const Tensor cube = counting({2, 3, 4});
  const auto mask = [](std::initializer_list<bool> values) {
    return Tensor::of<bool>(values, {std::ssize(values)});
  };
  const Tensor both = mask({true, true}), last = mask({false, true});
  const Tensor rows = mask({true, false, true}), ends = mask({true, false, false, true});
  EXPECT_EQ(shown(index(cube, {both, rows})), "(2, 4) 0 1 2 3 20 21 22 23");
  EXPECT_EQ(shown(index(cube, {both, rows, ends})), "(2) 0 23");
  EXPECT_EQ(shown(index(cube, {both, Slice{}, ends})), "(2, 3) 0 4 8 15 19 23");
  EXPECT_EQ(shown(index(cube, {last, rows})), "(2, 4) 12 13 14 15 20 21 22 23");
  EXPECT_EQ(shown(index(cube, {Slice{}, rows, ends})), "(2, 2) 0 11 12 23");
  EXPECT_EQ(shown(index(cube, {mask({false, false}), mask({false, true, false})})), "(0, 4)");
  EXPECT_EQ(index_refusal<ValueError>(cube, {both, mask({true, true, true})}),
            "index: masks must select equally many elements, or one, got 2 and 3");
}

TEST(TensorIndex, SaysWhichPartBreaksWhichRule) {
  const Tensor table = counting({2, 3});
  EXPECT_EQ(index_refusal<IndexError>(table, {0, 3}),
            "index 3 is out of bounds for axis 1 with size 3");
  EXPECT_EQ(index_refusal<IndexError>(table, {-3}),
            "index -3 is out of bounds for axis 0 with size 2");
  EXPECT_EQ(index_refusal<IndexError>(table, {0, Ellipsis{}, 0, 0}),
            "index: 3 axes are indexed, shape (2, 3) has 2");
  EXPECT_EQ(index_refusal<ValueError>(table, {Slice{{}, {}, 0}}),
            "index: slice step cannot be zero");
  EXPECT_EQ(index_refusal<ValueError>(table, {Ellipsis{}, Ellipsis{}}),
            "index: an index can only have a single ellipsis ('...')");
  EXPECT_EQ(index_refusal<ValueError>(table, {Slice{}, Tensor(DType::kBool, {2})}),
            "index: a mask of shape (2) does not fit axis 1 of shape (2, 3)");
  const NewAxis more;
  EXPECT_EQ(index_refusal<ValueError>(table, {more, more, more, more, more, more, more}),
            "index: the result has more than 8 axes, 9");
}

TEST(TensorIndex, TensorsAreNoPositionsAndNoBounds) {
  const Tensor table = counting({2, 3});
  const Tensor one = Tensor::scalar(std::int64_t{1});
  EXPECT_THROW(static_cast<void>(Index{one}), TypeError);
  EXPECT_THROW(static_cast<void>(Slice{one, {}, {}}), TypeError);
  EXPECT_THROW(static_cast<void>(Slice{{}, one, {}}), TypeError);
  EXPECT_THROW(static_cast<void>(Slice{{}, {}, one}), TypeError);
  EXPECT_THROW(static_cast<void>(Index{true}), ValueError);
}

}  // namespace
}  // namespace embertable
