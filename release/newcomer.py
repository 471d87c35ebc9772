"""Does with a wheel what a newcomer does, in an environment of its own: installs it, runs README's example, trains the
bundled jobs, runs the selftest, removes it. Needs nothing but the interpreter it runs on, and pip's index for NumPy.

Every job must give the digest that every other build gives, and the example must print what README says.

Usage: newcomer.py FILE.whl [--checkout DIR] [--data DIR] [--job NAME]...
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

# Jobs of examples/jobs whose data are in examples/data, and the digests that tests/job_digest_test.cc asks of them too.
DIGESTS = {"goodbooks": "21f9717e7cc44a10a9f7e70230dface5", "goodbooks-genres": "c389e42c733f9832031961c39a251901"}
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n.*?^```\n(.*?)^```", re.MULTILINE | re.DOTALL)  # code, what it prints
MOST_IMPORT_SECONDS = 0.1  # beyond NumPy


def run(*command, echo=True, **options):
    if echo:
        print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"newcomer: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def best_import(python, times=10):
    """Seconds to import NumPy, Embertable after it, and of the latter on a CPU: the least of so many fresh interpreters."""
    code = ("from time import perf_counter as now, process_time as used; a = now(); import numpy; b, u = now(), used(); "
            "import embertable; print(b - a, now() - b, used() - u)")
    runs = [map(float, run(python, "-c", code, echo=False).split()) for _ in range(times)]
    return tuple(map(min, zip(*runs)))


def files_of(folder):
    return {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def run_example(python, readme, folder):
    """Runs the first Python example of README, which must print what README shows next."""
    code, expected = EXAMPLE.search(readme).groups()
    example = folder / "example.py"
    example.write_text(code)
    printed = run(python, example, cwd=folder)
    if printed != expected:
        raise SystemExit(f"newcomer: README's example prints\n{printed}instead of\n{expected}")


def train(program, job, data, folder):
    """Trains a bundled job; its digest must be the one of every build."""
    events = run(program, "train", job, "--data", data, "--out", folder, "--json").splitlines()
    done = json.loads(events[-1])
    print(f"{job.stem}: digest {done['digest']}, {done['samples_per_second'] / 1e6:.2f} million samples/s", flush=True)
    if done["digest"] != DIGESTS[job.stem]:
        raise SystemExit(f"newcomer: the digest of {job.stem} must be {DIGESTS[job.stem]}")
    run(program, "verify", folder)


def use_commands(program, python, folder):
    version = run(program, "--version")
    if version != run(python, "-m", "embertable", "--version"):
        raise SystemExit("newcomer: `embertable` and `python -m embertable` have different versions")
    for words in (["selftest", "--json"], ["doctor", folder, "--json"]):
        run(program, *words)
        run(python, "-m", "embertable", *words)
    run(python, "-c", "import embertable as et; print(et.doctor())")
    for shell in ("bash", "zsh", "fish"):
        run(program, "completion", shell)
    run(program, "manual")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--checkout", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="where README.md and examples/ are")
    parser.add_argument("--data", type=pathlib.Path, help="instead of examples/data, which no source archive has")
    parser.add_argument("--job", action="append", choices=list(DIGESTS), help="train this job alone")
    arguments = parser.parse_args()
    readme = (arguments.checkout / "README.md").read_text()
    data = arguments.data or arguments.checkout / "examples/data"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment/bin"
        python, program = programs / "python", programs / "embertable"
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "-q", "numpy")
        before = files_of(folder / "environment")
        run(*pip, "install", "-q", arguments.wheel)
        run(*pip, "check")
        run_example(python, readme, folder)
        use_commands(program, python, folder)
        for job in arguments.job or DIGESTS:
            train(program, arguments.checkout / f"examples/jobs/{job}.toml", data, folder / job)
        numpy, more, used = best_import(python)
        print(f"import: {more:.3f} s beyond NumPy's {numpy:.3f} s, {used:.3f} s of them on a CPU, best of ten", flush=True)
        if more > MOST_IMPORT_SECONDS:
            raise SystemExit(f"newcomer: the import takes more than {MOST_IMPORT_SECONDS} s beyond NumPy")
        run(*pip, "uninstall", "-q", "-y", "embertable")
        left = files_of(folder / "environment") - before
        if left:
            raise SystemExit(f"newcomer: what is left behind: {sorted(map(str, left))}")
    libc = os.confstr("CS_GNU_LIBC_VERSION")
    print(f"newcomer: {arguments.wheel.name} on Python {sys.version.split()[0]}, {libc}: ok")


if __name__ == "__main__":
    main()
