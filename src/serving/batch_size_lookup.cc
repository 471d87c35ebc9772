// Looks up for the batch-size revision. Source: TF 2.4 tpu_embedding_v2.py, cpu_embedding_lookup.
#include "base/enumerators.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "embertable/serving.h"

namespace embertable {

LookupOutput serving_embedding_lookup(const Batch& inputs,
                                      const std::map<TablePtr, TableView>& tables,
                                      const Nested<FeatureConfig>& feature_config,
                                      ApiRevision revision) {
  check_enumerator(revision, "lookup: revision");
  if (revision == ApiRevision::kOutputShapes)
    return serving_embedding_lookup(inputs, tables, feature_config);
  assert_same_structure(feature_config.structure(), inputs.features.structure(), "inputs");
  Nested<FeatureConfig> combined = feature_config;
  for (std::int64_t i = 0; i < combined.size(); ++i) {
    if (combined[i].max_sequence_length > 0) {
      throw ValueError("feature '" + combined.path(i) +
                       "': max_sequence_length must be 0 in the batch-size revision, got " +
                       std::to_string(combined[i].max_sequence_length));
    }
    combined[i].output_shape = {};
  }
  return serving_embedding_lookup(inputs, tables, combined);
}

}  // namespace embertable
