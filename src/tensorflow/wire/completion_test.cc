// Configurations in their two forms, what they promise of activations, and their dynamic inputs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/golden_messages.h"
#include "testing/refusal.h"

namespace embertable::wire {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Configuration = TPUEmbeddingConfiguration;

/// Two tables of width 8.
Configuration two_tables() {
  Configuration two;
  two.table_descriptor = {{.name = "T0", .dimension = 8}, {.name = "T1", .dimension = 8}};
  two.num_tensor_cores = 1;
  return two;
}

Configuration counted(std::int32_t batch, std::int32_t first, std::int32_t second) {
  Configuration two = two_tables();
  two.batch_size_per_tensor_core = batch;
  two.table_descriptor[0].num_features = first;
  two.table_descriptor[1].num_features = second;
  return two;
}

Configuration described(std::vector<FeatureDescriptor> features) {
  Configuration two = two_tables();
  two.feature_descriptor = std::move(features);
  return two;
}

Configuration four_features() {
  return described({{.table_id = 0, .input_shape = {100, 5}},
                    {.table_id = 1, .input_shape = {200, 5, 20}},
                    {.table_id = 0, .input_shape = {50}},
                    {.table_id = 0, .input_shape = {100, 2, 3}}});
}

std::string refused(const Configuration& configuration) {
  return refusal<ValueError>([&] { complete(configuration); });
}

std::vector<std::int32_t> num_features(const Configuration& configuration) {
  std::vector<std::int32_t> all;
  for (const TableDescriptor& table : configuration.table_descriptor)
    all.push_back(table.num_features);
  return all;
}

TEST(ConfigCases, Case58_BatchSizeAndFeaturesFromDescriptors) {
  const Configuration whole = complete(four_features());
  EXPECT_EQ(whole.batch_size_per_tensor_core, 50);
  EXPECT_EQ(num_features(whole), (std::vector<std::int32_t>{23, 400}));
}

TEST(EngineCases, Case024_TheGreatestCommonDivisorCountsFeatures) {
  const auto of = [](std::vector<std::int32_t> a, std::vector<std::int32_t> b,
                     std::vector<std::int32_t> c) {
    return complete(described({{.table_id = 0, .input_shape = std::move(a)},
                               {.table_id = 0, .input_shape = std::move(b)},
                               {.table_id = 1, .input_shape = std::move(c)}}));
  };
  const Configuration mixed = of({1, 3}, {2, 4}, {2, 4});
  EXPECT_EQ(mixed.batch_size_per_tensor_core, 1);
  EXPECT_EQ(num_features(mixed), (std::vector<std::int32_t>{11, 8}));
  const Configuration even = of({4}, {2, 4}, {8});
  EXPECT_EQ(even.batch_size_per_tensor_core, 4);
  EXPECT_EQ(num_features(even), (std::vector<std::int32_t>{3, 2}));
}

TEST(ConfigCases, Case59_DescriptorsFromBatchSizeAndFeatures) {
  const Configuration whole = complete(counted(256, 3, 2));
  ASSERT_EQ(whole.feature_descriptor.size(), 2u);
  EXPECT_EQ(whole.feature_descriptor[0].input_shape, std::vector<std::int32_t>{768});
  EXPECT_EQ(whole.feature_descriptor[1].input_shape, std::vector<std::int32_t>{512});
  EXPECT_EQ(whole.feature_descriptor[1].table_id, 1);
}

TEST(ConfigCases, Case60_CountsThatAreMissing) {
  EXPECT_EQ(refused(counted(0, 3, 2)),
            "batch_size_per_tensor_core must be > 0 where there is no feature_descriptor, got 0");
  EXPECT_EQ(refused(counted(256, 3, 0)),
            "table 1 ('T1'): num_features must be > 0 where there is no feature_descriptor, got 0");
}

TEST(ConfigCases, Case61_BothFormsAtOnce) {
  Configuration both = four_features();
  both.batch_size_per_tensor_core = 256;
  EXPECT_THAT(refused(both), AllOf(HasSubstr("batch_size_per_tensor_core"), HasSubstr("256")));
  both = four_features();
  both.table_descriptor[1].num_features = 3;
  EXPECT_THAT(refused(both), AllOf(HasSubstr("'T1'"), HasSubstr("num_features"), HasSubstr("3")));
}

TEST(ConfigCases, Case62_DescriptorsThatAreWrong) {
  const FeatureDescriptor good = {.table_id = 0, .input_shape = {4}};
  const auto with = [&](const FeatureDescriptor& second) {
    return refused(described({good, second}));
  };
  EXPECT_EQ(with({.name = "f", .table_id = 2, .input_shape = {4}}),
            "feature_descriptor 1 ('f'): table_id must be in [0, 2), got 2");
  EXPECT_THAT(with({.table_id = -1, .input_shape = {4}}), HasSubstr("got -1"));
  EXPECT_EQ(with({.table_id = 1}),
            "feature_descriptor 1 (''): input_shape must have a dim, got none");
  EXPECT_EQ(with({.table_id = 1, .input_shape = {4, -5}}),
            "feature_descriptor 1 (''): every dim of input_shape must be > 0, got -5");
  EXPECT_EQ(with(good), "table 1 ('T1'): a feature must look it up, got none");
}

TEST(Completion, RefusesCountsBeyond32Bits) {
  EXPECT_THAT(refused(counted(1 << 30, 4, 1)), HasSubstr("must fit 32 bits, got 4294967296"));
  EXPECT_THAT(refused(described({{.table_id = 0, .input_shape = {1 << 20, 1 << 20}},
                                 {.table_id = 1, .input_shape = {1}}})),
              HasSubstr("the product of input_shape must fit 32 bits"));
  EXPECT_THAT(refused(described({{.table_id = 0, .input_shape = {2147483647}},
                                 {.table_id = 0, .input_shape = {2147483647}},
                                 {.table_id = 1, .input_shape = {1}}})),
              HasSubstr("num_features must fit 32 bits"));
}

std::vector<std::vector<std::int64_t>> shapes_of(const Configuration& configuration) {
  std::vector<std::vector<std::int64_t>> all;
  for (const Shape& shape : activation_shapes(configuration))
    all.emplace_back(shape.dims().begin(), shape.dims().end());
  return all;
}

TEST(ConfigCases, Case65_ActivationShapes) {
  Configuration two = described({{.table_id = 0, .input_shape = {4, 3}}});
  two.spmd_sharding = SpmdSharding{.enabled = true, .num_cores_per_replica = 2};
  EXPECT_EQ(activation_shapes(two), std::vector<Shape>{(Shape{8, 3, 8})});
  two.spmd_sharding->use_manual_partitioning = true;
  EXPECT_EQ(activation_shapes(two), std::vector<Shape>{(Shape{4, 3, 8})});
}

/// The configurations of the golden file's activation shapes, by its names for them.
std::map<std::string, Configuration> golden_activations() {
  std::map<std::string, Configuration> all;
  all["descriptors"] = four_features();
  Configuration& cores = all["descriptors, 2 cores"] = four_features();
  cores.spmd_sharding = SpmdSharding{.enabled = true, .num_cores_per_replica = 2};
  Configuration& manual = all["descriptors, 2 cores, manual"] = cores;
  manual.spmd_sharding->use_manual_partitioning = true;
  all["tables, batch 256"] = counted(256, 3, 2);
  all["tables, batch 256, 2 cores"] = counted(256, 3, 2);
  all["tables, batch 256, 2 cores"].num_tensor_cores = 2;
  all["tables, batch 0"] = counted(0, 3, 2);
  all["tables, no features"] = counted(256, 0, 2);
  return all;
}

TEST(Golden, ActivationShapes) {
  const auto known = golden_activations();
  std::size_t compared = 0;
  for (const auto& wanted : golden()["activation_shapes"]) {
    const auto found = known.find(wanted["activations"].get<std::string>());
    if (found == known.end()) continue;  // malformed ones, which are refused here
    ++compared;
    EXPECT_EQ(shapes_of(found->second),
              wanted["shapes"].get<std::vector<std::vector<std::int64_t>>>())
        << found->first;
  }
  EXPECT_EQ(compared, known.size());
}

TEST(Completion, ShapesOfWrongDescriptorsAreRefused) {
  EXPECT_THAT(refusal<ValueError>(
                  [] { activation_shapes(described({{.table_id = 2, .input_shape = {4}}})); }),
              HasSubstr("table_id must be in [0, 2), got 2"));
  EXPECT_THAT(refusal<ValueError>([] { activation_shapes(described({{.table_id = 0}})); }),
              HasSubstr("input_shape"));
  EXPECT_THAT(refusal<ValueError>(
                  [] { activation_shapes(described({{.table_id = 0, .input_shape = {-5}}})); }),
              HasSubstr("got -5"));
}

TEST(Completion, ShapesBeyondAllBoundsAreRefused) {
  Configuration wide = described({{.table_id = 0, .input_shape = std::vector<std::int32_t>(8, 1)}});
  EXPECT_THAT(refusal<ValueError>([&] { activation_shapes(wide); }), HasSubstr("rank <= 8, got 9"));
  Configuration large = counted(2147483647, 2147483647, 1);
  large.num_tensor_cores = 2147483647;
  EXPECT_THAT(refusal<ValueError>([&] { activation_shapes(large); }),
              AllOf(HasSubstr("'T0'"), HasSubstr("64 bits")));
  Configuration negative = counted(4, 1, 1);
  negative.table_descriptor[1].dimension = -8;
  EXPECT_THAT(refusal<ValueError>([&] { activation_shapes(negative); }),
              AllOf(HasSubstr("'T1'"), HasSubstr("got -8")));
}

/// One table for each tag.
Configuration tagged(const std::vector<std::int32_t>& tags) {
  Configuration all;
  for (const std::int32_t tag : tags) {
    OptimizationParameters parameters;
    parameters.learning_rate = LearningRate{.learning_rate = OptimizerDynamicInput{.tag = tag}};
    all.table_descriptor.push_back({.optimization_parameters = parameters});
  }
  return all;
}

TEST(ConfigCases, Case63_TagsLeaveNoGap) {
  EXPECT_EQ(refusal<ValueError>([] {
              num_dynamic_inputs(tagged({0, 2}));
            }),
            "the 2 tags of dynamic inputs must be 0 to 1: 1 must be among them, got 2");
  EXPECT_THAT(refusal<ValueError>([] { num_dynamic_inputs(tagged({1})); }),
              HasSubstr("0 must be among them"));
  EXPECT_EQ(num_dynamic_inputs(tagged({0, 0, 1})), 2);
  EXPECT_EQ(num_dynamic_inputs(tagged({})), 0);
}

TEST(ConfigCases, Case64_AnUnsetStepCounterCountsAsTagZero) {
  Configuration one = tagged({1});
  OptimizationParameters aware;
  aware.parameters = FrequencyAwareAdagradParameters{};
  one.table_descriptor.push_back({.optimization_parameters = aware});
  EXPECT_EQ(num_dynamic_inputs(one), 2);
  std::get<FrequencyAwareAdagradParameters>(aware.parameters).step_counter =
      OptimizerDynamicInput{.tag = 2};
  one.table_descriptor.push_back({.optimization_parameters = aware});
  EXPECT_EQ(num_dynamic_inputs(one), 3);
}

}  // namespace
}  // namespace embertable::wire
