"""Variables: identity, indices, operators, changes, keywords of TensorFlow's, lookups in them, functions that make them."""

import gc
import operator
import weakref

import numpy as np
import pytest

import embertable as et

VALUE = np.arange(12, dtype=np.float32).reshape(4, 3)


class Slices:
    def __init__(self, indices, values):
        self.indices, self.values = indices, values


class Mine(et.Variable):
    pass


def test_a_component_is_the_variable_that_it_was_made_of():
    one, two = et.Variable(VALUE), Mine(VALUE)
    sharded = et.ShardedVariable([one, two])
    assert sharded.variables[0] is one and sharded.components[1] is two and list(sharded)[1] is two
    assert one in sharded.variables and one == sharded.variables[0] and hash(one) == hash(sharded.variables[0])
    assert one != two and len({one, two, sharded.variables[0]}) == 2
    del one, two
    gc.collect()
    assert type(sharded.variables[1]) is Mine


def test_components_that_were_made_inside_have_an_identity_too():
    sharded = et.VariableCreator(2, et.FixedShardsPartitioner(2)).create(VALUE).variable
    assert sharded.variables[0] is sharded.variables[0] and sharded.variables[0] is not sharded.variables[1]
    whole = et.VariableCreator().create(VALUE)
    assert whole.variable is whole.variable


def test_a_saved_value_and_an_initializer_have_the_shape_and_dtype_that_are_given(tmp_path):
    saved = et.saved_value(et.save_variables(tmp_path, 1, {"v": et.Variable(VALUE)}), "v")
    zeros, creator = et.Initializer.zeros(), et.VariableCreator(2)
    for create in (creator.create, lambda value, **given: et.create_on_hosts(value, 2, "n", **given)):
        with pytest.raises(ValueError, match=r"initial_value: shape .* does not fit the given shape, \(7, 1\)"):
            create(saved, shape=(7, 1))
        for value in (saved, zeros):
            for dtype in ("int32", np.float64):
                with pytest.raises(ValueError, match=f"initial_value must be {np.dtype(dtype)}, got float32"):
                    create(value, shape=VALUE.shape, dtype=dtype)
        create(saved, shape=(None, VALUE.shape[1]), dtype="float32"), create(zeros, shape=VALUE.shape, dtype=np.float32)
    assert creator.create(saved).nodes == [0]  # two were made: refused ones took no node


@pytest.mark.parametrize("value", [VALUE, lambda: VALUE], ids=["an array", "a function"])
def test_a_value_must_have_the_shape_and_dtype_that_are_given(value):
    create = et.VariableCreator().create
    for shape in VALUE.shape, [None, VALUE.shape[1]], None:
        assert create(value, shape=shape).variable.shape == VALUE.shape
    with pytest.raises(ValueError, match=r"initial_value: shape .* does not fit the given shape, \(7, 1\)"):
        create(value, shape=(7, 1))
    assert create(value, dtype=np.float32).variable.dtype == np.float32
    with pytest.raises(ValueError, match="initial_value must be float64, got float32"):
        create(value, dtype=np.float64)


def test_a_shape_is_a_sequence_of_dims():
    create = et.VariableCreator().create
    with pytest.raises(TypeError, match="shape must be None or a sequence of dims"):
        create(VALUE, shape="22")


def test_objects_of_variables_are_freed():
    variable = et.Variable(VALUE)
    dead = weakref.ref(variable)
    sharded = et.ShardedVariable([variable])
    del variable
    assert dead() is sharded.variables[0]
    del sharded
    gc.collect()
    assert dead() is None


def test_indices_are_numpys():
    variable = et.Variable(VALUE)
    for key in (0, -1, slice(1, 3), (slice(None), 1), (..., 0), None, VALUE > 4, (slice(None, None, -2), [True, False, True])):
        assert np.array_equal(variable[key], VALUE[key]), key
    assert len(variable) == 4 and [row.tolist() for row in variable] == VALUE.tolist()
    with pytest.raises(IndexError, match="variable 'Variable'"):
        variable[10**30]
    with pytest.raises(IndexError):
        variable[4]
    with pytest.raises(TypeError, match="no length"):
        len(et.Variable(3.0))


def test_rows_are_gone_through_and_a_number_has_none():
    assert [row.tolist() for row in et.Variable([[1.0, 2.0], [3.0, 4.0]])] == [[1, 2], [3, 4]]
    assert list(et.Variable([5, 6])) == [5, 6] and list(et.Variable(np.zeros((0, 2)))) == []
    for take in (list, iter, len, lambda variable: [*variable]):
        with pytest.raises(TypeError, match="variable 'x' has no axis"):
            take(et.Variable(3.0, "x"))


def test_operators_are_those_of_the_value():
    variable, other = et.Variable(VALUE + 1), np.full((4, 3), 2, np.float32)
    for what in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
                 operator.lt, operator.le, operator.gt, operator.ge):
        assert np.array_equal(what(variable, other), what(VALUE + 1, other)), what
        assert np.array_equal(what(other, variable), what(other, VALUE + 1)), what
        assert np.array_equal(what(variable, et.Variable(other)), what(VALUE + 1, other)), what
        assert np.array_equal(what(variable, 2.0), what(VALUE + 1, np.float32(2))), what
    assert np.array_equal(-variable, -(VALUE + 1)) and np.array_equal(abs(et.Variable(-VALUE)), VALUE)
    assert np.array_equal(variable @ np.ones((3, 2), np.float32), (VALUE + 1) @ np.ones((3, 2), np.float32))
    assert np.array_equal(~et.Variable([True, False]), [False, True])
    with pytest.raises(TypeError):
        variable + "text"


def changed(call):
    variable = et.Variable(VALUE)
    assert call(variable) is variable
    return variable.numpy()


def test_changes_are_numpys():
    ones = np.ones_like(VALUE)
    assert np.array_equal(changed(lambda v: v.assign(ones, use_locking=True, name="x", read_value=False)), ones)
    assert np.array_equal(changed(lambda v: v.assign_add(ones, True, "x", True)), VALUE + 1)
    assert np.array_equal(changed(lambda v: v.assign_sub(delta=ones)), VALUE - 1)
    assert et.Variable(2.0).assign_add(3.0).numpy() == 5
    with pytest.raises(ValueError, match=r"'Variable': assign_add needs shape \(4, 3\), got \(3\)"):
        changed(lambda v: v.assign_add(np.ones(3, np.float32)))
    with pytest.raises(TypeError, match="both"):
        changed(lambda v: v.assign_add(ones, delta=ones))


# Row 1 twice and row 3 once, with values of 2 and 4, and 5.
AT, VALUES = [1, 3, 1], np.repeat(np.array([2, 5, 4], np.float32)[:, None], 3, 1)
EXPECTED = {"scatter_add": {1: VALUE[1] + 6, 3: VALUE[3] + 5}, "scatter_sub": {1: VALUE[1] - 6, 3: VALUE[3] - 5},
            "scatter_mul": {1: VALUE[1] * 8, 3: VALUE[3] * 5}, "scatter_div": {1: VALUE[1] / 2 / 4, 3: VALUE[3] / 5},
            "scatter_min": {1: np.minimum(VALUE[1], 2), 3: np.minimum(VALUE[3], 5)},
            "scatter_max": {1: np.maximum(VALUE[1], 4), 3: np.maximum(VALUE[3], 5)},
            "scatter_update": {1: np.full(3, 4), 3: np.full(3, 5)}, "batch_scatter_update": {1: np.full(3, 4), 3: np.full(3, 5)}}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("make", [lambda: et.Variable(VALUE), lambda: et.ShardedVariable([et.Variable(VALUE[:2]), et.Variable(VALUE[2:])])],
                         ids=["variable", "sharded"])
def test_scatters_take_what_tensorflows_take(name, make):
    expected = VALUE.copy()
    for row, value in EXPECTED[name].items():
        expected[row] = value
    for arguments, keywords in (((AT, VALUES), {}), ((Slices(AT, VALUES),), {}), ((Slices(AT, VALUES), False, "x"), {}),
                                ((), {"sparse_delta": Slices(AT, VALUES), "use_locking": True, "name": "x"}),
                                ((), {"indices": AT, "values": VALUES, "name": None})):
        variable = make()
        assert getattr(variable, name)(*arguments, **keywords) is variable
        assert np.allclose(variable.numpy(), expected), (arguments, keywords)
    with pytest.raises(IndexError):
        getattr(make(), name)([9], VALUES[:1])
    with pytest.raises(TypeError, match="NoneType|both|array"):
        getattr(make(), name)(AT, VALUES, sparse_delta=Slices(AT, VALUES))


def test_a_scatter_leaves_a_component_a_component():
    """A component that is changed by itself still belongs to its container, and cannot be given to another."""
    one = et.Variable(VALUE)
    owner = et.ShardedVariable([one])
    one.scatter_add([0], [[1.0, 1.0, 1.0]])
    assert owner[0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="SaveSliceInfo"):
        et.ShardedVariable([one])
    alone = et.Variable(VALUE)
    alone.scatter_add([0], [[1.0, 1.0, 1.0]])
    with pytest.raises(IndexError):
        alone.scatter_add([7], [[1.0, 1.0, 1.0]])
    et.ShardedVariable([alone])


@pytest.mark.parametrize("call, error, text", [
    (lambda w: w.scatter_add([-1], [[1, 1, 1]]), IndexError, r"scatter_add: indices\[0\] = -1 is out of bounds for axis 0 with size 4$"),
    (lambda w: w.sparse_read([4]), IndexError, r"sparse_read: indices\[0\] = 4 is out of bounds for axis 0 with size 4$"),
    (lambda w: w.sparse_read([[0]]), ValueError, r"sparse_read: indices must be 1D, got shape \(1, 1\)$"),
    (lambda w: w.scatter_mul([0], [[1]]), ValueError, r"scatter_mul needs float32 of shape \(1, 3\), got float32 of shape \(1, 1\)$"),
])
def test_errors_speak_of_the_variable(call, error, text):
    with pytest.raises(error, match="^variable 'w': " + text):
        call(et.Variable(VALUE, "w"))


def test_a_number_has_no_rows():
    with pytest.raises(ValueError, match=r"^variable 'w': must have an axis of rows, got shape \(\)$"):
        et.Variable(1.0, "w").sparse_read([0])


def test_rows_are_read():
    assert et.Variable(VALUE).sparse_read([3, 0], name="x").tolist() == VALUE[[3, 0]].tolist()
    assert et.ShardedVariable([et.Variable(VALUE)]).sparse_read([2], name=None).tolist() == VALUE[[2]].tolist()
    assert et.Variable(VALUE).read_value().tolist() == VALUE.tolist()


@pytest.mark.parametrize("other, text", [
    (et.Variable(np.zeros((2, 3), np.float64)), "must have the same dtype"),
    (et.Variable(np.zeros((2, 4), np.float32)), "same shapes except for the first axis"),
])
def test_components_must_fit(other, text):
    with pytest.raises(ValueError, match=text):
        et.ShardedVariable([et.Variable(VALUE), other])


def test_structures_are_compared():
    def of(*rows, dtype=np.float32):
        return et.ShardedVariable([et.Variable(np.zeros((r, 2), dtype)) for r in rows])

    assert of(2, 3).same_structure(of(2, 3)) and not of(2, 3).same_structure(of(3, 2))
    assert not of(2).same_structure(of(2, dtype=np.int32))


class TFDType:
    """A dtype as TensorFlow's objects have one."""

    def __init__(self, numpy):
        self.as_numpy_dtype = numpy


class dtype:  # noqa: N801: the name of PyTorch's class
    def __str__(self):
        return "torch.int64"


def test_dtypes_may_be_a_frameworks():
    assert et.Variable([1, 2], dtype=TFDType(np.int64)).dtype == np.int64
    assert et.Variable([1, 2], dtype=dtype()).dtype == np.int64
    assert et.MinSizePartitioner(4, 10)((6, 1), TFDType(np.float64)) == [6, 1]
    assert et.MaxSizePartitioner(16)((6, 1), TFDType(object)) == [6, 1]  # strings of 16 bytes
    created = et.VariableCreator().create(lambda: [1, 2], dtype=TFDType(np.int64))
    assert created.variable.shape == (2,)


def test_a_partitioner_may_take_no_axis():
    asked = []

    def without(shape, dtype):
        asked.append((tuple(shape), np.dtype(dtype)))
        return [2, 1]

    def others(shape, dtype, **kwargs):
        asked.append(kwargs)
        return [2, 1]

    for partitioner in (without, others):
        assert len(et.VariableCreator(2, partitioner).create(VALUE).variable.variables) == 2
    assert asked == [((4, 3), np.float32), {"axis": 0}]


def test_a_function_of_nothing_is_called_for_the_whole():
    calls = []

    def whole():
        calls.append("whole")
        return VALUE

    def part(piece):
        calls.append(piece.offset[0])
        return VALUE[piece.offset[0]:piece.offset[0] + piece.shape[0]]

    for function in (whole, part):
        created = et.VariableCreator(2, et.FixedShardsPartitioner(2)).create(function, shape=(4, 3), dtype=np.float32)
        assert np.array_equal(created.variable, VALUE)
    assert calls == ["whole", 0, 2]


class Ragged:
    """Ragged ids as TensorFlow has them."""

    def __init__(self, values, row_splits):
        self.values, self.row_splits = values, row_splits


def test_ragged_ids_of_others_are_looked_up():
    rows = et.embedding_lookup(VALUE, Ragged(np.array([3, 0, 1]), np.array([0, 2, 2, 3])), name="x", validate_indices=False)
    assert rows.row_splits.tolist() == [0, 2, 2, 3] and np.array_equal(rows.values, VALUE[[3, 0, 1]])
    deep = et.embedding_lookup(VALUE, Ragged(Ragged(np.array([3, 0, 1]), np.array([0, 2, 3])), np.array([0, 1, 1, 2])))
    assert [splits.tolist() for splits in deep.nested_row_splits] == [[0, 1, 1, 2], [0, 2, 3]]
    assert np.array_equal(deep.values, VALUE[[3, 0, 1]])


def test_lookups_check_parts_and_take_whole_weights():
    with pytest.raises(TypeError, match="one dtype"):
        et.embedding_lookup([VALUE, VALUE.astype(np.float64)], [0])
    ids = et.RaggedIds([1, 2], [0, 2])
    weights = Ragged(np.array([1, 3]), np.array([0, 2]))
    for look_up in (et.embedding_lookup_sparse, et.safe_embedding_lookup_sparse):
        assert np.allclose(look_up(VALUE, ids, weights, "sum", allow_fast_lookup=True, name="x"), [VALUE[1] + 3 * VALUE[2]])
    with pytest.raises(TypeError, match="^sp_ids"):
        et.embedding_lookup_sparse(VALUE, Ragged(np.array([0.5]), np.array([0, 1])))
    with pytest.raises(ValueError, match="^sparse_weights"):
        et.safe_embedding_lookup_sparse(VALUE, ids, "text")
