"""A table's first values: a function of the whole shape, and one that is called for the rows of each host."""

from typing import Any

import numpy as np

from embertable import tpu_embedding as tpu

asked: list[tpu.ShardInfo] = []


def by_shard(shape: tuple[int, ...], dtype: Any = None, shard_info: tpu.ShardInfo | None = None) -> Any:
    assert shard_info is not None
    asked.append(shard_info)
    first, rows = shard_info.offset[0], shard_info.shape[0]
    return np.repeat(np.arange(first, first + rows)[:, None], shape[1], 1).astype(dtype)


def whole(shape: tuple[int, ...], dtype: Any = None) -> Any:
    return np.full(shape, 7, dtype)


with tpu.TPUStrategy(hosts=2, threads=1).scope():
    embedding = tpu.TPUEmbedding([tpu.FeatureConfig(tpu.TableConfig(9, 2, initializer=by_shard, name="numbered")),
                                  tpu.FeatureConfig(tpu.TableConfig(9, 2, initializer=whole, name="sevens"))], tpu.SGD(0.1))
assert asked == []
embedding.build(per_replica_batch_size=1)
assert sorted(info.offset[0] for info in asked) == [0, 5]
assert embedding.read_rows("numbered", [4, 5, 8])[:, 0].tolist() == [4, 5, 8]
assert embedding.read_rows("sevens", [8])[0].tolist() == [7, 7]
print("each host asked for its own rows")
