"""A C library that thinks less of the CPU gives the same digest: no function of its changes a result."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def digest(program, tunables):
    environment = dict(os.environ)
    if tunables:
        environment["GLIBC_TUNABLES"] = tunables
    command = [program, "train", "examples/jobs/goodbooks-genres.toml", "--set", "schedule.epochs=1", "--json"]
    output = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])["digest"]


def main():
    program = sys.argv[1]
    plain = digest(program, "")
    other = digest(program, "glibc.cpu.hwcaps=-AVX2,-FMA")
    print(f"{plain} with every capability, {other} without AVX2 and FMA")
    return 0 if plain == other else 1


if __name__ == "__main__":
    sys.exit(main())
