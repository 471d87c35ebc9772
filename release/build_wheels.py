"""Builds the wheels for Linux on x86-64 into dist/, and checks them: `./dev wheel`.

The compiler is clang as the Python package `ziglang` brings it, with C and C++ libraries of its own: what it links runs
with glibc 2.28 and later. The core is compiled once. Each extension links it: one for CPython 3.10, one for 3.11, and
one for all from 3.12 on, which uses CPython's stable ABI.

The package's own tests run with each wheel, which is then used as a newcomer uses it, on each interpreter that it is for
and that is here.

Usage: build_wheels.py [--only 3.12]... [--out DIR] [--untried]
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import external

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-wheel"
PREFIX = WORK / "prefix"
TARGET = "x86_64-linux-gnu.2.28"
PLATFORM = "manylinux_2_28_x86_64"
PYTHONS = ["3.10", "3.11", "3.12"]
STABLE = "3.12"  # the first version that the extension with the stable ABI is for
RELEASE = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG"]


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=True, **options)


def version():
    return re.search(r'kVersion = "([^"]+)"', (ROOT / "include/embertable/version.h").read_text()).group(1)


def interpreter(number):
    """A CPython of this version: one of the path, or one that pyenv has installed."""
    found = shutil.which(f"python{number}")
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    for path in [found, *sorted(pyenv.glob(f"versions/{number}.*/bin/python{number}"))]:
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    raise SystemExit(f"wheel: there is no CPython {number}: none is in the path, nor in {pyenv}/versions")


def interpreters_for(wheel_name):
    """The versions of CPython with which a wheel of this name is tried."""
    number = re.search(r"-cp3(\d+)-", wheel_name).group(1)
    return ["3.12", "3.13"] if "-abi3-" in wheel_name else [f"3.{number}"]


def environment(name, python, *requirements):
    """The folder of packages of a virtual environment that has these."""
    folder = WORK / name
    wanted = "\n".join(requirements)
    installed = folder / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        run(python, "-m", "venv", "--clear", folder)
        run(folder / "bin/pip", "install", "-q", "--disable-pip-version-check", *requirements)
        installed.write_text(wanted)
    site, = folder.glob("lib/python3*/site-packages")
    return site


def write_launchers(tools):
    """Writes the programs clang and clang++, which a compiler cache takes for compilers."""
    (WORK / "bin").mkdir(parents=True, exist_ok=True)
    for name, language in (("clang", "cc"), ("clang++", "c++")):
        path = WORK / "bin" / name
        text = (f"#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR={WORK}/zig\n"
                f'exec {tools}/ziglang/zig {language} -target {TARGET} "$@"\n')
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)


def configure(source, build, *definitions):
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "--toolchain", ROOT / "release/zig.cmake",
        f"-DEMBERTABLE_WHEEL_DIR={WORK}", *RELEASE, *definitions, stdout=subprocess.DEVNULL)


def build_core():
    external.copy_headers(PREFIX)
    sources = external.fetch_sources(WORK / "sources")
    configure(ROOT / "release/external", WORK / "external",
              *(f"-D{name.upper()}={folder}" for name, folder in sources.items()))
    run("cmake", "--build", WORK / "external")
    run("cmake", "--install", WORK / "external", "--prefix", PREFIX, stdout=subprocess.DEVNULL)
    configure(ROOT, WORK / "core", "-DEMBERTABLE_UNITY=ON", "-DEMBERTABLE_TESTS=OFF", "-DEMBERTABLE_BENCH=ON")
    run("cmake", "--build", WORK / "core", "--target", "embertable_core", "embertable_programs", "embertable")


def build_extension(number, tools):
    """The wheel as the build backend makes it: with the extension, not yet with licences."""
    site = environment(f"python{number}", interpreter(number), "pip>=24",
                       "scikit-build-core>=0.10", "nanobind>=3.1,<4")
    python = site.parents[2] / "bin/python"
    raw = WORK / f"raw{number}"
    shutil.rmtree(raw, ignore_errors=True)
    definitions = {"EMBERTABLE_PARTS": WORK / "core/lib", "EMBERTABLE_WHEEL_DIR": WORK, "Python_EXECUTABLE": python}
    options = [f"cmake.define.{name}={value}" for name, value in definitions.items()]
    options += [f"cmake.args=--toolchain;{ROOT}/release/zig.cmake", f"build-dir={WORK}/extension{number}"]
    if number == STABLE:
        options += ["cmake.define.EMBERTABLE_STABLE_ABI=ON", "wheel.py-api=cp" + number.replace(".", "")]
    run(python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "-w", raw,
        *(word for option in options for word in ("-C", option)), ROOT)
    wheel, = raw.glob("*.whl")
    return wheel, site


def complete(wheel, site, tools, out):
    """Adds the licences of all parts, the bill of materials and the manual page; says which systems the wheel is for."""
    python = tools.parents[2] / "bin/python"
    folder = wheel.parent / "unpacked"
    run(python, "-m", "wheel", "unpack", "--dest", folder, wheel, stdout=subprocess.DEVNULL)
    top, = folder.iterdir()
    info, = top.glob("*.dist-info")
    sites = {"nanobind": site, "ziglang": tools}
    for part in external.EXTERNALS:
        path = info / "licenses" / f"{part.name}.txt"
        path.write_text(external.licence_text(part, sites))
    (info / "sboms").mkdir()
    bill = external.bill_of_materials(version(), sites)
    (info / "sboms/embertable.cdx.json").write_text(json.dumps(bill, indent=1))
    metadata = (info / "METADATA").read_text()
    names = "".join(f"License-File: {part.name}.txt\n" for part in external.EXTERNALS)
    metadata = re.sub(r"(?m)^License-Expression: .*\n", f"License-Expression: {external.EXPRESSION}\n{names}", metadata)
    (info / "METADATA").write_text(metadata)
    page = top / f"embertable-{version()}.data" / "data/share/man/man1/embertable.1"
    page.parent.mkdir(parents=True)
    page.write_bytes(run(WORK / "core/bin/embertable", "manual", stdout=subprocess.PIPE).stdout)
    completed = wheel.parent / "completed"
    completed.mkdir()
    run(python, "-m", "wheel", "pack", "--dest-dir", completed, top, stdout=subprocess.DEVNULL)
    packed, = completed.iterdir()
    env = dict(os.environ, PATH=f"{python.parent}:{os.environ['PATH']}")
    run(python, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "-w", out, packed, env=env,
        stdout=subprocess.DEVNULL)


def try_wheel(wheel, checkout=ROOT):
    for number in interpreters_for(wheel.name):
        run(interpreter(number), checkout / "release/newcomer.py", wheel, "--checkout", checkout,
            "--data", ROOT / "examples/data")


def run_tests(wheel):
    """Runs the package's own tests with the wheel: its compiler and its C++ library are not those of `./dev test`."""
    number = interpreters_for(wheel.name)[0]
    requirements = (ROOT / "python/tests/requirements.txt").read_text().split()
    site = environment(f"tests{number}", interpreter(number), *requirements)
    python = site.parents[2] / "bin/python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--force-reinstall", "--no-deps", wheel)
    tests = ROOT / "python/tests"
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, env=dict(os.environ, PYTHONPATH=str(tests)), cwd=WORK)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PYTHONS, help="build the wheel of this version alone")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--untried", action="store_true", help="do not install the wheels and use them")
    arguments = parser.parse_args()
    numbers = arguments.only or PYTHONS
    for number in numbers:
        interpreter(number)
    requirements = (ROOT / "release/requirements.txt").read_text().split()
    tools = environment("tools", sys.executable, *requirements)
    write_launchers(tools)
    build_core()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wheels = []
    for number in numbers:
        names = f"embertable-*-cp{number.replace('.', '')}-*.whl"
        for old in arguments.out.glob(names):
            old.unlink()
        wheel, site = build_extension(number, tools)
        complete(wheel, site, tools, arguments.out)
        wheels += arguments.out.glob(names)
    python = tools.parents[2] / "bin/python"
    run(python, ROOT / "tests/release_test.py")
    run(python, ROOT / "release/check_wheel.py", *wheels)
    for wheel in wheels if not arguments.untried else []:
        run_tests(wheel)
        try_wheel(wheel)


if __name__ == "__main__":
    main()
