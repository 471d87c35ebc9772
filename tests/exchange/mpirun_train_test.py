"""`embertable train` under mpirun with two ranks. Skipped where there is no mpirun.

Usage: mpirun_train_test.py PROGRAM
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from small_jobs import write_small_jobs  # noqa: E402

SKIPPED = 77
OPTIONS = ["--set", "strategy.replicas=4", "--threads", "1", "--json"]


class Train:
    """The program with jobs of its own, alone or on two ranks."""

    def __init__(self, program, mpirun, folder):
        self.program, self.folder = program, folder
        version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
        self.is_open_mpi = "Open MPI" in version or "OpenRTE" in version
        crowded = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"] if self.is_open_mpi else []
        self.launcher = [mpirun, *crowded, "-n", "2"]
        write_small_jobs(folder)

    def start(self, ranks, model, *options, environment=None):
        command = [self.program, "train", self.folder / f"{model}.toml", "--data", self.folder, *OPTIONS, *options]
        return subprocess.Popen([*(self.launcher if ranks == 2 else []), *map(str, command)], text=True,
                                env=dict(os.environ, **(environment or {})), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments, **options):
        process = self.start(*arguments, **options)
        try:
            out, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
        return process.returncode, out, errors

    def end(self, *arguments):
        """The last line that a run prints, which must succeed."""
        status, out, errors = self.run(*arguments)
        assert status == 0, (status, out, errors)
        return json.loads(out.splitlines()[-1])

    def refusal(self, *arguments, **options):
        """What a run prints that must fail."""
        status, _, errors = self.run(*arguments, **options)
        assert status == 1, (status, errors)
        lines = [line for line in errors.splitlines() if line.startswith("embertable: ")]
        assert len(lines) == 1, errors
        return lines[0]


def ranks_give_what_one_process_gives(train):
    for model in ("ctr", "next_item"):
        alone, together = train.end(1, model), train.end(2, model)
        for key in {"digest", "steps", "test", "validation"} & set(alone):
            assert together[key] == alone[key], (model, key)
        assert len(together["waited_seconds"]) == 2 and "waited_seconds" not in alone


def what_is_killed_goes_on_alone(train):
    longer = ["--set", "schedule.epochs=80"]
    run = train.folder / "run"
    saving = [*longer, "--out", str(run), "--save-every", "20"]
    process = train.start(2, "ctr", *saving)
    while not list(run.glob("step_*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = [pid for pid in map(int, children) if b"--save-every" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    if train.is_open_mpi:  # other launchers start ranks by a program of their own
        assert len(ranks) == 2, children
        os.kill(ranks[1], signal.SIGKILL)
    else:
        process.terminate()
    process.communicate(timeout=60)
    assert process.returncode != 0
    steps = train.end(1, "ctr", *saving, "--resume")["steps"]
    whole = train.end(1, "ctr", *longer)
    assert steps == whole["steps"]
    assert train.end(2, "ctr", *saving, "--resume")["digest"] == whole["digest"]


def what_does_not_fit_is_an_error(train):
    told = train.refusal(2, "ctr", "--set", "strategy.hosts=4")
    assert told.endswith("host 0: strategy.hosts must be 1 or the 2 processes that run the job, got 4"), told
    told = train.refusal(2, "ctr", "--set", "strategy.replicas=1")
    assert "multiple of the 2 processes that run the job" in told and "set strategy.replicas = 2" in told, told
    told = train.refusal(2, "ctr", "--set", "schedule.epoch=4")
    assert "the nearest is 'epochs'" in told, told


def a_launcher_needs_its_mpi(train):
    launched = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    told = train.refusal(1, "ctr", environment={**launched, "EMBERTABLE_MPI_LIBRARY": "/nowhere/libmpi.so"})
    assert "/nowhere/libmpi.so" in told, told
    if train.is_open_mpi:
        told = train.refusal(1, "ctr", environment={"PMI_RANK": "0", "PMI_SIZE": "2",
                                                    "EMBERTABLE_MPI_LIBRARY": "libmpi.so.40"})
        assert "another MPI" in told or "started 2" in told, told
    torchrun = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
    told = train.refusal(1, "ctr", environment=torchrun)
    assert "torchrun --nproc-per-node 2 -m embertable train" in told, told


def main(program):
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        print("skipped: there is no mpirun")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        train = Train(program, mpirun, pathlib.Path(folder))
        for holds in (ranks_give_what_one_process_gives, what_is_killed_goes_on_alone, what_does_not_fit_is_an_error,
                      a_launcher_needs_its_mpi):
            begin = time.monotonic()
            holds(train)
            print(f"{holds.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
