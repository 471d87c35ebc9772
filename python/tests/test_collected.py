"""Engines that give their own methods as functions are freed, since the garbage collector sees what C++ holds."""

import gc

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu


class Methods:
    """Functions of every kind, which refer to the engine."""

    def rate(self, step):
        return 0.1

    def zero(self):
        return 0

    def rows(self, range):
        return np.zeros((range.rows, range.dim), np.float32)

    def values(self, shape, dtype, shard_info=None):
        return np.zeros(shard_info.shape if shard_info else shape, dtype)

    def rule(self, tile):
        tile.row -= tile.learning_rate * tile.gradient

    def slots(self, table, slot, row_wise):
        return et.Initializer.constant(1)

    def log(self, text):
        pass


class Embedding(Methods, et.Embedding):
    def __init__(self, config, optimizer, log=None):
        super().__init__(config, optimizer, et.EngineStrategy(hosts=2, threads=1), log=log)
        self.build(per_replica_batch_size=2)


class DirectEmbedding(Methods, et.DirectEmbedding):
    def __init__(self, config, optimizer, log=None):
        super().__init__(config, optimizer, et.EngineStrategy(threads=1), log=log)
        self.read_rows("t", [0])


class ServingEmbedding(Methods, et.ServingEmbedding):
    def __init__(self, config, optimizer, log=None):
        super().__init__(config, optimizer)
        self.build()


class Plain(Methods, et.Embedding):
    def __init__(self, config, optimizer, log=None):
        super().__init__(config, optimizer, log=log)
        self.build()


def custom(self):
    rule = et.Optimizer.custom(self.rule, 0.1, step_counter=self.zero, slots={"s": et.Initializer.function(self.rows)})
    return {"optimizer": rule.with_learning_rate(self.rate)}


@pytest.mark.parametrize("kind", [Embedding, DirectEmbedding, ServingEmbedding, Plain])
@pytest.mark.parametrize("given", [
    lambda self: {"optimizer": et.SGD(self.rate)},
    lambda self: {"optimizer": et.Adagrad(0.1, step_counter=self.zero, slot_variable_creation_fn=self.slots)},
    lambda self: {"optimizer": et.Adagrad(0.1, step_counter=self.zero).with_learning_rate(0.2)},
    custom,
    lambda self: {"of_table": et.SGD(self.rate)},
    lambda self: {"initializer": et.Initializer.function(self.rows)},
    lambda self: {"initializer": self.values},
    lambda self: {"log": self.log},
])
@pytest.mark.parametrize("collections", [0, 1])
def test_an_engine_with_its_own_methods_is_freed(kind, given, collections):
    self = kind.__new__(kind)
    options = given(self)
    table = (tpu if callable(options.get("initializer")) else et).TableConfig(
        40_000, 2, options.get("initializer"), options.get("of_table"), name="t")
    kind.__init__(self, et.FeatureConfig(table), options.get("optimizer", et.SGD(0.1)), options.get("log"))
    address = id(self)
    for _ in range(collections):  # moves what was made first into an older generation
        gc.collect()
    del self, options, table
    gc.collect()
    # A weak reference would not do: it is cleared before the object is.
    assert not [one for one in gc.get_objects() if type(one) is kind and id(one) == address]


def test_functions_of_engines_that_live_are_kept():
    calls = []
    rate = et.SGD(lambda step: calls.append(step) or 0.5).with_learning_rate(lambda step: calls.append(-step) or 0.5)
    engine = et.Embedding(et.FeatureConfig(et.TableConfig(8, 2, name="t")), rate, et.EngineStrategy(threads=1))
    gc.collect()
    engine.enqueue(np.array([1, 2]))
    engine.apply_gradients(np.ones_like(engine.dequeue()))
    assert calls and all(step <= 0 for step in calls)


def test_functions_of_an_optimizer_outlive_its_copies():
    calls = []
    optimizer = et.FrequencyAwareAdagrad(0.1, step_counter=lambda: calls.append(1) or 1)
    Plain(et.FeatureConfig(et.TableConfig(8, 2, name="t")), optimizer)

    class Mine(Plain):
        def __init__(self, config):
            super().__init__(config, optimizer.with_learning_rate(self.rate))

    Mine(et.FeatureConfig(et.TableConfig(8, 2, name="t")))
    gc.collect()
    engine = et.Embedding(et.FeatureConfig(et.TableConfig(8, 2, name="t")), optimizer, et.EngineStrategy(threads=1))
    engine.enqueue(np.array([1, 2]))
    engine.apply_gradients(np.ones_like(engine.dequeue()))
    assert calls
