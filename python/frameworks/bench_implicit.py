"""Times the job `gowalla` beside implicit's BPR: pairs a second, the same data, floats a row and threads.

Usage: bench_implicit.py --embertable COMMAND --data FOLDER [--threads N] [--epochs N] [--repetitions R] [--json]

Both see every pair of the training file once an epoch and draw one place that the person does not have for each; in
turns, medians of the repetitions. Reading the data is not timed, nor is measuring.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # implicit asks for it

import implicit
import numpy as np
import scipy.sparse
from implicit.bpr import BayesianPersonalizedRanking

JOB = pathlib.Path(__file__).parents[2] / "examples/jobs/gowalla.toml"
TRAINING_FILE = "gowalla/train.txt.gz"
DIM = 64  # floats a row, as in the job: implicit keeps a bias in one of them
WANTED = 1


def read_pairs(path):
    users, items = [], []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            user, *of_user = map(int, line.split())
            users += [user] * len(of_user)
            items += of_user
    return scipy.sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)))


def implicit_rate(pairs, options):
    model = BayesianPersonalizedRanking(factors=DIM - 1, learning_rate=0.05, regularization=0.01, iterations=options.epochs,
                                        num_threads=options.threads, verify_negative_samples=True, random_state=1)
    ends = []
    model.fit(pairs, show_progress=False, callback=lambda *_: ends.append(time.perf_counter()))
    # From the end of the first epoch on, so that what comes before it is not counted.
    return pairs.nnz * (len(ends) - 1) / (ends[-1] - ends[0])


def our_rate(options):
    report = subprocess.run(
        [options.embertable, "train", str(JOB), "--data", options.data, "--threads", str(options.threads), "--json",
         "--set", f"schedule.epochs={options.epochs}"], check=True, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in report.stdout.splitlines()]
    epochs = [line for line in lines if line.get("event") == "epoch"]
    return statistics.mean(line["samples_per_second"] for line in epochs[1:])


def main():
    parser = argparse.ArgumentParser(description="Times the job gowalla beside implicit's BPR.")
    parser.add_argument("--embertable", default="build/bin/embertable", help="the command line")
    parser.add_argument("--data", required=True, help=f"the folder with {TRAINING_FILE}")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()

    pairs = read_pairs(pathlib.Path(options.data) / TRAINING_FILE)
    rates = {"embertable": [], "implicit": []}
    for _ in range(options.repetitions):
        rates["embertable"].append(our_rate(options))
        rates["implicit"].append(implicit_rate(pairs, options))
    ours, theirs = (statistics.median(rates[name]) for name in ("embertable", "implicit"))
    if options.json:
        print(json.dumps({"job": "gowalla", "threads": options.threads, "embertable_pairs_per_second": ours,
                          "implicit_pairs_per_second": theirs, "ratio": ours / theirs}))
    else:
        below = "" if ours / theirs >= WANTED else f"  below {WANTED}"
        print(f"gowalla, dim {DIM}, {options.threads} threads, implicit {implicit.__version__}, "
              f"median of {options.repetitions}\n  {'':<12} {'embertable':>12} {'implicit':>12} {'ratio':>8}   M pairs/s\n"
              f"  {'BPR':<12} {ours / 1e6:12.2f} {theirs / 1e6:12.2f} {ours / theirs:8.2f}{below}")


if __name__ == "__main__":
    main()
