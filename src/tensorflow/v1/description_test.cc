// The records of v1 engines, to the byte those of TensorFlow: testdata/README.md.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "embertable/tensorflow/v1.h"
#include "testing/source_path.h"

namespace embertable::v1 {
namespace {

using Json = nlohmann::json;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

/// Arguments by name; what is not given keeps its default.
class Arguments {
 public:
  explicit Arguments(const Json& args) : args_(args) {}
  void operator()(const char* name, double& value) const {
    if (args_.contains(name)) value = args_[name];
  }
  void operator()(const char* name, bool& value) const {
    if (args_.contains(name)) value = args_[name];
  }
  void operator()(const char* name, std::optional<double>& value) const {
    if (args_.contains(name)) value = args_[name].get<double>();
  }
  void common(OptimizerOptions& options) const {
    (*this)("clip_weight_min", options.clip_weight_min);
    (*this)("clip_weight_max", options.clip_weight_max);
    (*this)("clip_gradient_min", options.clip_gradient_min);
    (*this)("clip_gradient_max", options.clip_gradient_max);
    (*this)("weight_decay_factor", options.weight_decay_factor);
    (*this)("multiply_weight_decay_factor_by_learning_rate",
            options.multiply_weight_decay_factor_by_learning_rate);
    (*this)("use_gradient_accumulation", options.use_gradient_accumulation);
  }

 private:
  const Json& args_;
};

template <class Parameters>
Parameters with_common(const Arguments& set) {
  Parameters p;
  set("learning_rate", p.learning_rate);
  set.common(p.options);
  return p;
}

/// With l1 and l2 too.
template <class Parameters>
Parameters with_strengths(const Arguments& set) {
  auto p = with_common<Parameters>(set);
  set("l1_regularization_strength", p.l1_regularization_strength);
  set("l2_regularization_strength", p.l2_regularization_strength);
  return p;
}

AdamParameters adam(const Arguments& set) {
  auto p = with_common<AdamParameters>(set);
  set("beta1", p.beta1);
  set("beta2", p.beta2);
  set("epsilon", p.epsilon);
  return p;
}
FtrlParameters ftrl(const Arguments& set) {
  auto p = with_strengths<FtrlParameters>(set);
  set("learning_rate_power", p.learning_rate_power);
  set("initial_accumulator_value", p.initial_accumulator_value);
  set("beta", p.beta);
  return p;
}
ProximalYogiParameters yogi(const Arguments& set) {
  auto p = with_strengths<ProximalYogiParameters>(set);
  set("beta1", p.beta1);
  set("beta2", p.beta2);
  set("epsilon", p.epsilon);
  return p;
}
MomentumParameters momentum(const Arguments& set) {
  auto p = with_common<MomentumParameters>(set);
  set("momentum", p.momentum);
  set("use_nesterov", p.use_nesterov);
  return p;
}
RMSPropParameters rms_prop(const Arguments& set) {
  auto p = with_common<RMSPropParameters>(set);
  set("rho", p.rho);
  set("momentum", p.momentum);
  set("epsilon", p.epsilon);
  return p;
}
FrequencyEstimatorParameters frequency(const Arguments& set) {
  FrequencyEstimatorParameters p;
  set("tau", p.tau);
  set("max_delta", p.max_delta);
  set("outlier_threshold", p.outlier_threshold);
  set("weight_exponent", p.weight_exponent);
  return p;
}

OptimizationParameters parameters_of(const Json& optimizer) {
  const std::string name = optimizer["class"];
  const Arguments set(optimizer["args"]);
  if (name == "Adagrad") return with_common<AdagradParameters>(set);
  if (name == "ProximalAdagrad") return with_strengths<ProximalAdagradParameters>(set);
  if (name == "Adam") return adam(set);
  if (name == "Ftrl") return ftrl(set);
  if (name == "ProximalYogi") return yogi(set);
  if (name == "Momentum") return momentum(set);
  if (name == "RMSProp") return rms_prop(set);
  if (name == "FrequencyEstimator") return frequency(set);
  EXPECT_EQ(name, "StochasticGradientDescent");
  return with_common<StochasticGradientDescentParameters>(set);
}

TPUEmbedding engine_of(const Json& test) {
  const auto rate = std::make_shared<const LearningRateFunction>([](std::int64_t) { return 0.1; });
  TPUEmbedding::Tables tables;
  for (const auto& [name, given] : test["tables"].items()) {
    TableConfig& table = tables[name];
    table.vocabulary_size = given["vocabulary_size"];
    table.dimension = given["dimension"];
    table.hot_id_replication = given["hot_id_replication"];
    if (!given["learning_rate"].is_null())
      table.learning_rate = given["learning_rate"].get<double>();
    if (given["dynamic"]) table.learning_rate_fn = rate;
  }
  TPUEmbedding::Features features;
  for (const auto& [name, given] : test["features"].items())
    features[name] = {given["table"], given["max_sequence_length"]};
  Options options;
  options.partition_strategy = test["partition_strategy"];
  options.device_config.num_cores = test["cores"];
  options.device_config.num_hosts = test["hosts"];
  options.device_config.executor = make_inline_executor();
  options.engine.pipeline_execution_with_tensor_core = test["pipeline"];
  return TPUEmbedding(tables, features, test["batch_size"], Mode::kTraining,
                      parameters_of(test["optimizer"]), options);
}

TEST(V1Description, HasTheBytesOfTensorFlow) {
  std::ifstream file(source_path("src/tensorflow/v1/testdata/v1_configs.json"));
  const Json all = Json::parse(file);
  for (const Json& test : all["cases"]) {
    SCOPED_TRACE(test["id"].get<std::string>());
    EXPECT_EQ(hex(wire::serialize(engine_of(test).configuration())),
              test["hex"].get<std::string>());
  }
  EXPECT_EQ(all["cases"].size(), 18U);
}

TPUEmbedding three_tables(Mode mode, const Options& options = {}) {
  const auto shared =
      std::make_shared<const LearningRateFunction>([](std::int64_t) { return 1.0; });
  const auto own = std::make_shared<const LearningRateFunction>([](std::int64_t) { return 2.0; });
  TableConfig a = {.vocabulary_size = 4, .dimension = 2}, b = a, c = a;
  a.learning_rate_fn = c.learning_rate_fn = shared;
  b.learning_rate_fn = own;
  std::optional<OptimizationParameters> parameters;
  if (mode == Mode::kTraining) parameters = AdagradParameters{.learning_rate = 0.1};
  return TPUEmbedding({{"a", a}, {"b", b}, {"c", c}}, {{"x", {"a"}}, {"y", {"b"}}, {"z", {"c"}}}, 2,
                      mode, parameters, options);
}

TEST(V1Description, TagsFunctionsInTheOrderOfTheTables) {
  const auto record = three_tables(Mode::kTraining).configuration();
  const auto tag = [&](std::size_t table) {
    const auto& rate = record.table_descriptor[table].optimization_parameters->learning_rate;
    return std::get<wire::OptimizerDynamicInput>(rate->learning_rate).tag;
  };
  EXPECT_EQ(tag(0), 0);
  EXPECT_EQ(tag(1), 1);
  EXPECT_EQ(tag(2), 0);
  EXPECT_EQ(wire::num_dynamic_inputs(record), 2);
}

TEST(V1Description, SaysModeAndProfileDirectory) {
  Options options;
  options.profile_data_directory = "/profiles";
  const auto record = three_tables(Mode::kInference, options).configuration();
  EXPECT_EQ(record.mode, wire::TPUEmbeddingConfiguration::Mode::kInference);
  EXPECT_EQ(record.profile_data_directory, "/profiles");
}

}  // namespace
}  // namespace embertable::v1
