"""Times the job `gowalla` beside implicit's BPR: pairs a second, the same data, floats a row and threads.

Usage: bench_implicit.py [--embertable COMMAND] [--data FOLDER] [--threads N] [--epochs N] [--repetitions R] [--json]

Both see every pair of the training file once an epoch and draw one place that the person does not have for each; in
turns, medians of the repetitions. Reading the data is not timed, nor is measuring, nor the first epoch.
"""

import gzip
import time

import job_bench

job_bench.limit_threads()

import implicit
import numpy as np
import scipy.sparse
from implicit.bpr import BayesianPersonalizedRanking

import generated_data

TRAINING_FILE = "gowalla/train.txt.gz"
DIM = 64  # floats a row, as in the job: implicit keeps a bias in one of them


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
    with job_bench.BusyThreads() as busy:
        model.fit(pairs, show_progress=False, callback=lambda *_: ends.append(time.perf_counter()))
    return pairs.nnz * (len(ends) - 1) / (ends[-1] - ends[0]), busy.number


def main():
    options = job_bench.options_of("Times the job gowalla beside implicit's BPR.", epochs=8)
    files = [TRAINING_FILE, "gowalla/test.txt.gz"]
    with job_bench.data_folder(options, files, generated_data.gowalla) as (folder, data):
        pairs = read_pairs(folder / TRAINING_FILE)
        lanes = {"embertable": lambda: (job_bench.our_rate(options, "gowalla", folder)[0], None),
                 "implicit": lambda: implicit_rate(pairs, options)}
        job_bench.compare(options, "gowalla", f"implicit {implicit.__version__}", ("pairs", 1e6, "M pairs/s"), lanes, data)


if __name__ == "__main__":
    main()
