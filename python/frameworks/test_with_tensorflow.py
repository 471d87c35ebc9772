"""Programs of TensorFlow's: tensors of every kind go in, tensors come out, and nothing is frozen by a tf.function."""

import numpy as np
import pytest
import tensorflow as tf

import embertable as et
from embertable import tpu_embedding as tpu
from recorded_calls import calls_with_arguments

ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)


def an_embedding(replicas=1, **options):
    strategy = tpu.TPUStrategy(replicas_per_host=replicas, threads=1, timeout=5.0)
    table = tpu.TableConfig(8, 2, lambda shape, dtype: tf.reshape(tf.range(16, dtype=dtype), shape), combiner="sum", name="t")
    with strategy.scope():
        embedding = tpu.TPUEmbedding({name: tpu.FeatureConfig(table) for name in ("dense", "ragged", "sparse")}, tpu.SGD(0.1), **options)
    return strategy, embedding


def a_batch():
    return {"dense": tf.constant([1, 2]), "ragged": tf.ragged.constant([[1, 2], [3]], dtype=tf.int64),
            "sparse": tf.SparseTensor([[0, 0], [1, 1]], tf.constant([5, 6], tf.int64), [2, 2])}


WEIGHTS = {"dense": None, "ragged": tf.ragged.constant([[1.0, 2.0], [0.5]]), "sparse": tf.SparseTensor([[0, 0], [1, 1]], [2.0, 3.0], [2, 2])}
EXPECTED = {"dense": ROWS[[1, 2]], "ragged": np.stack([ROWS[1] + 2 * ROWS[2], 0.5 * ROWS[3]]), "sparse": ROWS[[5, 6]] * [[2], [3]]}


def test_a_training_step_with_a_tape():
    """Tensors of every kind, results as tensors, the gradients of a tape; then the update of SGD 0.1 by hand."""
    _, embedding = an_embedding(outputs="tensorflow")
    embedding.enqueue(a_batch(), WEIGHTS, training=tf.constant(True))
    activations = embedding.dequeue()
    assert all(isinstance(activation, tf.Tensor) for activation in activations.values())
    with tf.GradientTape() as tape:
        tape.watch(activations)
        loss = tf.add_n([tf.reduce_sum(activation * activation) / 2 for activation in activations.values()])
    gradients = tape.gradient(loss, activations)
    for name, expected in EXPECTED.items():
        assert np.allclose(activations[name], expected) and np.allclose(gradients[name], expected), name
    embedding.apply_gradients(gradients)
    step = np.zeros_like(ROWS)
    for row, gain, gradient in ((1, 1, ROWS[1]), (2, 1, ROWS[2]), (1, 1, EXPECTED["ragged"][0]), (2, 2, EXPECTED["ragged"][0]),
                                (3, 0.5, EXPECTED["ragged"][1]), (5, 2, EXPECTED["sparse"][0]), (6, 3, EXPECTED["sparse"][1])):
        step[row] += gain * gradient
    assert np.allclose(embedding.read_rows("t", tf.range(8)), ROWS - 0.1 * step, rtol=1e-5)


def test_activations_stay_as_they_were():
    _, embedding = an_embedding(outputs="tensorflow")
    embedding.enqueue(a_batch(), WEIGHTS)
    kept = embedding.dequeue()
    embedding.apply_gradients({name: tf.ones_like(activation) for name, activation in kept.items()})
    for _ in range(8):
        embedding.enqueue(a_batch(), WEIGHTS)
        embedding.apply_gradients(embedding.dequeue())
    for name, expected in EXPECTED.items():
        assert np.allclose(kept[name], expected)


def test_a_data_set_of_tensorflow_runs_on_two_replicas():
    strategy, embedding = an_embedding(2, outputs="tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices({"ids": tf.range(8)}).batch(4)
    seen = []

    def step(batch):
        embedding.enqueue({"dense": batch["ids"], "ragged": tf.RaggedTensor.from_row_lengths(batch["ids"], [1, 1]),
                           "sparse": tf.sparse.from_dense(batch["ids"][:, None])}, training=False)
        return embedding.dequeue()["dense"]

    for batch in strategy.experimental_distribute_dataset(dataset):
        seen += [row.numpy().tolist() for part in strategy.experimental_local_results(strategy.run(step, args=(batch,))) for row in part]
    assert seen == ROWS.tolist()


def test_tensorflows_per_replica_is_known():
    from tensorflow.python.distribute.values import PerReplica
    _, embedding = an_embedding(2)
    batch = a_batch()
    embedding.enqueue({**batch, "dense": PerReplica((tf.constant([1, 2]), tf.constant([3, 4])))}, training=False)
    first, second = embedding.dequeue()
    assert np.array_equal(first["dense"], ROWS[[1, 2]]) and np.array_equal(second["dense"], ROWS[[3, 4]])


def test_variables_take_tensorflows_values_and_dtypes():
    variable = et.Variable(tf.constant([[1.0, 2.0], [3.0, 4.0]]), dtype=tf.float32)
    variable.assign_add(tf.ones([2, 2]))
    variable.scatter_add(tf.IndexedSlices(tf.constant([[10.0, 10.0]]), tf.constant([1])))
    assert variable.numpy().tolist() == [[2, 3], [14, 15]]
    assert et.Variable([1, 2], dtype=tf.bfloat16).dtype == tf.bfloat16.as_numpy_dtype
    assert et.MaxSizePartitioner(16)((6, 1), tf.string) == [6, 1]
    made = et.VariableCreator(2, lambda shape, dtype: [2, 1]).create(lambda: tf.ones([4, 2]), shape=tf.TensorShape([4, 2]), dtype=tf.float32)
    assert np.array_equal(tf.convert_to_tensor(made.variable), np.ones((4, 2)))
    assert np.array_equal(tf.matmul(made.variable, tf.ones([2, 1])), [[2]] * 4)


def test_ragged_ids_are_looked_up_as_tensorflow_does():
    for ids in (tf.ragged.constant([[1, 2], [], [7]]), tf.ragged.constant([[[1], [2, 3]], [[]]], dtype=tf.int64)):
        ours, theirs = et.embedding_lookup(ROWS, ids), tf.nn.embedding_lookup(ROWS, ids)
        assert np.array_equal(ours.values, theirs.flat_values)
        assert [s.tolist() for s in ours.nested_row_splits] == [s.numpy().tolist() for s in theirs.nested_row_splits]


def everything():
    _, embedding = an_embedding()
    embedding.build(per_replica_batch_size=2)
    sharded = et.ShardedVariable([et.Variable(np.zeros((2, 2), np.float32)), et.Variable(np.zeros((2, 2), np.float32))])
    serving = et.ServingEmbedding(et.FeatureConfig(et.TableConfig(8, 2)))
    return {"sum": lambda: tf.reduce_sum(sharded), "assign_add": lambda: sharded.assign_add(np.ones((4, 2), np.float32)) and 0.0,
            "read_rows": lambda: tf.constant(embedding.read_rows("t", [1])), "enqueue": lambda: embedding.enqueue(
                {"dense": [1, 2], "ragged": et.RaggedIds.from_rows([[1], [2]]), "sparse": et.SparseIds([[0, 0], [1, 0]], [1, 2], [2, 1])}) or 0.0,
            "constant": lambda: tf.constant(sharded.variables[0]), "plus": lambda: sharded.variables[0] + 1.0,
            "multiplied": lambda: tf.ones([4, 2]) * sharded, "serving": lambda: serving(np.array([1]))}


@pytest.mark.parametrize("name", ["sum", "assign_add", "read_rows", "enqueue", "constant", "plus", "multiplied", "serving"])
def test_nothing_is_frozen_by_a_function(name):
    call = everything()[name]
    call()
    with pytest.raises(RuntimeError, match="TensorFlow records"):
        tf.function(call)()
    with pytest.raises(RuntimeError, match="TensorFlow records"):
        list(tf.data.Dataset.range(1).map(lambda i: call()))


@pytest.mark.parametrize("name", calls_with_arguments())
def test_no_argument_of_a_function_is_taken(name):
    call = calls_with_arguments()[name]
    with pytest.raises(RuntimeError, match="TensorFlow records.*tf.numpy_function"):
        tf.function(lambda ids, floats: call(ids, floats) and 0, autograph=False)(tf.constant([0, 1]), tf.constant([1.0, 2.0]))


@pytest.mark.parametrize("kind", ["ragged", "sparse", "listed"])
def test_no_tensor_of_parts_is_taken_inside_of_a_function(kind):
    serving = et.ServingEmbedding(et.FeatureConfig(et.TableConfig(8, 2)))
    given = {"ragged": a_batch()["ragged"], "sparse": a_batch()["sparse"], "listed": [tf.constant(1), tf.constant(2)]}[kind]
    with pytest.raises(RuntimeError, match="feature.*TensorFlow records"):
        tf.function(lambda ids: serving(ids) and 0, autograph=False)(given)


def test_a_way_out_of_a_function():
    """Three calls of a function that adds through numpy_function add three times."""
    variable = et.Variable(np.zeros(2, np.float32))

    @tf.function
    def add():
        return tf.numpy_function(lambda: variable.assign_add(np.ones(2, np.float32)).numpy(), [], tf.float32)

    assert [add().numpy().tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]


def test_graphs_made_by_hand_are_as_ever():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert session.run(tf.constant(et.Variable([1.0, 2.0]))).tolist() == [1, 2]


def test_an_optimizer_of_keras_is_saved_by_its_variables(tmp_path):
    def made():
        adam = tf.keras.optimizers.Adam(0.1)
        adam.build([tf.keras.Variable([1.0, 2.0])])
        return adam

    adam, fresh = made(), made()
    with pytest.raises(TypeError, match="of the Adam 'opt', must be .*got set: give 'opt' a list or dict of those of its variables"):
        tpu.Checkpoint(opt=adam).save(tmp_path / "run")
    adam.variables[0].assign(7)
    path = tpu.Checkpoint(opt=list(adam.variables)).save(tmp_path / "run")
    tpu.Checkpoint(opt=list(fresh.variables)).restore(path).assert_consumed()
    assert fresh.iterations.numpy() == 7


def test_a_keras_model_is_saved_with_an_embedding(tmp_path):
    _, embedding = an_embedding()
    embedding.enqueue(a_batch(), WEIGHTS)
    embedding.apply_gradients(embedding.dequeue())
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(2,))])
    counter = tf.Variable(5)
    path = tpu.Checkpoint(model=model, counter=counter, embedding=embedding).save(tmp_path / "run")
    weights = model.get_weights()
    model.set_weights([0 * weight for weight in weights])
    counter.assign(0)
    _, other = an_embedding()
    tpu.Checkpoint(model=model, counter=counter, embedding=other).restore(path).assert_consumed()
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), weights)) and int(counter) == 5
    assert other.digest() == embedding.digest()


def test_nested_objects_are_restored_by_tensorflow(tmp_path):
    kernel, bias = np.arange(6, dtype=np.float32).reshape(3, 2), np.float32(7)
    et.save_tensor_bundle(tmp_path / "ckpt", {"model": {"dense": {"kernel": et.ShardedVariable([et.Variable(kernel[:1]), et.Variable(kernel[1:])])},
                                                        "bias": et.Variable(bias)}})
    model, dense = tf.Module(), tf.Module()
    model.dense, model.bias, dense.kernel = dense, tf.Variable(0.0), tf.Variable(tf.zeros([3, 2]))
    tf.train.Checkpoint(model=model).restore(str(tmp_path / "ckpt")).expect_partial().assert_existing_objects_matched()
    assert np.array_equal(dense.kernel, kernel) and float(model.bias) == 7
    dense.kernel.assign_add(tf.ones([3, 2]))
    prefix = tf.train.Checkpoint(model=model).write(str(tmp_path / "theirs"))
    ours = et.Variable(0 * kernel)
    et.restore_tensor_bundle(prefix, {"model": {"dense": {"kernel": ours}}})
    assert np.array_equal(ours.numpy(), kernel + 1)


def test_a_manager_of_checkpoints_does_what_theirs_does(tmp_path):
    """The same calls on both: what stays after each save, what a second manager finds, and what nothing to restore gives."""
    seen = {}
    for name, module, made in (("ours", tpu, lambda: np.zeros(2)), ("theirs", tf.train, lambda: tf.Variable([0.0, 0.0], dtype=tf.float64))):
        folder, began = str(tmp_path / name), []
        value = made()
        checkpoint = module.Checkpoint(value=value)
        status = checkpoint.restore(module.latest_checkpoint(folder))
        with pytest.raises(AssertionError):
            status.assert_consumed()
        with pytest.raises(AssertionError):
            status.assert_nontrivial_match()
        status.expect_partial()
        manager = module.CheckpointManager(checkpoint, folder, max_to_keep=2, init_fn=lambda: began.append(1))
        found = [manager.restore_or_initialize(), manager.latest_checkpoint, manager.checkpoints, began]
        for step in range(3):
            if name == "ours":
                value[:] = step
            else:
                value.assign([step, step])
            path = manager.save()
            found += [len(manager.checkpoints), manager.checkpoints[-1] == path == manager.latest_checkpoint, manager.directory == folder]
        other = made()
        again = module.CheckpointManager(module.Checkpoint(value=other), folder, max_to_keep=None)
        found += [again.restore_or_initialize() == path, np.asarray(other).tolist()]
        with pytest.raises(ValueError):
            module.CheckpointManager(checkpoint, folder, max_to_keep=0)
        seen[name] = found
    assert seen["ours"] == seen["theirs"]


def test_a_row_id_initializer_is_theirs():
    for offset in (0, 5):
        ours = tpu.RowIdInitializer(offset)((3, 2), np.float32)
        theirs = tf.tpu.experimental.embedding.RowIdInitializer(offset)((3, 2), tf.float32)
        assert ours.dtype == np.float32 and np.array_equal(ours, theirs)


def test_variables_take_float64_as_theirs_do():
    values = np.array([0.1, 3.0])
    ours, theirs = et.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    for name in ("assign", "assign_add", "assign_sub"):
        getattr(ours, name)(values)
        getattr(theirs, name)(values)
        assert np.array_equal(ours, theirs)
