"""One side of a comparison on a workload, in a process of its own: bench_workloads.py starts it and says when to train.

Usage: workload_lane.py LANE WORKLOAD ROWS THREADS SECONDS

Draws the batches, builds the tables, trains on each batch once or for a few seconds and prints "ready". For each line of
input it then trains for at least SECONDS, on batch after batch, and prints a JSON object with lookups, seconds, threads
at work on average, and bytes of the process on huge pages. What libraries print goes to standard error.
"""

import concurrent.futures
import dataclasses
import json
import os
import sys
import time

import numpy as np

import workload_ids

RATE, EPSILON, FIRST_SLOT = 1e-4, 1e-8, 0.01
SPAN = 0.05  # rows begin uniform between -SPAN and SPAN
WARM_UP_SECONDS = 3
GRADIENT_BYTES = 80 << 20  # that gradients rotate through, so that no cache still has them

OUR_RULES = {
    "rowwise_adagrad": ("rowwise_adagrad", {"epsilon": EPSILON, "initial_accumulator_value": FIRST_SLOT}),
    "adagrad": ("torch.Adagrad", {}),
    "sgd": ("torch.SGD", {}),
}


def draw_gradients(*shape, parts=1):
    """Different ones, of this shape each, as many as a step's gradients need; these are one of its parts."""
    count = max(2, -(-GRADIENT_BYTES // (4 * parts * int(np.prod(shape)))))
    random = np.random.default_rng(5)
    gradients = np.empty((count, *shape), np.float32)  # NumPy asks for huge pages
    for gradient in gradients:
        random.random(out=gradient, dtype=np.float32)
    gradients -= 0.5
    gradients *= 0.01
    return gradients


class Embertable:
    def __init__(self, workload, batches, threads, rule):
        import embertable as et

        name, parameters = OUR_RULES[rule]
        first_rows = et.Initializer.uniform(-SPAN, SPAN)
        tables = [et.TableConfig(workload.rows, workload.dim, combiner="sum", name=f"table{t}", initializer=first_rows)
                  for t in range(workload.tables)]
        features = [et.FeatureConfig(table, output_shape=[workload.samples]) for table in tables]
        self.engine = et.Embedding(features, et.Optimizer(name, RATE, **parameters), et.EngineStrategy(threads=threads),
                                   gradient_policy="allow")  # as the peers do
        self.engine.build(workload.samples)
        self.batches = [[et.RaggedIds(*batch.of_table(t, workload.samples)) for t in range(workload.tables)]
                        for batch in batches]
        self.gradients = [list(g) for g in draw_gradients(workload.tables, workload.samples, workload.dim)]

    def step(self, batch, gradient):
        self.engine.enqueue(self.batches[batch])
        self.engine.dequeue()
        self.engine.apply_gradients(self.gradients[gradient])


class Torch:
    """A sparse EmbeddingBag for each table, one optimizer for all."""

    def __init__(self, workload, batches, threads, rule):
        import torch

        torch.set_num_threads(threads)
        torch.sparse.check_sparse_tensor_invariants.disable()  # what it says of sparse gradients unless it is told
        self.backward = torch.autograd.backward
        self.tables = [torch.nn.EmbeddingBag.from_pretrained(
            fill(torch, torch.empty(workload.rows, workload.dim)), freeze=False, mode="sum", sparse=True,
            include_last_offset=True) for _ in range(workload.tables)]
        rules = {"adagrad": torch.optim.Adagrad, "sgd": torch.optim.SGD}
        self.optimizer = rules[rule]([table.weight for table in self.tables], lr=RATE)
        self.batches = [[tuple(map(torch.from_numpy, batch.of_table(t, workload.samples))) for t in range(workload.tables)]
                        for batch in batches]
        self.gradients = [list(torch.from_numpy(g))
                          for g in draw_gradients(workload.tables, workload.samples, workload.dim)]

    def step(self, batch, gradient):
        self.optimizer.zero_grad(set_to_none=True)
        activations = [table(*ids) for table, ids in zip(self.tables, self.batches[batch])]
        self.backward(activations, self.gradients[gradient])
        self.optimizer.step()


def fill(torch, rows):
    """One table's first rows; a small piece over and over, for torch draws numbers slowly."""
    piece = torch.empty(min(len(rows), 1 << 16), rows.shape[1]).uniform_(-SPAN, SPAN)
    for part in rows.split(len(piece)):
        part.copy_(piece[:len(part)])
    return rows


class Fbgemm:
    """fbgemm_gpu's operator for the CPU: all tables at once, its exact row-wise Adagrad inside of backward.

    `parts`: operators that the tables are dealt to, as many threads each as there are for one.
    """

    def __init__(self, workload, batches, threads, parts):
        import torch

        parts = min(parts, workload.tables)
        own_threads = threads // parts
        torch.set_num_threads(own_threads)
        self.pool = concurrent.futures.ThreadPoolExecutor(parts, initializer=torch.set_num_threads, initargs=(own_threads,))
        sizes = [(workload.tables + part) // parts for part in range(parts)]
        firsts = [sum(sizes[:part]) for part in range(parts)]
        self.operators = [fbgemm_operator(torch, workload, size) for size in sizes]
        self.batches = [[fbgemm_batch(torch, batch, workload.samples, first, size) for first, size in zip(firsts, sizes)]
                        for batch in batches]
        per_part = [draw_gradients(workload.samples, size * workload.dim, parts=parts) for size in sizes]
        self.gradients = list(zip(*(map(torch.from_numpy, gradients) for gradients in per_part)))

    def step(self, batch, gradient):
        activations = self.on_threads(lambda operator, ids: operator(*ids), self.operators, self.batches[batch])
        self.on_threads(lambda one, gradient: one.backward(gradient), activations, self.gradients[gradient])

    def on_threads(self, work, *arguments):
        if len(self.operators) == 1:
            return list(map(work, *arguments))
        return list(self.pool.map(work, *arguments))


def fbgemm_operator(torch, workload, tables):
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen

    shape = (workload.rows, workload.dim, EmbeddingLocation.HOST, ComputeDevice.CPU)
    operator = SplitTableBatchedEmbeddingBagsCodegen(
        [shape] * tables, optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=RATE, eps=EPSILON,
        pooling_mode=PoolingMode.SUM, device=torch.device("cpu"))
    for rows in operator.split_embedding_weights():
        fill(torch, rows)
    return operator


def fbgemm_batch(torch, batch, samples, first, tables):
    """Ids and offsets of these tables."""
    offsets = batch.offsets[first * samples:(first + tables) * samples + 1]
    return torch.from_numpy(batch.ids[offsets[0]:offsets[-1]].copy()), torch.from_numpy(offsets - offsets[0])


def make(lane, workload, batches, threads):
    if lane in ("fbgemm_repaired", "fbgemm_dealt"):
        import cpu_features

        cpu_features.share()
    if lane.startswith("fbgemm"):
        return Fbgemm(workload, batches, threads, threads if lane == "fbgemm_dealt" else 1)
    side, rule = lane.split("_", 1)
    return {"embertable": Embertable, "torch": Torch}[side](workload, batches, threads, rule)


class Run:
    """A lane that goes on where it stopped, round and round the batches and the gradients."""

    def __init__(self, lane, batches):
        self.lane, self.batches, self.steps = lane, batches, 0

    def step(self):
        """Trains on one batch. Gives its lookups."""
        batch = self.steps % len(self.batches)
        self.lane.step(batch, self.steps % len(self.lane.gradients))
        self.steps += 1
        return len(self.batches[batch].ids)

    def warm_up(self):
        end = time.perf_counter() + WARM_UP_SECONDS
        while self.steps < len(self.batches) and time.perf_counter() < end:
            self.step()

    def turn(self, seconds):
        self.step()  # wakes its threads
        lookups, begin, cpu = 0, time.perf_counter(), time.process_time()
        while True:
            spent = time.perf_counter() - begin
            if spent >= seconds:
                return {"lookups": lookups, "seconds": spent, "busy_threads": (time.process_time() - cpu) / spent}
            lookups += self.step()


def huge_page_bytes():
    for line in open("/proc/self/smaps_rollup"):
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024
    return 0


def take_standard_output():
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return told


def main():
    told = take_standard_output()
    name, workload, rows, threads, seconds = sys.argv[1:]
    workload = dataclasses.replace(workload_ids.WORKLOADS[workload], rows=int(rows))
    batches = workload_ids.draw_batches(workload)
    run = Run(make(name, workload, batches, int(threads)), batches)
    run.warm_up()
    print("ready", file=told)
    for _ in sys.stdin:
        print(json.dumps({**run.turn(float(seconds)), "huge_page_bytes": huge_page_bytes()}), file=told)


if __name__ == "__main__":
    main()
