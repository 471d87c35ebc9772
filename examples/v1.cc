// A training step of the v1 API: two cores, three features by name, a rate that depends on the
// step.
#include "embertable/tensorflow/v1.h"

#include <cstdio>
#include <memory>
#include <vector>

#include "embertable/embertable.h"
#include "embertable/tensorflow/interleave.h"

namespace v1 = embertable::v1;

int main() {
  v1::TableConfig video = {.vocabulary_size = 8, .dimension = 4};
  v1::TableConfig user = {.vocabulary_size = 16, .dimension = 2};
  user.learning_rate_fn = std::make_shared<const v1::LearningRateFunction>(
      [](std::int64_t step) { return 0.1 / static_cast<double>(1 + step); });

  v1::Options options;
  options.partition_strategy = "mod";
  options.device_config.num_cores = 2;
  v1::TPUEmbedding embedding(
      {{"video", video}, {"user", user}},
      {{"watched", {"video"}}, {"liked", {"video", 3}}, {"friends", {"user"}}}, 4,
      v1::Mode::kTraining, v1::AdagradParameters{.learning_rate = 0.1}, options);

  // Two samples for each core. `liked` is a sequence of three: [2, 3, 4] on each core.
  const std::vector<std::int64_t> watched = {0, 1}, liked = {3, 5, 7}, friends = {2, 3, 4};
  const std::vector<std::int64_t> liked_at = {0, 0, 0, 1, 1, 0}, friends_at = {0, 0, 0, 1, 1, 0};
  const v1::TPUEmbedding::FeatureData core = {{"watched", {watched}},  // one id for each sample
                                              {"liked", {liked, liked_at}},
                                              {"friends", {friends, friends_at}}};

  for (std::int64_t step = 0; step < 3; ++step) {
    embedding.enqueue(std::vector(2, core));
    const embertable::Activations activations = embedding.get_activations();

    // A model would give gradients; here each is its activation, so that rows shrink.
    std::vector<v1::TPUEmbedding::FeatureGradients> gradients(2);
    for (std::int32_t of_core = 0; of_core < 2; ++of_core) {
      for (std::int64_t f = 0; f < activations.features(); ++f) {
        const embertable::Activation activation = activations(f, of_core);
        gradients[of_core][embedding.layout().features()[f].name] = {activation.values,
                                                                     activation.shape};
      }
    }
    embedding.send_gradients(gradients, step);
  }

  // The original's operations have one tensor for each table, [batch * num_features, dim].
  embedding.enqueue(std::vector(2, core), v1::Mode::kInference);
  const auto tables = embertable::interleave(embedding.layout(), embedding.get_activations(), 0);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    std::printf("%s: %s, first number %.4f\n", embedding.layout().tables()[t].name.c_str(),
                embedding.layout().table_shape(static_cast<std::int64_t>(t)).to_string().c_str(),
                static_cast<double>(tables[t][0]));
  }
}
