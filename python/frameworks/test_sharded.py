"""1,000 random operations on sharded variables: real TensorFlow's answers beside ours.

Inputs leave out what TensorFlow gets wrong: strides over a start beyond the axis, an ellipsis or a new axis in front of
a part of the rows, rows that are read in an order other than that of the shards, sizes that are no division.
"""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute.sharded_variable import ShardedVariable

import embertable as et

CASES = 100  # of each kind
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
DTYPES = ["float32", "float64", "int32", "int64"]


def divided(rows, shards):
    return [rows // shards + (shard < rows % shards) for shard in range(shards)]


class Case:
    """A value, in components of a division, as both libraries have it."""

    def __init__(self, random, dtypes=DTYPES, rank=None):
        self.random = random
        rank = int(random.integers(1, 4)) if rank is None else rank
        self.rows = int(random.integers(2, 20))
        self.value = self.numbers((self.rows, *random.integers(1, 4, rank - 1)), str(random.choice(dtypes)))
        self.sizes = divided(self.rows, int(random.integers(1, self.rows + 1)))
        ends = np.cumsum(self.sizes)
        parts = [self.value[end - size:end] for size, end in zip(self.sizes, ends)]
        self.theirs = ShardedVariable([tf.Variable(part) for part in parts])
        self.ours = et.ShardedVariable([et.Variable(part) for part in parts])

    def numbers(self, shape, dtype=None):
        dtype = self.value.dtype if dtype is None else np.dtype(dtype)
        if dtype.kind == "i":
            return self.random.integers(1, 50, shape).astype(dtype)
        return self.random.uniform(0.5, 4, shape).astype(dtype)

    def ids(self, *shape):
        return self.random.integers(0, self.rows, shape).astype(self.random.choice(["int32", "int64"]))


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, **CLOSE)


@pytest.fixture(params=range(CASES))
def random(request):
    return np.random.default_rng(request.param)


def slice_of(random, size):
    """A slice of an axis. Its start lies on the axis where it has a stride."""
    step = int(random.choice([-3, -2, -1, 1, 1, 1, 2, 3]))
    beyond = 0 if abs(step) > 1 else 3
    start = None if random.random() < 0.3 else int(random.integers(-size - beyond, size + beyond))
    stop = None if random.random() < 0.3 else int(random.integers(-size - 3, size + 3))
    return slice(start, stop, None if step == 1 else step)


def key_of(random, shape):
    """What stands in brackets."""
    kind = random.integers(6)
    if kind == 0:
        return random.random(shape[:int(random.integers(1, len(shape) + 1))]) < 0.5
    parts = []
    for size in shape[:int(random.integers(1, len(shape) + 1))]:
        integer = random.random() < 0.4
        parts.append(int(random.integers(-size, size)) if integer else slice_of(random, size))
    first = parts[0]
    if isinstance(first, slice) and not len(range(*first.indices(shape[0]))):
        return first  # TensorFlow forgets what follows an empty slice of rows
    if kind == 1 and len(parts) < len(shape):
        parts.append(...)
    if kind == 2:
        parts.insert(int(random.integers(1, len(parts) + 1)), None)
    if kind == 3:
        return (None, ...) if random.random() < 0.5 else ...
    return parts[0] if len(parts) == 1 else tuple(parts)


def test_indexing(random):
    case = Case(random)
    key = key_of(random, case.value.shape)
    same(case.ours[key], case.theirs[tf.constant(key) if isinstance(key, np.ndarray) else key])


def test_scatters(random):
    case = Case(random)
    name = str(random.choice(["add", "sub", "mul", "div", "min", "max", "update"]))
    if name == "div":  # of integers TensorFlow's has no kernel everywhere
        case = Case(random, ["float32", "float64"])
    size = int(random.integers(0, case.rows))
    once = name == "update"  # which of several values stays is TensorFlow's secret
    at = random.permutation(case.rows)[:size] if once else random.integers(0, case.rows, size)
    if name == "mul":
        at = np.unique(at)  # integers would overflow
    values = case.numbers((len(at), *case.value.shape[1:]))
    getattr(case.theirs, f"scatter_{name}")(tf.IndexedSlices(values, tf.constant(at, tf.int64)))
    getattr(case.ours, f"scatter_{name}")(tf.IndexedSlices(tf.constant(values), tf.constant(at, tf.int64)))
    same(case.ours.numpy(), tf.convert_to_tensor(case.theirs))


def test_batch_scatters_and_reads(random):
    case = Case(random)
    at = np.sort(random.permutation(case.rows)[:int(random.integers(1, case.rows + 1))])
    values = case.numbers((len(at), *case.value.shape[1:]))
    case.theirs.batch_scatter_update(tf.IndexedSlices(values, tf.constant(at, tf.int64)))
    case.ours.batch_scatter_update(at, values)
    same(case.ours.numpy(), tf.convert_to_tensor(case.theirs))
    same(case.ours.sparse_read(at), case.theirs.sparse_read(tf.constant(at, tf.int64)))


def test_assignments(random):
    case = Case(random)
    for name in random.permutation(["assign", "assign_add", "assign_sub"]):
        value = case.numbers(case.value.shape)
        getattr(case.theirs, name)(value)
        getattr(case.ours, name)(value)
        same(case.ours.numpy(), tf.convert_to_tensor(case.theirs))


def test_operators(random):
    case = Case(random)
    other = case.numbers(case.value.shape[-1:] if random.random() < 0.5 else case.value.shape)
    for operator in random.choice(["+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=", "/"], 4):
        x, y = ("v", "o") if random.random() < 0.5 else ("o", "v")
        same(eval(f"{x} {operator} {y}", {"v": case.ours, "o": other}),
             eval(f"{x} {operator} {y}", {"v": case.theirs, "o": tf.constant(other)}))
    same(-case.ours, -case.theirs)
    same(abs(case.ours), abs(case.theirs))


def test_dense_lookups(random):
    norm = float(random.uniform(0.5, 6)) if random.random() < 0.5 else None
    case = Case(random, ["float32", "float64"] if norm else DTYPES)
    ids = case.ids(*random.integers(1, 4, int(random.integers(0, 4))))
    same(et.embedding_lookup(case.ours, ids, norm), tf.nn.embedding_lookup(case.theirs, tf.constant(ids), norm))
    shards = int(random.integers(1, 5))
    parts = [case.value[shard::shards] for shard in range(shards)]
    if min(len(part) for part in parts):
        theirs = tf.compat.v1.nn.embedding_lookup(parts, tf.constant(ids), partition_strategy="mod", max_norm=norm)
        same(et.embedding_lookup(parts, ids, norm, partition_strategy="mod"), theirs)


def test_ragged_lookups(random):
    norm = float(random.uniform(0.5, 6)) if random.random() < 0.5 else None
    case = Case(random, ["float32"])
    splits = np.concatenate([[0], np.cumsum(random.integers(0, 4, int(random.integers(1, 6))))]).astype(np.int64)
    ids = case.ids(int(splits[-1])).astype(np.int64)
    theirs = tf.nn.embedding_lookup(case.theirs, tf.RaggedTensor.from_row_splits(ids, splits), norm)
    ours = et.embedding_lookup(case.ours, et.RaggedIds(ids, splits), norm)
    same(ours.values, theirs.flat_values)
    assert ours.row_splits.tolist() == theirs.row_splits.numpy().tolist()


class SparseBatch:
    """Ids and weights at sorted coordinates, the last row not empty."""

    def __init__(self, case, lead, ids):
        random = case.random
        counts = random.integers(0, 4, lead)
        counts.flat[-1] = max(1, counts.flat[-1])
        at = [(*row, column) for row in np.ndindex(*lead) for column in range(counts[row])]
        self.indices, self.shape = np.array(at, np.int64), (*lead, int(counts.max()))
        self.ids = ids(len(at)).astype(np.int64)
        self.weights = random.uniform(0.1, 2, len(at)).astype(np.float32) if random.random() < 0.6 else None

    def of_tensorflow(self, values):
        return None if values is None else tf.SparseTensor(self.indices, values, self.shape)


def combine(random, of_ours, of_theirs, lead, ids):
    case = Case(random, ["float32"], rank=2)
    batch = SparseBatch(case, lead, lambda n: ids(case, n))
    options = {"combiner": str(random.choice(["sum", "mean", "sqrtn"]))}
    if random.random() < 0.3:
        options["max_norm"] = float(random.uniform(0.5, 6))
    if of_ours is et.safe_embedding_lookup_sparse and random.random() < 0.5:
        options["default_id"] = int(random.integers(case.rows))
    if batch.weights is not None and of_ours is et.safe_embedding_lookup_sparse:
        batch.weights[random.random(len(batch.weights)) < 0.2] *= -1
    weights = None if batch.weights is None else et.SparseWeights(batch.weights)
    ours = of_ours(case.ours, et.SparseIds(batch.indices, batch.ids, batch.shape), weights, **options)
    dense = tf.convert_to_tensor(case.theirs)
    theirs = of_theirs(dense, batch.of_tensorflow(batch.ids), batch.of_tensorflow(batch.weights), **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_sparse_lookups(random):
    combine(random, et.embedding_lookup_sparse, tf.nn.embedding_lookup_sparse, (int(random.integers(1, 6)),),
            lambda case, n: case.ids(n))


def test_safe_lookups(random):
    lead = tuple(int(n) for n in random.integers(1, 4, int(random.integers(1, 3))))
    combine(random, et.safe_embedding_lookup_sparse, tf.nn.safe_embedding_lookup_sparse, lead,
            lambda case, n: np.where(random.random(n) < 0.2, -1, case.ids(n)))


def test_partitioners(random):
    theirs = tf.distribute.experimental.partitioners
    for _ in range(10):
        shape = [int(n) for n in random.integers(1, 3000, int(random.integers(1, 4)))]
        size = int(2.0 ** random.uniform(0, 30))
        most = int(random.integers(1, 200))
        name, arguments = [("FixedShardsPartitioner", (most,)), ("MinSizePartitioner", (size, most)),
                           ("MaxSizePartitioner", (size, most)), ("MaxSizePartitioner", (size,))][random.integers(4)]
        dtype = str(random.choice(["float32", "float16", "bfloat16", "int64", "bool", "string"]))
        axis = int(random.integers(len(shape)))
        expected = getattr(theirs, name)(*arguments)(tf.TensorShape(shape), tf.dtypes.as_dtype(dtype), axis)
        assert getattr(et, name)(*arguments)(shape, dtype, axis) == list(expected)
