"""Jobs trained from Python, and the command line that the package has."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import embertable as et
from test_exchange import boards, on_all

JOB = {
    "data": {"file": "ratings.csv", "label": "rating", "range": [1, 5]},
    "ids": {"user": {"column": "user"}, "item": {"column": "item"}},
    "tables": {name: {"dim": 8, "initializer": {"kind": "normal", "stddev": 0.1}} for name in ("user", "item")},
    "model": {"kind": "mf", "user": "user", "item": "item"},
    "optimizer": {"rule": "adagrad", "learning_rate": 0.05},
    "schedule": {"batch": 64, "epochs": 2},
    "strategy": {"replicas": 4},
    "split": {"by": ["user", "item"], "train_on_validation": True},
}
TEXT = """
data = { file = "ratings.csv", label = "rating", range = [1, 5] }
ids = { user = { column = "user" }, item = { column = "item" } }
[tables]
user = { dim = 8, initializer = { kind = "normal", stddev = 0.1 } }
item = { dim = 8, initializer = { kind = "normal", stddev = 0.1 } }
[model]
kind = "mf"
user = "user"
item = "item"
[optimizer]
rule = "adagrad"
learning_rate = 0.05
[schedule]
batch = 64
epochs = 2
[strategy]
replicas = 4
[split]
by = ["user", "item"]
train_on_validation = true
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    draw = random.Random(5)
    lines = [f"{draw.randrange(100)},{draw.randrange(60)},{draw.randint(1, 5)}\n" for _ in range(2000)]
    (folder / "ratings.csv").write_text("user,item,rating\n" + "".join(lines))
    (folder / "job.toml").write_text(TEXT)
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    return et.train(folder / "job.toml", data=folder, threads=1)


def command(*words, launcher=(), environment=None):
    path = str(pathlib.Path(et.__file__).parents[1])
    return subprocess.run([*launcher, sys.executable, "-m", "embertable", *map(str, words)], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=path, **(environment or {})), timeout=100)


def test_the_report_has_what_the_command_prints(folder, expected):
    done = command("train", folder / "job.toml", "--data", folder)
    assert done.returncode == 0 and f"digest {expected['digest']}" in done.stdout
    assert not expected["interrupted"] and expected["steps"] == 2 * -(-expected["steps"] // 2)
    assert set(expected["test"]) == {"rmse", "mae"} and 0 < expected["test"]["rmse"] < 3
    assert set(expected["seconds_in"]) == {"fill", "engine", "gradients"}
    assert "waited_seconds" not in expected and "saved" not in expected


def test_the_data_are_beside_the_job(folder, expected, monkeypatch):
    assert et.train(folder / "job.toml")["digest"] == expected["digest"]
    monkeypatch.chdir(folder)
    assert et.train(JOB)["digest"] == et.train("job.toml")["digest"] == expected["digest"]


class Frame:
    """As much of a pandas frame as is asked for."""

    def __init__(self, path):
        self.text = path.read_text()

    def to_csv(self, path, index):
        assert index is False
        pathlib.Path(path).write_text(self.text)


def test_a_frame_is_data(folder, expected, tmp_path):
    frame = Frame(folder / "ratings.csv")
    done = et.train({**JOB, "data": {**JOB["data"], "file": "other.csv"}}, tmp_path / "run", data=frame)
    assert done["digest"] == expected["digest"]
    assert et.evaluate(tmp_path / "run", data=frame)["rmse"] == expected["test"]["rmse"]
    scores = et.predict(tmp_path / "run", frame)
    assert list(scores) == ["line", "user", "item", "prediction", "unseen"] and len(scores["line"]) == 2000
    with pytest.raises(OSError, match="cannot open"):
        et.evaluate(tmp_path / "run")


def test_runs_are_measured_scored_and_compared_as_by_the_command(folder, expected, tmp_path):
    run = tmp_path / "run"
    et.train(folder / "job.toml", run)
    measured = et.evaluate(run)
    assert {name: measured[name] for name in expected["test"]} == expected["test"]
    assert (measured["part"], measured["step"]) == ("test", expected["steps"])
    shown = json.loads(command("eval", run, "--part", "training", "--json").stdout)
    assert et.evaluate(run, part="training", threads=1) == shown
    with pytest.raises(ValueError, match="evaluate: part must be 'test', 'validation' or 'training', got 'tests'"):
        et.evaluate(run, part="tests")

    rows = tmp_path / "rows.csv"
    rows.write_text("user,item,rating\n1,2,\n1,3,\n999,3,\n")
    scores = et.predict(run, rows)
    lines = command("predict", run, rows).stdout.splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == [str(line) for line in scores["line"]]
    assert [np.float32(line.split(",")[3]) for line in lines] == list(scores["prediction"])
    assert scores["user"].tolist() == [1, 1, 999] and scores["item"].dtype == np.int64
    assert list(et.predict(run, rows, ids=False, copy=["rating"])) == ["line", "rating", "prediction", "unseen"]
    assert et.predict(run, rows, copy="rating")["rating"] == ["", "", ""]
    best = et.predict(run, rows, k=2)
    assert best["user"].tolist() == [1, 1, 999, 999] and best["item"].dtype == np.int64 and best["rank"].tolist() == [1, 2, 1, 2]
    rows.write_text("user,item,rating\n1,2,\nx,3,\n999,3,\n")
    assert len(et.predict(run, rows, skip_bad="40%")["line"]) == 2
    with pytest.raises(ValueError, match="of 3 records 1 are broken, more than 20%"):
        et.predict(run, rows, skip_bad="20%")
    assert scores["prediction"].dtype == np.float32 and list(scores["unseen"]) == [0, 0, 1]
    with pytest.raises(ValueError, match="predict: k must be from 1 to 10000, got 0"):
        et.predict(run, rows, k=0)
    for given, name in ({"ids": False}, "ids=False"), ({"copy": "rating"}, "copy"), ({"has_label": False}, "has_label=False"):
        with pytest.raises(ValueError, match=f"^{name} must be of scores of records"):
            et.predict(run, rows, k=2, **given)
    rows.write_text("user,item,rating\n")
    assert [(name, column.dtype, len(column)) for name, column in et.predict(run, rows).items()] == \
        [(name, np.float32 if name == "prediction" else np.int64, 0) for name in scores]

    near = et.neighbors(run, "item", 7, k=3)
    told = [json.loads(line) for line in command("neighbors", run, "--table", "item", "--key", 7, "--k", 3,
                                                 "--json").stdout.splitlines()]
    assert near == told[1:] and len(near) == 3
    assert et.neighbors(run, "item", row=told[0]["row"], k=3) == near == et.neighbors(run, "item", "7", k=3)
    with pytest.raises(ValueError, match="one of key, name and row must be given, got 2"):
        et.neighbors(run, "item", 7, row=1)
    with pytest.raises(KeyError, match="no key '12345'"):
        et.neighbors(run, "item", 12345)
    with pytest.raises(IndexError, match="a row must be from 0"):
        et.neighbors(run, "item", row=10**6)


def test_progress_is_what_the_command_prints(folder, expected, tmp_path):
    told = []
    et.train(folder / "job.toml", tmp_path / "run", progress=told.append)
    printed = [json.loads(line) for line in command("train", folder / "job.toml", "--json").stdout.splitlines()]
    assert [event["event"] for event in told if event["event"] != "saved"] == [event["event"] for event in printed]
    epochs = [event["training"] for event in told if event["event"] == "epoch"]
    assert epochs == [event["training"] for event in printed if event["event"] == "epoch"]
    assert told[-1]["digest"] == expected["digest"]

    def fail(event):
        if event["event"] == "epoch":
            raise LookupError("enough")
    with pytest.raises(LookupError, match="enough"):
        et.train(folder / "job.toml", progress=fail)
    with pytest.raises(TypeError, match="train: progress"):
        et.train(folder / "job.toml", progress=5)


def test_a_sweep_is_that_of_the_command(folder, expected, tmp_path):
    grid = {"optimizer.learning_rate": [0.05, 0.001], "schedule.batch": [64]}
    events = []
    found = et.sweep(folder / "job.toml", tmp_path / "a", grid, progress=events.append)
    done = command("sweep", folder / "job.toml", "--out", tmp_path / "b", "--grid", "optimizer.learning_rate=0.05,0.001",
                   "--grid", "schedule.batch=64", "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["digest"] for run in found["runs"]] == [run["digest"] for run in told[-2]["runs"]]
    assert found["runs"][0]["set"] == {"optimizer.learning_rate": 0.05, "schedule.batch": 64}
    assert et.train(folder / "job.toml", set=found["runs"][0]["set"])["test"] == found["test"]
    assert found["digest"] == told[-1]["digest"] == expected["digest"] and found["test"] == expected["test"]
    assert not found["interrupted"] and [event["event"] for event in events][::5] == ["start", "done"]
    assert et.evaluate(tmp_path / "a" / "best")["rmse"] == expected["test"]["rmse"]
    again = et.sweep(folder / "job.toml", tmp_path / "a", grid, resume=True, test=False)
    assert again["runs"] == found["runs"] and "test" not in again


def test_a_sweep_takes_numbers_of_numpy_and_trains_each_meaning_once(folder, tmp_path):
    grid = {"optimizer.learning_rate": np.array([0.05, 0.01]), "tables.user.dim": [np.int64(8), 8.0], "model": [JOB["model"]],
            "schedule.epochs": range(1, 2)}
    with pytest.raises(ValueError, match="tables.user.dim"):
        et.sweep(JOB, tmp_path / "a", grid, data=folder)
    grid["tables.user.dim"] = [np.int64(8)]
    found = et.sweep({**JOB, "seed": np.uint64(7)}, tmp_path / "a", grid, data=folder, test=False)
    assert {run["set"]["optimizer.learning_rate"] for run in found["runs"]} == {0.05, 0.01}
    assert all(run["set"]["tables.user.dim"] == 8 for run in found["runs"])
    done = command("sweep", folder / "job.toml", "--out", tmp_path / "b", "--grid", "optimizer.learning_rate=0.05,0.050,5e-2",
                   "--set", "schedule.epochs=1", "--no-test", "--json")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told[0]["runs"] == 1 and [run["set"]["optimizer.learning_rate"] for run in told[-1]["runs"]] == ["0.05"]


@pytest.mark.parametrize("grid, error, text", [
    ({"seed": "12"}, TypeError, r"sweep: grid\['seed'\] must be a list of values, got str"),
    ({"seed": 5}, TypeError, r"sweep: grid\['seed'\] must be a list of values, got int"),
    ({"seed": [object()]}, TypeError, "sweep: seed must be a number, bool, text, list or dict, got object"),
    ({"seed": (1, 2, 3)}, ValueError, r"sweep: grid\['seed'\] must be a tuple of two numbers for a range, got 3")])
def test_what_is_wrong_with_a_grid(folder, tmp_path, grid, error, text):
    with pytest.raises(error, match=text):
        et.sweep(JOB, tmp_path / "a", grid, data=folder, random=1)


def test_a_sweep_goes_on_with_a_frame(folder, tmp_path):
    """The frame's file has another path each time: its content counts."""
    grid, events = {"seed": [1, 2]}, []
    job = {**JOB, "schedule": {"batch": 64, "epochs": 1}}
    first = et.sweep(job, tmp_path / "a", grid, data=Frame(folder / "ratings.csv"), test=False)
    again = et.sweep(job, tmp_path / "a", grid, data=Frame(folder / "ratings.csv"), test=False, resume=True, progress=events.append)
    assert events[0]["finished"] == 2 and again["runs"] == first["runs"]
    other = Frame(folder / "ratings.csv")
    other.text = "".join(other.text.splitlines(keepends=True)[:-1])
    et.sweep(job, tmp_path / "a", grid, data=other, test=False, resume=True, progress=events.append)
    assert [event["finished"] for event in events if event["event"] == "start"] == [2, 0]


def test_a_sweep_draws_from_ranges(folder, tmp_path):
    found = et.sweep(JOB, tmp_path / "a", {"optimizer.learning_rate": (0.01, 0.1), "optimizer.rule": ["sgd", "adagrad"]},
                     random=3, data=folder, test=False)
    assert len(found["runs"]) == 3
    assert all(0.01 <= run["set"]["optimizer.learning_rate"] <= 0.1 for run in found["runs"])
    with pytest.raises(ValueError, match="which holds a sweep"):
        et.sweep(JOB, tmp_path / "a", {"seed": [1]}, data=folder)
    with pytest.raises(ValueError, match="sweep: random must be at least 1, got 0"):
        et.sweep(JOB, tmp_path / "b", {"seed": [1]}, random=0, data=folder)
    with pytest.raises(KeyError, match="stop"):
        et.sweep(JOB, tmp_path / "c", {"seed": [1, 2]}, data=folder, progress=lambda event: {}["stop"])


def test_a_run_is_overwritten_if_asked(folder, expected, tmp_path):
    et.train(folder / "job.toml", tmp_path / "run", set={"seed": 5})
    with pytest.raises(ValueError, match=", overwrite removes it"):
        et.train(folder / "job.toml", tmp_path / "run")
    assert et.train(folder / "job.toml", tmp_path / "run", overwrite=True)["digest"] == expected["digest"]
    with pytest.raises(ValueError, match="out must be a directory where overwrite is true, got none"):
        et.train(folder / "job.toml", overwrite=True)


def test_a_job_may_be_a_dict(folder, expected):
    assert et.train(JOB, data=folder)["digest"] == expected["digest"]
    with pytest.raises(TypeError, match="train: model.kind must be a number, bool, text, list or dict, got object"):
        et.train({**JOB, "model": {"kind": object()}}, data=folder)


def test_keys_are_set_and_runs_resumed(folder, expected, tmp_path):
    half = et.train(folder / "job.toml", tmp_path / "run", data=folder, set={"schedule.epochs": 1})
    assert half["digest"] != expected["digest"] and pathlib.Path(half["saved"]).parent == tmp_path / "run"
    with pytest.raises(ValueError, match="holds a run"):
        et.train(folder / "job.toml", tmp_path / "run", data=folder)
    for directory in ("run", "other", "other"):
        whole = et.train(folder / "job.toml", tmp_path / directory, data=folder, resume=True)
        assert whole["digest"] == expected["digest"]


@pytest.mark.parametrize("kind", ["threads2", "board2", "board4"])
def test_hosts_give_what_one_process_gives(folder, expected, kind, tmp_path):
    hosts = int(kind[-1])
    exchanges = et.Exchange.threads(hosts) if kind.startswith("threads") else boards(hosts)
    train = lambda exchange: et.train(folder / "job.toml", tmp_path / "run", data=folder, threads=1, exchange=exchange)
    for done in on_all(exchanges, train):
        assert done["digest"] == expected["digest"] and done["test"] == expected["test"]
        assert len(done["waited_seconds"]) == hosts and done["slowest_host"] in range(hosts)


def test_what_fails_on_one_host_fails_on_all(folder):
    def train(exchange):
        with pytest.raises((ValueError, et.GivenUp), match="the nearest is 'epochs'") as raised:
            et.train(folder / "job.toml", data=folder, exchange=exchange,
                     set={"schedule.epoch": 1} if exchange.host else {})
        return raised.type

    assert on_all(boards(2), train) == [et.GivenUp, ValueError]
    assert on_all(et.Exchange.threads(2), train) == [et.GivenUp, ValueError]


@pytest.mark.parametrize("make, error", [
    (lambda: et.train("nowhere.toml"), "OSError: 'nowhere.toml': cannot open"),
    (lambda: et.train(JOB, exchange="gloo"), "ValueError: train: exchange must be 'mpi', a communicator or an Exchange"),
    (lambda: et.train(JOB, exchange=3), "TypeError: exchange must be an Exchange, got int"),
    (lambda: et.train(JOB, threads=1.5), "TypeError: train: threads must be an integer, got 1.5"),
    (lambda: et.train(JOB, resume=True), "ValueError: train: out must be a directory where resume is true, got none"),
    (lambda: et.train(JOB, threads=-1), "ValueError: train: threads must be 0..1024, got -1"),
    (lambda: et.train(JOB, deadline=-1), "ValueError: train: deadline must be above 0, got -1"),
    (lambda: et.train(JOB, deadline=float("nan")), "ValueError: train: deadline must be above 0, got nan"),
    (lambda: et.train(JOB, skip_bad=-1), "ValueError: train: skip_bad must be >= 0, or a share as '1%', got -1"),
    (lambda: et.train(JOB, ""), "ValueError: train: out must not be empty; None trains without saving"),
    (lambda: et.predict("run", {"user": [1]}), "TypeError: predict: rows must be the path of a file or a pandas frame, got dict"),
    (lambda: et.export_tables("run", "", "npy"), "ValueError: export_tables: out must not be empty"),
    (lambda: et.train(JOB, skip_bad="x"), "ValueError: train: skip_bad must be a number of records from 0, or a share of them as 1%, got 'x'"),
    (lambda: et.sweep(JOB, "out", {"seed": [1]}, threads=-1), "ValueError: sweep: threads must be 0..1024, got -1"),
    (lambda: et.sweep(JOB, "out", {"seed": [1]}, jobs=1025), "ValueError: sweep: jobs must be 0..1024, got 1025"),
    (lambda: et.sweep(JOB, "out", {"seed": [1]}, skip_bad=-1), "ValueError: sweep: skip_bad must be >= 0"),
    (lambda: et.evaluate("run", threads=-1), "ValueError: evaluate: threads must be 0..1024, got -1"),
    (lambda: et.evaluate("run", skip_bad=-1), "ValueError: evaluate: skip_bad must be >= 0"),
    (lambda: et.predict("run", "rows", threads=-1), "ValueError: predict: threads must be 0..1024, got -1"),
    (lambda: et.predict("run", "rows", skip_bad=-1), "ValueError: predict: skip_bad must be >= 0"),
    (lambda: et.train(JOB, exchange=et.Exchange.local(), deadline=3), "ValueError: train: deadline is of exchange='mpi'"),
    (lambda: et.train(JOB, set={"schedule.epoch": 3}), r"ValueError: set\[\"schedule.epoch\"\]: schedule has no key 'epoch'"),
    (lambda: et.train(JOB, set={"model.dims": 3}), r"ValueError: set\[\"model.dims\"\]: model has no key 'dims'; the nearest is 'dim'"),
    (lambda: et.train(JOB, set="seed=1"), "TypeError: train: set must be a dict by key, got 'seed=1'"),
    (lambda: et.sweep(JOB, "out", {"seed": [1]}, set=["seed=1"]), r"TypeError: sweep: set must be a dict by key, got \['seed=1'\]"),
    (lambda: et.sweep(JOB, "out", "seed"), "TypeError: sweep: grid must be a dict by key, got 'seed'"),
    (lambda: et.predict("run", "rows", copy=b"ab"), "TypeError: predict: copy must be a column or a list of columns, .* got b'ab'"),
    (lambda: et.predict("run", "rows", copy=None), "TypeError: predict: copy must be a column or a list of columns, .* got None"),
    (lambda: et.predict("run", "rows", copy=[["a"]]), r"TypeError: predict: copy must be a column or a list .* got \[\['a'\]\]"),
])
def test_bad_arguments(make, error):
    kind, _, text = error.partition(": ")
    with pytest.raises(Exception, match=text) as raised:
        make()
    assert issubclass(raised.type, getattr(__builtins__, kind, None) or __builtins__[kind])


def test_ctrl_c_ends_a_run_that_can_be_resumed(folder, expected, tmp_path):
    endless = {"schedule.epochs": 1_000_000}

    def interrupt():
        while not (tmp_path / "run").exists() or not list((tmp_path / "run").glob("step_*")):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        et.train(folder / "job.toml", tmp_path / "run", data=folder, set=endless)
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert et.find_checkpoint(tmp_path / "run")


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun, which ./dev test installs")
def test_the_command_on_processes_of_mpi(folder, expected, tmp_path):
    launched = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    done = command("train", folder / "job.toml", "--data", folder, "--threads", 1, "--out", tmp_path / "run",
                   launcher=["mpirun", "-n", "2"], environment=launched)
    assert done.returncode == 0, done.stderr
    assert f"digest {expected['digest']}" in done.stdout and "2 hosts: host" in done.stdout


def test_the_package_has_the_whole_command_line(folder, tmp_path):
    assert command("--version").stdout == f"embertable {et.__version__}\n"
    wrong = command("trai", "job.toml")
    assert wrong.returncode == 2 and wrong.stderr.startswith("embertable: the command must be one of ")
    wrong = command("train", folder / "job.toml", "--data", folder, "--set", "schedule.epoch=3")
    assert wrong.returncode == 1 and "the nearest is 'epochs'" in wrong.stderr
    made = command("synth", tmp_path / "demo", "--records", 100, "--table", "user:20", "--gzip")
    assert made.returncode == 0, made.stderr
    again = command("synth", tmp_path / "demo", "--records", 1, "--table", "user:20", "--gzip")
    assert again.returncode == 1 and "demo.tsv.gz' exists; --force replaces it" in again.stderr
    again = command("synth", tmp_path / "demo", "--records", 100, "--table", "user:20", "--gzip", "--force")
    assert again.stdout == made.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"demo.tsv.gz", "demo.toml", "demo.json"}
    et.train(folder / "job.toml", tmp_path / "run", data=folder)
    assert command("verify", tmp_path / "run").returncode == 0


def test_a_run_serves_any_number_of_samples(tmp_path):
    """Also lists, as many as the batch has samples or a divisor of them."""
    draw = random.Random(6)
    rows = [f"{draw.randrange(2)},{'|'.join(str(draw.randrange(20)) for _ in range(draw.randrange(4)))}" for _ in range(200)]
    (tmp_path / "tags.csv").write_text("label,tags\n" + "\n".join(rows) + "\n")
    job = {"data": {"file": "tags.csv", "label": "label"}, "ids": {"tag": {"column": "tags", "separator": "|"}},
           "model": {"kind": "ctr", "hidden": [4]}, "schedule": {"batch": 12}}
    et.train(job, tmp_path / "run", data=tmp_path)
    serving = et.ServingEmbedding.open(tmp_path / "run")
    feature = next(name for name, one in serving.feature_config.items() if one.table.dim > 1)
    table = serving.feature_config[feature].table.name
    lists = [[5, 6], [7], [], [8, 9, 10]]
    for count in (1, 2, 3, 4, 12):
        given = (lists * 3)[:count]
        found = serving({feature: et.RaggedIds.from_rows(given)})[feature]
        means = [serving.read_rows(table, np.array(ids, np.int64)).mean(0) if ids else np.zeros(found.shape[1]) for ids in given]
        assert np.allclose(found, means, atol=1e-6)


def test_an_older_step_is_not_taken_in_silence(folder, tmp_path):
    run = tmp_path / "run"
    et.train(JOB, run, data=folder, set={"checkpoint.every": "epoch"})
    newest = max(run.glob("step_*"))
    (newest / "manifest.json").write_text("{")
    rows = tmp_path / "rows.csv"
    rows.write_text("user,item,rating\n1,2,\n")
    for call, read in (("open", lambda: et.ServingEmbedding.open(run)), ("predict", lambda: et.predict(run, rows)),
                       ("neighbors", lambda: et.neighbors(run, "item", key=1)),
                       ("export_tables", lambda: et.export_tables(run, tmp_path / "out", "npy"))):
        with pytest.warns(UserWarning, match=f"{call}: takes an older step; skipped: .*{newest.name}"):
            read()
    for older in run.glob("step_*"):
        (older / "manifest.json").write_text("{")
    with pytest.raises(et.DataLossError, match="there is no checkpoint; .*manifest.json"):
        et.ServingEmbedding.open(run)


def test_settings_of_a_sweep_are_taken_by_train(folder, tmp_path):
    grid = {"tables.user.initializer": [{"kind": "zeros"}], "optimizer.clip_gradient_max": [float("inf"), 1.0],
            "optimizer.rule": ["sgd"], "seed": [np.int64(3)]}
    found = et.sweep(JOB, tmp_path / "a", grid, data=folder, test=False)
    assert {run["set"]["optimizer.clip_gradient_max"] for run in found["runs"]} == {float("inf"), 1.0}
    for run in found["runs"]:
        assert run["set"]["tables.user.initializer"] == {"kind": "zeros"} and run["set"]["optimizer.rule"] == "sgd"
        et.train(JOB, set=run["set"], data=folder)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: et.train(None), TypeError, "train: job must be the path of a job file or a dict, got None"),
    (lambda: et.train(["a"]), TypeError, "train: job must be the path of a job file or a dict, got list"),
    (lambda: et.train({}, threads=None), TypeError, "train: threads must be an integer, got None"),
    (lambda: et.train({}, data=3), TypeError, "train: data must be the path of a folder, a pandas frame or None, got int"),
    (lambda: et.train({}, 3), TypeError, "train: out must be a path, got int"),
    (lambda: et.train({}, resume="no"), TypeError, "train: resume must be True or False, got 'no'"),
    (lambda: et.evaluate(None), TypeError, "evaluate: run must be a path, got None"),
    (lambda: et.evaluate("run", data=3), TypeError, "evaluate: data must be"),
    (lambda: et.predict("run", "rows", has_label="no"), TypeError, "predict: has_label must be True or False, got 'no'"),
    (lambda: et.predict(None, "rows"), TypeError, "predict: run must be a path, got None"),
    (lambda: et.sweep({}, "runs", {"a": [1]}, seed=-1), ValueError, "sweep: seed must be >= 0, got -1"),
    (lambda: et.sweep({}, None, {"a": [1]}), TypeError, "sweep: out must be a path, got None"),
    (lambda: et.doctor(3), TypeError, "doctor: folder must be a path, got int")])
def test_arguments_are_named(call, kind, text):
    with pytest.raises(kind, match=f"^{text}"):
        call()
