// Bytes and texts of messages: written, read, refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "embertable/errors.h"
#include "embertable/tensorflow/sparse_core.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/golden_messages.h"
#include "testing/refusal.h"

namespace embertable::wire {
namespace {

using testing::HasSubstr;

OptimizationParameters sgd(float rate) {
  return {.learning_rate = LearningRate{.learning_rate = rate},
          .parameters = StochasticGradientDescentParameters{}};
}

std::string message_refusal(const std::string& bytes) {
  return refusal<ValueError>([&] { parse_configuration(bytes); });
}

/// Reads and writes again.
std::string again(const std::string& bytes) { return serialize(parse_configuration(bytes)); }

TEST(ConfigCases, Case66_WireBytesOfAnOptimizer) {
  const std::string bytes = serialize(sgd(0.1f));
  EXPECT_EQ(to_hex(bytes), "22006a050dcdcccc3d");
  EXPECT_EQ(parse_optimization_parameters(bytes), sgd(0.1f));
}

TEST(ConfigCases, Case66_UnknownFieldsStandBehindKnownOnesAtEveryLevel) {
  // A table {name "t", field 100: 7, optimizer {field 101: "x", adagrad {field 1: 2.0}}}, field 99.
  const std::string adagrad = from_hex("1a050d00000040");
  const std::string optimizer = from_hex("aa060178") + adagrad;
  const std::string table = from_hex("0a0174a00607") + from_hex("2a0b") + optimizer;
  const std::string bytes = std::string("\x98\x06\x05\x0a\x13", 5) + table;
  const TPUEmbeddingConfiguration read = parse_configuration(bytes);
  EXPECT_EQ(read.unknown_fields, from_hex("980605"));
  EXPECT_EQ(read.table_descriptor[0].unknown_fields, from_hex("a00607"));
  EXPECT_EQ(read.table_descriptor[0].optimization_parameters->unknown_fields, from_hex("aa060178"));
  EXPECT_EQ(to_hex(serialize(read)), "0a130a01742a0b1a050d00000040aa060178a00607980605");
  EXPECT_EQ(again(serialize(read)), serialize(read));
}

TEST(Messages, ZerosOfAScalarAreNotWrittenButThoseOfAOneofAndAWrapperAre) {
  EXPECT_EQ(serialize(TPUEmbeddingConfiguration{}), "");
  EXPECT_EQ(to_hex(serialize(sgd(0))), "22006a050d00000000");
  EXPECT_EQ(to_hex(serialize(OptimizationParameters{.clipping_limits = ClippingLimits{0.0f, {}}})),
            "12020a00");
  EXPECT_EQ(to_hex(serialize(OptimizationParameters{.weight_decay_factor = -0.0f})),
            "850100000080");
}

TEST(Messages, NegativeIntegersTakeTenBytes) {
  TPUEmbeddingConfiguration one;
  one.num_hosts = -1;
  one.table_descriptor.push_back({.vocabulary_size = std::numeric_limits<std::int64_t>::min()});
  EXPECT_EQ(to_hex(serialize(one)), "0a0b108080808080808080800120ffffffffffffffffff01");
  EXPECT_EQ(parse_configuration(serialize(one)), one);
}

TEST(Messages, TheLastScalarWinsAndSubmessagesMerge) {
  const TPUEmbeddingConfiguration read =
      parse_configuration(from_hex("20012002"
                                   "5a020801"
                                   "5a021003"));
  EXPECT_EQ(read.num_hosts, 2);
  EXPECT_TRUE(read.spmd_sharding->enabled);
  EXPECT_EQ(read.spmd_sharding->num_cores_per_replica, 3);
}

TEST(Messages, TheLastOfAOneofWinsAndEqualOnesMerge) {
  const OptimizationParameters last = parse_optimization_parameters(from_hex("22001a00"));
  EXPECT_TRUE(std::holds_alternative<AdagradParameters>(last.parameters));
  const OptimizationParameters merged =
      parse_optimization_parameters(from_hex("42050d0000803f"
                                             "42021001"));
  EXPECT_EQ(std::get<MomentumParameters>(merged.parameters),
            (MomentumParameters{.momentum = 1, .use_nesterov = true}));
}

TEST(Messages, RepeatedNumbersArePackedOrNot) {
  const TPUEmbeddingConfiguration read = parse_configuration(from_hex("52081a02020418051806"));
  EXPECT_EQ(read.feature_descriptor[0].input_shape, (std::vector<std::int32_t>{2, 4, 5, 6}));
  EXPECT_EQ(to_hex(serialize(read)), "52061a0402040506");
}

TEST(Messages, AKnownNumberOfAnotherWireTypeIsUnknown) {
  const TPUEmbeddingConfiguration read =
      parse_configuration(from_hex("22021003"
                                   "2004"));
  EXPECT_EQ(read.num_hosts, 4);
  EXPECT_EQ(to_hex(serialize(read)),
            "2004"
            "22021003");
}

TEST(Messages, GroupsAreUnknownFields) {
  const std::string group = from_hex(
      "a306"
      "0801"
      "b306b406"
      "a406");
  EXPECT_EQ(again(group), group);
  EXPECT_THAT(message_refusal(from_hex("a306ac06")), HasSubstr("byte 2: group 100 must end"));
  EXPECT_THAT(message_refusal(from_hex("a406")), HasSubstr("group 100 ends without a start"));
  std::string deep;
  for (int i = 0; i < 101; ++i) deep += '\x0b';
  EXPECT_THAT(message_refusal(deep), HasSubstr("at most 100 groups"));
}

TEST(Messages, RefusalsNameMessageFieldAndByte) {
  EXPECT_EQ(
      message_refusal(from_hex("20010a030a7400")),
      "TPUEmbeddingConfiguration.table_descriptor.name, byte 6: 116 bytes must follow, got 1");
  EXPECT_EQ(message_refusal(from_hex("20010a030a01ff")),
            "TPUEmbeddingConfiguration.table_descriptor.name, byte 5: a text must be UTF-8");
  EXPECT_EQ(message_refusal(from_hex("0a052a030a01")),
            "TPUEmbeddingConfiguration.table_descriptor, byte 2: 5 bytes must follow, got 4");
  EXPECT_EQ(message_refusal(from_hex("20")),
            "TPUEmbeddingConfiguration.num_hosts, byte 1: a number must follow, got the end");
  EXPECT_EQ(message_refusal(from_hex("2001"
                                     "20ffffffffffffffffffff01")),
            "TPUEmbeddingConfiguration.num_hosts, byte 3: a number must end within 10 bytes and "
            "the message");
  EXPECT_EQ(message_refusal(from_hex("0001")),
            "TPUEmbeddingConfiguration, byte 0: a field's number must be 1..536870911, got 0");
  EXPECT_EQ(message_refusal(from_hex("2001"
                                     "0e")),
            "TPUEmbeddingConfiguration, byte 2: a wire type must be 0..5, got 6");
}

TEST(Messages, HostileBytesTakeNoMemoryOutOfProportion) {
  std::string tables;
  for (std::size_t i = 0; i <= kMaxTables; ++i) tables.append("\x0a\x00", 2);
  EXPECT_THAT(message_refusal(tables),
              HasSubstr("table_descriptor, byte 131073: there must be at most"));
  EXPECT_THAT(message_refusal(from_hex("0affffffff0f")),
              HasSubstr("4294967295 bytes must follow, got 0"));
  EXPECT_THAT(message_refusal(std::string(kMaxBytes + 1, '\x08')),
              HasSubstr("at most 67108864 bytes"));
}

TEST(Messages, ATextThatIsNotUtf8IsNotWritten) {
  for (const char* bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) {
    TPUEmbeddingConfiguration one;
    one.table_descriptor.push_back({.name = bad});
    EXPECT_THROW(serialize(one), ValueError);
    one.table_descriptor[0].name = "\xf0\x9f\x98\x80 \xe2\x82\xac \xc3\xa9";
    EXPECT_EQ(parse_configuration(serialize(one)), one);
  }
}

TEST(Messages, TheProgramOfAUserIsKeptAsItCame) {
  const std::string bytes = from_hex(
      "c20107"
      "0a02a1b2"
      "0a01c3");
  const OptimizationParameters read = parse_optimization_parameters(bytes);
  EXPECT_EQ(*std::get<UserDefinedProgramParameters>(read.parameters).program, "\xa1\xb2\xc3");
  EXPECT_EQ(to_hex(serialize(read)), "c201050a03a1b2c3");
}

TEST(Messages, OtherMessagesComeBack) {
  const StateVariableSpecification variable = {
      .name = "gradient_accumulators",
      .usage = StateVariableSpecification::FillWithConstant{.initial_value = 0x1p-149}};
  EXPECT_EQ(parse_state_variable(serialize(variable)), variable);
  const StateVariableSpecification own = {.name = "p",
                                          .usage = StateVariableSpecification::UserDefined{}};
  EXPECT_EQ(to_hex(serialize(own)), "0a01701200");
  EXPECT_EQ(serialize(parse_error(from_hex("0801"))), from_hex("0801"));
  const SparseCoreTableLayouts layouts = {
      .tables = {{.table_name = "a", .unsharded_shape = {100, 127}, .num_features = 1}}};
  EXPECT_EQ(to_hex(serialize(layouts)), "0a090a01613202647f5801");
  EXPECT_EQ(parse_layouts(serialize(layouts)), layouts);
  EXPECT_EQ(to_text(layouts),
            "tables {\n  table_name: \"a\"\n  unsharded_shape: 100\n  unsharded_shape: 127\n"
            "  num_features: 1\n}\n");
}

TEST(Messages, TheTextFormNamesFieldsAndValues) {
  TPUEmbeddingConfiguration one;
  one.table_descriptor.push_back(
      {.name = "a \"b\"\n\xc3\xa9", .vocabulary_size = 3, .optimization_parameters = sgd(0.1f)});
  one.mode = TPUEmbeddingConfiguration::Mode::kTraining;
  one.sharding_strategy = static_cast<TPUEmbeddingConfiguration::ShardingStrategy>(7);
  one.feature_descriptor.push_back({.table_id = 1, .input_shape = {2, 4}});
  one.unknown_fields = from_hex("980605");
  EXPECT_EQ(to_text(one), R"(table_descriptor {
  name: "a \"b\"\n\303\251"
  vocabulary_size: 3
  optimization_parameters {
    stochastic_gradient_descent {
    }
    learning_rate {
      constant: 0.1
    }
  }
}
mode: TRAINING
sharding_strategy: 7
feature_descriptor {
  table_id: 1
  input_shape: 2
  input_shape: 4
}
# 3 bytes of unknown fields
)");
}

TEST(ConfigCases, Case67_EveryLineOfALargeConfigurationIsLogged) {
  TPUEmbeddingConfiguration large;
  for (int i = 0; i < 500; ++i)
    large.table_descriptor.push_back({.name = "table_" + std::to_string(i)});
  std::vector<std::string> lines;
  log_lines(large, [&](std::string_view line) { lines.emplace_back(line); });
  EXPECT_EQ(lines.size(), 1500u);
  EXPECT_EQ(lines[1498], "  name: \"table_499\"");
  EXPECT_EQ(refusal<ValueError>([&] { log_lines(large, {}); }),
            "log_lines: log must be a function, got none");
}

}  // namespace
}  // namespace embertable::wire
