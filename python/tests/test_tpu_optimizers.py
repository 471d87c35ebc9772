"""Optimizers with the original's arguments, and the class that every rule has."""

import copy
import inspect
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import embertable as et
from embertable import optimizers
from embertable import tpu_embedding as tpu

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMON = ["use_gradient_accumulation", "clip_weight_min", "clip_weight_max", "weight_decay_factor",
          "multiply_weight_decay_factor_by_learning_rate"]
# Arguments and defaults of tpu_embedding_v2_utils.py, in their order.
ORIGINAL = {
    "SGD": ["learning_rate", *COMMON, "clipvalue", "low_dimensional_packing_status"],
    "Adagrad": ["learning_rate", "initial_accumulator_value", *COMMON, "slot_variable_creation_fn", "clipvalue",
                "low_dimensional_packing_status"],
    "AdagradMomentum": ["learning_rate", "momentum", "use_nesterov", "exponent", "beta2", "epsilon", *COMMON,
                        "slot_variable_creation_fn", "clipvalue", "low_dimensional_packing_status"],
    "FTRL": ["learning_rate", "learning_rate_power", "l1_regularization_strength", "l2_regularization_strength", "beta",
             "initial_accumulator_value", *COMMON, "slot_variable_creation_fn", "clipvalue",
             "multiply_linear_by_learning_rate", "allow_zero_accumulator", "low_dimensional_packing_status"],
    "Adam": ["learning_rate", "beta_1", "beta_2", "epsilon", "lazy_adam", "sum_inside_sqrt", *COMMON,
             "slot_variable_creation_fn", "clipvalue", "low_dimensional_packing_status"],
}
DEFAULTS = {"SGD": 0.01, "Adagrad": 0.001, "AdagradMomentum": 0.001, "FTRL": 0.001, "Adam": 0.001}


@pytest.mark.parametrize("name", ORIGINAL)
def test_arguments_are_the_originals_in_its_order(name):
    made = getattr(tpu, name)
    assert list(inspect.signature(made).parameters) == ORIGINAL[name]
    assert made().learning_rate == DEFAULTS[name] and isinstance(made(), et.Optimizer)


def test_attributes_are_the_originals():
    adam = tpu.Adam(0.1, beta_2=0.5, clipvalue=(-2.0, None), clip_weight_max=3.0, weight_decay_factor=0.25)
    assert (adam.beta_1, adam.beta_2, adam.epsilon, adam.lazy_adam, adam.sum_inside_sqrt) == (0.9, 0.5, 1e-7, True, True)
    assert (adam.clip_gradient_min, adam.clip_gradient_max, adam.clip_weight_min, adam.clip_weight_max) == (-2, None, None, 3)
    assert adam.weight_decay_factor == 0.25 and adam.use_gradient_accumulation and adam.clipvalue == (-2, None)
    assert tpu.Adagrad(initial_accumulator_value=0.5).initial_accumulator_value == 0.5
    assert et.RowwiseAdagrad(weight_decay_mode="l2").weight_decay_mode == "l2"
    assert tpu.SGD().slot_variable_creation_fn is None
    with pytest.raises(AttributeError, match="'sgd' has no 'momentum'"):
        tpu.SGD().momentum


def test_refusals_are_the_rules():
    with pytest.raises(ValueError, match="initial_accumulator_value"):
        tpu.Adagrad(initial_accumulator_value=0)
    with pytest.raises(ValueError, match="use_gradient_accumulation"):
        tpu.SGD(use_gradient_accumulation=False, clipvalue=0.0)
    with pytest.raises(ValueError, match="callable, got int"):
        tpu.Adagrad(slot_variable_creation_fn=5)
    with pytest.raises(TypeError):
        tpu.SGD(slot_variable_creation_fn=None)


def test_slots_are_created_by_the_originals_function():
    """Called once for each table, with all slots: what it returns may be arrays, functions of a shape, or what it was given."""
    calls = []

    def create(table, slot_names, slot_initializers):
        calls.append((table.name, table.shape, table.dtype, slot_names))
        first = np.full(table.shape, 7, np.float32) if table.name == "a" else slot_initializers[0]
        return {slot_names[0]: first, slot_names[1]: lambda shape, dtype: np.arange(np.prod(shape)).reshape(shape).astype(dtype)}

    optimizer = tpu.FTRL(0.1, initial_accumulator_value=0.5, slot_variable_creation_fn=create)
    with tpu.TPUStrategy(hosts=2, threads=1).scope():
        embedding = tpu.TPUEmbedding([tpu.FeatureConfig(tpu.TableConfig(4, 2, name=name)) for name in "ab"], optimizer)
    embedding.build(per_replica_batch_size=2)
    assert calls == [(name, (4, 2), np.float32, ["accumulators", "linears"]) for name in "ab"]
    assert embedding.read_rows("a/accumulators", [0, 3]).tolist() == [[7, 7], [7, 7]]
    assert embedding.read_rows("b/accumulators", [2]).tolist() == [[0.5, 0.5]]
    assert embedding.read_rows("b/linears", [0, 3]).tolist() == [[0, 1], [6, 7]]
    assert optimizer.slot_variable_creation_fn is create
    assert optimizer == tpu.FTRL(0.1, initial_accumulator_value=0.5, slot_variable_creation_fn=create)


def test_a_slot_that_is_not_there_is_named():
    with tpu.TPUStrategy(threads=1).scope(), pytest.raises(ValueError, match="'t'.*'accumulators'"):
        tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(4, 2, name="t")),
                         tpu.Adagrad(slot_variable_creation_fn=lambda table, names, initializers: {})).build(2)


def test_every_rule_has_a_class():
    assert set(optimizers.CLASSES) == set(et.optimizer_rules())
    for rule, made in optimizers.CLASSES.items():
        assert getattr(et, made.__name__) is made
        optimizer = made()
        assert optimizer.rule == rule and optimizer == et.Optimizer(rule, optimizer.learning_rate)
        parameters = inspect.signature(made).parameters
        assert set(optimizer.parameters) <= set(parameters)
        assert all(parameter.annotation is not parameter.empty for parameter in parameters.values())
        with pytest.raises(TypeError):
            made(0.1, no_such_parameter=1)


def test_the_file_of_classes_is_as_the_registry_says():
    checked = subprocess.run([sys.executable, ROOT / "python" / "generate_optimizers.py", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_slots_say_how_they_start():
    assert et.Adagrad(initial_accumulator_value=0.5).slots == [("accumulators", False, 0.5)]
    assert et.PartialRowwiseAdam().slots == [("momenta", False, 0.0), ("velocities", True, 0.0)]
    assert et.SGD().slots == []


def test_optimizers_copy_and_pickle():
    for optimizer in (tpu.Adam(0.2, clipvalue=1.0), et.FTRL(0.3, beta=2.0), et.NoUpdate()):
        for made in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            assert type(made) is type(optimizer) and made == optimizer
