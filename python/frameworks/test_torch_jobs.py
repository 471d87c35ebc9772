"""`python -m embertable train` under torchrun."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import embertable as et

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from test_jobs import expected, folder  # noqa: E402,F401


def start(ranks, *words):
    # All words behind the module are its own.
    path = str(pathlib.Path(et.__file__).parents[1])
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--rdzv-backend", "c10d",
                "--rdzv-endpoint", "localhost:0", "-m", "embertable"]
    return subprocess.Popen([*launcher, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=dict(os.environ, PYTHONPATH=path, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_give_what_one_process_gives(ranks, folder, expected, tmp_path):  # noqa: F811
    done = start(ranks, "train", folder / "job.toml", "--data", folder, "--out", tmp_path / "run", "--threads", 1)
    out, errors = done.communicate(timeout=200)
    assert done.returncode == 0, errors
    assert f"digest {expected['digest']}" in out
    assert (f"{ranks} hosts: host" in out) == (ranks > 1)


def test_a_job_that_does_not_fit_says_which_keys_to_set(folder):  # noqa: F811
    done = start(3, "train", folder / "job.toml", "--data", folder)
    _, errors = done.communicate(timeout=200)
    assert done.returncode != 0
    assert errors.count("embertable: host 0: strategy.replicas must be a multiple of the 3 processes") == 1, errors


def test_a_rank_that_is_killed_ends_the_others_with_status_75(folder, expected, tmp_path):  # noqa: F811
    run, longer = tmp_path / "run", {"schedule.epochs": 100}
    words = ["train", folder / "job.toml", "--data", folder, "--out", run, "--threads", 1, "--set", "schedule.epochs=100",
             "--deadline", 5, "--resume"]
    port = 29000 + os.getpid() % 1000
    ranks = []
    for rank in range(2):
        environment = dict(os.environ, PYTHONPATH=str(pathlib.Path(et.__file__).parents[1]), GLOO_SOCKET_IFNAME="lo",
                           OMP_NUM_THREADS="1", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        ranks.append(subprocess.Popen([sys.executable, "-m", "embertable", *map(str, words)], text=True, env=environment,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    try:
        end = time.monotonic() + 100
        while not list(run.glob("step_*")):
            assert time.monotonic() < end and ranks[0].poll() is None
            time.sleep(0.01)
        ranks[1].send_signal(signal.SIGKILL)
        _, errors = ranks[0].communicate(timeout=60)
    finally:
        for process in ranks:
            process.kill()
            process.communicate()
    assert ranks[0].returncode == 75 and "no answer of host 1" in errors, errors
    alone = et.train(folder / "job.toml", data=folder, set=longer)
    assert et.train(folder / "job.toml", run, data=folder, set=longer, resume=True)["digest"] == alone["digest"]
