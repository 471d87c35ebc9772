"""What can be pickled and copied, and what says why not."""

import copy
import pickle

import numpy as np
import pytest

import embertable as et
from fixture import accelerator, batch, engine, features, train


def saved(tmp_path):
    embedding = engine(optimizer=et.Adagrad(0.1))
    train(embedding, batch(), np.copy)
    builder = et.IdMapBuilder("string")
    builder.add(["x", "y"])
    state = et.CallerState({"epoch": [1, 2]}, {"w": np.float32([[1, 2]])}, {"b": b"\0\xff"})
    embedding.save(tmp_path, state, {"ids": builder.build()})
    return embedding


def each_copy(value):
    return [pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)]


def test_reports_of_a_restore(tmp_path):
    saved(tmp_path)
    wanted = engine(optimizer=et.SGD(0.1)).restore(tmp_path)
    for report in each_copy(wanted):
        for name in ("step", "directory", "missing", "extra", "mismatched", "skipped", "grown"):
            assert getattr(report, name) == getattr(wanted, name), name
        assert sorted(report.extra) == ["user/accumulators", "video/accumulators"]
        assert report.caller.json == {"epoch": [1, 2]} and report.caller.tensors["w"].tolist() == [[1, 2]]
        assert report.caller.blobs == {"b": b"\0\xff"}
        assert report.id_maps["ids"] == wanted.id_maps["ids"] and report.id_maps["ids"].row("y") == 1


def test_statistics_of_a_step():
    wanted = engine(optimizer=et.SGD(0.1))
    train(wanted, batch(), np.copy)
    for step in each_copy(wanted.last_step):
        for name in ("forward_workers", "update_workers", "forward_seconds", "update_seconds"):
            assert getattr(step, name) == getattr(wanted.last_step, name), name
        for mine, table in zip(step.tables, wanted.last_step.tables, strict=True):
            for name in ("entries", "unique_rows", "dropped_ids", "truncated_entries"):
                assert getattr(mine, name) == getattr(table, name), name
            assert mine.entries > 0


def test_states(tmp_path):
    saved(tmp_path)
    for state in each_copy(et.read_saved_state(tmp_path)):
        assert state.step == 1 and state.caller.json == {"epoch": [1, 2]}
    for state in each_copy(et.CallerState({"a": None}, {"x": np.int64([3])})):
        assert state.json == {"a": None} and state.tensors["x"].tolist() == [3] and state.blobs == {}


def test_reports_of_an_engine():
    embedding = engine(optimizer=et.RowwiseAdagrad(0.1))
    train(embedding, batch(), np.copy)
    for info, wanted in zip(pickle.loads(pickle.dumps(embedding.tables)), embedding.tables):
        for name in ("name", "vocabulary_size", "dim", "combiner", "optimizer", "trainable"):
            assert getattr(info, name) == getattr(wanted, name)
        assert [(s.name, s.row_wise, s.trainable) for s in info.slots] == [("accumulators", True, False)]
    for entry, wanted in zip(copy.deepcopy(embedding.memory()), embedding.memory()):
        assert entry.name == wanted.name and entry.bytes == wanted.bytes > 0


def test_gradients():
    table = et.TableConfig(4, 2, name="t")
    tables = et.DirectEmbedding(et.FeatureConfig(table), None, accelerator())
    _, lookup = tables.look_up([1, 3])
    for got in each_copy(tables.gradients(lookup, np.ones((2, 2)))[table]):
        assert got.indices.tolist() == [1, 3] and got.values.tolist() == [[1, 1]] * 2 and got.dense_shape == (4, 2)


@pytest.mark.parametrize("make, what", [
    (lambda path: engine(), "`save` keeps its tables"),
    (lambda path: et.DirectEmbedding(features(), et.SGD(0.1), accelerator()), "`save` keeps its tables"),
    (lambda path: et.ServingEmbedding(features()), "open its checkpoint"),
    (lambda path: et.CheckpointRun(path / "run"), "open its directory again"),
])
def test_what_holds_memory_says_what_to_do(make, what, tmp_path):
    value = make(tmp_path)
    for copies in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=what):
            copies(value)
