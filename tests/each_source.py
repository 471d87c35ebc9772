"""Whether each source of libraries and programs includes what it uses: reads every one by itself, for its errors alone.

Builds by units of several sources do not see a forgotten include. Usage: each_source.py BUILD_FOLDER, whose compile
commands are of single sources.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

LEFT_OUT = re.compile(r"_test\.cc$|/tests/|/testing/|/fuzz/|/site-packages/")


def commands(build):
    """(source, directory, command that reads it) of each source of libraries and programs, once."""
    seen = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] in seen or LEFT_OUT.search(entry["file"]):
            continue
        seen.add(entry["file"])
        command = shlex.split(entry["command"])
        if pathlib.Path(command[0]).name == "ccache":
            command = command[1:]
        output = command.index("-o")
        command = [word for i, word in enumerate(command) if i not in (output, output + 1) and word != "-c"]
        yield entry["file"], entry["directory"], [*command, "-fsyntax-only"]


def main():
    def read(unit):
        source, directory, command = unit
        ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        return source, ran.returncode, ran.stderr

    bad = total = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, status, errors in pool.map(read, commands(pathlib.Path(sys.argv[1]))):
            total += 1
            if status != 0:
                bad += 1
                print(f"{source} does not compile by itself:\n{errors}")
    print(f"each source: {total} sources, {bad} that need another's includes")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
