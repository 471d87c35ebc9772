"""The extension shows only its init function and needs only the C and C++ libraries."""

import pathlib
import pydoc
import subprocess
import sys

import pytest

import embertable
from embertable import _core

RUNTIME = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_needed_libraries():
    needed = {line.split("[")[1].rstrip("]") for line in lines("readelf", "-d", _core.__file__) if "NEEDED" in line}
    assert needed and needed <= RUNTIME


def test_exported_symbols():
    exported = [line.split()[-1] for line in lines("nm", "-D", "--defined-only", _core.__file__)]
    assert exported == ["PyInit__core"]


def test_what_is_installed_is_the_whole_package(tmp_path):
    build = pathlib.Path(_core.__file__).parents[2]
    if not (build / "CMakeCache.txt").exists():
        pytest.skip("runs where the package is imported from a build tree")
    lines("cmake", "--install", build, "--component", "python", "--prefix", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["embertable"]
    code = "import embertable.tpu_embedding, embertable as et; print(et.__file__)"
    printed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
                             capture_output=True, text=True, check=True).stdout
    assert pathlib.Path(printed.strip()).parent == tmp_path / "embertable"
    assert (tmp_path / "embertable/__init__.pyi").exists() and (tmp_path / "embertable/py.typed").exists()


def test_only_numpy_is_imported():
    code = "import sys; before = set(sys.modules); import embertable; print(*sorted(set(sys.modules) - before))"
    modules = {name.split(".")[0] for name in lines(sys.executable, "-c", code)[0].split()}
    assert modules - sys.stdlib_module_names <= {"embertable", "numpy"}


def test_an_interpreter_ends_quietly_with_engines_at_work():
    code = """
import embertable as et, threading, time
e = et.Embedding(et.FeatureConfig(et.TableConfig(9, 4, name="t")), et.SGD(lambda: 0.1), et.EngineStrategy(hosts=2, replicas_per_host=1))
e.enqueue([1, 2])
kept = e.dequeue()
threading.Thread(target=lambda: [e.digest() for _ in range(10**9)], daemon=True).start()
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_version():
    assert embertable.__version__.count(".") == 2 and embertable.numerics_version >= 1


@pytest.mark.parametrize("main_too", [False, True])
def test_a_subinterpreter_gets_an_import_error(main_too):
    code = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
MAIN
for _ in range(2):
    other = interpreters.create()
    try:
        error = interpreters.run_string(other, '''
import sys
sys.path[:] = PATH
try:
    import embertable._core
except ImportError as error:
    assert "subinterpreter" in str(error), error
    print("refused", flush=True)  # each interpreter has a buffer of its own
''')
        if error is not None:
            print(error)
    finally:
        interpreters.destroy(other)
MAIN
"""
    main = "import embertable; print(embertable.Initializer.zeros(), flush=True)" if main_too else ""
    path = [str(pathlib.Path(_core.__file__).parents[1])]
    code = code.replace("MAIN", main).replace("PATH", repr(path + sys.path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    works = ["constant(0)"] if main_too else []
    assert (done.returncode, done.stdout.split()) == (0, works + ["refused"] * 2 + works), done


def test_help_shows_what_the_package_has():
    assert {"Embedding", "TableConfig", "RaggedIds", "ServingEmbedding", "train", "SGD"} <= set(embertable.__all__)
    assert all(hasattr(embertable, name) for name in embertable.__all__)
    shown = pydoc.render_doc(embertable, renderer=pydoc.plaintext)
    assert "class RaggedIds" in shown and "class Embedding" in shown and "train(job" in shown


def test_modules_need_no_import_of_their_own():
    program = "import embertable as et; et.tpu_embedding.TPUStrategy, et.v1.TPUEmbedding, et.gradient_interception"
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'tpu'"):
        embertable.tpu
