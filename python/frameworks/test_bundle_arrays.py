"""TensorBundleReader and TensorBundleWriter beside real TensorFlow: every dtype, any objects, slices and parts."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import sharded_variable

import embertable as et

SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
DTYPES = ["float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "bfloat16", "uint16",
          "complex128", "float16", "uint32", "uint64"]
SHAPES = [(), (0,), (3, 0, 2), (1,), (4, 1, 2, 3)]


def numbers(seed, shape, dtype="float32"):
    drawn = np.random.default_rng(seed).normal(size=shape) * 50
    if dtype.startswith("complex"):
        drawn = drawn + 1j * drawn[::-1] if shape else drawn + 1j
    if dtype.startswith("u"):
        drawn = np.abs(drawn)
    return np.asarray(drawn).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def parts(array, sizes):
    cut = np.split(array, np.cumsum(sizes)[:-1])
    return (sharded_variable.ShardedVariable([tf.Variable(part) for part in cut]),
            et.ShardedVariable([et.Variable(part) for part in cut]))


def same_bytes(found, expected):
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype) and found.tobytes() == expected.tobytes()


def reads_the_same(prefix):
    """Both readers say the same of every tensor; gives how many there are."""
    theirs, ours = tf.train.load_checkpoint(str(prefix)), et.TensorBundleReader(prefix)
    dtypes = theirs.get_variable_to_dtype_map()
    assert set(ours) == set(dtypes)
    for key in ours:
        told = ours.describe(key)
        assert list(told.shape) == theirs.get_variable_to_shape_map()[key] and told.dtype == dtypes[key].name
        if told.dtype == "string":
            assert ours[key].tolist() == (theirs.get_tensor(key) if told.shape == () else theirs.get_tensor(key).tolist())
            continue
        array = ours[key]
        same_bytes(array, theirs.get_tensor(key))
        some = tuple(slice(size // 3, 2 * size // 3 + 1) for size in told.shape)
        same_bytes(ours.read(key, some), np.ascontiguousarray(array[some]).reshape(array[some].shape))
    ours.verify()
    return len(ours)


def save_v2(prefix, tensors, specs=None):
    prefix.parent.mkdir(exist_ok=True)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors), shape_and_slices=specs or [""] * len(tensors),
                      tensors=list(tensors.values()))
    return prefix


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_both_ways(dtype, tmp_path):
    arrays = {f"x{i}/{'y' * i}": numbers(i, shape, dtype) for i, shape in enumerate(SHAPES)}
    assert reads_the_same(save_v2(tmp_path / "theirs", arrays)) == len(SHAPES)
    with et.TensorBundleWriter(tmp_path / "ours") as writer:
        for key, array in arrays.items():
            writer.add(key, array)
    assert reads_the_same(tmp_path / "ours") == len(SHAPES)
    for suffix in [".index", ".data-00000-of-00001"]:  # both wrote in the same order
        assert (tmp_path / ("ours" + suffix)).read_bytes() == (tmp_path / ("theirs" + suffix)).read_bytes()


@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint32"])
def test_other_dtypes_are_listed(dtype, tmp_path):
    prefix = save_v2(tmp_path / "b", {"q": tf.bitcast(tf.zeros(3, dtype[1:]), dtype), "x": tf.constant(1.0)})
    reader = et.TensorBundleReader(prefix)
    assert reader.keys() == ["q", "x"] and reader.describe("q").shape == (3,) and reader["x"] == 1
    with pytest.raises(NotImplementedError, match="tensor 'q' of .* is of dtype 1., which is not read"):
        reader.read("q")


def test_strings_and_names(tmp_path):
    tensors = {"ключ/日本": tf.constant("ü"), "a b\tc\n": tf.constant([b"", b"\0\xff", b"x" * 70000]), "~" * 3000: tf.constant(1.0),
               "none": tf.constant([], tf.string), "many": tf.reshape(tf.constant([str(i) * i for i in range(200)]), (20, 10))}
    assert reads_the_same(save_v2(tmp_path / "theirs", tensors)) == 5
    with et.TensorBundleWriter(tmp_path / "ours") as writer:
        for key, tensor in tensors.items():
            writer.add(key, tensor.numpy())
    assert reads_the_same(tmp_path / "ours") == 5
    assert (tmp_path / "ours.index").read_bytes() == (tmp_path / "theirs.index").read_bytes()


def test_an_index_of_many_blocks(tmp_path):
    tensors = {f"{i % 7}/{'k' * 500}{i}": tf.constant([i]) for i in range(3000)}
    assert reads_the_same(save_v2(tmp_path / "theirs", tensors)) == 3000
    assert (tmp_path / "theirs.index").stat().st_size > 3 * 26_000


def test_objects_of_any_kind(tmp_path):
    module = tf.Module()
    module.layers = [tf.Variable(numbers(0, (3, 4))), [tf.Variable(True)]]
    module.named = {"a": tf.Variable(numbers(1, (5,))), "b/c.d": tf.Variable(2), "日本": tf.Variable("text")}
    module.itself = module
    inputs = tf.keras.Input((4,), dtype="int32")
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(tf.keras.layers.Flatten()(tf.keras.layers.Embedding(17, 6)(inputs))))
    model.compile("adam", "mse")
    model.fit(np.arange(32).reshape(8, 4) % 17, np.ones((8, 1)), verbose=0)
    checkpoint = tf.train.Checkpoint(module=module, again=module, model=model, optimizer=model.optimizer,
                                     generator=tf.random.Generator.from_seed(1))
    assert reads_the_same(checkpoint.save(tmp_path / "theirs/ckpt")) > 15


@pytest.mark.parametrize("axis, count, shape", [(0, 3, (11, 4)), (1, 5, (7, 13)), (2, 2, (3, 4, 9))])
@pytest.mark.parametrize("sharded", [True, False])
def test_partitioned_variables(axis, count, shape, sharded, tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("scope/t", shape, use_resource=False,
                                  partitioner=tf.compat.v1.fixed_size_partitioner(count, axis=axis))
        session.run(tf.compat.v1.global_variables_initializer())
        prefix = tf.compat.v1.train.Saver(sharded=sharded).save(session, str(tmp_path / "model"))
    assert reads_the_same(prefix) == 1
    assert len(et.TensorBundleReader(prefix).describe("scope/t").slices) == count


@pytest.mark.parametrize("sizes", [[13], [5, 4, 4], [1, 11, 1]])
def test_a_checkpoint_restores_our_variables(sizes, tmp_path):
    table, wide = numbers(0, (13, 5)), numbers(1, (13, 2, 3), "float64")
    ours = {"table": parts(table, [4, 9])[1], "wide": parts(wide, [13])[1], "a.b": et.Variable(numbers(2, (3,))),
            "n": et.Variable(np.int64(7)), "h": et.Variable(numbers(3, (2, 2), "bfloat16"))}
    et.save_tensor_bundle(tmp_path / "ours/ckpt-1", ours)
    et.write_bundle_state(tmp_path / "ours", "ckpt-1")
    theirs = {"table": parts(0 * table, sizes)[0], "wide": parts(0 * wide, sizes)[0], "n": tf.Variable(0, dtype=tf.int64),
              "a.b": tf.Variable([0.0, 0, 0]), "h": tf.Variable(tf.zeros((2, 2), tf.bfloat16))}
    checkpoint = tf.train.Checkpoint(**theirs)
    checkpoint.restore(tf.train.latest_checkpoint(tmp_path / "ours")).assert_consumed()
    for name, variable in theirs.items():
        same_bytes(tf.convert_to_tensor(variable).numpy(), ours[name].numpy())

    back = {"table": parts(0 * table, [1] * 13)[1], "wide": et.Variable(0 * wide), "n": et.Variable(np.int64(0)),
            "a.b": et.Variable([0.0, 0, 0]), "h": et.Variable(numbers(4, (2, 2), "bfloat16"))}
    et.restore_tensor_bundle(checkpoint.save(tmp_path / "theirs/ckpt"), back)
    for name, variable in back.items():
        same_bytes(variable.numpy(), ours[name].numpy())


def test_parts_of_either_are_merged_by_either(tmp_path):
    table, columns = numbers(0, (23, 17)), numbers(1, (9, 9), "bool")
    cuts = [(0, 4), (4, 5), (5, 20), (20, 23)]
    ours, theirs = [], []
    for i, (first, end) in enumerate(cuts):
        rows, some = table[first:end], columns[:, 2 * i:2 * i + (3 if i == 3 else 2)]
        ours.append(et.part_prefix(tmp_path / "ours", i, 4))
        with et.TensorBundleWriter(ours[-1]) as writer:
            writer.add_slice("t", rows, np.s_[first:end], table.shape)
            writer.add_slice("c", some, np.s_[:, 2 * i:2 * i + some.shape[1]], columns.shape)
            writer.add(f"only{i}", np.float64(i))
        theirs.append(save_v2(tmp_path / f"parts/{i}", {"t": rows, "c": some, f"only{i}": np.float64(i)},
                              [f"23 17 {first},{end - first}:0,17", f"9 9 0,9:{2 * i},{some.shape[1]}", ""]))
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(part) for part in ours], destination_prefix=str(tmp_path / "by_them"))
    et.merge_tensor_bundles(theirs, tmp_path / "by_us")
    assert (tmp_path / "by_them.index").read_bytes() == (tmp_path / "by_us.index").read_bytes()
    for prefix in [tmp_path / "by_them", tmp_path / "by_us"]:
        assert reads_the_same(prefix) == 6 and et.TensorBundleReader(prefix).num_data_files == 4
        same_bytes(et.TensorBundleReader(prefix)["t"], table)
        same_bytes(et.TensorBundleReader(prefix)["c"], columns)
