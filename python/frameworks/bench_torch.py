"""Times embertable.torch: beside the engine without it, and beside torch.nn.EmbeddingBag. Sides take turns in one process.

Usage: bench_torch.py [W1 ... W6] [--rows N] [--data FOLDER] [--threads N] [--repetitions R] [--seconds S] [--device cuda] [--cpu-time] [--json]

    W1 ... W6   steps of a workload through EmbeddingBagCollection beside the engine's own enqueue, dequeue and
                apply_gradients, with the same ids and gradients; wanted is 0.9 of its rate. Before it the same of a bare
                autograd function, with NumPy's arrays and without a check. Where samples have one id, all get ids
                without bounds. Tables are halved until two engines fit in half of the free memory
    dlrm        training of torch_examples/dlrm_criteo.py beside the same model with nn.EmbeddingBag(sparse=True) and
                torch.optim.Adagrad; wanted is 3 times its rate
    sample      one sample of 26 features beside 26 nn.EmbeddingBags; wanted is no more than their time

With --device cuda workloads have activations and gradients there, and ids on the host. Then the module and the function, which
uses .to("cuda") and .cpu(), are timed beside what a step without overlap takes at least: the engine's step, and one copy of the
activations and one of the gradients, each alone, between memory of the device and pinned memory.

Medians of the repetitions, and the range of the ratios of single turns. With --cpu-time seconds are the processor's, of all threads:
for a machine on which others work, with --threads 1.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else torch's threads spin on the cores of whoever is next

import numpy as np
import torch

import embertable as et
import embertable.torch as ett
import generated_data
import workload_ids
from workload_lane import EPSILON, FIRST_SLOT, RATE, SPAN, draw_gradients

HERE = pathlib.Path(__file__).parent
MEMORY_SHARE = 0.5
BATCHES = 12
WANTED = {"workload": 0.9, "dlrm": 3.0, "sample": 1.0}


def available_bytes():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def rule():
    return et.Optimizer("rowwise_adagrad", RATE, epsilon=EPSILON, initial_accumulator_value=FIRST_SLOT)


class Plain:
    name = "engine"

    def __init__(self, workload, batches, threads):
        tables = [et.TableConfig(workload.rows, workload.dim, combiner="sum", name=f"t{t}", initializer=et.Initializer.uniform(-SPAN, SPAN))
                  for t in range(workload.tables)]
        self.engine = et.Embedding([et.FeatureConfig(table) for table in tables], rule(), et.EngineStrategy(threads=threads),
                                   gradient_policy="allow")
        self.engine.build(workload.samples)
        self.batches = [[self.bags(*batch.of_table(t, workload.samples), workload) for t in range(workload.tables)] for batch in batches]
        self.gradients = [list(g) for g in draw_gradients(workload.tables, workload.samples, workload.dim)]

    @staticmethod
    def bags(ids, splits, workload):
        return ids if workload.max_ids == 1 else et.RaggedIds(ids, splits)

    def step(self, number):
        self.engine.enqueue(self.batches[number % len(self.batches)])
        self.engine.dequeue()
        self.engine.apply_gradients(self.gradients[number % len(self.gradients)])


class Dense(torch.autograd.Function):
    """Stands for a model: one number of the activations, whose backward has their gradients at hand."""

    @staticmethod
    def forward(ctx, gradients, *rows):
        ctx.gradients = gradients
        return rows[0].new_zeros(())

    @staticmethod
    def backward(ctx, _):
        return None, *ctx.gradients


class Glue(torch.autograd.Function):
    """The least that a model on torch's tape needs: ids, activations and gradients as arrays, without a check."""

    @staticmethod
    def forward(ctx, probe, engine, batch, device):
        ctx.engine = engine
        engine.enqueue([et.RaggedIds(ids[0].numpy(), ids[1].numpy()) if type(ids) is tuple else ids.numpy() for ids in batch])
        return tuple(torch.from_numpy(rows).to(device) for rows in engine.dequeue())

    @staticmethod
    def backward(ctx, *gradients):
        ctx.engine.apply_gradients([gradient.cpu().numpy() for gradient in gradients])
        return None, None, None, None


class Glued:
    """The engine of `plain` behind that function, with tensors of ids and bounds."""

    name = "glue"

    def __init__(self, plain, device):
        self.engine, self.probe, self.device = plain.engine, torch.zeros(1, requires_grad=True), device
        self.gradients = [[torch.from_numpy(gradient).to(device) for gradient in one] for one in plain.gradients]
        self.batches = [[torch.from_numpy(ids) if isinstance(ids, np.ndarray) else
                         (torch.from_numpy(ids.values), torch.from_numpy(ids.row_splits)) for ids in batch] for batch in plain.batches]

    def step(self, number):
        found = Glue.apply(self.probe, self.engine, self.batches[number % len(self.batches)], self.device)
        Dense.apply(self.gradients[number % len(self.gradients)], *found).backward()


class Module:
    name = "module"

    def __init__(self, workload, batches, threads, device):
        tables = [ett.EmbeddingBagConfig(workload.rows, workload.dim, f"t{t}", [f"f{t}"], initializer=et.Initializer.uniform(-SPAN, SPAN))
                  for t in range(workload.tables)]
        self.module = ett.EmbeddingBagCollection(tables, rule(), strategy=et.EngineStrategy(threads=threads),
                                                 gradient_policy="allow").to(device)
        self.batches = [{f"f{t}": self.bags(*batch.of_table(t, workload.samples), workload) for t in range(workload.tables)} for batch in batches]
        self.gradients = [list(torch.from_numpy(g).to(device)) for g in draw_gradients(workload.tables, workload.samples, workload.dim)]

    @staticmethod
    def bags(ids, splits, workload):
        ids = torch.from_numpy(ids)
        return ids if workload.max_ids == 1 else (ids, torch.from_numpy(splits[:-1].copy()))

    def step(self, number):
        found = self.module(self.batches[number % len(self.batches)])
        Dense.apply(self.gradients[number % len(self.gradients)], *found.values()).backward()


class Copies:
    """One copy of all activations to a device, and one of all gradients from it, each alone."""

    def __init__(self, workload, device):
        count = workload.tables * workload.samples * workload.dim
        self.there = torch.zeros(count, device=device)
        self.here = torch.zeros(count, pin_memory=True)

    def step(self, _):
        self.there.copy_(self.here, non_blocking=True)
        torch.cuda.synchronize()
        self.here.copy_(self.there, non_blocking=True)
        torch.cuda.synchronize()


def rates_in_turns(sides, options):
    """Calls a second of each side, one list for each."""
    clock = time.process_time if options.cpu_time else time.perf_counter
    found = [[] for _ in sides]
    numbers = [0] * len(sides)
    for repetition in range(-1, options.repetitions):
        for index, step in enumerate(sides):
            step(numbers[index])
            begin, done = clock(), 0
            while done < 3 or clock() - begin < options.seconds:
                numbers[index] += 1
                step(numbers[index])
                done += 1
            if repetition >= 0:
                found[index].append(done / (clock() - begin))
    return found


def report(options, what, names, rates, wanted=None, invert=False):
    """Prints the first side's rate, or time, beside the second's. Whether it is what is wanted, if something is."""
    ours, theirs = map(statistics.median, rates)
    ratio = theirs / ours if invert else ours / theirs
    single = [b / a if invert else a / b for a, b in zip(*rates)]
    good = wanted is None or (ratio <= wanted if invert else ratio >= wanted)
    if options.json:
        print(json.dumps({"what": what, "sides": names, "per_second": [ours, theirs], "ratio": ratio, "ratios": single, "wanted": wanted,
                          "threads": options.threads, "cpu_time": options.cpu_time, "torch": torch.__version__}), flush=True)
    else:
        shown = [f"{1e6 / rate:,.0f} us" if invert else f"{rate:,.1f}/s" for rate in (ours, theirs)]
        print(f"  {what:<34} {names[0]} {shown[0]:>12}, {names[1]} {shown[1]:>12}: {ratio:.2f} ({min(single):.2f} to {max(single):.2f})"
              + ("" if good else f", wanted {'at most' if invert else 'at least'} {wanted}"), flush=True)
    return good


def time_workload(name, options):
    workload = workload_ids.WORKLOADS[name]
    rows = min(workload.rows, options.rows or workload.rows)
    while 2 * workload.tables * rows * (workload.dim + 2) * 4 > MEMORY_SHARE * available_bytes():
        rows //= 2
    workload = dataclasses.replace(workload, rows=rows, batches=min(workload.batches, BATCHES))
    batches = workload_ids.draw_batches(workload)
    sides = [Module(workload, batches, options.threads, options.device), Plain(workload, batches, options.threads)]
    sides.append(Glued(sides[1], options.device))
    what = f"{name}, {workload.tables} x {rows:,} x {workload.dim}, steps"
    if options.device != "cpu":
        module, plain, glue, copies = rates_in_turns([side.step for side in [*sides, Copies(workload, options.device)]], options)
        least = [1 / (1 / a + 1 / b) for a, b in zip(plain, copies)]
        report(options, what, ["copies", "engine"], [copies, plain])
        report(options, what, ["glue", "engine and copies"], [glue, least])
        return report(options, what, ["module", "engine and copies"], [module, least])
    module, plain, glue = rates_in_turns([side.step for side in sides], options)
    report(options, what, ["glue", "engine"], [glue, plain])
    return report(options, what, ["module", "engine"], [module, plain], WANTED["workload"])


def example(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"torch_examples/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TorchTables(torch.nn.Module):
    """What a collection is in torch alone."""

    def __init__(self, sizes, dim):
        super().__init__()
        self.bags = torch.nn.ModuleList(torch.nn.EmbeddingBag(size, dim, mode="sum", sparse=True) for size in sizes)
        for bag in self.bags:
            torch.nn.init.normal_(bag.weight, std=0.01)

    def forward(self, features):
        return {name: bag(ids[:, None]) for bag, (name, ids) in zip(self.bags, features.items())}


def time_dlrm(options):
    torch.manual_seed(1)
    dlrm = example("dlrm_criteo")
    file = "criteo/criteo_sample.tsv.gz"
    with tempfile.TemporaryDirectory() as scratch:
        folder, data = pathlib.Path(options.data), "real"
        if not (folder / file).exists():
            folder, data = pathlib.Path(scratch), "generated"
            generated_data.criteo(folder)
        labels, dense, ids, sizes = dlrm.read(folder / file)
    models = [dlrm.Dlrm(dlrm.make_tables(sizes), len(sizes)), dlrm.Dlrm(TorchTables(sizes, dlrm.DIM), len(sizes))]
    tables = torch.optim.Adagrad(models[1].tables.parameters(), 0.02, initial_accumulator_value=0.01)
    optimizers = [torch.optim.Adagrad([p for name, p in model.named_parameters() if not name.startswith("tables.")], 0.01,
                                      initial_accumulator_value=0.01, fused=True) for model in models]
    batches = torch.randperm(len(labels)).split(dlrm.BATCH)[:-1]

    def step(index):
        def one(number):
            batch = batches[number % len(batches)]
            logits, rows = models[index](dense[batch], ids[batch])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels[batch], reduction="sum")
            optimizers[index].zero_grad()
            if index:
                tables.zero_grad()
            (loss + 0.0015 * rows.square().sum()).backward()
            optimizers[index].step()
            if index:
                tables.step()
        return one

    rates = rates_in_turns([step(0), step(1)], options)
    return report(options, f"dlrm, {data} data, steps of {dlrm.BATCH}", ["embertable", "nn.EmbeddingBag"], rates, WANTED["dlrm"])


def time_sample(options):
    features, rows, dim = 26, 100_000, 64
    collection = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(rows, dim, f"t{f}", [f"f{f}"]) for f in range(features)],
                                            et.Adagrad(0.01), strategy=et.EngineStrategy(threads=options.threads)).eval()
    bags = [torch.nn.EmbeddingBag(rows, dim, mode="sum").eval() for _ in range(features)]
    names = [f"f{f}" for f in range(features)]
    draw = np.random.default_rng(1)
    forms = {
        "2-D ids": [torch.from_numpy(draw.integers(rows, size=(features, 1, 3))) for _ in range(200)],
        "ids and offsets": [torch.from_numpy(draw.integers(rows, size=(features, 3))) for _ in range(200)],
    }
    start = torch.zeros(1, dtype=torch.int64)
    good = True
    for form, samples in forms.items():
        inputs = [[(ids, start) if form == "ids and offsets" else (ids,) for ids in one] for one in samples]
        dicts = [{name: arguments if len(arguments) > 1 else arguments[0] for name, arguments in zip(names, one)} for one in inputs]

        def ours(number):
            with torch.inference_mode():
                collection(dicts[number % 200])

        def theirs(number):
            with torch.inference_mode():
                for bag, arguments in zip(bags, inputs[number % 200]):
                    bag(*arguments)

        rates = rates_in_turns([ours, theirs], options)
        good &= report(options, f"one sample of 26 features, {form}", ["embertable", "nn.EmbeddingBag"], rates, WANTED["sample"], invert=True)
    return good


def main():
    parts = [*workload_ids.WORKLOADS, "dlrm", "sample"]
    parser = argparse.ArgumentParser(description="Times embertable.torch.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(parts)}; none: all")
    parser.add_argument("--rows", type=int, help="rows of a workload's table, at most")
    parser.add_argument("--data", default="../shared/data", help="the folder with the data sets")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where workloads have activations")
    parser.add_argument("--cpu-time", action="store_true", help="measure seconds of the processor")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    unknown = set(options.names) - set(parts)
    if unknown:
        parser.error(f"names must be of {', '.join(parts)}, got '{sorted(unknown)[0]}'")
    if options.device == "cuda":
        if not torch.cuda.is_available():
            parser.error("--device cuda: torch finds no CUDA device here")
        parts = list(workload_ids.WORKLOADS)
        others = [name for name in options.names if name not in parts]
        if others:
            parser.error(f"--device cuda is for {', '.join(parts)}; '{others[0]}' is on the CPU")
    torch.set_num_threads(options.threads)
    torch.sparse.check_sparse_tensor_invariants.disable()  # what it says of sparse gradients unless it is told
    if not options.json:
        print(f"torch {torch.__version__}, {options.threads} threads, median of {options.repetitions} (and range)")
    results = []
    for name in options.names or parts:
        if name in workload_ids.WORKLOADS:
            results.append(time_workload(name, options))
        else:
            results.append({"dlrm": time_dlrm, "sample": time_sample}[name](options))
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
