"""Ids and gradients are borrowed where they can be, converted by value where not, refused where that
would lose something; activations own their loan."""

import array
import gc
import pickle
import weakref
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import embertable as et
from fixture import USER_ROWS, engine, ragged, user

IDS = [3, 0, 15, 2]


def one_feature(**options):
    return engine(feature_config=et.FeatureConfig(user(combiner="sum")), **options)


def look_up(ids):
    embedding = one_feature(variable_batch=True)
    embedding.enqueue(ids, training=False)
    return embedding.dequeue()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">i8", "<i8"])
def test_integers_of_any_type_are_taken_by_value(dtype):
    assert np.array_equal(look_up(np.array(IDS, dtype)), USER_ROWS[IDS])


def test_arrays_of_any_layout_are_taken_by_value():
    wide = np.array([IDS, IDS], np.int64)
    unaligned = np.frombuffer(b"x" + np.array(IDS, np.int64).tobytes(), np.uint8)[1:].view(np.int64)
    assert not unaligned.flags.aligned
    read_only = np.array(IDS)
    read_only.flags.writeable = False
    for ids in (np.array(IDS + IDS)[:4][::1], np.repeat(IDS, 2)[::2], np.array(IDS)[::-1][::-1], wide.T[:, 0],
                unaligned, read_only, array.array("q", IDS), memoryview(np.array(IDS)), IDS, [np.int64(i) for i in IDS]):
        assert np.array_equal(look_up(ids), USER_ROWS[IDS])


@pytest.mark.parametrize("ids, name", [(np.array([0.0, 1.0]), "float64"), ([0.5], "float64"),
                                       (np.array([True, False]), "bool"), ([True], "bool"),
                                       (np.array([1 + 0j]), "complex128"), (np.array([], np.float32), "float32"),
                                       (np.array(["a"]), "U1")])
def test_what_are_no_integers_is_a_type_error(ids, name):
    with pytest.raises(TypeError, match=f"feature ''.*integers.*{name}"):
        look_up(ids)


def test_a_masked_array_is_refused_where_something_is_masked():
    """Its memory has numbers beneath the mask too."""
    assert np.array_equal(look_up(np.ma.array(IDS)), USER_ROWS[IDS])
    assert np.array_equal(look_up(np.ma.array(IDS, mask=[False] * 4)), USER_ROWS[IDS])
    masked = np.ma.array(IDS, mask=[False, True, False, False])
    assert np.array_equal(look_up(masked.filled(1)), USER_ROWS[[3, 1, 15, 2]])
    for ids in (masked, masked.astype("int16")):
        with pytest.raises(ValueError, match="feature '': ids must be an array of integers, got a masked array"):
            look_up(ids)
    embedding = one_feature()
    embedding.enqueue(IDS)
    gradients = np.ma.array(np.ones_like(embedding.dequeue()))
    gradients[0, 0] = np.ma.masked
    with pytest.raises(ValueError, match="floating-point numbers, got a masked array"):
        embedding.apply_gradients(gradients)
    embedding.apply_gradients(gradients.filled(0))


@pytest.mark.parametrize("ids", [None, "text", b"bytes", object(), {1, 2}, [[1], [2, 3]], [2**64]])
def test_what_is_no_array_is_a_value_error(ids):
    with pytest.raises(ValueError, match="feature ''"):
        look_up(ids)


def test_a_number_beyond_int64_is_refused_not_wrapped():
    with pytest.raises(ValueError, match="18446744073709551615"):
        look_up(np.array([2**64 - 1], np.uint64))


def test_empty_lists_are_ids():
    assert look_up([]).shape == (0, 2)
    assert np.array_equal(look_up(ragged([[], []])), np.zeros((2, 2)))


def test_ids_are_borrowed():
    values, splits = np.array(IDS), np.array([0, 4], np.int32)
    ids = et.RaggedIds(values, splits)
    assert ids.values is values and ids.row_splits is splits
    embedding = one_feature()
    for row in (1, 2):
        values[:] = row
        embedding.enqueue(ids, training=False)
        assert np.array_equal(embedding.dequeue()[0], 4 * USER_ROWS[row])


def test_borrowed_memory_lives_as_long_as_the_ids():
    values = np.array(IDS)
    ids, gone = et.RaggedIds(values, [0, 4]), weakref.ref(values)
    del values
    gc.collect()
    assert np.array_equal(look_up(ids), USER_ROWS[IDS].sum(0, keepdims=True))
    del ids
    gc.collect()
    assert gone() is None


def test_indices_have_one_row_per_value():
    with pytest.raises(ValueError, match=r"\[number of values, 2\].*\(2, 3\)"):
        et.SparseIds(np.zeros((2, 3), int), [0, 0, 0], (4, 4))
    with pytest.raises(ValueError, match="vector"):
        et.RaggedIds([[1, 2]], [0, 2])


class Sparse:
    """As tf.SparseTensor."""

    def __init__(self, ids, dtype=np.int64):
        self.indices, self.dense_shape = np.array([[0, 0], [1, 0]]), np.array([2, 1])
        self.values = np.array(ids, dtype)


class Ragged:
    """As tf.RaggedTensor."""

    def __init__(self, values, row_splits):
        self.values, self.row_splits = values, np.array(row_splits)


def test_the_tensors_of_others_are_known_by_their_fields():
    assert np.array_equal(look_up(Sparse([3, 1])), USER_ROWS[[3, 1]])
    assert np.array_equal(look_up(Ragged(np.array([3, 1]), [0, 1, 2])), USER_ROWS[[3, 1]])
    with pytest.raises(ValueError, match="rank 2"):
        look_up(Ragged(Ragged(np.array([3, 1]), [0, 1, 2]), [0, 2]))
    embedding = one_feature()
    embedding.enqueue(Sparse([3, 1]), weights=Sparse([0.5, 2], np.float64), training=False)
    assert np.array_equal(embedding.dequeue(), USER_ROWS[[3, 1]] * [[0.5], [2]])


@pytest.mark.parametrize("make", [lambda g: g.astype(np.float64), lambda g: g.astype(np.float16),
                                  lambda g: np.asfortranarray(g), lambda g: g.astype(">f4"), lambda g: g.tolist(),
                                  lambda g: g.astype(int).tolist(), lambda g: np.repeat(g, 2, 1)[:, ::2]])
def test_gradients_of_any_type_and_layout(make):
    embedding = one_feature()
    embedding.enqueue(IDS)
    gradient = np.arange(8, dtype=np.float32).reshape(embedding.dequeue().shape)
    embedding.apply_gradients(make(gradient))
    np.testing.assert_allclose(embedding.read_rows("user", IDS), USER_ROWS[IDS] - 0.1 * gradient, rtol=1e-6)


def test_activations_outlive_step_and_engine():
    embedding = one_feature()
    embedding.enqueue(IDS, training=False)
    kept = embedding.dequeue()
    for _ in range(5):
        embedding.enqueue([0] * 4, training=False)
        embedding.dequeue()
    assert np.array_equal(kept, USER_ROWS[IDS])
    del embedding
    gc.collect()
    assert np.array_equal(kept, USER_ROWS[IDS])


def address(activations):
    return activations.__array_interface__["data"][0]


def test_the_buffer_returns_with_the_last_view():
    embedding = one_feature()

    def step():
        embedding.enqueue(IDS, training=False)
        return embedding.dequeue()

    first = step()
    buffer, view = address(first), first[1:, ::2]
    del first
    assert address(step()) != buffer  # a view holds it
    del view
    assert buffer in [address(one) for one in (step(), step())]


def test_activations_are_the_callers_to_change():
    embedding = one_feature()
    embedding.enqueue(IDS)
    activations = embedding.dequeue()
    activations *= 0
    embedding.apply_gradients(activations)
    assert np.array_equal(embedding.read_rows("user", IDS), USER_ROWS[IDS])


def test_dequeue_into_arrays():
    embedding = one_feature()
    embedding.enqueue(IDS, training=False)
    out = np.full((4, 2), np.nan, np.float32)
    for bad, error in ((out.astype(np.float64), TypeError), (out.T, ValueError), (out[:3], ValueError),
                       (out.tobytes(), ValueError)):
        with pytest.raises(error, match="''"):
            embedding.dequeue(bad)
    assert embedding.dequeue(out) is out
    assert np.array_equal(out, USER_ROWS[IDS])


def test_look_up_into_arrays():
    feature = et.FeatureConfig(user(combiner="sum"))
    embedding = engine(2, feature_config={"a": feature, "b": feature})
    batches = [{"a": IDS, "b": IDS[::-1]}, {"a": IDS[::-1], "b": IDS}]
    memory = np.full((2, 2, 4, 2), np.nan, np.float32)
    out = et.PerReplica([{"a": memory[r, 0], "b": memory[r, 1]} for r in range(2)])
    with pytest.raises(RuntimeError, match="look_up: .*not built"):
        embedding.look_up(et.PerReplica(batches), out=out)
    expected, token = embedding.look_up(et.PerReplica(batches))
    for bad, error in ((et.PerReplica([{"a": memory[r, 0, :3], "b": memory[r, 1]} for r in range(2)]), ValueError),
                       ({"a": memory[0, 0], "b": memory[0, 1]}, ValueError), (et.PerReplica([memory[0], memory[1]]), ValueError),
                       (et.PerReplica([{"a": memory[0, 0], "b": memory[0, 1]}] * 2), ValueError)):
        with pytest.raises(error, match="out"):
            embedding.look_up(et.PerReplica(batches), out=bad)
    with pytest.raises(ValueError, match="outputs and out exclude each other"):
        embedding.look_up(et.PerReplica(batches), out=out, outputs="numpy")
    assert np.isnan(memory).all()
    found, other = embedding.look_up(et.PerReplica(batches), out=out)
    assert found is out
    for r in range(2):
        assert np.array_equal(memory[r, 0], expected[r]["a"]) and np.array_equal(memory[r, 1], expected[r]["b"])
    embedding.apply_gradients(found, other)
    assert embedding.step == 1 and token.valid and not other.valid
    assert embedding.look_up(et.PerReplica(batches), None, False, out=out) == (out, None)


def test_tables_of_a_plain_engine_are_views():
    config = et.FeatureConfig(user())
    embedding = et.Embedding(config)
    table = embedding.embedding_tables()[config.table]
    table[3] = [7, 8]
    assert np.array_equal(embedding.read_rows("user", 3), [7, 8])
    del embedding
    gc.collect()
    assert np.array_equal(table[2:5], [[4, 5], [7, 8], [8, 9]])


def test_rows_have_the_shape_of_the_ids():
    embedding = one_feature(optimizer=et.RowwiseAdagrad(0.1, initial_accumulator_value=0.5))
    embedding.build(1)
    assert embedding.read_rows("user", np.array([[1, 2, 3]])).shape == (1, 3, 2)
    assert embedding.read_rows("user/accumulators", [1, 2]).tolist() == [0.5, 0.5]
    embedding.assign_rows("user/accumulators", [2, 2], [1.0, 2.0])
    embedding.assign_rows("user", 2, np.array([7, 8], np.float64))
    assert embedding.read_rows("user/accumulators", 2) == 2
    assert embedding.read_rows("user", 2).tolist() == [7, 8]
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(4\)"):
        embedding.assign_rows("user", [1, 2], np.zeros(4, np.float32))
    with pytest.raises(KeyError, match="nobody"):
        embedding.read_rows("nobody", 0)
    with pytest.raises(IndexError, match="16"):
        embedding.read_rows("user", 16)


def test_an_engine_in_a_circle_is_collected():
    class Rate:
        def __call__(self):
            return 0.1

    def circle():
        rate = Rate()
        rate.embedding = one_feature(optimizer=et.SGD(rate), log=lambda text: rate)
        rate.embedding.enqueue(IDS)
        rate.activations, rate.token = rate.embedding.look_up(IDS)
        return weakref.ref(rate)

    gone = circle()
    gc.collect()
    assert gone() is None


class Elsewhere:
    """An array that says where its memory is, and would let itself be copied without a word."""

    def __init__(self, values, **says):
        self.values = np.asarray(values)
        vars(self).update(says)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


class OfDLPack(Elsewhere):
    def __dlpack_device__(self):
        if isinstance(self.at, Exception):
            raise self.at
        return self.at


def on_an_accelerator(values):
    return [(OfDLPack(values, at=(2, 1)), "CUDA device 1"), (OfDLPack(values, at=(10, 0)), "ROCm device 0"),
            (OfDLPack(values, at=(8, 0)), "Metal device 0"), (OfDLPack(values, at=(14, 3)), "DLPack type 14 device 3"),
            (OfDLPack(values, at=BufferError("no"), device="TPU_0"), "TPU_0"),
            (Elsewhere(values, __cuda_array_interface__={}), "CUDA")]


# Engine case 42: the caller copies, not we in silence.
def test_arrays_on_an_accelerator_are_refused_by_path_and_device():
    embedding = engine()
    good = ragged([[0], [1]])
    for ids, device in on_an_accelerator(np.array([0, 1])):
        with pytest.raises(ValueError, match=device):
            et.RaggedIds(ids, [0, 1, 2])
        for bad, what in [(ids, "ids"), (SimpleNamespace(values=ids, row_splits=[0, 1, 2]), "values"),
                          (SimpleNamespace(values=[0, 1], row_splits=ids), "row_splits")]:
            with pytest.raises(ValueError, match=f"feature '1': {what}.*host memory.*{device}"):
                embedding.enqueue((good, bad, good))
            with pytest.raises(ValueError, match=device):
                embedding.look_up((good, bad, good))
    for weights, device in on_an_accelerator(np.array([0.5, 1.0])):
        with pytest.raises(ValueError, match=f"feature '2': weights.*{device}"):
            embedding.enqueue((good, good, good), weights=(None, None, SimpleNamespace(values=weights, row_splits=[0, 1, 2])))
    assert not embedding.built
    embedding.enqueue((good, good, good))
    embedding.dequeue()
    for gradient, device in on_an_accelerator(np.zeros((2, 4), np.float32)):
        with pytest.raises(ValueError, match=f"feature '0'.*{device}"):
            embedding.apply_gradients((gradient, None, None))
    embedding.apply_gradients((None, None, None))


def test_arrays_in_host_memory_are_taken_whoever_owns_them():
    for at in [(1, 0), (3, 0), (11, 0), (13, 0), BufferError("no")]:
        assert np.array_equal(look_up(OfDLPack(IDS, at=at, device="cpu")), USER_ROWS[IDS])


def test_an_array_without_elements_is_no_none():
    class Nowhere:
        __array_interface__ = {"version": 3, "shape": (0,), "typestr": "<f4", "data": (0, False)}

    for empty in (np.asarray(Nowhere()), np.empty((0, 2), np.float32), np.empty(0), [], array.array("f")):
        embedding = one_feature()
        embedding.enqueue([1])
        embedding.dequeue()
        with pytest.raises(ValueError, match="gradient"):
            embedding.apply_gradients(empty)
        assert embedding.step == 0
        embedding.apply_gradients(None)


def test_outputs_that_share_memory_are_refused():
    feature = et.FeatureConfig(user(combiner="sum"))
    embedding = engine(feature_config={"a": feature, "b": feature})
    embedding.enqueue({"a": IDS, "b": IDS[::-1]})
    memory = np.zeros((6, 2), np.float32)
    for a, b in ((memory[:4], memory[:4]), (memory[:4], memory[2:]), (memory[2:], memory[:4])):
        with pytest.raises(ValueError, match="feature '[ab]': out must share no memory with feature '[ab]'"):
            embedding.dequeue(out={"a": a, "b": b})
    beside = np.zeros((8, 2), np.float32)
    embedding.dequeue(out={"a": beside[4:], "b": beside[:4]})
    assert np.array_equal(beside, USER_ROWS[IDS[::-1] + IDS])


def test_ids_and_weights_pickle():
    ragged = et.RaggedIds([3, 1, 2], np.array([0, 2, 3], np.int32))
    again = pickle.loads(pickle.dumps(ragged))
    assert again.values.tolist() == [3, 1, 2] and again.row_splits.dtype == np.int32
    sparse = pickle.loads(pickle.dumps(et.SparseIds([[0, 0], [1, 1]], [5, 6], [2, 2])))
    assert sparse.indices.tolist() == [[0, 0], [1, 1]] and tuple(sparse.dense_shape) == (2, 2)
    assert pickle.loads(pickle.dumps(et.DenseIds([[1], [2]]))).values.tolist() == [[1], [2]]
    for kind in (et.SparseWeights, et.RaggedWeights):
        assert pickle.loads(pickle.dumps(kind([0.5, 2]))).values.tolist() == [0.5, 2]


def test_ragged_ids_whose_arrays_are_swapped():
    values, row_splits = np.array([1, 0, 1]), np.array([0, 1, 3])
    ids = et.RaggedIds.from_row_splits(values, row_splits)
    assert ids.values is values and ids.row_splits is row_splits
    embedding = engine(feature_config=et.FeatureConfig(user()))
    with pytest.raises(ValueError, match="row_splits and values seem to be swapped: values go from 0 to 3"):
        embedding.enqueue(et.RaggedIds(row_splits, values))
    embedding.enqueue(ids)


def test_lists_that_are_no_ids_are_named():
    with pytest.raises(TypeError, match="from_rows: row 1 must be a list of ids, got"):
        et.RaggedIds.from_rows([[1], None])
    with pytest.raises(TypeError, match="from_rows: rows must be a list of lists of ids, got"):
        et.RaggedIds.from_rows(7)
    with pytest.raises(TypeError, match="from_rows: row 0 must be a list of ids, got"):
        et.RaggedIds.from_rows([np.array(3)])
    with pytest.raises(TypeError, match="must be integers, got NoneType among them"):
        et.RaggedIds([1, None], [0, 2])


def test_ragged_ids_from_offsets():
    ids = et.RaggedIds.from_offsets(np.array([4, 5, 6]), np.array([0, 2, 2]))
    assert ids.values.tolist() == [4, 5, 6] and ids.row_splits.tolist() == [0, 2, 2, 3]
    assert et.RaggedIds.from_offsets([], []).row_splits.tolist() == [0]
    for offsets, place in (([1, 2], "1 at position 0"), ([0, 2, 1], "1 at position 2"), ([0, 5], "5 at position 1")):
        with pytest.raises(ValueError, match=f"begin with 0, not fall, and be at most the number of ids, 3; got {place}"):
            et.RaggedIds.from_offsets([4, 5, 6], offsets)
    with pytest.raises(ValueError, match="from_offsets: offsets must begin with 0, got none for 2 ids"):
        et.RaggedIds.from_offsets([4, 5], [])
    with pytest.raises(ValueError, match="from_offsets: offsets must be a vector"):
        et.RaggedIds.from_offsets([1], [[0]])
    with pytest.raises(TypeError, match="from_offsets: offsets must be integers"):
        et.RaggedIds.from_offsets([1], [0.5])


def test_ragged_ids_from_padded_rows():
    ids = et.RaggedIds.from_padded([[7, -1, -1], [-1, 8, 9], [-1, -1, -1]])
    assert ids.values.tolist() == [7, 8, 9] and ids.row_splits.tolist() == [0, 1, 3, 3]
    assert et.RaggedIds.from_padded(np.zeros((2, 3), np.int32), pad=0).row_splits.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"from_padded: ids must have shape \[rows, length\], got shape \(2\)"):
        et.RaggedIds.from_padded([1, 2])


def test_gradients_of_bfloat16():
    table = et.TableConfig(2, 2, et.Initializer.zeros(), name="t")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(1), et.EngineStrategy())
    embedding.enqueue(np.array([1]))
    embedding.dequeue()
    embedding.apply_gradients(np.array([[0.5, -3]], ml_dtypes.bfloat16))
    assert embedding.read_rows("t", [1]).tolist() == [[-0.5, 3]]


def test_ids_for_all_replicas_may_have_weights_of_each():
    table = et.TableConfig(10, 1, et.Initializer.constant(1), combiner="sum", name="t")
    embedding = et.Embedding({"f": et.FeatureConfig(table)}, et.SGD(0.1), et.EngineStrategy(replicas_per_host=2, threads=1))
    ids, weights = et.RaggedIds([1, 2], [0, 2]), [et.RaggedWeights([1.0, 1.0]), et.RaggedWeights([2.0, 2.0])]
    for given in ({"f": et.PerReplica(weights)}, et.PerReplica([{"f": one} for one in weights])):
        embedding.enqueue({"f": ids}, given, training=False)
        assert [one["f"].item() for one in embedding.dequeue()] == [2, 4]
    with pytest.raises(ValueError, match="weights must be a PerReplica of as many parts as the features, 2, got 3"):
        embedding.enqueue({"f": et.PerReplica([ids, ids])}, {"f": et.PerReplica([*weights, weights[0]])})


def test_memory_to_write_to_is_aligned():
    embedding = et.Embedding({"f": et.FeatureConfig(et.TableConfig(10, 4, name="t"))}, et.SGD(0.1), et.EngineStrategy(threads=1))
    embedding.enqueue({"f": [1, 2]})
    with pytest.raises(ValueError, match="must be aligned, got float32 at an address that is no multiple of 4"):
        embedding.dequeue({"f": np.zeros(40, np.uint8)[1:33].view(np.float32).reshape(2, 4)})


@pytest.mark.parametrize("lengths", [[2, 0, 1], np.array([2, 0, 1], np.int32), (2, 0, 1)])
def test_ragged_ids_of_lengths(lengths):
    ids = et.RaggedIds.from_row_lengths([5, 6, 7], lengths)
    assert ids.row_splits.tolist() == [0, 2, 2, 3] and ids.values.tolist() == [5, 6, 7]


def test_lengths_must_sum_to_the_ids():
    assert et.RaggedIds.from_row_lengths([], []).row_splits.tolist() == [0]
    for lengths, text in (([1, 1], "the sum of row_lengths must be the number of ids, 3, got 2"), ([-1, 4], "got -1 at position 0"),
                          ([2, 2], "got 2 at position 1"), ([2**62, 2**62], "at position 0")):
        with pytest.raises(ValueError, match=text):
            et.RaggedIds.from_row_lengths([5, 6, 7], lengths)
