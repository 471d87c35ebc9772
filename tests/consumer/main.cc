// A project outside the repository, on the installed package: see tests/install_test.py.

#include <cstdio>

#include "embertable/embertable.h"

int main() {
  using namespace embertable;
  const TablePtr words = make_table({.vocabulary_size = 4,
                                     .dim = 2,
                                     .initializer = Initializer::constant(0.5f),
                                     .combiner = Combiner::kSum,
                                     .name = "words"});
  Embedding engine(Nested<FeatureConfig>::map({{"text", FeatureConfig{.table = words}}}),
                   Optimizer("sgd", 0.1), make_strategy());

  const std::vector<std::int64_t> ids = {0, 1, 3}, splits = {0, 3};
  engine.enqueue(Batch{Nested<FeatureIds>::map({{"text", FeatureIds(RaggedIds{splits, ids})}})},
                 {.training = false});
  const Activations activations = engine.dequeue();
  try {
    engine.dequeue();  // an exception of the library is caught by its type
  } catch (const StateError& error) {
    std::printf("%g; %s\n", activations(0).values[0], error.what());
    return activations(0).values[0] == 1.5f ? 0 : 1;
  }
  return 1;
}
