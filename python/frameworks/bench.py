"""Times Embertable beside its peers in one sitting, each comparison in a process of its own.

Usage: bench.py [NAME...] [--rows N] [--data FOLDER] [--threads N] [--repetitions R] [--json] [--embertable COMMAND]
                [--embertable-bench COMMAND]

    W1 ... W6   steps of a workload beside fbgemm_gpu and torch; `workloads`: all six
    tables      steps of 26 tables beside torch's sparse embeddings, with three optimizers
    criteo      the job beside the same model in torch
    gowalla     the job beside implicit's BPR
    gutenberg   the job beside gensim's word2vec
    torch       modules of embertable.torch beside the engine without them, and beside nn.EmbeddingBag

Without a name all of them. Where a job's data are not below the folder it runs on generated data of the same shape, and
says so. With --json each comparison prints JSON objects, one a line. Exit status 1 where one of them failed.
"""

import argparse
import pathlib
import subprocess
import sys

import workload_ids

HERE = pathlib.Path(__file__).parent
SCRIPTS = {"workloads": "bench_workloads.py", "tables": "bench_tables.py", "criteo": "bench_criteo.py",
           "gowalla": "bench_implicit.py", "gutenberg": "bench_gensim.py", "torch": "bench_torch.py"}
JOBS = "criteo", "gowalla", "gutenberg"


def runs_of(names):
    """(name, command's beginning) in the order asked for; workloads that stand together are one run."""
    runs = []
    for name in names:
        if name not in workload_ids.WORKLOADS:
            runs.append((name, [SCRIPTS[name]]))
        elif runs and runs[-1][0] == "workloads" and len(runs[-1][1]) > 1:
            runs[-1][1].append(name)
        else:
            runs.append(("workloads", [SCRIPTS["workloads"], name]))
    return runs


def arguments_of(name, options):
    """What the script is told, but for workloads."""
    arguments = ["--threads", str(options.threads), "--repetitions", str(options.repetitions)] + ["--json"] * options.json
    given = {}
    if name == "workloads":
        given = {"--rows": options.rows, "--embertable-bench": options.embertable_bench}
    elif name in JOBS:
        given = {"--data": options.data, "--embertable": options.embertable}
    elif name == "torch":
        given = {"--data": options.data, "--rows": options.rows}
    for option, value in given.items():
        arguments += [option, str(value)] if value else []
    return arguments


def main():
    known = [*workload_ids.WORKLOADS, *SCRIPTS]
    parser = argparse.ArgumentParser(description="Times Embertable beside its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; none: all")
    parser.add_argument("--rows", type=int, help="rows of a workload's table, at most")
    parser.add_argument("--data", help="the folder with the data sets")
    parser.add_argument("--embertable", help="the command line")
    parser.add_argument("--embertable-bench", help="the benchmark without Python, for limits of the workloads")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="JSON objects, one a line")
    options = parser.parse_args()
    for name in options.names:
        if name not in known:
            parser.error(f"NAME must be one of {', '.join(known)}, got '{name}'")

    failed = []
    for name, (script, *workloads) in runs_of(options.names or SCRIPTS):
        command = [sys.executable, str(HERE / script), *workloads, *arguments_of(name, options)]
        if subprocess.run(command).returncode != 0:
            failed.append(name)
    if failed:
        sys.exit(f"bench: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
