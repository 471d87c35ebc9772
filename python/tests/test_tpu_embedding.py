"""Code written for the original moves by changing an import."""

import numpy as np
import pytest

from embertable import tpu_embedding as tpu
from fixture import USER_ROWS, features


def test_a_program_in_the_originals_spelling():
    strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
    with strategy.scope():
        embedding = tpu.TPUEmbedding(features(), tpu.SGD(0.1))
    assert strategy.num_replicas_in_sync == 2 and embedding.accelerated
    embedding.build(per_replica_batch_size=1)
    for replica in range(2):
        embedding.enqueue((np.array([replica]),) * 3, device=f"/job:worker/device:TPU:{replica}", name="step")
    activations = embedding.dequeue(name="step")
    assert np.array_equal(activations[1][2], USER_ROWS[1:2])
    embedding.apply_gradients(activations, name="step")
    with pytest.raises(ValueError, match="CPU:0"):  # case 43
        embedding.enqueue((np.array([0]),) * 3, device="CPU:0")


def test_outside_of_a_scope_objects_are_plain():
    embedding = tpu.TPUEmbedding(features(), tpu.SGD(0.1))
    with pytest.raises(RuntimeError):
        embedding.dequeue()
    assert len(embedding.embedding_tables) == 2


def test_initializers_are_functions_of_shape_and_dtype():
    table = tpu.TableConfig(3, 2, lambda shape, dtype: np.full(shape, 7, dtype), combiner="sum")
    rows = tpu.TPUEmbedding(tpu.FeatureConfig(table), None).embedding_tables[table]
    assert np.array_equal(rows, np.full((3, 2), 7))
    with pytest.raises(ValueError, match="int"):
        tpu.TableConfig(3, 2, 5)


def test_a_checkpoint_is_served(tmp_path):
    with tpu.TPUStrategy(threads=1).scope():
        trained = tpu.TPUEmbedding(features(), tpu.SGD(0.1))
        trained.build(1)
        trained.save(tmp_path)
        with pytest.raises(RuntimeError):
            tpu.TPUEmbeddingForServing(features())
    serving = tpu.TPUEmbeddingForServing(features(), tpu.SGD(0.1))
    serving.restore(tmp_path)
    ids = (np.array([1]), np.array([0]), np.array([2]))
    assert np.array_equal(serving(ids)[2], USER_ROWS[[2]])
    config = features()
    tables = {config[0].table: np.zeros((8, 4), np.float32), config[2].table: USER_ROWS}
    assert np.array_equal(tpu.serving_embedding_lookup(ids, None, tables, config)[2], USER_ROWS[[2]])


def test_tables_without_queues_live_in_a_scope():
    config = {"a": tpu.FeatureConfig(tpu.TableConfig(4, 2, lambda shape, dtype=None: np.ones(shape, np.float32), combiner="sum"))}
    with pytest.raises(RuntimeError, match="strategy"):
        tpu.TPUEmbeddingV0(config, tpu.SGD(0.5))
    with tpu.TPUStrategy(threads=1).scope():
        embedding = tpu.TPUEmbeddingV0(config, tpu.SGD(0.5))
        other = tpu.TPUEmbeddingV0(config)  # any number of them live on a strategy
    activations, lookup = embedding.look_up({"a": np.array([1, 3])})
    assert activations["a"].tolist() == [[1, 1], [1, 1]]
    embedding.apply_gradients(lookup, {"a": np.float32([[1, 2], [0, 0]])})
    (rows,) = embedding.embedding_tables.values()
    assert rows.tolist() == [[1, 1], [0.5, 0], [1, 1], [1, 1]]
    assert other({"a": np.array([1])})["a"].tolist() == [[1, 1]]
    with tpu.TPUStrategy(threads=1).scope(), pytest.raises(ValueError, match="optimizer"):
        tpu.TPUEmbeddingV0(config, "sgd")
