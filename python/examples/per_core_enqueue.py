"""Each core gets a batch of its own, by the name of its device."""

import numpy as np

from embertable import tpu_embedding as tpu

strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
with strategy.scope():
    embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(vocabulary_size=8, dim=4, name="films")), tpu.SGD(0.1))

embedding_features = strategy.experimental_distribute_values_from_function(
    lambda ctx: np.array([ctx.replica_id_in_sync_group, 5]))
per_core_embedding_features = strategy.experimental_local_results(embedding_features)


def per_core_enqueue(ctx: tpu.ReplicaContext) -> None:
    core_id = ctx.replica_id_in_sync_group
    device = strategy.extended.worker_devices[core_id]
    embedding.enqueue(per_core_embedding_features[core_id], device=device, training=False)


strategy.experimental_distribute_values_from_function(per_core_enqueue)
first, second = embedding.dequeue()
assert np.array_equal(first, embedding.read_rows("films", [0, 5]))
assert np.array_equal(second, embedding.read_rows("films", [1, 5]))
print("each core has looked its own batch up")
