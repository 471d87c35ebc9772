"""Rows of bfloat16 and int8, as Python sees them."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import VIDEO_ROWS, accelerator, batch, features, train, video


def nearest(array):
    """float32 rounded to bfloat16, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def engine(**changes):
    return et.Embedding(features(video(row_type="bfloat16", **changes)), et.Adagrad(0.1), accelerator())


def test_a_table_has_a_row_type():
    table = video(row_type="bfloat16")
    assert table.row_type == "bfloat16" and video().row_type == "float32"
    assert pickle.loads(pickle.dumps(table)).row_type == "bfloat16"
    assert "row_type='bfloat16'" in repr(table) and "row_type" not in repr(video())
    for wrong, text in ("float16", "got 'float16'"), ("int8", "got 'int8'"), (None, "got NoneType"):
        with pytest.raises(ValueError, match=text):
            video(row_type=wrong)


def test_rows_are_read_as_float32_and_assigned_rounded():
    embedding = engine()
    embedding.build(2)
    assert [table.row_type for table in embedding.tables] == ["bfloat16", "float32"]
    rows = embedding.read_rows("video", np.arange(8))
    assert rows.dtype == np.float32 and np.array_equal(rows, nearest(VIDEO_ROWS))
    values = np.array([[1 + 2**-9, 1 + 2**-8 + 2**-16, -0.0, np.inf]], np.float32)
    embedding.assign_rows("video", [3], values)
    assert np.array_equal(embedding.read_rows("video", [3]), nearest(values))


def test_saved_rows_are_served_and_restored(tmp_path):
    embedding = engine()
    for _ in range(2):
        train(embedding, batch(), np.copy)
    embedding.save(tmp_path / "run")
    rows = embedding.read_rows("video", np.arange(8))
    assert np.array_equal(rows, nearest(rows))
    serving = et.ServingEmbedding.open(tmp_path / "run")
    assert np.array_equal(serving.read_rows("video", np.arange(8)), rows)
    other = et.Embedding(features(), et.Adagrad(0.1), accelerator())
    other.build(2)
    other.restore(tmp_path / "run")
    assert np.array_equal(other.read_rows("video", np.arange(8)), rows)
    assert other.digest() == embedding.digest()


def test_int8_is_exported_and_served(tmp_path):
    embedding = engine()
    train(embedding, batch(), np.copy)
    embedding.save(tmp_path / "run")
    arrays = et.export_tables(tmp_path / "run", tmp_path / "served", "int8")
    assert [array.name for array in arrays] == ["video", "user"]
    serving = et.ServingEmbedding.open(tmp_path / "served")
    assert [table.row_type for table in serving.tables] == ["int8", "int8"]
    for name, count in ("video", 8), ("user", 16):
        rows = embedding.read_rows(name, np.arange(count))
        got = serving.read_rows(name, np.arange(count))
        scale = (rows.max(1) - rows.min(1)) / 255
        assert np.all(np.abs(got - rows) <= scale[:, None] * 0.501 + 1e-6 * np.abs(rows))
    with pytest.raises(ValueError, match="got int8"):
        engine().restore(tmp_path / "served")


def test_rows_in_memory_are_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 without ml_dtypes")
    plain = et.Embedding((et.FeatureConfig(video(row_type="bfloat16")),))
    (rows,) = plain.embedding_tables().values()
    assert rows.dtype == ml_dtypes.bfloat16 and rows.shape == (8, 4)
    assert np.array_equal(rows.astype(np.float32), nearest(VIDEO_ROWS))
    rows[2] = 0.5
    assert np.array_equal(plain.read_rows("video", [2]), [[0.5] * 4])


def test_a_direct_embedding_shows_and_updates_rows_of_bfloat16():
    table = video(row_type="bfloat16")
    tables = et.DirectEmbedding(et.FeatureConfig(table), None, accelerator())
    tables.build()
    assert np.array_equal(tables.embedding_tables()[table].astype(np.float32), nearest(VIDEO_ROWS))
    activations, lookup = tables.look_up(np.array([1, 3]))
    assert np.array_equal(activations, nearest(VIDEO_ROWS)[[1, 3]])

    def halve(update):
        assert update.parameters.dtype.name == "bfloat16" and update.gradients.dtype == np.float32
        update.parameters[update.rows] = 0.5 * update.gradients

    tables.apply_gradients(lookup, np.ones((2, 4), np.float32), halve)
    want = nearest(VIDEO_ROWS)
    want[[1, 3]] = 0.5
    assert np.array_equal(tables.read_rows("video", np.arange(8)), want)


def test_a_rule_of_the_callers_steps_rows_of_bfloat16():
    def set_to_half(tile):
        assert tile.row.dtype == np.float32
        tile.row[:] = 0.5

    embedding = et.Embedding(features(video(row_type="bfloat16")), et.Optimizer.custom(set_to_half, 0.1), accelerator())
    embedding.build(2)
    train(embedding, batch(), np.ones_like)
    rows = embedding.read_rows("video", np.arange(8))
    assert np.array_equal(rows[:2], np.full((2, 4), 0.5)) and np.array_equal(rows[4:], nearest(VIDEO_ROWS)[4:])


def test_a_description_copies_with_its_row_type():
    info = engine().tables[0]
    for again in copy.copy(info), pickle.loads(pickle.dumps(info)):
        assert again.row_type == info.row_type == "bfloat16"


def test_the_original_s_config_has_a_row_type():
    table = tpu.TableConfig(8, 4, name="video", row_type="bfloat16", replicated=True)
    assert table.row_type == "bfloat16" and tpu.TableConfig(8, 4).row_type == "float32"
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert (again.row_type, again.replicated, again.name) == ("bfloat16", True, "video")
    with pytest.raises(ValueError, match="row_type must be 'float32' or 'bfloat16', got 'half'"):
        tpu.TableConfig(8, 4, row_type="half")
    with tpu.TPUStrategy(threads=1).scope():
        embedding = tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    assert embedding.tables[0].row_type == "bfloat16"


def test_bytes_are_those_of_the_row_type(tmp_path):
    """video: 8 rows of 4 numbers of 2 bytes and 4 accumulators; user: 16 of 2 and 2. As int8 a row has dim + 8 bytes."""
    embedding = engine()
    assert "(24 rows, 448 B)" in repr(embedding)  # 8 * (8 + 16) + 16 * (8 + 8)
    assert [row.split()[-2:] for row in embedding.summary().splitlines()[3:5]] == [["192", "B"], ["256", "B"]]
    train(embedding, batch(), np.copy)
    embedding.save(tmp_path / "run")
    et.export_tables(tmp_path / "run", tmp_path / "served", "int8")
    assert "(24 rows, 256 B)" in repr(et.ServingEmbedding.open(tmp_path / "served"))  # 8 * 12 + 16 * 10


def test_a_caller_s_bfloat16_is_looked_up_where_it_is():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 without ml_dtypes")
    table = et.TableConfig(1 << 17, 32, combiner="sum")
    rows = np.random.default_rng(1).standard_normal((1 << 17, 32), np.float32).astype(ml_dtypes.bfloat16)
    ids = et.RaggedIds([5, 131071, 5], [0, 2, 2, 3])
    config = et.FeatureConfig(table)

    def look_up(given):
        tracemalloc.start()
        try:
            return et.serving_embedding_lookup(ids, None, {table: given}, config), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    wide = rows.astype(np.float32)
    expected = np.stack([wide[5] + wide[131071], np.zeros(32, np.float32), wide[5]])
    got, most = look_up(rows)
    assert got.dtype == np.float32 and np.array_equal(got, expected)
    assert most < 1 << 20  # the rows have 8 MiB, and would have 16 as float32
    padded = np.zeros((1 << 17, 40), ml_dtypes.bfloat16)
    padded[:, 8:] = rows
    got, most = look_up(padded[:, 8:])
    assert np.array_equal(got, expected) and most < 1 << 20
    assert np.array_equal(look_up(np.asfortranarray(rows))[0], expected)  # copied: a row is not in one piece
    with pytest.raises(TypeError, match="must be floating-point numbers, got uint16"):
        look_up(rows.view(np.uint16))
    with pytest.raises(ValueError, match="must have shape"):
        look_up(rows[1:])
    with pytest.raises(ValueError, match="two axes"):
        look_up(rows[0])
