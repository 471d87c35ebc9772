"""Configurations beside real protobuf: it reads our bytes, we read its.

The messages are described here, field by field, and nothing is generated from a .proto file.
"""

import random
import struct

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2

import embertable as et
from fixture import engine, features, user, video

# Message -> "name type number", with "?type" for a member of its only oneof, "*type" for a repeated one.
MESSAGES = {
    "ClippingLimits": "lower google.protobuf.FloatValue 1, upper google.protobuf.FloatValue 2",
    "SimulatedQuantization": "enabled BOOL 1, clipping_limits ClippingLimits 2, num_buckets INT32 3",
    "OptimizerDynamicInput": "tag INT32 1",
    "LearningRate": "constant ?FLOAT 1, dynamic ?OptimizerDynamicInput 2",
    "HotIdReplicationConfiguration": "status HotIdStatus 1",
    "AdagradParameters": "",
    "AdagradMomentumParameters": "momentum FLOAT 1, use_nesterov BOOL 2, exponent FLOAT 3, beta2 FLOAT 4, epsilon FLOAT 5",
    "BoundedAdagradParameters": "update_accumulator_first BOOL 1, max_var_update FLOAT 2, max_accumulator FLOAT 3",
    "FrequencyAwareAdagradParameters":
        "l1_regularization_strength FLOAT 1, l2_regularization_strength FLOAT 2, max_lr_multiplier FLOAT 3, "
        "probability_exponent FLOAT 4, accumulator_decay FLOAT 5, initial_accumulator_value FLOAT 6, "
        "step_counter OptimizerDynamicInput 7",
    "StochasticGradientDescentParameters": "",
    "FtrlParameters":
        "l1 FLOAT 1, l2 FLOAT 2, lr_power FLOAT 3, multiply_linear_by_lr BOOL 6, beta FLOAT 7, "
        "allow_zero_accumulator BOOL 8",
    "AdamParameters":
        "beta1 FLOAT 3, beta2 FLOAT 4, epsilon FLOAT 5, use_non_lazy_adam BOOL 8, use_sum_inside_sqrt BOOL 10",
    "MomentumParameters": "momentum FLOAT 1, use_nesterov BOOL 2",
    "LionParameters": "beta1 FLOAT 1, beta2 FLOAT 2, use_non_lazy_lion BOOL 3",
    "RmsPropParameters": "rho FLOAT 1, momentum FLOAT 2, epsilon FLOAT 3",
    "CenteredRmsPropParameters": "rho FLOAT 1, momentum FLOAT 2, epsilon FLOAT 3",
    "MdlAdagradLightParameters":
        "l2 FLOAT 1, lr_power FLOAT 2, min_servable_mdl_benefit FLOAT 3, mdl_mix_in_margin FLOAT 4, "
        "mdl_benefit_rampup_coeff FLOAT 5, mdl_min_weight FLOAT 6, benefit_revisit_scale FLOAT 7, "
        "max_event_benefit FLOAT 8, max_total_benefit FLOAT 9, mdl_hard_limit FLOAT 10, "
        "hard_limit_min_benefit BOOL 11, mdl_regularize BOOL 12",
    "AdadeltaParameters": "rho FLOAT 1, epsilon FLOAT 2",
    "ProximalAdagradParameters": "l1 FLOAT 1, l2 FLOAT 2",
    "OnlineYogiParameters": "l1 FLOAT 1, l2 FLOAT 2, beta2 FLOAT 3",
    "ProximalYogiParameters": "l1 FLOAT 1, l2 FLOAT 2, beta1 FLOAT 3, beta2 FLOAT 4, epsilon FLOAT 5",
    "FrequencyEstimatorParameters": "tau FLOAT 1, max_delta FLOAT 2, outlier_threshold FLOAT 3, weight_exponent FLOAT 4",
    "UserDefinedProgramParameters": "program ?BYTES 1",
    "AssignParameters": "",
    "OptimizationParameters":
        "clipping_limits ClippingLimits 2, adagrad ?AdagradParameters 3, "
        "stochastic_gradient_descent ?StochasticGradientDescentParameters 4, ftrl ?FtrlParameters 5, "
        "adam ?AdamParameters 6, gradient_clipping_limits ClippingLimits 7, momentum ?MomentumParameters 8, "
        "rms_prop ?RmsPropParameters 9, centered_rms_prop ?CenteredRmsPropParameters 10, "
        "mdl_adagrad_light ?MdlAdagradLightParameters 11, adadelta ?AdadeltaParameters 12, "
        "learning_rate LearningRate 13, proximal_adagrad ?ProximalAdagradParameters 14, "
        "weight_decay_factor FLOAT 16, gradient_accumulation_status Status 17, "
        "hot_id_replication_configuration HotIdReplicationConfiguration 18, "
        "bounded_adagrad ?BoundedAdagradParameters 19, online_yogi ?OnlineYogiParameters 20, "
        "proximal_yogi ?ProximalYogiParameters 21, multiply_weight_decay_factor_by_learning_rate BOOL 22, "
        "frequency_estimator ?FrequencyEstimatorParameters 23, user_defined_program ?UserDefinedProgramParameters 24, assign ?AssignParameters 25, "
        "adagrad_momentum ?AdagradMomentumParameters 26, simulated_quantization SimulatedQuantization 27, "
        "low_dimensional_packing_status Status 28, lion ?LionParameters 29, "
        "frequency_aware_adagrad ?FrequencyAwareAdagradParameters 30",
    "TableDescriptor":
        "name STRING 1, vocabulary_size INT64 2, dimension INT32 3, num_features INT32 4, "
        "optimization_parameters OptimizationParameters 5",
    "FeatureDescriptor": "name STRING 1, table_id INT32 2, input_shape *INT32 3",
    "SpmdSharding":
        "enabled BOOL 1, num_cores_per_replica INT32 2, use_manual_partitioning BOOL 3, use_shardy_partitioner BOOL 4",
    "TPUEmbeddingConfiguration":
        "table_descriptor *TableDescriptor 1, mode Mode 2, batch_size_per_tensor_core INT32 3, num_hosts INT32 4, "
        "num_tensor_cores INT32 5, sharding_strategy ShardingStrategy 6, pipeline_execution_with_tensor_core BOOL 7, "
        "profile_data_directory STRING 9, feature_descriptor *FeatureDescriptor 10, spmd_sharding SpmdSharding 11",
}
ENUMS = {
    "Status": ["UNSPECIFIED", "ENABLED", "DISABLED"],
    "HotIdStatus": ["UNSPECIFIED", "ENABLED", "DISABLED", "MIGRATION_ONLY"],
    "Mode": ["UNSPECIFIED", "INFERENCE", "TRAINING", "BACKWARD_PASS_ONLY"],
    "ShardingStrategy": ["DIV_DEFAULT", "MOD"],
}


def add_field(message, text):
    name, kind, number = text.split()
    field = message.field.add(name=name, number=int(number), label="LABEL_REPEATED" if kind[0] == "*" else "LABEL_OPTIONAL")
    if kind[0] == "?":
        if not message.oneof_decl:
            message.oneof_decl.add(name="one")
        field.oneof_index = 0
    kind = kind.lstrip("?*")
    if kind in ENUMS:
        field.type, field.type_name = field.TYPE_ENUM, f".test.{kind}Holder.{kind}"
    elif kind.isupper() or kind[:3] == "INT":
        field.type = getattr(field, "TYPE_" + kind)
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, kind if "." in kind else ".test." + kind
        field.type_name = field.type_name if field.type_name[0] == "." else "." + field.type_name


def described():
    """The class of TPUEmbeddingConfiguration."""
    file = descriptor_pb2.FileDescriptorProto(name="test.proto", package="test", syntax="proto3",
                                              dependency=["google/protobuf/wrappers.proto"])
    for name, values in ENUMS.items():  # each in a message of its own, since values share their scope's names
        enum = file.message_type.add(name=name + "Holder").enum_type.add(name=name)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in filter(None, fields.split(", ")):
            add_field(message, field)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.TPUEmbeddingConfiguration"))


Configuration = described()


def any_scalar(rng, field):
    if field.type == field.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == field.TYPE_STRING:
        return rng.choice(["", "video", "a \"b\"\\\n", "\u00e9\u20ac\U0001f600", "\x00\x7f"])
    if field.type == field.TYPE_BYTES:
        return rng.randbytes(rng.randrange(4))
    if field.type == field.TYPE_ENUM:
        return rng.randrange(len(field.enum_type.values) + 2)  # of an enum that grew
    if field.type == field.TYPE_FLOAT:
        return struct.unpack("<f", rng.choice([b"\0\0\0\0", b"\0\0\0\x80", b"\1\0\0\0", rng.randbytes(3) + b"\x3e",
                                               b"\0\0\x80\x7f", b"\0\0\x80\xff"]))[0]
    bits = 31 if field.type == field.TYPE_INT32 else 63
    return rng.choice([0, 1, -1, 127, 128, 2**bits - 1, -(2**bits), rng.randrange(2**bits)])


def fill(rng, message):
    """Sets about half of the fields."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.5:
            continue
        if field.is_repeated:
            for _ in range(rng.randrange(4)):
                if field.message_type:
                    fill(rng, getattr(message, field.name).add())
                else:
                    getattr(message, field.name).append(any_scalar(rng, field))
        elif field.message_type:
            getattr(message, field.name).SetInParent()
            fill(rng, getattr(message, field.name))
        else:
            setattr(message, field.name, any_scalar(rng, field))
    return message


def spelled_out(message):
    """The text form, in which our enums have no number where protobuf gives one a name."""
    return text_format.Parse(et.configuration_text(message), Configuration())


def test_protobuf_reads_an_engines_configuration():
    embedding = engine(feature_config=features(video(optimizer=et.Optimizer("ftrl", lambda: 0.5, beta=0.25)), user()))
    embedding.build(64)
    read = Configuration.FromString(embedding.configuration())
    assert [table.name for table in read.table_descriptor] == ["video", "user"]
    ftrl = read.table_descriptor[0].optimization_parameters
    assert ftrl.ftrl.beta == 0.25 and ftrl.learning_rate.dynamic.tag == 0
    assert [list(feature.input_shape) for feature in read.feature_descriptor] == [[64], [64], [64]]
    assert read.SerializeToString(deterministic=True) == embedding.configuration()
    assert et.configuration_text(embedding.configuration()) == text_format.MessageToString(read)


@pytest.mark.parametrize("seed", range(300))
def test_both_read_the_same(seed):
    theirs = fill(random.Random(seed), Configuration())
    assert spelled_out(theirs.SerializeToString()) == theirs


@pytest.mark.parametrize("seed", range(40))
def test_what_is_completed_is_written_as_protobuf_does(seed):
    rng = random.Random(seed)
    theirs = fill(rng, Configuration())
    del theirs.table_descriptor[:], theirs.feature_descriptor[:]
    theirs.batch_size_per_tensor_core = 0
    for name in "ab":
        table = fill(rng, theirs.table_descriptor.add())
        table.name, table.num_features = name, 0
    for table_id, shape in [(0, [4]), (0, [2, 4]), (1, [8])]:
        theirs.feature_descriptor.add(table_id=table_id, input_shape=shape)
    whole = et.complete_configuration(theirs.SerializeToString())
    theirs.batch_size_per_tensor_core = 4
    theirs.table_descriptor[0].num_features, theirs.table_descriptor[1].num_features = 3, 2
    assert whole == theirs.SerializeToString()


@pytest.mark.parametrize("seed", range(300))
def test_both_refuse_the_same(seed):
    """Bytes with a few errors: both give one message, or both refuse."""
    rng = random.Random(seed)
    text = bytearray(fill(rng, Configuration()).SerializeToString() or b"\x20\x01")
    for _ in range(1 + rng.randrange(3)):
        text[rng.randrange(len(text))] = rng.randrange(256)
    try:
        theirs = Configuration.FromString(bytes(text))
    except Exception:
        with pytest.raises(ValueError, match="byte"):
            et.configuration_text(bytes(text))
    else:
        theirs.DiscardUnknownFields()
        if ": nan" not in et.configuration_text(bytes(text)):  # a text has one NaN, bytes have many
            assert spelled_out(bytes(text)).SerializeToString() == theirs.SerializeToString()


def test_errors_say_where():
    with pytest.raises(ValueError, match=r"TPUEmbeddingConfiguration.num_hosts, byte 1: a number must follow"):
        et.configuration_text(b"\x20")
    with pytest.raises(ValueError, match="batch_size_per_tensor_core"):
        et.complete_configuration(b"")
    with pytest.raises(RuntimeError, match="not built"):
        engine().configuration()
