"""Arrays that another thread writes to during a call: an error or some result, and memory stays right."""

import contextlib
import threading

import numpy as np
import pytest

import embertable as et

COUNT = 50_000
ROWS = 40
FAR = 2**40  # a row that no table has: where it would be is not mapped


@contextlib.contextmanager
def changing(array, *values):
    """Another thread writes each of the values into the array, over and over."""
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for value in values:
                array[:] = value

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        array[:] = values[-1]


def calls_during(array, values, call, times=25):
    with changing(array, *values):
        for _ in range(times):
            with contextlib.suppress(ValueError, IndexError):
                call()
    call()  # the arrays are good again


def table(**options):
    return et.TableConfig(ROWS, 8, et.Initializer.uniform(-1, 1), name="t", combiner="mean", **options)


def ids_of(kind):
    """Ids of a kind, and the array and values that change: [0] is what is checked last, [-1] is good."""
    if kind == "dense":
        ids = np.zeros(COUNT, np.int64)
        return ids, ids, (FAR, 0)
    if kind == "dense32":
        ids = np.zeros(COUNT, np.int32)
        return ids, ids, (2**30, 0)
    values = np.zeros(COUNT, np.int64)
    splits = np.arange(0, COUNT + 1, 5)
    indices = np.stack([np.arange(COUNT), np.zeros(COUNT, np.int64)], 1)
    if kind == "ragged values":
        return et.RaggedIds(values, splits), values, (FAR, 0)
    if kind == "ragged splits":
        return et.RaggedIds(values, splits), splits[1:-1], (FAR, -FAR, 0, splits[1:-1].copy())
    if kind == "ragged splits of one id each":
        splits = np.arange(COUNT + 1)
        return et.RaggedIds(values, splits), splits[1:-1], (FAR, 3, splits[1:-1].copy())
    if kind == "sparse values":
        return et.SparseIds(indices, values, (COUNT, 1)), values, (FAR, 0)
    if kind == "sparse indices":
        return et.SparseIds(indices, values, (COUNT, 1)), indices[:, 0], (FAR, 0, indices[:, 0].copy())
    assert kind == "unsorted indices"
    indices = indices[::-1].copy()
    return et.SparseIds(indices, values, (COUNT, 1)), indices[:, 0], (FAR, COUNT - 1, indices[:, 0].copy())


KINDS = ["dense", "dense32", "ragged values", "ragged splits", "ragged splits of one id each", "sparse values",
         "sparse indices", "unsorted indices"]
KINDS_AND_LENGTHS = [(kind, length) for kind in KINDS for length in (0, 3)
                     if length == 0 or not kind.startswith("dense")]  # dense ids are no sequence


@pytest.mark.parametrize("kind, length", KINDS_AND_LENGTHS)
def test_serving_lookups(kind, length):
    feature = et.FeatureConfig(table(), max_sequence_length=length)
    rows = {feature.table: np.ones((ROWS, 8), np.float32)}
    ids, array, values = ids_of(kind)
    calls_during(array, values, lambda: et.serving_embedding_lookup(ids, None, rows, feature))


@pytest.mark.parametrize("hosts", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_lookups_of_mapped_tables(kind, hosts, tmp_path):
    engine = et.Embedding(et.FeatureConfig(table()), et.SGD(0.1), et.EngineStrategy(hosts=hosts, threads=1))
    engine.build(4)
    engine.save(tmp_path / "run")
    served = et.ServingEmbedding.open(tmp_path / "run", et.FeatureConfig(table()))
    ids, array, values = ids_of(kind)
    calls_during(array, values, lambda: served(ids))


def trains_while_ids_change(kind, strategy, length=0, **options):
    feature = et.FeatureConfig(table(), max_sequence_length=length)
    engine = et.Embedding(feature, et.SGD(0.1), strategy, gradient_policy="allow", **options)  # rows grow beyond all numbers
    ids, array, values = ids_of(kind)

    def step():
        activations, token = engine.look_up(ids)
        engine.apply_gradients(activations, token)

    step()
    calls_during(array, values, step)


@pytest.mark.parametrize("out_of_range", ["error", "drop"])
@pytest.mark.parametrize("kind, length", KINDS_AND_LENGTHS)
def test_batches_of_an_engine(kind, length, out_of_range):
    trains_while_ids_change(kind, et.EngineStrategy(threads=2), length, out_of_range=out_of_range)


@pytest.mark.parametrize("kind", ["dense", "sparse values", "sparse indices", "unsorted indices"])
def test_batches_that_are_cut_for_cores(kind):
    trains_while_ids_change(kind, et.EngineStrategy(threads=1, cores_per_replica=2))


def variable(parts=2, dtype="float32"):
    return et.ShardedVariable([et.Variable(np.ones((ROWS // parts, 8), dtype)) for _ in range(parts)], threads=2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("call", [
    lambda v, ids: v.sparse_read(ids),
    lambda v, ids: v.scatter_add(ids, np.ones((COUNT, 8), np.float32)),
    lambda v, ids: v.scatter_update(ids, np.ones((COUNT, 8), np.float32)),
    lambda v, ids: et.embedding_lookup(v, ids),
    lambda v, ids: et.embedding_lookup(list(v.components), ids, partition_strategy="mod"),
], ids=["sparse_read", "scatter_add", "scatter_update", "div", "mod"])
def test_indices_of_variables(call, dtype):
    ids, rows = np.zeros(COUNT, dtype), variable()
    calls_during(ids, (2**30 if dtype is np.int32 else FAR, 0), lambda: call(rows, ids))


@pytest.mark.parametrize("lookup", [et.embedding_lookup_sparse, et.safe_embedding_lookup_sparse])
@pytest.mark.parametrize("kind", KINDS[2:])
def test_sparse_lookups_of_variables(kind, lookup):
    ids, array, values = ids_of(kind)
    rows = variable()
    calls_during(array, values, lambda: lookup(rows, ids), times=10)


def test_masks():
    rows = et.ShardedVariable([et.Variable(np.ones((COUNT, 2), np.float32)) for _ in range(2)])
    mask = np.ones(2 * COUNT, bool)
    calls_during(mask, (False, True), lambda: rows[mask])


@pytest.mark.parametrize("call", [
    lambda v, by: v // by,
    lambda v, by: v % by,
    lambda v, by: v.scatter_div(np.arange(COUNT), by),
], ids=["//", "%", "scatter_div"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_divisors(call, dtype):
    values = et.ShardedVariable([et.Variable(np.ones(COUNT, dtype))])
    by = np.ones(COUNT, dtype)
    calls_during(by, (0, 1), lambda: call(values, by), times=100)


def test_rows_that_are_read_and_assigned(tmp_path):
    engine = et.Embedding(et.FeatureConfig(table()), et.SGD(0.1), et.EngineStrategy(threads=1))
    engine.build(4)
    engine.save(tmp_path / "run")
    served = et.ServingEmbedding.open(tmp_path / "run")
    ids, rows = np.zeros(COUNT, np.int64), np.ones((COUNT, 8), np.float32)
    calls_during(ids, (FAR, 0), lambda: engine.read_rows("t", ids))
    calls_during(ids, (FAR, 0), lambda: engine.assign_rows("t", ids, rows))
    calls_during(ids, (FAR, 0), lambda: served.read_rows("t", ids))
