#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/engine/batches.h"
#include "testing/temporary_directory.h"

namespace embertable::engine_fixture {

/// The four samples of the cases at once.
struct AllSamples {
  Rows watched = Rows(Data().watched), favorited = Rows(Data().favorited),
       friends = Rows(Data().friends);

  Batch sparse() const { return batch_of(watched.sparse(), favorited.sparse(), friends.sparse()); }
  Batch ragged() const { return batch_of(watched.ragged(), favorited.ragged(), friends.ragged()); }
};

inline F values_of(const LookupOutput& output, std::int64_t leaf = 0) {
  return {output(leaf).values.begin(), output(leaf).values.end()};
}

/// The only feature's activation.
inline F looked_up(const Nested<FeatureConfig>& features, const Batch& batch) {
  ServingEmbedding serving(features);
  return values_of(serving.embedding_lookup(batch));
}
inline Shape looked_up_shape(const Nested<FeatureConfig>& features, const Batch& batch) {
  ServingEmbedding serving(features);
  return serving.embedding_lookup(batch)(0).shape;
}

/// What the lookup throws, as text; "" if it does not throw an Error.
template <class Error>
std::string lookup_refusal(const Nested<FeatureConfig>& features, const Batch& batch) {
  ServingEmbedding serving(features);
  return refusal<Error>([&] { serving.embedding_lookup(batch); });
}

/// The same table and feature without validation.
inline Nested<FeatureConfig> unvalidated(Combiner combiner) {
  FeatureConfig config = one_feature(combiner)[0];
  config.validate_weights_and_indices = false;
  return Nested<FeatureConfig>(config);
}

}  // namespace embertable::engine_fixture
