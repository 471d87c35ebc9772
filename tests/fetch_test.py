"""Builds and runs the project in tests/consumer with the sources of Embertable by FetchContent.

Without a compiler cache the library is not compiled again: the project is then configured, and its target is looked for.

Usage: fetch_test.py EMBERTABLE COMPILER [--whole]; EMBERTABLE is a folder or a source archive
"""

import os
import pathlib
import shutil
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
        targets = run("cmake", "--build", build, "--target", "help")
        assert "consumer: " in targets and "libembertable.so" in targets, targets
        if "--whole" in rest or shutil.which("ccache"):
            run("cmake", "--build", build, "--target", "consumer")
            built = run("ninja", "-C", build, "-t", "inputs", "consumer")
            assert "apps/" not in built, "the library alone must be built"
            print(run(os.path.join(build, "consumer")))


if __name__ == "__main__":
    main()
