"""What is saved comes back: tables, slots, the caller's state and the id maps, in one commit."""

import collections
import contextlib
import os
import resource
import shutil
import signal
import sys
import threading

import numpy as np
import pytest

import embertable as et
from fixture import VIDEO_ROWS, batch, batches, engine, features, train, user, video


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
    (et.CallerState(tensors={"t": [[1], [2, 3]]}), ValueError, "^tensor 't' must be an array, got list of uneven lengths$"),
    (et.CallerState(blobs={"b": "text"}), TypeError, "'b'.*bytes"),
    (et.CallerState(json={1, 2}), TypeError, "set"),
])
def test_what_cannot_be_saved_is_refused(tmp_path, state, error, text):
    with pytest.raises(error, match=text):
        trained().save(tmp_path, state)
    assert not list(tmp_path.glob("step*"))


@pytest.mark.parametrize("named", ["ab", [1], 3])
def test_a_state_takes_tensors_and_blobs_by_name(named):
    for what in "tensors", "blobs":
        with pytest.raises(TypeError, match=f"{what} must be a dict by name or None, got {type(named).__name__}"):
            et.CallerState(**{what: named})
    assert et.CallerState(tensors=collections.OrderedDict(w=np.ones(2))).tensors.keys() == {"w"}


def test_damage_is_an_error_that_names_the_file(tmp_path):
    step = trained().save(tmp_path)
    file = next(step.glob("*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(et.DataLossError, match=file.name):
        et.verify_checkpoint(step)
    (tmp_path / "empty").mkdir()
    for none in ("nothing", "empty"):
        with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
            et.find_checkpoint(tmp_path / none)
        with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
            trained().restore(tmp_path / none)


@pytest.mark.parametrize("name", ["manifest.json", "*.safetensors"])
def test_a_run_is_verified_by_its_highest_step(tmp_path, name):
    embedding = trained()
    embedding.save(tmp_path)
    train(embedding, batch(), np.copy)
    step = embedding.save(tmp_path)
    et.verify_checkpoint(tmp_path)
    file = next(step.glob(name))
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(et.DataLossError, match=file.name):
        et.verify_checkpoint(tmp_path)
    assert len(embedding.restore(tmp_path).skipped) == 1
    shutil.rmtree(next(other for other in tmp_path.glob("step_*") if other != step))
    with pytest.raises(et.DataLossError, match=file.name):  # there is no other
        et.verify_checkpoint(tmp_path)


def test_an_engine_that_is_not_built_cannot_be_saved(tmp_path):
    with pytest.raises(RuntimeError):
        engine().save(tmp_path)


@pytest.mark.parametrize("hosts, built", [(1, False), (2, True)])
def test_a_restored_engine_goes_on_as_if_nothing_had_been(tmp_path, hosts, built):
    """Case 105: the same bits on another number of hosts."""
    embedding = engine(2, 1, optimizer=et.Adagrad(0.1))
    train(embedding, batches(2), np.copy)
    builder = et.IdMapBuilder("string")
    builder.add(["a", "b"])
    embedding.save(tmp_path, et.CallerState([1, 2]), {"video": builder.build()})
    train(embedding, batches(2), np.copy)
    other = engine(2, hosts, optimizer=et.Adagrad(0.1))
    if built:
        other.build(2)
    report = other.restore(tmp_path)
    assert (report.step, report.caller.json, report.directory) == (1, [1, 2], et.find_checkpoint(tmp_path))
    assert report.id_maps == {"video": builder.build()}
    assert (report.missing, report.extra, report.mismatched, report.skipped) == ([], [], [], [])
    assert other.step == 1
    train(other, batches(2), np.copy)
    assert other.digest() == embedding.digest()


def test_slots_are_reported_not_invented(tmp_path):
    """Case 107."""
    embedding = trained()
    embedding.save(tmp_path)
    plain = et.Embedding(features())
    report = plain.restore(tmp_path)
    assert sorted(report.extra) == ["user/accumulators", "video/accumulators"]
    plain.build()
    assert np.array_equal(plain.read_rows("video", range(8)), embedding.read_rows("video", range(8)))
    sgd = engine()
    sgd.build(2)
    sgd.save(tmp_path / "sgd")
    adagrad = engine(optimizer=et.Adagrad(0.1))
    adagrad.build(2)
    assert sorted(adagrad.restore(tmp_path / "sgd").missing) == ["user/accumulators", "video/accumulators"]
    assert adagrad.read_rows("video/accumulators", 0).tolist() == [np.float32(0.1)] * 4


def test_a_part_of_the_tables(tmp_path):
    embedding = trained()
    embedding.save(tmp_path)
    other = engine(optimizer=et.Adagrad(0.1))
    other.build(2)
    other.restore(tmp_path, tables=["user"])
    assert np.array_equal(other.read_rows("user", range(16)), embedding.read_rows("user", range(16)))
    assert np.array_equal(other.read_rows("video", range(8)), VIDEO_ROWS) and other.step == 0
    with pytest.raises(KeyError, match="nobody"):
        other.restore(tmp_path, tables=["nobody"])
    for bad, error in (("user", TypeError), ([], ValueError), ([1], TypeError)):
        with pytest.raises(error, match="tables"):
            other.restore(tmp_path, tables=bad)
    larger = et.Embedding(features(video(vocabulary_size=9)))
    with pytest.raises(ValueError, match="video"):
        larger.restore(tmp_path)
    assert len(larger.restore(tmp_path, partial=True).mismatched) == 1
    report = larger.restore(tmp_path, grow=["video"])
    assert report.grown == ["video"] and report.mismatched == []
    assert np.array_equal(larger.read_rows("video", range(8)), embedding.read_rows("video", range(8)))
    assert np.isfinite(larger.read_rows("video", [8])).all()
    with pytest.raises(TypeError, match="grow must be a list of names"):
        larger.restore(tmp_path, grow="video")


def test_a_run_is_saved_to_by_one_at_a_time(tmp_path):
    embedding = engine()
    with et.CheckpointRun(tmp_path / "run") as run:
        with pytest.raises(RuntimeError):
            et.CheckpointRun(tmp_path / "run")
        for _ in range(3):
            train(embedding, batch(), np.copy)
            embedding.save(run)
        assert run.steps() == [1, 2, 3] and run.directory == tmp_path / "run"
        run.keep(2)
        assert run.steps() == [2, 3]
        with pytest.raises(ValueError):
            run.keep(0)
    with pytest.raises(RuntimeError, match="closed"):
        embedding.save(run)
    with pytest.raises(TypeError, match="int"):
        embedding.save(5)
    assert et.CheckpointRun(tmp_path / "run").steps() == [2, 3]


@contextlib.contextmanager
def interrupted(after=1):
    """Ctrl-C, so to speak, in a call that asks for signals, which must end by it: the signal of this number raises.

    A call that never asks does its work and has one signal when it returns. Where nothing shows that the work was not
    done, the third signal raises. A thread that computes keeps the interpreter for 20 ms at a time, so that the call waits
    at each question, and time enough for three passes on a fast machine too; on a busy one there may be fewer.
    """
    signals = 0
    done = False

    def interrupt(*_):
        nonlocal signals
        signals += 1
        if signals == after:
            raise KeyboardInterrupt

    def compute():
        while not done:
            pass

    before = signal.signal(signal.SIGALRM, interrupt)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.02)
    computing = threading.Thread(target=compute)
    computing.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            yield
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        done = True
        sys.setswitchinterval(interval)
        computing.join()


def test_ctrl_c_ends_long_calls_before_they_change_anything(tmp_path):
    table = et.TableConfig(600_000, 64, et.Initializer.zeros(), name="t", combiner="sum")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(0.1), et.EngineStrategy(threads=1))
    embedding.build(1)
    (tmp_path / "run").mkdir()
    (tmp_path / "variables").mkdir()
    with interrupted():
        embedding.save(tmp_path / "run")
    assert [name for name in os.listdir(tmp_path / "run") if name != ".lock"] == []
    step = embedding.save(tmp_path / "run")
    embedding.assign_rows("t", [599_999], np.ones((1, 64), np.float32))
    with interrupted():
        embedding.restore(step)
    assert embedding.read_rows("t", [599_999])[0, 0] == 1
    with interrupted(after=3):
        embedding.digest()
    with interrupted(after=3):
        et.digest_checkpoint(step)
    et.export_tables(step, tmp_path / "npy", "npy")
    with interrupted():
        et.import_tables(tmp_path / "npy", tmp_path / "imported", "npy")
    with pytest.raises(OSError):
        et.find_checkpoint(tmp_path / "imported")
    variable = et.Variable(np.zeros((600_000, 64), np.float32))
    with interrupted():
        et.save_variables(tmp_path / "variables", 1, {"v": variable})
    assert [name for name in os.listdir(tmp_path / "variables") if name != ".lock"] == []
    embedding.restore(step)
    assert embedding.read_rows("t", [599_999])[0, 0] == 0


def test_rows_slots_and_the_step_may_be_assigned():
    """A rule that counts steps goes on as in the engine that they come from."""
    first, second = (engine(feature_config=features(video(), user()), optimizer=et.Optimizer("adamw", 0.1)) for _ in range(2))
    for embedding in (first, second):
        embedding.build(2)
    for step in range(3):
        first.enqueue(batch())
        first.apply_gradients(tuple(np.full_like(rows, step + 1.0) for rows in first.dequeue()))
    for table in first.tables:
        for name in [table.name, *(f"{table.name}/{slot.name}" for slot in table.slots)]:
            rows = np.arange(table.vocabulary_size)
            second.assign_rows(name, rows, first.read_rows(name, rows))
    second.assign_step(3)
    assert second.step == 3 and second.digest() == first.digest()
    for embedding in (first, second):
        embedding.enqueue(batch())
        embedding.apply_gradients(tuple(np.ones_like(rows) for rows in embedding.dequeue()))
    assert second.digest() == first.digest() and second.step == 4
    for step in -1, 2**62 + 1:
        with pytest.raises(ValueError, match=rf"assign_step: step must be 0 to 2\^62, got {step}"):
            second.assign_step(step)
    second.assign_step(2**62)
    assert second.step == 2**62
    with pytest.raises(RuntimeError):
        engine().assign_step(1)


def test_a_checkpoint_of_many_files_needs_few_of_them_open(tmp_path):
    features = {f"f{i}": et.FeatureConfig(et.TableConfig(4, 2, name=f"t{i}")) for i in range(300)}
    embedding = et.Embedding(features, et.SGD(0.1), et.EngineStrategy(threads=2))
    embedding.build({name: [1] for name in features})
    embedding.save(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (96, hard))
    try:
        embedding.restore(tmp_path)
        assert et.digest_checkpoint(tmp_path) == embedding.digest()
        et.ServingEmbedding.open(tmp_path, tables="map")
        et.verify_checkpoint(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_step_of_a_run_is_named_by_its_number(tmp_path):
    table = et.TableConfig(4, 2, et.Initializer.zeros(), name="t")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(1.0))
    embedding.build()
    steps = []
    for step in (0, 3, 7):
        embedding.assign_step(step)
        embedding.assign_rows("t", [0], np.full((1, 2), float(step)))
        steps.append(embedding.save(tmp_path / "run"))
    assert [et.find_checkpoint(tmp_path / "run", step=step) for step in (0, 3, 7)] == steps
    assert embedding.restore(tmp_path / "run", step=3).step == 3 and embedding.read_rows("t", [0]).tolist() == [[3.0, 3.0]]
    assert et.ServingEmbedding.open(tmp_path / "run", step=0).step == 0
    assert et.ServingEmbedding.open(tmp_path / "run").step == 7
    for call in (embedding.restore, et.ServingEmbedding.open, et.find_checkpoint):
        with pytest.raises(FileNotFoundError, match="step_000000000004"):
            call(tmp_path / "run", step=4)
        with pytest.raises(ValueError, match="step must be >= 0, got -1"):
            call(tmp_path / "run", step=-1)
