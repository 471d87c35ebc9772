// Boxes of one tensor beside each other.
#include "tensorflow/bundle/slices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/refusal.h"

namespace embertable::formats {
namespace {

std::int64_t draw(std::uint64_t seed, std::uint64_t place, std::uint64_t bound) {
  return static_cast<std::int64_t>(uniform_below(random_bits(test_seed(92), seed, place), bound));
}

/// Cuts a box in two again and again.
void cut_apart(Box box, std::uint64_t seed, std::uint64_t number, std::vector<Box>& boxes) {
  const auto axis = static_cast<std::size_t>(
      draw(seed, 2 * number, static_cast<std::uint64_t>(box.start.size())));
  const std::int64_t length = box.length[axis];
  if (number > 200 || length < 2) return boxes.push_back(std::move(box));
  const std::int64_t at = 1 + draw(seed, 2 * number + 1, static_cast<std::uint64_t>(length - 1));
  Box rest = box;
  box.length[axis] = at;
  rest.start[axis] += at;
  rest.length[axis] -= at;
  cut_apart(std::move(box), seed, 2 * number, boxes);
  cut_apart(std::move(rest), seed, 2 * number + 1, boxes);
}

TEST(Slices, BoxesThatAreCutApartShareNothingUntilOneGrows) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<Box> boxes;
    cut_apart(whole_of(Dims(1 + seed % 4, 40)), seed, 1, boxes);
    EXPECT_FALSE(find_overlap(boxes)) << seed;
    if (boxes.size() < 2) continue;
    const auto grown = static_cast<std::size_t>(draw(seed, 1u << 20, boxes.size()));
    Box& box = boxes[grown];
    const auto inner =
        std::find_if(box.start.begin(), box.start.end(), [](auto at) { return at > 0; });
    if (inner == box.start.end()) continue;  // it grows towards lower rows and columns
    --*inner;
    ++box.length[inner - box.start.begin()];
    const auto pair = find_overlap(boxes);
    ASSERT_TRUE(pair) << seed;
    EXPECT_LT(pair->first, pair->second);
    EXPECT_TRUE(pair->first == grown || pair->second == grown) << seed;
    EXPECT_TRUE(intersection(boxes[pair->first], boxes[pair->second])) << seed;
    ++found;
  }
  EXPECT_GT(found, 200);
}

TEST(Slices, BoxesWithoutElementsShareNone) {
  const std::vector<Box> boxes = {{{0, 0}, {4, 4}}, {{2, 2}, {0, 1}}, {{2, 2}, {0, 1}}};
  EXPECT_FALSE(find_overlap(boxes));
}

/// Boxes in groups: axis 20 + g parts group g from all later groups, axis g the boxes of group g.
/// All else is whole, so that no plane leaves clearly fewer on both sides.
std::vector<Box> inseparable(std::int64_t of_each) {
  constexpr std::int64_t kGroups = 20;
  std::vector<Box> boxes;
  for (std::int64_t group = 0; group < kGroups; ++group) {
    for (std::int64_t i = 0; i < of_each; ++i) {
      Box box = whole_of(Dims(2 * kGroups, of_each));
      box.start[group] = i;
      box.length[group] = 1;
      for (std::int64_t other = 0; other <= group; ++other) {
        box.start[kGroups + other] = other == group ? 0 : 1;
        box.length[kGroups + other] = other == group ? 1 : of_each - 1;
      }
      boxes.push_back(std::move(box));
    }
  }
  return boxes;
}

TEST(Slices, ThatNoPlaneSeparatesAreLimited) {
  EXPECT_FALSE(find_overlap(inseparable(200)));
  EXPECT_EQ(refusal<ValueError>([] { find_overlap(inseparable(210)); }),
            "4200 slices that no plane separates: at most 4096 can be told apart");
}

TEST(Slices, ScalarsAreOneElement) {
  EXPECT_FALSE(find_overlap(std::vector<Box>(1)));
  EXPECT_TRUE(find_overlap(std::vector<Box>(2)));
}

// Beside each other in pairs, these would take minutes.
TEST(Slices, ManySlicesAreComparedByHalves) {
  std::vector<Box> columns, both;
  for (std::int64_t i = 0; i < 100000; ++i) {
    columns.push_back({{0, i}, {100000, 1}});
    both.push_back(i % 2 == 0 ? Box{{0, i}, {100000, 2}} : Box{{100000 + i, 0}, {2, 100000}});
  }
  EXPECT_FALSE(find_overlap(columns));
  EXPECT_FALSE(find_overlap(both));
  columns.push_back({{99999, 99999}, {1, 1}});
  EXPECT_EQ(find_overlap(columns)->second, 100000u);
}

}  // namespace
}  // namespace embertable::formats
