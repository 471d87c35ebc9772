"""Gradients of activations by way of PyTorch's, TensorFlow's and JAX's own differentiation."""

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch

import embertable as et
from embertable import gradient_interception as gi

LAYOUT = et.InterleavedLayout({"t": 2, "u": 1}, {"f": "t", "g": "t", "s": ("u", 2)}, batch_size=1)
ACTIVATIONS = {"f": np.float32([[1, 2]]), "g": np.float32([[3, 4]]), "s": np.float32([[[5], [6]]])}


def loss_of(hooked):
    """sum(f^2) + sum(3 s): the gradients are 2 f and 3, and g has none."""
    return (hooked["f"] * hooked["f"]).sum() + (hooked["s"] * 3.0).sum()


def with_torch(registry):
    dummies, initialize = gi.create_dummy_table_variables(registry, "torch")
    initialize()
    hooked = gi.hook_dummy_table_variables_to_activations(registry, ACTIVATIONS, dummies, "torch")
    assert all(isinstance(value, torch.Tensor) for value in hooked.values())
    loss_of(hooked).backward()
    assert dummies["t"].grad.tolist() == [0]


def with_tensorflow(registry):
    dummies, initialize = gi.create_dummy_table_variables(registry, "tensorflow")
    initialize()
    with tf.GradientTape() as tape:
        hooked = gi.hook_dummy_table_variables_to_activations(registry, ACTIVATIONS, dummies, "tensorflow")
        loss = tf.reduce_sum(hooked["f"] * hooked["f"]) + tf.reduce_sum(hooked["s"] * 3.0)
    assert [g.numpy().tolist() for g in tape.gradient(loss, list(dummies.values()))] == [[0], [0]]


def with_jax(registry):
    dummies, initialize = gi.create_dummy_table_variables(registry, "jax")
    initialize()

    def loss(variables):
        return loss_of(gi.hook_dummy_table_variables_to_activations(registry, ACTIVATIONS, variables, "jax"))

    assert {name: g.tolist() for name, g in jax.grad(loss)(dummies).items()} == {"t": [0], "u": [0]}


PROGRAMS = {"torch": with_torch, "tensorflow": with_tensorflow, "jax": with_jax}


@pytest.mark.parametrize("tape", PROGRAMS)
def test_a_backward_pass_leaves_the_gradients_of_activations(tape):
    registry = et.GradientRegistry(LAYOUT)
    for _ in range(2):
        PROGRAMS[tape](registry)
        warnings = []
        gradients = gi.get_gradients_through_dummy_table_variables(registry, tape, warnings.append)
        assert {name: np.asarray(g).tolist() for name, g in gradients.items()} == {
            "f": [[2, 4]], "g": [[0, 0]], "s": [[[3], [3]]]}
        assert len(warnings) == 1 and "table 't'" in warnings[0]
        registry.clear()


def test_gradients_by_a_frameworks_own_call():
    f = torch.ones((1, 2), requires_grad=True)
    g = torch.ones((1, 2), requires_grad=True)
    got = gi.get_gradients_through_compute_gradients("torch", (f * 3).sum(), {"f": f, "g": g})
    assert got["f"].tolist() == [[3, 3]] and got["g"] is None
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(x * x)
    got = gi.get_gradients_through_compute_gradients(gi.TensorFlowTape(tape), loss, {"f": x})
    assert got["f"].numpy().tolist() == [[2, 4]]
    with pytest.raises(NotImplementedError, match="JaxTape differentiates functions"):
        gi.get_gradients_through_compute_gradients("jax", loss, {"f": x})


def test_gradients_that_have_no_values_are_refused():
    registry = et.GradientRegistry(LAYOUT)
    dummies, _ = gi.create_dummy_table_variables(registry, "jax")
    grad = jax.jit(jax.grad(lambda v: loss_of(gi.hook_dummy_table_variables_to_activations(registry, ACTIVATIONS, v, "jax"))))
    with pytest.raises(TypeError, match="jax.jit"):
        grad(dummies)


def test_direct_lookups_give_the_chosen_kind():
    table = et.TableConfig(4, 2, et.Initializer.values(np.arange(8, dtype=np.float32).reshape(4, 2)), name="t")
    kinds = {"torch": torch.Tensor, "tensorflow": tf.Tensor, "jax": jax.Array, "numpy": np.ndarray}
    for outputs, kind in kinds.items():
        tables = et.DirectEmbedding(et.FeatureConfig(table), et.SGD(0.5), et.EngineStrategy(threads=1), outputs=outputs)
        activations, lookup = tables.look_up(np.array([1, 3]))
        assert isinstance(activations, kind) and np.array_equal(np.asarray(activations), [[2, 3], [6, 7]])
        tables.apply_gradients(lookup, activations * 1)
        assert tables.read_rows("t", [1, 3]).tolist() == [[1, 1.5], [3, 3.5]]
