"""What user code of the original meets that is otherwise here on purpose. docs/semantics.md has the rules that are named."""

import logging

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import user


def embedding_on(strategy=None, **feature):
    with (strategy or tpu.TPUStrategy(threads=1)).scope():
        return tpu.TPUEmbedding({"a": tpu.FeatureConfig(user(), **feature)}, tpu.SGD(0.1))


@pytest.mark.parametrize("name", ["extract_variable_info", "TPUShardedVariable", "TPUEmbeddingSaveable", "ShardedVariableMixin",
                                  "ShardedVariableSpec", "ApiRevision"])
def test_names_that_the_original_keeps_to_itself_are_not_there(name):
    """P-15. A ShardedVariable is also what the first five are for, and a revision is a text, P-23."""
    assert not hasattr(tpu, name) and not hasattr(et, name)


def test_tables_are_a_property_where_the_original_has_one_and_else_a_method():
    """P-23: calling the property calls the dict that it is."""
    config = {"a": tpu.FeatureConfig(user())}
    plain = tpu.TPUEmbedding(config, None)
    rows = plain.embedding_tables[config["a"].table]
    assert np.array_equal(et.embedding_lookup(rows, [1, 3]), rows[[1, 3]])
    with pytest.raises(TypeError, match="not callable"):
        plain.embedding_tables()
    assert set(et.Embedding(config).embedding_tables()) == {config["a"].table}
    assert set(et.ServingEmbedding(config).embedding_tables()) == {config["a"].table}


def test_an_input_shape_of_rank_one_is_the_output_shape():
    """L-22: releases before the latest refuse it."""
    embedding = embedding_on()
    embedding.build({"a": [2]})
    assert embedding.output_shapes == {"a": (2,)}


@pytest.mark.parametrize("feature", [{}, {"output_shape": [2, 3]}])
def test_dense_ids_of_rank_two_have_a_last_dim_of_one(feature):
    """E-2: releases before the latest take [B, M] as the output shape."""
    ids = np.array([[0, 1, 2], [2, 1, 0]])
    embedding = embedding_on(**feature)
    with pytest.raises(ValueError, match="feature 'a': dense ids of rank 2 or more must have 1 as last dim, got shape \\(2, 3\\)"):
        embedding.enqueue({"a": ids})
    embedding.enqueue({"a": ids[..., None]})
    assert embedding.dequeue()["a"].shape[:2] == (2, 3)


def test_a_sharded_variable_converts_as_numpy_wants():
    """P-13: the original refuses another dtype, and so does C++."""
    variable = et.ShardedVariable([et.Variable([3.0]), et.Variable([2.0])])
    assert np.asarray(variable, np.float64).tolist() == [3.0, 2.0]


def test_tpu_embedding_logs_a_build_and_warns_of_batch_sizes(caplog):
    """P-24."""
    with caplog.at_level(logging.INFO, "embertable"):
        embedding_on().build(2)
        embedding_on().build(per_replica_batch_size=2)
    assert [record.message for record in caplog.records] == [
        "build: a batch size as per_replica_input_shapes is deprecated in the original; give input shapes instead",
        "Initializing TPU Embedding engine.", "Done initializing TPU Embedding engine.",
        "build: per_replica_batch_size is deprecated in the original; give input shapes instead",
        "Initializing TPU Embedding engine.", "Done initializing TPU Embedding engine."]
    caplog.clear()
    with caplog.at_level(logging.INFO, "embertable"):
        et.Embedding({"a": et.FeatureConfig(user())}, et.SGD(0.1), et.EngineStrategy(threads=1)).build(2)
    assert not caplog.records
