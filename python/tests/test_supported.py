"""An interpreter, processor or C library that cannot load the extension is told in one sentence."""

import subprocess
import sys

import pytest

from embertable._supported import explain

GLIBC = ImportError("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by _core.so)")
OTHER = ImportError("_core.so: cannot open shared object file")


@pytest.mark.parametrize("error, system, sentence", [
    (OTHER, ("cpython", (3, 9), "x86_64", "glibc 2.31"), "embertable needs CPython 3.10 or later, and this is cpython 3.9"),
    (OTHER, ("pypy", (3, 11), "x86_64", "glibc 2.31"), "embertable needs CPython 3.10 or later, and this is pypy 3.11"),
    (OTHER, ("cpython", (3, 11), "aarch64", "glibc 2.31"), "built for x86_64, and this processor is aarch64"),
    (GLIBC, ("cpython", (3, 11), "x86_64", "glibc 2.17"), "a later glibc than this system's 2.17; wheels need 2.28"),
    (GLIBC, ("cpython", (3, 11), "x86_64", "glibc 2.31"), "a later glibc than this system's 2.31"),
    (OTHER, ("cpython", (3, 11), "x86_64", None), "needs glibc 2.28 or later, and this system has another C library"),
    (OTHER, ("cpython", (3, 11), "x86_64", "glibc 2.36"), "cannot be loaded: _core.so: cannot open shared object file"),
])
def test_the_sentence_names_what_is_needed_and_what_is_there(error, system, sentence):
    text = explain(error, *system)
    assert sentence in text and "\n" not in text


def test_an_import_without_its_extension_is_explained(tmp_path):
    import embertable
    package = tmp_path / "embertable"
    package.mkdir()
    for file in ("__init__.py", "_supported.py"):
        (package / file).write_bytes(open(f"{embertable.__path__[0]}/{file}", "rb").read())
    (package / "_core.so").write_text("no library")
    done = subprocess.run([sys.executable, "-c", "import embertable"], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
                          capture_output=True, text=True)
    assert "ImportError: the extension of embertable cannot be loaded:" in done.stderr.splitlines()[-1]


def test_the_scalar_level_can_be_forced_for_a_processor_without_avx2():
    code = "import embertable as et; print(et.doctor('.')[1].found.split()[0])"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path), "EMBERTABLE_SIMD": "scalar"},
                          capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "scalar"
