#include "apps/jobs/data/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "testing/executor.h"

namespace embertable::jobs {
namespace {

constexpr int kDraws = 200000;

std::vector<double> shares(std::int64_t size, double exponent) {
  const Zipf zipf(size, exponent);
  const RandomRow random(test_seed(7), 0);
  std::vector<double> found(size);
  for (std::uint64_t i = 0; i < kDraws; ++i) found[zipf(random, i)] += 1.0 / kDraws;
  return found;
}

TEST(Zipf, DrawsNumbersByTheirPowers) {
  for (const double exponent : {0.0, 0.5, 1.0, 1.05, 2.5}) {
    for (const std::int64_t size : {1, 2, 20}) {
      double sum = 0;
      for (std::int64_t k = 1; k <= size; ++k) sum += std::pow(static_cast<double>(k), -exponent);
      const std::vector<double> found = shares(size, exponent);
      for (std::int64_t k = 1; k <= size; ++k) {
        const double share = std::pow(static_cast<double>(k), -exponent) / sum;
        const double deviation = std::sqrt(share * (1 - share) / kDraws);
        EXPECT_NEAR(found[k - 1], share, 5 * deviation + 1e-9)
            << exponent << " of " << size << ", " << k;
      }
    }
  }
}

TEST(Zipf, OfManyNumbersStaysInside) {
  const Zipf zipf(std::int64_t{1} << 40, 0.9);
  const RandomRow random(test_seed(7), 0);
  std::int64_t highest = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const std::int64_t drawn = zipf(random, i);
    ASSERT_GE(drawn, 0);
    ASSERT_LT(drawn, std::int64_t{1} << 40);
    highest = std::max(highest, drawn);
  }
  EXPECT_GT(highest, std::int64_t{1} << 36);
}

}  // namespace
}  // namespace embertable::jobs
