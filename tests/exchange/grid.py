"""One digest wherever the hosts of an engine are: threads of a process, or ranks of an MPI or of torch.distributed.

    grid.py mpi BIN FOLDER...    random engines, jobs and resumed jobs under the MPIs of virtual environments in FOLDER...
    grid.py torch BIN PYTHON     random engines and jobs under torchrun, in a Python that has PyTorch and embertable
    grid.py random BIN MINUTES   random engines at random points of the grid, with the MPI of this machine, if it has one

BIN has the programs engine_rank and embertable. EMBERTABLE_TEST_SEED chooses the random engines.
"""

import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests"))

from mpi_launchers import Mpi, find_one  # noqa: E402
from small_jobs import JOBS, write_small_jobs  # noqa: E402

POINTS = [(hosts, threads) for hosts in (1, 2, 3, 4, 8) for threads in (1, 2)]
SOME_POINTS = [(2, 2), (3, 1), (8, 1)]
ENGINES = 12
TRY_AGAIN = 75  # the exit status of ranks that have missed another

EXAMPLE = [SOURCE / "examples/jobs/goodbooks-genres.toml", "--data", SOURCE / "examples/data", "--set", "schedule.epochs=1",
           "--set", "schedule.batch=480", "--set", "strategy.replicas=24"]
EXAMPLE_DIGEST = "c5caa0048d65cb498c5854e150fd2315"


class Threads:
    """All hosts in one process."""
    name = "threads"

    def run(self, ranks, *program, timeout):
        done = subprocess.run(list(map(str, program)), text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class Torch:
    """The launcher of PyTorch, for programs in Python."""
    name = "torchrun"

    def __init__(self, python):
        self.python = python

    def run(self, ranks, *program, timeout):
        environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        command = [self.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, *program]
        done = subprocess.run(list(map(str, command)), text=True, timeout=timeout, stdin=subprocess.DEVNULL, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


def output_of(launcher, ranks, *program):
    status, output = launcher.run(ranks, *program, timeout=300)
    assert status == 0, f"{launcher.name}: {ranks} ranks: {' '.join(map(str, program))}: exit status {status}\n{output}"
    return output


class Timed:
    """Prints what was done, and how long it took."""

    def __init__(self, what):
        self.what, self.begin = what, time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            print(f"{self.what} ({time.monotonic() - self.begin:.0f} s)", flush=True)


def check_random_engines(launchers, program, folder, seed, points, count=ENGINES):
    """Each point goes on from the saves of the one before it too, whatever launcher that had."""
    def digests(launcher, hosts, threads, *saves):
        lines = output_of(launcher, hosts, *program, seed, count, hosts, threads, *saves)
        found = dict(re.findall(r"^(engine_\d+) ([0-9a-f]{32})$", lines, re.MULTILINE))
        assert len(found) == count, lines
        return found

    last = folder / "alone"
    expected = digests(launchers[0], 1, 1, last)
    for number, (hosts, threads) in enumerate(points):
        for launcher in launchers:
            saves = folder / f"{number}-{launchers.index(launcher)}"
            found = digests(launcher, hosts, threads, saves, last)
            wrong = [name for name in expected if found[name] != expected[name]]
            assert not wrong, f"{launcher.name}: {hosts} hosts, {threads} threads, seed {seed}: {wrong}"
            last = saves


def digest_of_job(launcher, train, hosts, threads, *words):
    output = output_of(launcher, hosts, *train, *words, "--threads", threads, "--json",
                       *(["--set", f"strategy.hosts={hosts}"] if isinstance(launcher, Threads) else []))
    found = re.findall(r'"event":"done".*"digest":"([0-9a-f]{32})"', output)
    assert len(found) == 1, output
    return found[0]


def check_job(launchers, command, points, *words):
    """`command` gives the words that start `embertable` under a launcher."""
    expected = digest_of_job(Threads(), command(Threads()), 1, 1, *words)
    for hosts, threads in points:
        for launcher in launchers:
            found = digest_of_job(launcher, command(launcher), hosts, threads, *words)
            assert found == expected, f"{launcher.name}: {hosts} hosts, {threads} threads: {found}, alone {expected}"
    return expected


def check_small_jobs(launchers, command, folder):
    write_small_jobs(folder)
    for model in JOBS:
        with Timed(f"{model}: one digest at {len(SOME_POINTS)} points"):
            batch = 48 if model != "skipgram" else 24
            check_job(launchers, command, SOME_POINTS, folder / f"{model}.toml", "--data", folder,
                      "--set", f"schedule.batch={batch}", "--set", "strategy.replicas=24")


def ranks_of(program, out):
    """The processes that run a program with this directory."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue  # it has ended
        if words and words[0] == str(program).encode() and str(out).encode() in words:
            yield int(entry.name)


def newest(out):
    return max((int(step.name[5:]) for step in out.glob("step_" + "[0-9]" * 12)), default=-1)


def lose_one(mpi, train, ranks, out, words, how):
    """Runs until the next save, and loses a rank then; the exit status of the launcher."""
    before = newest(out)
    command = mpi.command(ranks, *train, *words, "--out", out, "--resume", "--save-every", 150, "--threads", 1,
                          "--deadline", 2)
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    end = time.monotonic() + 100
    try:
        while newest(out) <= before:
            assert process.poll() is None and time.monotonic() < end, f"{mpi.name}: {ranks} ranks saved nothing"
            time.sleep(0.02)
        os.kill(max(ranks_of(train[0], out)), how)
        return process.wait(30)
    finally:
        for rank in ranks_of(train[0], out):  # a stopped one, or all if none was lost in time
            os.kill(rank, signal.SIGKILL)
        process.kill()
        process.wait()


def check_resumes(mpi, train, folder, words, expected):
    """A run that loses ranks goes on with 4, 2 and 3 of them, then alone, to the digest of one that loses none."""
    out = folder / f"resumed-{pathlib.Path(mpi.mpirun).parents[1].name}"
    lose_one(mpi, train, 4, out, words, signal.SIGKILL)
    if mpi.has_ulfm:
        status = lose_one(Mpi(mpi.mpirun, reports=True), train, 2, out, words, signal.SIGKILL)
        assert status == TRY_AGAIN, f"{mpi.name}: a rank was killed under ULFM, and the exit status is {status}"
    else:
        lose_one(mpi, train, 2, out, words, signal.SIGKILL)
    status = lose_one(mpi, train, 3, out, words, signal.SIGSTOP)
    # MPICH's mpirun kills the ranks whose neighbour has closed its connection, and returns the status that it sees first.
    statuses = (TRY_AGAIN,) if mpi.is_open_mpi else (TRY_AGAIN, signal.SIGKILL)
    assert status in statuses, f"{mpi.name}: a rank was stopped, and the exit status is {status}"
    found = digest_of_job(Threads(), train, 1, 1, *words, "--out", out, "--resume")
    assert found == expected, f"{mpi.name}: resumed with 4, 2, 3 ranks and alone: {found}, without a loss {expected}"


def mpi_grid(binaries, folders, folder, seed):
    launchers = [Threads(), *(Mpi(pathlib.Path(one) / "bin/mpirun") for one in folders)]
    train = [binaries / "embertable", "train"]
    with Timed(f"{ENGINES} random engines: one digest each at {len(POINTS)} points of {len(launchers)} exchanges"):
        check_random_engines(launchers, [binaries / "engine_rank", "digests"], folder, seed, POINTS)
    check_small_jobs(launchers, lambda launcher: train, folder)
    with Timed(f"goodbooks-genres: one digest at {len(POINTS)} points of {len(launchers)} exchanges"):
        found = check_job(launchers, lambda launcher: train, POINTS, *EXAMPLE)
        assert found == EXAMPLE_DIGEST, f"goodbooks-genres: {found}, recorded is {EXAMPLE_DIGEST}"
    for mpi in launchers[1:]:
        with Timed(f"{mpi.name}: a run that loses ranks goes on with 4, 2, 3 and 1"):
            check_resumes(mpi, train, folder, EXAMPLE, EXAMPLE_DIGEST)


def torch_grid(binaries, python, folder, seed):
    torch = Torch(python)
    program = SOURCE / "python/frameworks/torch_engines.py"
    train = [binaries / "embertable", "train"]

    class Alone(Threads):
        def run(self, ranks, *words, timeout):
            return super().run(ranks, python, *words, timeout=timeout)

    with Timed(f"random engines: one digest each at {len(POINTS)} points"):
        check_random_engines([Alone(), torch], [program], folder, seed, POINTS, count=10)
    command = lambda launcher: train if isinstance(launcher, Threads) else ["-m", "embertable", "train"]
    check_small_jobs([torch], command, folder)
    with Timed(f"goodbooks-genres: one digest at {len(SOME_POINTS)} points"):
        assert check_job([torch], command, SOME_POINTS, *EXAMPLE) == EXAMPLE_DIGEST


def random_points(binaries, minutes, folder, seed):
    draw = random.Random(seed)
    mpi = find_one()
    launchers = [Threads(), *([mpi] if mpi else [])]
    end = time.monotonic() + 60 * minutes
    tried = 0
    while tried == 0 or time.monotonic() < end:
        points = draw.sample(POINTS, 2)
        check_random_engines(launchers, [binaries / "engine_rank", "digests"], folder / str(tried), seed + tried, points)
        tried += 1
    print(f"random engines of {tried} seeds from {seed}: one digest each under {', '.join(one.name for one in launchers)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["mpi", "torch", "random"])
    parser.add_argument("binaries", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("rest", nargs="+")
    arguments = parser.parse_args()
    seed = os.environ.get("EMBERTABLE_TEST_SEED", "1")
    seed = random.SystemRandom().randrange(1 << 31) if seed == "random" else int(seed)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as scratch, Timed("all"):
        folder = pathlib.Path(scratch)
        if arguments.what == "mpi":
            mpi_grid(arguments.binaries, arguments.rest, folder, seed)
        elif arguments.what == "torch":
            torch_grid(arguments.binaries, arguments.rest[0], folder, seed)
        else:
            random_points(arguments.binaries, float(arguments.rest[0]), folder, seed)


if __name__ == "__main__":
    main()
