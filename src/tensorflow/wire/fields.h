#pragma once

#include <concepts>
#include <type_traits>

#include "embertable/tensorflow/sparse_core.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"

namespace embertable::wire {

/// One member of a oneof: the variant, of which it is the alternative `Member`.
template <class Variant, class Member>
struct Alternative {
  Variant& of;
};

template <class Member, class Variant>
Alternative<Variant, Member> one(Variant& variant) {
  return {variant};
}

/// Maximum number of repeated messages of a type: two bytes of input can ask for hundreds in
/// memory.
template <class Message>
constexpr std::size_t most_of() {
  return std::same_as<Message, FeatureDescriptor> ? kMaxFeatures : kMaxTables;
}

/// `Message` or `const Message`.
template <class Type, class Message>
concept Is = std::same_as<std::remove_const_t<Type>, Message>;

// each_field(message, f) calls f(number, name, member) for every field by rising number, which is
// the order in which they are written. What is written, read and printed follows from it.

void each_field(Is<FloatValue> auto& m, auto&& f) { f(1, "value", m.value); }

void each_field(Is<ClippingLimits> auto& m, auto&& f) {
  f(1, "lower", m.lower);
  f(2, "upper", m.upper);
}

void each_field(Is<SimulatedQuantization> auto& m, auto&& f) {
  f(1, "enabled", m.enabled);
  f(2, "clipping_limits", m.clipping_limits);
  f(3, "num_buckets", m.num_buckets);
}

void each_field(Is<OptimizerDynamicInput> auto& m, auto&& f) { f(1, "tag", m.tag); }

void each_field(Is<LearningRate> auto& m, auto&& f) {
  f(1, "constant", one<float>(m.learning_rate));
  f(2, "dynamic", one<OptimizerDynamicInput>(m.learning_rate));
}

void each_field(Is<HotIdReplicationConfiguration> auto& m, auto&& f) { f(1, "status", m.status); }

void each_field(Is<AdagradParameters> auto&, auto&&) {}

void each_field(Is<AdagradMomentumParameters> auto& m, auto&& f) {
  f(1, "momentum", m.momentum);
  f(2, "use_nesterov", m.use_nesterov);
  f(3, "exponent", m.exponent);
  f(4, "beta2", m.beta2);
  f(5, "epsilon", m.epsilon);
}

void each_field(Is<BoundedAdagradParameters> auto& m, auto&& f) {
  f(1, "update_accumulator_first", m.update_accumulator_first);
  f(2, "max_var_update", m.max_var_update);
  f(3, "max_accumulator", m.max_accumulator);
}

void each_field(Is<FrequencyAwareAdagradParameters> auto& m, auto&& f) {
  f(1, "l1_regularization_strength", m.l1_regularization_strength);
  f(2, "l2_regularization_strength", m.l2_regularization_strength);
  f(3, "max_lr_multiplier", m.max_lr_multiplier);
  f(4, "probability_exponent", m.probability_exponent);
  f(5, "accumulator_decay", m.accumulator_decay);
  f(6, "initial_accumulator_value", m.initial_accumulator_value);
  f(7, "step_counter", m.step_counter);
}

void each_field(Is<StochasticGradientDescentParameters> auto&, auto&&) {}

void each_field(Is<FtrlParameters> auto& m, auto&& f) {
  f(1, "l1", m.l1);
  f(2, "l2", m.l2);
  f(3, "lr_power", m.lr_power);
  f(6, "multiply_linear_by_lr", m.multiply_linear_by_lr);
  f(7, "beta", m.beta);
  f(8, "allow_zero_accumulator", m.allow_zero_accumulator);
}

void each_field(Is<AdamParameters> auto& m, auto&& f) {
  f(3, "beta1", m.beta1);
  f(4, "beta2", m.beta2);
  f(5, "epsilon", m.epsilon);
  f(8, "use_non_lazy_adam", m.use_non_lazy_adam);
  f(10, "use_sum_inside_sqrt", m.use_sum_inside_sqrt);
}

void each_field(Is<MomentumParameters> auto& m, auto&& f) {
  f(1, "momentum", m.momentum);
  f(2, "use_nesterov", m.use_nesterov);
}

void each_field(Is<LionParameters> auto& m, auto&& f) {
  f(1, "beta1", m.beta1);
  f(2, "beta2", m.beta2);
  f(3, "use_non_lazy_lion", m.use_non_lazy_lion);
}

template <class Message>
requires Is<Message, RmsPropParameters> || Is<Message, CenteredRmsPropParameters>
void each_field(Message& m, auto&& f) {
  f(1, "rho", m.rho);
  f(2, "momentum", m.momentum);
  f(3, "epsilon", m.epsilon);
}

void each_field(Is<MdlAdagradLightParameters> auto& m, auto&& f) {
  f(1, "l2", m.l2);
  f(2, "lr_power", m.lr_power);
  f(3, "min_servable_mdl_benefit", m.min_servable_mdl_benefit);
  f(4, "mdl_mix_in_margin", m.mdl_mix_in_margin);
  f(5, "mdl_benefit_rampup_coeff", m.mdl_benefit_rampup_coeff);
  f(6, "mdl_min_weight", m.mdl_min_weight);
  f(7, "benefit_revisit_scale", m.benefit_revisit_scale);
  f(8, "max_event_benefit", m.max_event_benefit);
  f(9, "max_total_benefit", m.max_total_benefit);
  f(10, "mdl_hard_limit", m.mdl_hard_limit);
  f(11, "hard_limit_min_benefit", m.hard_limit_min_benefit);
  f(12, "mdl_regularize", m.mdl_regularize);
}

void each_field(Is<AdadeltaParameters> auto& m, auto&& f) {
  f(1, "rho", m.rho);
  f(2, "epsilon", m.epsilon);
}

void each_field(Is<ProximalAdagradParameters> auto& m, auto&& f) {
  f(1, "l1", m.l1);
  f(2, "l2", m.l2);
}

void each_field(Is<OnlineYogiParameters> auto& m, auto&& f) {
  f(1, "l1", m.l1);
  f(2, "l2", m.l2);
  f(3, "beta2", m.beta2);
}

void each_field(Is<ProximalYogiParameters> auto& m, auto&& f) {
  f(1, "l1", m.l1);
  f(2, "l2", m.l2);
  f(3, "beta1", m.beta1);
  f(4, "beta2", m.beta2);
  f(5, "epsilon", m.epsilon);
}

void each_field(Is<FrequencyEstimatorParameters> auto& m, auto&& f) {
  f(1, "tau", m.tau);
  f(2, "max_delta", m.max_delta);
  f(3, "outlier_threshold", m.outlier_threshold);
  f(4, "weight_exponent", m.weight_exponent);
}

void each_field(Is<UserDefinedProgramParameters> auto& m, auto&& f) { f(1, "program", m.program); }

void each_field(Is<AssignParameters> auto&, auto&&) {}

void each_field(Is<OptimizationParameters> auto& m, auto&& f) {
  f(2, "clipping_limits", m.clipping_limits);
  f(3, "adagrad", one<AdagradParameters>(m.parameters));
  f(4, "stochastic_gradient_descent", one<StochasticGradientDescentParameters>(m.parameters));
  f(5, "ftrl", one<FtrlParameters>(m.parameters));
  f(6, "adam", one<AdamParameters>(m.parameters));
  f(7, "gradient_clipping_limits", m.gradient_clipping_limits);
  f(8, "momentum", one<MomentumParameters>(m.parameters));
  f(9, "rms_prop", one<RmsPropParameters>(m.parameters));
  f(10, "centered_rms_prop", one<CenteredRmsPropParameters>(m.parameters));
  f(11, "mdl_adagrad_light", one<MdlAdagradLightParameters>(m.parameters));
  f(12, "adadelta", one<AdadeltaParameters>(m.parameters));
  f(13, "learning_rate", m.learning_rate);
  f(14, "proximal_adagrad", one<ProximalAdagradParameters>(m.parameters));
  f(16, "weight_decay_factor", m.weight_decay_factor);
  f(17, "gradient_accumulation_status", m.gradient_accumulation_status);
  f(18, "hot_id_replication_configuration", m.hot_id_replication_configuration);
  f(19, "bounded_adagrad", one<BoundedAdagradParameters>(m.parameters));
  f(20, "online_yogi", one<OnlineYogiParameters>(m.parameters));
  f(21, "proximal_yogi", one<ProximalYogiParameters>(m.parameters));
  f(22, "multiply_weight_decay_factor_by_learning_rate",
    m.multiply_weight_decay_factor_by_learning_rate);
  f(23, "frequency_estimator", one<FrequencyEstimatorParameters>(m.parameters));
  f(24, "user_defined_program", one<UserDefinedProgramParameters>(m.parameters));
  f(25, "assign", one<AssignParameters>(m.parameters));
  f(26, "adagrad_momentum", one<AdagradMomentumParameters>(m.parameters));
  f(27, "simulated_quantization", m.simulated_quantization);
  f(28, "low_dimensional_packing_status", m.low_dimensional_packing_status);
  f(29, "lion", one<LionParameters>(m.parameters));
  f(30, "frequency_aware_adagrad", one<FrequencyAwareAdagradParameters>(m.parameters));
}

void each_field(Is<StateVariableSpecification::UserDefined> auto&, auto&&) {}

void each_field(Is<StateVariableSpecification::FillWithConstant> auto& m, auto&& f) {
  f(1, "initial_value", m.initial_value);
}

void each_field(Is<StateVariableSpecification> auto& m, auto&& f) {
  f(1, "name", m.name);
  f(2, "user_defined", one<StateVariableSpecification::UserDefined>(m.usage));
  f(3, "fill_with_constant", one<StateVariableSpecification::FillWithConstant>(m.usage));
}

void each_field(Is<TableDescriptor> auto& m, auto&& f) {
  f(1, "name", m.name);
  f(2, "vocabulary_size", m.vocabulary_size);
  f(3, "dimension", m.dimension);
  f(4, "num_features", m.num_features);
  f(5, "optimization_parameters", m.optimization_parameters);
}

void each_field(Is<FeatureDescriptor> auto& m, auto&& f) {
  f(1, "name", m.name);
  f(2, "table_id", m.table_id);
  f(3, "input_shape", m.input_shape);
}

void each_field(Is<SpmdSharding> auto& m, auto&& f) {
  f(1, "enabled", m.enabled);
  f(2, "num_cores_per_replica", m.num_cores_per_replica);
  f(3, "use_manual_partitioning", m.use_manual_partitioning);
  f(4, "use_shardy_partitioner", m.use_shardy_partitioner);
}

void each_field(Is<TPUEmbeddingConfiguration> auto& m, auto&& f) {
  f(1, "table_descriptor", m.table_descriptor);
  f(2, "mode", m.mode);
  f(3, "batch_size_per_tensor_core", m.batch_size_per_tensor_core);
  f(4, "num_hosts", m.num_hosts);
  f(5, "num_tensor_cores", m.num_tensor_cores);
  f(6, "sharding_strategy", m.sharding_strategy);
  f(7, "pipeline_execution_with_tensor_core", m.pipeline_execution_with_tensor_core);
  f(9, "profile_data_directory", m.profile_data_directory);
  f(10, "feature_descriptor", m.feature_descriptor);
  f(11, "spmd_sharding", m.spmd_sharding);
}

void each_field(Is<TPUEmbeddingError> auto&, auto&&) {}

void each_field(Is<SparseCoreTableLayout> auto& m, auto&& f) {
  f(1, "table_name", m.table_name);
  f(2, "stacked_table_name", m.stacked_table_name);
  f(3, "num_sparse_cores", m.num_sparse_cores);
  f(4, "num_partitions", m.num_partitions);
  f(5, "total_rows_per_sparse_core_shard", m.total_rows_per_sparse_core_shard);
  f(6, "unsharded_shape", m.unsharded_shape);
  f(7, "unsharded_padded_shape", m.unsharded_padded_shape);
  f(8, "sparse_core_shard_row_offset", m.sparse_core_shard_row_offset);
  f(9, "sparse_core_shard_rotation", m.sparse_core_shard_rotation);
  f(10, "per_sparse_core_batch_size", m.per_sparse_core_batch_size);
  f(11, "num_features", m.num_features);
  f(12, "fdo_key", m.fdo_key);
}

void each_field(Is<SparseCoreTableLayouts> auto& m, auto&& f) { f(1, "tables", m.tables); }

}  // namespace embertable::wire
