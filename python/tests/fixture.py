"""The tables, features and data of the numbered engine cases, as testing/engine/fixture.h has them.

`video` is 8 x 4, combined by sums, `user` 16 x 2, by means; element [r][c] is r * dim + c. Features watched
and favorited look up video, friends looks up user.
"""

import numpy as np

import embertable as et

WATCHED = [[0], [0, 1], [0, 1], [1]]
FAVORITED = [[0, 1], [1], [0], [0, 1]]
FRIENDS = [[3], [0, 1, 2], [3], [0, 1, 2]]

VIDEO_ROWS = np.arange(32, dtype=np.float32).reshape(8, 4)
USER_ROWS = np.arange(32, dtype=np.float32).reshape(16, 2)


def counting(rows):
    first = rows.first_row * rows.dim
    return np.arange(first, first + rows.rows * rows.dim, dtype=np.float32).reshape(rows.rows, rows.dim)


def video(**changes):
    return et.TableConfig(**{"vocabulary_size": 8, "dim": 4, "initializer": et.Initializer.function(counting),
                             "combiner": "sum", "name": "video", **changes})


def user(**changes):
    return et.TableConfig(**{"vocabulary_size": 16, "dim": 2, "initializer": et.Initializer.function(counting),
                             "combiner": "mean", "name": "user", **changes})


def features(videos=None, users=None, **changes):
    videos, users = videos or video(), users or user()
    return tuple(et.FeatureConfig(table, **changes) for table in (videos, videos, users))


def accelerator(replicas=1, hosts=1, **changes):
    return et.EngineStrategy(**{"hosts": hosts, "replicas_per_host": replicas // hosts, "threads": 1,
                                "timeout": 0.2 if hosts == 1 else 60, **changes})


def engine(replicas=1, hosts=1, feature_config=None, optimizer=None, **options):
    return et.Embedding(features() if feature_config is None else feature_config, optimizer or et.SGD(0.1),
                        accelerator(replicas, hosts), **options)


def ragged(rows):
    return et.RaggedIds.from_rows(rows)


def sparse(rows):
    indices = [(r, c) for r, row in enumerate(rows) for c in range(len(row))]
    values = [id for row in rows for id in row]
    return et.SparseIds(np.array(indices, np.int64).reshape(-1, 2), values, (len(rows), max(map(len, rows), default=0)))


def batch(replica=0, kind=ragged):
    """Samples 2i and 2i + 1 modulo 4 for replica i."""
    first = 2 * replica % 4
    return tuple(kind(rows[first:first + 2]) for rows in (WATCHED, FAVORITED, FRIENDS))


def batches(replicas, kind=ragged):
    if replicas == 1:
        return batch(0, kind)
    return et.PerReplica(batch(r, kind) for r in range(replicas))


def each(tree, call):
    """`call` of every array of a tuple, or of each tuple of a PerReplica."""
    if isinstance(tree, et.PerReplica):
        return et.PerReplica(each(one, call) for one in tree)
    return tuple(call(one) for one in tree)


def loss_gradient(replicas):
    """Of the mean over rows of the sum of squares, divided by the replicas."""
    return lambda activation: 2 * activation / (len(activation) * replicas)


def train(embedding, ids, gradient):
    embedding.enqueue(ids)
    activations = embedding.dequeue()
    embedding.apply_gradients(each(activations, gradient))
    return activations
