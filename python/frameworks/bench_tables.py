"""Times W1, the library beside torch: 26 tables, one id a sample, dim 64, 2,048 samples.

Usage: bench_tables.py [--rows N] [--threads N] [--steps N] [--repetitions R] [--json]

For SGD, Adagrad and SparseAdam in turn: both train on the same ids and gradients, torch with nn.Embedding(sparse=True), one
optimizer for all tables; step by step in turns. Prints steps a second and their ratio, medians of the repetitions.
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else torch's threads spin on the cores of whoever is next

import numpy as np
import torch

import embertable as et

TABLES, DIM, SAMPLES, ZIPF = 26, 64, 2048, 1.05
WANTED = 10

OPTIMIZERS = {
    "SGD": ("torch.SGD", torch.optim.SGD),
    "Adagrad": ("torch.Adagrad", torch.optim.Adagrad),
    "SparseAdam": ("torch.SparseAdam", torch.optim.SparseAdam),
}
RATE = 1e-3


def zipf_ids(random, rows, count):
    """Ranks with probability proportional to (rank + 1)^-1.05, spread over the table."""
    u = random.random(count)
    power = 1 - ZIPF
    ranks = ((u * ((rows + 1.0) ** power - 1) + 1) ** (1 / power)).astype(np.int64) - 1
    return np.minimum(ranks, rows - 1) * 2654435761 % rows


class Ours:
    def __init__(self, variant, rows, threads, batches, gradients):
        tables = [et.TableConfig(rows, DIM, combiner="sum", name=f"t{t}", initializer=et.Initializer.uniform(-0.05, 0.05))
                  for t in range(TABLES)]
        features = [et.FeatureConfig(table, output_shape=[SAMPLES]) for table in tables]
        self.engine = et.Embedding(features, et.Optimizer(variant, RATE),
                                   et.EngineStrategy(threads=threads), gradient_policy="allow")  # as the peer does
        self.engine.build(SAMPLES)
        self.batches = [[ids[t] for t in range(TABLES)] for ids in batches]
        self.gradients = [[g[t] for t in range(TABLES)] for g in gradients]

    def step(self, batch, gradient):
        self.engine.enqueue(self.batches[batch])
        self.engine.dequeue()
        self.engine.apply_gradients(self.gradients[gradient])


class Torch:
    def __init__(self, make, rows, batches, gradients):
        self.tables = []
        for _ in range(TABLES):
            weight = torch.empty(rows, DIM).uniform_(-0.05, 0.05)
            self.tables.append(torch.nn.Embedding.from_pretrained(weight, freeze=False, sparse=True))
        self.optimizer = make([table.weight for table in self.tables], lr=RATE)
        self.batches = [torch.from_numpy(ids) for ids in batches]
        self.gradients = [list(torch.from_numpy(g)) for g in gradients]

    def step(self, batch, gradient):
        self.optimizer.zero_grad(set_to_none=True)
        activations = [table(ids) for table, ids in zip(self.tables, self.batches[batch])]
        torch.autograd.backward(activations, self.gradients[gradient])
        self.optimizer.step()


def measure(name, options, batches, gradients):
    variant, make = OPTIMIZERS[name]
    lanes = {"embertable": Ours(variant, options.rows, options.threads, batches, gradients),
             "torch": Torch(make, options.rows, batches, gradients)}
    passes = {lane: [] for lane in lanes}
    for repetition in range(options.repetitions + 1):
        seconds = dict.fromkeys(lanes, 0.0)
        for batch in range(options.steps):
            for lane, trainer in lanes.items():
                begin = time.perf_counter()
                trainer.step(batch, batch % len(gradients))
                seconds[lane] += time.perf_counter() - begin
        for lane in lanes:
            passes[lane] += [seconds[lane]] if repetition else []
    return {lane: options.steps / statistics.median(times) for lane, times in passes.items()}


def main():
    parser = argparse.ArgumentParser(description="Times W1, embertable beside torch.")
    parser.add_argument("--rows", type=int, default=500_000, help="rows a table")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, default=16, help="different batches of a pass")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    random = np.random.default_rng(1)
    batches = [zipf_ids(random, options.rows, (TABLES, SAMPLES)) for _ in range(options.steps)]
    gradients = [random.uniform(-0.005, 0.005, (TABLES, SAMPLES, DIM)).astype(np.float32) for _ in range(8)]
    if not options.json:
        print(f"W1, {options.rows} rows a table, {options.threads} threads, torch {torch.__version__}, "
              f"median of {options.repetitions}\n  {'':<12} {'embertable':>12} {'torch':>12} {'ratio':>8}   steps/s")
    for name in OPTIMIZERS:
        rates = measure(name, options, batches, gradients)
        ratio = rates["embertable"] / rates["torch"]
        if options.json:
            print(json.dumps({"optimizer": name, "rows": options.rows, "threads": options.threads,
                              "embertable_steps_per_second": rates["embertable"],
                              "torch_steps_per_second": rates["torch"], "ratio": ratio}), flush=True)
        else:
            below = "" if ratio >= WANTED else f"  below {WANTED}"
            print(f"  {name:<12} {rates['embertable']:12.1f} {rates['torch']:12.1f} {ratio:8.1f}{below}", flush=True)


if __name__ == "__main__":
    main()
