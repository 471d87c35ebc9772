#include "apps/convert/found_arrays.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable::jobs {
namespace {

FoundArray array_of(const std::string& name, std::vector<std::int64_t> shape) {
  return {
      .name = name, .place = "", .source = name + ".npy", .shape = std::move(shape), .read = {}};
}

TEST(GroupTables, RefusesATableThatIsTooWide) {
  const auto refused = [](std::int64_t dim) {
    std::vector<FoundArray> arrays = {array_of("t", {1, dim})};
    return refusal<ValueError>([&] { group_tables(arrays, {}, {}, "/in"); });
  };
  EXPECT_EQ(refused(4096), "");
  // The second is 4 in 32 bits.
  EXPECT_EQ(refused(4097), "table 't': dim must be 1..4096, got 't.npy' of [1, 4097]");
  EXPECT_EQ(refused(4294967300), "table 't': dim must be 1..4096, got 't.npy' of [1, 4294967300]");
}

TEST(GroupTables, NamesTheArraysWhereNoneIsATable) {
  std::vector<FoundArray> arrays = {array_of("a", {4}), array_of("b", {4, 2, 2})};
  const auto refused = [&] {
    return refusal<ValueError>([&] { group_tables(arrays, {}, {}, "/in"); });
  };
  const std::string must =
      "/in: there must be an array [rows, dim] of floating-point numbers, got ";
  EXPECT_EQ(refused(), must + "'a.npy' of [4], 'b.npy' of [4, 2, 2]");
  arrays.push_back(array_of("c", {0, 2}));
  arrays.push_back(array_of("d", {}));
  EXPECT_EQ(refused(), must + "'a.npy' of [4], 'b.npy' of [4, 2, 2], 'c.npy' of [0, 2] and 1 more");
  arrays.clear();
  EXPECT_EQ(refused(), must + "none");
}

TEST(GroupTables, SlotsAreThoseWhoseNameAndShapeFit) {
  std::vector<FoundArray> arrays = {array_of("a", {3, 2}),        array_of("a/momenta", {3, 2}),
                                    array_of("a/count", {3}),     array_of("a/other", {4, 2}),
                                    array_of("b/a", {3, 2}),      array_of("a/b/c", {3, 2}),
                                    array_of("a/momenta/x", {3}), array_of("scalar", {1})};
  const std::vector<FoundTable> tables = group_tables(arrays, {}, {}, "/in");
  std::vector<std::string> found, left;
  for (const FoundTable& table : tables) {
    found.push_back(table.saved.name);
    for (const auto& slot : table.saved.slots) found.push_back("  " + slot.name);
  }
  for (const FoundArray& array : arrays) left.push_back(array.name);
  EXPECT_EQ(found,
            (std::vector<std::string>{"a", "  momenta", "  count", "a/other", "b/a", "a/b/c"}));
  EXPECT_EQ(left, (std::vector<std::string>{"a/momenta/x", "scalar"}));
}

}  // namespace
}  // namespace embertable::jobs
