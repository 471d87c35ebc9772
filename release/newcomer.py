"""Does with a wheel what a newcomer does, in an environment of its own: installs it, runs README's example, trains the
bundled job, runs the selftest, removes it. Needs nothing but the interpreter it runs on, and pip's index for NumPy.

Usage: newcomer.py FILE.whl [--checkout DIR] [--epochs N] [--digest DIGEST]
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

JOB = "examples/jobs/goodbooks-genres.toml"
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(*command, **options):
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"newcomer: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def best_seconds(python, statement, times=10):
    """The least time that a fresh interpreter takes for a statement."""
    code = f"import time; b = time.perf_counter(); {statement}; print(time.perf_counter() - b)"
    return min(float(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)
               for _ in range(times))


def files_of(folder):
    return {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--checkout", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="where README.md and examples/ are")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--digest", help="what training must give")
    arguments = parser.parse_args()
    readme = (arguments.checkout / "README.md").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment/bin"
        python = programs / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "-q", "numpy")
        before = files_of(folder / "environment")
        run(*pip, "install", "-q", arguments.wheel)
        example = folder / "example.py"
        example.write_text(EXAMPLE.search(readme).group(1))
        print(run(python, example, cwd=folder))
        os.mkdir(folder / "runs")
        events = run(programs / "embertable", "train", arguments.checkout / JOB, "--out", folder / "runs/books", "--json",
                     "--set", f"schedule.epochs={arguments.epochs}").splitlines()
        done = json.loads(events[-1])
        print(f"digest {done['digest']}, {done['samples_per_second'] / 1e6:.2f} million samples/s")
        if arguments.digest not in (None, done["digest"]):
            raise SystemExit(f"newcomer: the digest must be {arguments.digest}")
        for words in (["verify", folder / "runs/books"], ["selftest", "--json"], ["doctor", folder, "--json"]):
            run(programs / "embertable", *words)
            run(python, "-m", "embertable", *words)
        for shell in ("bash", "zsh", "fish"):
            run(programs / "embertable", "completion", shell)
        base, whole = best_seconds(python, "import numpy"), best_seconds(python, "import embertable")
        print(f"import: {whole:.3f} s, NumPy alone {base:.3f} s")
        if whole - base > 0.1:
            raise SystemExit("newcomer: the import takes more than 0.1 s beyond NumPy")
        run(*pip, "uninstall", "-q", "-y", "embertable")
        left = files_of(folder / "environment") - before
        if left:
            raise SystemExit(f"newcomer: what is left behind: {sorted(map(str, left))}")
    print(f"newcomer: {arguments.wheel.name} on Python {sys.version.split()[0]}, glibc {os.confstr('CS_GNU_LIBC_VERSION')}: ok")


if __name__ == "__main__":
    main()
