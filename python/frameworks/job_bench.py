"""What the comparisons of whole jobs share: options, data, runs of the command line, turns, the report."""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

JOBS = pathlib.Path(__file__).parents[2] / "examples/jobs"
WANTED = 1  # times the peer's rate


def options_of(description, epochs):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--embertable", default="build/bin/embertable", help="the command line")
    parser.add_argument("--data", default="../shared/data", help="the folder with the data sets")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    if options.epochs < 2:
        parser.error(f"--epochs must be at least 2, the first of which does not count; got {options.epochs}")
    return options


@contextlib.contextmanager
def data_folder(options, files, generate):
    """The folder that has the files of a job: the user's, or one that generate(folder) fills."""
    given = pathlib.Path(options.data)
    if all((given / file).exists() for file in files):
        yield given, "real"
        return
    print(f"'{given}' has no {', '.join(files)}: generated data of the same shape take their place", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        generate(pathlib.Path(folder))
        yield pathlib.Path(folder), "generated"


def settings_of(options, job):
    """All settings of a job, with those that its file leaves to us."""
    shown = subprocess.run([options.embertable, "train", str(JOBS / f"{job}.toml"), "--show"], check=True, stdout=subprocess.PIPE, text=True)
    return tomllib.loads(shown.stdout)


def our_rate(options, job, folder):
    """Samples a second of the epochs after the first one; the events of the run."""
    report = subprocess.run(
        [options.embertable, "train", str(JOBS / f"{job}.toml"), "--data", str(folder), "--threads", str(options.threads),
         "--json", "--set", f"schedule.epochs={options.epochs}"], check=True, stdout=subprocess.PIPE, text=True)
    events = [json.loads(line) for line in report.stdout.splitlines()]
    epochs = [event for event in events if event.get("event") == "epoch"][1:]
    return statistics.harmonic_mean([epoch["samples_per_second"] for epoch in epochs]), events


class BusyThreads:
    """How many threads of this process worked while it was open, on average."""

    def __enter__(self):
        self.cpu, self.begin = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_):
        self.number = (time.process_time() - self.cpu) / (time.perf_counter() - self.begin)


def compare(options, job, peer, unit, lanes, data, note=""):
    """Runs the lanes, ours first and the peer's second, in turns; prints the medians and their ratio.

    A lane gives (rate, busy threads or None). unit: (name in JSON, divisor, name for people).
    """
    key, divisor, shown = unit
    rates, busy = {lane: [] for lane in lanes}, []
    for _ in range(options.repetitions):
        for lane, run in lanes.items():
            rate, threads = run()
            rates[lane].append(rate)
            busy += [threads] if threads else []
    medians = {lane: statistics.median(values) for lane, values in rates.items()}
    ours, theirs = medians.values()
    ratio, threads = ours / theirs, statistics.median(busy)
    if options.json:
        print(json.dumps({"job": job, "peer": peer, "data": data, "threads": options.threads, "repetitions": options.repetitions,
                          **{f"{lane}_{key}_per_second": rate for lane, rate in medians.items()},
                          "ratio": ratio, "peer_busy_threads": threads, "runs": rates}), flush=True)
        return
    below = "" if ratio >= WANTED else f"  below {WANTED}"
    print(f"{job}, {data} data, {options.threads} threads, {peer}{note} ({threads:.1f} threads busy), "
          f"median of {options.repetitions}\n  {'':<12} {shown:>12}   of each run")
    for lane, values in rates.items():
        print(f"  {lane:<12} {medians[lane] / divisor:12.3f}   {', '.join(f'{v / divisor:.3f}' for v in values)}")
    print(f"  {'ratio':<12} {ratio:12.2f}{below}", flush=True)


def limit_threads():
    """Before a peer is imported: idle threads of its pools must not spin on the cores of whoever is next."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
