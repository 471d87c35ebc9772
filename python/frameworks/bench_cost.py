"""What Python costs: steps of W1, and lookups of one sample with 26 features, beside the same in C++, in turns.

Usage: bench_cost.py [--embertable-bench COMMAND] [--rows N] [--threads N] [--turns R] [--json]

Prints medians of the turns with their range: of a step in milliseconds, of a lookup in microseconds, and how much longer it
takes in Python. At most 5 % are wanted for a step. Before each step both sides move other memory, as much as a step does, so
that caches hold nothing of the step, and their threads are awake. The third line is a step with one sample for each feature, in Python alone: Python's part
of any step with as many features is less, since arrays are borrowed.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np

import workload_ids
import workload_lane

LOOKUPS = 20000
FEATURES, ROWS, DIM = 26, 1000, 64  # as embertable-bench serving has them


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--embertable-bench", default=str(here / "build/bin/embertable-bench"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def told_by(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def step_in_cpp(options, workload):
    """Milliseconds of a step."""
    told, = told_by([options.embertable_bench, "--workload", "W1", "--rows", str(options.rows), "--threads",
                     str(options.threads), "--repetitions", "1", "--json"])
    return 1e3 * workload.tables * workload.samples / told["step"]


class StepsInPython:
    def __init__(self, workload, threads):
        self.lane = workload_lane.Embertable(workload, workload_ids.draw_batches(workload), threads, "rowwise_adagrad")
        # A step reads rows and gradients and writes rows and activations.
        self.elsewhere = np.ones((2, 2 * workload.tables * workload.samples * workload.dim), np.float32)
        ids = np.arange(workload.samples) * (workload.rows // workload.samples)  # few of them are in a batch
        self.other_rows = [ids] * workload.tables
        self.run()

    def run(self):
        """Milliseconds of a step."""
        taken = 0
        for batch in range(len(self.lane.batches)):
            np.copyto(self.elsewhere[0], self.elsewhere[1])
            self.lane.engine.enqueue(self.other_rows, training=False)  # wakes the threads
            self.lane.engine.dequeue()
            begin = time.perf_counter()
            self.lane.step(batch, batch % len(self.lane.gradients))
            taken += time.perf_counter() - begin
        return 1e3 * taken / len(self.lane.batches)


class OneSample:
    """A serving embedding, and one id for each of its features."""

    def __init__(self):
        import embertable as et

        tables = [et.TableConfig(ROWS, DIM, combiner="sum", name=f"t{i}") for i in range(FEATURES)]
        self.serving = et.ServingEmbedding([et.FeatureConfig(table) for table in tables])
        self.serving.build()
        dice = np.random.default_rng(1)
        self.batches = [[dice.integers(0, ROWS, 1) for _ in range(FEATURES)] for _ in range(64)]
        self.run(1000)

    def run(self, lookups):
        """Microseconds of a lookup, the median of many."""
        taken = []
        for i in range(lookups):
            batch = self.batches[i % len(self.batches)]
            begin = time.perf_counter_ns()
            self.serving(batch)
            taken.append(time.perf_counter_ns() - begin)
        return statistics.median(taken) / 1e3


def lookup_in_cpp(options):
    told = told_by([options.embertable_bench, "serving", "--calls", str(LOOKUPS), "--json"])
    return next(line["p50_us"] for line in told
                if line["samples"] == 1 and line["ids"] == "dense" and line["call"] == "ServingEmbedding, fresh output")


def compared(name, unit, cpp, python):
    """What JSON says of turns in C++ and in Python."""
    one, other = statistics.median(cpp), statistics.median(python)
    return {"what": name, "unit": unit, "cpp": one, "python": other, "added_share": (other - one) / other,
            "more_than_cpp": other / one - 1, "cpp_turns": cpp, "python_turns": python}


def main():
    options = arguments()
    workload = dataclasses.replace(workload_ids.WORKLOADS["W1"], rows=options.rows)
    steps, one_sample = StepsInPython(workload, options.threads), OneSample()
    turns = {"step of W1": ([], []), "lookup of one sample": ([], [])}
    for _ in range(options.turns):
        turns["step of W1"][0].append(step_in_cpp(options, workload))
        turns["step of W1"][1].append(steps.run())
        turns["lookup of one sample"][0].append(lookup_in_cpp(options))
        turns["lookup of one sample"][1].append(one_sample.run(LOOKUPS))
    small = StepsInPython(dataclasses.replace(workload, samples=1, rows=ROWS), 1)
    of_one = 1e3 * min(small.run() for _ in range(50))
    for (name, (cpp, python)), unit in zip(turns.items(), ("ms", "us")):
        found = compared(name, unit, cpp, python)
        if options.json:
            print(json.dumps(found))
        else:
            print(f"{name}: C++ {found['cpp']:.2f} {unit} ({min(cpp):.2f}..{max(cpp):.2f}), Python {found['python']:.2f} {unit} "
                  f"({min(python):.2f}..{max(python):.2f}), {100 * found['more_than_cpp']:+.1f} %")
    if options.json:
        print(json.dumps({"what": "step of one sample", "unit": "us", "python": of_one}))
    else:
        print(f"step of one sample for each feature: Python {of_one:.2f} us")


if __name__ == "__main__":
    main()
