"""Installs the build into a temporary prefix, then builds and runs the project in tests/consumer with it.

Usage: install_test.py BUILD_DIR COMPILER
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
    subprocess.run(command, check=True)


def main():
    build, compiler = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        prefix, consumer = os.path.join(scratch, "prefix"), os.path.join(scratch, "consumer")
        run("cmake", "--install", build, "--prefix", prefix)
        run("cmake", "-S", CONSUMER, "-B", consumer, "-G", "Ninja",
            f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", consumer)
        run(os.path.join(consumer, "consumer"))
        config = next(pathlib.Path(prefix).glob("lib*/**/pkgconfig/embertable.pc"))
        if shutil.which("pkg-config"):
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", config], check=True, capture_output=True,
                                   text=True).stdout.split()
            library = next(flag[2:] for flag in flags if flag.startswith("-L"))
            run(compiler, "-std=c++20", *CONSUMER.glob("*.cc"), *flags, f"-Wl,-rpath,{library}", "-o",
                os.path.join(scratch, "by_pkg_config"))
            run(os.path.join(scratch, "by_pkg_config"))
        documents = pathlib.Path(prefix) / "share" / "doc" / "embertable"
        for name in ("LICENSE", "docs/jobs.md", "examples/quickstart.cc", "examples/jobs/movielens.toml"):
            assert (documents / name).is_file(), name
        for name in ("man/man1/embertable.1", "bash-completion/completions/embertable", "zsh/site-functions/_embertable",
                     "fish/vendor_completions.d/embertable.fish"):
            assert (pathlib.Path(prefix) / "share" / name).stat().st_size > 1000, name
        run(os.path.join(prefix, "bin", "embertable"), "--version")


if __name__ == "__main__":
    main()
