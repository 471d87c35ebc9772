"""Tables to and from the files of others, as the command line's export and import have them."""

import collections
import gzip
import os
import pathlib
import types

import numpy as np
import pytest

import embertable as et
import fixture


def adagrad_engine():
    engine = fixture.engine(optimizer=et.Adagrad(0.1, initial_accumulator_value=0.5))
    engine.build(4)
    return engine


@pytest.fixture
def run(tmp_path):
    adagrad_engine().save(tmp_path / "run", et.CallerState())
    return tmp_path / "run"


def restored(run):
    """Rows and slots of an engine that began with zeros."""
    zeros = et.Initializer.constant(0.0)
    tables = fixture.features(fixture.video(initializer=zeros), fixture.user(initializer=zeros))
    engine = fixture.engine(feature_config=tables, optimizer=et.Adagrad(0.1, initial_accumulator_value=0.25))
    engine.build(4)
    engine.restore(run)
    return {name: np.array(engine.sharded_variable(name).numpy())
            for name in ("video", "user", "video/accumulators", "user/accumulators")}


def assert_same_tables(found):
    assert np.array_equal(found["video"], fixture.VIDEO_ROWS)
    assert np.array_equal(found["user"], fixture.USER_ROWS)
    assert (found["video/accumulators"] == 0.5).all() and found["user/accumulators"].shape == (16, 2)


@pytest.mark.parametrize("format", ["tf", "npy"])
def test_tables_and_slots_come_back(run, tmp_path, format):
    written = et.export_tables(run, tmp_path / "out", format, slots=True)
    assert {array.name: array.shape for array in written} == {
        "video": (8, 4), "video/accumulators": (8, 4), "user": (16, 2), "user/accumulators": (16, 2)}
    report = et.import_tables(tmp_path / "out", tmp_path / "back", format, step=7)
    assert report.step.name.endswith("7") and report.left_out == []
    assert sorted(array.name for array in report.arrays) == sorted(array.name for array in written)
    assert_same_tables(restored(tmp_path / "back"))


def test_an_exported_bundle_is_tensorflows(run, tmp_path):
    (array,) = et.export_tables(run, tmp_path / "out", "tf", ["user"], object="a/b", shards=3)
    assert array.place == "a/b/user/.ATTRIBUTES/VARIABLE_VALUE"
    reader = et.TensorBundleReader(et.latest_bundle(tmp_path / "out"))
    assert np.array_equal(reader[array.place], fixture.USER_ROWS)
    assert len(reader.describe(array.place).slices) == 3


def test_arrays_are_numpys(run, tmp_path):
    for array in et.export_tables(run, tmp_path / "out", "npy", ["video"]):
        assert np.load(array.place).shape == array.shape
    assert np.array_equal(np.load(tmp_path / "out/video.npy"), fixture.VIDEO_ROWS)


def zstd_frames(text):
    """Frames of 255 bytes with one raw block each: Python has no zstd of its own."""
    frames = b""
    for begin in range(0, len(text), 255):
        part = text[begin:begin + 255]
        block = ((len(part) << 3) | 1).to_bytes(3, "little") + part
        frames += b"\x28\xb5\x2f\xfd" + bytes([0x20, len(part)]) + block
    return frames


@pytest.mark.parametrize("compress", [gzip.compress, zstd_frames])
@pytest.mark.parametrize("binary", [False, True])
def test_words_come_back_and_may_be_compressed(run, tmp_path, binary, compress):
    words, packed = tmp_path / "words", tmp_path / "words.packed"
    et.export_tables(run, words, "word2vec", ["user"], binary=binary, label="row")
    packed.write_bytes(compress(words.read_bytes()))
    report = et.import_tables(packed, tmp_path / "back", "word2vec", ["user"], binary=binary, combiner="sum")
    (array,) = report.arrays
    assert (array.name, array.shape, array.place) == ("user", (16, 2), str(packed))
    table = fixture.user(initializer=et.Initializer.constant(0.0), combiner="sum")
    engine = et.Embedding(et.FeatureConfig(table), et.SGD(0.1), fixture.accelerator())
    engine.build(1)
    found = engine.restore(tmp_path / "back")
    assert np.array_equal(engine.sharded_variable("user").numpy(), fixture.USER_ROWS)
    assert list(found.id_maps) == ["user"]


@pytest.mark.parametrize("mapping", [dict, collections.UserDict, types.MappingProxyType])
def test_sources_are_named_by_a_mapping(tmp_path, mapping):
    np.save(tmp_path / "one.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    np.save(tmp_path / "two.npy", np.ones(3, np.float32))
    np.save(tmp_path / "a.npy", np.ones((5, 5), np.float32))
    report = et.import_tables(tmp_path, tmp_path / "run", "npy", mapping({"a": "one.npy"}),
                              mapping({"a/sums": "two.npy"}))
    assert [(array.name, array.shape) for array in report.arrays] == [("a", (3, 2)), ("a/sums", (3,))]


@pytest.mark.parametrize("path", [os.fsencode, pathlib.Path])
def test_sources_are_paths_of_any_type(tmp_path, path):
    np.save(tmp_path / "one.npy", np.ones((3, 2), np.float32))
    (array,) = et.import_tables(tmp_path, tmp_path / "run", "npy", {"a": path("one.npy")}).arrays
    assert (array.name, array.shape) == ("a", (3, 2))


@pytest.mark.parametrize("tables, error, message", [
    ({"x=a": "b.npy"}, ValueError, r"tables: a name must have no '=', got 'x=a'"),
    (["x=a"], ValueError, r"tables: a name must have no '=', got 'x=a'"),
    ({"a": 3}, TypeError, r"tables\['a'\] must be a path, got int"),
    ({3: "a"}, TypeError, r"tables must have names as keys, got int"),
    (["a", 3], TypeError, r"tables\[1\] must be a name, got int"),
    ({"a"}, TypeError, r"tables must be a list of names, got set"),
    ([], ValueError, r"tables must name a table, or be None for all, got none"),
    ({}, ValueError, r"tables must name a table, or be None for all, got none"),
])
def test_what_names_no_tables_is_refused(tmp_path, tables, error, message):
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.ones((3, 2), np.float32))
    with pytest.raises(error, match=message):
        et.import_tables(tmp_path, tmp_path / "run", "npy", tables)


def test_no_slots_are_none(tmp_path):
    with pytest.raises(ValueError, match="slots must name a slot, or be None for those found, got none"):
        et.import_tables(tmp_path, tmp_path / "run", "npy", slots={})


@pytest.mark.parametrize("tables, error, message", [
    ("video", TypeError, "tables must be a list of names, got str"),
    ({"video": "a.npy"}, TypeError, "tables must be a list of names, got dict"),
    ((), ValueError, "tables must name a table, or be None for all, got none"),
])
def test_what_names_no_tables_is_not_exported(run, tmp_path, tables, error, message):
    with pytest.raises(error, match=message):
        et.export_tables(run, tmp_path / "out", "npy", tables)


def test_refusals_name_what_is_wrong(run, tmp_path):
    with pytest.raises(ValueError, match="format must be 'tf', 'npy', 'word2vec' or 'int8', got 'csv'"):
        et.export_tables(run, tmp_path / "out", "csv")
    with pytest.raises(ValueError, match="label must be 'key', 'name' or 'row', got 'id'"):
        et.export_tables(run, tmp_path / "out", "word2vec", label="id")
    for option in ({"binary": True}, {"label": "row"}, {"shards": 3}, {"object": "x"}):
        with pytest.raises(ValueError, match=f"{next(iter(option))} must not be given: it is of"):
            et.export_tables(run, tmp_path / "out", "npy", **option)
    with pytest.raises(ValueError, match="binary must not be given: it is of word2vec"):
        et.import_tables(run, tmp_path / "back", "npy", binary=True)
    with pytest.raises(KeyError, match="video"):
        et.export_tables(run, tmp_path / "out", "npy", ["vide"])
    with pytest.raises(OSError, match="nothing"):
        et.export_tables(tmp_path / "nothing", tmp_path / "out", "npy")
    with pytest.raises(ValueError, match="max"):
        et.import_tables(run, tmp_path / "back", "npy", combiner="max")
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(et.DataLossError, match="from byte 0: expected an .npy file"):
        et.import_tables(tmp_path / "bad.npy", tmp_path / "back", "npy")
