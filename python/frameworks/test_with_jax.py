"""JAX's arrays go in and come out, and nothing is frozen by jax.jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from recorded_calls import calls_with_arguments

ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)


def an_embedding(**options):
    table = et.TableConfig(8, 2, et.Initializer.values(ROWS), name="t", combiner="sum")
    return et.Embedding(et.FeatureConfig(table), et.SGD(0.5), et.EngineStrategy(threads=1), **options)


def test_a_training_step_by_jax():
    """Loss: half the sum of squares, so that the gradient is the activation; row r becomes r - 0.5 r."""
    embedding = an_embedding(outputs="jax")
    embedding.enqueue(jnp.array([1, 3]), training=jnp.array(True))
    activations = embedding.dequeue()
    assert isinstance(activations, jax.Array) and np.array_equal(activations, ROWS[[1, 3]])
    embedding.apply_gradients(jax.grad(lambda x: (x * x).sum() / 2)(activations))
    assert np.array_equal(embedding.read_rows("t", jnp.array([1, 3])), ROWS[[1, 3]] / 2)
    assert np.array_equal(activations, ROWS[[1, 3]])  # a copy, which no later step changes


def test_ids_and_weights_are_arrays_of_jax():
    serving = et.ServingEmbedding(et.FeatureConfig(et.TableConfig(8, 2, et.Initializer.values(ROWS), combiner="sum")), outputs="jax")
    got = serving(et.RaggedIds(jnp.array([1, 2]), jnp.array([0, 2])), et.RaggedWeights(jnp.array([1.0, 3.0])))
    assert isinstance(got, jax.Array) and np.array_equal(got, [ROWS[1] + 3 * ROWS[2]])
    variable = et.Variable(jnp.ones((2, 2)))
    variable.scatter_update(jnp.array([1]), jnp.zeros((1, 2)))
    assert variable.numpy().tolist() == [[1, 1], [0, 0]]


def test_nothing_is_frozen_by_jit():
    embedding, variable = an_embedding(), et.Variable(np.ones(2, np.float32))
    embedding.build(per_replica_batch_size=2)
    serving = et.ServingEmbedding(et.FeatureConfig(et.TableConfig(8, 2)))
    for call in (lambda: jnp.asarray(variable), lambda: variable.assign_add([1.0, 1.0]).numpy(), lambda: embedding.read_rows("t", [1]),
                 lambda: embedding.enqueue(np.array([1, 2])), lambda: serving(np.array([1])), lambda: variable + 1.0):
        with pytest.raises(RuntimeError, match="JAX records.*io_callback"):
            jax.jit(lambda x: x + jnp.sum(jnp.asarray(call())))(1.0)
        with pytest.raises(RuntimeError, match="JAX records"):
            jax.lax.scan(lambda carry, x: (carry + jnp.sum(jnp.asarray(call())), x), 0.0, jnp.arange(3.0))
    assert variable.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("name", calls_with_arguments())
def test_no_argument_of_jit_is_taken(name):
    call = calls_with_arguments()[name]
    with pytest.raises(RuntimeError, match="JAX records.*io_callback"):
        jax.jit(lambda ids, floats: call(ids, floats) and 0)(jnp.array([0, 1]), jnp.array([1.0, 2.0]))


def test_derivatives_without_jit_run_as_they_are():
    variable = et.Variable([2.0, 3.0])
    gradient = jax.grad(lambda x: (x * jnp.asarray(variable)).sum())
    assert gradient(jnp.ones(2)).tolist() == [2, 3]
    variable.assign([4.0, 5.0])
    assert gradient(jnp.ones(2)).tolist() == [4, 5]
    assert jax.vmap(lambda x: x * jnp.asarray(variable))(jnp.ones((1, 2))).tolist() == [[4, 5]]


def test_ways_out_of_jit():
    variable = et.Variable(np.zeros(2, np.float32))

    @jax.jit
    def add(x):
        value = jax.experimental.io_callback(lambda: np.array(variable.assign_add(np.ones(2, np.float32)).numpy()),
                                             jax.ShapeDtypeStruct((2,), jnp.float32))
        return x + value

    assert [add(jnp.zeros(2)).tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]


def test_parameters_are_saved_and_replaced(tmp_path):
    checkpoint = tpu.Checkpoint(params={"w": jnp.arange(3.0)}, bias=jnp.ones(2))
    path = checkpoint.save(tmp_path / "run")
    fresh = tpu.Checkpoint(params={"w": jnp.zeros(3)}, bias=jnp.zeros(2))
    fresh.restore(path).assert_consumed()
    assert isinstance(fresh.params["w"], jax.Array) and fresh.params["w"].tolist() == [0, 1, 2] and fresh.bias.tolist() == [1, 1]
