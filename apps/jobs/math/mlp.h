#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "embertable/checkpoint.h"
#include "kernels/level.h"

namespace embertable::jobs {

/// Sizes of a network. Its inputs are concatenated in front of the first hidden layer.
struct MlpShape {
  std::vector<std::int64_t> inputs;  ///< columns of each input
  std::vector<std::int64_t> hidden;  ///< outputs of each hidden layer; empty if there is no input

  std::int64_t columns() const noexcept;  ///< columns of all inputs together
};

/// How a step uses the gradients of a network: Adagrad with this initial accumulator.
struct MlpOptimizer {
  double learning_rate = 0.01;
  double initial_accumulator = 0.1;
  double regularization = 0;  ///< a weight times this is added to its gradient; not for biases
};

/// Fully connected layers with ReLU between them, and one output for each sample, a logit:
///   h[0] = inputs,   h[l + 1] = max(0, h[l] * weight[l] + bias[l]),
///   logit = bias + given + <h[last], output>
/// With neither inputs nor hidden layers the logit is bias + given.
///
/// Samples come in blocks of up to 256. Calls for blocks with different numbers may run at once.
/// The arithmetic is binary32: each sum over columns or samples in their order, the sum of the
/// output layer in 16 lanes; gradients of blocks are summed in the order of their numbers. Threads,
/// hosts and SIMD level do not affect result bits.
class Mlp {
 public:
  /// Weights start uniform in +-sqrt(6 / layer's inputs), keyed by seed, layer and place; biases
  /// start at zero except for the output's. Has memory for `max_blocks` blocks of a step.
  Mlp(MlpShape shape, const MlpOptimizer& optimizer, std::uint64_t seed, float bias,
      std::int64_t max_blocks, SimdLevel level = simd_level());

  /// Takes the memory for gradients, once. Needed before `backward`.
  void prepare_training();

  /// Computes logits[s] = given in logits[s] + output of the network for the inputs, [samples,
  /// columns] each.
  void forward(std::int64_t block, std::int64_t samples, std::span<float* const> inputs,
               float* logits) noexcept;

  /// Notes the gradients of the weights, given the slopes of the loss by the logits, and replaces
  /// the inputs by their gradients plus `regularization` times the input. Requires: `forward` of
  /// the same block.
  void backward(std::int64_t block, std::int64_t samples, std::span<float* const> inputs,
                const float* slopes, float regularization) noexcept;

  /// Returns the gradients of the weights that `backward` noted for a block, which may be replaced.
  /// Requires: training is prepared.
  std::span<float> gradients(std::int64_t block) noexcept {
    return {memory_of(block).gradients, values_.size()};
  }

  /// Steps with the gradients of blocks [0, blocks), at `rate` times the learning rate.
  void step(std::int64_t blocks, double rate) noexcept;

  std::int64_t parameters() const noexcept { return static_cast<std::int64_t>(values_.size()); }

  /// Saves "PREFIX.layer1.weight" [inputs, outputs], "PREFIX.layer1.bias" [outputs], ...,
  /// "PREFIX.output.weight", "PREFIX.output.bias" [1], and each with the suffix ".accumulator".
  void save(const std::string& prefix, CallerState& state) const;

  /// Checks what `save` saved of a network of this shape in the step of this directory. Throws
  /// DataLoss as saved_parameter.
  static void check_saved(const MlpShape& shape, const std::string& prefix,
                          const CallerState& state, const std::filesystem::path& directory);

  /// Takes what `save` saved in the step of this directory. Throws DataLoss as saved_parameter.
  void restore(const std::string& prefix, const CallerState& state,
               const std::filesystem::path& directory);

 private:
  struct Layer {
    std::int64_t inputs, outputs;
    std::size_t weight, bias;     ///< where they start among the parameters
    std::size_t transposed;       ///< where [outputs, inputs] starts in transposed_
    std::size_t outcome, slopes;  ///< where [256, outputs] start among activations of a block
  };
  struct NamedShape {
    std::string name;
    std::vector<std::int64_t> shape;
    bool regularized;
  };
  struct Parameter : NamedShape {
    std::size_t begin, size;
  };
  struct BlockMemory {
    float* activations;  ///< outcomes and slopes of the hidden layers
    float* gradients;    ///< laid out like the parameters
  };

  static std::vector<NamedShape> parameters_of(const MlpShape& shape);
  void add_layer(std::int64_t inputs, std::int64_t outputs);
  void draw_weights(std::uint64_t seed);
  void transpose() noexcept;
  BlockMemory memory_of(std::int64_t block) noexcept;
  void first_layer(std::int64_t samples, std::span<float* const> inputs, float* out) const noexcept;
  void output_gradients(const BlockMemory& memory, std::int64_t samples,
                        const float* slopes) const noexcept;
  void hidden_gradients(const Layer& layer, const Layer& before, const BlockMemory& memory,
                        std::int64_t samples) const noexcept;
  void first_gradients(const BlockMemory& memory, std::int64_t samples,
                       std::span<float* const> inputs, float regularization) const noexcept;
  void weight_gradient(const float* x, std::int64_t x_columns, const float* slopes,
                       std::int64_t outputs, std::int64_t samples, float* out) const noexcept;
  void sum_samples(const float* slopes, std::int64_t outputs, std::int64_t samples,
                   float* out) const noexcept;

  MlpShape shape_;
  MlpOptimizer optimizer_;
  SimdLevel level_;
  std::vector<Layer> layers_;  ///< hidden ones
  std::vector<Parameter> named_;
  std::size_t output_ = 0, output_bias_ = 0;
  std::vector<float> values_, accumulators_;
  std::vector<float> transposed_;      ///< weights of the hidden layers, for the backward pass
  std::size_t block_activations_ = 0;  ///< floats
  std::vector<float> activations_;     ///< [blocks, block_activations_]
  std::size_t max_blocks_ = 0;
  std::vector<float> gradients_;  ///< [blocks, parameters], empty until training is prepared
};

}  // namespace embertable::jobs
