"""Times the job `criteo` beside the same model in torch: samples a second, the same ids, floats, batch and threads.

Usage: bench_criteo.py [--embertable COMMAND] [--data FOLDER] [--threads N] [--epochs N] [--repetitions R] [--json]

torch has one nn.Embedding for the vectors of all fields and one for the linear part, an MLP with ReLU, the logistic loss
and torch.optim.Adagrad; gradients of the embeddings are sparse or dense, whichever is faster on a part of the samples.
The penalty on looked up rows, which the job has, is left out there. In turns, medians of the repetitions. Reading the
data is not timed, nor is measuring, nor the first epoch.
"""

import gzip
import math
import time

import job_bench

job_bench.limit_threads()

import numpy as np
import torch

import generated_data

FILE = "criteo/criteo_sample.tsv.gz"
NUMBERS = 13  # columns of numbers, after the label
MIN_COUNT = 2
TRIAL = 20_000  # samples


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
    def __init__(self, rows, fields, dim, hidden, sparse):
        super().__init__()
        self.vectors = torch.nn.Embedding(rows, dim, sparse=sparse)
        self.weights = torch.nn.Embedding(rows, 1, sparse=sparse)
        torch.nn.init.normal_(self.vectors.weight, std=0.05)
        torch.nn.init.zeros_(self.weights.weight)
        sizes = [fields * dim, *hidden]
        layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
        self.mlp = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))

    def forward(self, ids):
        return self.mlp(self.vectors(ids).flatten(1)).squeeze(1) + self.weights(ids).sum((1, 2))


def torch_rate(data, job, epochs, sparse):
    labels, ids, rows = data
    net = Net(rows, ids.shape[1], job["tables"]["vector"]["dim"], job["model"]["hidden"], sparse)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=job["optimizer"]["learning_rate"], initial_accumulator_value=0.01)
    loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
    ends = []
    with job_bench.BusyThreads() as busy:
        for _ in range(epochs):
            for batch in torch.randperm(len(labels)).split(job["schedule"]["batch"]):
                optimizer.zero_grad(set_to_none=True)
                loss(net(ids[batch]), labels[batch]).backward()
                optimizer.step()
            ends.append(time.perf_counter())
    return len(labels) * (len(ends) - 1) / (ends[-1] - ends[0]), busy.number


def sparse_is_faster(data, job):
    labels, ids, rows = data
    part = labels[:TRIAL], ids[:TRIAL], rows
    return torch_rate(part, job, 2, True)[0] > torch_rate(part, job, 2, False)[0]


def main():
    options = job_bench.options_of("Times the job criteo beside the same model in torch.", epochs=4)
    torch.set_num_threads(options.threads)
    torch.sparse.check_sparse_tensor_invariants.disable()  # what it says of sparse gradients unless it is told
    job = job_bench.settings_of(options, "criteo")
    with job_bench.data_folder(options, [FILE], generated_data.criteo) as (folder, data):
        samples = read_samples(folder / FILE)
        sparse = sparse_is_faster(samples, job)
        lanes = {"embertable": lambda: (job_bench.our_rate(options, "criteo", folder)[0], None),
                 "torch": lambda: torch_rate(samples, job, options.epochs, sparse)}
        job_bench.compare(options, "criteo", f"torch {torch.__version__}", ("samples", 1e3, "k samples/s"), lanes, data,
                          f", {'sparse' if sparse else 'dense'} gradients")


if __name__ == "__main__":
    main()
