#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/config.h"
#include "embertable/optimizer.h"
#include "embertable/tensorflow/optimization_parameters.h"
#include "embertable/version.h"

namespace embertable::wire {

// Conversion of optimizers to messages and back, and what a message says of the state that its
// algorithm keeps.

/// Input positions of a dynamic rate and a dynamic step counter; -1: none.
struct OptimizerTags {
  std::int32_t learning_rate = -1;
  std::int32_t step_counter = -1;
};

/// Returns the message of an optimizer. The message has no place for first values of slots, nor for
/// a step counter of a rule that reads none, so they are left out. A user_defined_program has no
/// program in it, since ours is a function. Throws NotImplemented naming the rule if the proto does
/// not have it; ValueError for a dynamic rate without a tag, or a frequency-aware Adagrad without
/// one for its step counter. Source: TF tpu_embedding_v2_utils.py, _set_optimization_parameters.
EMBERTABLE_API OptimizationParameters to_message(const Optimizer& optimizer,
                                                 const OptimizerTags& tags = {});

/// Returns the optimizer that a message stands for, rates and step counters taken from
/// `dynamic_inputs` by their tags. Accumulators start at the rule's own value, which the message
/// does not have. Throws ValueError for no algorithm, no rate, a tag that is not among the inputs,
/// or what Optimizer's constructor refuses; NotImplemented for a user_defined_program, and for MDL
/// Adagrad Light with the reason that its rule gives.
EMBERTABLE_API Optimizer
to_optimizer(const OptimizationParameters& message,
             std::span<const embertable::LearningRate> dynamic_inputs = {});

/// Returns the message of a quantization, enabled.
EMBERTABLE_API SimulatedQuantization to_message(const QuantizationConfig& quantization);

/// Returns the quantization of a message, none unless enabled. Throws ValueError for absent limits,
/// and what `validate` throws.
EMBERTABLE_API std::optional<QuantizationConfig> to_quantization(
    const OptimizationParameters& message);

/// Returns the name that the algorithm has in the operations that load and retrieve its state:
/// "Adagrad", "ADAM", "StochasticGradientDescent". Throws ValueError for no algorithm.
EMBERTABLE_API std::string_view algorithm_name(const OptimizationParameters& message);

/// True if gradients of a row are summed before its step. Throws ValueError for no algorithm, and
/// naming it if that takes more variables than there may be.
EMBERTABLE_API bool uses_gradient_accumulation(const OptimizationParameters& message);

/// Returns the variables that a table keeps for each of its rows: "parameters", the slots in the
/// order of the operations that load them, and, hidden, "gradient_accumulators" if gradients are
/// summed. Slots of a user_defined_program are counted by its program's shape. Throws ValueError
/// like the functions above, and for a program whose numbers of inputs and outputs do not fit,
/// naming both. Source: TF tpu_embedding_optimization_parameters_utils.cc,
/// GetOptimizationAlgorithmStateVariables.
EMBERTABLE_API std::vector<StateVariableSpecification> state_variables(
    const OptimizationParameters& message);

/// Maximum number of slots that a row may have beside it, gradient_accumulators included.
inline constexpr std::size_t kMaxAuxiliary = 7;

}  // namespace embertable::wire
