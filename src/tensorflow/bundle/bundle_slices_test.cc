// Tensors in slices: what is asked for meets what is stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "testing/bundles.h"
#include "testing/executor.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;
using ::testing::HasSubstr;

TEST(ShardedCases, Case80_ColumnsComeFromEitherSlice) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "5 10 -:0,1", Floats(5, 0));
  add_part(writer, "t", "5 10 -:1,9", Floats(45, 1));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  Floats all(50, 1);
  for (std::size_t row = 0; row < 5; ++row) all[row * 10] = 0;
  EXPECT_EQ(read_all(reader, "t"), all);
  EXPECT_EQ(read_part(reader, "t", "5 10 -:0,2", 10), (Floats{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(read_part(reader, "t", "5 10 -:2,2", 10), Floats(10, 1));
}

TEST(ShardedCases, Case81_AFullSliceInEitherForm) {
  for (const char* stored : {"5 10 -:-", "5 10 0,5:0,10"}) {
    MemoryFiles files;
    TensorBundleWriter writer(files, "/b");
    add_part(writer, "t", stored, counted(50));
    writer.finish();
    const TensorBundleReader reader(files, "/b");
    EXPECT_TRUE(reader.describe("t").slices.empty());
    for (const char* wanted : {"5 10 -:-", "5 10 0,5:0,10"})
      EXPECT_EQ(read_part(reader, "t", wanted, 50), counted(50));
  }
}

TEST(ShardedCases, Case82_ARequestCrossesSlicesAndMeetsAHole) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "4 5 0,2:-", counted(10));
  add_part(writer, "t", "4 5 2,2:0,3", {10, 11, 12, 15, 16, 17});
  add_part(writer, "t", "4 5 3,1:3,2", {18, 19});
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_EQ(read_part(reader, "t", "4 5 1,1:-", 5), (Floats{5, 6, 7, 8, 9}));
  EXPECT_EQ(read_part(reader, "t", "4 5 1,2:0,3", 6), (Floats{5, 6, 7, 10, 11, 12}));
  EXPECT_EQ(read_part(reader, "t", "4 5 3,1:-", 5), (Floats{15, 16, 17, 18, 19}));
  EXPECT_THAT(refusal<ValueError>([&] { read_part(reader, "t", "4 5 1,2:2,3", 6); }),
              HasSubstr("sufficient slices"));
  EXPECT_THAT(refusal<ValueError>([&] { reader.read("t"); }), HasSubstr("sufficient slices"));
}

TEST(ShardedCases, Case83_RequestsThatDoNotFit) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "4 2 0,2:-", counted(4));
  EXPECT_THAT(refusal<ValueError>([&] { add_part(writer, "t", "4 2 1,2:-", counted(4)); }),
              HasSubstr("Overlapping slices"));
  EXPECT_THAT(
      refusal<ValueError>([&] { add_part(writer, "t", "5 2 2,2:-", counted(4)); }),
      HasSubstr("slices must be of one tensor, [4, 2] of float32, got one of [5, 2] of float32"));
  add_part(writer, "t", "4 2 2,2:-", counted(4, 4));
  const std::int64_t ids[] = {1, 2};
  writer.add("i", BundleDType::kInt64, std::vector<std::int64_t>{2}, std::as_bytes(std::span(ids)));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_THAT(refusal<KeyError>([&] { reader.read("x"); }),
              HasSubstr("Key x not found in checkpoint"));
  EXPECT_THAT(refusal<ValueError>([&] { read_part(reader, "t", "5 2 0,1:-", 2); }),
              HasSubstr("does not match the shape stored in checkpoint"));
  EXPECT_THAT(refusal<ValueError>([&] { read_part(reader, "t", "4 2 0,1:-", 3); }),
              HasSubstr("2 elements of 4 bytes"));
  const ExpectedTensor expected[] = {{"t", BundleDType::kFloat64, {4, 2}},
                                     {"i", BundleDType::kInt32, {3}}};
  const std::string both = refusal<ValueError>([&] { reader.require(expected); });
  EXPECT_THAT(both, HasSubstr("t; expected dtype float64 does not equal original dtype float32\n"));
  EXPECT_THAT(both, HasSubstr("i; expected dtype int32 does not equal original dtype int64"));
  const ExpectedTensor longer[] = {{"i", BundleDType::kInt64, {3}}};
  EXPECT_THAT(refusal<ValueError>([&] { reader.require(longer); }),
              HasSubstr("does not match the shape"));
  const ExpectedTensor right[] = {{"i", BundleDType::kInt64, {2}}};
  EXPECT_EQ(refusal<ValueError>([&] { reader.require(right); }), "");
}

/// A tensor of drawn shape whose element [i, j, k] is 100 i + 10 j + k.
class DrawnTensor {
 public:
  explicit DrawnTensor(std::uint64_t seed) : seed_(seed) {
    for (std::uint64_t axis = 0; axis < 1 + seed % 3; ++axis) shape_.push_back(1 + draw(7));
  }

  const std::vector<std::int64_t>& shape() const { return shape_; }

  /// The elements of a box, row-major.
  Floats values(const TensorSlice& slice, std::size_t axis = 0, float begun = 0) const {
    if (axis == shape_.size()) return {begun};
    Floats all;
    for (std::int64_t i = 0; i < slice[axis].length; ++i) {
      const auto at = static_cast<float>(slice[axis].start + i);
      const Floats inner = values(slice, axis + 1, begun * 10 + at);
      all.insert(all.end(), inner.begin(), inner.end());
    }
    return all;
  }

  TensorSlice whole() const {
    TensorSlice slice;
    for (const std::int64_t dim : shape_) slice.push_back({0, dim});
    return slice;
  }

  TensorSlice drawn_box() {
    TensorSlice slice;
    for (const std::int64_t dim : shape_) {
      const std::int64_t start = draw(dim);
      slice.push_back({start, 1 + draw(dim - start)});
    }
    return slice;
  }

  /// The boxes of cuts through all of the tensor, drawn on each axis.
  std::vector<TensorSlice> drawn_grid() {
    std::vector<TensorSlice> boxes = {{}};
    for (const std::int64_t dim : shape_) {
      std::vector<TensorSlice> longer;
      for (std::int64_t start = 0, length = 0; start < dim; start += length) {
        length = std::min(dim - start, 1 + draw(4));
        for (TensorSlice box : boxes) {
          box.push_back({start, length});
          longer.push_back(std::move(box));
        }
      }
      boxes = std::move(longer);
    }
    return boxes;
  }

 private:
  std::int64_t draw(std::int64_t bound) {
    return static_cast<std::int64_t>(
        uniform_below(random_bits(91, seed_, drawn_++), static_cast<std::uint64_t>(bound)));
  }

  std::uint64_t seed_, drawn_ = 0;
  std::vector<std::int64_t> shape_;
};

TEST(BundleCases, AnyCutIsReadAsAnyOther) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    DrawnTensor tensor(test_seed(seed));
    MemoryFiles files;
    TensorBundleWriter writer(files, "/b");
    for (const TensorSlice& box : tensor.drawn_grid())
      writer.add_slice("t", BundleDType::kFloat32, {tensor.shape(), box}, raw(tensor.values(box)));
    writer.finish();
    const TensorBundleReader reader(files, "/b");
    for (int i = 0; i < 10; ++i) {
      const SliceSpec wanted{tensor.shape(), tensor.drawn_box()};
      const Floats expected = tensor.values(wanted.slice);
      Floats found(expected.size());
      reader.read("t", wanted, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, expected) << seed << ": " << to_string(wanted);
    }
    EXPECT_EQ(read_all(reader, "t"), tensor.values(tensor.whole()));
  }
}

// Streamed by rows, once through whole slices and then by pieces whose sums are known.
TEST(BundleCases, RowsAreStreamedOverSlices) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  const std::int64_t rows = 3000, width = 300;
  const auto fill = [&](std::int64_t from) {
    return [=](std::int64_t first, std::span<std::byte> out) {
      const Floats values = counted(out.size() / 4, static_cast<float>((from + first) * width));
      std::memcpy(out.data(), values.data(), out.size());
    };
  };
  for (std::int64_t from = 0; from < rows; from += 1500)
    writer.add_slice("t", BundleDType::kFloat32, {{rows, width}, {{from, 1500}, {0, width}}},
                     fill(from));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  for (std::int64_t first = 0; first < rows; first += 700) {
    const std::int64_t count = std::min<std::int64_t>(700, rows - first);
    Floats values(count * width);
    reader.read_rows("t", first, count, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, counted(values.size(), static_cast<float>(first * width)));
  }
  EXPECT_LT(files.bytes_read(), 2 * rows * width * 4 + 100000);
  Floats one(width);
  EXPECT_THAT(refusal<ValueError>(
                  [&] { reader.read_rows("t", rows, 1, std::as_writable_bytes(std::span(one))); }),
              HasSubstr("out of bounds"));
}

}  // namespace
}  // namespace embertable::formats
