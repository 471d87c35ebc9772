// Whole engines at every SIMD level: the same digests, and the same bits of every activation.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/level.h"
#include "testing/engine/scene.h"
#include "testing/executor.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

/// Forces a level on the engines that are constructed meanwhile.
class ForcedLevel {
 public:
  explicit ForcedLevel(SimdLevel level) {
    const char* const set = std::getenv(kVariable);
    if (set != nullptr) before_ = set;
    setenv(kVariable, std::string(to_string(level)).c_str(), 1);
  }
  ~ForcedLevel() { before_.empty() ? unsetenv(kVariable) : setenv(kVariable, before_.c_str(), 1); }
  ForcedLevel(const ForcedLevel&) = delete;
  ForcedLevel& operator=(const ForcedLevel&) = delete;

 private:
  static constexpr const char* kVariable = "EMBERTABLE_SIMD";
  std::string before_;
};

/// What an engine gives: every activation's bits, and the digest after each step.
struct Outcome {
  std::vector<std::uint32_t> bits;
  std::vector<std::string> digests;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const Scene& scene, SimdLevel level, std::int32_t hosts, bool pipelined) {
  const ForcedLevel forced(level);
  EmbeddingOptions options;
  options.tuning = {.bucket_bytes = 256, .inline_floats = 0};
  options.pipeline_execution_with_tensor_core = pipelined;
  Embedding engine =
      scene.engine({.hosts = hosts, .executor = make_inline_executor()}, std::move(options));
  Outcome outcome;
  for (int step = 0; step < static_cast<int>(scene.batches.size()); ++step) {
    engine.enqueue(scene.batches[step]);
    const Activations activations = engine.dequeue();
    for (std::int32_t r = 0; r < activations.replicas(); ++r)
      for (std::int64_t f = 0; f < activations.features(); ++f)
        for (const float x : activations(f, r).values)
          outcome.bits.push_back(std::bit_cast<std::uint32_t>(x));
    const Gradients gradients(activations,
                              [&](const Activation& activation, std::int64_t f, std::int32_t r) {
                                return scene.gradient(step, r, f, activation.values, 0.125f);
                              });
    engine.apply_gradients(gradients.all());
    outcome.digests.push_back(engine.digest());
  }
  return outcome;
}

class EngineLevels : public testing::TestWithParam<SimdLevel> {};

TEST_P(EngineLevels, GiveTheBitsOfTheScalarOne) {
  const std::vector<SimdLevel> usable = usable_levels();
  if (std::find(usable.begin(), usable.end(), GetParam()) == usable.end())
    GTEST_SKIP() << "needs a CPU with " << to_string(GetParam());
  constexpr std::uint64_t kEngines = kSanitized ? 40 : 400;
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < kEngines && !HasFailure(); ++i) {
    Dice dice(mix_seeds(seed, 5000 + i));
    const Scene scene(mix_seeds(seed, i), {.rows = dice.pick({20, 400}),
                                           .outputs = dice.pick({12, 60}),
                                           .replicas = 2,
                                           .steps = 3,
                                           .any_rule = true,
                                           .bfloat16 = i % 4 == 3 ? 60 : 0});
    const auto hosts = static_cast<std::int32_t>(dice.between(1, 2));
    const bool pipelined = dice.chance(30);
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i));
    EXPECT_TRUE(outcome_of(scene, GetParam(), hosts, pipelined) ==
                outcome_of(scene, SimdLevel::kScalar, hosts, pipelined));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineLevels, testing::Values(SimdLevel::kAvx2, SimdLevel::kAvx512),
                         [](const auto& level) { return std::string(to_string(level.param)); });

}  // namespace
}  // namespace embertable
