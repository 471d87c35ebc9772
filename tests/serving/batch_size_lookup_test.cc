// The lookup by the rules of the batch-size revision.
#include <gmock/gmock.h>

#include "testing/serving/lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using ::testing::HasSubstr;

/// Looks up in the fixture's tables.
LookupOutput look_up_by_batch_size(const Nested<FeatureConfig>& features, const Batch& inputs) {
  Embedding plain(features, {}, nullptr);
  const std::map<TablePtr, TableView> tables = plain.embedding_tables();
  return serving_embedding_lookup(inputs, tables, features, ApiRevision::kBatchSize);
}

TEST(ServingCase, 113_TheBatchSizeRevisionWantsAllFeaturesInTheirContainers) {
  const AllSamples all;
  const Nested<FeatureConfig> three = features();
  const FeatureIds watched = all.watched.sparse(), favorited = all.favorited.sparse(),
                   friends = all.friends.sparse();
  const Batch two{Nested<FeatureIds>::tuple({watched, favorited}), {}};
  const Batch list{Nested<FeatureIds>::list({watched, favorited, friends}), {}};
  EXPECT_THAT(refusal<ValueError>([&] { look_up_by_batch_size(three, two); }), HasSubstr("inputs"));
  EXPECT_THAT(refusal<TypeError>([&] { look_up_by_batch_size(three, list); }), HasSubstr("inputs"));
  ServingEmbedding other(three);
  EXPECT_EQ(values_of(look_up_by_batch_size(three, all.sparse()), 2),
            values_of(other(all.sparse()), 2));
}

TEST(ServingCase, 114_TheBatchSizeRevisionHasNoSequences) {
  const AllSamples all;
  for (const Batch& inputs : {all.sparse(), all.ragged()}) {
    EXPECT_THAT(refusal<ValueError>([&] { look_up_by_batch_size(features_with(0, 0, 2), inputs); }),
                HasSubstr("feature '2': max_sequence_length must be 0"));
  }
}

TEST(ServingCase, 114_TheBatchSizeRevisionIgnoresAnOutputShape) {
  const Rows rows({{3}, {0, 1, 2}, {3}, {0}});
  const LookupOutput output =
      look_up_by_batch_size(one_feature(Combiner::kMean, 0, Shape{2, 2}), batch_of(rows.ragged()));
  EXPECT_EQ(output(0).shape, (Shape{4, 2}));
  EXPECT_EQ(values_of(output), (F{6, 7, 2, 3, 6, 7, 0, 1}));
}

}  // namespace
}  // namespace embertable
