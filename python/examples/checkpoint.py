"""A model and its embedding are saved together; an object without a strategy restores them and shows the tables."""

import tempfile

import numpy as np

import embertable as et
from embertable import tpu_embedding as tpu

table_config = tpu.TableConfig(vocabulary_size=8, dim=4, name="films")
feature_config = {"film": tpu.FeatureConfig(table_config)}


class Model:
    def __init__(self) -> None:
        self.kernel = et.Variable(np.ones((4, 1), np.float32), "kernel")


with tempfile.TemporaryDirectory() as directory:
    with tpu.TPUStrategy(threads=1).scope():
        embedding = tpu.TPUEmbedding(feature_config, tpu.SGD(0.1))
    model = Model()
    embedding.enqueue({"film": np.array([1, 2])})
    embedding.apply_gradients(embedding.dequeue())
    model.kernel.assign_add(np.ones((4, 1), np.float32))
    path = tpu.Checkpoint(model=model, embedding=embedding).save(directory + "/run")

    # Somewhere else, without a strategy.
    plain, restored = tpu.TPUEmbedding(feature_config, tpu.SGD(0.1)), Model()
    tpu.Checkpoint(model=restored, embedding=plain).restore(path).assert_consumed()
    tables = plain.embedding_tables
    assert np.array_equal(et.embedding_lookup(tables[table_config], [1, 2]), embedding.read_rows("films", [1, 2]))
    assert restored.kernel.numpy().ravel().tolist() == [2.0] * 4
    print(f"restored {path}")
