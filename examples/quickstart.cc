#include <cstdio>
#include <vector>

#include "embertable/embertable.h"

int main() {
  using namespace embertable;
  const TablePtr films =
      make_table({.vocabulary_size = 1000, .dim = 8, .combiner = Combiner::kMean, .name = "films"});
  Embedding engine(Nested<FeatureConfig>::map({{"watched", FeatureConfig{.table = films}}}),
                   Optimizer("adagrad", 0.1), make_strategy());

  const std::vector<std::int64_t> ids = {3, 14, 15, 9, 26}, splits = {0, 2, 5};  // two samples
  const Batch batch{
      Nested<FeatureIds>::map({{"watched", FeatureIds(RaggedIds::from_row_splits(ids, splits))}})};
  for (int step = 0; step < 100; ++step) {
    engine.enqueue(batch);
    const Activations activations = engine.dequeue();
    std::vector<float> gradient;  // gradient of the loss sum((activation - 1)^2) / 2
    for (const float x : activations("watched").values) gradient.push_back(x - 1);
    engine.apply_gradients(Nested<Gradient>::map({{"watched", Gradient{.values = gradient}}}));
  }
  engine.enqueue(batch, {.training = false});
  std::printf("%.3f\n", engine.dequeue()("watched").values[0]);  // close to 1
}
