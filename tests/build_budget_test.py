"""What a build of the command line may ask of the compiler, held without a clock.

Time to compile follows the text that is left after preprocessing: the sum over all units of `./dev demo`, and the largest
unit, by which two cores wait for one. Usage: build_budget_test.py BUILD_FOLDER
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

MOST_MEGABYTES = 155  # of all units
MOST_MEGABYTES_OF_UNIT = 5


def units(build):
    """The compile commands of all that the command line is linked from."""
    inputs = subprocess.run(["ninja", "-C", build, "-t", "inputs", "embertable"],
                            check=True, capture_output=True, text=True).stdout.split()
    wanted = {name for name in inputs if name.endswith(".o")}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = shlex.split(entry["command"])
        if command[command.index("-o") + 1] in wanted:
            yield entry["directory"], command


def preprocessed_bytes(unit):
    directory, command = unit
    if pathlib.Path(command[0]).name == "ccache":
        command = command[1:]
    output = command.index("-o")
    source = command[command.index("-c") + 1]
    command = [word for i, word in enumerate(command) if i not in (output, output + 1) and word != "-c"]
    ran = subprocess.run([*command, "-E", "-P"], cwd=directory, check=True, capture_output=True)
    return len(ran.stdout), os.path.relpath(source)


def main():
    build = pathlib.Path(sys.argv[1])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = sorted(pool.map(preprocessed_bytes, units(build)), reverse=True)
    if not sizes:
        print(f"build budget: {build} has no compile commands of the command line")
        return 1
    total, (largest, name) = sum(size for size, _ in sizes), sizes[0]
    print(f"build budget: {len(sizes)} units of {total / 1e6:.1f} MB in all ({MOST_MEGABYTES} at most), "
          f"the largest {largest / 1e6:.1f} MB ({MOST_MEGABYTES_OF_UNIT} at most): {name}")
    return 1 if total > MOST_MEGABYTES * 1e6 or largest > MOST_MEGABYTES_OF_UNIT * 1e6 else 0


if __name__ == "__main__":
    sys.exit(main())
