"""Times two builds of embertable-bench in turns, since machines are noisy: how fast the second is beside the first.

Usage: in_turns.py OLD NEW [--turns N] [--json] [WORDS OF embertable-bench ...]

OLD and NEW are the programs, such as build/bin/embertable-bench of two commits. Each turn runs both with the same words, which one
first changes from turn to turn. For each load and each figure it prints the ratio of the medians, above 1 where NEW is faster, and
the range of the ratios of single turns. Limits, shares and what other processes took are left out.

    in_turns.py /tmp/old build/bin/embertable-bench --turns 5 --workload W2 --repetitions 3
    in_turns.py /tmp/old build/bin/embertable-bench --random 1
    in_turns.py /tmp/old build/bin/embertable-bench optimizers --rule adam
"""

import argparse
import json
import re
import statistics
import subprocess
import sys

LEFT_OUT = re.compile(r"limit|share|\bof_|_of_|other_load|paid_once|stages|standard")
TIMES = re.compile(r"seconds$|_[nu]s$")


def figures_of(line, prefix=""):
    """Name -> number of what a line has measured."""
    found = {}
    for name, value in line.items():
        if LEFT_OUT.search(name):
            continue
        if isinstance(value, dict):
            found |= figures_of(value, f"{prefix}{name} ")
        elif isinstance(value, float) and value > 0:
            found[prefix + name] = value
    return found


def load_of(line):
    """What tells a line from the others of a run."""
    told = {name: value for name, value in line.items()
            if isinstance(value, (str, int)) and name not in ("machine", "digest", "repetitions", "standard_rows")}
    return ", ".join(value if isinstance(value, str) else f"{name} {value}" for name, value in told.items())


def require_program(program):
    try:
        subprocess.run([program, "--help"], capture_output=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise SystemExit(f"in_turns: {program} cannot be run: {error.strerror}; give the path of an embertable-bench")


def run(program, words):
    """(load, figure) -> number"""
    done = subprocess.run([program, *words, "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"in_turns: {program} {' '.join(words)} failed: {done.stderr.strip() or done.returncode}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(load_of(line), name): value for line in lines for name, value in figures_of(line).items()}


def ratios(old, new):
    """Of medians, and of single turns, above 1 where the new figures are better. old, new: turns of one figure."""
    def better(before, after, name):
        return before / after if TIMES.search(name) else after / before

    for key in old[0]:
        pairs = [(a[key], b[key]) for a, b in zip(old, new) if key in a and key in b]
        if pairs:
            name = key[1]
            medians = [statistics.median(side) for side in zip(*pairs)]
            single = [better(*pair, name) for pair in pairs]
            yield {"load": key[0], "figure": name, "old": medians[0], "new": medians[1], "ratio": better(*medians, name),
                   "lowest": min(single), "highest": max(single), "turns": len(pairs)}


def main():
    parser = argparse.ArgumentParser(description="Times two builds of embertable-bench in turns.", allow_abbrev=False)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options, words = parser.parse_known_args()
    if options.turns < 1:
        parser.error(f"--turns must be 1 or more, got {options.turns}")
    programs = [options.old, options.new]
    for program in programs:  # before the first run, which may take minutes
        require_program(program)
    found = [[], []]
    for turn in range(options.turns):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            found[side].append(run(programs[side], words))
    results = list(ratios(*found))
    if not results:
        raise SystemExit("in_turns: the two runs have no load in common")
    for result in results:
        if options.json:
            print(json.dumps(result))
        else:
            print(f"{result['load']}  {result['figure']}: {result['ratio']:.3f} ({result['lowest']:.2f} to {result['highest']:.2f})")


if __name__ == "__main__":
    sys.exit(main())
