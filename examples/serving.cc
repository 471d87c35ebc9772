#include <cstdio>
#include <filesystem>
#include <vector>

#include "embertable/embertable.h"

int main() {
  using namespace embertable;
  const auto run = std::filesystem::temp_directory_path() / "embertable-example-serving";
  std::filesystem::remove_all(run);
  const Nested<FeatureConfig> features = Nested<FeatureConfig>::map(
      {{"watched", FeatureConfig{.table = make_table({.vocabulary_size = 1000,
                                                      .dim = 8,
                                                      .initializer = Initializer::row_id(),
                                                      .name = "films"})}}});
  Embedding trained(features, Optimizer("adagrad", 0.1), make_strategy({.hosts = 2}));
  trained.build(32);
  trained.save(run);

  // Mapped, not copied: nobody changes these files. Each block is checked when a lookup first
  // touches it.
  ServingEmbedding serving = ServingEmbedding::open(run, {.tables = OpenTables::kMap});
  const std::vector<std::int64_t> ids = {3, 14, 15}, splits = {0, 2, 3};  // two samples
  const Batch batch{Nested<FeatureIds>::map({{"watched", FeatureIds(RaggedIds{splits, ids})}})};
  LookupOutput output;  // one for each thread; after the first lookup it allocates nothing
  serving.embedding_lookup(batch, output);
  const Activation& watched = output("watched");
  std::printf("%s %g %g\n", watched.shape.to_string().c_str(), watched.values[0],
              watched.values[8]);  // (2, 8) 8.5 15
  std::filesystem::remove_all(run);
}
