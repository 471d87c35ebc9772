"""Sharded variables, their partitioners, lookups and checkpoints."""

import concurrent.futures
import gc
import threading

import numpy as np
import pytest

import embertable as et

T8 = np.arange(1, 17, dtype=np.float32).reshape(8, 2)


def sharded(value, sizes, **options):
    ends = np.cumsum(sizes)
    return et.ShardedVariable([et.Variable(value[end - size:end]) for size, end in zip(sizes, ends)], **options)


@pytest.fixture
def t8():
    return sharded(T8, [3, 3, 2])


def test_a_sharded_variable_says_what_it_is(t8):
    assert t8.shape == (8, 2) and t8.ndim == 2 and t8.dtype == np.float32 and t8.name == "ShardedVariable"
    assert t8.offsets == [0, 3, 6, 8] and t8.assignable
    assert [component.shape for component in t8] == [(3, 2), (3, 2), (2, 2)]
    assert repr(t8) == "ShardedVariable(name='ShardedVariable', shape=(8, 2), dtype=float32, components=3)"
    assert repr(t8.variables[2]) == "Variable(name='Variable', shape=(2, 2), dtype=float32)"


@pytest.mark.parametrize("variables", [None, [], (), [1], 3, [np.zeros(2)]])
def test_components_are_variables(variables):
    with pytest.raises(TypeError, match="should be a non-empty list of"):
        et.ShardedVariable(variables)


def test_lists_become_what_tensorflow_makes_of_them():
    assert et.Variable([1.5]).dtype == np.float32
    assert et.Variable([1]).dtype == np.int32
    assert et.Variable([True]).dtype == np.bool_
    assert et.Variable(np.arange(3.0)).dtype == np.float64
    assert et.Variable([1], dtype="float16").dtype == np.float16
    with pytest.raises(TypeError, match="value must be int32, got float64"):
        et.Variable([1.5], dtype=np.int32)
    with pytest.raises(ValueError, match="value must be float32, got float64"):
        et.Variable(np.zeros(2), dtype="float32")
    with pytest.raises(TypeError, match="dtype must be float32.*got complex128"):
        et.Variable([1j])


KEYS = [
    0, 3, -1, np.int64(6), slice(None), slice(2, 7, 2), slice(None, None, -3), slice(-12, None, 3), slice(8, None, -2),
    slice(5, 3), ..., None, (2, 1), [2, 1], (slice(None), 0), (..., 0), (None, slice(2, 5)), (..., 2, 1), (), (0, None, 1),
    (slice(0, 10**30), slice(None, None, -1)), (T8[:, 0] > 11, np.array([True, True])),
    (T8[:, 0] > 3, None, np.array([False, True])), T8 > 10, T8[:, 0] > 5, (slice(1, 7), np.array([True, False])),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(t8, key):
    expected = T8[tuple(key) if isinstance(key, list) else key]
    got = t8[key]
    assert isinstance(got, np.ndarray) and got.dtype == np.float32 and got.shape == expected.shape
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("key,error,text", [
    (8, IndexError, "out of bounds"),
    (-9, IndexError, "out of bounds"),
    (10**30, IndexError, "sharded variable 'ShardedVariable': index 1000000000000000000000000000000 is out of bounds for"),
    ((T8[:, 0] > 3, np.array([True, True])), ValueError, "equally many"),
    ((0, 2), IndexError, "out of bounds"),
    ((0, 0, 0), IndexError, ""),
    (slice(None, None, 0), ValueError, "slice step cannot be zero"),
    (np.array(1), TypeError, "not allowed"),
    (np.array([1, 2]), TypeError, "not allowed"),
    (slice(np.array(1), None), TypeError, "not allowed"),
    (slice(0, 1.5), TypeError, "bound"),
    (True, ValueError, ""),
    (np.array([True]), ValueError, ""),
    ("a", TypeError, "index"),
    (1.5, TypeError, "index"),
])
def test_bad_indices_are_errors(t8, key, error, text):
    with pytest.raises(error, match=text or None):
        t8[key]


def test_a_slice_of_one_component_is_a_view_that_later_changes_do_not_touch(t8):
    first = t8[0:2]
    assert np.shares_memory(first, t8[1:3]) and not first.flags.writeable
    before = first.copy()
    t8.assign(T8 + 1)
    assert np.array_equal(first, before) and np.array_equal(t8, T8 + 1)
    part = t8[0:2]
    del t8
    gc.collect()
    assert np.array_equal(part, T8[:2] + 1)


def test_the_numpy_protocol(t8):
    assert np.array_equal(np.asarray(t8), T8)
    assert np.asarray(t8, dtype=np.float64).dtype == np.float64
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="an array of several components needs a copy"):
            np.asarray(t8, copy=False)
    assert np.array(t8, copy=True).flags.writeable
    assert np.exp(t8).shape == (8, 2) and np.sum(t8) == T8.sum()
    assert np.array_equal(t8.variables[1], T8[3:6])
    assert np.array_equal(et.Variable(2.5).numpy(), np.float32(2.5)) and et.Variable(2.5).shape == ()


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_are_those_of_the_value(t8, operator):
    for other in (2, 2.5, T8[::-1].copy(), np.float32(3), [1.0, 2.0]):
        values = {"x": t8, "y": other}
        arrays = {"x": T8, "y": np.asarray(other, np.float32)}
        for text in (f"x {operator} y", f"y {operator} x"):
            got = eval(text, values)
            assert isinstance(got, np.ndarray), text
            np.testing.assert_allclose(got, eval(text, arrays), rtol=1e-6)


def test_more_operators(t8):
    assert np.array_equal(t8 @ T8.T, T8 @ T8.T) and np.array_equal(T8.T @ t8, T8.T @ T8)
    assert np.array_equal(-t8, -T8) and np.array_equal(abs(-1 * t8), T8) == True  # noqa: E712
    assert np.array_equal(t8 + t8, 2 * T8) and np.array_equal(t8 + et.Variable(T8), 2 * T8)
    mask = sharded(np.array([True, False, True]), [1, 2])
    assert (~mask).tolist() == [False, True, False] and (mask & True).tolist() == [True, False, True]
    assert (mask | np.array([False, True, False])).all() and (mask ^ mask).sum() == 0
    assert (t8 == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        t8 + "a"
    with pytest.raises(TypeError):
        hash(t8)


def test_operators_on_several_threads_have_the_same_bits():
    rng = np.random.default_rng(3)
    value, other = rng.standard_normal((2, 700, 300)).astype(np.float32)
    one, many = sharded(value, [300, 0, 400]), sharded(value, [300, 0, 400], threads=3)
    for text in ("x + y", "y / x", "x * 2", "x < y", "x[:, :1] - x", "-x", "x @ y.T", "y.T @ x", "x // y"):
        expected, got = (eval(text, {"x": x, "y": other}) for x in (one, many))
        assert expected.dtype == got.dtype and expected.tobytes() == got.tobytes(), text
    np.testing.assert_allclose(many @ other.T, value @ other.T, rtol=1e-3, atol=1e-3)
    assert np.array_equal(many, value)


def test_an_exporter_sees_one_variable_of_the_whole_shape(t8):
    with et.ExportScope() as scope:
        (whole,) = t8.variables
        assert (whole.name, whole.shape, whole.dtype) == ("ShardedVariable", (8, 2), np.float32)
        assert len(t8.components) == 3 and np.array_equal(t8, T8) and not whole.assignable
        with pytest.raises(RuntimeError, match="placeholder"):
            whole.numpy()
        with pytest.raises(RuntimeError, match="entered once"):
            scope.__enter__()
    assert len(t8.variables) == 3


def on_another_thread(work):
    """What work() gives there; raises what it raises."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_an_export_scope_is_its_threads_alone(t8):
    with et.ExportScope() as scope:
        assert on_another_thread(lambda: len(t8.variables)) == 3
        with pytest.raises(RuntimeError, match="must be left by the thread that entered it"):
            on_another_thread(lambda: scope.__exit__(None, None, None))
        with pytest.raises(RuntimeError, match="entered once"):
            on_another_thread(scope.__enter__)
        assert len(t8.variables) == 1
    assert len(t8.variables) == 3
    assert on_another_thread(lambda: (scope.__enter__(), len(t8.variables), scope.__exit__())[1]) == 1
    assert len(t8.variables) == 3


def test_an_export_scope_that_another_thread_drops_stays_entered(t8):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        scopes = [pool.submit(et.ExportScope().__enter__).result()]
        scopes.clear()
        gc.collect()
        assert len(t8.variables) == 3
        assert pool.submit(lambda: len(t8.variables)).result() == 1


def test_indices_outside_name_variable_component_axis_index_and_bound():
    parts = [et.Variable(T8[:3], name="w/part_0"), et.Variable(T8[3:], name="w/part_1")]
    w = et.ShardedVariable(parts, name="w")
    behind = r"out of bounds for axis 0 with size 8, behind component 1 \('w/part_1'\) of rows \[3, 8\)"
    for call, text in [
        (lambda: w[8], "sharded variable 'w': index 8 is " + behind),
        (lambda: w[2, -3], r"'w': index -3 is out of bounds for axis 1 with size 2, in component 0 \('w/part_0'\)"),
        (lambda: w.sparse_read([1, 8]), r"'w': sparse_read: indices\[1\] = 8 is " + behind),
        (lambda: w.scatter_add([8], np.ones((1, 2), np.float32)), r"'w': scatter_add: indices\[0\] = 8 is " + behind),
        (lambda: et.embedding_lookup(w, [0, 8]), r"'w': lookup: ids\[1\] = 8 is " + behind),
    ]:
        with pytest.raises(IndexError, match=text):
            call()


def test_rows_are_read_in_the_callers_order():
    variable = sharded(np.arange(32, dtype=np.float32), [11, 11, 10])
    assert variable.sparse_read([22, 0, 31, 10, 11, 0]).tolist() == [22, 0, 31, 10, 11, 0]
    with pytest.raises(IndexError):
        variable.sparse_read([32])
    with pytest.raises(ValueError, match="indices must be 1D"):
        variable.sparse_read([[0, 1]])


class Slices:
    """As TensorFlow's IndexedSlices."""

    def __init__(self, values, indices):
        self.values, self.indices = values, indices


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "min", "max", "update"])
def test_scatters_agree_with_one_after_the_other(name):
    random = np.random.default_rng(3)
    start = random.uniform(1, 2, (10, 3)).astype(np.float32)
    at, values = random.integers(0, 10, 30), random.uniform(0.5, 2, (30, 3)).astype(np.float32)
    expected = start.copy()
    operation = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum,
                 "max": np.maximum, "update": lambda old, new: new}[name]
    for row, value in zip(at, values):
        expected[row] = operation(expected[row], value)
    for arguments in ((at, values), (Slices(values, at),)):
        variable = sharded(start, [4, 0, 5, 1])
        assert getattr(variable, f"scatter_{name}")(*arguments) is variable
        assert np.array_equal(variable, expected)


def test_assignments_give_the_variable_and_refuse_other_shapes(t8):
    assert t8.assign_add(T8) is t8 and np.array_equal(t8, 2 * T8)
    assert t8.assign_sub(T8.tolist()) is t8 and np.array_equal(t8, T8)
    assert t8.batch_scatter_update([1], [[9, 9]])[1].tolist() == [9, 9]
    before = t8.numpy()
    for value in (T8[:7], np.zeros((8, 3), np.float32), T8.astype(np.int64)):
        with pytest.raises(ValueError):
            t8.assign(value)
    with pytest.raises(TypeError, match="values must be an array, got None"):
        t8.scatter_add([1])
    assert np.array_equal(t8, before)


def test_what_was_assigned_is_not_the_callers_array(t8):
    mine = T8.copy()
    t8.assign(mine)
    component = et.Variable(mine)
    mine[:] = 0
    assert np.array_equal(t8, T8) and np.array_equal(component, T8)


def test_arrays_of_any_layout(t8):
    wide = np.zeros((8, 4), np.float32)
    wide[:, ::2] = T8
    assert np.array_equal(t8.assign(wide[:, ::2]), T8)
    assert np.array_equal(t8.assign(np.asfortranarray(T8)[::-1]), T8[::-1])
    assert np.array_equal(t8.assign(T8.astype(">f4")), T8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool", "float16", "bfloat16"])
def test_every_dtype_comes_back(dtype):
    if dtype == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 without ml_dtypes")
        dtype = ml_dtypes.bfloat16
    value = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    variable = sharded(value, [1, 2])
    assert variable.dtype == value.dtype and variable.numpy().dtype == value.dtype
    assert np.array_equal(variable[1:], value[1:]) and np.array_equal(variable.sparse_read([2, 0]), value[[2, 0]])


def test_partitioners():
    assert et.FixedShardsPartitioner(2)((10, 3), np.float32) == [2, 1]
    assert et.FixedShardsPartitioner(3)((10, 3), "bfloat16", axis=-1) == [1, 3]
    assert et.MinSizePartitioner(100, 10)((7, 3), "string") == [4, 1]
    assert et.MinSizePartitioner(max_shards=100)((2048, 1024), np.float32) == [32, 1]
    assert et.MaxSizePartitioner(24, max_shards=3)([10, 3], "float32") == [3, 1]
    assert et.MaxSizePartitioner(32768, bytes_per_string=8)((4, 8, 16, 32), np.str_, 3) == [1, 1, 1, 4]
    with pytest.raises(ValueError, match="must be positive"):
        et.MaxSizePartitioner(0)
    with pytest.raises(ValueError, match="not fully defined"):
        et.MaxSizePartitioner(4)((None, 3), np.float32)
    with pytest.raises(ValueError, match="partition variable along axis"):
        et.MinSizePartitioner()((6, 1), np.float32, 2)
    with pytest.raises(IndexError):
        et.FixedShardsPartitioner(2)((6, 1), np.float32, axis=2)


def test_creation_by_a_partitioner():
    creator = et.VariableCreator(2, et.FixedShardsPartitioner(4))
    made = creator.create(np.arange(10), "x")
    assert made.nodes == [0, 1, 0, 1] and made.variable.name == "x"
    assert [c.name for c in made.variable] == ["x/part_0", "x/part_1", "x/part_2", "x/part_3"]
    assert [c.numpy().tolist() for c in made.variable] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
    beside = creator.create(np.arange(4), colocate_with=1)
    assert isinstance(beside.variable, et.Variable) and beside.nodes == [1]


def test_creation_by_functions():
    asked = []

    def partition(shape, dtype, axis=0):
        asked.append((shape, dtype, axis))
        return [2] + [1] * (len(shape) - 1)

    def rows_of_identity(part):
        asked.append((part.name, part.full_shape, part.offset, part.shape))
        return np.eye(*part.full_shape, dtype=np.float32)[part.offset[0]:part.offset[0] + part.shape[0]]

    creator = et.VariableCreator(variable_partitioner=partition)
    made = creator.create(rows_of_identity, "x", shape=(4, 4)).variable
    assert np.array_equal(made, np.eye(4)) and len(made.variables) == 2
    assert asked == [((4, 4), np.dtype("float32"), 0), ("x", (4, 4), (0, 0), (2, 4)), ("x", (4, 4), (2, 0), (2, 4))]
    assert creator.create(lambda: [1.0, 2.0, 3.0]).variable[2] == 3
    table = creator.create(et.Initializer.row_id(), shape=(5, 2)).variable
    assert table[4].tolist() == [4, 4]
    with pytest.raises(ValueError, match="variable_partitioner"):
        et.VariableCreator(variable_partitioner=lambda *_, axis: None).create([1.0])
    with pytest.raises(ZeroDivisionError):
        creator.create(lambda: 1 // 0)


def test_components_on_hosts():
    made = et.create_on_hosts(et.Initializer.uniform(0, 1), 4, "x", shape=(10, 3))
    assert made.offsets == [0, 3, 6, 8, 10] and [c.name for c in made] == ["x_0", "x_1", "x_2", "x_3"]
    assert np.array_equal(made, et.create_on_hosts(et.Initializer.uniform(0, 1), 1, "x", shape=(10, 3)))
    with pytest.raises(ValueError, match="Unable to extract initializer function and shape"):
        et.create_on_hosts(T8, 2, "x")


def test_dense_lookups(t8):
    ids = np.array([[7, 0], [3, 3]], np.int32)
    parts = [T8[0::3], T8[1::3], T8[2::3]]
    for params in (t8, [t8], T8, et.Variable(T8), [T8[:5], T8[5:]], t8.variables):
        assert np.array_equal(et.embedding_lookup(params, ids), T8[ids])
    assert np.array_equal(et.embedding_lookup(parts, ids, partition_strategy="mod"), T8[ids])
    assert et.embedding_lookup(t8, 5).tolist() == T8[5].tolist()
    np.testing.assert_allclose(et.embedding_lookup(np.float32([[2, 4], [3, 1]]), [0, 1], max_norm=2),
                               [[0.894427, 1.788854], [1.897367, 0.632456]], rtol=1e-6)
    found = et.embedding_lookup(t8, et.RaggedIds.from_rows([[1, 2], [], [3]]))
    assert found.row_splits.tolist() == [0, 2, 2, 3] and np.array_equal(found.values, T8[[1, 2, 3]])
    with pytest.raises(IndexError, match=r"ids\[1\] = 8 is out of bounds"):
        et.embedding_lookup(t8, [0, 8])
    for params in (None, []):
        with pytest.raises(ValueError, match="params must be specified|Need at least one param"):
            et.embedding_lookup(params, [0])
    with pytest.raises(ValueError, match="Unrecognized partition strategy"):
        et.embedding_lookup(T8, [0], partition_strategy="rows")


def test_sparse_lookups():
    table = sharded(np.arange(1, 11, dtype=np.float32).reshape(5, 2), [2, 2, 1])
    ids = et.SparseIds([[0, 0], [0, 1], [1, 0], [2, 0]], [0, 3, 4, 1], (3, 2))
    assert et.embedding_lookup_sparse(table, ids).tolist() == [[4, 5], [9, 10], [3, 4]]
    pruned = et.SparseIds([[0, 0], [0, 1], [1, 0], [2, 0]], [0, -1, 4, 1], (3, 2))
    weights = et.SparseWeights(np.array([1, 1, -1, 1], np.float32))
    assert et.safe_embedding_lookup_sparse(table, pruned, weights).tolist() == [[1, 2], [0, 0], [3, 4]]
    assert et.safe_embedding_lookup_sparse(table, pruned, weights, default_id=3).tolist() == [[1, 2], [7, 8], [3, 4]]
    ragged = et.RaggedIds.from_rows([[0, 1], [2]])
    assert et.embedding_lookup_sparse(table, ragged, combiner="sum").tolist() == [[4, 6], [5, 6]]
    with pytest.raises(TypeError, match="sparse or ragged"):
        et.embedding_lookup_sparse(table, np.array([0]))
    with pytest.raises(ValueError, match="combiner must be one of"):
        et.embedding_lookup_sparse(table, ragged, combiner="max")
    with pytest.raises(ValueError, match="Missing embedding_weights"):
        et.safe_embedding_lookup_sparse([], ragged)


def test_a_checkpoint_opens_in_any_components(tmp_path, t8):
    et.save_variables(tmp_path, 3, {"x": t8, "n": et.Variable([1, 2])}, et.CallerState(json={"at": 3}))
    two, n = sharded(np.zeros_like(T8), [0, 7, 1]), et.Variable([0, 0])
    saved = et.restore_variables(tmp_path, {"x": two, "n": n})
    assert saved.step == 3 and saved.caller.json == {"at": 3}
    assert np.array_equal(two, T8) and np.array_equal(n, [1, 2])
    later = et.VariableCreator(variable_partitioner=et.FixedShardsPartitioner(5)).create(et.saved_value(tmp_path, "x"))
    assert np.array_equal(later.variable, T8) and len(later.variable.variables) == 5
    with pytest.raises(KeyError, match="not found in checkpoint"):
        et.restore_variables(tmp_path, {"y": n})
    with et.CheckpointRun(tmp_path) as run:
        et.save_variables(run, 4, {"x": t8})
        assert run.steps() == [3, 4]


def an_engine(strategy):
    table = et.TableConfig(7, 2, initializer=et.Initializer.row_id(), name="films")
    return et.Embedding(et.FeatureConfig(table), et.SGD(1.0), strategy)


def test_tables_of_an_engine_are_sharded_variables():
    engine = an_engine(et.EngineStrategy(hosts=3))
    engine.build(3)
    films = engine.sharded_variable("films")
    assert films.offsets == [0, 3, 5, 7] and not films.assignable
    assert films[6].tolist() == [6, 6] and et.embedding_lookup(films, [4]).tolist() == [[4, 4]]
    with pytest.raises(RuntimeError, match="is read-only"):
        films.scatter_add([0], [[1, 1]])
    del engine
    gc.collect()
    assert films.numpy()[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    plain = an_engine(None)
    films = plain.sharded_variable("films")
    films.scatter_update([2], [[9, 8]])
    assert plain.read_rows("films", [2]).tolist() == [[9, 8]]


def test_threads_read_and_change_one_variable():
    variable = sharded(np.zeros((100, 4), np.float32), [40, 60])
    at, ones = np.arange(100), np.ones((100, 4), np.float32)

    def work():
        for _ in range(200):
            variable.scatter_add(at, ones)
            whole = variable.numpy()
            assert (whole == whole[0, 0]).all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (variable.numpy() == 800).all()
