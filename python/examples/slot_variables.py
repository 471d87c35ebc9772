"""The first values of an optimizer's slots come from a function of the table, the slots' names and the rule's own values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embertable import tpu_embedding as tpu


def slot_variable_creation_fn(table: Any, slot_names: Sequence[str], slot_initializers: Sequence[Any]) -> Mapping[str, Any]:
    slots = {}
    for slot, initializer in zip(slot_names, slot_initializers):
        slots[slot] = 10 * initializer(shape=table.shape, dtype=np.float32)
    return slots


optimizer = tpu.Adagrad(learning_rate=0.1, slot_variable_creation_fn=slot_variable_creation_fn)
with tpu.TPUStrategy(threads=1).scope():
    embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(vocabulary_size=8, dim=4, name="films")), optimizer)
embedding.build(per_replica_batch_size=2)
assert np.array_equal(embedding.read_rows("films/accumulators", [3]), np.ones((1, 4), np.float32))
print("accumulators start at 10 times 0.1")
