// Where tables would lie on SparseCores.

#include "embertable/tensorflow/sparse_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "embertable/tensorflow/custom_combiner.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TableConfig table(std::string name, std::int64_t rows, std::int32_t dim) {
  return {.vocabulary_size = rows, .dim = dim, .name = std::move(name)};
}

Nested<FeatureConfig> features(const std::vector<TableConfig>& tables) {
  std::vector<FeatureConfig> leaves;
  for (const TableConfig& config : tables) leaves.push_back({.table = make_table(config)});
  const std::vector<Structure> forms(tables.size());
  return Nested<FeatureConfig>(Structure::list(forms), leaves);
}

std::vector<wire::SparseCoreTableLayout> layouts(const std::vector<TableConfig>& tables,
                                                 const SparseCoreEmbeddingConfig& config = {}) {
  return sparse_core_layouts(features(tables), Optimizer("sgd", 0.1),
                             {.num_partitions = 2, .cores_per_partition = 4}, config)
      .tables;
}

using Dims = std::vector<std::int64_t>;

TEST(EngineCases, Case141_TablesOfOneKindAreStacked) {
  const auto stack = layouts({table("user", 100, 127), table("video", 100, 127)});
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack[0].unsharded_shape, (Dims{100, 127}));
  EXPECT_EQ(stack[0].unsharded_padded_shape, (Dims{128, 128}));
  EXPECT_EQ(stack[0].stacked_table_name, "user_video");
  EXPECT_EQ(stack[0].sparse_core_shard_row_offset, 0);
  EXPECT_EQ(stack[0].sparse_core_shard_rotation, 0);
  const wire::SparseCoreTableLayout& video = stack[1];
  EXPECT_EQ(video.stacked_table_name, "user_video");
  EXPECT_EQ(video.num_sparse_cores, 8);
  EXPECT_EQ(video.num_partitions, 2);
  EXPECT_EQ(video.sparse_core_shard_row_offset, 16);
  EXPECT_EQ(video.sparse_core_shard_rotation, 4);
  EXPECT_EQ(video.total_rows_per_sparse_core_shard, 32);
  const std::int64_t row = 9;
  EXPECT_EQ((row + video.sparse_core_shard_rotation) % video.num_sparse_cores, 5);
  EXPECT_EQ(row / video.num_sparse_cores + video.sparse_core_shard_row_offset, 17);
}

TEST(SparseCoreLayouts, AStackGoesRoundThePartitions) {
  const auto stack = layouts({table("a", 64, 8), table("b", 65, 5), table("c", 1, 8)});
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[1].unsharded_padded_shape, (Dims{128, 8}));
  EXPECT_EQ(stack[2].sparse_core_shard_row_offset, 24);
  EXPECT_EQ(stack[2].sparse_core_shard_rotation, 0);
  EXPECT_EQ(stack[2].stacked_table_name, "a_b_c");
  EXPECT_EQ(stack[0].total_rows_per_sparse_core_shard, 32);
}

TEST(SparseCoreLayouts, WidthOptimizerAndQuantizationTellStacksApart) {
  TableConfig own = table("own", 64, 8), coarse = table("coarse", 64, 8);
  own.optimizer = Optimizer("sgd", 0.2);
  coarse.quantization_config = QuantizationConfig{2, -1, 1};
  TableConfig same = table("same", 64, 7);
  same.optimizer = Optimizer("sgd", 0.1);  // equal to the global one
  const auto all = layouts({same, table("wide", 64, 9), own, coarse, table("a", 64, 8)});
  std::vector<std::string> stacks;
  for (const auto& layout : all) stacks.push_back(layout.stacked_table_name);
  EXPECT_EQ(stacks, (std::vector<std::string>{"a_same", "a_same", "coarse", "own", "wide"}));
}

TEST(SparseCoreLayouts, StackingCanBeTurnedOff) {
  const auto all =
      layouts({table("a", 64, 8), table("b", 64, 8)}, {.disable_table_stacking = true});
  EXPECT_EQ(all[1].stacked_table_name, "b");
  EXPECT_EQ(all[1].sparse_core_shard_row_offset, 0);
}

TEST(ConfigCases, Case48_SparseCoresHaveNoWeightDecay) {
  for (const OptimizerOptions& options :
       {OptimizerOptions{.weight_decay_factor = 0.1},
        OptimizerOptions{.multiply_weight_decay_factor_by_learning_rate = true}}) {
    TableConfig decaying = table("ads", 64, 8);
    decaying.optimizer = Optimizer("adagrad", 0.1, {}, options);
    EXPECT_THAT(refusal<NotImplemented>([&] {
                  layouts({table("a", 8, 8), decaying});
                }),
                AllOf(HasSubstr("'ads'"), HasSubstr("weight_decay_factor"),
                      HasSubstr("multiply_weight_decay_factor_by_learning_rate")));
  }
}

TEST(SparseCoreLayouts, RefuseATopologyWithoutCoresAndSizesBeyondAll) {
  const auto on = [](std::int32_t partitions, std::int32_t cores) {
    return refusal<ValueError>([&] {
      sparse_core_layouts(features({table("a", 8, 8)}), {}, {partitions, cores});
    });
  };
  EXPECT_THAT(on(0, 4), HasSubstr("got 0 and 4"));
  EXPECT_THAT(on(1 << 20, 1 << 20), HasSubstr("fit 32 bits"));
  EXPECT_EQ(on(1, 1), "");
}

TEST(SparseCoreEmbeddingConfig, HasTheOriginalsDefaults) {
  const SparseCoreEmbeddingConfig config;
  EXPECT_FALSE(config.disable_table_stacking);
  EXPECT_EQ(config.max_ids_per_chip_per_sample, 64);
  EXPECT_FALSE(config.max_ids_per_table || config.max_unique_ids_per_table);
  EXPECT_FALSE(config.allow_id_dropping || config.enable_fast_table_initialization);
  EXPECT_TRUE(config.initialize_tables_on_host);
  EXPECT_EQ(config, SparseCoreEmbeddingConfig());
}

CustomCombiner combiner(std::int32_t num_weights) {
  using Computation = CustomCombiner::Computation;
  return {.combiner_computation = std::make_shared<const Computation>(
              [](auto, auto, auto, std::span<float> activation) { activation[0] = 1; }),
          .max_valency = 8,
          .num_weights = num_weights};
}

TEST(ConfigCases, Case19_WeightsOfACustomCombinerNeedAnInitializer) {
  CustomCombiner weighted = combiner(16);
  EXPECT_THAT(refusal<ValueError>([&] { validate(weighted); }),
              AllOf(HasSubstr("num_weights"), HasSubstr("initializer"), HasSubstr("16")));
  weighted.initializer = Initializer::constant(1);
  validate(weighted);
  EXPECT_EQ(weighted.slot_names(), std::vector<std::string>{"custom_combiner_variables"});
  const CustomCombiner plain = combiner(0);
  validate(plain);
  EXPECT_TRUE(plain.slot_names().empty());
  EXPECT_THAT(plain.name(), testing::StartsWith("custom_combiner_"));
  EXPECT_EQ(plain.name(), CustomCombiner(plain).name());
  EXPECT_NE(plain.name(), weighted.name());
  EXPECT_EQ(plain.combiner_weights_learning_rate, 0.01);
}

TEST(CustomCombiner, IsCheckedWithItsTableAndPrinted) {
  TableConfig own = table("ads", 8, 8);
  own.custom_combiner = std::make_shared<const CustomCombiner>(CustomCombiner{});
  EXPECT_THAT(refusal<ValueError>([&] { make_table(own); }), HasSubstr("combiner_computation"));
  own.custom_combiner = std::make_shared<const CustomCombiner>(combiner(-1));
  EXPECT_THAT(refusal<ValueError>([&] { make_table(own); }), HasSubstr("got -1"));
  own.custom_combiner = std::make_shared<const CustomCombiner>(combiner(0));
  EXPECT_THAT(to_string(*make_table(own)), HasSubstr("combiner='custom_combiner_"));
  EXPECT_THAT(refusal<NotImplemented>([&] { layouts({own}); }),
              AllOf(HasSubstr("'ads'"), HasSubstr("custom_combiner")));
}

}  // namespace
}  // namespace embertable
