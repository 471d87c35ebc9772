"""Tables and features: two features share a table, a third one has its own."""

import numpy as np

from embertable import tpu_embedding as tpu

table_config_one = tpu.TableConfig(vocabulary_size=8, dim=4, combiner="sum", name="one")
table_config_two = tpu.TableConfig(vocabulary_size=16, dim=2, name="two")
feature_config = {
    "feature_one": tpu.FeatureConfig(table=table_config_one),
    "feature_two": tpu.FeatureConfig(table=table_config_one),
    "feature_three": tpu.FeatureConfig(table=table_config_two),
}

strategy = tpu.TPUStrategy(threads=1)
with strategy.scope():
    embedding = tpu.TPUEmbedding(feature_config=feature_config, optimizer=tpu.SGD(0.1))

embedding.enqueue({name: np.array([1, 2]) for name in feature_config}, training=False)
activations = embedding.dequeue()
assert np.array_equal(activations["feature_one"], activations["feature_two"])
assert activations["feature_three"].shape == (2, 2)
print(embedding.summary())
