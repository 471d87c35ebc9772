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
    """A feature with its table, and one input whose samples have the shape `outer`."""

    def __init__(self, random, kind, combiner, weighted, rank, empties):
        self.kind, self.combiner = kind, combiner
        self.rows, self.dim = int(random.integers(1, 40)), int(random.integers(1, 20))
        self.table = random.normal(size=(self.rows, self.dim)).astype(np.float32)
        self.length = int(random.integers(1, 5)) if kind.startswith("sequence") else 0
        self.outer = tuple(int(n) for n in random.integers(1, 4, rank - 1))
        self.counts = random.integers(0 if empties else 1, 6, self.outer)
        if empties:
            self.counts.flat[random.integers(self.counts.size)] = 0
        number = self.counts.size if kind == "dense" else self.counts.sum()
        self.ids = random.integers(0, self.rows, number)
        self.weights = random.uniform(0.1, 2, number).astype(np.float32) if weighted else None
        if kind == "sparse" and number:  # pruned: ids below 0, and but for sums weights that are not positive
            self.ids[random.random(number) < 0.2] = -1
            if weighted:
                self.weights[random.random(number) < 0.2] *= -1

    def inputs(self, dense, sparse, ragged):
        """Ids and weights of the kinds that these make."""
        if self.kind == "dense":
            return dense(self.ids.reshape(self.outer)), None
        if self.kind.endswith("ragged"):
            splits = np.concatenate([[0], np.cumsum(self.counts.ravel())]).astype(np.int64)
            make = lambda values: ragged(values, splits)
        else:
            coordinates = [(*outer, c) for outer in np.ndindex(*self.outer) for c in range(self.counts[outer])]
            indices = np.array(coordinates, np.int64).reshape(-1, len(self.outer) + 1)
            shape = (*self.outer, max(1, int(self.counts.max())))
            make = lambda values: sparse(indices, values, shape)
        return make(self.ids), None if self.weights is None else make(self.weights)

    def look_up(self, library, function, ids, weights, variable):
        """By the classes of the original, which ours have the names of."""
        table = library.TableConfig(self.rows, self.dim, combiner=self.combiner, name="t")
        shaped = self.kind == "ragged" and len(self.outer) > 1
        feature = library.FeatureConfig(table, self.length, validate_weights_and_indices=self.kind != "sparse-fast",
                                        output_shape=self.outer if shaped else None)
        return np.asarray(function(ids, weights, {table: variable}, feature))

    def tensorflow(self):
        tpu = tf.tpu.experimental.embedding
        ids, weights = self.inputs(tf.constant, tf.SparseTensor, tf.RaggedTensor.from_row_splits)
        return self.look_up(tpu, tpu.serving_embedding_lookup, ids, weights, tf.Variable(self.table))

    def ours(self):
        """From TensorFlow's tensors."""
        ids, weights = self.inputs(tf.constant, tf.SparseTensor, tf.RaggedTensor.from_row_splits)
        return self.look_up(et, et.serving_embedding_lookup, ids, weights, self.table)


def possible(kind, weighted, rank, empties):
    if kind == "dense":
        return not weighted and not empties  # every sample has one id
    if kind.startswith("sequence"):
        return not weighted and rank == 2
    return True


CELLS = [cell for cell in itertools.product(KINDS, COMBINERS, (False, True), (2, 3, 4), (False, True))
         if possible(cell[0], *cell[2:])]


@pytest.mark.parametrize("kind, combiner, weighted, rank, empties", CELLS)
def test_lookups_are_tensorflows(kind, combiner, weighted, rank, empties):
    random = np.random.default_rng(zlib.crc32(repr((kind, combiner, weighted, rank, empties)).encode()))
    for _ in range(CASES):
        case = Case(random, kind, combiner, weighted, rank, empties)
        got, want = case.ours(), case.tensorflow()
        if kind == "sparse-fast" and rank == 2 and len(want) < len(got):
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
