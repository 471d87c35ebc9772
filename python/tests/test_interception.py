"""Gradients of activations by way of a tape, as the original's gradient helper takes them."""

import gc
import weakref

import numpy as np
import pytest

import embertable as et
from embertable import gradient_interception as gi
from embertable import v1
from embertable.gradient_interception import TapeArray


def first_api(**tables):
    """Tables t (features f, g) and u (feature s, a sequence of 2); batches of 2."""
    config = {"t": v1.TableConfig(4, 1, et.Initializer.row_id(), combiner="sum"),
              "u": v1.TableConfig(4, 2, et.Initializer.row_id(), combiner="sum")}
    features = {"f": v1.FeatureConfig("t"), "g": v1.FeatureConfig("t"), "s": v1.FeatureConfig("u", 2)}
    return v1.TPUEmbedding(config, features, 2, v1.TRAINING, optimization_parameters=v1.StochasticGradientDescentParameters(0.5))


IDS = {"f": v1.EnqueueData([1, 2]), "g": v1.EnqueueData([2, 3]), "s": v1.EnqueueData([1, 3], [[0, 0], [1, 1]])}


def looked_up(embedding):
    embedding.enqueue([IDS])
    return embedding.get_activations()[0]


def test_gradients_reach_the_tables():
    """The loss sum(3 f) + sum(s^2) / 2 has gradients 3, none for g, and s itself."""
    embedding = first_api()
    activations = looked_up(embedding)
    dummies, initialize = gi.create_dummy_table_variables(embedding)
    assert list(dummies) == ["t", "u"] and all(v.shape == (1,) for v in dummies.values())
    initialize()
    hooked = gi.hook_dummy_table_variables_to_activations(embedding, activations, dummies)
    assert list(hooked) == ["f", "g", "s"]
    loss = (hooked["f"] * 3).sum() + (hooked["s"] * hooked["s"]).sum() * 0.5
    assert loss.value == 3 * 3 + (2 * 1 + 2 * 9) / 2
    loss.backward()
    assert dummies["t"].gradient.tolist() == [0]  # gives zeros to both
    warnings = []
    gradients = gi.get_gradients_through_dummy_table_variables(embedding, log=warnings.append)
    assert {name: g.tolist() for name, g in gradients.items()} == {
        "f": [[3], [3]], "g": [[0], [0]], "s": [[[1, 1], [0, 0]], [[0, 0], [3, 3]]]}
    assert len(warnings) == 1 and "table 't' with id 0" in warnings[0]
    embedding.send_gradients([gradients])
    assert embedding.read_rows("t", [0, 1, 2, 3])[:, 0].tolist() == [0, 1 - 1.5, 2 - 1.5, 3]
    assert embedding.read_rows("u", [1, 2, 3]).tolist() == [[0.5, 0.5], [2, 2], [1.5, 1.5]]


def test_a_step_after_a_step():
    embedding = first_api()
    for _ in range(2):
        dummies, _ = gi.create_dummy_table_variables(embedding)
        hooked = gi.hook_dummy_table_variables_to_activations(embedding, looked_up(embedding), dummies)
        sum((x.sum() for x in hooked.values()), TapeArray(0.0)).backward()
        embedding.send_gradients([gi.get_gradients_through_dummy_table_variables(embedding)])
        with pytest.raises(RuntimeError, match="table 't' with id 0.*clear"):
            gi.create_dummy_table_variables(embedding)
        embedding.gradient_registry.clear()
    assert embedding.step == 2


def test_through_compute_gradients():
    a, b, c = (TapeArray(np.float32([1, 2]), watched=True) for _ in range(3))
    loss = (a * b).sum()
    got = gi.get_gradients_through_compute_gradients("numpy", loss, {"a": a, "c": c, "b": b})
    assert list(got) == ["a", "c", "b"] and got["a"].tolist() == [1, 2] and got["c"] is None

    class Pairs:
        def compute_gradients(self, loss, tensors):
            return [(x * 2, x) for x in tensors]

    assert gi.get_gradients_through_compute_gradients(Pairs(), 0, {"a": 3, "b": 4}) == {"a": 6, "b": 8}
    Pairs.compute_gradients = lambda self, loss, tensors: []
    with pytest.raises(ValueError, match="each of 2 activations, got 0"):
        gi.get_gradients_through_compute_gradients(Pairs(), 0, {"a": 3, "b": 4})


def test_names_that_it_does_not_know():
    registry = et.GradientRegistry(et.InterleavedLayout({"t": 1}, {"f": "t"}, 1))
    dummies, _ = gi.create_dummy_table_variables(registry)
    with pytest.raises(KeyError, match="'x'"):
        gi.hook_dummy_table_variables_to_activations(registry, {"x": [[1.0]]}, dummies)
    with pytest.raises(KeyError, match="'t'"):
        gi.hook_dummy_table_variables_to_activations(registry, {"f": [[1.0]]}, {})
    with pytest.raises(ValueError, match="table 't' with id 0"):
        gi.get_gradients_through_dummy_table_variables(registry)
    with pytest.raises(ValueError, match="tape must be one of 'numpy'"):
        gi.create_dummy_table_variables(registry, "mxnet")
    with pytest.raises(TypeError, match="v1.TPUEmbedding or a GradientRegistry"):
        gi.create_dummy_table_variables(3)


def test_backward_passes_without_a_step_or_twice():
    registry = et.GradientRegistry(et.InterleavedLayout({"t": 1}, {"f": "t"}, 1))
    dummies, _ = gi.create_dummy_table_variables(registry)
    loss = gi.hook_dummy_table_variables_to_activations(registry, {"f": np.ones((1, 1))}, dummies)["f"].sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="has its gradient already"):
        loss.backward()
    registry.clear()
    with pytest.raises(RuntimeError, match="no training step"):
        loss.backward()
    assert registry.gradients == {"t": []}


def test_a_tape_of_ones_own_and_its_exceptions():
    class Tape:
        made = []

        def make_variable(self, name, shape):
            self.made.append((name, shape))
            if len(self.made) == 2:
                raise ZeroDivisionError("no memory")
            return name

        def initialize(self, variable):
            self.made.append(variable)

        def zeros(self, shape):
            return ("zeros", shape)

        def intercept(self, variable, activation, backward):
            backward(("gradient of", activation))
            return activation

    registry, tape = et.GradientRegistry(et.InterleavedLayout({"t": 1, "u": 2}, {"f": "t", "g": "u", "h": "u"}, 3)), Tape()
    with pytest.raises(ZeroDivisionError):
        gi.create_dummy_table_variables(registry, tape)
    assert registry.gradients == {"t": [], "u": []}  # as before
    dummies, initialize = gi.create_dummy_table_variables(registry, tape)
    initialize()
    assert Tape.made[-4:] == [("tpu_embedding_dummy_table_variable_t", (1,)), ("tpu_embedding_dummy_table_variable_u", (1,)),
                              "tpu_embedding_dummy_table_variable_t", "tpu_embedding_dummy_table_variable_u"]
    gi.hook_dummy_table_variables_to_activations(registry, {"f": "F", "h": "H"}, dummies, tape)
    assert gi.get_gradients_through_dummy_table_variables(registry, tape, log=lambda text: None) == {
        "f": ("gradient of", "F"), "g": ("zeros", (3, 2)), "h": ("gradient of", "H")}


def test_operations_keep_the_registry():
    registry = et.GradientRegistry(et.InterleavedLayout({"t": 1}, {"f": "t"}, 1))
    dummies, _ = gi.create_dummy_table_variables(registry)
    loss = gi.hook_dummy_table_variables_to_activations(registry, {"f": np.ones((1, 1))}, dummies)["f"].sum()
    del registry
    gc.collect()
    loss.backward()  # into a registry that nobody else has


@pytest.mark.parametrize("function", [
    lambda x: (x + 2.0) * x, lambda x: 3.0 - x * 2.0, lambda x: 1.0 / (x + 3.0), lambda x: x / np.float64([[2.0], [4.0]]), lambda x: x ** 3,
    lambda x: x @ np.float64([[1, 2], [3, 4], [5, 6]]), lambda x: np.float64([[1, 2]]) @ x, lambda x: x[:, 1:], lambda x: x[[0, 0, 1]],
    lambda x: x.sum(0), lambda x: x.mean(1), lambda x: x.exp(), lambda x: (x + 5.0).log(), lambda x: x.tanh(), lambda x: x.maximum(0.25),
    lambda x: x.reshape(3, 2), lambda x: x.T @ x, lambda x: np.ones((2, 2, 3)) * x, lambda x: x * x.sum(), lambda x: -x,
])
def test_the_small_tapes_gradients_are_differences(function):
    """Central differences in float64."""
    dice = np.random.default_rng(3)
    at = dice.normal(size=(2, 3))
    x = TapeArray(at.copy(), watched=True)
    result = function(x)
    weight = dice.normal(size=result.shape)
    (result * weight).sum().backward()
    for index in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[index] = 1e-6
        up, down = (float((function(TapeArray(at + sign * step)) * weight).sum().value) for sign in (1, -1))
        assert abs(x.gradient[index] - (up - down) / 2e-6) < 1e-7


def test_the_small_tape_says_what_it_does_not_do():
    with pytest.raises(TypeError, match="numbers"):
        TapeArray("text")
    with pytest.raises(ValueError, match="one number, got shape \\(2,\\)"):
        TapeArray([1.0, 2.0], watched=True).backward()
    with pytest.raises(TypeError, match="power must be a number"):
        TapeArray([1.0]) ** TapeArray([1.0])
    with pytest.raises(ValueError, match="matrices"):
        TapeArray([1.0]) @ TapeArray([1.0])


def test_gradients_are_not_kept_alive():
    embedding = first_api()
    dummies, _ = gi.create_dummy_table_variables(embedding)
    hooked = gi.hook_dummy_table_variables_to_activations(embedding, looked_up(embedding), dummies)
    loss = hooked["f"].sum()
    loss.backward()
    kept = weakref.ref(loss)
    del hooked, loss, dummies
    gc.collect()
    assert kept() is None
