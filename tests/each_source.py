"""Whether each source of libraries and programs includes what it uses: reads every one by itself, for its errors alone.

Builds by units of several sources do not see a forgotten include. Usage: each_source.py BUILD_FOLDER, whose compile
commands are of single sources.

Most of the time would go to the standard library. The standard headers that a source reads before anything else are
therefore taken from a precompiled header where there is one: only if the source itself reads every file in it first, so
that nothing is found that would not be found without it.
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = re.compile(r"_test\.cc$|/tests/|/testing/|/fuzz/|/site-packages/")
WITHOUT_EFFECT = re.compile(r"-c|-O\d|-fPI[CE]|-fvisibility.*|-M.*|.*\.d|.*\.o")  # on errors
INCLUDE = re.compile(r'#\s*include\s+(["<])([^">]+)[">]')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

# What is precompiled, the least first. Other choices cost time and change nothing else.
PRECOMPILED = [
    "cstdint string",
    "cstdint string vector",
    "cstdint string vector span",
    "cstdint string vector span memory",
    "cstdint string vector span memory optional",
    "cstdint string vector span memory optional functional map",
    "cstdint string vector span memory optional functional map filesystem variant",
]


def commands(build):
    """(source, directory, command that reads it) of each source of libraries and programs, once."""
    seen = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] in seen or LEFT_OUT.search(entry["file"]):
            continue
        seen.add(entry["file"])
        command = shlex.split(entry["command"])
        while "clang" not in pathlib.Path(command[0]).name:  # ccache and its environment
            command = command[1:]
        output = command.index("-o")
        dropped = {output, output + 1, *(i for i, word in enumerate(command) if WITHOUT_EFFECT.fullmatch(word))}
        command = [word for i, word in enumerate(command) if i not in dropped and word != entry["file"]]
        yield entry["file"], entry["directory"], [*command, "-fsyntax-only"]


def found(name, beside):
    """The file of ours that an include in quotes means, or None."""
    return next((at for at in (ROOT / "include" / name, ROOT / "src" / name, ROOT / name, beside / name) if at.exists()), None)


@functools.cache
def text_of(path):
    return [line for line in COMMENT.sub("", path.read_text()).split("\n") if line.strip()]


def read_first(path, headers, seen):
    """Appends the headers in angle brackets that are read before any line of ours. False once there is such a line."""
    if path in seen:
        return True
    seen.add(path)
    for line in text_of(path):
        include = INCLUDE.match(line.strip())
        if include and include[1] == "<":
            headers.append(include[2])
        elif include:
            ours = found(include[2], path.parent)
            if ours is None or not read_first(ours, headers, seen):
                return False
        elif line.strip() != "#pragma once":
            return False
    return True


def language(command):
    """The flags of a command, without paths and macros."""
    return tuple(word for word in command if not re.match(r"-[ID]|/|-isystem", word))


class Prefixes:
    """Precompiled headers, and which files each has."""

    def __init__(self, command, folder, directory):
        self.language = language(command)
        self.command = [word for word in command if word != "-fsyntax-only"]
        self.folder, self.directory = folder, directory
        self.made = [made for number, names in enumerate(PRECOMPILED) if (made := self.make(number, names.split()))]

    @functools.cache
    def files_of(self, header):
        """The files that are read for a header; none if it is not of the standard library."""
        if not re.fullmatch(r"[a-z_0-9]+", header):
            return frozenset()
        ran = subprocess.run([*self.command, "-x", "c++", "-M", "-"], input=f"#include <{header}>\n", cwd=self.directory,
                             capture_output=True, text=True, check=False)
        words = ran.stdout.replace("\\\n", " ").split()[1:]
        return frozenset(os.path.realpath(word) for word in words if word.startswith("/"))

    def make(self, number, names):
        header = self.folder / f"prefix{number}.h"
        header.write_text("".join(f"#include <{name}>\n" for name in names))
        compiled = header.with_suffix(".pch")
        ran = subprocess.run([*self.command, "-x", "c++-header", str(header), "-o", str(compiled)], cwd=self.directory,
                             capture_output=True, text=True, check=False)
        return (compiled, frozenset().union(*map(self.files_of, names))) if ran.returncode == 0 else None

    def of(self, source, command):
        """The flags that let this source begin with the largest precompiled header that changes nothing."""
        if language(command) != self.language:
            return []
        headers = []
        read_first(pathlib.Path(source), headers, set())
        files = frozenset().union(*map(self.files_of, headers))
        fits = [compiled for compiled, has in self.made if has <= files]
        return ["-include-pch", str(fits[-1])] if fits else []


def main():
    def read(unit):
        source, directory, command = unit
        ran = subprocess.run([*command, *prefixes.of(source, command), source], cwd=directory, capture_output=True, text=True,
                             check=False)
        return source, ran.returncode, ran.stderr

    units = list(commands(pathlib.Path(sys.argv[1])))
    bad = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        prefixes = Prefixes(units[0][2], pathlib.Path(folder), units[0][1]) if units else None
        for source, status, errors in pool.map(read, units):
            if status != 0:
                bad += 1
                print(f"{source} does not compile by itself:\n{errors}")
    print(f"each source: {len(units)} sources, {bad} that need another's includes")
    return 1 if bad or not units else 0


if __name__ == "__main__":
    sys.exit(main())
