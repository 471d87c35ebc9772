#include "apps/jobs/math/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "apps/jobs/math/dense_kernels.h"
#include "apps/jobs/spec/model.h"
#include "base/assert.h"
#include "base/random.h"

namespace embertable::jobs {
namespace {

DenseTensor tensor_of(const std::vector<std::int64_t>& shape, const float* values,
                      std::size_t size) {
  DenseTensor tensor{.dtype = "F32", .shape = shape, .bytes = std::string(size * 4, '\0')};
  std::memcpy(tensor.bytes.data(), values, tensor.bytes.size());
  return tensor;
}

}  // namespace

std::int64_t MlpShape::columns() const noexcept {
  return std::accumulate(inputs.begin(), inputs.end(), std::int64_t{0});
}

Mlp::Mlp(MlpShape shape, const MlpOptimizer& optimizer, std::uint64_t seed, float bias,
         std::int64_t max_blocks, SimdLevel level)
    : shape_(std::move(shape)), optimizer_(optimizer), level_(level) {
  EMBERTABLE_ASSERT(shape_.inputs.empty() == shape_.hidden.empty());
  std::size_t size = 0;
  for (NamedShape& parameter : parameters_of(shape_)) {
    const auto of_it = static_cast<std::size_t>(std::accumulate(
        parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>()));
    named_.push_back({std::move(parameter), size, of_it});
    size += of_it;
  }
  values_.resize(size);
  std::int64_t columns = shape_.columns();
  for (const std::int64_t outputs : shape_.hidden) {
    add_layer(columns, outputs);
    columns = outputs;
  }
  if (!layers_.empty()) output_ = named_[2 * layers_.size()].begin;
  output_bias_ = named_.back().begin;
  draw_weights(seed);
  values_[output_bias_] = bias;
  accumulators_.assign(values_.size(), static_cast<float>(optimizer_.initial_accumulator));
  const auto blocks = static_cast<std::size_t>(max_blocks);
  activations_.resize(blocks * block_activations_);
  max_blocks_ = blocks;
  transpose();
}

void Mlp::prepare_training() { gradients_.resize(max_blocks_ * values_.size()); }

/// Lists weight and bias of each hidden layer, then those of the output.
std::vector<Mlp::NamedShape> Mlp::parameters_of(const MlpShape& shape) {
  std::vector<NamedShape> parameters;
  std::int64_t columns = shape.columns();
  for (std::size_t l = 0; l < shape.hidden.size(); ++l) {
    const std::string name = fmt::format("layer{}", l + 1);
    parameters.push_back({name + ".weight", {columns, shape.hidden[l]}, true});
    parameters.push_back({name + ".bias", {shape.hidden[l]}, false});
    columns = shape.hidden[l];
  }
  if (!shape.hidden.empty()) parameters.push_back({"output.weight", {columns}, true});
  parameters.push_back({"output.bias", {1}, false});
  return parameters;
}

void Mlp::add_layer(std::int64_t inputs, std::int64_t outputs) {
  const auto block = static_cast<std::size_t>(outputs * kBlockSamples);
  layers_.push_back({.inputs = inputs,
                     .outputs = outputs,
                     .weight = named_[2 * layers_.size()].begin,
                     .bias = named_[2 * layers_.size() + 1].begin,
                     .transposed = transposed_.size(),
                     .outcome = block_activations_,
                     .slopes = block_activations_ + block});
  transposed_.resize(transposed_.size() + static_cast<std::size_t>(inputs * outputs));
  block_activations_ += 2 * block;
}

void Mlp::draw_weights(std::uint64_t seed) {
  for (const Parameter& parameter : named_) {
    if (!parameter.regularized) continue;
    const std::uint64_t stream = stream_of(seed, "dense." + parameter.name);
    const std::int64_t inputs = parameter.shape.front();
    const std::int64_t outputs = static_cast<std::int64_t>(parameter.size) / inputs;
    const auto limit = static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs)));
    float* value = values_.data() + parameter.begin;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const RandomRow row(stream, static_cast<std::uint64_t>(i));
      for (std::int64_t o = 0; o < outputs; ++o)
        *value++ = (2 * uniform_float(row.bits(static_cast<std::uint64_t>(o))) - 1) * limit;
    }
  }
}

/// Transposes a few inputs at a time, so that what is read and written stays in the cache.
void Mlp::transpose() noexcept {
  constexpr std::int64_t kTile = 16;
  for (const Layer& layer : layers_) {
    const float* from = values_.data() + layer.weight;
    float* to = transposed_.data() + layer.transposed;
    for (std::int64_t first = 0; first < layer.inputs; first += kTile) {
      const std::int64_t last = std::min(first + kTile, layer.inputs);
      for (std::int64_t o = 0; o < layer.outputs; ++o) {
        for (std::int64_t i = first; i < last; ++i)
          to[o * layer.inputs + i] = from[i * layer.outputs + o];
      }
    }
  }
}

Mlp::BlockMemory Mlp::memory_of(std::int64_t block) noexcept {
  const auto index = static_cast<std::size_t>(block);
  return {activations_.data() + index * block_activations_,
          gradients_.data() + index * values_.size()};
}

void Mlp::forward(std::int64_t block, std::int64_t samples, std::span<float* const> inputs,
                  float* logits) noexcept {
  for (std::int64_t s = 0; s < samples; ++s) logits[s] = values_[output_bias_] + logits[s];
  if (layers_.empty()) return;
  float* memory = memory_of(block).activations;
  first_layer(samples, inputs, memory + layers_.front().outcome);
  for (std::size_t l = 1; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    product({.rows = samples,
             .columns = layer.outputs,
             .depth = layer.inputs,
             .a = memory + layers_[l - 1].outcome,
             .a_row = layer.inputs,
             .b = values_.data() + layer.weight,
             .b_depth = layer.outputs,
             .c = memory + layer.outcome,
             .c_row = layer.outputs,
             .start = values_.data() + layer.bias,
             .relu = true},
            level_);
  }
  add_dots({.rows = samples,
            .columns = layers_.back().outputs,
            .a = memory + layers_.back().outcome,
            .b = values_.data() + output_,
            .out = logits},
           level_);
}

/// Computes the inputs one after the other, each adding to the sums of those before it.
void Mlp::first_layer(std::int64_t samples, std::span<float* const> inputs,
                      float* out) const noexcept {
  const Layer& layer = layers_.front();
  const float* weight = values_.data() + layer.weight;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t columns = shape_.inputs[i];
    product({.rows = samples,
             .columns = layer.outputs,
             .depth = columns,
             .a = inputs[i],
             .a_row = columns,
             .b = weight,
             .b_depth = layer.outputs,
             .c = out,
             .c_row = layer.outputs,
             .start = i == 0 ? values_.data() + layer.bias : out,
             .start_row = i == 0 ? 0 : layer.outputs,
             .relu = i + 1 == inputs.size()},
            level_);
    weight += columns * layer.outputs;
  }
}

void Mlp::backward(std::int64_t block, std::int64_t samples, std::span<float* const> inputs,
                   const float* slopes, float regularization) noexcept {
  const BlockMemory memory = memory_of(block);
  sum_samples(slopes, 1, samples, memory.gradients + output_bias_);
  if (layers_.empty()) return;
  output_gradients(memory, samples, slopes);
  for (std::size_t l = layers_.size() - 1; l > 0; --l)
    hidden_gradients(layers_[l], layers_[l - 1], memory, samples);
  first_gradients(memory, samples, inputs, regularization);
}

void Mlp::output_gradients(const BlockMemory& memory, std::int64_t samples,
                           const float* slopes) const noexcept {
  const Layer& last = layers_.back();
  float* outcome = memory.activations + last.outcome;
  product({.rows = 1,
           .columns = last.outputs,
           .depth = samples,
           .a = slopes,
           .b = outcome,
           .b_depth = last.outputs,
           .c = memory.gradients + output_},
          level_);
  product({.rows = samples,
           .columns = last.outputs,
           .depth = 1,
           .a = slopes,
           .a_row = 1,
           .b = values_.data() + output_,
           .c = memory.activations + last.slopes,
           .c_row = last.outputs,
           .gate = outcome,
           .gate_row = last.outputs},
          level_);
}

void Mlp::hidden_gradients(const Layer& layer, const Layer& before, const BlockMemory& memory,
                           std::int64_t samples) const noexcept {
  float* activations = memory.activations;
  const float* slopes = activations + layer.slopes;
  weight_gradient(activations + before.outcome, layer.inputs, slopes, layer.outputs, samples,
                  memory.gradients + layer.weight);
  sum_samples(slopes, layer.outputs, samples, memory.gradients + layer.bias);
  product({.rows = samples,
           .columns = layer.inputs,
           .depth = layer.outputs,
           .a = slopes,
           .a_row = layer.outputs,
           .b = transposed_.data() + layer.transposed,
           .b_depth = layer.inputs,
           .c = activations + before.slopes,
           .c_row = layer.inputs,
           .gate = activations + before.outcome,
           .gate_row = layer.inputs},
          level_);
}

void Mlp::first_gradients(const BlockMemory& memory, std::int64_t samples,
                          std::span<float* const> inputs, float regularization) const noexcept {
  const Layer& layer = layers_.front();
  const float* slopes = memory.activations + layer.slopes;
  sum_samples(slopes, layer.outputs, samples, memory.gradients + layer.bias);
  std::int64_t before = 0;  // columns of earlier inputs
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t columns = shape_.inputs[i];
    weight_gradient(inputs[i], columns, slopes, layer.outputs, samples,
                    memory.gradients + layer.weight + before * layer.outputs);
    product({.rows = samples,
             .columns = columns,
             .depth = layer.outputs,
             .a = slopes,
             .a_row = layer.outputs,
             .b = transposed_.data() + layer.transposed + before,
             .b_depth = layer.inputs,
             .c = inputs[i],
             .c_row = columns,
             .start = regularization != 0 ? inputs[i] : nullptr,
             .start_row = columns,
             .scale = regularization},
            level_);
    before += columns;
  }
}

/// Computes out[i][o] = the sum over the samples of x[s][i] * slopes[s][o].
void Mlp::weight_gradient(const float* x, std::int64_t x_columns, const float* slopes,
                          std::int64_t outputs, std::int64_t samples, float* out) const noexcept {
  product({.rows = x_columns,
           .columns = outputs,
           .depth = samples,
           .a = x,
           .a_row = 1,
           .a_depth = x_columns,
           .b = slopes,
           .b_depth = outputs,
           .c = out,
           .c_row = outputs},
          level_);
}

void Mlp::sum_samples(const float* slopes, std::int64_t outputs, std::int64_t samples,
                      float* out) const noexcept {
  static constexpr float kOne = 1;
  product({.rows = 1,
           .columns = outputs,
           .depth = samples,
           .a = &kOne,
           .a_depth = 0,
           .b = slopes,
           .b_depth = outputs,
           .c = out},
          level_);
}

void Mlp::step(std::int64_t blocks, double rate) noexcept {
  for (const Parameter& parameter : named_) {
    adagrad_step({.size = static_cast<std::int64_t>(parameter.size),
                  .weights = values_.data() + parameter.begin,
                  .accumulators = accumulators_.data() + parameter.begin,
                  .gradients = gradients_.data() + parameter.begin,
                  .parts = blocks,
                  .part_stride = parameters(),
                  .rate = static_cast<float>(rate * optimizer_.learning_rate),
                  .regularization =
                      parameter.regularized ? static_cast<float>(optimizer_.regularization) : 0},
                 level_);
  }
  transpose();
}

void Mlp::save(const std::string& prefix, CallerState& state) const {
  for (const Parameter& p : named_) {
    const std::string name = prefix + "." + p.name;
    state.tensors[name] = tensor_of(p.shape, values_.data() + p.begin, p.size);
    state.tensors[name + ".accumulator"] =
        tensor_of(p.shape, accumulators_.data() + p.begin, p.size);
  }
}

void Mlp::check_saved(const MlpShape& shape, const std::string& prefix, const CallerState& state,
                      const std::filesystem::path& directory) {
  for (const NamedShape& p : parameters_of(shape)) {
    const std::string name = prefix + "." + p.name;
    saved_parameter(state, name, "F32", p.shape, directory);
    saved_parameter(state, name + ".accumulator", "F32", p.shape, directory);
  }
}

void Mlp::restore(const std::string& prefix, const CallerState& state,
                  const std::filesystem::path& directory) {
  const auto copy = [&](const std::string& name, const Parameter& p, float* out) {
    const DenseTensor& tensor = saved_parameter(state, name, "F32", p.shape, directory);
    std::memcpy(out, tensor.bytes.data(), tensor.bytes.size());
  };
  for (const Parameter& p : named_) {
    const std::string name = prefix + "." + p.name;
    copy(name, p, values_.data() + p.begin);
    copy(name + ".accumulator", p, accumulators_.data() + p.begin);
  }
  transpose();
}

}  // namespace embertable::jobs
