#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace embertable::wire {

// The messages that describe one table's optimizer, with the names and defaults of TensorFlow's
// optimization_parameters.proto, as plain values. `optimizer_messages.h` turns optimizers into them
// and back; `tpu_embedding_configuration.h` writes and reads their bytes.

/// Unknown fields of a message in their received bytes: kept, and written behind the known ones.
using UnknownFields = std::string;

/// A google.protobuf.FloatValue: a float that may be absent if it is in an optional.
struct FloatValue {
  FloatValue() = default;
  FloatValue(float number) : value(number) {}  // NOLINT: a number is a value
  float value = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const FloatValue&, const FloatValue&) = default;
};

/// Limits of a number. An absent limit is infinite.
struct ClippingLimits {
  std::optional<FloatValue> lower;
  std::optional<FloatValue> upper;
  UnknownFields unknown_fields;
  friend bool operator==(const ClippingLimits&, const ClippingLimits&) = default;
};

/// Quantization of what is looked up: num_buckets values between the limits.
struct SimulatedQuantization {
  bool enabled = false;
  std::optional<ClippingLimits> clipping_limits;
  std::int32_t num_buckets = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const SimulatedQuantization&, const SimulatedQuantization&) = default;
};

/// A number that every application of gradients supplies anew: the position in its list of inputs.
struct OptimizerDynamicInput {
  std::int32_t tag = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const OptimizerDynamicInput&, const OptimizerDynamicInput&) = default;
};

/// A learning rate.
struct LearningRate {
  /// The constant, or the input that gives the rate; neither: no rate.
  std::variant<std::monostate, float, OptimizerDynamicInput> learning_rate;
  UnknownFields unknown_fields;
  friend bool operator==(const LearningRate&, const LearningRate&) = default;
};

/// Turns a feature on or off; the feature says what kUnspecified means.
enum class Status : std::int32_t { kUnspecified = 0, kEnabled = 1, kDisabled = 2 };

/// Mirrors GradientAccumulationStatus.Status. Unspecified means enabled.
using GradientAccumulationStatus = Status;

/// Mirrors LowDimensionalPackingStatus.Status. Unspecified means disabled.
using LowDimensionalPackingStatus = Status;

/// Replicates rows that are asked for often. It affects placement alone: results are the same.
struct HotIdReplicationConfiguration {
  enum class Status : std::int32_t {
    kUnspecified = 0,
    kEnabled = 1,
    kDisabled = 2,
    kMigrationOnly = 3
  };
  Status status = Status::kUnspecified;
  UnknownFields unknown_fields;
  friend bool operator==(const HotIdReplicationConfiguration&,
                         const HotIdReplicationConfiguration&) = default;
};

// Parameters by algorithm follow, fields as in the proto. docs/optimizers.md has the formulas.

struct AdagradParameters {
  UnknownFields unknown_fields;
  friend bool operator==(const AdagradParameters&, const AdagradParameters&) = default;
};

struct AdagradMomentumParameters {
  float momentum = 0;
  bool use_nesterov = false;
  float exponent = 0;
  float beta2 = 0;
  float epsilon = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const AdagradMomentumParameters&,
                         const AdagradMomentumParameters&) = default;
};

/// Parameters of a bounded Adagrad. A value of 0 turns either maximum off.
struct BoundedAdagradParameters {
  bool update_accumulator_first = false;
  float max_var_update = 0;
  float max_accumulator = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const BoundedAdagradParameters&,
                         const BoundedAdagradParameters&) = default;
};

struct FrequencyAwareAdagradParameters {
  float l1_regularization_strength = 0;
  float l2_regularization_strength = 0;
  float max_lr_multiplier = 0;
  float probability_exponent = 0;
  float accumulator_decay = 0;
  float initial_accumulator_value = 0;
  std::optional<OptimizerDynamicInput> step_counter;  ///< absent: input 0
  UnknownFields unknown_fields;
  friend bool operator==(const FrequencyAwareAdagradParameters&,
                         const FrequencyAwareAdagradParameters&) = default;
};

struct StochasticGradientDescentParameters {
  UnknownFields unknown_fields;
  friend bool operator==(const StochasticGradientDescentParameters&,
                         const StochasticGradientDescentParameters&) = default;
};

struct FtrlParameters {
  float l1 = 0;
  float l2 = 0;
  float lr_power = 0;
  bool multiply_linear_by_lr = false;
  float beta = 0;
  bool allow_zero_accumulator = false;
  UnknownFields unknown_fields;
  friend bool operator==(const FtrlParameters&, const FtrlParameters&) = default;
};

struct AdamParameters {
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  bool use_non_lazy_adam = false;
  bool use_sum_inside_sqrt = false;
  UnknownFields unknown_fields;
  friend bool operator==(const AdamParameters&, const AdamParameters&) = default;
};

struct MomentumParameters {
  float momentum = 0;
  bool use_nesterov = false;
  UnknownFields unknown_fields;
  friend bool operator==(const MomentumParameters&, const MomentumParameters&) = default;
};

struct LionParameters {
  float beta1 = 0;
  float beta2 = 0;
  bool use_non_lazy_lion = false;
  UnknownFields unknown_fields;
  friend bool operator==(const LionParameters&, const LionParameters&) = default;
};

struct RmsPropParameters {
  float rho = 0;
  float momentum = 0;
  float epsilon = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const RmsPropParameters&, const RmsPropParameters&) = default;
};

struct CenteredRmsPropParameters {
  float rho = 0;
  float momentum = 0;
  float epsilon = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const CenteredRmsPropParameters&,
                         const CenteredRmsPropParameters&) = default;
};

struct MdlAdagradLightParameters {
  float l2 = 0;
  float lr_power = 0;
  float min_servable_mdl_benefit = 0;
  float mdl_mix_in_margin = 0;
  float mdl_benefit_rampup_coeff = 0;
  float mdl_min_weight = 0;
  float benefit_revisit_scale = 0;
  float max_event_benefit = 0;
  float max_total_benefit = 0;
  float mdl_hard_limit = 0;
  bool hard_limit_min_benefit = false;
  bool mdl_regularize = false;
  UnknownFields unknown_fields;
  friend bool operator==(const MdlAdagradLightParameters&,
                         const MdlAdagradLightParameters&) = default;
};

struct AdadeltaParameters {
  float rho = 0;
  float epsilon = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const AdadeltaParameters&, const AdadeltaParameters&) = default;
};

struct ProximalAdagradParameters {
  float l1 = 0;
  float l2 = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const ProximalAdagradParameters&,
                         const ProximalAdagradParameters&) = default;
};

struct OnlineYogiParameters {
  float l1 = 0;
  float l2 = 0;
  float beta2 = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const OnlineYogiParameters&, const OnlineYogiParameters&) = default;
};

struct ProximalYogiParameters {
  float l1 = 0;
  float l2 = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const ProximalYogiParameters&, const ProximalYogiParameters&) = default;
};

struct FrequencyEstimatorParameters {
  float tau = 0;
  float max_delta = 0;
  float outlier_threshold = 0;
  float weight_exponent = 0;
  UnknownFields unknown_fields;
  friend bool operator==(const FrequencyEstimatorParameters&,
                         const FrequencyEstimatorParameters&) = default;
};

struct UserDefinedProgramParameters {
  /// A serialized xla.HloModuleProto, of which only the program shape is read.
  std::optional<std::string> program;
  UnknownFields unknown_fields;
  friend bool operator==(const UserDefinedProgramParameters&,
                         const UserDefinedProgramParameters&) = default;
};

struct AssignParameters {
  UnknownFields unknown_fields;
  friend bool operator==(const AssignParameters&, const AssignParameters&) = default;
};

/// Says how a gradient changes the rows of a table. Source: TF optimization_parameters.proto.
struct OptimizationParameters {
  std::optional<ClippingLimits> clipping_limits;  ///< limits of rows
  std::optional<ClippingLimits> gradient_clipping_limits;
  std::optional<LearningRate> learning_rate;
  float weight_decay_factor = 0;
  GradientAccumulationStatus gradient_accumulation_status = Status::kUnspecified;
  std::optional<HotIdReplicationConfiguration> hot_id_replication_configuration;
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<SimulatedQuantization> simulated_quantization;
  LowDimensionalPackingStatus low_dimensional_packing_status = Status::kUnspecified;

  /// The algorithm; std::monostate: none.
  std::variant<std::monostate, AdagradParameters, StochasticGradientDescentParameters,
               FtrlParameters, AdamParameters, MomentumParameters, RmsPropParameters,
               CenteredRmsPropParameters, MdlAdagradLightParameters, AdadeltaParameters,
               ProximalAdagradParameters, BoundedAdagradParameters, OnlineYogiParameters,
               ProximalYogiParameters, FrequencyEstimatorParameters, UserDefinedProgramParameters,
               AssignParameters, AdagradMomentumParameters, LionParameters,
               FrequencyAwareAdagradParameters>
      parameters;

  UnknownFields unknown_fields;
  friend bool operator==(const OptimizationParameters&, const OptimizationParameters&) = default;
};

/// One variable that a table keeps for its rows: visible to the caller, or internal to the
/// algorithm, which fills it with a constant.
struct StateVariableSpecification {
  struct UserDefined {
    UnknownFields unknown_fields;
    friend bool operator==(const UserDefined&, const UserDefined&) = default;
  };
  struct FillWithConstant {
    double initial_value = 0;
    UnknownFields unknown_fields;
    friend bool operator==(const FillWithConstant&, const FillWithConstant&) = default;
  };
  std::string name;
  std::variant<std::monostate, UserDefined, FillWithConstant> usage;
  UnknownFields unknown_fields;
  friend bool operator==(const StateVariableSpecification&,
                         const StateVariableSpecification&) = default;
};

}  // namespace embertable::wire
