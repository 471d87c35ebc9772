"""What is saved comes back: tables, slots, the caller's state and the id maps, in one commit."""

import json

import numpy as np
import pytest

import embertable as et
from fixture import batch, each, engine, train


def trained():
    embedding = engine(optimizer=et.Adagrad(0.1))
    for _ in range(2):
        train(embedding, batch(), np.copy)
    return embedding


def test_a_saved_step_tells_what_is_in_it(tmp_path):
    embedding = trained()
    step = embedding.save(tmp_path / "run")
    assert step.parent == tmp_path / "run" and et.find_checkpoint(tmp_path / "run") == step
    assert et.digest_checkpoint(tmp_path / "run") == embedding.digest() == et.digest_checkpoint(str(step))
    et.verify_checkpoint(step)
    saved = et.read_saved_state(step)
    assert (saved.step, saved.caller.json, saved.caller.tensors, saved.caller.blobs) == (2, None, {}, {})


def test_the_callers_state_is_in_the_same_commit(tmp_path):
    tensors = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(7), "big": np.array([1, 2], ">i4"),
               "half": np.array([1.5], np.float16), "yes": np.array([True]), "none": np.zeros((0, 3))}
    state = et.CallerState({"epoch": 3, "rate": 0.1, "name": "ü"}, tensors, {"reader": b"\0\1"})
    builder = et.IdMapBuilder("string")
    builder.add(["a", "b"])
    trained().save(tmp_path, state, {"video": builder.build()})
    got = et.read_saved_state(tmp_path).caller
    assert got.json == state.json and got.blobs == {"reader": b"\0\1"}
    assert got.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert np.array_equal(got.tensors[name], tensor) and got.tensors[name].shape == tensor.shape
        assert got.tensors[name].dtype == tensor.dtype.newbyteorder("=")


@pytest.mark.parametrize("state, error, text", [
    ({"epoch": 3}, TypeError, "CallerState.*dict"),
    (et.CallerState(tensors={"t": ["text"]}), TypeError, "'t'.*str"),
    (et.CallerState(blobs={"b": "text"}), TypeError, "'b'.*bytes"),
    (et.CallerState(json={1, 2}), TypeError, "set"),
])
def test_what_cannot_be_saved_is_refused(tmp_path, state, error, text):
    with pytest.raises(error, match=text):
        trained().save(tmp_path, state)
    assert not list(tmp_path.glob("step*"))


def test_damage_is_an_error_that_names_the_file(tmp_path):
    step = trained().save(tmp_path)
    file = next(step.glob("*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(et.DataLossError, match=file.name):
        et.verify_checkpoint(step)
    with pytest.raises(OSError):
        et.find_checkpoint(tmp_path / "nothing")


def test_an_engine_that_is_not_built_cannot_be_saved(tmp_path):
    with pytest.raises(RuntimeError):
        engine().save(tmp_path)
