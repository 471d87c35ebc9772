"""Tables that are looked up and trained without an engine: numbers by hand, and an engine's bits."""

import threading

import numpy as np
import pytest

import embertable as et
from fixture import (USER_ROWS, VIDEO_ROWS, accelerator, batch, batches, each, engine, features, loss_gradient, train, user,
                     video)


def direct(feature_config=None, optimizer=None, replicas=1, **options):
    return et.DirectEmbedding(features() if feature_config is None else feature_config, optimizer or et.SGD(0.1),
                              accelerator(replicas), **options)


def one_table(optimizer=None, replicas=1, rows=4, **options):
    """A table of zeros with one number a row, and its tables."""
    table = et.TableConfig(rows, 1, et.Initializer.zeros(), combiner="sum", name="t")
    return table, et.DirectEmbedding(et.FeatureConfig(table), optimizer, accelerator(replicas), **options)


def rows_of(tables, variable="t", rows=4):
    return tables.read_rows(variable, np.arange(rows)).reshape(rows, -1).tolist()


def test_a_strategy_is_needed():
    with pytest.raises(RuntimeError, match="strategy"):
        et.DirectEmbedding(features(), et.SGD(0.1))
    with pytest.raises(TypeError, match="strategy must be an EngineStrategy"):
        et.DirectEmbedding(features(), et.SGD(0.1), "tpu")


def test_lookups_are_those_of_the_rows():
    tables = direct()
    watched, favorited, friends = tables(batch())
    assert watched.tolist() == [VIDEO_ROWS[0].tolist(), (VIDEO_ROWS[0] + VIDEO_ROWS[1]).tolist()]
    assert favorited.tolist() == [(VIDEO_ROWS[0] + VIDEO_ROWS[1]).tolist(), VIDEO_ROWS[1].tolist()]
    np.testing.assert_allclose(friends, [USER_ROWS[3], USER_ROWS[:3].mean(0)], rtol=1e-6)
    assert tables.built and tables.step == 0


def test_objects_live_side_by_side_on_a_strategy_that_holds_an_engine():
    strategy = accelerator()
    holds = et.Embedding(features(), et.SGD(0.1), strategy)
    holds.build(2)
    first, second = (et.DirectEmbedding(features(), et.SGD(0.1), strategy, seed=seed) for seed in (0, 0))
    assert first.digest() == second.digest() == holds.digest()
    assert first.strategy is strategy and first.replicas == 1


def test_batches_of_any_shape_and_part():
    tables = et.DirectEmbedding({"a": et.FeatureConfig(video()), "b": et.FeatureConfig(user())}, et.SGD(0.1), accelerator())
    assert tables({"a": [1, 2, 3]})["a"].tolist() == VIDEO_ROWS[1:4].tolist()
    assert tables({"a": [[1, 2], [3, 0]]})["a"].shape == (2, 2, 4)
    with pytest.raises(et.DataError, match="'a'.*-1"):
        tables({"a": [-1]})
    with pytest.raises(ValueError, match="c"):
        tables({"c": [1]})


def test_weights_count_as_they_are():
    tables = direct(et.FeatureConfig(video()))
    got = tables(et.RaggedIds.from_rows([[1, 2], []]), et.RaggedWeights([2.0, -1.0]))
    assert got.tolist() == [(2 * VIDEO_ROWS[1] - VIDEO_ROWS[2]).tolist(), [0, 0, 0, 0]]


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("optimizer", [et.SGD(0.1), et.Adagrad(0.1), et.RowwiseAdagrad(0.1), et.Optimizer("adam", 0.1)])
def test_steps_have_the_bits_of_an_engine(optimizer, replicas):
    tables, reference = direct(optimizer=optimizer, replicas=replicas), engine(replicas, optimizer=optimizer)
    for _ in range(3):
        wanted = train(reference, batches(replicas), loss_gradient(replicas))
        activations, lookup = tables.look_up(batches(replicas))
        for got, want in zip(*(trees if replicas > 1 else [trees] for trees in (activations, wanted))):
            for one, other in zip(got, want):
                assert one.tobytes() == other.tobytes()
        tables.apply_gradients(lookup, each(activations, loss_gradient(replicas)))
    assert tables.step == 3 and tables.digest() == reference.digest()


def test_gradients_are_sums_by_row():
    table, tables = one_table()
    _, lookup = tables.look_up(et.RaggedIds.from_rows([[3, 1], [1]]))
    got = tables.gradients(lookup, np.array([[2.0], [5.0]]))[table]
    assert got.indices.tolist() == [1, 3] and got.values.tolist() == [[7.0], [2.0]]
    assert got.dense_shape == (4, 1) and got.dense().tolist() == [[0], [7], [0], [2]]
    assert tables.gradients(lookup, None)[table].values.tolist() == [[0], [0]]
    assert repr(got) == "RowGradients(2 of 4 rows, dim 1)"


def test_gradients_go_into_scatters():
    table, tables = one_table()
    _, lookup = tables.look_up([1, 3, 1])
    got = tables.gradients(lookup, [[1.0], [2.0], [4.0]])[table]
    variable = et.ShardedVariable([et.Variable(np.zeros((2, 1), np.float32)) for _ in range(2)])
    assert variable.scatter_sub(got).numpy().tolist() == [[0], [-5], [0], [-2]]


def test_several_lookups_of_one_step():
    table, tables = one_table(et.Adagrad(0.5, initial_accumulator_value=1.0))
    _, query = tables.look_up([0, 1])
    _, item = tables.look_up(et.RaggedIds.from_rows([[1, 2]]))
    gradients = [[[1.0], [2.0]], [[4.0]]]
    assert tables.gradients([query, item], gradients)[table].values.tolist() == [[1], [6], [4]]
    tables.apply_gradients([query, item], gradients)
    assert tables.step == 1
    assert rows_of(tables, "t/accumulators") == [[2], [37], [17], [1]]  # of the sums, not of each lookup
    tables.apply_gradients([item, item], [[[1.0]], [[1.0]]])
    assert rows_of(tables, "t/accumulators") == [[2], [41], [21], [1]]
    with pytest.raises(ValueError, match="gradients of 2 lookups"):
        tables.gradients([query, item], gradients[:1])
    with pytest.raises(TypeError, match="list with a tree for each"):
        tables.gradients([query, item], np.ones((2, 1)))
    with pytest.raises(ValueError, match="need a lookup"):
        tables.gradients([], [])


def test_an_update_of_the_callers_is_an_optimizer():
    """Momentum by hand: m = 0.5 m + g, w -= m."""
    table, tables = one_table(et.slots_only(["momentum"]))
    seen = []

    def momentum(update):
        seen.append((update.table, update.rows.tolist(), update.gradients.tolist(), update.step))
        m = update.slots["momentum"]
        m[update.rows] = 0.5 * m[update.rows] + update.gradients
        update.parameters[update.rows] -= m[update.rows]

    for _ in range(2):
        _, lookup = tables.look_up([2, 0])
        tables.apply_gradients(lookup, [[4.0], [1.0]], momentum)
    assert seen == [("t", [0, 2], [[1.0], [4.0]], 1), ("t", [0, 2], [[1.0], [4.0]], 2)]
    assert rows_of(tables) == [[-2.5], [0], [-10], [0]]
    assert rows_of(tables, "t/momentum") == [[1.5], [0], [6], [0]]
    with pytest.raises(RuntimeError, match="slots_only"):
        tables.apply_gradients(lookup, [[4.0], [1.0]])


def test_tables_without_optimizer_are_stepped_by_an_update_alone():
    table, tables = one_table()
    _, lookup = tables.look_up([1])
    with pytest.raises(RuntimeError, match="table 't' has no optimizer"):
        tables.apply_gradients(lookup, [[1.0]])
    tables.embedding_tables()[table][1] = 7
    assert tables([1]).tolist() == [[7]]
    assert [slot.name for slot in tables.tables[0].slots] == [] and tables.tables[0].trainable


def test_row_wise_slots_are_vectors():
    table, tables = one_table(et.RowwiseAdagrad(0.5))
    shapes = []
    _, lookup = tables.look_up([1])
    tables.apply_gradients(lookup, [[1.0]], lambda update: shapes.append(update.slots["accumulators"].shape))
    assert shapes == [(4,)]


def test_slots_start_as_the_callers_function_says():
    asked = []

    def create(table, slot, row_wise):
        asked.append((table.name, slot, row_wise))
        return et.Initializer.constant(3)

    _, tables = one_table(et.slots_only(["a", "b"], create))
    assert rows_of(tables, "t/b") == [[3]] * 4
    assert asked == [("t", "a", False), ("t", "b", False)]


def test_what_an_update_raises_comes_out_and_a_restore_repairs(tmp_path):
    _, tables = one_table()
    tables.build()
    tables.save(tmp_path)
    _, lookup = tables.look_up([1])

    def fails(update):
        update.parameters[1] = 9
        raise ZeroDivisionError("half way")

    with pytest.raises(ZeroDivisionError, match="half way"):
        tables.apply_gradients(lookup, [[1.0]], fails)
    with pytest.raises(RuntimeError, match="fail"):
        tables.apply_gradients(lookup, [[1.0]], lambda update: None)
    tables.restore(tmp_path)
    assert rows_of(tables) == [[0]] * 4


def test_an_update_must_not_call_its_tables():
    _, tables = one_table()
    _, lookup = tables.look_up([1])
    with pytest.raises(RuntimeError, match="called by a function that it calls itself"):
        tables.apply_gradients(lookup, [[1.0]], lambda update: tables.read_rows("t", [0]))


@pytest.mark.parametrize("lookup, gradients, error, text", [
    ("mine", [[1.0]], ValueError, r"shape \(2, 1\), got \(1, 1\)"),
    ("mine", {"a": None}, (TypeError, ValueError), "gradients"),
    ("another's", [[1.0], [2.0]], RuntimeError, "another DirectEmbedding"),
    (None, [[1.0], [2.0]], TypeError, "DirectLookup"),
])
def test_misuse_changes_nothing(lookup, gradients, error, text):
    _, tables = one_table(et.SGD(1))
    _, other = one_table(et.SGD(1))
    before = tables.digest()
    lookup = {"mine": tables, "another's": other}[lookup].look_up([1, 2])[1] if lookup else None
    with pytest.raises(error, match=text):
        tables.apply_gradients(lookup, gradients)
    assert tables.digest() == before and tables.step == 0


def test_checkpoints_go_both_ways(tmp_path):
    tables, reference = direct(optimizer=et.Adagrad(0.1)), engine(optimizer=et.Adagrad(0.1))
    train(reference, batch(), loss_gradient(1))
    reference.save(tmp_path / "engine", et.CallerState({"epoch": 3}))
    report = tables.restore(tmp_path / "engine")
    assert report.caller.json == {"epoch": 3} and tables.step == 1
    activations, lookup = tables.look_up(batch())
    tables.apply_gradients(lookup, each(activations, loss_gradient(1)))
    saved = tables.save(tmp_path / "direct")
    train(reference, batch(), loss_gradient(1))
    assert tables.digest() == reference.digest() == et.digest_checkpoint(saved)
    again = engine(optimizer=et.Adagrad(0.1))
    again.restore(tmp_path / "direct")
    assert again.digest() == tables.digest() and again.step == 2


def test_rows_are_read_and_written():
    table, tables = one_table(et.Adagrad(0.1))
    tables.assign_rows("t", [1, 3, 1], [[1.0], [2.0], [4.0]])
    assert rows_of(tables) == [[0], [4], [0], [2]]
    with pytest.raises(KeyError):
        tables.read_rows("u", [0])
    with pytest.raises(IndexError):
        tables.read_rows("t", [4])
    with pytest.raises(ValueError, match="shape"):
        tables.assign_rows("t", [1], [1.0])


def test_lookups_of_many_threads():
    tables = direct(et.FeatureConfig(video()))
    results = []

    def look_up():
        for i in range(50):
            results.append(tables([i % 8]).tolist() == [VIDEO_ROWS[i % 8].tolist()])

    threads = [threading.Thread(target=look_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 200


def test_gradients_of_a_pure_lookup():
    table = et.TableConfig(4, 2, combiner="mean", name="t")
    config = {"a": et.FeatureConfig(table), "b": et.FeatureConfig(table)}
    rows = {table: np.zeros((4, 2), np.float32)}
    ids = {"a": et.RaggedIds.from_rows([[0, 3], []]), "b": np.array([3, 3])}
    upstream = {"a": np.array([[2.0, 4.0], [8.0, 8.0]]), "b": None}
    got = et.serving_embedding_gradients(ids, None, upstream, rows, config)[table]
    assert got.indices.tolist() == [0, 3] and got.values.tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ValueError, match=r"'b'.*shape \(2, 2\)"):
        et.serving_embedding_gradients(ids, None, {"a": None, "b": np.ones((2, 3))}, rows, config)


def test_objects_say_what_they_are():
    table, tables = one_table(et.Adagrad(0.1))
    assert repr(tables) == ("DirectEmbedding(1 table (4 rows, 32 B), 1 feature, not built, on "
                            "EngineStrategy(hosts=1, replicas_per_host=1, sharding='div'))")
    said = []
    _, lookup = tables.look_up([2, 0])
    tables.apply_gradients(lookup, [[1.0], [2.0]], lambda update: said.append(repr(update)))
    assert said == ["TableUpdate('t', 2 rows, step 1)"] and repr(lookup) == "DirectLookup of a DirectEmbedding"
    assert tables.summary().splitlines()[3].split()[:3] == ["t", "4", "1"] and "<table>" in tables._repr_html_()
    with pytest.raises(ValueError, match="outputs must be one of"):
        one_table(outputs="lists")
