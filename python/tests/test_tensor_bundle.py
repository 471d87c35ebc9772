"""Checkpoints of TensorFlow's format: what it wrote, and what we write and read again."""

import gzip
import json
import pathlib

import numpy as np
import pytest

import embertable as et

GOLDEN = json.loads(gzip.open(
    pathlib.Path(__file__).resolve().parents[2] / "tests/golden/bundles.json.gz").read())
ARRAY = np.arange(24, dtype=np.float32).reshape(6, 4)
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def laid_out(folder, tmp_path):
    """The prefix of a checkpoint that TensorFlow wrote."""
    for name, digits in GOLDEN[folder]["files"].items():
        (tmp_path / name).write_bytes(bytes.fromhex(digits))
    return tmp_path / "ckpt"


def components(array, sizes):
    parts = np.split(array, np.cumsum(sizes)[:-1])
    return et.ShardedVariable([et.Variable(part, dtype=str(array.dtype)) for part in parts])


def readable(tensor):
    if tensor["dtype"] != "bfloat16":
        return True
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("folder", ["plain", "sharded", "partitioned_v1", "any_axis", "tpu_embedding", "foreign/big_endian"])
def test_what_tensorflow_wrote_is_read(folder, tmp_path):
    truth = GOLDEN[folder]["truth"]
    reader = et.TensorBundleReader(laid_out(folder, tmp_path))
    assert reader.num_data_files == truth["num_data_files"]
    assert list(reader) == reader.keys() == [tensor["key"] for tensor in truth["tensors"]]
    assert len(reader) == len(truth["tensors"]) and "none" not in reader and 7 not in reader
    for tensor in truth["tensors"]:
        key = tensor["key"]
        told = reader.describe(key)
        assert (told.key, told.dtype, told.shape) == (key, tensor["dtype"], tuple(tensor["shape"])) and key in reader
        assert told.slices == [tuple(slice(None) if one is None else slice(one[0], sum(one)) for one in cut)
                               for cut in tensor.get("slices", [])]
        if not readable(tensor):
            with pytest.raises(NotImplementedError, match="ml_dtypes"):
                reader.read(key)
        elif tensor["dtype"] == "string":
            found = reader[key]
            assert found.shape == told.shape and [one.hex() for one in found.ravel()] == tensor["data_hex"]
        else:
            found = reader[key]
            assert found.dtype.name == told.dtype and found.shape == told.shape and found.flags.writeable
            assert found.tobytes().hex() == tensor["hex"]
    reader.verify()


@pytest.mark.parametrize("key", [np.s_[:], np.s_[2:5], np.s_[-2:], np.s_[1:3, 1:], np.s_[:, -3:-1], np.s_[4:2], np.s_[:99, 2:3]])
def test_slices_are_cut_as_numpy_cuts(key, tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        writer.add("t", components(ARRAY, [1, 3, 2]))
    reader = et.TensorBundleReader(tmp_path / "b")
    assert reader.describe("t").slices == [(slice(0, 1), slice(0, 4)), (slice(1, 4), slice(0, 4)),
                                           (slice(4, 6), slice(0, 4))]
    assert np.array_equal(reader.read("t", key), ARRAY[key])


def test_bad_slices_and_keys_are_errors(tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        writer.add("t", ARRAY)
        writer.add("s", ["a", b"b"])
    reader = et.TensorBundleReader(tmp_path / "b")
    for key, slices, error, text in [("t", np.s_[::2], ValueError, "steps of 1, got 2"),
                                     ("t", 3, TypeError, "a slice or a tuple of them, got int"),
                                     ("t", (slice(1), 3), TypeError, "a slice or a tuple of them, got int"),
                                     ("t", np.s_[:, :, :], ValueError, "must be at most 2, got 3"),
                                     ("s", np.s_[:1], TypeError, "got one of strings"),
                                     ("u", None, KeyError, "Key u not found in checkpoint")]:
        with pytest.raises(error, match=text):
            reader.read(key, slices)


@pytest.mark.parametrize("value", [
    np.float64(2.5), np.arange(3, dtype=np.uint8), np.zeros((0, 4), np.int16), np.array([1 + 2j], np.complex64),
    np.array([[True, False]]), np.arange(6, dtype=np.uint64).reshape(3, 2).T, np.arange(3, dtype=">i4"),
    np.arange(10, dtype=np.float16)[::3], np.array(7, np.int64), np.arange(4, dtype=np.uint32), np.array([[1j]])])
def test_arrays_of_any_kind_come_back(value, tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        writer.add("x", value)
    found = et.TensorBundleReader(tmp_path / "b")["x"]
    assert found.shape == value.shape and found.dtype == value.dtype.newbyteorder("=")
    assert np.array_equal(found, value)


def test_lists_and_strings_become_what_tensorflow_makes_of_them(tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        writer.add("float", [1.5, 2])
        writer.add("int", 3)
        writer.add("bool", [True])
        writer.add("text", "naïve")
        writer.add("texts", [["a", b"\x00\xff"], ["", "d"]])
    reader = et.TensorBundleReader(tmp_path / "b")
    assert {key: reader.describe(key).dtype for key in reader} == {
        "float": "float32", "int": "int32", "bool": "bool", "text": "string", "texts": "string"}
    assert reader["text"].item() == "naïve".encode()
    assert reader["texts"].tolist() == [[b"a", b"\x00\xff"], [b"", b"d"]]


def test_the_writer_refuses(tmp_path):
    writer = et.TensorBundleWriter(tmp_path / "b")
    for value, error, text in [(np.array(["2026"], "M8[Y]"), TypeError, r"arrays of datetime64\[Y\] are not written"),
                               ([1, None], TypeError, "must be str or bytes, got int"),
                               (np.longdouble(1), TypeError, "are not written"),
                               ([[1], [2, 3]], ValueError, "^tensor 'x' must be an array, got list of uneven lengths$")]:
        with pytest.raises(error, match=text):
            writer.add("x", value)
    writer.add_slice("t", ARRAY[:2], np.s_[:2], (6, 4))
    for value, key, shape, text in [(ARRAY[:2], np.s_[1:3], (6, 4), "Overlapping slices"),
                                    (ARRAY[:1], np.s_[2:4], (6, 4), r"cannot have an array of shape \(1, 4\)"),
                                    (ARRAY[:2], np.s_[2:4], (7, 4), "slices must be of one tensor"),
                                    (ARRAY[2:2], np.s_[2:2], (6, 4), "positive length")]:
        with pytest.raises(ValueError, match=text):
            writer.add_slice("t", value, key, shape)
    with pytest.raises(ValueError, match="duplicate key"):
        writer.add("t", ARRAY)
    writer.add_slice("t", ARRAY[2:], np.s_[2:, :], (6, 4))
    writer.finish()
    with pytest.raises(RuntimeError, match="closed"):
        writer.add("y", 1)
    assert np.array_equal(et.TensorBundleReader(tmp_path / "b")["t"], ARRAY)


def test_a_block_that_throws_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with et.TensorBundleWriter(tmp_path / "b") as writer:
            writer.add("x", 1.0)
            1 / 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match="closed"):
        writer.finish()


def test_variables_go_into_a_checkpoint_and_into_other_components(tmp_path):
    half, scalar = ARRAY[:, 0].astype(np.float16), et.Variable(7, dtype="int64")
    et.save_tensor_bundle(tmp_path / "ckpt-1", {"a.b/c": components(ARRAY, [1, 5]), "n": scalar,
                                                "h": components(half, [0, 2, 4])})
    et.write_bundle_state(tmp_path, "ckpt-1")
    prefix = et.latest_bundle(tmp_path)
    assert prefix == tmp_path / "ckpt-1" and et.latest_bundle(tmp_path.parent) is None
    reader = et.TensorBundleReader(prefix)
    assert reader.keys() == ["_CHECKPOINTABLE_OBJECT_GRAPH", "a..b.Sc" + SUFFIX, "h" + SUFFIX, "n" + SUFFIX,
                             "save_counter" + SUFFIX]
    table, n, h = components(0 * ARRAY, [2, 2, 2]), et.Variable(0, dtype="int64"), components(0 * half, [6])
    et.restore_tensor_bundle(prefix, {"a.b/c": table, "n": n, "h": h})
    assert np.array_equal(table, ARRAY) and n.numpy() == 7 and np.array_equal(h, half)
    one = et.Variable(0 * ARRAY)
    reader.restore({"a..b.Sc" + SUFFIX: one})
    assert np.array_equal(one, ARRAY)
    with pytest.raises(ValueError, match=r"shape \[6\] does not match the shape stored in checkpoint, \[6, 4\]"):
        reader.restore({"n" + SUFFIX: n, "a..b.Sc" + SUFFIX: et.Variable(np.zeros(6, np.float32))})
    with pytest.raises(TypeError, match="'n' must be a Variable or a ShardedVariable, got int"):
        et.save_tensor_bundle(tmp_path / "x", {"n": 3})


def test_tables_of_an_engine_go_into_a_checkpoint(tmp_path):
    engine = et.Embedding(et.FeatureConfig(et.TableConfig(7, 2, initializer=et.Initializer.row_id(), name="films")),
                          et.Adagrad(0.1), et.EngineStrategy(hosts=3))
    engine.build(3)
    et.save_tensor_bundle(tmp_path / "b", {name: engine.sharded_variable(name)
                                           for name in ["films", "films/accumulators"]})
    reader = et.TensorBundleReader(tmp_path / "b")
    assert np.array_equal(reader["films" + SUFFIX], engine.sharded_variable("films"))
    assert len(reader.describe("films.Saccumulators" + SUFFIX).slices) == 3


def test_parts_are_merged(tmp_path):
    parts = [et.part_prefix(tmp_path / "c", i, 3) for i in range(3)]
    for i, part in enumerate(parts[:2]):
        with et.TensorBundleWriter(part, alignment=64) as writer:
            writer.add_slice("t", ARRAY[3 * i:3 * i + 3], np.s_[3 * i:3 * i + 3], ARRAY.shape)
    with pytest.raises(ValueError, match="has no index"):
        et.merge_tensor_bundles(parts, tmp_path / "c")
    et.merge_tensor_bundles(parts, tmp_path / "c", allow_missing=True)
    reader = et.TensorBundleReader(tmp_path / "c")
    assert reader.num_data_files == 2 and np.array_equal(reader["t"], ARRAY) and not parts[0].parent.exists()


def test_damage_names_file_tensor_and_place(tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        writer.add("t", ARRAY)
    data = tmp_path / "b.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-1] + b"\x00")
    reader = et.TensorBundleReader(tmp_path / "b")
    for read in [lambda: reader["t"], lambda: reader.read("t", np.s_[:1]), reader.verify]:
        with pytest.raises(et.DataLossError, match=r"b: tensor 't': Checksum does not match.*00001 from byte 0"):
            read()
    index = tmp_path / "b.index"
    index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(et.DataLossError, match="b.index: cannot read: not an sstable"):
        et.TensorBundleReader(tmp_path / "b")
    with pytest.raises(OSError, match="none.index"):
        et.TensorBundleReader(tmp_path / "none")


def masked_crc32c(data):
    """The checksum that a table's blocks end with."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def test_no_memory_is_taken_for_elements_that_no_file_has(tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        writer.add("t", np.ones((1,) * 8, np.uint8))
    index = tmp_path / "b.index"
    block = index.read_bytes()
    size = next(n for n in range(1, len(block)) if masked_crc32c(block[:n]) == block[n:n + 4])  # of the first block
    dims = b"\x12\x02\x08"  # and the length of an axis
    forged = block[:size].replace((dims + b"\x01") * 8, (dims + b"\x7f") * 8)
    index.write_bytes(forged + masked_crc32c(forged) + block[size + 4:])
    reader = et.TensorBundleReader(tmp_path / "b")
    assert reader.describe("t").shape == (127,) * 8
    for slices in (None, np.s_[:], np.s_[5:]):
        with pytest.raises(et.DataLossError, match="tensor 't': Invalid size in bundle entry: 1 bytes for"):
            reader.read("t", slices)


@pytest.mark.parametrize("part, parts", [(-1, 3), (3, 3), (0, 0), (0, -1)])
def test_parts_are_numbered_below_their_number(part, parts):
    with pytest.raises(ValueError, match=f"part_prefix: part must be 0 <= part < {parts}, the number of parts, got {part}$"):
        et.part_prefix("c", part, parts)
