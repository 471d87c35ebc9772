"""Numbered engine cases through Python. Shapes and gradients beyond these: the cases in tests/engine."""

import collections

import numpy as np
import pytest

import embertable as et
from fixture import (USER_ROWS, VIDEO_ROWS, accelerator, batch, batches, each, engine, features, loss_gradient, ragged,
                     sparse, train, user, video)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("strategy", [None, accelerator()])
def test_case_001_repeated_name(strategy):
    with pytest.raises(ValueError, match="video"):
        et.Embedding(features(users=user(name="video")), et.SGD(), strategy)


@pytest.mark.parametrize("strategy", [None, accelerator()])
def test_case_002_foreign_optimizer(strategy):
    with pytest.raises(ValueError, match="dict"):
        et.Embedding(features(), {"sgd": 0.1}, strategy)


def test_case_003_no_optimizer():
    with pytest.raises(ValueError, match="video"):
        et.Embedding(features(), None, accelerator())
    plain = et.Embedding(features())
    plain.build()
    assert [table.slots for table in plain.tables] == [[], []]


def test_case_004_own_optimizer_wins():
    embedding = engine(feature_config=features(videos=video(optimizer=et.SGD(0.2))))
    ids = (ragged([[0]]), ragged([[]]), ragged([[3]]))
    train(embedding, ids, np.ones_like)
    close(embedding.read_rows("video", 0), VIDEO_ROWS[0] - 0.2)
    close(embedding.read_rows("user", 3), USER_ROWS[3] - 0.1)


def test_case_006_maps_are_flattened_by_key():
    one, two = et.TableConfig(4, 2, name="one"), et.TableConfig(4, 2, name="two")
    config = {"b": et.FeatureConfig(one), "a": et.FeatureConfig(two), "c": et.FeatureConfig(one)}
    embedding = engine(feature_config=config)
    embedding.build(4)
    assert [table.name for table in embedding.tables] == ["two", "one"]
    assert list(embedding.output_shapes) == ["b", "a", "c"]


def test_case_008_one_rate_for_one_function():
    calls = []

    def f():
        calls.append("f")
        return 0.5

    def g():
        calls.append("g")
        return 0.25

    tables = [et.TableConfig(4, 2, et.Initializer.zeros(), et.SGD(rate), name=name)
              for rate, name in ((f, "a"), (g, "b"), (f, "c"))]
    embedding = engine(feature_config=[et.FeatureConfig(table) for table in tables])
    embedding.enqueue([[0], [0], [0]])
    embedding.dequeue()
    embedding.apply_gradients([np.ones((1, 2), np.float32)] * 3)
    assert calls == ["f", "g"]
    assert [embedding.read_rows(name, 0)[0] for name in "abc"] == [-0.5, -0.25, -0.5]


def test_case_012_one_engine_on_one_accelerator():
    strategy = accelerator()
    first, second = (et.Embedding(features(), et.SGD(0.1), strategy) for _ in range(2))
    first.build(64)
    with pytest.raises(RuntimeError, match="strategy"):
        second.build(64)
    strategy.initialize()
    second.build(64)


def test_case_014_a_second_build_does_nothing():
    embedding = engine()
    embedding.build(64)
    embedding.build(["garbage"])
    assert embedding.output_shapes == ((64,), (64,), (64,))


def test_case_015_016_017_shapes_that_contradict_or_stay_unknown():
    embedding = engine(feature_config=features(output_shape=(2, 4)))
    with pytest.raises(ValueError, match=r"'0'.*\(2, 4\).*\(1, 1\)"):
        embedding.build([(1, 1, 1)] * 3)
    for shapes in (None, [(1, None, None)] * 3):
        with pytest.raises(ValueError, match="'0'"):
            engine().build(shapes)


def test_case_018_021_configured_shapes_and_batch_sizes():
    configured = engine(feature_config=features(output_shape=(2, 4)))
    configured.build([(2, None, None)] * 3)
    assert configured.output_shapes == ((2, 4),) * 3
    both = engine()
    both.build([(2, 5)] * 3, 64)
    assert both.output_shapes == ((2,),) * 3
    number = engine()
    number.build(64)
    assert number.output_shapes == ((64,),) * 3


def test_case_026_number_of_shapes():
    with pytest.raises(ValueError, match="per_replica_input_shapes"):
        engine().build([(2, 3)] * 2)
    with pytest.raises(ValueError, match="'0'"):
        engine().build([None] * 3)


def test_shapes_are_those_of_the_features_by_name():
    """Shapes, as a tree or a list in flatten order; names and containers that are not the features'."""
    feature, table = (lambda: et.FeatureConfig(table)), user()
    Named = collections.namedtuple("Named", "x y")
    two, nested = {"a": feature(), "b": feature()}, {"b": feature(), "a": {"x": feature(), "y": feature()}}
    by_number = {1: feature(), 2: feature()}

    class Attrs:
        """What attrs makes of a class with one field."""

        Field = collections.namedtuple("Field", "name")
        __attrs_attrs__ = (Field("x"),)

        def __init__(self, x):
            self.x = x

        def __eq__(self, other):
            return self.x == other.x

    named, record = Named(feature(), feature()), [Attrs(feature())]
    for config, shapes, expected in [
            (two, {"b": (3,), "a": (2,)}, {"a": (2,), "b": (3,)}), (two, [(2,), (3,)], {"a": (2,), "b": (3,)}),
            (by_number, {2: (3,), 1: (2,)}, {1: (2,), 2: (3,)}),
            (nested, {"a": {"y": (3,), "x": (2,)}, "b": (4,)}, {"b": (4,), "a": {"x": (2,), "y": (3,)}}),
            (nested, [(2,), (3,), (4,)], {"b": (4,), "a": {"x": (2,), "y": (3,)}}),
            (nested, [[(2,), (3,)], (4,)], {"b": (4,), "a": {"x": (2,), "y": (3,)}}),
            (named, Named((2,), (3,)), Named((2,), (3,))), (record, [Attrs((2,))], [Attrs((2,))]), (record, [(2,)], [Attrs((2,))]),
            (feature(), (2,), (2,)), (feature(), [(2,)], (2,)), (feature(), [[2]], (2,)), ([feature()], ((2,),), [(2,)])]:
        embedding = engine(feature_config=config)
        embedding.build(shapes)
        assert embedding.output_shapes == expected
    for config, shapes in [
            (two, {"b": (2,), "c": (3,)}), (two, {"x": {"y": (2,)}, "z": [(3,)]}), (two, {"a": (2,)}), (by_number, {1: (2,), 3: (3,)}),
            (two, Named((2,), (3,))), ([feature(), feature()], {"p": (2,), "q": (3,)}), ([feature(), feature()], [(2,), (3,), (4,)]),
            (named, {"x": (2,), "y": (3,)}), (named, collections.namedtuple("Other", "y x")((2,), (3,))), (record, [{"x": (2,)}])]:
        embedding = engine(feature_config=config)
        with pytest.raises(ValueError, match="per_replica_input_shapes: must be of the form .*, got"):
            embedding.build(shapes)
        assert not embedding.built


def test_case_028_plain_objects_take_no_steps():
    plain = et.Embedding(features())
    for call in (lambda: plain.enqueue("anything"), plain.dequeue, lambda: plain.apply_gradients(None)):
        with pytest.raises(RuntimeError):
            call()


def test_case_029_not_built():
    with pytest.raises(RuntimeError):
        engine().dequeue()
    with pytest.raises(RuntimeError):
        engine().apply_gradients((None, None, None))


def test_case_030_embedding_tables():
    config = features()
    with pytest.raises(RuntimeError):
        engine(feature_config=config).embedding_tables()
    tables = et.Embedding(config).embedding_tables()
    assert set(tables) == {config[0].table, config[2].table}
    assert np.array_equal(tables[config[0].table], VIDEO_ROWS)


def test_case_031_unverified_shapes():
    embedding = engine()
    embedding.verify_output_shapes_on_enqueue = False
    with pytest.raises(ValueError):
        embedding.enqueue(batch())
    embedding.build(3)
    with pytest.raises(ValueError, match="'0'"):
        embedding.enqueue(batch())


def test_case_032_calls_out_of_order():
    embedding = engine()
    embedding.build(2)
    gradients = each((np.ones((2, 4), np.float32),) * 2 + (np.ones((2, 2), np.float32),), np.copy)
    with pytest.raises(RuntimeError):
        embedding.dequeue()
    embedding.enqueue(batch())
    with pytest.raises(RuntimeError):
        embedding.apply_gradients(gradients)
    embedding.dequeue()
    embedding.enqueue(batch(), training=False)
    with pytest.raises(RuntimeError):
        embedding.dequeue()
    embedding.apply_gradients(gradients)
    embedding.dequeue()
    with pytest.raises(RuntimeError):
        embedding.apply_gradients(gradients)
    assert embedding.step == 1


def test_case_034_structures():
    embedding = engine()
    ids = batch()
    with pytest.raises(ValueError):
        embedding.enqueue(ids[:1])
    with pytest.raises(ValueError):
        embedding.enqueue(ids, weights=(None,))
    with pytest.raises(TypeError):
        embedding.enqueue(list(ids))
    assert not embedding.built


def test_case_035_036_kinds_of_weights():
    dense = (np.array([0, 1]), np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="'0'"):
        engine().enqueue(dense, weights=(np.ones(2, np.float32), None, None))
    for kind, weight in ((sparse, et.RaggedWeights([1.0] * 3)), (ragged, et.SparseWeights([1.0] * 3))):
        with pytest.raises(ValueError, match="'0'.*" + kind.__name__):
            engine().enqueue(batch(kind=kind), weights=(weight, None, None))


def test_case_037_kinds_mix():
    embedding = engine()
    mixed = tuple(kind(ids) for kind, ids in zip((sparse, ragged, sparse), ([[0], [0, 1]], [[0, 1], [1]],
                                                                           [[3], [0, 1, 2]])))
    embedding.enqueue(mixed)
    close(embedding.dequeue()[2], [[6, 7], [2, 3]])


def test_case_040_041_ranks():
    for ids in (np.array(3), np.zeros((2, 3), np.int64), et.SparseIds([[0], [1]], [0, 1], (2,))):
        with pytest.raises(ValueError, match="'0'"):
            engine().enqueue((ids,) + batch()[1:])
    embedding = engine()
    embedding.enqueue((np.array([3]),) * 3)
    assert embedding.dequeue()[0].shape == (1, 4)


def test_case_047_widths_do_not_matter():
    results = []
    for ids, floats in ((np.int32, np.float32), (np.int64, np.float64)):
        embedding = engine()
        rows = et.RaggedIds(np.array([1, 3, 2], ids), np.array([0, 2, 3], ids))
        weights = et.RaggedWeights(np.array([2, 0.5, 3], floats))
        embedding.enqueue((rows,) * 3, weights=(weights,) * 3)
        results.append(embedding.dequeue())
        embedding.apply_gradients(each(results[-1], lambda a: np.ones(a.shape, floats)))
        results.append((embedding.read_rows("video", range(8)), embedding.read_rows("user", range(16))))
    for got, want in zip(results[0] + results[1], results[2] + results[3]):
        assert np.array_equal(got, want)


def test_case_048_contents_that_do_not_fit_together():
    rest = batch()[1:]
    for ids in (et.RaggedIds([0, 1], [1, 2]), et.RaggedIds([0, 1], [0, 2, 1]), et.RaggedIds([0, 1], [0, 1]),
                et.SparseIds([[2, 0]], [0], (2, 2))):
        with pytest.raises(et.DataError, match="'0'"):
            engine().enqueue((ids,) + rest)
    with pytest.raises(et.DataError, match="'0'"):
        engine().enqueue(batch(), weights=(et.RaggedWeights([1.0]), None, None))


def test_case_049_ids_outside_their_table():
    for bad in (8, -1):
        with pytest.raises(et.DataError, match=f"'0'.*8.*got {bad}"):
            engine().enqueue((ragged([[0], [bad]]),) + batch()[1:])
    embedding = engine(out_of_range="drop")
    embedding.enqueue((ragged([[0, 8, 1], [9]]), ragged([[], []]), ragged([[3, 99], [16]])))
    watched, _, friends = embedding.dequeue()
    close(watched, [[4, 6, 8, 10], [0] * 4])
    close(friends, [[6, 7], [0, 0]])


@pytest.mark.parametrize("kind", [ragged, sparse])
@pytest.mark.parametrize("replicas, hosts", [(1, 1), (2, 1), (2, 2), (6, 3)])
def test_case_052_066_forward(kind, replicas, hosts):
    embedding = engine(replicas, hosts)
    embedding.enqueue(batches(replicas, kind))
    activations = embedding.dequeue()
    first = activations if replicas == 1 else activations[0]
    close(first[0], [[0, 1, 2, 3], [4, 6, 8, 10]])
    close(first[1], [[4, 6, 8, 10], [4, 5, 6, 7]])
    close(first[2], [[6, 7], [2, 3]])
    if replicas > 1:
        assert isinstance(activations, et.PerReplica) and len(activations) == replicas
        close(activations[1][0], [[4, 6, 8, 10], [4, 5, 6, 7]])
        close(activations[1][1], [[0, 1, 2, 3], [4, 6, 8, 10]])


def test_case_054_dense():
    embedding = engine()
    embedding.enqueue(([0, 0, 1, 0], np.array([0, 1, 1, 0], np.uint8), [3, 0, 1, 2]))
    watched, favorited, friends = embedding.dequeue()
    assert np.array_equal(watched, VIDEO_ROWS[[0, 0, 1, 0]])
    assert np.array_equal(favorited, VIDEO_ROWS[[0, 1, 1, 0]])
    assert np.array_equal(friends, USER_ROWS[[3, 0, 1, 2]])


def test_case_056_057_weights():
    embedding = engine()
    ids = batch()
    halves = [et.RaggedWeights(np.full(len(one.values), 0.5)) for one in ids]
    embedding.enqueue(ids, weights=(halves[0], None, halves[2]))
    watched, favorited, friends = embedding.dequeue()
    close(watched, [[0, 0.5, 1, 1.5], [2, 3, 4, 5]])
    close(favorited, [[4, 6, 8, 10], [4, 5, 6, 7]])
    close(friends, [[6, 7], [2, 3]])
    for combiner, want in (("sum", [[7, 9.5], [12, 15]]), ("mean", [[2.8, 3.8], [4, 5]]),
                           ("sqrtn", [[3.3954988, 4.6081769], [4, 5]])):
        embedding = engine(feature_config=et.FeatureConfig(user(combiner=combiner)))
        embedding.enqueue(ragged([[1, 3], [2]]), weights=et.RaggedWeights([2, 0.5, 3]))
        close(embedding.dequeue(), want)


@pytest.mark.parametrize("kind", [ragged, sparse])
def test_case_061_sequences(kind):
    videos, users = video(), user()
    config = tuple(et.FeatureConfig(table, max_sequence_length=length)
                   for table, length in ((videos, 2), (videos, 2), (users, 3)))
    embedding = engine(feature_config=config)
    embedding.enqueue(batch(kind=kind))
    watched, favorited, friends = embedding.dequeue()
    r, u, zero = VIDEO_ROWS, USER_ROWS, 0 * VIDEO_ROWS
    assert np.array_equal(watched, [[r[0], zero[0]], [r[0], r[1]]])
    assert np.array_equal(favorited, [[r[0], r[1]], [r[1], zero[0]]])
    assert np.array_equal(friends, [[u[3], zero[0][:2], zero[0][:2]], [u[0], u[1], u[2]]])


@pytest.mark.parametrize("kind", [ragged, sparse])
@pytest.mark.parametrize("replicas, hosts", [(1, 1), (2, 1), (2, 2), (6, 3)])
def test_case_067_sgd(kind, replicas, hosts):
    embedding = engine(replicas, hosts)
    train(embedding, batches(replicas, kind), loss_gradient(replicas))
    video_rows = embedding.read_rows("video", np.arange(8))
    close(video_rows[:2], [[-0.8, -0.3, 0.2, 0.7], [2.8, 3.3, 3.8, 4.3]])
    assert np.array_equal(video_rows[2:], VIDEO_ROWS[2:])
    close(embedding.read_rows("user", [0, 1, 2, 3]),
          [[-0.2 / 3, 0.9], [2 - 0.2 / 3, 2.9], [4 - 0.2 / 3, 4.9], [5.4, 6.3]])


def test_case_068_adagrad():
    embedding = engine(optimizer=et.Adagrad(0.1))
    train(embedding, batch(), loss_gradient(1))
    close(embedding.read_rows("video/accumulators", [0, 1, 2]),
          [[64.1, 169.1, 324.1, 529.1], [144.1, 289.1, 484.1, 729.1], [0.1] * 4])
    close(embedding.read_rows("video", [0, 1]),
          [[-0.0999220, 0.9000296, 1.9000154, 2.9000095], [3.9000347, 4.9000173, 5.9000103, 6.9000069]])
    close(embedding.read_rows("user/accumulators", 3), [36.1, 49.1])


def test_case_072_inference_changes_nothing():
    embedding = engine(2)
    embedding.build(2)
    before = embedding.digest()
    for _ in range(3):
        embedding.enqueue(batches(2), training=False)
        close(embedding.dequeue()[1][1], [[0, 1, 2, 3], [4, 6, 8, 10]])
    assert embedding.digest() == before and embedding.step == 0


def test_case_074_no_gradient_counts_as_zeros():
    warnings = []
    embedding = engine(log=warnings.append)
    embedding.enqueue(batch())
    embedding.dequeue()
    embedding.apply_gradients((None, None, np.ones((2, 2), np.float32)))
    assert np.array_equal(embedding.read_rows("video", [0, 1]), VIDEO_ROWS[:2])
    close(embedding.read_rows("user", 3), USER_ROWS[3] - 0.1)
    assert len(warnings) == 2 and "'0'" in warnings[0] and "'1'" in warnings[1]


def test_case_080_replicas_are_summed():
    embedding = engine(4, optimizer=et.SGD(1.0))
    embedding.enqueue((ragged([[0]]), ragged([[]]), ragged([[]])))
    activations = embedding.dequeue()
    embedding.apply_gradients(each(activations, np.ones_like))
    close(embedding.read_rows("video", 0), VIDEO_ROWS[0] - 4)


def test_case_082_083_gradients_of_another_form():
    embedding = engine()
    embedding.enqueue(batch())
    w, f, u = (np.copy(a) for a in embedding.dequeue())
    with pytest.raises(ValueError, match="'0'.*str"):
        embedding.apply_gradients(("one", "two", "three"))
    with pytest.raises(TypeError):
        embedding.apply_gradients([w, f, u])
    with pytest.raises(ValueError):
        embedding.apply_gradients((w, f))
    with pytest.raises(ValueError, match=r"'0'.*\(2, 4\).*\(2, 3\)"):
        embedding.apply_gradients((w[:, :3], f, u))
    with pytest.raises(ValueError, match="'1'.*int64"):
        embedding.apply_gradients((w, f.astype(np.int64), u))
    embedding.apply_gradients((w, f, u))


@pytest.mark.parametrize("replicas", [1, 3])
def test_case_084_a_rate_that_changes(replicas):
    zeros = et.TableConfig(4, 1, et.Initializer.zeros(), name="t")
    embedding = engine(replicas, feature_config=et.FeatureConfig(zeros),
                       optimizer=et.SGD(lambda: max(0.5, 1 - 0.05 * embedding.step)))
    seen = []
    for _ in range(10):
        embedding.enqueue(np.array([0]))
        activations = embedding.dequeue()
        one = np.full((1, 1), 1 / replicas, np.float32)
        seen.append(np.ravel(activations)[0])
        embedding.apply_gradients(one if replicas == 1 else et.PerReplica([one] * replicas))
    close(seen, [0, -1, -1.95, -2.85, -3.7, -4.5, -5.25, -5.95, -6.6, -7.2])


@pytest.mark.parametrize("pipelined, forwards", [(False, [0, -1, -2, -3, -4]), (True, [0, 0, -1, -2, -3])])
def test_case_090_staleness(pipelined, forwards):
    one = et.TableConfig(1, 1, et.Initializer.zeros(), name="t")
    embedding = engine(feature_config=et.FeatureConfig(one), optimizer=et.SGD(1.0),
                       pipeline_execution_with_tensor_core=pipelined)
    seen = []
    for _ in range(5):
        embedding.enqueue([0])
        seen.append(embedding.dequeue()[0, 0])
        embedding.apply_gradients(np.ones((1, 1), np.float32))
    assert seen == forwards
    assert embedding.read_rows("t", 0)[0] == -5


@pytest.mark.parametrize("sharding", ["div", "mod"])
def test_case_096_099_rows_of_shards(sharding):
    table = et.TableConfig(13, 2, et.Initializer.row_id(), name="t")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(), accelerator(5, 5, sharding=sharding))
    embedding.build(1)
    rows = [0, 3, 6, 9, 11, 12]
    assert np.array_equal(embedding.read_rows("t", rows)[:, 0], rows)
