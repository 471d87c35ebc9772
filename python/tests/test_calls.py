"""Calls of an engine: the order of checks, arguments of many kinds, results in other kinds, code that is recorded."""

import collections
import sys
import types

import numpy as np
import pytest

import embertable as et
from embertable import v1
from fixture import USER_ROWS, batch, engine, features, user


def one(**options):
    table = user()
    return engine(feature_config={"a": et.FeatureConfig(table), "b": et.FeatureConfig(table)}, **options)


def test_structures_are_compared_before_leaves_are_looked_at():
    embedding = one()
    ids = {"a": [1], "b": [2]}
    for wrong, error in ((["text", "text"], TypeError), ({"a": "text"}, ValueError), ("text", ValueError)):
        for call in (embedding.enqueue, embedding.look_up):
            with pytest.raises(error, match="features must be"):
                call(wrong)
        with pytest.raises(error, match="weights must be"):
            embedding.enqueue({"a": "text", "b": "text"}, wrong)
    embedding.enqueue(ids)
    activations = embedding.dequeue()
    for wrong, error in ((["text", "text"], TypeError), ({"a": 5}, ValueError), (None, ValueError)):
        with pytest.raises(error, match="gradients must be"):
            embedding.apply_gradients(wrong)
    embedding.apply_gradients(activations)


@pytest.mark.parametrize("gradients", [(1, 2, 3), None, ["text", "text"], {"a": "text", "b": None}])
def test_a_batch_that_is_not_there_comes_before_the_gradients(gradients):
    embedding = one()
    embedding.build(1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no dequeued training batch"):
            embedding.apply_gradients(gradients)
        embedding.enqueue({"a": [1], "b": [2]}, training=False)
        embedding.dequeue()
    assert embedding.step == 0


def test_gradients_that_are_no_floating_point_numbers_are_value_errors():
    embedding = one()
    embedding.enqueue({"a": [1], "b": [2]})
    activations = embedding.dequeue()
    for bad in (np.ones((1, 2), np.int32), np.ones((1, 2), bool), "text", object()):
        with pytest.raises(ValueError, match="'b'"):
            embedding.apply_gradients({**activations, "b": bad})
    embedding.apply_gradients(activations)


class Yes:
    def __bool__(self):
        return True


def test_training_is_what_counts_as_true():
    embedding = one()
    for training, trains in ((np.True_, True), (np.False_, False), (1, True), (0, False), (Yes(), True), (None, False),
                             (np.array(True), True)):
        embedding.enqueue({"a": [1], "b": [2]}, training=training)
        activations = embedding.dequeue()
        if trains:
            embedding.apply_gradients(activations)
        else:
            with pytest.raises(RuntimeError):
                embedding.apply_gradients(activations)
    with pytest.raises(TypeError, match="training must be true or false, got str"):
        embedding.enqueue({"a": [1], "b": [2]}, training="no")
    with pytest.raises(ValueError):
        embedding.enqueue({"a": [1], "b": [2]}, training=np.array([True, False]))


def test_a_mode_may_be_named():
    embedding = one()
    embedding.enqueue({"a": [1], "b": [2]}, mode_override="inference")
    embedding.dequeue()
    with pytest.raises(ValueError, match="mode"):
        embedding.enqueue({"a": [1], "b": [2]}, mode_override="dreaming")


def test_a_device_is_the_engines():
    embedding = engine(2, hosts=2, feature_config=et.FeatureConfig(user()))
    for task in (1, 0):
        embedding.enqueue(np.array([task + 3]), device=f"/task:{task}/device:TPU:0", training=False)
    assert [row.tolist() for row in embedding.dequeue()] == [[USER_ROWS[3].tolist()], [USER_ROWS[4].tolist()]]


Framework = collections.namedtuple("Framework", "name module attribute")


@pytest.mark.parametrize("name, path", [("tensorflow", "convert_to_tensor"), ("torch", "from_numpy"), ("jax", "numpy.array")])
def test_results_come_in_the_kind_that_was_asked_for(monkeypatch, name, path):
    """Stand-ins for the frameworks; python/frameworks has tests with the real ones."""

    class Kind:
        def __init__(self, array):
            self.array = array

    holder = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, holder)
    if "." in path:
        inner = types.ModuleType(f"{name}.numpy")
        holder.numpy = inner
        monkeypatch.setitem(sys.modules, f"{name}.numpy", inner)
        inner.array = Kind
    else:
        setattr(holder, path, Kind)
    embedding = engine(feature_config=et.FeatureConfig(user()), outputs=name)
    assert embedding.outputs == name
    embedding.enqueue(np.array([3]), training=False)
    for result in (embedding.dequeue(), embedding.look_up(np.array([3]), training=False)[0]):
        assert isinstance(result, Kind) and np.array_equal(result.array, USER_ROWS[3:4])
    serving = et.ServingEmbedding(et.FeatureConfig(user()), outputs=name)
    assert isinstance(serving(np.array([3])), Kind) and serving.outputs == name


def test_a_lookup_may_have_a_kind_of_its_own(monkeypatch):
    holder = types.ModuleType("torch")
    holder.from_numpy = lambda array: ("tensor of", array.tolist())
    monkeypatch.setitem(sys.modules, "torch", holder)
    embedding = engine(feature_config=et.FeatureConfig(user()))
    ids, rows = np.array([3]), USER_ROWS[3:4].tolist()
    assert embedding.look_up(ids, outputs="torch")[0] == ("tensor of", rows)
    assert embedding.look_up(ids)[0].tolist() == embedding.look_up(ids, outputs="numpy")[0].tolist() == rows
    with pytest.raises(ValueError, match="outputs must be one of 'numpy', 'tensorflow', 'torch', 'jax', got 'list'"):
        embedding.look_up(ids, outputs="list")


def test_kinds_of_results_are_known():
    assert engine().outputs == "numpy"
    with pytest.raises(ValueError, match="'numpy', 'tensorflow', 'torch', 'jax', got 'arrow'"):
        engine(outputs="arrow")
    with pytest.raises(ValueError, match="got 5"):
        et.ServingEmbedding(features(), outputs=5)


def test_a_kind_without_its_package_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    with pytest.raises(ImportError, match="needs the package torch"):
        engine(outputs="torch")


def recorder(name):
    """A stand-in for a framework that records when its `on` is true."""
    module = types.ModuleType(name)
    module.on = True
    if name == "tensorflow":
        graph = types.SimpleNamespace(building_function=True)
        module.executing_eagerly = lambda: not module.on
        module.compat = types.SimpleNamespace(v1=types.SimpleNamespace(get_default_graph=lambda: graph))
    elif name == "jax":
        module.core = types.SimpleNamespace(trace_state_clean=lambda: not module.on, Tracer=int)
        module.numpy = types.SimpleNamespace(zeros=lambda shape: 0)
    else:
        module.compiler = types.SimpleNamespace(is_compiling=lambda: module.on)
        module.jit = types.SimpleNamespace(is_tracing=lambda: False)
    return module


def uses():
    embedding = engine()
    embedding.build(2)
    serving = et.ServingEmbedding(features())
    variable, sharded = et.Variable(np.zeros((2, 2), np.float32)), et.ShardedVariable([et.Variable([1.0]), et.Variable([2.0])])
    rows = np.ones((8, 4), np.float32)
    config = et.FeatureConfig(et.TableConfig(8, 4))
    direct = et.DirectEmbedding(config, et.SGD(0.1), et.EngineStrategy(threads=1))
    _, lookup = direct.look_up([1])
    first = v1.TPUEmbedding({"t": v1.TableConfig(8, 4)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE, threads=1)
    return [lambda: embedding.enqueue(batch()), embedding.dequeue, lambda: embedding.read_rows("user", [1]),
            lambda: embedding.assign_rows("user", [1], [[1.0, 2.0]]), embedding.digest, lambda: embedding.look_up(batch()),
            lambda: serving(batch()), lambda: np.asarray(variable), lambda: variable.assign(np.ones((2, 2), np.float32)),
            lambda: variable + 1.0, lambda: variable[0], lambda: np.asarray(sharded), lambda: sharded.assign_add([1.0, 1.0]),
            lambda: sharded.scatter_add([0], [1.0]), lambda: sharded.sparse_read([0]), lambda: sharded + 1.0, lambda: sharded[:1],
            lambda: et.embedding_lookup(sharded, [0]),
            lambda: et.serving_embedding_lookup([1], None, {config.table: rows}, config),
            lambda: et.serving_embedding_gradients([1], None, None, {config.table: rows}, config),
            lambda: direct([1]), lambda: direct.gradients(lookup, None), lambda: direct.apply_gradients(lookup, None),
            lambda: direct.read_rows(direct.tables[0].name, [1]), lambda: first.enqueue([{"f": v1.EnqueueData([1, 2])}]), first.digest]


@pytest.mark.parametrize("name, way_out", [("tensorflow", "tf.numpy_function"), ("jax", "io_callback"), ("torch", "compiler.disable")])
def test_nothing_is_used_by_code_that_is_recorded(monkeypatch, name, way_out):
    calls = uses()
    module = recorder(name)
    monkeypatch.setitem(sys.modules, name, module)
    for call in calls:
        with pytest.raises(RuntimeError, match=f"records.*{way_out}"):
            call()
    embedding = engine()
    assert len(embedding.tables) == 2 and embedding.memory() is not None  # questions that no row answers
    module.on = False
    for call in (calls[0], calls[1], *calls[7:19]):
        call()


class Symbol:
    """What stands for an array in code that is recorded."""

    def __array__(self, *arguments, **options):
        raise NotImplementedError("no numbers yet")


@pytest.mark.parametrize("call, what", [
    (lambda symbol: et.RaggedIds(symbol, [0, 1]), "RaggedIds: values"),
    (lambda symbol: et.RaggedIds([symbol, symbol], [0, 1]), "RaggedIds: values"),
    (lambda symbol: et.ServingEmbedding({"a": et.FeatureConfig(et.TableConfig(8, 4))})({"a": symbol}), "feature 'a': ids"),
    (lambda symbol: et.Variable(symbol), "value"),
    (lambda symbol: et.IdMap.hashed("string", 8).rows(symbol), "keys"),
    (lambda symbol: et.IdMap.hashed("integer", 8).rows(symbol), "the keys of an integer map")])
def test_an_argument_without_numbers_is_named_by_code_that_is_recorded(monkeypatch, call, what):
    module = recorder("tensorflow")
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    with pytest.raises(RuntimeError, match=f"^{what} must have values, got (Symbol|list); Embertable is used.*TensorFlow records"):
        call(Symbol())
    module.on = False
    with pytest.raises(NotImplementedError, match="no numbers yet"):
        call(Symbol())


def test_what_is_wrong_with_numbers_is_said_by_code_that_is_recorded(monkeypatch):
    """What cannot be used for another reason keeps its error: constants are made into ids there, too."""
    monkeypatch.setitem(sys.modules, "tensorflow", recorder("tensorflow"))
    assert et.RaggedIds([1, 2], [0, 2]).values.tolist() == [1, 2]
    for ids in ([1.5], [[1], [2, 3]], np.array([1.5]), "1", None):
        with pytest.raises((TypeError, ValueError), match="RaggedIds: values must be"):
            et.RaggedIds(ids, [0, 1])


def test_eager_code_beside_a_framework_runs(monkeypatch):
    """TF1 graphs, functions that only differentiate, and modules that are being imported are no recording."""
    tensorflow = recorder("tensorflow")
    tensorflow.compat.v1.get_default_graph = lambda: types.SimpleNamespace(building_function=False)
    jax = recorder("jax")
    jax.core.Tracer = str
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert np.asarray(et.Variable([1.0])).tolist() == [1]
