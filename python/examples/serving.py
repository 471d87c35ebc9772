"""Lookups in tables: by a function of tables, and by an object that opens a checkpoint."""

import tempfile
from typing import Any

import numpy as np

from embertable import tpu_embedding as tpu

feature_config = {"film": tpu.FeatureConfig(tpu.TableConfig(vocabulary_size=8, dim=4, name="films"))}
embedding = tpu.TPUEmbedding(feature_config, tpu.SGD(0.1))


def serve_tensors(embedding_features: dict[str, Any]) -> Any:
    return tpu.serving_embedding_lookup(embedding_features, None, embedding.embedding_tables, feature_config)


served = serve_tensors({"film": np.array([3, 5])})
with tempfile.TemporaryDirectory() as directory:
    embedding.save(directory + "/run")
    serving = tpu.TPUEmbeddingForServing(feature_config)
    serving.restore(directory + "/run")
    assert np.array_equal(serving({"film": np.array([3, 5])})["film"], served["film"])
print(served["film"].shape)
