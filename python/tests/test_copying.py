"""What pickles and copies, and what refuses in words."""

import copy
import pickle
import time

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import engine, features, user

COPIES = [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("kind", [et.EngineStrategy, tpu.TPUStrategy])
def test_strategies(copied, kind):
    for strategy in (kind(), kind(2, 3, "mod", 1, 1.5, cores_per_replica=2), kind(2, devices=["/task:1/device:TPU:0", "/task:0/device:TPU:0"])):
        again = copied(strategy)
        assert type(again) is kind and again is not strategy and repr(again) == repr(strategy)
        for name in ("hosts", "replicas_per_host", "replicas", "cores_per_replica", "devices", "list_of_hosts"):
            assert getattr(again, name) == getattr(strategy, name)


def test_a_copied_strategy_has_no_tables_and_the_same_timeout():
    def engine_on(strategy):
        return et.Embedding(et.FeatureConfig(user()), et.SGD(0.1), strategy)

    strategy = et.EngineStrategy(replicas_per_host=2, threads=1, timeout=0.25)
    first, second, third = engine_on(strategy), engine_on(strategy), engine_on(copy.copy(strategy))
    first.build(per_replica_batch_size=2)
    with pytest.raises(RuntimeError):
        second.build(per_replica_batch_size=2)
    third.build(per_replica_batch_size=2)
    alone = third.replica(0)
    alone.enqueue(np.array([1, 2]))
    begin = time.monotonic()
    with pytest.raises(RuntimeError):
        alone.dequeue()
    assert 0.2 < time.monotonic() - begin < 30


def test_a_strategy_with_an_exchange_refuses():
    with pytest.raises(TypeError, match="exchange cannot be pickled or copied; make one in each process"):
        pickle.dumps(et.EngineStrategy(exchange=et.Exchange.local()))


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("value", [
    et.FixedShardsPartitioner(3), et.MinSizePartitioner(4, 2, 8), et.MaxSizePartitioner(8), et.MaxSizePartitioner(8, 2, 4)], ids=repr)
def test_partitioners(copied, value):
    again = copied(value)
    assert type(again) is type(value) and repr(again) == repr(value)
    for dtype in (np.float64, "string"):
        assert again((64, 2), dtype) == value((64, 2), dtype)


@pytest.mark.parametrize("copied", COPIES)
def test_states_and_reports(copied, tmp_path):
    state = et.CallerState({"epoch": 1}, {"w": np.arange(3)}, {"b": b"\x00"})
    again = copied(state)
    assert again.json == {"epoch": 1} and again.tensors["w"].tolist() == [0, 1, 2] and again.blobs == {"b": b"\x00"}
    builder = et.IdMapBuilder("string")
    builder.add(["a", "b"])
    embedding = engine()
    embedding.build(2)
    step = embedding.save(tmp_path / "run", state, {"user": builder.build()})
    report = copied(embedding.restore(step))
    assert report.step == 0 and report.directory == step and report.caller.json == {"epoch": 1}
    assert report.id_maps == {"user": builder.build()} and report.missing == report.grown == []
    other = engine(feature_config=features(users=user(vocabulary_size=15)), optimizer=et.Adagrad(0.1))
    report = other.restore(step, partial=True)
    for name in ("missing", "extra", "mismatched", "skipped", "grown"):
        assert getattr(copied(report), name) == getattr(report, name)
    assert report.missing and report.mismatched
    saved = copied(et.read_saved_state(step))
    assert saved.step == 0 and saved.caller.blobs == {"b": b"\x00"}


@pytest.mark.parametrize("copied", COPIES)
def test_id_maps(copied):
    hashed = et.IdMap.hashed("string", 10)
    assert copied(hashed) == hashed


@pytest.mark.parametrize("copied", COPIES)
def test_initializers_keep_the_values_that_they_were_made_of(copied):
    array = np.ones((2, 1), np.float32)
    initializer = et.Initializer.values(array)
    array[:] = 9
    table = et.TableConfig(2, 1, copied(initializer))
    assert et.Embedding(et.FeatureConfig(table)).embedding_tables()[table].tolist() == [[1], [1]]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("make, text", [
    (engine, "Embedding objects cannot be pickled or copied: `save` keeps"),
    (lambda: tpu.TPUEmbedding(tpu.FeatureConfig(user()), tpu.SGD(0.1)), "TPUEmbedding objects cannot be pickled or copied: `save` keeps"),
    (lambda: et.ServingEmbedding(et.FeatureConfig(user())), "ServingEmbedding objects cannot .*: open its checkpoint again"),
    (lambda: et.Variable([1.0]), "Variable objects cannot .*: `save_variables` keeps it"),
    (lambda: et.ShardedVariable([et.Variable([1.0])]), "ShardedVariable objects cannot .*: `save_variables`"),
    (et.Exchange.local, "Exchange objects cannot .*: make one in each process"),
    (lambda: et.IdMapBuilder("string"), "IdMapBuilder objects cannot .*: `build` makes"),
])
def test_what_does_not_says_what_to_do(copied, make, text):
    with pytest.raises(TypeError, match=text):
        copied(make())
