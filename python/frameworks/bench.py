"""Times Embertable beside its peers in one sitting, each comparison in a process of its own.

Usage: bench.py [NAME...] [--data FOLDER] [--threads N] [--repetitions R] [--json] [--embertable COMMAND]

    tables      steps of 26 tables beside torch's sparse embeddings
    criteo      the job beside the same model in torch
    gowalla     the job beside implicit's BPR
    gutenberg   the job beside gensim's word2vec

Without a name all of them. Where a job's data are not below the folder it runs on generated data of the same shape, and
says so. With --json each comparison prints JSON objects, one a line. Exit status 1 where one of them failed.
"""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SCRIPTS = {"tables": "bench_tables.py", "criteo": "bench_criteo.py", "gowalla": "bench_implicit.py",
           "gutenberg": "bench_gensim.py"}


def main():
    parser = argparse.ArgumentParser(description="Times Embertable beside its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCRIPTS)}; none: all")
    parser.add_argument("--data", help="the folder with the data sets")
    parser.add_argument("--embertable", help="the command line")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="JSON objects, one a line")
    options = parser.parse_args()
    for name in options.names:
        if name not in SCRIPTS:
            parser.error(f"NAME must be one of {', '.join(SCRIPTS)}, got '{name}'")

    failed = []
    for name in options.names or SCRIPTS:
        command = [sys.executable, str(HERE / SCRIPTS[name]), "--threads", str(options.threads),
                   "--repetitions", str(options.repetitions)] + ["--json"] * options.json
        if name != "tables":
            command += ["--data", options.data] if options.data else []
            command += ["--embertable", options.embertable] if options.embertable else []
        if subprocess.run(command).returncode != 0:
            failed.append(name)
    if failed:
        sys.exit(f"bench: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
