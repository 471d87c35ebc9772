"""Checkpoints between Embertable and real TensorFlow: each opens what the other wrote.

The command line converts: build/bin/embertable, or what EMBERTABLE_PROGRAM names.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import sharded_variable
from tensorflow.python.tpu import tpu_embedding_v2, tpu_embedding_v2_utils

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("EMBERTABLE_PROGRAM", ROOT / "build/bin/embertable")
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def embertable(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def escaped(name):
    return name.replace(".", "..").replace("/", ".S")


def saved(folder, arrays):
    """A checkpoint of Embertable's with these tables and slots."""
    files = folder / "npy"
    files.mkdir()
    for name, array in arrays.items():
        np.save(files / (escaped(name) + ".npy"), array)
    embertable("import", files, "--format", "npy", "--out", folder / "run")
    return folder / "run"


def for_tensorflow(folder, arrays, *words):
    embertable("export", saved(folder, arrays), "--format", "tf", "--slots", "--out", folder / "tf", *words)
    return tf.train.latest_checkpoint(folder / "tf")


def imported(folder, prefix, *words):
    """What Embertable makes of a checkpoint of TensorFlow's, by name."""
    embertable("import", prefix, "--format", "tf", "--out", folder / "in", *words)
    embertable("export", folder / "in", "--format", "npy", "--slots", "--out", folder / "out")
    unescape = {".S": "/", "..": "."}
    found = {}
    for path in sorted((folder / "out").glob("*.npy")):
        name, rest = "", path.name[:-len(".npy")]
        while rest:
            step = 2 if rest[:2] in unescape else 1
            name, rest = name + unescape.get(rest[:step], rest[:1]), rest[step:]
        found[name] = np.load(path)
    return found


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def of_parts(array, sizes):
    parts = np.split(array, np.cumsum(sizes)[:-1])
    return sharded_variable.ShardedVariable([tf.Variable(part) for part in parts])


ARRAYS = {"user": numbers(0, 13, 5), "user/accumulators": numbers(1, 13, 5) ** 2, "item.v2/main": numbers(2, 4, 3)}


@pytest.mark.parametrize("shards", [1, 3, 20])
def test_load_checkpoint_reads_ours(tmp_path, shards):
    prefix = for_tensorflow(tmp_path, ARRAYS, "--shards", shards)
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    assert set(shapes) == {"_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter" + SUFFIX,
                           *("embedding/" + escaped(name) + SUFFIX for name in ARRAYS)}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(reader.get_tensor("embedding/" + escaped(name) + SUFFIX), array)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("sizes", [[13], [5, 4, 4], [1, 12]])
def test_checkpoint_restores_ours(tmp_path, shards, sizes):
    prefix = for_tensorflow(tmp_path, ARRAYS, "--shards", shards)
    tables = tf.Module()
    for name, array in ARRAYS.items():
        zeros = np.zeros_like(array)
        setattr(tables, name, of_parts(zeros, sizes) if len(array) == 13 else tf.Variable(zeros))
    checkpoint = tf.train.Checkpoint(embedding=tables)
    checkpoint.restore(prefix).assert_consumed()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(tf.convert_to_tensor(getattr(tables, name)), array)
    assert checkpoint.save_counter.numpy() == 1


def test_saver_restores_ours(tmp_path):
    prefix = for_tensorflow(tmp_path, ARRAYS, "--shards", "2")
    key = "embedding/user" + SUFFIX
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("any", (13, 5), use_resource=False,
                                             partitioner=tf.compat.v1.fixed_size_partitioner(3))
        tf.compat.v1.train.Saver({key: variable}).restore(session, prefix)
        np.testing.assert_array_equal(np.concatenate(session.run(list(variable))), ARRAYS["user"])


def tpu_embedding():
    table = tpu_embedding_v2_utils.TableConfig
    user = table(13, 5, name="user", initializer=tf.zeros_initializer(), optimizer=tpu_embedding_v2_utils.Adagrad(0.1))
    item = table(4, 3, name="item.v2/main", initializer=tf.zeros_initializer(),
                 optimizer=tpu_embedding_v2_utils.Adam(0.1))
    features = {name: tpu_embedding_v2_utils.FeatureConfig(table) for name, table in [("u", user), ("i", item)]}
    embedding = tpu_embedding_v2.TPUEmbedding(features, None)
    embedding.build()
    return embedding


def variables(embedding):
    found = {}
    for table, slots in embedding._variables.items():
        for slot, variable in slots.items():
            found[table if slot == "parameters" else f"{table}/{slot}"] = variable
    return found


def test_tpu_embedding_restores_ours(tmp_path):
    arrays = {"user": numbers(0, 13, 5), "user/accumulators": numbers(1, 13, 5) ** 2,
              "item.v2/main": numbers(2, 4, 3), "item.v2/main/momenta": numbers(3, 4, 3),
              "item.v2/main/velocities": numbers(4, 4, 3) ** 2}
    prefix = for_tensorflow(tmp_path, arrays, "--shards", "3")
    embedding = tpu_embedding()
    tf.train.Checkpoint(embedding=embedding).restore(prefix).assert_existing_objects_matched()
    same({name: variable.numpy() for name, variable in variables(embedding).items()}, arrays)


def test_we_read_a_tpu_embedding(tmp_path):
    embedding, expected = tpu_embedding(), {}
    for i, (name, variable) in enumerate(variables(embedding).items()):
        expected[name] = numbers(i, *variable.shape)
        variable.assign(expected[name])
    prefix = tf.train.Checkpoint(model=embedding).save(tmp_path / "tf/ckpt")
    same(imported(tmp_path, prefix), expected)


@pytest.mark.parametrize("sizes", [[13], [5, 4, 4], [1, 11, 1]])
def test_we_read_sharded_variables(tmp_path, sizes):
    user, half = numbers(0, 13, 5), numbers(1, 13, 2).astype(np.float16)
    checkpoint = tf.train.Checkpoint(user=of_parts(user, sizes), half=of_parts(half, sizes), step=tf.Variable(7))
    checkpoint.save(tmp_path / "tf/ckpt")
    same(imported(tmp_path, tmp_path / "tf"), {"user": user, "half": half.astype(np.float32)})


def test_we_read_slices_of_any_axis(tmp_path):
    array = numbers(0, 40, 30)
    options = tf.train.CheckpointOptions(
        experimental_sharding_callback=tf.train.experimental.MaxShardSizePolicy(max_shard_size=500))
    prefix = tf.train.Checkpoint(v=tf.Variable(array)).save(tmp_path / "tf/ckpt", options)
    assert len(list((tmp_path / "tf").glob("ckpt-1.data-*"))) > 3
    same(imported(tmp_path, prefix), {"v": array})


def test_we_read_what_a_saver_wrote(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("scope/table", (10, 4), use_resource=False,
                                             partitioner=tf.compat.v1.fixed_size_partitioner(3))
        slot = tf.compat.v1.get_variable("scope/table/Adagrad", (10, 4), use_resource=False,
                                         partitioner=tf.compat.v1.fixed_size_partitioner(3))
        session.run(tf.compat.v1.global_variables_initializer())
        expected = {"t": np.concatenate(session.run(list(variable))),
                    "t/accumulators": np.concatenate(session.run(list(slot)))}
        prefix = tf.compat.v1.train.Saver(sharded=True).save(session, str(tmp_path / "model"))
    same(imported(tmp_path, prefix, "--table", "t=scope/table", "--slot", "t/accumulators=scope/table/Adagrad"),
         expected)


def test_we_read_slots_of_an_optimizer(tmp_path):
    table = tf.Variable(numbers(0, 6, 2))
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.1)
    optimizer.apply_gradients([(tf.ones_like(table), table)])
    prefix = tf.train.Checkpoint(net=tf.train.Checkpoint(table=table), optimizer=optimizer).save(tmp_path / "tf/ckpt")
    same(imported(tmp_path, prefix),
         {"table": table.numpy(), "table/accumulator": optimizer.get_slot(table, "accumulator").numpy()})


def test_there_and_back_is_the_same(tmp_path):
    prefix = for_tensorflow(tmp_path, ARRAYS, "--shards", "4")
    same(imported(tmp_path, prefix), ARRAYS)
