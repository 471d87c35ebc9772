"""make_sharded_variable_creator: components for each host, made here or by a function of the caller's."""

import functools

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu


def ones(shape, dtype=None):
    return np.ones(shape, dtype)


def numbers(shape, dtype=None, shard_info=None):
    """Row r is r, of the block that shard_info says."""
    info = shard_info or tpu.ShardInfo(tuple(shape), (0, 0))
    return np.repeat(np.arange(info.offset[0], info.offset[0] + info.shape[0], dtype=dtype)[:, None], shape[1], 1)


@pytest.mark.parametrize("hosts", [5, np.int64(5), ["/job:worker/task:%d/device:CPU:0" % i for i in range(5)]])
def test_hosts_are_a_number_or_names(hosts):
    made = tpu.make_sharded_variable_creator(hosts)(initial_value=numbers, name="t", shape=(13, 2))
    assert [part.shape for part in made] == [(3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]
    assert [part.name for part in made] == ["t_0", "t_1", "t_2", "t_3", "t_4"] and made.name == "t"
    assert made.numpy()[:, 0].tolist() == list(range(13)) and made.dtype == np.float32


def test_hosts_without_rows_have_no_component():
    made = tpu.make_sharded_variable_creator(5)(initial_value=ones, name="t", shape=(2, 3))
    assert [part.name for part in made] == ["t_0", "t_1"]


def test_a_function_may_be_bound_to_its_shape_and_dtype():
    create = tpu.make_sharded_variable_creator(2)
    for bound in (functools.partial(np.ones, (3, 2), np.float64), functools.partial(np.ones, shape=(3, 2), dtype=np.float64)):
        made = create(initial_value=bound, name="t", dtype=np.float32)  # the bound one comes first
        assert made.shape == (3, 2) and made.dtype == np.float64
    made = create(initial_value=functools.partial(ones, (3, 2)), name="t", dtype=np.float64)
    assert made.dtype == np.float64
    made = create(initial_value=functools.partial(numbers, (3, 2)), name="t")
    assert made.numpy()[:, 0].tolist() == [0, 1, 2]


def test_one_that_takes_shard_info_is_asked_for_each_component_and_any_other_once():
    asked = []

    def aware(shape, dtype, shard_info=None):
        asked.append((shape, shard_info))
        return np.zeros(shard_info.shape, dtype)

    def whole(shape, dtype):
        asked.append(shape)
        return np.zeros(shape, dtype)

    create = tpu.make_sharded_variable_creator(2)
    create(initial_value=aware, name="t", shape=(5, 2))
    assert asked == [((5, 2), tpu.ShardInfo((3, 2), (0, 0))), ((5, 2), tpu.ShardInfo((2, 2), (3, 0)))]
    asked.clear()
    create(initial_value=whole, name="t", shape=(5, 2))
    assert asked == [(5, 2)]


def test_the_seed_and_the_name_decide_the_values_and_hosts_do_not():
    def rows(hosts, seed, next_creator=None):
        create = tpu.make_sharded_variable_creator(hosts)
        return create(next_creator, initial_value=et.Initializer.normal(0, 1), name="t", shape=(7, 3), seed=seed).numpy()

    def next_creator(initial_value, name, **options):
        return et.Variable(initial_value(), name)

    assert np.array_equal(rows(1, 4), rows(3, 4)) and np.array_equal(rows(1, 4), rows(3, 4, next_creator))
    assert not np.array_equal(rows(1, 4), rows(1, 5))


@pytest.mark.parametrize("first", [ones, numbers, et.Initializer.row_id(1.0)])
def test_a_next_creator_makes_the_components(first):
    calls = []

    def next_creator(*args, initial_value, name, shape, dtype, **options):
        calls.append((args, name, shape, np.dtype(dtype), options))
        return et.Variable(initial_value(), name)

    create = tpu.make_sharded_variable_creator(2)
    made = create(next_creator, "x", initial_value=first, name="t", shape=(3, 2), trainable=False)
    assert calls == [(("x",), "t_0", (2, 2), np.float32, {"trainable": False}),
                     (("x",), "t_1", (1, 2), np.float32, {"trainable": False})]
    assert np.array_equal(made, create(initial_value=first, name="t", shape=(3, 2)))


def test_components_take_what_was_saved(tmp_path):
    saved = et.save_variables(tmp_path, 1, {"v": et.Variable(numbers((5, 2), np.float32))})
    made = tpu.make_sharded_variable_creator(2)(initial_value=et.saved_value(saved, "v"), name="t")
    assert [part.shape for part in made] == [(3, 2), (2, 2)] and made.numpy()[:, 1].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="variable 't': a saved value of shape \\(5, 2\\) does not fit shape \\(4, 2\\)"):
        tpu.make_sharded_variable_creator(2)(initial_value=et.saved_value(saved, "v"), name="t", shape=(4, 2))


@pytest.mark.parametrize("error, text, call", [
    (ValueError, "hosts must be at least one", lambda create: tpu.make_sharded_variable_creator(0)),
    (ValueError, "hosts must be at least one", lambda create: tpu.make_sharded_variable_creator([])),
    (TypeError, "hosts must be a number or a list of names", lambda create: tpu.make_sharded_variable_creator("cpu")),
    (ValueError, "variable 't': Unable to extract initializer function and shape",
     lambda create: create(initial_value=np.ones((3, 2)), name="t", shape=(3, 2))),
    (ValueError, "variable 't': Unable to extract initializer function and shape",
     lambda create: create(initial_value=ones, name="t")),
    (ValueError, "variable 't': an Initializer needs the shape",
     lambda create: create(initial_value=et.Initializer.zeros(), name="t")),
    (TypeError, "variable 't': shape must be a sequence of dims, got '32'",
     lambda create: create(initial_value=ones, name="t", shape="32")),
    (TypeError, "variable 't': shape must be a sequence of dims, got 3", lambda create: create(initial_value=ones, name="t", shape=3)),
    (ValueError, "variable 't': an Initializer gives float32, not float64",
     lambda create: create(initial_value=et.Initializer.zeros(), name="t", shape=(3, 2), dtype=np.float64)),
    (ValueError, "a shape is a sequence of integers, got 3",
     lambda create: create(initial_value=functools.partial(ones, 3), name="t")),
    (ValueError, "variable 't': a table must have rank 2", lambda create: create(initial_value=ones, name="t", shape=(3,))),
    (ValueError, "variable 't': a table must have rank 2",
     lambda create: create(lambda **_: None, initial_value=ones, name="t", shape=(3,))),
    (ValueError, "variable 't': initial_value must give shape \\(3, 2\\), got \\(2, 2\\)",
     lambda create: create(initial_value=lambda shape, dtype: np.ones((2, 2), dtype), name="t", shape=(3, 2))),
    (ValueError, "variable 't': what initial_value gives: value must be float32, got float64",
     lambda create: create(initial_value=lambda shape, dtype: np.ones(shape), name="t", shape=(3, 2))),
    (TypeError, "variable 't': next_creator must be a function or None", lambda create: create("x", initial_value=ones, name="t")),
    (TypeError, "variable 't': next_creator must return a Variable, got ndarray",
     lambda create: create(lambda initial_value, **_: initial_value(), initial_value=ones, name="t", shape=(3, 2))),
    (ValueError, "variable 't': component 0 must have shape \\(2, 2\\), got \\(1,\\)",
     lambda create: create(lambda **_: et.Variable([1.0]), initial_value=ones, name="t", shape=(3, 2))),
])
def test_refusals(error, text, call):
    with pytest.raises(error, match=text):
        call(tpu.make_sharded_variable_creator(2))
