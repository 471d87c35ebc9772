#include "apps/jobs/models/ctr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "apps/jobs/math/dense_kernels.h"
#include "apps/jobs/math/metrics.h"
#include "apps/jobs/spec/state_tensors.h"
#include "base/math.h"
#include "kernels/logistic/logistic.h"

namespace embertable::jobs {
namespace {

/// Returns the logit of the share of ones, with half a sample added to each label.
float constant_logit(const Samples& samples) {
  std::int64_t ones = 0;
  for (std::int64_t s = 0; s < samples.size(); ++s) ones += samples.label(s) == 1 ? 1 : 0;
  const auto zeros = static_cast<double>(samples.size() - ones);
  return static_cast<float>(math::log((static_cast<double>(ones) + 0.5) / (zeros + 0.5)));
}

std::vector<float> labels_of(const Samples& samples) {
  std::vector<float> labels;
  for (std::int64_t s = 0; s < samples.size(); ++s) labels.push_back(samples.label(s));
  return labels;
}

/// Name of the tensor with the means of data.numbers, then their standard deviations.
constexpr const char* kNumbers = "numbers";

/// Makes numbers of samples have mean 0 and standard deviation 1 in what trains.
class Standard {
 public:
  /// Takes mean and deviation from samples whose numbers begin at a cell.
  Standard(const Samples& samples, std::int64_t cell, std::int64_t count)
      : cell_(cell), values_(2 * count) {
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = 0, squares = 0, known = 0;
      const auto each = [&](const auto& add) {
        for (std::int64_t s = 0; s < samples.size(); ++s)
          if (const double x = number(samples, s, i); !std::isnan(x)) add(x);
      };
      each([&](double x) { sum += x, known += 1; });
      const double mean = known > 0 ? sum / known : 0;
      each([&](double x) { squares += (x - mean) * (x - mean); });
      values_[i] = mean;
      values_[count + i] = known > 0 ? std::sqrt(squares / known) : 0;
    }
  }

  std::int64_t count() const noexcept { return std::ssize(values_) / 2; }

  /// Writes the numbers of samples, [samples, count]; one that a sample lacks counts as the mean,
  /// and so do all of a column without deviation.
  void write(const Samples& samples, std::int64_t first, std::int64_t size, float* out) const {
    for (std::int64_t s = first; s < first + size; ++s) {
      for (std::int64_t i = 0; i < count(); ++i) {
        const double x = number(samples, s, i);
        const double deviation = values_[count() + i];
        *out++ =
            std::isnan(x) || deviation == 0 ? 0 : static_cast<float>((x - values_[i]) / deviation);
      }
    }
  }

  void save(CallerState& state) const {
    if (count() > 0) state.tensors[kNumbers] = saved_tensor(values_, {2, count()});
  }
  void restore(const SavedParts& saved) {
    if (count() == 0) return;
    const DenseTensor& tensor = checked(saved, count());
    std::memcpy(values_.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  static const DenseTensor& checked(const SavedParts& saved, std::int64_t count) {
    return saved_parameter(saved.state, kNumbers, "F64", {2, count}, saved.directory());
  }

 private:
  double number(const Samples& samples, std::int64_t sample, std::int64_t i) const noexcept {
    return samples.number(sample, cell_ + i * DataSet::kNumberCells);
  }

  std::int64_t cell_;
  std::vector<double> values_;  ///< means, then deviations
};

class Ctr final : public RecordsModel {
 public:
  Ctr(const Job& job, const CtrSpec& spec, DataSet data)
      : RecordsModel(job, spec, std::move(data)),
        job_(job),
        spec_(spec),
        constant_(constant_logit(samples_of(Part::kTraining))),
        linear_(inputs_of(spec.linear)),
        deep_(inputs_of(spec.deep)),
        standard_(samples_of(Part::kTraining), this->data().number_cell(), this->data().numbers),
        mlp_(shape_of(deep_, this->data().numbers, spec.hidden), spec.dense, job.seed, constant_,
             max_blocks()),
        numbers_(max_blocks() * kBlockSamples * this->data().numbers) {}

  std::int64_t begin_epoch(std::int32_t epoch) override {
    mlp_.prepare_training();
    return RecordsModel::begin_epoch(epoch);
  }

  double gradients(const Block& block) override {
    float logits[kBlockSamples], slopes[kBlockSamples];
    float* inputs[kMostInputs];
    const std::span<float* const> deep = logits_of(block, epoch_samples(), inputs, logits);
    const double loss = loss_of(block, logits, slopes);
    for (const Input& input : linear_) {
      slope_rows({.rows = block.samples,
                  .columns = input.columns,
                  .x = block.rows[input.feature],
                  .slopes = slopes,
                  .regularization = static_cast<float>(spec_.linear_regularization)},
                 level_);
    }
    mlp_.backward(block.index, block.samples, deep, slopes,
                  static_cast<float>(spec_.regularization));
    return loss;
  }

  std::span<float> dense_gradients(std::int64_t block) override { return mlp_.gradients(block); }

  /// Steps the dense layers at a rate that falls as that of the tables.
  void finish_step(std::int64_t samples, double rate) override {
    const double first = job_.optimizer.learning_rate;
    mlp_.step(blocks_of(samples), first > 0 ? rate / first : 1);
  }

  Measure training_measure(double losses, std::int64_t samples) const override {
    return {"logloss", losses / static_cast<double>(samples)};
  }

  std::vector<Baseline> baselines(Part part) const override {
    const std::vector<float> labels = labels_of(samples_of(part));
    return {{"constant", judge(std::vector<float>(labels.size(), constant_), labels)}};
  }

  void predict(const Block& block, const Samples& samples, float* out) const override {
    float* inputs[kMostInputs];
    logits_of(block, samples, inputs, out);
  }

  std::vector<std::string> score_names() const override { return {"probability", "logit"}; }

  void scores(std::span<const float> logits, std::span<float> out) const override {
    std::vector<float> probabilities(logits.size());
    logistic(
        {.logit = logits.data(), .count = std::ssize(logits), .probability = probabilities.data()},
        level_);
    for (std::size_t s = 0; s < logits.size(); ++s) {
      out[2 * s] = probabilities[s];
      out[2 * s + 1] = logits[s];
    }
  }

  void save(const Embedding& engine, CallerState& state) const override {
    RecordsModel::save(engine, state);
    mlp_.save("model", state);
    standard_.save(state);
  }
  void restore(const SavedParts& saved) override {
    mlp_.restore("model", saved.state, saved.directory());
    standard_.restore(saved);
  }

 private:
  /// The floats that a sample looks up in one feature.
  struct Input {
    std::size_t feature;
    std::int64_t columns;
  };

  std::vector<Input> inputs_of(const std::vector<std::string>& names) const {
    const std::vector<ModelFeature> all = features();
    std::vector<Input> inputs;
    for (const std::string& name : names) {
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const ModelFeature& f) { return f.name == name; });
      inputs.push_back({.feature = static_cast<std::size_t>(found - all.begin()),
                        .columns = found->width * named(job_.tables, found->table).dim});
    }
    return inputs;
  }

  static MlpShape shape_of(const std::vector<Input>& deep, std::int64_t numbers,
                           std::vector<std::int64_t> hidden) {
    MlpShape shape{.inputs = {}, .hidden = std::move(hidden)};
    for (const Input& input : deep) shape.inputs.push_back(input.columns);
    if (numbers > 0) shape.inputs.push_back(numbers);
    return shape;
  }

  bool data_has_samples() const { return data().samples.size() > 0; }

  std::int64_t max_blocks() const {
    return blocks_of(data_has_samples() ? job_.schedule.batch
                                        : std::min(job_.schedule.batch, kMostScored));
  }

  static std::int64_t blocks_of(std::int64_t samples) {
    return (samples + kBlockSamples - 1) / kBlockSamples;
  }

  /// Computes logits. Returns the inputs of the MLP, for which `inputs` has room: the rows of the
  /// deep features, then the numbers of the block's samples, which may be replaced.
  std::span<float* const> logits_of(const Block& block, const Samples& samples, float** inputs,
                                    float* logits) const {
    std::fill_n(logits, block.samples, 0.0f);
    for (const Input& input : linear_) {
      add_dots({.rows = block.samples,
                .columns = input.columns,
                .a = block.rows[input.feature],
                .out = logits},
               level_);
    }
    for (std::size_t i = 0; i < deep_.size(); ++i) inputs[i] = block.rows[deep_[i].feature];
    std::size_t count = deep_.size();
    if (standard_.count() > 0) {
      inputs[count] = numbers_.data() + block.index * kBlockSamples * standard_.count();
      standard_.write(samples, block.first, block.samples, inputs[count++]);
    }
    const std::span<float* const> deep(inputs, count);
    mlp_.forward(block.index, block.samples, deep, logits);
    return deep;
  }

  /// Returns the sum of the losses, and writes their slopes by the logits.
  double loss_of(const Block& block, const float* logits, float* slopes) const {
    float losses[kBlockSamples];
    logistic({.logit = logits, .count = block.samples, .probability = slopes, .loss = losses},
             level_);
    const float* labels = this->labels().data() + block.first;
    double sum = 0;
    for (std::int64_t s = 0; s < block.samples; ++s) {
      sum += static_cast<double>(losses[s]) -
             static_cast<double>(labels[s]) * static_cast<double>(logits[s]);
      slopes[s] -= labels[s];
    }
    return sum;
  }

  Measures judge(std::span<const float> logits, std::span<const float> labels) const override {
    return {{"auc", area_under_curve(logits, labels)}, {"logloss", log_loss(logits, labels)}};
  }

  const Job& job_;
  const CtrSpec& spec_;
  float constant_;  ///< logit of the share of ones in what trains
  static constexpr std::size_t kMostInputs = CtrSpec::kMostFeatures + 1;

  std::vector<Input> linear_, deep_;
  Standard standard_;
  mutable Mlp mlp_;                     ///< predictions need its memory of blocks
  mutable std::vector<float> numbers_;  ///< [blocks, kBlockSamples, numbers]: inputs of the MLP
  SimdLevel level_ = simd_level();
};

/// Returns the features of the job that a key lists.
std::vector<std::string> read_features(TomlSection& section, const std::string& key,
                                       const std::vector<std::string>& known) {
  const std::vector<std::string> names = section.texts(key, {});
  if (names.size() > CtrSpec::kMostFeatures)
    section.refuse_value(key, fmt::format("at most {} features", CtrSpec::kMostFeatures));
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      section.refuse_value(key, fmt::format("a list of features ({})", fmt::join(known, ", ")));
  }
  return names;
}

double read_part(TomlSection& section, const std::string& key, double fallback) {
  const double value = section.number(key, fallback);
  if (!(value >= 0)) section.refuse_value(key, "at least 0");
  return value;
}

}  // namespace

void CtrSpec::read_roles(TomlSection& section, const Job& job) {
  const std::vector<std::string> known = names_of(features());
  linear = jobs::read_features(section, "linear", known);
  for (const std::string& feature : linear) {
    if (dim_of(job, feature) == 1) continue;
    section.refuse("linear", fmt::format("must name features of dim 1, got \"{}\" of dim {}",
                                         feature, dim_of(job, feature)));
  }
  deep = jobs::read_features(section, "deep", known);
  std::vector<std::string> roles = linear;
  roles.insert(roles.end(), deep.begin(), deep.end());
  check_roles(section, "kind", roles);
}

void CtrSpec::read_hidden(TomlSection& section) {
  if (deep.empty() && records().data.numbers.empty()) {
    if (section.has("hidden"))
      section.refuse("hidden", "must be left out, as 'deep' and data.numbers are");
    return;
  }
  const std::vector<double> sizes = section.numbers("hidden");
  for (const double size : sizes) {
    if (!(size >= 1 && size <= kMostOutputs && size == std::floor(size))) {
      section.refuse_value("hidden",
                           fmt::format("sizes of layers, integers from 1 to {}", kMostOutputs));
    }
    hidden.push_back(static_cast<std::int64_t>(size));
  }
  if (hidden.empty()) section.refuse_value("hidden", "at least one size of a layer");
}

void CtrSpec::read_dense(TomlSection section) {
  dense.learning_rate = read_part(section, "learning_rate", dense.learning_rate);
  dense.initial_accumulator = read_part(section, "initial_accumulator", dense.initial_accumulator);
  dense.regularization = read_part(section, "regularization", dense.regularization);
  section.finish();
}

void CtrSpec::read_model(TomlSection& root, const Job& job) {
  RecordsModelSpec::read_features(root, job);
  want_binary_labels();
  TomlSection section = root.section("model");
  section.text("kind");
  read_roles(section, job);
  read_hidden(section);
  regularization = read_part(section, "regularization", 0);
  linear_regularization = read_part(section, "linear_regularization", regularization);
  read_dense(section.section("dense", true));
  section.finish();
}

void CtrSpec::check_parameters(const SavedParts& saved) const {
  MlpShape shape{.inputs = {}, .hidden = hidden};
  for (const std::string& feature : deep) {
    const IdsSpec& ids =
        named(records().ids, named(saved.job.tables, named(features(), feature).table).ids);
    const std::int64_t width = ids.joined() || !ids.rules.separator.empty()
                                   ? 1
                                   : static_cast<std::int64_t>(ids.columns.size());
    shape.inputs.push_back(width * dim_of(saved.job, feature));
  }
  if (const std::int64_t numbers = std::ssize(records().data.numbers); numbers > 0) {
    shape.inputs.push_back(numbers);
    Standard::checked(saved, numbers);
  }
  Mlp::check_saved(shape, "model", saved.state, saved.directory());
}

std::unique_ptr<RecordsModel> CtrSpec::make_of(const Job& job, DataSet data) const {
  return std::make_unique<Ctr>(job, *this, std::move(data));
}

}  // namespace embertable::jobs
