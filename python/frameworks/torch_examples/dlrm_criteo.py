"""DLRM on Criteo's clicks: who clicks on which advertisement. Usage: dlrm_criteo.py DATA [cuda]"""
import gzip
import sys
import time
import numpy as np
import torch
from torch import nn
import embertable as et

DIM, BATCH = 16, 512


def read(path):
    """Labels [n], logarithms of 13 counts [n, 13], ids [n, 39] of the counts' sizes and of 26 categories, and rows of each."""
    with gzip.open(path, "rt") as lines:
        columns = list(zip(*(line.rstrip("\n").split("\t") for line in lines)))
    counts = np.array([[float(text or -9) for text in column] for column in columns[1:14]], np.float32)
    sizes = np.where(counts > 2, 100 + np.floor(np.log(np.maximum(counts, 1)) ** 2), counts)
    labels, dense, ids = np.array(columns[0], np.float32), np.log1p(np.maximum(counts, 0)).T.copy(), []
    for column in [*sizes, *map(np.array, columns[14:])]:
        _, number, times = np.unique(column, return_inverse=True, return_counts=True)
        ids.append(np.where(times >= 2, np.cumsum(times >= 2), 0)[number])  # keys that occur once share row 0
    return *map(torch.as_tensor, (labels, dense, np.stack(ids, 1))), [int(rows.max()) + 1 for rows in ids]


def is_test(records):
    """The tenth of the records that the job examples/jobs/criteo.toml leaves out."""
    x = np.arange(records, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return torch.as_tensor((x ^ (x >> np.uint64(31))) % np.uint64(10) == 0)


def make_tables(sizes):
    tables = [et.torch.EmbeddingBagConfig(size, DIM, f"t{field}", [str(field)], initializer=et.Initializer.normal(0, 0.01))
              for field, size in enumerate(sizes)]
    return et.torch.EmbeddingBagCollection(tables, et.Adagrad(0.02, initial_accumulator_value=0.01))


class Dlrm(nn.Module):
    def __init__(self, tables, fields):
        super().__init__()
        self.tables, self.pairs = tables, torch.ones(fields + 1, fields + 1).triu(1).flatten().nonzero()[:, 0]
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, DIM))
        self.top = nn.Sequential(nn.Linear(DIM + len(self.pairs), 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense, ids):
        rows = self.tables({str(field): column for field, column in enumerate(ids.T.contiguous())})
        vectors = torch.stack([bottom := self.bottom(dense), *rows.values()], 1)
        dots = (vectors @ vectors.mT).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([bottom, dots], 1)).squeeze(1), vectors[:, 1:]


def train(model, labels, dense, ids, penalty=0.003):
    optimizer = torch.optim.Adagrad(model.parameters(), 0.01, initial_accumulator_value=0.01, fused=dense.is_cpu)
    for batch in torch.randperm(len(labels)).split(BATCH):
        logits, rows = model(dense[batch], ids[batch])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[batch], reduction="sum")
        optimizer.zero_grad()
        (loss + penalty / 2 * rows.square().sum()).backward()
        optimizer.step()


def auc(scores, labels):
    _, place, ties = torch.unique(scores, return_inverse=True, return_counts=True)
    positive, ranks = labels.sum().double(), (ties.cumsum(0) - (ties - 1) / 2)[place].double()
    return float((ranks[labels > 0].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive)))


if __name__ == "__main__":
    torch.set_default_device(sys.argv[2] if len(sys.argv) > 2 else "cpu")
    torch.manual_seed(1)
    labels, dense, ids, sizes = read(sys.argv[1] + "/criteo/criteo_sample.tsv.gz")
    test, model, begin = is_test(len(labels)), Dlrm(make_tables(sizes), len(sizes)), time.perf_counter()
    train(model, labels[~test], dense[~test], ids[~test])
    seconds = time.perf_counter() - begin
    print(f"{seconds:.1f} s: tables {model.tables.seconds / seconds:.0%}, the rest torch; test AUC", end=" ")
    with torch.no_grad():
        print(f"{auc(model.eval()(dense[test], ids[test])[0], labels[test]):.4f}")
