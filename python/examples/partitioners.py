"""Partitioners say in how many blocks of rows a variable is kept."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import embertable as et

assert et.FixedShardsPartitioner(num_shards=2)((10, 3), np.float32, axis=0) == [2, 1]
assert et.MinSizePartitioner(min_shard_bytes=4, max_shards=2)((6, 1), np.float32) == [2, 1]
assert et.MinSizePartitioner(min_shard_bytes=4, max_shards=10)((6, 1), np.float32) == [6, 1]
assert et.MaxSizePartitioner(max_shard_bytes=4)((6, 1), np.float32) == [6, 1]
assert et.MaxSizePartitioner(max_shard_bytes=4, max_shards=2)((6, 1), np.float32) == [2, 1]
assert et.MaxSizePartitioner(max_shard_bytes=1024)((6, 1), np.float32) == [1, 1]


def halves(shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
    return [2] + [1] * (len(shape) - 1)


creator = et.VariableCreator(storage_nodes=2, variable_partitioner=halves)
created = creator.create(lambda: np.zeros((4, 2), np.float32), "w")
assert isinstance(created.variable, et.ShardedVariable)
print(created)
