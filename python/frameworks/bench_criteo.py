"""Times the job `criteo` beside the same model in torch: samples a second, the same ids, floats, batch and threads.

Usage: bench_criteo.py --embertable COMMAND --data FOLDER [--threads N] [--epochs N] [--repetitions R] [--json]

torch has one nn.Embedding(sparse=True) for the vectors of all fields and one for the linear part, an MLP with ReLU, the
logistic loss and torch.optim.Adagrad; the penalty on looked up rows, which the job has, is left out there. In turns,
medians of the repetitions. Reading the data is not timed, nor is measuring.
"""

import argparse
import gzip
import json
import math
import os
import pathlib
import statistics
import subprocess
import time
import tomllib

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else torch's threads spin on the cores of whoever is next

import numpy as np
import torch

JOB = pathlib.Path(__file__).parents[2] / "examples/jobs/criteo.toml"
FILE = "criteo/criteo_sample.tsv.gz"
NUMBERS = 13  # columns of numbers, after the label
MIN_COUNT = 2
WANTED = 1


def token(number):
    if not number or int(number) <= 2:
        return number
    return f"~{math.floor(math.log(int(number)) ** 2)}"


def read_samples(path):
    """Labels [samples] and ids [samples, fields]; each field's rare keys share its first row."""
    with gzip.open(path, "rt") as lines:
        columns = list(zip(*(line.rstrip("\n").split("\t") for line in lines)))
    labels = np.array(columns[0], np.float32)
    ids, rows = [], 0
    for index, column in enumerate(columns[1:]):
        keys = [token(key) for key in column] if index < NUMBERS else column
        _, number, count = np.unique(np.array(keys), return_inverse=True, return_counts=True)
        row = np.where(count >= MIN_COUNT, np.cumsum(count >= MIN_COUNT), 0)
        ids.append(rows + row[number])
        rows += row.max() + 1
    return torch.from_numpy(labels), torch.from_numpy(np.stack(ids, axis=1).astype(np.int64)), int(rows)


class Net(torch.nn.Module):
    def __init__(self, rows, fields, dim, hidden):
        super().__init__()
        self.vectors = torch.nn.Embedding(rows, dim, sparse=True)
        self.weights = torch.nn.Embedding(rows, 1, sparse=True)
        torch.nn.init.normal_(self.vectors.weight, std=0.05)
        torch.nn.init.zeros_(self.weights.weight)
        sizes = [fields * dim, *hidden]
        layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
        self.mlp = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))

    def forward(self, ids):
        return self.mlp(self.vectors(ids).flatten(1)).squeeze(1) + self.weights(ids).sum((1, 2))


def torch_rate(data, job, options):
    """Of the epochs after the first one."""
    labels, ids, rows = data
    net = Net(rows, ids.shape[1], job["tables"]["vector"]["dim"], job["model"]["hidden"])
    optimizer = torch.optim.Adagrad(net.parameters(), lr=job["optimizer"]["learning_rate"], initial_accumulator_value=0.01)
    loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
    ends = []
    for _ in range(options.epochs):
        for batch in torch.randperm(len(labels)).split(job["schedule"]["batch"]):
            optimizer.zero_grad(set_to_none=True)
            loss(net(ids[batch]), labels[batch]).backward()
            optimizer.step()
        ends.append(time.perf_counter())
    return len(labels) * (len(ends) - 1) / (ends[-1] - ends[0])


def our_rate(options):
    report = subprocess.run(
        [options.embertable, "train", str(JOB), "--data", options.data, "--threads", str(options.threads), "--json",
         "--set", f"schedule.epochs={options.epochs}"], check=True, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in report.stdout.splitlines()]
    epochs = [line for line in lines if line.get("event") == "epoch"]
    return statistics.mean(line["samples_per_second"] for line in epochs[1:])


def main():
    parser = argparse.ArgumentParser(description="Times the job criteo beside the same model in torch.")
    parser.add_argument("--embertable", default="build/bin/embertable", help="the command line")
    parser.add_argument("--data", required=True, help=f"the folder with {FILE}")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    if options.epochs < 2:
        parser.error(f"--epochs must be at least 2, the first of which does not count; got {options.epochs}")
    torch.set_num_threads(options.threads)

    job = tomllib.loads(JOB.read_text())
    data = read_samples(pathlib.Path(options.data) / FILE)
    rates = {"embertable": [], "torch": []}
    for _ in range(options.repetitions):
        rates["embertable"].append(our_rate(options))
        rates["torch"].append(torch_rate(data, job, options))
    ours, theirs = (statistics.median(rates[name]) for name in ("embertable", "torch"))
    if options.json:
        print(json.dumps({"job": "criteo", "threads": options.threads, "embertable_samples_per_second": ours,
                          "torch_samples_per_second": theirs, "ratio": ours / theirs}))
    else:
        below = "" if ours / theirs >= WANTED else f"  below {WANTED}"
        print(f"criteo, batches of {job['schedule']['batch']}, {options.threads} threads, torch {torch.__version__}, "
              f"median of {options.repetitions}\n  {'':<12} {'embertable':>12} {'torch':>12} {'ratio':>8}   k samples/s\n"
              f"  {'ctr':<12} {ours / 1e3:12.1f} {theirs / 1e3:12.1f} {ours / theirs:8.2f}{below}")


if __name__ == "__main__":
    main()
