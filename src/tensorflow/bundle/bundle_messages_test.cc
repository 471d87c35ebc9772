// Keys of slices, and numbers in keys.
#include "tensorflow/bundle/bundle_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "embertable/tensorflow/tensor_bundle.h"
#include "testing/golden_messages.h"

namespace embertable::formats {
namespace {

TEST(ShardedCases, Case87_OrderedNumbersOfKeys) {
  const auto signed_hex = [](std::int64_t number) {
    std::string key;
    append_ordered_signed(number, key);
    return wire::to_hex(key);
  };
  const std::pair<std::int64_t, const char*> numbers[] = {
      {0, "80"},
      {1, "81"},
      {63, "bf"},
      {64, "c040"},
      {128, "c080"},
      {8191, "dfff"},
      {8192, "e02000"},
      {1048576, "f0100000"},
      {134217728, "f808000000"},
      {std::int64_t{1} << 55, "ff8080000000000000"},
      {std::numeric_limits<std::int64_t>::max(), "ffc07fffffffffffffff"},
      {-1, "7f"},
      {-64, "40"},
      {-65, "3fbf"},
      {-2048, "3800"}};
  for (const auto& [number, hex] : numbers) EXPECT_EQ(signed_hex(number), hex) << number;
  const auto unsigned_hex = [](std::uint64_t number) {
    std::string key;
    append_ordered(number, key);
    return wire::to_hex(key);
  };
  EXPECT_EQ(unsigned_hex(0), "00");
  EXPECT_EQ(unsigned_hex(1), "0101");
  EXPECT_EQ(unsigned_hex(256), "020100");
  std::string text;
  append_ordered(std::string_view("a\0\xff", 3), text);
  EXPECT_EQ(wire::to_hex(text), "6100ffff000001");
}

TEST(ShardedCases, Case87_KeysOfSlices) {
  const auto key = [](const char* name, const char* spec) {
    return wire::to_hex(slice_key(name, parse_slice_spec(spec).slice));
  };
  EXPECT_EQ(key("s", "3 2 0,2:0,2"),
            "007300010102"
            "80828082");
  EXPECT_EQ(key("foo", "9 9 9 9 -:-:1,3:4,5"),
            "00666f6f00010104"
            "807f807f81838485");
  EXPECT_EQ(key("t", "264 8 64,200:0,8"),
            "007400010102"
            "c040c0c88088");
  EXPECT_EQ(key("t", "1250000 128 1000000,250000:0,128"),
            "007400010102"
            "ef4240e3d09080c080");
}

TEST(ShardedCases, Case87_OrderedNumbersKeepTheirOrder) {
  std::vector<std::int64_t> numbers = {0, std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max()};
  for (int bit = 0; bit < 63; ++bit) {
    for (const std::int64_t near : {-1, 0, 1}) {
      numbers.push_back((std::int64_t{1} << bit) + near);
      numbers.push_back(-(std::int64_t{1} << bit) + near);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::string before;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::string key;
    append_ordered_signed(numbers[i], key);
    if (i > 0) {
      EXPECT_EQ(numbers[i - 1] < numbers[i], before < key) << numbers[i];
    }
    before = key;
  }
}

}  // namespace
}  // namespace embertable::formats
