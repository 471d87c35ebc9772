"""Trees are Python's own, and results come in the containers of the configuration."""

import collections
import tempfile
import types

import numpy as np
import pytest

import embertable as et
from embertable import v1
from fixture import USER_ROWS, engine, user

Point = collections.namedtuple("Point", "left right")


def feature(table=user()):
    return et.FeatureConfig(table)


CASES = [
    (feature(), 1),
    ([feature(), feature()], [1, 2]),
    ((feature(), [feature()], {}), (1, [2], {})),
    ({"b": feature(), "a": (feature(),)}, {"a": (2,), "b": 1}),
    (Point(feature(), {"x": [feature()]}), Point(1, {"x": [2]})),
    (collections.OrderedDict(z=feature(), a=feature()), collections.OrderedDict(z=1, a=2)),
]


def mapped(call, tree):
    if isinstance(tree, dict):
        return {key: mapped(call, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(call, item) for item in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(call, item) for item in tree)
    return call(tree)


@pytest.mark.parametrize("config, ids", CASES)
def test_results_are_packed_as_the_configuration(config, ids):
    embedding = engine(feature_config=config)
    for as_ids in (lambda i: np.array([i]), lambda i: [i], lambda i: et.RaggedIds([i], [0, 1])):
        embedding.enqueue(mapped(as_ids, ids))
        activations = embedding.dequeue()
        found = mapped(lambda array: (array[0] / USER_ROWS[1]).tolist(), activations)
        assert repr(found) == repr(mapped(lambda i: (USER_ROWS[i] / USER_ROWS[1]).tolist(), mapped(int, config_like(config, ids))))
        embedding.apply_gradients(mapped(np.zeros_like, activations))


def config_like(config, ids):
    """The ids in the containers and the order of the configuration."""
    if isinstance(config, dict):
        return {key: config_like(value, ids[key]) for key, value in config.items()}
    if isinstance(config, tuple) and hasattr(config, "_fields"):
        return type(config)(*map(config_like, config, ids))
    if isinstance(config, (list, tuple)):
        return type(config)(map(config_like, config, ids))
    return ids


def test_containers_keep_their_class_and_order():
    config = collections.OrderedDict(z=feature(), a=feature())
    embedding = engine(feature_config=config)
    config.clear()  # the engine has its own
    embedding.build(1)
    assert isinstance(embedding.output_shapes, collections.OrderedDict)
    assert embedding.output_shapes == collections.OrderedDict(z=(1,), a=(1,))


def test_other_containers_are_refused():
    embedding = engine(feature_config=Point(feature(), feature()))
    other = collections.namedtuple("Other", "left right")
    for tree, error in ((([1], [2]), TypeError), (other([1], [2]), TypeError), ([np.array([1])] * 2, TypeError),
                        ({"left": [1]}, ValueError), (np.array([1]), ValueError)):
        with pytest.raises(error, match="features"):
            embedding.enqueue(tree)


@pytest.mark.parametrize("keys", [(10, 2), (("b", 1), ("a", 2)), (2.5, 1)], ids=["integers", "tuples", "numbers"])
def test_keys_that_are_no_text_have_their_own_order(keys):
    table = user()
    config = {key: et.FeatureConfig(table) for key in keys}
    embedding = engine(feature_config=config)
    embedding.enqueue({key: [i] for i, key in enumerate(keys)}, weights={key: None for key in keys})
    activations = embedding.dequeue()
    assert list(activations) == list(keys)
    assert [activations[key][0].tolist() for key in keys] == USER_ROWS[:2].tolist()
    embedding.apply_gradients(activations)
    assert list(embedding.output_shapes) == list(keys)
    with pytest.raises(ValueError, match="keys of a mapping"):
        embedding.enqueue({keys[0]: [1], type(keys[0])(): [2]})  # 0, an empty tuple
    with pytest.raises(TypeError):
        embedding.enqueue([[1], [2]])
    with pytest.raises(ValueError):
        embedding.enqueue({keys[0]: [1]})


def test_numbers_and_texts_are_different_keys():
    numbers, texts = (engine(feature_config={key: et.FeatureConfig(user())}) for key in (1, "1"))
    with pytest.raises(TypeError, match=r"the keys of a mapping must be \[1\], got \['1'\]; they are no texts in the configuration"):
        numbers.enqueue({"1": [1]})
    with pytest.raises(TypeError, match=r"the keys of a mapping must be \['1'\], got \[1\]; they are texts in the configuration"):
        texts.enqueue({1: [1]})
    numbers.enqueue({1: [1]})
    texts.enqueue({"1": [1]})


def test_keys_without_an_order_are_refused():
    with pytest.raises(TypeError, match="order"):
        engine(feature_config={1: feature(), "a": feature()})


def test_mappings_are_containers():
    table = user()
    config = types.MappingProxyType({"b": et.FeatureConfig(table), "a": et.FeatureConfig(table)})
    embedding = engine(feature_config=config)
    embedding.enqueue(types.MappingProxyType({"a": [1], "b": [2]}))
    activations = embedding.dequeue()
    assert type(activations) is types.MappingProxyType and list(activations) == ["b", "a"]
    assert activations["a"].tolist() == [USER_ROWS[1].tolist()]
    embedding.apply_gradients(collections.ChainMap({"a": activations["a"]}, {"b": None}))
    assert type(embedding.feature_config) is types.MappingProxyType


class Record:
    """What attrs makes of a class with two fields."""

    Field = collections.namedtuple("Field", "name")
    __attrs_attrs__ = (Field("left"), Field("_right"))

    def __init__(self, left, right):
        self.left, self._right = left, right


def test_classes_of_attrs_are_containers():
    table = user()
    embedding = engine(feature_config=Record(et.FeatureConfig(table), [et.FeatureConfig(table)]))
    embedding.enqueue(Record([1], [[2]]))
    activations = embedding.dequeue()
    assert type(activations) is Record and activations._right[0].tolist() == [USER_ROWS[2].tolist()]
    embedding.apply_gradients(activations)
    with pytest.raises(TypeError, match="features must be"):
        embedding.enqueue(Point([1], [[2]]))


def test_leaves_of_a_configuration_are_features():
    with pytest.raises(TypeError, match="'1'.*TableConfig"):
        engine(feature_config=(feature(), user()))


def test_one_batch_for_each_replica():
    embedding = engine(2, feature_config=feature())
    with pytest.raises(ValueError):
        embedding.enqueue(et.PerReplica([[0], [1], [2]]))
    with pytest.raises(ValueError, match="PerReplica"):
        embedding.enqueue(et.PerReplica([et.RaggedIds([0], [0, 1])] * 2), weights=et.RaggedWeights([1.0]))
    embedding.enqueue(et.PerReplica([[3], [4]]))
    activations = embedding.dequeue()
    assert [a.tolist() for a in activations] == [[USER_ROWS[3].tolist()], [USER_ROWS[4].tolist()]]
    with pytest.raises(ValueError, match="2 replicas"):
        embedding.apply_gradients(activations[0])
    embedding.apply_gradients(et.PerReplica([None, activations[1]]))


class TensorFlows:
    """A value of a distributed strategy of TensorFlow."""

    def __init__(self, *values):
        self.values = values


TensorFlows.__name__ = TensorFlows.__qualname__ = "PerReplica"


@pytest.mark.parametrize("of", [lambda *values: et.PerReplica(values), TensorFlows], ids=["ours", "TensorFlow's"])
def test_a_per_replica_stands_anywhere(of):
    table = user()
    embedding = engine(2, feature_config={"a": [et.FeatureConfig(table)], "b": (et.FeatureConfig(table),), "c": et.FeatureConfig(table)})
    ragged = [et.RaggedIds([3, 4], [0, 2]), et.RaggedIds([5], [0, 1])]
    weights = [et.RaggedWeights([1.0, 0.0]), et.RaggedWeights([2.0])]
    embedding.enqueue({"a": [of([0], [1])], "b": (of(*ragged),), "c": [2]}, {"a": [None], "b": (of(*weights),), "c": None})
    first, second = embedding.dequeue()
    assert first["a"][0].tolist() == [USER_ROWS[0].tolist()] and second["a"][0].tolist() == [USER_ROWS[1].tolist()]
    assert first["b"][0].tolist() == [USER_ROWS[3].tolist()] and second["b"][0].tolist() == [USER_ROWS[5].tolist()]
    assert first["c"].tolist() == second["c"].tolist() == [USER_ROWS[2].tolist()]
    before = embedding.read_rows("user", [0, 1, 2])
    ones = np.ones_like(first["c"])
    embedding.apply_gradients({"a": [of(ones, 2 * ones)], "b": (None,), "c": ones})
    assert np.allclose(before - embedding.read_rows("user", [0, 1, 2]), [[0.1] * 2, [0.2] * 2, [0.2] * 2], atol=1e-5)


def test_per_replicas_have_equally_many_parts():
    embedding = engine(2, feature_config=[feature(user(name="a")), feature(user(name="b"))])
    with pytest.raises(ValueError, match="as many parts, got 2 and 3"):
        embedding.enqueue([et.PerReplica([[0], [1]]), et.PerReplica([[0], [1], [2]])])
    with pytest.raises(TypeError, match="must not hold a PerReplica"):
        embedding.enqueue([et.PerReplica([et.PerReplica([[0]]), [1]]), [1]])


def test_weights_may_lack_for_some():
    embedding = engine(feature_config={"a": feature(), "b": feature()})
    ids = et.RaggedIds([1, 2], [0, 2])
    embedding.enqueue({"a": ids, "b": ids}, weights={"b": None, "a": et.RaggedWeights([1, 0])})
    activations = embedding.dequeue()
    assert np.array_equal(activations["a"][0], USER_ROWS[1])
    assert np.array_equal(activations["b"][0], (USER_ROWS[1] + USER_ROWS[2]) / 2)


def nested(levels):
    tree = []
    for _ in range(levels):
        tree = [tree]
    return tree


def cyclic_list():
    tree = []
    tree.append(tree)
    return tree


def cyclic_dict():
    tree = {}
    tree["a"] = tree
    return tree


@pytest.mark.parametrize("tree", [cyclic_list, cyclic_dict, lambda: nested(200_000), lambda: (nested(300),)],
                         ids=["list", "dict", "200000 lists", "300 lists"])
@pytest.mark.parametrize("call", [
    lambda tree: et.Embedding(tree, et.SGD(0.1), et.EngineStrategy()),
    lambda tree: et.ServingEmbedding(tree),
    lambda tree: engine(feature_config=[feature()]).enqueue(tree),
    lambda tree: engine(feature_config=feature()).enqueue(tree),
    lambda tree: engine(feature_config=feature()).enqueue([1], tree),
    lambda tree: engine(feature_config=feature()).look_up(et.PerReplica([tree])),
    lambda tree: engine(feature_config=[feature()]).build(tree),
    lambda tree: trained().apply_gradients(tree),
    lambda tree: trained().dequeue(out=tree),
    lambda tree: trained().look_up([1], out=tree),
    lambda tree: et.serving_embedding_lookup(tree, None, {}, feature()),
    lambda tree: et.serving_embedding_lookup([1], None, {}, tree),
    lambda tree: et.embedding_lookup(tree, [0]),
    lambda tree: et.embedding_lookup(np.ones((2, 2)), tree),
    lambda tree: et.RaggedIds(tree, [0]),
    lambda tree: et.RaggedIds.from_rows(tree),
    lambda tree: et.Variable(tree),
    lambda tree: et.Initializer.values(tree),
    lambda tree: et.IdMapBuilder("string").add([tree]),
    lambda tree: et.IdMapBuilder("integer").add([tree]),
    lambda tree: et.SGD(tree),
    lambda tree: et.FeatureConfig(user(), output_shape=tree),
    lambda tree: et.ShardedVariable([et.Variable([1, 2])])[tree],
    lambda tree: et.ShardedVariable([et.Variable([1, 2])]) + tree,
    lambda tree: saved(et.CallerState(tree)),
    lambda tree: saved(et.CallerState(tensors={"a": tree})),
    lambda tree: saved(et.CallerState(blobs={"a": tree})),
])
def test_a_container_in_itself_is_refused(call, tree):
    given = tree()
    with pytest.raises((ValueError, TypeError, RecursionError, KeyError, IndexError)):
        call(given)
        if isinstance(given, tuple):
            raise ValueError("300 lists are few for some of the calls")
    del given


def trained():
    embedding = engine(feature_config=[feature()])
    embedding.enqueue([[1]])
    embedding.dequeue()
    return embedding


def saved(state):
    with tempfile.TemporaryDirectory() as directory:
        et.save_variables(directory + "/run", 1, {"v": et.Variable([1])}, state)


def test_keys_keep_all_their_bytes(tmp_path):
    config = {"x": feature(), "x\0y": feature(), "\0": [feature()]}
    embedding = engine(feature_config=config)
    embedding.enqueue({"x": [1], "x\0y": [2], "\0": [[3]]})
    found = embedding.dequeue()
    assert list(found) == list(config)
    assert [found["x"][0, 0], found["x\0y"][0, 0], found["\0"][0][0, 0]] == USER_ROWS[1:4, 0].tolist()
    state = et.CallerState(tensors={"a\0b": np.ones(2), "a\0c": np.zeros(3)}, blobs={"a\0b": b"1", "a\0c": b"2"})
    step = et.save_variables(tmp_path / "run", 1, {"v": et.Variable([1])}, state)
    read = et.read_saved_state(step).caller
    tensors = {name: value.tolist() for name, value in read.tensors.items()}
    assert tensors == {"a\0b": [1, 1], "a\0c": [0, 0, 0], "v": [1]}
    assert read.blobs == {"a\0b": b"1", "a\0c": b"2"}


def test_keys_that_are_no_text_of_utf8_are_refused():
    with pytest.raises(ValueError, match=r"\\udcff"):
        engine(feature_config={"\udcff": feature()})
    with pytest.raises(ValueError, match=r"\\udcff"):
        saved(et.CallerState(blobs={"\udcff": b""}))


def test_a_dict_that_changes_while_it_is_read_has_no_other_form():
    class Shrinking(dict):
        def __getitem__(self, key):
            self.pop("b", None)
            return super().__getitem__(key)

    with pytest.raises(KeyError):
        engine(feature_config=Shrinking(a=feature(), b=feature()))


class Emptying:
    """An array, or a dim, that empties the dict that it is an item of when it is read."""

    def __init__(self, owner, value):
        self.owner, self.value = owner, value

    def __array__(self, dtype=None, copy=None):
        self.owner.clear()
        return np.asarray(self.value, dtype)

    def __index__(self):
        self.owner.clear()
        return self.value

    @property
    def embedding_indices(self):
        self.owner.clear()
        return self.value

    sample_indices = aggregation_weights = None


def emptied(**values):
    owner = {}
    owner.update((name, Emptying(owner, value)) for name, value in values.items())
    return owner


def v1_activations():
    tables = {"t": v1.TableConfig(4, 1, et.Initializer.row_id(), combiner="sum")}
    embedding = v1.TPUEmbedding(tables, {"f": v1.FeatureConfig("t"), "g": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
    embedding.enqueue([emptied(f=[1, 2], g=[3, 0])])
    (activations,) = embedding.get_activations()
    return [activations[name].tolist() for name in "fg"]


def served():
    tables = [et.TableConfig(2, 1, name=name) for name in "ab"]
    values = {}
    values.update((table, Emptying(values, [[5.0 + i], [7.0 + i]])) for i, table in enumerate(tables))
    return [out.tolist() for out in et.serving_embedding_lookup([[1], [0]], None, values, [et.FeatureConfig(t) for t in tables])]


def taken_apart():
    layout = et.InterleavedLayout({"a": 1, "b": 1}, {"f": "a", "g": "b"}, 1)
    return [out.tolist() for out in et.deinterleave(layout, emptied(a=[[1.0]], b=[[2.0]])).values()]


@pytest.mark.parametrize("call, expected", [
    (v1_activations, [[[1], [2]], [[3], [0]]]),
    (served, [[[7]], [[6]]]),
    (taken_apart, [[[1]], [[2]]]),
    (lambda: et.InterleavedLayout(emptied(a=1, b=2), {"f": "a", "g": "b"}, 3).table_shape("b"), (3, 2)),
])
def test_a_dict_that_empties_while_it_is_read_is_read_as_it_was(call, expected):
    assert call() == expected
