"""Times training steps of the workloads W1 to W6 beside fbgemm_gpu's operator for the CPU and beside torch.

Usage: bench_workloads.py [WORKLOAD...] [--rows N] [--threads N] [--repetitions R] [--seconds S] [--embertable-bench COMMAND]
                          [--json]

A step goes from ids in the caller's arrays to updated rows; every side trains on the same ids. fbgemm_gpu and embertable
use row-wise Adagrad; torch, which does not have it, Adagrad (SGD where Adagrad's state does not fit in memory), once beside
row-wise Adagrad and once beside the same rule of embertable.
fbgemm_gpu runs as pip installs it, and repaired: it sees the CPU's vector instructions, and its memory has huge pages. Since an
operator of its wheel works on one thread only, whatever torch is told, it also runs with its tables dealt to as
many operators as there are threads, or tables. torch runs as pip installs it.

Wanted of embertable is 2.5 times the rate of repaired fbgemm_gpu and 12 times that of torch's Adagrad; aimed at are 3.5 and 20
times. At the end stands a table in Markdown, a row for each workload, with the ratios of the medians; a dash is a
comparison that did not run.

Each side is a process of its own, and they take turns; where two of them do not fit in memory, the one is started anew
when the other has ended. Medians of the turns, the ratio of the medians, and the range of the ratios of single turns.
Beside them what embertable-bench says: the rate without Python and how fast the machine reads and writes the same rows.
"""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import workload_ids

HERE = pathlib.Path(__file__).parent
MEMORY_SHARE = 0.85  # of what is free, that sides may take together
BESIDE_TABLES = 700 << 20  # bytes of a process: libraries, ids, gradients, activations
OVERFLOW_BYTES = 4 << 30
PAUSE_SECONDS = 0.05  # for threads of the last side that still spin
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
NUMBERS_PER_FLOAT = {"adagrad": 2, "sgd": 1, "rowwise_adagrad": 1}  # a row's slots included, but for row-wise ones


@dataclasses.dataclass(frozen=True)
class Comparison:
    title: str
    peer: str  # lanes of workload_lane.py
    ours: str
    rule: str
    wanted: float | None = None  # the ratio
    aim: float | None = None
    environment: dict = dataclasses.field(default_factory=dict)  # of the peer


OURS = "embertable_rowwise_adagrad"
FBGEMM = [Comparison("repaired, huge pages", "fbgemm_repaired", OURS, "rowwise_adagrad", 2.5, 3.5, HUGE_PAGES),
          Comparison("the same, tables dealt", "fbgemm_dealt", OURS, "rowwise_adagrad", environment=HUGE_PAGES),
          Comparison("as installed", "fbgemm_installed", OURS, "rowwise_adagrad")]
TORCH_ADAGRAD = [Comparison("Adagrad; ours row-wise", "torch_adagrad", OURS, "adagrad", 12, 20),
                 Comparison("Adagrad; ours the same", "torch_adagrad", "embertable_adagrad", "adagrad")]
TORCH_SGD = [Comparison("SGD", "torch_sgd", "embertable_sgd", "sgd")]
COMPARISONS = [*FBGEMM, *TORCH_ADAGRAD, *TORCH_SGD]
BESIDE_SGD = "W3"  # whatever memory there is: few machines hold Adagrad's state of its table


class Failure(Exception):
    """What to say of a side that could not run."""


class Lane:
    """A process that trains when it is told to."""

    def __init__(self, name, workload, options, environment):
        self.name = name
        command = [sys.executable, "-W", "ignore", str(HERE / "workload_lane.py"), name, workload.name, str(workload.rows),
                   str(options.threads), str(options.seconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment, "OMP_NUM_THREADS": str(options.threads)})
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        if line:
            return line
        status = self.process.wait()
        raise Failure(f"{self.name} " + ("was killed, perhaps for its memory" if status < 0 else f"ended with status {status}"))

    def turn(self):
        """What it says of its turn, with lookups a second."""
        time.sleep(PAUSE_SECONDS)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        told = json.loads(self.read())
        return {**told, "rate": told["lookups"] / told["seconds"]}

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


class Lanes:
    """The processes that are there, each started when its turn comes first."""

    def __init__(self, workload, options):
        self.workload, self.options = workload, options
        self.open = {}

    def turn(self, name, environment):
        if name not in self.open:
            self.open[name] = Lane(name, self.workload, self.options, environment)
        return self.open[name].turn()

    def keep(self, *names):
        """Ends all others."""
        for name in [name for name in self.open if name not in names]:
            self.open.pop(name).close()


def available_bytes():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def needed_bytes(workload, rule):
    return workload.tables * workload.table_bytes * NUMBERS_PER_FLOAT[rule] + BESIDE_TABLES


def gib(count):
    return f"{count / 2**30:.1f} GiB"


def why_not(comparison, workload, memory):
    """Why it cannot run, or nothing."""
    needed = needed_bytes(workload, comparison.rule)
    if needed > memory:
        return f"not run: {gib(needed)} of memory needed, {gib(memory)} to be had"
    if comparison.peer in ("fbgemm_repaired", "fbgemm_dealt") and workload.table_bytes > OVERFLOW_BYTES:
        return "not run: its vector kernel updates other rows than those of the ids in a table above 4 GiB"
    return None


def take_turns(comparison, lanes, together):
    """What the peer says of its turns, and ours, one of each a repetition."""
    turns = {comparison.peer: [], comparison.ours: []}
    lanes.keep(comparison.peer, comparison.ours)
    for _ in range(lanes.options.repetitions):
        for name, told in turns.items():
            if not together:
                lanes.keep(name)
            told.append(lanes.turn(name, comparison.environment if name == comparison.peer else {}))
    return turns.values()


def full_title(comparison):
    return f"{version(comparison)}, {comparison.title}"


def version(comparison):
    return ("fbgemm_gpu " + importlib.metadata.version("fbgemm_gpu_cpu") if comparison.peer.startswith("fbgemm") else
            "torch " + importlib.metadata.version("torch"))


def measure(comparison, lanes, memory):
    """What the JSON object says."""
    workload = lanes.workload
    together = 2 * needed_bytes(workload, comparison.rule) <= memory
    peer_turns, our_turns = take_turns(comparison, lanes, together)
    theirs, ours = ([turn["rate"] for turn in turns] for turns in (peer_turns, our_turns))
    return {"workload": workload.name, "rows": workload.rows, "threads": lanes.options.threads,
            "peer": full_title(comparison), "rule": comparison.rule, "beside_each_other": together,
            "peer_lookups_per_second": statistics.median(theirs), "lookups_per_second": statistics.median(ours),
            "ratio": statistics.median(ours) / statistics.median(theirs), "wanted": comparison.wanted, "aim": comparison.aim,
            "peer_turns": theirs, "turns": ours, "peer_huge_page_bytes": peer_turns[-1]["huge_page_bytes"],
            "peer_busy_threads": statistics.median(turn["busy_threads"] for turn in peer_turns)}


def comparisons_for(workload, memory):
    fits = needed_bytes(workload, "adagrad") <= memory
    return [*FBGEMM, *(TORCH_ADAGRAD if fits else []), *(TORCH_SGD if not fits or workload.name == BESIDE_SGD else [])]


def limits(workload, options, memory):
    """What embertable-bench says of the workload, or nothing where it fails. It holds two copies of the tables."""
    while 2 * needed_bytes(workload, "sgd") > memory:
        workload = dataclasses.replace(workload, rows=workload.rows // 2)
    command = [options.embertable_bench, "--workload", workload.name, "--threads", str(options.threads), "--repetitions", "3",
               "--json"]
    if workload.rows != workload_ids.WORKLOADS[workload.name].rows:
        command += ["--rows", str(workload.rows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None
    told = json.loads(done.stdout)
    return {key: told[key] for key in ("workload", "rows", "threads", "step", "step_limit", "step_limit_all_bytes")}


def show_heading(workload, options):
    standard = workload_ids.WORKLOADS[workload.name].rows
    print(f"{workload.name}: {workload.description}\n  {workload.tables} x {workload.rows:,} rows x {workload.dim}, "
          f"{workload.samples:,} samples, {options.threads} threads, medians of {options.repetitions} turns"
          + (f"; not the standard {standard:,} rows a table" if workload.rows != standard else "")
          + f"\n  {'million lookups/s':<42} {'peer':>18} busy {'embertable':>18}  ratio", flush=True)


def shown(rate, turns):
    return f"{rate / 1e6:6.2f} {f'{min(turns) / 1e6:.1f}..{max(turns) / 1e6:.1f}':>11}"


def verdict(found):
    """How a ratio stands to what is wanted of it, or nothing where nothing is."""
    if found["wanted"] is None:
        return ""
    if found["ratio"] < found["wanted"]:
        return f"below the {found['wanted']:g} wanted"
    if found["ratio"] < found["aim"]:
        return f"{found['wanted']:g} reached, not the {found['aim']:g} aimed at"
    return f"{found['aim']:g} reached"


def table(shapes, found):
    """Markdown lines: the ratios by workload and peer, for a document. `shapes`: (workload, rows) of what ran."""
    titles = [full_title(comparison) for comparison in COMPARISONS]
    titles = [title for title in titles if any(one["peer"] == title for one in found)]
    ratios = {(one["workload"], one["peer"]): one["ratio"] for one in found}

    def cell(name, title):
        ratio = ratios.get((name, title))
        return "-" if ratio is None else f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"

    lines = [f"| workload | {' | '.join(titles)} |", "|---" * (1 + len(titles)) + "|"]
    for name, rows in shapes:
        workload = workload_ids.WORKLOADS[name]
        lines.append(f"| {name}: {workload.tables} x {rows:,} x {workload.dim} | "
                     + " | ".join(cell(name, title) for title in titles) + " |")
    return lines


def show(found):
    ratios = [a / b for a, b in zip(found["turns"], found["peer_turns"])]
    said = "  " + verdict(found) if verdict(found) else ""
    apart = "" if found["beside_each_other"] else "  one process at a time"
    print(f"  {found['peer']:<42} {shown(found['peer_lookups_per_second'], found['peer_turns'])} "
          f"{found['peer_busy_threads']:4.1f} {shown(found['lookups_per_second'], found['turns'])}  {found['ratio']:6.1f} "
          f"{f'{min(ratios):.1f}..{max(ratios):.1f}':>12}{said}{apart}", flush=True)


def show_limits(workload, found):
    rows = "" if found["rows"] == workload.rows else f", {found['rows']:,} rows a table"
    print(f"  embertable-bench{rows}: {found['step'] / 1e6:.2f} without Python; rows read and written: "
          f"{found['step_limit'] / 1e6:.1f}, all bytes: {found['step_limit_all_bytes'] / 1e6:.1f}", flush=True)


def run_comparison(comparison, lanes, memory, as_json):
    """What was found, nothing where it could not run, and False where a side failed."""
    title = full_title(comparison)
    reason = why_not(comparison, lanes.workload, memory)
    failed = False
    if reason is None:
        try:
            found = measure(comparison, lanes, memory)
            print(json.dumps(found), flush=True) if as_json else show(found)
            return found
        except Failure as failure:
            reason, failed = f"failed: {failure}", True
            lanes.keep()
    print(json.dumps({"workload": lanes.workload.name, "rows": lanes.workload.rows, "peer": title, "skipped": reason})
          if as_json else f"  {title:<42} {reason}", flush=True)
    return False if failed else None


def run(workload, options):
    """What the comparisons found, and whether all that should have run did."""
    if not options.json:
        show_heading(workload, options)
    memory = int(available_bytes() * MEMORY_SHARE)
    lanes = Lanes(workload, options)
    try:
        told = [run_comparison(comparison, lanes, memory, options.json) for comparison in comparisons_for(workload, memory)]
    finally:
        lanes.keep()
    good, found = False not in told, [one for one in told if one]
    if not pathlib.Path(options.embertable_bench).exists():
        print(f"{options.embertable_bench}: not there, so no limits", file=sys.stderr)
        return found, good
    bounds = limits(workload, options, memory)
    if bounds is None:
        return found, False
    print(json.dumps({"limits": bounds}), flush=True) if options.json else show_limits(workload, bounds)
    return found, good


def main():
    parser = argparse.ArgumentParser(description="Times training steps beside fbgemm_gpu and torch.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(workload_ids.WORKLOADS)}; none: all")
    parser.add_argument("--rows", type=int, help="rows a table, at most; without it as many as the workload has")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--repetitions", type=int, default=5, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=1, help="that a turn takes at least")
    parser.add_argument("--embertable-bench", default="build/bin/embertable-bench", help="measures the machine's limits")
    parser.add_argument("--json", action="store_true", help="JSON objects, one a line")
    options = parser.parse_args()
    unknown = [name for name in options.workloads if name not in workload_ids.WORKLOADS]
    if unknown:
        parser.error(f"WORKLOAD must be one of {', '.join(workload_ids.WORKLOADS)}, got '{unknown[0]}'")
    good, shapes, found = True, [], []
    for name in options.workloads or workload_ids.WORKLOADS:
        workload = workload_ids.WORKLOADS[name]
        if options.rows:
            workload = dataclasses.replace(workload, rows=min(workload.rows, options.rows))
        told, all_ran = run(workload, options)
        good &= all_ran
        shapes.append((name, workload.rows))
        found += told
    if found and not options.json:
        print(f"\nembertable's rate to that of each peer, {options.threads} threads:\n", *table(shapes, found), sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
