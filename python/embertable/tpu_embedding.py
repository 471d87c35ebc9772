"""Names and arguments of TensorFlow's TPUEmbedding, so that code for it only has to change an import.

    from embertable import tpu_embedding as tpu

    with tpu.TPUStrategy(replicas_per_host=2).scope():
        embedding = tpu.TPUEmbedding(features, tpu.SGD(0.1))

Results are NumPy arrays; ids may also be tf.Tensor, tf.SparseTensor and tf.RaggedTensor.
"""

import contextlib
import re

import numpy as np

from . import (SGD, Adagrad, DataError, Embedding, EngineStrategy, FeatureConfig, Initializer,  # noqa: F401
               PerReplica, ServingEmbedding, serving_embedding_lookup)
from . import TableConfig as _TableConfig

_strategies = []  # strategies of the current scopes, innermost last


class TPUStrategy(EngineStrategy):
    """An EngineStrategy for all embeddings that are made in its scope."""

    @property
    def num_replicas_in_sync(self):
        return self.replicas

    @contextlib.contextmanager
    def scope(self):
        _strategies.append(self)
        try:
            yield self
        finally:
            _strategies.pop()


def TableConfig(vocabulary_size, dim, initializer=None, optimizer=None, combiner="mean", name=None):
    """Describes a table. `initializer` may also be a function of shape and dtype that returns all values."""
    if initializer is not None and not isinstance(initializer, Initializer):
        if not callable(initializer):
            raise ValueError(f"initializer must be callable, got {type(initializer).__name__}")
        initializer = Initializer.values(np.asarray(initializer((vocabulary_size, dim), dtype=np.float32)))
    return _TableConfig(vocabulary_size, dim, initializer, optimizer, combiner, name)


class TPUEmbedding(Embedding):
    """An Embedding on the strategy in whose scope it is made; outside of any scope it is plain. As in TensorFlow,
    gradients that are infinite or NaN change rows like others."""

    def __init__(self, feature_config, optimizer, pipeline_execution_with_tensor_core=False):
        super().__init__(feature_config, optimizer, _strategies[-1] if _strategies else None,
                         pipeline_execution_with_tensor_core=pipeline_execution_with_tensor_core,
                         gradient_policy="allow")

    def enqueue(self, features, weights=None, training=True, name=None, device=None):
        """Enqueues a batch. `device`, as in "TPU:1", names the only replica that the batch is for."""
        if device is None:
            return super().enqueue(features, weights, training, name)
        found = re.search(r"TPU:(\d+)$", device)
        if not found:
            raise ValueError(f"device must be a TPU, as in '/device:TPU:0', got '{device}'")
        return self.replica(int(found.group(1))).enqueue(features, weights, training, name)

    def dequeue(self, name=None):
        return super().dequeue()

    def apply_gradients(self, gradients, name=None):
        return super().apply_gradients(gradients)


class TPUEmbeddingForServing(ServingEmbedding):
    """A ServingEmbedding. Making one in the scope of a strategy is an error."""

    def __init__(self, feature_config, optimizer=None):
        super().__init__(feature_config, optimizer, _strategies[-1] if _strategies else None)
