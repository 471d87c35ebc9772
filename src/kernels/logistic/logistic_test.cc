#include "kernels/logistic/logistic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "testing/executor.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Values {
  Floats probability, loss;
};

Values run(const Floats& logits, SimdLevel level) {
  Values values{Floats(logits.size()), Floats(logits.size())};
  logistic({.logit = logits.data(),
            .count = static_cast<std::int64_t>(logits.size()),
            .probability = values.probability.data(),
            .loss = values.loss.data()},
           level);
  return values;
}

/// In units of the last place of binary32.
double ulps(float got, long double exact) {
  const int exponent = std::max(exact == 0 ? -126 : std::ilogb(exact), -126);
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, exponent - 23));
}

long double exact_probability(long double x) { return 1 / (1 + expl(-x)); }
long double exact_loss(long double x) { return (x > 0 ? x : 0) + log1pl(expl(-std::fabs(x))); }

Floats random_logits(std::size_t count) {
  std::mt19937_64 random(test_seed(7));
  std::normal_distribution<float> narrow(0, 1), wide(0, 40);
  Floats logits;
  for (std::size_t i = 0; i < count; ++i)
    logits.push_back(i % 3 == 0 ? wide(random) : narrow(random));
  return logits;
}

TEST(Logistic, IsWithinOneUlp) {
  const Floats logits = random_logits(100'003);
  const Values values = run(logits, SimdLevel::kScalar);
  double worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    worst = std::max(worst, ulps(values.probability[i], exact_probability(logits[i])));
    worst = std::max(worst, ulps(values.loss[i], exact_loss(logits[i])));
  }
  EXPECT_LE(worst, 1);
}

TEST(Logistic, HasTheSameBitsAtEveryLevel) {
  for (const std::size_t count : {0, 1, 15, 16, 17, 1000}) {
    const Floats logits = random_logits(count);
    const Values scalar = run(logits, SimdLevel::kScalar);
    for (const SimdLevel level : usable_levels()) {
      EXPECT_EQ(run(logits, level).probability, scalar.probability);
      EXPECT_EQ(run(logits, level).loss, scalar.loss);
    }
  }
}

TEST(Logistic, HasExactEnds) {
  for (const SimdLevel level : usable_levels()) {
    const Values values = run({0, -0.0f, kInfinity, -kInfinity, 1e6f, -1e6f, NAN}, level);
    EXPECT_EQ(Floats(values.probability.begin(), values.probability.end() - 1),
              (Floats{0.5f, 0.5f, 1, 0, 1, 0}));
    EXPECT_EQ(Floats(values.loss.begin() + 2, values.loss.end() - 1),
              (Floats{kInfinity, 0, 1e6f, 0}));
    EXPECT_EQ(values.loss[0], std::log(2.0f));
    EXPECT_TRUE(std::isnan(values.probability.back()));
    EXPECT_TRUE(std::isnan(values.loss.back()));
  }
}

TEST(Logistic, TheLossIsNotAlwaysWanted) {
  for (const SimdLevel level : usable_levels()) {
    Floats values = random_logits(37);
    const Floats wanted = run(values, level).probability;
    logistic({.logit = values.data(), .count = 37, .probability = values.data()}, level);
    EXPECT_EQ(values, wanted);
  }
}

}  // namespace
}  // namespace embertable
