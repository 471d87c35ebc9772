import pickle

import numpy as np
import pytest

import embertable as et


def test_text_keys():
    builder = et.IdMapBuilder("string")
    builder.add(["b", "a", "b", "ü"])
    builder.add(np.array(["b", "a"]))
    builder.add("c", 5)
    known = builder.build(min_count=2, row_order="most_frequent", out_of_vocabulary_rows=2)
    assert [known.key(r) for r in range(len(known))] == ["c", "b", "a"]
    assert (known.kind, known.num_keys, known.out_of_vocabulary_rows, known.num_rows) == ("string", 3, 2, 5)
    assert known.rows(["a", "c", "ü"])[:2].tolist() == [2, 0] and known.row("ü") in (3, 4)
    assert known.rows(np.array(["a", "b"])).tolist() == [2, 1]
    assert known.rows(np.array([["a"], ["b"]])).tolist() == known.rows([[b"a"], ["b"]]).tolist() == [[2], [1]]
    assert known.rows(np.array("c")).shape == () and known.rows(np.empty((0, 3), "U1")).shape == (0, 3)
    assert known.rows(key for key in "cb").tolist() == [0, 1] and known.rows([]).dtype == np.int64
    for text in ("ab", b"ab", ""):
        with pytest.raises(TypeError, match=f"keys must be an array or list, got {type(text).__name__}: row takes a single key"):
            known.rows(text)
    with pytest.raises(TypeError, match="a key must be text, got list"):
        known.rows([["a"], ["b", "c"]])
    with pytest.raises(ValueError, match="count is for one key"):
        builder.add(["a"], 2)
    assert known.find("ü") is None and "ü" not in known and "a" in known


def test_integer_keys():
    builder = et.IdMapBuilder("integer")
    builder.add(np.array([70, -5, 70], np.int32))
    builder.add([2**62])
    builder.add(9)
    known = builder.build()
    assert [known.key(r) for r in range(4)] == [70, -5, 2**62, 9]
    rows = known.rows(np.array([[9, 70]]))
    assert rows.tolist() == [[3, 0]] and rows.dtype == np.int64
    with pytest.raises(KeyError, match="8"):
        known.row(8)
    with pytest.raises(TypeError):
        known.row("70")
    with pytest.raises(IndexError):
        known.key(4)


def test_bytes_and_pickles():
    hashed = et.IdMap.hashed("integer", 7)
    for other in (et.IdMap.from_bytes(hashed.to_bytes()), pickle.loads(pickle.dumps(hashed))):
        assert other == hashed
    with pytest.raises(et.DataLossError):
        et.IdMap.from_bytes(hashed.to_bytes()[:-1])
    with pytest.raises(ValueError, match="'text'"):
        et.IdMapBuilder("text")


def test_keys_that_are_no_utf8_go_in_as_they_come_out():
    builder = et.IdMapBuilder("string")
    builder.add([b"a\xff", b"\xfe\0", "ü"])
    builder.add("b\udcff")
    known = builder.build()
    keys = [known.key(row) for row in range(4)]
    assert keys == ["a\udcff", "\udcfe\0", "ü", "b\udcff"]
    for row, key in enumerate(keys):
        assert known.row(key) == row and known.find(key) == row and key in known
    assert known.rows(keys).tolist() == [0, 1, 2, 3] and known.row(b"a\xff") == 0
    with pytest.raises(ValueError, match=r"\\ud800"):
        known.row("\ud800")


def test_masked_keys_are_refused():
    builder = et.IdMapBuilder("string")
    builder.add(["a", "b"])
    keys = np.ma.array(["a", "b"], mask=[False, True])
    for call in (builder.build(out_of_vocabulary_rows=1).rows, builder.add):
        with pytest.raises(ValueError, match="masked"):
            call(keys)
    assert builder.num_keys == 2


def test_keys_of_rows():
    builder = et.IdMapBuilder("integer")
    builder.add(np.array([70, -80, 90]))
    integers = builder.build(out_of_vocabulary_rows=2)
    keys = integers.keys_of([[2, 0], [1, 1]])
    assert keys.dtype == np.int64 and keys.tolist() == [[90, 70], [-80, -80]]
    assert list(integers) == [70, -80, 90] and len(integers) == 3
    assert integers.keys_of([]).tolist() == []
    for row in (3, -1):
        with pytest.raises(IndexError):
            integers.keys_of([0, row])
    builder = et.IdMapBuilder("string")
    builder.add(["a", "\udcff", "c"])
    texts = builder.build()
    assert texts.keys_of([2, 1]).tolist() == ["c", "\udcff"] and texts.keys_of([2, 1]).dtype == object
    assert list(texts) == ["a", "\udcff", "c"] and texts.rows(texts.keys_of([[1], [0]])).tolist() == [[1], [0]]
    assert list(et.IdMap.hashed("string", 4)) == []
