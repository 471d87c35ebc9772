#include "bench/serving_inputs.h"

#include <span>
#include <string>

#include "bench/random.h"

namespace embertable::bench {

const char* to_string(ServingForm form) {
  switch (form) {
    case ServingForm::kDense:
      return "dense";
    case ServingForm::kSparseSafe:
      return "sparse, safe";
    case ServingForm::kSparseFast:
      return "sparse, fast";
    case ServingForm::kRagged:
      return "ragged";
  }
  return "";
}

Nested<FeatureConfig> serving_features(ServingForm form, std::int64_t rows, std::int64_t tables,
                                       std::int32_t dim) {
  std::vector<FeatureConfig> features;
  for (std::int64_t t = 0; t < tables; ++t) {
    TableConfig table;
    table.vocabulary_size = rows;
    table.dim = dim;
    table.name = "t" + std::to_string(t);
    features.emplace_back().table = make_table(std::move(table));
    features.back().validate_weights_and_indices = form != ServingForm::kSparseFast;
  }
  Structure structure = Structure::tuple(std::vector<Structure>(features.size()));
  return {std::move(structure), std::move(features)};
}

ServingInputs::ServingInputs(ServingForm form, const Structure& structure, std::int64_t rows,
                             std::int64_t samples, std::int64_t calls)
    : features_(structure.num_leaves()), samples_(samples) {
  Random random(1);
  for (std::int64_t i = 0; i < calls * features_ * samples; ++i)
    ids_.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows))));
  for (std::int64_t s = 0; s < samples; ++s) indices_.insert(indices_.end(), {s, 0});
  for (std::int64_t s = 0; s <= samples; ++s) splits_.push_back(s);
  for (std::int64_t call = 0; call < calls; ++call) {
    std::vector<FeatureIds> leaves;
    for (std::int64_t f = 0; f < features_; ++f) {
      const std::span<const std::int64_t> own(ids_.data() + (call * features_ + f) * samples,
                                              samples);
      if (form == ServingForm::kDense)
        leaves.push_back(DenseIds{own, {}});
      else if (form == ServingForm::kRagged)
        leaves.push_back(RaggedIds{splits_, own});
      else
        leaves.push_back(SparseIds{indices_, own, {samples, 1}});
    }
    batches_.push_back({Nested<FeatureIds>(structure, std::move(leaves)), {}});
  }
}

}  // namespace embertable::bench
