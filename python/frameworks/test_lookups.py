"""Random plain lookups: real TensorFlow's answers beside serving_embedding_lookup's.

Where the two differ on purpose, `ours` says what we give instead.
"""

import itertools
import zlib

import numpy as np
import pytest
import tensorflow as tf

import embertable as et

CASES = 50  # of each cell
KINDS = ["dense", "sparse", "sparse-fast", "ragged", "sequence-sparse", "sequence-ragged"]
COMBINERS = ["sum", "mean", "sqrtn"]
CLOSE = {"rtol": 1e-5, "atol": 2e-6}


class Case:
    """A feature with its table, and one input of `batch` samples."""

    def __init__(self, random, kind, combiner, weighted, rank, empties):
        self.kind, self.combiner = kind, combiner
        self.rows, self.dim = int(random.integers(1, 40)), int(random.integers(1, 20))
        self.table = random.normal(size=(self.rows, self.dim)).astype(np.float32)
        self.length = int(random.integers(1, 5)) if kind.startswith("sequence") else 0
        self.outer = tuple(int(n) for n in random.integers(1, 4, rank - 1))
        self.counts = random.integers(0 if empties else 1, 6, self.outer)
        if empties:
            self.counts.flat[random.integers(self.counts.size)] = 0
        elif kind == "sparse-fast":
            self.counts.flat[-1] = max(1, self.counts.flat[-1])
        self.ids = random.integers(0, self.rows, self.counts.sum())
        self.weights = random.uniform(0.1, 2, len(self.ids)).astype(np.float32) if weighted else None
        if kind == "sparse" and len(self.ids):  # pruned: ids below 0, and weights that are not positive but for sums
            self.ids[random.random(len(self.ids)) < 0.2] = -1
            if weighted:
                self.weights[random.random(len(self.ids)) < 0.2] *= -1

    def splits(self):
        return np.concatenate([[0], np.cumsum(self.counts.ravel())]).astype(np.int64)

    def coordinates(self):
        return np.array([(*outer, column) for outer in np.ndindex(*self.outer) for column in range(self.counts[outer])],
                        np.int64).reshape(-1, len(self.outer) + 1)

    def shape(self):
        return (*self.outer, max(1, int(self.counts.max())))

    def dense(self, values):
        return values[:self.counts.size].reshape(self.outer)

    # ---- ours

    def ours(self):
        table = et.TableConfig(self.rows, self.dim, combiner=self.combiner, name="t")
        feature = et.FeatureConfig(table, self.length, validate_weights_and_indices=self.kind != "sparse-fast")
        weights = None
        if self.kind == "dense":
            ids = self.dense_ids()
        elif self.kind.endswith("ragged"):
            ids = et.RaggedIds(self.ids, self.splits())
            weights = None if self.weights is None else et.RaggedWeights(self.weights)
        else:
            ids = et.SparseIds(self.coordinates(), self.ids, self.shape())
            weights = None if self.weights is None else et.SparseWeights(self.weights)
        return et.serving_embedding_lookup(ids, weights, {table: self.table}, feature)

    def dense_ids(self):
        return np.resize(self.ids, self.counts.size).reshape(self.outer) if len(self.ids) else np.zeros(self.outer, int)

    # ---- TensorFlow's

    def sparse(self, values):
        return tf.SparseTensor(self.coordinates(), values, self.shape())

    def ragged(self, values):
        return tf.RaggedTensor.from_row_splits(values, self.splits())

    def tensorflow(self):
        if self.kind == "dense":
            return tf.nn.embedding_lookup(self.table, self.dense_ids()).numpy()
        if self.kind == "sparse":
            weights = None if self.weights is None else self.sparse(self.weights)
            return tf.nn.safe_embedding_lookup_sparse(self.table, self.sparse(self.ids), weights,
                                                      combiner=self.combiner).numpy()
        if self.kind == "sequence-sparse":
            return self.sequence(tf.sparse.to_dense(self.sparse(self.ids), default_value=-1).numpy())
        if self.kind == "sequence-ragged":
            return self.sequence(self.ragged(self.ids).to_tensor(-1).numpy())
        make = self.ragged if self.kind == "ragged" else self.sparse
        weights = None if self.weights is None else make(self.weights)
        return tf.nn.embedding_lookup_sparse(self.table, make(self.ids), weights, combiner=self.combiner).numpy()

    def sequence(self, ids):
        """[B, L, dim] of ids with -1 where there is none: gathered by TensorFlow, zeros there."""
        padded = np.full((len(ids), self.length), -1)
        padded[:, :ids.shape[1]] = ids[:, :self.length]
        rows = tf.nn.embedding_lookup(self.table, np.maximum(padded, 0))
        return tf.where(padded[..., None] >= 0, rows, 0).numpy()


def cells():
    for kind, combiner, weighted, rank, empties in itertools.product(KINDS, COMBINERS, (False, True), (2, 3, 4),
                                                                     (False, True)):
        high = rank > 2 and kind not in ("dense", "sparse")
        if high or (weighted and (kind == "dense" or kind.startswith("sequence"))) or (kind == "dense" and empties):
            continue
        yield kind, combiner, weighted, rank, empties


@pytest.mark.parametrize("kind, combiner, weighted, rank, empties", cells())
def test_lookups_are_tensorflows(kind, combiner, weighted, rank, empties):
    random = np.random.default_rng(zlib.crc32(repr((kind, combiner, weighted, rank, empties)).encode()))
    for _ in range(CASES):
        case = Case(random, kind, combiner, weighted, rank, empties)
        got, want = case.ours(), case.tensorflow()
        if kind == "sparse-fast" and len(want) < len(got):
            # On purpose: TensorFlow drops the empty rows at the end, we give zeros for them.
            assert not got[len(want):].any() and case.counts[len(want):].sum() == 0
            got = got[:len(want)]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, **CLOSE)


def test_a_tpu_program_gets_the_same_from_tensorflows_tensors():
    """tf.SparseTensor, tf.RaggedTensor and tf.Variable are taken as they are."""
    table = et.TableConfig(8, 4, combiner="sum", name="t")
    rows = tf.Variable(np.arange(32, dtype=np.float32).reshape(8, 4))
    sparse = tf.sparse.from_dense([[1, 2], [3, 0]])
    ragged = tf.ragged.constant([[1, 2], [3]], dtype=tf.int64)
    features = {"s": et.FeatureConfig(table), "r": et.FeatureConfig(table), "d": et.FeatureConfig(table)}
    inputs = {"s": sparse, "r": ragged, "d": tf.constant([1, 3])}
    weights = {"s": sparse.with_values(tf.constant([1.0, 0.5, 2.0])), "r": None, "d": None}
    got = et.serving_embedding_lookup(inputs, weights, {table: rows}, features)
    t = rows.numpy()
    np.testing.assert_array_equal(got["s"], [t[1] + 0.5 * t[2], 2 * t[3]])
    np.testing.assert_array_equal(got["r"], [t[1] + t[2], t[3]])
    np.testing.assert_array_equal(got["d"], t[[1, 3]])
