// One training step, alone: step_size.py compiles this program and the library so that gcov counts
// what runs, and reads which functions the step entered.
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "embertable/embertable.h"

extern "C" {
#include <gcov.h>  // which does not say for itself that it is C
}

namespace {

using namespace embertable;  // NOLINT: this is a program, not a header

constexpr std::int64_t kSamples = 4096, kIdsOfSample = 4, kRows = 100'000;
constexpr std::int32_t kDim = 32;

/// Returns `count` ids that are spread over a table.
std::vector<std::int64_t> spread_ids(std::int64_t count) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(i * 7919 % kRows);
  return ids;
}

FeatureConfig feature_of(const char* table) {
  return {.table = make_table({.vocabulary_size = kRows, .dim = kDim, .name = table})};
}

}  // namespace

int main() {
  Embedding engine(Nested<FeatureConfig>::list({feature_of("ragged"), feature_of("dense")}),
                   Optimizer("adagrad", 0.1), make_strategy({.executor = make_inline_executor()}));
  std::vector<std::int64_t> splits;
  for (std::int64_t sample = 0; sample <= kSamples; ++sample)
    splits.push_back(sample * kIdsOfSample);
  const std::vector<std::int64_t> ragged = spread_ids(kSamples * kIdsOfSample),
                                  dense = spread_ids(kSamples);
  const Batch batch{Nested<FeatureIds>::list(
      {FeatureIds(RaggedIds{splits, ragged}), FeatureIds(DenseIds{dense, {}})})};
  const std::vector<float> ones(kSamples * kDim, 1);
  const auto gradients = Nested<Gradient>::list({Gradient{ones, {}}, Gradient{ones, {}}});

  // The first steps also build the tables and grow the memory that later steps reuse.
  for (int step = 0; step < 4; ++step) {
    __gcov_reset();
    engine.enqueue(batch);
    engine.dequeue();
    engine.apply_gradients(gradients);
  }
  __gcov_dump();
  _exit(0);  // destructors are no part of a step
}
