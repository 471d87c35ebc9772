// Tensors in slices: what is asked for meets what is stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/tensor_bundle.h"
#include "formats/test_bundles.h"

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
  EXPECT_THAT(refusal([&] { read_part(reader, "t", "4 5 1,2:2,3", 6); }),
              HasSubstr("sufficient slices"));
  EXPECT_THAT(refusal([&] { reader.read("t"); }), HasSubstr("sufficient slices"));
}

TEST(ShardedCases, Case83_RequestsThatDoNotFit) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "4 2 0,2:-", counted(4));
  EXPECT_THAT(refusal([&] { add_part(writer, "t", "4 2 1,2:-", counted(4)); }),
              HasSubstr("Overlapping slices"));
  EXPECT_THAT(
      refusal([&] { add_part(writer, "t", "5 2 2,2:-", counted(4)); }),
      HasSubstr("slices must be of one tensor, [4, 2] of float32, got one of [5, 2] of float32"));
  add_part(writer, "t", "4 2 2,2:-", counted(4, 4));
  const std::int64_t ids[] = {1, 2};
  writer.add("i", BundleDType::kInt64, std::vector<std::int64_t>{2}, std::as_bytes(std::span(ids)));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_THAT(refusal<KeyError>([&] { reader.read("x"); }),
              HasSubstr("Key x not found in checkpoint"));
  EXPECT_THAT(refusal([&] { read_part(reader, "t", "5 2 0,1:-", 2); }),
              HasSubstr("does not match the shape stored in checkpoint"));
  EXPECT_THAT(refusal([&] { read_part(reader, "t", "4 2 0,1:-", 3); }),
              HasSubstr("2 elements of 4 bytes"));
  const ExpectedTensor expected[] = {{"t", BundleDType::kFloat64, {4, 2}},
                                     {"i", BundleDType::kInt32, {3}}};
  const std::string both = refusal([&] { reader.require(expected); });
  EXPECT_THAT(both, HasSubstr("t; expected dtype float64 does not equal original dtype float32\n"));
  EXPECT_THAT(both, HasSubstr("i; expected dtype int32 does not equal original dtype int64"));
  const ExpectedTensor longer[] = {{"i", BundleDType::kInt64, {3}}};
  EXPECT_THAT(refusal([&] { reader.require(longer); }), HasSubstr("does not match the shape"));
  const ExpectedTensor right[] = {{"i", BundleDType::kInt64, {2}}};
  EXPECT_EQ(refusal([&] { reader.require(right); }), "");
}

// Any boxes to any boxes, of any dtype's width and rank, by rows and as a whole.
TEST(BundleCases, AnyCutIsReadAsAnyOther) {
  const auto draw = [](std::uint64_t seed, std::uint64_t place, std::uint64_t bound) {
    return static_cast<std::int64_t>(uniform_below(random_bits(91, seed, place), bound));
  };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<std::int64_t> shape;
    for (std::uint64_t axis = 0; axis < 1 + seed % 3; ++axis)
      shape.push_back(1 + draw(seed, axis, 7));
    std::vector<std::vector<SliceExtent>> cuts(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      for (std::int64_t at = 0; at < shape[axis];) {
        const std::int64_t length = std::min(
            shape[axis] - at, 1 + draw(seed, 100 * axis + static_cast<std::uint64_t>(at), 4));
        cuts[axis].push_back({at, length});
        at += length;
      }
    }
    const auto value = [&](const std::vector<std::int64_t>& at) {
      float number = 0;
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        number = number * 10 + static_cast<float>(at[axis]);
      return number;
    };
    const auto box_values = [&](const TensorSlice& slice) {
      Floats values;
      std::vector<std::int64_t> at;
      const std::function<void(std::size_t)> walk = [&](std::size_t axis) {
        if (axis == shape.size()) return values.push_back(value(at));
        for (std::int64_t i = 0; i < slice[axis].length; ++i) {
          at.push_back(slice[axis].start + i);
          walk(axis + 1);
          at.pop_back();
        }
      };
      walk(0);
      return values;
    };
    MemoryFiles files;
    TensorBundleWriter writer(files, "/b");
    TensorSlice slice;
    const std::function<void()> add = [&] {
      if (slice.size() == shape.size()) {
        writer.add_slice("t", BundleDType::kFloat32, {shape, slice}, raw(box_values(slice)));
        return;
      }
      for (const SliceExtent& extent : cuts[slice.size()]) {
        slice.push_back(extent);
        add();
        slice.pop_back();
      }
    };
    add();
    writer.finish();
    const TensorBundleReader reader(files, "/b");
    for (std::uint64_t k = 0; k < 10; ++k) {
      TensorSlice wanted;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::int64_t start =
            draw(seed, 1000 + 10 * k + axis, static_cast<std::uint64_t>(shape[axis]));
        wanted.push_back({start, 1 + draw(seed, 2000 + 10 * k + axis,
                                          static_cast<std::uint64_t>(shape[axis] - start))});
      }
      const Floats expected = box_values(wanted);
      Floats found(expected.size());
      reader.read("t", {shape, wanted}, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, expected) << seed << ": " << to_string(SliceSpec{shape, wanted});
    }
    TensorSlice all;
    for (const std::int64_t dim : shape) all.push_back({0, dim});
    EXPECT_EQ(read_all(reader, "t"), box_values(all));
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
    Floats values(static_cast<std::size_t>(count * width));
    reader.read_rows("t", first, count, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, counted(values.size(), static_cast<float>(first * width)));
  }
  EXPECT_LT(files.bytes_read(), 2 * rows * width * 4 + 100000);
  Floats one(static_cast<std::size_t>(width));
  EXPECT_THAT(
      refusal([&] { reader.read_rows("t", rows, 1, std::as_writable_bytes(std::span(one))); }),
      HasSubstr("out of bounds"));
}

}  // namespace
}  // namespace embertable::formats
