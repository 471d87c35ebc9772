// Random engines of every kind against the slow reference: forwards, sums of gradients, rows and
// slots, each within the range that the roundings of binary32 allow.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/engine/property_twins.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_property;  // NOLINT: the vocabulary of this test

constexpr std::uint64_t kEngines = kSanitized ? 200 : 2000;

// form x way x combiner x weights x empty rows x replicas x hosts.
TEST(EngineProperty, EveryKindOfBatchAgreesWithTheSlowReference) {
  const std::uint64_t seed = test_seed();
  const std::size_t cells = slow::all_cells().size() * slow::kCombiners;
  Tally tally;
  std::vector<std::vector<int>> visits(slow::kTopologies.size(), std::vector<int>(cells));
  for (std::uint64_t i = 0; i < kEngines && !HasFailure(); ++i) {
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i));
    const Case of(mix_seeds(seed, i), i);
    Twins(of, mix_seeds(seed, ~i), tally).run();
    for (const std::size_t cell : of.visited) ++visits[of.topology][cell];
  }
  EXPECT_LE(tally.wide * 1000, tally.compared);
  if (kEngines < 2000 || HasFailure()) return;
  for (std::size_t t = 0; t < visits.size(); ++t) {
    for (std::size_t cell = 0; cell < cells; ++cell) {
      EXPECT_GE(visits[t][cell], 50) << slow::text(cell) << ", " << slow::kTopologies[t].replicas
                                     << " replicas, " << slow::kTopologies[t].hosts << " hosts";
    }
  }
}

}  // namespace
}  // namespace embertable
