// Whole tables through steps of several replicas, to the bits that another program computed:
// src/optimizer/testdata/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>

#include "testing/engine/batches.h"
#include "testing/executor.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using Json = nlohmann::json;

Json cases() {
  std::ifstream file(source_path("src/optimizer/testdata/optimizer_cases.json"));
  return Json::parse(file);
}

/// True if the engine can run a case: a rule by name, bits after its last step, steps that have
/// their own numbers.
bool can_run(const Json& test) {
  const std::vector<std::string> rules = optimizer_rules();
  const Json& last = test["expected"].back();
  return std::find(rules.begin(), rules.end(), test["rule"].get<std::string>()) != rules.end() &&
         last.contains("rows_f32") && last["after"] == test["steps"].size() &&
         std::none_of(test["steps"].begin(), test["steps"].end(),
                      [](const Json& step) { return step.contains("step"); });
}

Setting setting(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  return value.get<double>();
}

void take_limits(const Json& options, const char* name, std::optional<double>& low,
                 std::optional<double>& high) {
  if (!options.contains(name)) return;
  const Json& limits = options[name];
  if (!limits[0].is_null()) low = limits[0].get<double>();
  if (!limits[1].is_null()) high = limits[1].get<double>();
}

/// What a key of each step says, as a function of the step.
LearningRate by_step(const Json& steps, const char* key) {
  std::vector<double> values;
  for (const Json& step : steps) values.push_back(step[key].get<double>());
  return LearningRate::scheduled(
      [values](std::int64_t step) { return values[static_cast<std::size_t>(step) - 1]; });
}

OptimizerOptions options_of(const Json& test) {
  const Json& given = test["options"];
  OptimizerOptions options;
  options.use_gradient_accumulation = given.value("accumulate", true);
  take_limits(given, "clip_gradient", options.clip_gradient_min, options.clip_gradient_max);
  take_limits(given, "clip_weight", options.clip_weight_min, options.clip_weight_max);
  options.weight_decay_factor = given.value("decay", 0.0);
  options.multiply_weight_decay_factor_by_learning_rate = given.value("decay_by_rate", false);
  if (test["steps"][0].contains("step_counter"))
    options.step_counter = by_step(test["steps"], "step_counter");
  return options;
}

Optimizer optimizer_of(const Json& test) {
  Optimizer::Settings parameters;
  for (const auto& [name, value] : test["parameters"].items())
    parameters.emplace_back(name, setting(value));
  return Optimizer(test["rule"].get<std::string>(), by_step(test["steps"], "rate"), parameters,
                   options_of(test));
}

F flat(const Json& rows) {
  F all;
  for (const Json& row : rows)
    for (const Json& value : row) all.push_back(value.get<float>());
  return all;
}

/// "3f800000c0066666" for two numbers, row after row.
std::string bits(const F& values) {
  std::string text;
  for (const float value : values) {
    char one[9];
    std::snprintf(one, sizeof one, "%08x", std::bit_cast<std::uint32_t>(value));
    text += one;
  }
  return text;
}
std::string bits(const Json& rows) {
  std::string text;
  for (const Json& row : rows) text += row.get<std::string>();
  return text;
}

/// How a sequence is run: replica k of it is replica spread * k of the engine, the others' batches
/// are empty.
struct Course {
  std::int32_t hosts = 1, spread = 1;
  Sharding sharding = Sharding::kDiv;
  std::shared_ptr<Executor> executor;
};

class Sequence {
 public:
  Sequence(const Json& test, const Course& form) : test_(test), form_(form) {
    std::size_t replicas = 1, most = 1;
    for (const Json& step : test["steps"]) {
      replicas = std::max(replicas, step["replicas"].size());
      for (const Json& replica : step["replicas"]) most = std::max(most, replica["ids"].size());
    }
    replicas_ = static_cast<std::int32_t>(replicas) * form.spread;
    StrategyOptions strategy;
    strategy.hosts = form.hosts;
    strategy.replicas_per_host = replicas_ / form.hosts;
    strategy.sharding = form.sharding;
    strategy.executor = form.executor;
    EmbeddingOptions options;
    options.variable_batch = true;
    options.tuning = {.bucket_bytes = 64, .inline_floats = 0};
    engine_.emplace(Nested<FeatureConfig>(feature(table())), optimizer_of(test),
                    make_strategy(strategy), options);
    engine_->build(static_cast<std::int64_t>(most));
    for (std::int64_t id = 0; id < vocabulary(); ++id) all_ids_.push_back(id);
    for (const auto& [name, rows] : test["slots"].items())
      engine_->assign_rows("t/" + name, all_ids_, flat(rows));
  }

  void train() {
    for (const Json& step : test_["steps"]) {
      std::vector<Ids> ids(replicas_);
      for (std::size_t k = 0; k < step["replicas"].size(); ++k)
        ids[k * form_.spread] = step["replicas"][k]["ids"].get<Ids>();
      std::vector<Batch> batches;
      for (const Ids& one : ids) batches.push_back(batch_of(DenseIds{one, {}}));
      engine_fixture::train(
          *engine_, batches, [&](const Activation&, std::int64_t, std::int32_t replica) {
            if (replica % form_.spread != 0) return F();
            const std::size_t k = replica / form_.spread;
            return k < step["replicas"].size() ? flat(step["replicas"][k]["gradients"]) : F();
          });
    }
  }

  void expect_bits() const {
    const Json& want = test_["expected"].back();
    EXPECT_EQ(bits(variable(*engine_, "t", vocabulary(), dim())), bits(want["rows_f32"]));
    for (const auto& [name, rows] : want["slots_f32"].items()) {
      const auto width = static_cast<std::int64_t>(rows[0].get<std::string>().size() / 8);
      EXPECT_EQ(bits(variable(*engine_, "t/" + name, vocabulary(), width)), bits(rows)) << name;
    }
  }

 private:
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(test_["rows"].size()); }
  std::int64_t dim() const { return static_cast<std::int64_t>(test_["rows"][0].size()); }
  TablePtr table() const {
    return make_table({.vocabulary_size = vocabulary(),
                       .dim = static_cast<std::int32_t>(dim()),
                       .initializer = Initializer::values(flat(test_["rows"])),
                       .optimizer = {},
                       .combiner = Combiner::kSum,
                       .name = "t"});
  }

  const Json& test_;
  const Course& form_;
  std::int32_t replicas_ = 1;
  Ids all_ids_;
  std::optional<Embedding> engine_;
};

TEST(OptimizerSequences, AreMetToTheBitOnAnyHostsAndThreads) {
  const Course forms[] = {{1, 1, Sharding::kDiv, make_inline_executor()},
                          {1, 1, Sharding::kDiv, std::make_shared<TestExecutor>(test_seed(), 3)},
                          {2, 2, Sharding::kDiv, make_inline_executor()},
                          {2, 2, Sharding::kMod, std::make_shared<TestExecutor>(test_seed(), 3)}};
  int sequences = 0;
  for (const Json& test : cases()) {
    if (!can_run(test)) continue;
    ++sequences;
    for (const Course& form : forms) {
      SCOPED_TRACE(test["id"].get<std::string>() + ", " + std::to_string(form.hosts) + " hosts");
      Sequence sequence(test, form);
      sequence.train();
      sequence.expect_bits();
    }
  }
  EXPECT_GE(sequences, 209);
}

}  // namespace
}  // namespace embertable
