// Slices as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/tensorflow/tensor_bundle.h"
#include "testing/bundles.h"

namespace embertable::formats {
namespace {

using ::testing::HasSubstr;

TEST(ShardedCases, Case78_SliceSpecsOfDivisions) {
  const auto text = [](std::int64_t first, std::int64_t rows) {
    return to_string(SliceSpec{{13, 5}, {{first, rows}, {0, 5}}});
  };
  EXPECT_EQ(text(0, 5), "13 5 0,5:0,5");
  EXPECT_EQ(text(5, 4), "13 5 5,4:0,5");
  EXPECT_EQ(text(9, 4), "13 5 9,4:0,5");
  for (const char* spec :
       {"20 43 0,20:0,22", "20 43 0,20:22,21", "10 43 0,10:0,43", "4 3 1,2:-", "7 -"})
    EXPECT_EQ(to_string(parse_slice_spec(spec)), spec);
  EXPECT_EQ(parse_slice_spec("4 3 +1,2:-"), (SliceSpec{{4, 3}, {{1, 2}, {}}}));
}

TEST(ShardedCases, Case79_SaysWhatIsWrongWithASliceSpec) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "Need least two elements"},
      {"4", "Need least two elements"},
      {"4 x 0,1:-", "Non numerical dimension"},
      {"4  3 0,1:-", "Non numerical dimension"},
      {"4 3 0,1:- ", "Non numerical dimension"},
      {"4 3 0,1:0", "Expected a pair of numbers"},
      {"4 3 0,1:0,1,2", "Expected a pair of numbers"},
      {"4 3 0,1:a,1", "Expected a pair of numbers"},
      {"4 3 -1,1:-", "Expected non-negative start"},
      {"4 3 0,0:-", "Expected non-negative start"},
      {"4 3 0,-1:-", "Expected non-negative start"},
      {"4 3 0,1", "Mismatching ranks"},
      {"4 3 0,1:-:-", "Mismatching ranks"},
      {"4 3 3,2:-", "out of bounds"},
      {"4 3 5,1:-", "out of bounds"},
      {"4 3 1,9223372036854775807:-", "out of bounds"},
      {"-4 3 0,1:-", "a dimension must be >= 0, got -4"},
  };
  for (const auto& [spec, said] : cases)
    EXPECT_THAT(refusal<ValueError>([&, s = spec] { parse_slice_spec(s); }), HasSubstr(said));
}

}  // namespace
}  // namespace embertable::formats
