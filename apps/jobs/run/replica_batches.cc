#include "apps/jobs/run/replica_batches.h"

#include <algorithm>
#include <utility>

namespace embertable::jobs {
namespace {

template <class T>
std::span<const T> part_of(const std::vector<T>& values, std::int64_t begin, std::int64_t end) {
  return std::span(values).subspan(begin, end - begin);
}

}  // namespace

ReplicaBatches::ReplicaBatches(const Structure& structure,
                               const std::vector<ModelFeature>& features,
                               std::vector<std::int64_t> leaf, std::int64_t batch,
                               std::int32_t replicas)
    : per_replica_(batch / replicas),
      features_(features),
      leaf_(std::move(leaf)),
      ids_(features.size()),
      splits_(features.size()) {
  for (std::size_t f = 0; f < features_.size(); ++f) {
    if (features_[f].lists) splits_[f].resize(batch * features_[f].width + replicas);
  }
  for (std::int32_t r = 0; r < replicas; ++r) {
    Batch& batch_of_replica = batches_.emplace_back(
        Batch{.features = Nested<FeatureIds>(structure, std::vector<FeatureIds>(features.size()))});
    batch_of_replica.weights.emplace(structure, std::vector<FeatureWeights>(features.size()));
  }
}

std::span<const Batch> ReplicaBatches::cut(std::int64_t samples) {
  for (std::size_t f = 0; f < features_.size(); ++f) {
    if (features_[f].lists) {
      cut_lists(f, samples);
      continue;
    }
    const std::int64_t width = features_[f].width;
    for (std::size_t r = 0; r < batches_.size(); ++r) {
      const std::int64_t first = std::min(samples, static_cast<std::int64_t>(r) * per_replica_);
      const std::int64_t last = std::min(samples, first + per_replica_);
      batches_[r].features[leaf_[f]] =
          DenseIds{.values = part_of(ids_[f].ids, first * width, last * width)};
    }
  }
  return batches_;
}

void ReplicaBatches::cut_lists(std::size_t feature, std::int64_t samples) {
  const StepIds& all = ids_[feature];
  const std::int64_t width = features_[feature].width;
  std::int64_t* to = splits_[feature].data();
  for (std::size_t r = 0; r < batches_.size(); ++r) {
    const std::int64_t first = std::min(samples, static_cast<std::int64_t>(r) * per_replica_);
    const std::int64_t last = std::min(samples, first + per_replica_);
    const std::int64_t rows = (last - first) * width;
    const std::int64_t* from = all.splits.data() + first * width;
    for (std::int64_t i = 0; i <= rows; ++i) to[i] = from[i] - from[0];
    batches_[r].features[leaf_[feature]] = RaggedIds{
        .row_splits = std::span<const std::int64_t>(to, static_cast<std::size_t>(rows) + 1),
        .values = part_of(all.ids, from[0], from[rows])};
    (*batches_[r].weights)[leaf_[feature]] =
        all.weights.empty()
            ? FeatureWeights()
            : FeatureWeights(RaggedWeights{.values = part_of(all.weights, from[0], from[rows])});
    to += rows + 1;
  }
}

}  // namespace embertable::jobs
