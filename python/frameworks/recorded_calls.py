"""Calls with arrays that a recorded function gets: what no framework knows yet when it records, so that each call is refused."""

import numpy as np

import embertable as et
from embertable import tpu_embedding as tpu
from embertable import v1

ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)
TWO = [1, 2]


def calls_with_arguments():
    """Functions of ids and floats, vectors of two, by name."""
    config = et.FeatureConfig(et.TableConfig(8, 2, et.Initializer.values(ROWS), name="t", combiner="sum"))
    strategy = et.EngineStrategy(threads=1)
    embedding, serving = et.Embedding(config, et.SGD(0.1), strategy), et.ServingEmbedding(config)
    embedding.build(2)
    direct = et.DirectEmbedding(config, et.SGD(0.1), strategy)
    _, lookup = direct.look_up(TWO)
    _, ticket = embedding.look_up(TWO)
    with tpu.TPUStrategy(threads=1).scope():
        original = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 2, name="t")), tpu.SGD(0.1))
    first = v1.TPUEmbedding({"t": v1.TableConfig(8, 4)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE, threads=1)
    variable, sharded = et.Variable(np.ones(2, np.float32)), et.ShardedVariable([et.Variable([1.0]), et.Variable([2.0])])
    numbers, texts = et.IdMap.hashed("integer", 8), et.IdMap.hashed("string", 8)
    serve = et.serving_embedding_lookup
    return {
        "look_up": lambda ids, floats: embedding.look_up(ids),
        "look_up, ragged": lambda ids, floats: embedding.look_up(et.RaggedIds(ids, [0, 2, 2])),
        "look_up, weights": lambda ids, floats: embedding.look_up(et.RaggedIds(TWO, [0, 2, 2]), et.RaggedWeights(floats)),
        "look_up, plain weights": lambda ids, floats: embedding.look_up(TWO, floats),
        "enqueue": lambda ids, floats: embedding.enqueue(ids),
        "gradients of a ticket": lambda ids, floats: embedding.apply_gradients(floats, ticket),
        "assign_rows": lambda ids, floats: embedding.assign_rows("t", ids, ROWS[:2]),
        "assign_rows, values": lambda ids, floats: embedding.assign_rows("t", TWO, floats),
        "read_rows": lambda ids, floats: embedding.read_rows("t", ids),
        "serving": lambda ids, floats: serving(ids),
        "serving_embedding_lookup": lambda ids, floats: serve(ids, None, {config.table: ROWS}, config),
        "direct": lambda ids, floats: direct(ids),
        "direct.look_up": lambda ids, floats: direct.look_up(ids),
        "direct.gradients": lambda ids, floats: direct.gradients(lookup, floats),
        "direct.apply_gradients": lambda ids, floats: direct.apply_gradients(lookup, floats),
        "TPUEmbedding": lambda ids, floats: original.enqueue(ids),
        "v1": lambda ids, floats: first.enqueue([{"f": v1.EnqueueData(ids)}]),
        "sparse_read": lambda ids, floats: variable.sparse_read(ids),
        "item": lambda ids, floats: variable[ids],
        "scatter_add": lambda ids, floats: variable.scatter_add(ids, np.ones(2, np.float32)),
        "scatter_add, values": lambda ids, floats: variable.scatter_add(TWO, floats),
        "assign": lambda ids, floats: variable.assign(floats),
        "plus": lambda ids, floats: et.Variable([1.0, 2.0]).assign_add(floats),
        "sharded.assign": lambda ids, floats: sharded.assign(floats),
        "sharded.scatter_add": lambda ids, floats: sharded.scatter_add(ids, [1.0, 2.0]),
        "embedding_lookup": lambda ids, floats: et.embedding_lookup(sharded, ids),
        "embedding_lookup, weights": lambda ids, floats: et.embedding_lookup_sparse(
            sharded, et.RaggedIds([0, 1], [0, 2]), et.RaggedWeights(floats)),
        "RaggedIds": lambda ids, floats: et.RaggedIds(ids, [0, 2]),
        "RaggedIds, row_splits": lambda ids, floats: et.RaggedIds(TWO, ids),
        "SparseIds": lambda ids, floats: et.SparseIds([[0, 0], [1, 0]], ids, [2, 1]),
        "DenseIds": lambda ids, floats: et.DenseIds(ids),
        "IdMap.rows": lambda ids, floats: numbers.rows(ids),
        "IdMap.rows of texts": lambda ids, floats: texts.rows(ids),
        "IdMap.row": lambda ids, floats: numbers.row(ids[0]),
        "keys_of": lambda ids, floats: numbers.keys_of(ids),
    }
