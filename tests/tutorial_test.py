"""Runs the commands of docs/tutorial.md in an empty folder: each prints what the page shows, but for times and rates.

Usage: tutorial_test.py EMBERTABLE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
CHANGING = re.compile(r"[\d.]+ (?=s\b|M samples/s|million samples/s|rows/s)")


def sessions(page):
    """(command, what it prints) for each command of the console blocks; a here-document belongs to its command."""
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = command.splitlines()
            end = lines.index("END") + 1 if lines[0].endswith("<<'END'") else 1
            yield "\n".join(lines[:end]), lines[end:]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    environment = dict(os.environ, EMBERTABLE=str(SOURCE), PATH=f"{program.parent}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory() as folder:
        tried = 0
        for command, expected in sessions((SOURCE / "docs/tutorial.md").read_text()):
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            got = [CHANGING.sub("# ", line.rstrip()) for line in done.stdout.splitlines()]
            wanted = [CHANGING.sub("# ", line.rstrip()) for line in expected]
            assert done.returncode == 0, f"$ {command}\n{done.stdout}"
            assert got == wanted, f"$ {command}\n" + "\n".join(got) + "\ninstead of\n" + "\n".join(wanted)
            tried += 1
    assert tried >= 10, tried
    print(f"{tried} commands print what the tutorial shows")


if __name__ == "__main__":
    main()
