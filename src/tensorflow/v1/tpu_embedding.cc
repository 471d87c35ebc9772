#include <algorithm>
#include <list>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/enumerators.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "embertable/tensorflow/v1.h"
#include "rows/placement.h"
#include "tensorflow/v1/configuration.h"

namespace embertable {

template <>
struct Enumerators<v1::Mode> : EnumeratorRange<v1::Mode::kUnspecified, v1::Mode::kTraining> {};

}  // namespace embertable

namespace embertable::v1 {
namespace {

/// Limit of the positions of a sample. The engine checks them against a shape.
constexpr std::int64_t kMostPositions = std::int64_t{1} << 31;

template <class Leaf>
std::string feature_list(const std::map<std::string, Leaf>& all, const auto& without) {
  std::string text;
  for (const auto& [name, leaf] : all)
    if (!without.contains(name)) text += (text.empty() ? "'" : ", '") + name + "'";
  return "{" + text + "}";
}

/// Throws ValueError unless there is one map for each core, each with every feature.
template <class Leaf>
void check_maps(const char* call, std::span<const std::map<std::string, Leaf>> of_cores,
                std::int32_t cores, const TPUEmbedding::Features& features) {
  if (std::ssize(of_cores) != cores) {
    throw ValueError(std::string(call) + ": there must be one map for each of " +
                     std::to_string(cores) + " cores, got " + std::to_string(of_cores.size()));
  }
  for (std::size_t core = 0; core < of_cores.size(); ++core) {
    const bool same = std::ranges::equal(
        of_cores[core], features, [](const auto& a, const auto& b) { return a.first == b.first; });
    if (same) continue;
    throw ValueError(std::string(call) + ": map " + std::to_string(core) +
                     " must have every feature and no other, got missing " +
                     feature_list(features, of_cores[core]) + ", unknown " +
                     feature_list(of_cores[core], features));
  }
}

}  // namespace

class TPUEmbedding::State {
 public:
  explicit State(Configuration&& of)
      : configuration(std::move(of)),
        layout(configuration.layout()),
        engine(configuration.engine()) {
    one_each_.resize(static_cast<std::size_t>(samples()) + 1);
    std::iota(one_each_.begin(), one_each_.end(), std::int64_t{0});
    const std::vector<Gradient> leaves(configuration.features.size());
    gradients_.assign(static_cast<std::size_t>(cores()), Nested<Gradient>(structure(), leaves));
  }

  const Configuration configuration;
  const InterleavedLayout layout;
  Embedding engine;

  std::int32_t cores() const { return configuration.options.device_config.num_cores; }

  template <class Data>
  void enqueue(std::span<const std::map<std::string, Data>> of_cores, Mode mode_override,
               std::optional<std::chrono::milliseconds> timeout) {
    const bool training = is_training(mode_override);
    check_maps("enqueue", of_cores, cores(), configuration.features);
    Scratch scratch = borrow();
    std::vector<Batch>& batches = scratch.front();
    for (std::size_t core = 0; core < of_cores.size(); ++core) {
      std::int64_t feature = 0;
      for (const auto& [name, data] : of_cores[core]) take(batches, core, feature++, data);
    }
    engine.enqueue(batches, {.training = training, .timeout = timeout});
    give_back(scratch);
  }

  void send(std::span<const FeatureGradients> of_cores, std::optional<std::int64_t> step) {
    check_sending(step);
    check_maps("send_gradients", of_cores, cores(), configuration.features);
    for (std::size_t core = 0; core < of_cores.size(); ++core) {
      std::int64_t feature = 0;
      for (const auto& [name, gradient] : of_cores[core])
        gradients_[core][feature] = without_slot(feature, gradient), ++feature;
    }
    apply(step);
  }

  void send(std::span<const std::span<const float>> of_tables, std::optional<std::int64_t> step) {
    check_sending(step);
    const std::size_t tables = layout.tables().size();
    const auto count = static_cast<std::size_t>(cores()) * tables;
    if (of_tables.size() != count) {
      throw ValueError("send_gradients: there must be " + std::to_string(tables) +
                       " tensors for each of " + std::to_string(cores()) + " cores, got " +
                       std::to_string(of_tables.size()));
    }
    std::vector<std::vector<float>> features;
    for (std::size_t core = 0; core < gradients_.size(); ++core) {
      for (auto& values : deinterleave(layout, of_tables.subspan(core * tables, tables)))
        features.push_back(std::move(values));
    }
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto feature = static_cast<std::int64_t>(i % layout.features().size());
      gradients_[i / layout.features().size()][feature] = {features[i],
                                                           layout.feature_shape(feature)};
    }
    apply(step);
  }

 private:
  /// Batches by core, whose arrays belong to the caller of `enqueue`; a node for each.
  using Scratch = std::list<std::vector<Batch>>;

  std::int64_t samples() const { return configuration.batch_size_per_core(); }
  const Structure& structure() const { return engine.feature_config().structure(); }

  /// Returns batches for one call. Each call has its own, so that none waits for one that waits for
  /// room; they are kept, so that it allocates nothing.
  Scratch borrow() {
    Scratch one;
    {
      const std::lock_guard lock(lending_);
      if (!idle_.empty()) one.splice(one.begin(), idle_, idle_.begin());
    }
    if (one.empty()) {
      const auto leaves = configuration.features.size();
      one.emplace_back(
          static_cast<std::size_t>(cores()),
          Batch{Nested<FeatureIds>(structure(), std::vector<FeatureIds>(leaves)),
                Nested<FeatureWeights>(structure(), std::vector<FeatureWeights>(leaves))});
    }
    return one;
  }

  void give_back(Scratch& one) noexcept {
    const std::lock_guard lock(lending_);
    idle_.splice(idle_.begin(), one);
  }

  bool is_training(Mode mode_override) const {
    check_enumerator(mode_override, "enqueue: mode_override");
    const Mode mode = mode_override == Mode::kUnspecified ? configuration.mode : mode_override;
    if (mode == Mode::kTraining && configuration.mode != Mode::kTraining)
      throw StateError("enqueue: a training batch needs mode training, this engine's is inference");
    return mode == Mode::kTraining;
  }

  void check_rows(std::size_t core, std::int64_t feature, const char* what, std::int64_t expected,
                  std::int64_t got) const {
    if (expected == got) return;
    throw ValueError("feature '" + layout.features()[feature].name + "' of core " +
                     std::to_string(core) + ": " + what + " " + std::to_string(expected) +
                     ", got " + std::to_string(got));
  }

  void take(std::vector<Batch>& batches, std::size_t core, std::int64_t feature,
            const EnqueueData& data) const {
    if (!data.sample_indices) return take_one_each(batches, core, feature, data);
    batches[core].features[feature] =
        SparseIds{*data.sample_indices, data.embedding_indices, Shape{samples(), kMostPositions}};
    (*batches[core].weights)[feature] =
        data.aggregation_weights ? FeatureWeights(SparseWeights{*data.aggregation_weights})
                                 : FeatureWeights();
  }

  void take(std::vector<Batch>& batches, std::size_t core, std::int64_t feature,
            const RaggedEnqueueData& data) const {
    if (!data.row_splits) return take_one_each(batches, core, feature, data);
    check_rows(core, feature, "the numbers of row_splits must be", samples() + 1,
               data.row_splits->size());
    take_ragged(batches[core], feature, data, *data.row_splits);
  }

  /// Takes one id for each sample, at position 0 of a sequence.
  void take_one_each(std::vector<Batch>& batches, std::size_t core, std::int64_t feature,
                     const auto& data) const {
    check_rows(core, feature, "without samples the number of ids must be", samples(),
               data.embedding_indices.size());
    const bool vector = layout.features()[feature].max_sequence_length == 0;
    if (data.aggregation_weights || !vector)
      return take_ragged(batches[core], feature, data, one_each_);
    batches[core].features[feature] = DenseIds{data.embedding_indices, {}};
    (*batches[core].weights)[feature] = {};
  }

  static void take_ragged(Batch& batch, std::int64_t feature, const auto& data,
                          IntegerSpan splits) {
    batch.features[feature] = RaggedIds{splits, data.embedding_indices};
    (*batch.weights)[feature] = data.aggregation_weights
                                    ? FeatureWeights(RaggedWeights{*data.aggregation_weights})
                                    : FeatureWeights();
  }

  void check_sending(std::optional<std::int64_t> step) const {
    if (configuration.mode != Mode::kTraining)
      throw StateError("send_gradients: needs mode training, this engine's is inference");
    if (!step && configuration.asks_for_step())
      throw ValueError(
          "send_gradients: step must be given where a table has a learning_rate_fn, "
          "got none");
  }

  /// Returns a gradient [batch, 1, dim] as [batch, dim].
  Gradient without_slot(std::int64_t feature, Gradient gradient) const {
    const Shape shape = layout.feature_shape(feature);
    if (shape.rank() == 2 && gradient.shape == Shape{shape[0], 1, shape[1]}) gradient.shape = shape;
    return gradient;
  }

  void apply(std::optional<std::int64_t> step) {
    configuration.set_step(step.value_or(0));
    engine.apply_gradients(gradients_);
  }

  std::vector<std::int64_t> one_each_;       ///< splits of samples with one id
  std::mutex lending_;                       ///< guards idle_
  Scratch idle_;                             ///< batches that no call has borrowed
  std::vector<Nested<Gradient>> gradients_;  ///< by core; borrowed from the caller
};

TPUEmbedding::TPUEmbedding(Tables table_to_config, Features feature_to_config,
                           std::int64_t batch_size, Mode mode,
                           const std::optional<OptimizationParameters>& optimization_parameters,
                           Options options)
    : state_(std::make_unique<State>(Configuration(std::move(table_to_config),
                                                   std::move(feature_to_config), batch_size, mode,
                                                   optimization_parameters, std::move(options)))) {}
TPUEmbedding::~TPUEmbedding() = default;
TPUEmbedding::TPUEmbedding(TPUEmbedding&&) noexcept = default;
TPUEmbedding& TPUEmbedding::operator=(TPUEmbedding&&) noexcept = default;

void TPUEmbedding::create_variables() {
  state_->engine.build(state_->configuration.batch_size_per_core());
}

void TPUEmbedding::enqueue(std::span<const FeatureData> of_cores, Mode mode_override,
                           std::optional<std::chrono::milliseconds> timeout) {
  state_->enqueue(of_cores, mode_override, timeout);
}
void TPUEmbedding::enqueue(std::span<const RaggedFeatureData> of_cores, Mode mode_override,
                           std::optional<std::chrono::milliseconds> timeout) {
  state_->enqueue(of_cores, mode_override, timeout);
}

Activations TPUEmbedding::get_activations(std::optional<std::chrono::milliseconds> timeout) {
  return state_->engine.dequeue({timeout});
}

void TPUEmbedding::send_gradients(std::span<const FeatureGradients> of_cores,
                                  std::optional<std::int64_t> step) {
  state_->send(of_cores, step);
}
void TPUEmbedding::send_gradients(std::span<const std::span<const float>> of_tables,
                                  std::optional<std::int64_t> step) {
  state_->send(of_tables, step);
}

const InterleavedLayout& TPUEmbedding::layout() const noexcept { return state_->layout; }

std::vector<std::int64_t> TPUEmbedding::ids_of_host(std::string_view table,
                                                    std::int32_t host) const {
  const auto found = table_to_config().find(std::string(table));
  if (found == table_to_config().end())
    throw KeyError("ids_of_host: there is no table '" + std::string(table) + "'");
  if (host < 0 || host >= num_hosts()) {
    throw ValueError("ids_of_host: host must be 0 <= host < " + std::to_string(num_hosts()) +
                     ", got " + std::to_string(host));
  }
  const Placement placement(found->second.vocabulary_size, num_hosts(),
                            state_->configuration.sharding);
  std::vector<std::int64_t> ids;
  for (std::int64_t local = 0; local < placement.shard_rows(host); ++local)
    ids.push_back(placement.global_row(host, local));
  return ids;
}

wire::TPUEmbeddingConfiguration TPUEmbedding::configuration() const {
  return describe(state_->configuration);
}
const TPUEmbedding::Tables& TPUEmbedding::table_to_config() const noexcept {
  return state_->configuration.tables;
}
const TPUEmbedding::Features& TPUEmbedding::feature_to_config() const noexcept {
  return state_->configuration.features;
}
Mode TPUEmbedding::mode() const noexcept { return state_->configuration.mode; }
std::int64_t TPUEmbedding::batch_size() const noexcept { return state_->configuration.batch_size; }
std::int64_t TPUEmbedding::batch_size_per_core() const noexcept {
  return state_->configuration.batch_size_per_core();
}
std::int32_t TPUEmbedding::num_hosts() const noexcept {
  return state_->configuration.options.device_config.num_hosts;
}
std::int32_t TPUEmbedding::num_cores() const noexcept { return state_->cores(); }

Embedding& TPUEmbedding::engine() noexcept { return state_->engine; }
const Embedding& TPUEmbedding::engine() const noexcept { return state_->engine; }

}  // namespace embertable::v1
