#include "embertable/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <type_traits>

#include "config/table_list.h"
#include "embertable/errors.h"
#include "testing/flush_to_zero.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

template <class Config>
std::string config_refusal(const Config& config) {
  return refusal<ValueError>([&] { validate(config); });
}

TablePtr small_table() { return make_table({.vocabulary_size = 2, .dim = 4}); }

// A size or length that is no integer, a combiner or table of another type: the compiler refuses
// those (cases 1, 2, 5, 11 and 12).

TEST(ConfigCases, Case01_VocabularySizeBelowOneIsRefused) {
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 0, .dim = 4}),
            "table: vocabulary_size must be >= 1, got 0");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = -1, .dim = 4}),
            "table: vocabulary_size must be >= 1, got -1");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 1, .dim = 4}), "");
}

TEST(ConfigCases, Case02_DimOutsideItsRangeIsRefused) {
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = 0}),
            "table: dim must be 1..4096, got 0");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = -4}),
            "table: dim must be 1..4096, got -4");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 9, .dim = 4097, .name = "ads"}),
            "table 'ads': dim must be 1..4096, got 4097");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = 1}), "");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = 4096}), "");
}

TEST(RowTypes, AreNamedInMessagesAsTheyAreGiven) {
  EXPECT_EQ(parse_row_type("int8"), RowType::kInt8);
  EXPECT_EQ(parse_trainable_row_type("bfloat16"), RowType::kBfloat16);
  EXPECT_FALSE(is_trainable(RowType::kInt8));
  EXPECT_EQ(refusal<ValueError>([] { parse_row_type("half"); }),
            "row_type must be 'float32', 'bfloat16' or 'int8', got 'half'");
  EXPECT_EQ(refusal<ValueError>([] { parse_trainable_row_type("int8"); }),
            "row_type must be 'float32' or 'bfloat16', got 'int8'");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = 4, .row_type = RowType::kInt8}),
            "table: row_type must be 'float32' or 'bfloat16', got 'int8'");
}

TEST(ConfigCases, Case03_OfTwoBadFieldsTheFirstIsReported) {
  EXPECT_EQ(config_refusal(
                TableConfig{.vocabulary_size = 0, .dim = 0, .combiner = static_cast<Combiner>(3)}),
            "table: vocabulary_size must be >= 1, got 0");
}

TEST(ConfigCases, Case04_AnInitializerOfAnotherSizeIsRefused) {
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2,
                                       .dim = 4,
                                       .initializer = Initializer::values({1, 2}),
                                       .name = "ads"}),
            "table 'ads': initializer must have vocabulary_size * dim values, 2 * 4, got 2");
}

TEST(ConfigCases, Case05_CombinersAreMeanSumAndSqrtn) {
  EXPECT_EQ(TableConfig().combiner, Combiner::kMean);
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    EXPECT_EQ(parse_combiner(to_string(combiner)), combiner);
  }
  EXPECT_EQ(to_string(Combiner::kSqrtN), "sqrtn");
  try {
    parse_combiner("max");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_EQ(std::string(error.what()), "combiner must be 'mean', 'sum' or 'sqrtn', got 'max'");
  }
  EXPECT_EQ(config_refusal(
                TableConfig{.vocabulary_size = 2, .dim = 4, .combiner = static_cast<Combiner>(3)}),
            "table: combiner must be mean, sum or sqrtn, got 3");
}

template <class T>
concept HasDtype = requires(T table) {
  table.dtype;
};

TEST(ConfigCases, Case06_ATableHoldsFloatsWithoutSayingSo) {
  static_assert(!HasDtype<TableConfig>);
  static_assert(std::is_same_v<Initializer::Function,
                               std::function<void(const RowRange&, std::span<float>)>>);
}

TEST(ConfigCases, Case07_ATableNeedsNoName) {
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = 4}), "");
  EXPECT_EQ(config_refusal(TableConfig{.vocabulary_size = 2, .dim = 4, .name = ""}), "");
}

const char* const kTableText =
    "TableConfig(vocabulary_size=2, dim=4, initializer=None, optimizer=None, combiner='sum', "
    "name='table', "
    "quantization_config=None)";

TEST(ConfigCases, Case09_ATablePrintsItsFieldsInOrder) {
  TableConfig table{.vocabulary_size = 2, .dim = 4, .combiner = Combiner::kSum, .name = "table"};
  EXPECT_EQ(to_string(table), kTableText);
  table.initializer = Initializer::truncated_normal(0, 0.5f);
  EXPECT_EQ(to_string(table), kTableText);
}

TEST(TableConfig, PrintsWhatIsNotTheDefault) {
  const TableConfig table{.vocabulary_size = 2,
                          .dim = 4,
                          .initializer = Initializer::zeros(),
                          .optimizer = Optimizer("sgd", 0.5)};
  EXPECT_EQ(to_string(table),
            "TableConfig(vocabulary_size=2, dim=4, initializer=constant(0), optimizer=" +
                table.optimizer->to_string() +
                ", combiner='mean', name=None, quantization_config=None)");
}

TEST(ConfigCases, Case15_AQuantizationHasTwoBucketsAndAWidth) {
  const auto refused = [](QuantizationConfig quantization) {
    return config_refusal(
        TableConfig{.vocabulary_size = 2, .dim = 4, .quantization_config = quantization});
  };
  EXPECT_EQ(refused({0, -1, 1}), "quantization_config: num_buckets must be >= 2, got 0");
  EXPECT_EQ(refused({1, -1, 1}), "quantization_config: num_buckets must be >= 2, got 1");
  EXPECT_EQ(refused({2, -1, 1}), "");
  EXPECT_EQ(refused({2, 1, 1}),
            "quantization_config: lower must be less than upper, by a finite number, got "
            "QuantizationConfig(num_buckets=2, lower=1, upper=1)");
  EXPECT_NE(refused({2, 1, NAN}), "");
  EXPECT_NE(refused({2, -3e38f, 3e38f}), "");
  EXPECT_EQ(to_string(QuantizationConfig{10, -1, 1}),
            "QuantizationConfig(num_buckets=10, lower=-1, upper=1)");
}

TEST(TableConfig, AQuantizationOfDenormalWidthIsTakenWhereTheThreadFlushesThem) {
  const TableConfig fine{
      .vocabulary_size = 2, .dim = 4, .quantization_config = QuantizationConfig{3, 0, 2e-38f}};
  EXPECT_EQ(flushing_to_zero([&] { return config_refusal(fine); }), "");
}

TEST(ConfigCases, Case10_AFeaturePrintsItsFieldsInOrder) {
  const FeatureConfig feature{
      .table =
          make_table({.vocabulary_size = 2, .dim = 4, .combiner = Combiner::kSum, .name = "table"}),
      .output_shape = {16, 4},
      .name = "feature"};
  EXPECT_EQ(to_string(feature),
            std::string("FeatureConfig(table=") + kTableText +
                ", max_sequence_length=0, validate_weights_and_indices=True, output_shape=[16, 4], "
                "name='feature')");
}

TEST(FeatureConfig, PrintsWhatIsUnknownAsNone) {
  EXPECT_EQ(to_string(FeatureConfig{.validate_weights_and_indices = false}),
            "FeatureConfig(table=None, max_sequence_length=0, validate_weights_and_indices=False, "
            "output_shape=None, name=None)");
  const std::string text = to_string(FeatureConfig{.output_shape = {2, Shape::kUnknown}});
  EXPECT_NE(text.find("output_shape=[2, None]"), std::string::npos);
}

TEST(ConfigCases, Case11_AFeatureWithoutTableIsRefused) {
  EXPECT_EQ(config_refusal(FeatureConfig{.name = "watched"}),
            "feature 'watched': table must be a TableConfig, got none");
}

TEST(ConfigCases, Case12_ANegativeSequenceLengthIsRefused) {
  EXPECT_EQ(config_refusal(FeatureConfig{.table = small_table(), .max_sequence_length = -1}),
            "feature: max_sequence_length must be >= 0, got -1");
  EXPECT_EQ(config_refusal(FeatureConfig{.table = small_table(), .max_sequence_length = 0}), "");
  EXPECT_EQ(config_refusal(FeatureConfig{.table = small_table(), .max_sequence_length = 7}), "");
}

TEST(ConfigCases, Case13_TheValidateFlagIsABool) {
  static_assert(std::is_same_v<decltype(FeatureConfig::validate_weights_and_indices), bool>);
  EXPECT_TRUE(FeatureConfig().validate_weights_and_indices);
}

// -1 stands for an unknown dim here; the original has None for that.
TEST(ConfigCases, Case14_ANegativeDimIsRefusedAndUnsetIsUnknownRank) {
  EXPECT_THROW(Shape({-2}), ValueError);
  EXPECT_FALSE(FeatureConfig().output_shape.has_rank());
}

TEST(FeatureConfig, ValidatesItsTableFirst) {
  const auto broken =
      std::make_shared<const TableConfig>(TableConfig{.vocabulary_size = 2, .dim = 0});
  EXPECT_EQ(config_refusal(FeatureConfig{.table = broken, .max_sequence_length = -1}),
            "table: dim must be 1..4096, got 0");
}

TEST(MakeTable, ValidatesAndKeepsTheFields) {
  EXPECT_THROW(make_table({.vocabulary_size = 2, .dim = 0}), ValueError);
  EXPECT_EQ(small_table()->dim, 4);
  EXPECT_NE(small_table(), small_table());
}

TEST(TableList, RefusesTwoFeaturesOfOnePath) {
  const Nested<FeatureConfig> leaf(FeatureConfig{.table = small_table()});
  const auto tree = [&](const std::string& key) {
    return Nested<FeatureConfig>::map(
        {{"a/b", leaf}, {"a", Nested<FeatureConfig>::map({{key, leaf}})}});
  };
  EXPECT_EQ(refusal<ValueError>([&] { list_tables(tree("b")); }),
            "features: their paths must be distinct, got 'a/b' twice");
  EXPECT_EQ(list_tables(tree("c")).table_of.size(), 2u);
}

}  // namespace
}  // namespace embertable
