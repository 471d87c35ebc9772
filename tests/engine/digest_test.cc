// The digest of the fixture after three steps: one for C++ and Python, and the same as ever.
#include <gtest/gtest.h>

#include <fstream>

#include "testing/engine/fixture.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

/// What python/tests/test_digest.py does.
std::string trained_digest(std::int32_t hosts) {
  TableConfig videos = *video(), users = *user();
  videos.initializer = Initializer::uniform(-1, 1, 7);
  users.initializer = {};
  Embedding engine =
      engine_with(accelerator(2, hosts), features(make_table(videos), make_table(users)),
                  Optimizer("adagrad", 0.1), {.seed = 5});
  const auto data = owned(2);
  for (int step = 0; step < 3; ++step) {
    engine.enqueue(ragged_batches(data));
    const Activations activations = engine.dequeue();
    std::vector<Nested<Gradient>> gradients;
    for (std::int32_t r = 0; r < 2; ++r) {
      std::vector<Gradient> leaves;
      for (std::int64_t i = 0; i < activations.features(); ++i)
        leaves.push_back({activations(i, r).values, activations(i, r).shape});
      gradients.emplace_back(activations.structure(), std::move(leaves));
    }
    engine.apply_gradients(gradients);
  }
  return engine.digest();
}

TEST(FixtureDigest, IsTheSameOnAnyNumberOfHosts) {
  std::ifstream file(source_path("tests/engine/fixture_digest.txt"));
  std::string expected;
  file >> expected;
  EXPECT_EQ(trained_digest(1), expected);
  EXPECT_EQ(trained_digest(2), expected);
}

}  // namespace
}  // namespace embertable
