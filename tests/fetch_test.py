"""Configures the project in tests/consumer with the sources of Embertable by FetchContent.

The library is not compiled again: the project is configured, and what its program needs is looked at. --whole builds and runs it.

Usage: fetch_test.py EMBERTABLE COMPILER [--whole]; EMBERTABLE is a folder or a source archive
"""

import os
import pathlib
import subprocess
import sys
import tempfile

CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"


def run(*command):
    print("+", *command, flush=True)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    embertable, compiler, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as build:
        run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DEMBERTABLE={embertable}",
            f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
            "-DEMBERTABLE_UNITY=ON")
        cache = (pathlib.Path(build) / "CMakeCache.txt").read_text()
        assert "EMBERTABLE_TESTS:BOOL=OFF" in cache and "EMBERTABLE_BENCH:BOOL=OFF" in cache
        inputs = run("ninja", "-C", build, "-t", "inputs", "consumer")
        assert "libembertable.so" in inputs, inputs
        assert "apps/" not in inputs, "the library alone must be built"
        if "--whole" in rest:
            run("cmake", "--build", build, "--target", "consumer")
            print(run(os.path.join(build, "consumer")))


if __name__ == "__main__":
    main()
