"""Serving: the pure lookup, and tables of a checkpoint that are only looked up."""

import gc
import os
import signal
import threading
import traceback
import warnings

import numpy as np
import pytest

import embertable as et
from fixture import (FAVORITED, FRIENDS, USER_ROWS, VIDEO_ROWS, accelerator, batch, engine, features, ragged, sparse,
                     train, user, video)

WATCHED_4 = [[0, 1, 2, 3], [4, 6, 8, 10], [4, 6, 8, 10], [4, 5, 6, 7]]
FRIENDS_4 = [[6, 7], [2, 3], [6, 7], [2, 3]]


def inputs(kind=ragged):
    return tuple(kind(rows) for rows in ([[0], [0, 1], [0, 1], [1]], FAVORITED, FRIENDS))


def look_up(ids, weights=None, config=None, tables=None):
    config = features() if config is None else config
    if tables is None:
        tables = {config[0].table: VIDEO_ROWS, config[2].table: USER_ROWS}
    return et.serving_embedding_lookup(ids, weights, tables, config)


@pytest.mark.parametrize("kind", [ragged, sparse])
def test_case_111_112(kind):
    ids = inputs(kind)
    watched, favorited, friends = look_up(ids)
    assert np.array_equal(watched, WATCHED_4) and np.allclose(friends, FRIENDS_4)
    make = et.RaggedWeights if kind is ragged else et.SparseWeights
    watched, favorited, friends = look_up(ids, tuple(make(np.array(one.values, np.float32)) for one in ids))
    assert np.array_equal(watched, [[0] * 4] + [[4, 5, 6, 7]] * 3)
    np.testing.assert_allclose(friends, [[6, 7], [10 / 3, 13 / 3]] * 2, rtol=1e-6)


def test_case_113_a_part_of_the_features_and_other_containers():
    ids = inputs()
    assert np.array_equal(look_up(list(ids))[0], WATCHED_4) and isinstance(look_up(list(ids)), list)
    assert len(look_up(ids[:2])) == 2
    by_key = {"w": et.FeatureConfig(video()), "f": et.FeatureConfig(user())}
    got = et.serving_embedding_lookup({"f": [[3], [0]]}, None, {by_key["f"].table: USER_ROWS}, by_key)
    assert list(got) == ["f"] and got["f"].shape == (2, 1, 2)
    with pytest.raises(ValueError):
        look_up(ids + ids[:1])
    with pytest.raises(ValueError):
        look_up(ids, (None, None))
    with pytest.raises(ValueError, match="'0'"):
        look_up((np.array([0]), ids[1], ids[2]), (np.ones(1, np.float32), None, None))


def test_case_122_tables_that_lack_or_are_of_another_form():
    config = features()
    with pytest.raises(KeyError, match="user"):
        look_up(inputs(), config=config, tables={config[0].table: VIDEO_ROWS})
    with pytest.raises(et.DataError, match="'0'.*8"):
        look_up((np.array([8]),), config=config)
    tables = {config[0].table: VIDEO_ROWS[:, :3], config[2].table: USER_ROWS}
    with pytest.raises(ValueError, match=r"video.*\(8, 4\).*\(8, 3\)"):
        look_up(inputs(), config=config, tables=tables)
    with pytest.raises(ValueError, match="two axes"):
        look_up(inputs(), config=config, tables={config[0].table: VIDEO_ROWS.ravel()})
    with pytest.raises(TypeError, match="int64"):
        look_up(inputs(), config=config, tables={config[0].table: VIDEO_ROWS.astype(int)})


@pytest.mark.parametrize("form", [lambda a: np.repeat(a, 2, 0)[::2], np.asfortranarray, lambda a: a.astype(np.float64),
                                  lambda a: np.pad(a, ((0, 0), (0, 3)))[:, :4], lambda a: a.tolist()])
def test_tables_of_any_layout(form):
    config = features()
    got = look_up(inputs(), config=config, tables={config[0].table: form(VIDEO_ROWS), config[2].table: USER_ROWS})
    assert np.array_equal(got[0], WATCHED_4)


@pytest.fixture
def saved(tmp_path):
    embedding = engine(3, 3, optimizer=et.Adagrad(0.1))
    train(embedding, et.PerReplica(batch(r) for r in range(3)), np.copy)
    builder = et.IdMapBuilder("string")
    builder.add(["a"])
    embedding.save(tmp_path, et.CallerState("mine"), {"video": builder.build()})
    return tmp_path, embedding.read_rows("video", range(8))


@pytest.mark.parametrize("tables", ["map", "load"])
@pytest.mark.parametrize("checks", ["lazy", "full", "none"])
def test_tables_of_a_checkpoint(saved, tables, checks):
    run, rows = saved
    config = features()
    serving = et.ServingEmbedding.open(run, config, tables=tables, checks=checks)
    ids = (np.array([0, 1, 7]), [[0], [1]], ragged([[3]]))
    watched, favorited, friends = serving(ids)
    assert np.array_equal(watched, rows[[0, 1, 7]]) and favorited.shape == (2, 1, 4)
    assert np.array_equal(serving.embedding_lookup(ids)[0], watched)
    assert np.array_equal(serving.read_rows("video", [[7], [0]]), rows[[[7], [0]]])
    view = serving.embedding_tables()[config[0].table]
    assert np.array_equal(view, rows)
    with pytest.raises(ValueError):
        view[0] = 1
    with pytest.raises(ValueError):
        view.flags.writeable = True
    assert (serving.step, serving.built, serving.caller_state().json) == (1, True, "mine")
    assert serving.id_maps()["video"].row("a") == 0
    assert [table.name for table in serving.tables] == ["video", "user"]
    with pytest.raises(RuntimeError, match="alive"):
        serving.restore(run)
    part = view[2:]
    del view
    with pytest.raises(RuntimeError, match="alive"):
        serving.restore(run)
    del serving
    gc.collect()
    assert np.array_equal(part, rows[2:]) and np.array_equal(watched, rows[[0, 1, 7]])


def test_a_checkpoint_names_its_features(saved):
    run, rows = saved
    serving = et.ServingEmbedding.open(run)
    assert set(serving.feature_config) == {"0", "1", "2"}
    assert serving.feature_config["0"].table is serving.feature_config["1"].table
    assert np.array_equal(serving({"1": np.array([5])})["1"], rows[[5]])
    assert set(serving.embedding_tables()) == {serving.feature_config["0"].table, serving.feature_config["2"].table}


def test_first_values_until_restored(saved):
    run, rows = saved
    serving = et.ServingEmbedding(features())
    assert not serving.built and serving.step == 0
    assert np.array_equal(serving((np.array([2]),))[0], VIDEO_ROWS[[2]])
    report = serving.restore(run)
    assert report.step == 1 and report.missing == []
    assert np.array_equal(serving((np.array([2]),))[0], rows[[2]])


def test_case_123_serving_is_not_for_accelerators():
    with pytest.raises(RuntimeError):
        et.ServingEmbedding(features(), et.SGD(), accelerator())
    for options in ({"tables": "copy"}, {"checks": "often"}):
        with pytest.raises(ValueError):
            et.ServingEmbedding(features(), **options)


def test_what_is_wrong_with_a_batch(saved):
    serving = et.ServingEmbedding.open(saved[0], features())
    with pytest.raises(et.DataError) as raised:
        serving((ragged([[0], [8]]),))
    assert (raised.value.feature, raised.value.sample, raised.value.position) == ("0", 1, 1)
    with pytest.raises(KeyError):
        serving.read_rows("nobody", [0])
    with pytest.raises(IndexError):
        serving.read_rows("video", [8])


def test_any_number_of_threads_look_up(saved):
    run, rows = saved
    serving = et.ServingEmbedding.open(run, features())
    wrong = []

    def ask(row):
        for _ in range(200):
            if not np.array_equal(serving((np.array([row]),))[0], rows[[row]]):
                wrong.append(row)

    threads = [threading.Thread(target=ask, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        serving.restore(run)
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_process_builds_restores_and_looks_up(tmp_path):
    table = et.TableConfig(10, 2, et.Initializer.row_id(), name="t")
    config = {"f": et.FeatureConfig(table)}
    trained = et.Embedding(config, et.SGD(1), et.EngineStrategy(threads=1))
    trained.build(1)
    trained.save(tmp_path)
    made = [et.ServingEmbedding(config), et.ServingEmbedding.open(tmp_path), et.ServingEmbedding.open(tmp_path, tables="map")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
        child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(60)  # where a lock is held, the child ends
        try:
            made[0].build()
            for serving in made:
                serving.restore(tmp_path)
                assert serving({"f": np.array([3])})["f"].tolist() == [[3, 3]]
                assert len(serving.embedding_tables()) == 1
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
