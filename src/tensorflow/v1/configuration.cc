#include "tensorflow/v1/configuration.h"

#include <limits>
#include <set>
#include <utility>

#include "embertable/errors.h"
#include "embertable/strategy.h"

namespace embertable::v1 {
namespace {

void require(bool holds, const std::string& rule, const std::string& received) {
  if (!holds) throw ValueError(rule + ", got " + received);
}

/// Runs `check` and puts the subject in front of its ValueErrors.
template <class Check>
auto checked(const std::string& subject, Check check) {
  try {
    return check();
  } catch (const ValueError& error) {
    throw ValueError(subject + ": " + error.what());
  }
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

}  // namespace

void validate(const TableConfig& table) {
  require(table.vocabulary_size >= 1, "vocabulary_size must be >= 1",
          std::to_string(table.vocabulary_size));
  require(table.dimension >= 1 && table.dimension <= embertable::TableConfig::kMaxDim,
          "dimension must be 1.." + std::to_string(embertable::TableConfig::kMaxDim),
          std::to_string(table.dimension));
  if (table.initializer) table.initializer->check("", table.vocabulary_size, table.dimension);
  require(!table.combiner || to_string(*table.combiner) != "?",
          "combiner must be mean, sum, sqrtn or unset",
          std::to_string(static_cast<int>(table.combiner.value_or(Combiner::kSum))));
  require(!table.learning_rate || !table.learning_rate_fn,
          "learning_rate and learning_rate_fn must not both be given",
          std::to_string(table.learning_rate.value_or(0)) + " and a function");
  require(!table.learning_rate_fn || *table.learning_rate_fn,
          "learning_rate_fn must have a function", "none");
  if (!table.optimization_parameters) return;
  make_optimizer(*table.optimization_parameters);
}

void validate(const FeatureConfig& feature) {
  require(feature.max_sequence_length >= 0, "max_sequence_length must be >= 0",
          std::to_string(feature.max_sequence_length));
}

Configuration::Configuration(TPUEmbedding::Tables of_tables, TPUEmbedding::Features of_features,
                             std::int64_t of_batch, Mode of_mode,
                             const std::optional<OptimizationParameters>& parameters,
                             Options of_options)
    : tables(std::move(of_tables)),
      features(std::move(of_features)),
      batch_size(of_batch),
      mode(of_mode),
      options(std::move(of_options)),
      sharding(options.partition_strategy == "mod" ? Sharding::kMod : Sharding::kDiv) {
  require(sharding == Sharding::kMod || options.partition_strategy == "div",
          "partition_strategy must be 'div' or 'mod'", "'" + options.partition_strategy + "'");
  for (const auto& [name, table] : tables)
    checked("table '" + name + "'", [&, &config = table] { validate(config); });
  check_features();
  check_machine();
  check_mode(parameters);
  if (mode == Mode::kInference) {
    parameters_ = StochasticGradientDescentParameters{.learning_rate = 1.0};
  } else {
    parameters_ = parameters;
  }
  resolve_optimizers();
}

void Configuration::check_features() const {
  std::set<std::string> unused, unknown;
  for (const auto& [name, table] : tables) unused.insert(name);
  for (const auto& [name, feature] : features) {
    checked("feature '" + name + "'", [&, &config = feature] { validate(config); });
    unused.erase(feature.table_id);
    if (!tables.contains(feature.table_id)) unknown.insert(feature.table_id);
  }
  require(unused.empty(), "table_to_config: every table must be used by a feature",
          "unused " + listed(unused));
  require(unknown.empty(), "feature_to_config: every table_id must be a table",
          "unknown " + listed(unknown));
  require(!features.empty(), "feature_to_config: there must be a feature", "none");
}

void Configuration::check_machine() const {
  const auto& [hosts, cores, executor, timeout] = options.device_config;
  require(hosts >= 1, "device_config: num_hosts must be >= 1", std::to_string(hosts));
  require(cores >= 1 && cores % hosts == 0,
          "device_config: num_cores must be a multiple of num_hosts",
          std::to_string(cores) + " cores on " + std::to_string(hosts) + " hosts");
  require(batch_size >= 1 && batch_size % cores == 0,
          "batch_size must be >= 1 and a multiple of the number of cores",
          std::to_string(batch_size) + " on " + std::to_string(cores) + " cores");
  require(batch_size_per_core() <= std::numeric_limits<std::int32_t>::max(),
          "batch_size must be < 2^31 for each core",
          std::to_string(batch_size) + " on " + std::to_string(cores) + " cores");
  require(!options.engine.variable_batch, "engine: variable_batch must be off", "true");
}

void Configuration::check_mode(const std::optional<OptimizationParameters>& parameters) const {
  require(mode == Mode::kTraining || mode == Mode::kInference,
          "mode must be training, 2, or inference, 1", std::to_string(static_cast<int>(mode)));
  require(mode == Mode::kTraining || !parameters,
          "optimization_parameters must be unset in mode inference", "some");
  if (mode == Mode::kInference) return;
  for (const auto& [name, table] : tables) {
    require(parameters || table.optimization_parameters,
            "table '" + name +
                "': optimization_parameters must be given to the table or to all in mode training",
            "none");
  }
}

const OptimizationParameters& Configuration::parameters_of(const TableConfig& table) const {
  return table.optimization_parameters ? *table.optimization_parameters : *parameters_;
}

bool Configuration::asks_for_step() const {
  for (const auto& [name, table] : tables)
    if (table.learning_rate_fn) return true;
  return false;
}

void Configuration::resolve_optimizers() {
  std::map<const LearningRateFunction*, LearningRate> rates;  // one for all tables that share it
  for (const auto& [name, table] : tables) {
    const auto& function = table.learning_rate_fn;
    if (function && !rates.contains(function.get())) {
      rates.emplace(function.get(),
                    LearningRate::dynamic([function, step = step_] { return (*function)(*step); }));
    }
    const Optimizer optimizer = checked("table '" + name + "'", [&, &config = table] {
      const OptimizationParameters& parameters = parameters_of(config);
      require(!std::holds_alternative<FrequencyEstimatorParameters>(parameters) ||
                  config.dimension == 1,
              "dimension must be 1 with FrequencyEstimatorParameters",
              std::to_string(config.dimension));
      const Optimizer plain = make_optimizer(parameters);
      if (config.learning_rate.value_or(0) != 0)
        return plain.with_learning_rate(*config.learning_rate);
      return function ? plain.with_learning_rate(rates.at(function.get())) : plain;
    });
    optimizers_.emplace(name, optimizer);
  }
}

InterleavedLayout Configuration::layout() const {
  std::vector<InterleavedLayout::Table> of_tables;
  std::vector<InterleavedLayout::Feature> of_features;
  for (const auto& [name, table] : tables) of_tables.push_back({name, table.dimension});
  for (const auto& [name, feature] : features)
    of_features.push_back({name, feature.table_id, feature.max_sequence_length});
  return InterleavedLayout(of_tables, of_features, batch_size_per_core());
}

Embedding Configuration::engine() const {
  std::map<std::string, TablePtr> made;
  for (const auto& [name, table] : tables) {
    embertable::TableConfig config;
    config.vocabulary_size = table.vocabulary_size;
    config.dim = table.dimension;
    config.initializer = table.initializer;
    config.optimizer = optimizer_of(name);
    config.combiner = table.combiner.value_or(Combiner::kSum);
    config.name = name;
    made.emplace(name, make_table(std::move(config)));
  }
  std::vector<std::pair<std::string, Nested<embertable::FeatureConfig>>> members;
  for (const auto& [name, feature] : features) {
    embertable::FeatureConfig config;
    config.table = made.at(feature.table_id);
    config.max_sequence_length = feature.max_sequence_length;
    config.name = name;
    members.emplace_back(name, std::move(config));
  }
  const DeviceConfig& machine = options.device_config;
  StrategyOptions strategy;
  strategy.hosts = machine.num_hosts;
  strategy.replicas_per_host = machine.num_cores / machine.num_hosts;
  strategy.sharding = sharding;
  strategy.executor = machine.executor;
  strategy.timeout = machine.timeout;
  EmbeddingOptions of_engine = options.engine;
  of_engine.revision = ApiRevision::kOutputShapes;
  return Embedding(Nested<embertable::FeatureConfig>::map(std::move(members)), {},
                   make_strategy(std::move(strategy)), std::move(of_engine));
}

}  // namespace embertable::v1
