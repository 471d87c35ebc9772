"""Counts the code that one training step runs through.

    step_size.py [--source DIR] [--functions]

Compiles the library of a checkout (this one, or DIR) so that gcov counts, and runs one step of one_step.cc: enqueue,
dequeue and apply_gradients of a ragged and a dense feature, with the rule adagrad, on one host and one thread, at the
SIMD level avx2. Counted is every function of src/ and include/ that the step enters, from its first line to its last:
a line of a lambda, or of a template or SIMD level that is compiled several times, counts once. Code lines are those that
are neither blank nor only a comment. A file with a one-line accessor counts as a file; the last line of the output leaves
such files out. Builds in DIR/build-step/. Needs gcc, since gcov reads what its own compiler wrote.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess

# Lines on the path from which a file is more than a few accessors.
LARGE_FILE = 20

HERE = pathlib.Path(__file__).resolve().parent

# No function is inlined, so that each is seen as one that was entered; the attribute would inline some even at -O0.
CACHE = ["-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_CXX_FLAGS_DEBUG=-O0 --coverage -Dalways_inline=noinline",
         "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12",
         "-DEMBERTABLE_TESTS=OFF", "-DEMBERTABLE_BENCH=OFF"]


def build(source, folder):
    """Builds the library and one_step against it; returns the program."""
    subprocess.run(["cmake", "-S", source, "-B", folder, "-G", "Ninja", *CACHE], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CXX": "g++"})
    subprocess.run(["cmake", "--build", folder, "--target", "embertable_core"], check=True, stdout=subprocess.DEVNULL)
    library = next(folder.rglob("libembertable_core.a"))
    program = folder / "one_step"
    subprocess.run(["g++", "-std=c++20", "-O0", f"-I{source}/include", HERE / "one_step.cc", "-o", program, library,
                    "--coverage", "-lsnappy", "-pthread"], check=True, cwd=folder)
    return program


def run(program, folder):
    """Runs one step; yields what gcov says of each source file that an object was compiled from."""
    for counts in folder.rglob("*.gcda"):
        counts.unlink()
    subprocess.run([program], check=True, env={**os.environ, "EMBERTABLE_SIMD": "avx2"})
    objects = sorted(folder.rglob("*.gcda"))
    ran = subprocess.run(["gcov", "--json-format", "--stdout", *objects], check=True, capture_output=True, text=True)
    for line in ran.stdout.splitlines():
        if line:
            report = json.loads(line)
            for file in report["files"]:
                yield pathlib.Path(report["current_working_directory"], file["file"]).resolve(), file["functions"]


def is_code(line):
    return line.strip() != "" and not line.strip().startswith("//")


def main():
    parser = argparse.ArgumentParser(description="how much code one training step runs through")
    parser.add_argument("--source", type=pathlib.Path, default=HERE.parent, help="the checkout to count, this one by default")
    parser.add_argument("--functions", action="store_true", help="name the functions of each file")
    options = parser.parse_args()
    source = options.source.resolve()
    folder = source / "build-step"

    entered = collections.defaultdict(dict)  # file -> (first line, column, last line) -> name
    for path, functions in run(build(source, folder), folder):
        if path.is_relative_to(source / "src") or path.is_relative_to(source / "include"):
            for function in functions:
                if function["execution_count"] > 0:
                    place = function["start_line"], function["start_column"], function["end_line"]
                    entered[path.relative_to(source)].setdefault(place, function["demangled_name"])

    total_lines = total_code = total_functions = 0
    large = []  # lines of each file that a reader stays in
    print("  lines   code  functions")
    for path, functions in sorted(entered.items()):
        lines = {line for first, _, last in functions for line in range(first, last + 1)}
        text = (source / path).read_text().splitlines()
        code = sum(is_code(text[line - 1]) for line in lines)
        print(f"{len(lines):7} {code:6} {len(functions):10}  {path}")
        if options.functions:
            for (first, _, last), name in sorted(functions.items()):
                print(f"{last - first + 1:7} {'':28} {first}: {name[:150]}")
        if len(lines) >= LARGE_FILE:
            large.append(len(lines))
        total_lines, total_code, total_functions = total_lines + len(lines), total_code + code, total_functions + len(functions)
    print(f"{total_lines:7} {total_code:6} {total_functions:10}  in {len(entered)} files")
    print(f"{sum(large):7} {'':17}  in the {len(large)} files with {LARGE_FILE} lines or more")


if __name__ == "__main__":
    main()
