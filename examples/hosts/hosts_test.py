"""Runs the examples as one process and under mpirun, stopped and started again: one digest. Skipped without mpirun.

Usage: hosts_test.py PROGRAM             hosts.cc
       hosts_test.py PROGRAM PYTHONPATH  hosts.py too, each of the two going on where the other stopped
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
STEPS = "step_000000000010", "step_000000000015", "step_000000000020"


def launcher():
    """mpirun with what Open MPI's needs here; MPICH's takes no such options."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not mpirun:
        sys.exit(SKIPPED)
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    crowded = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
    return [mpirun, *(crowded if "Open MPI" in version or "OpenRTE" in version else [])]


def main(program, package=None):
    mpirun = launcher()
    environment = dict(os.environ, PYTHONPATH=package) if package else None
    python = [sys.executable, str(pathlib.Path(__file__).with_name("hosts.py"))]

    def digest(processes, run, program=[program]):
        command = [*program, run] if processes == 1 else [*mpirun, "-n", str(processes), *program, run]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120,
                             stdin=subprocess.DEVNULL)
        assert ran.returncode == 0, ran.stderr
        hosts, digest = ran.stdout.split(":")
        assert hosts == f"{processes} hosts", ran.stdout
        return digest.strip()

    def goes_on(run, step, *arguments):
        """Trains again what may have been stopped before STEPS[step]."""
        for later in STEPS[step:]:
            shutil.rmtree(run / later)
        return digest(*arguments)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run = folder / "run"
        alone = digest(1, folder / "alone")
        if package:
            assert digest(1, folder / "python", python) == alone
            assert digest(2, run, python) == alone
            assert goes_on(run, 0, 2, run) == alone
            assert goes_on(run, 1, 2, run, python) == alone
        else:
            assert digest(4, run) == alone
            assert goes_on(run, 0, 2, run) == alone
            assert goes_on(run, 1, 3, run) == alone


if __name__ == "__main__":
    main(*sys.argv[1:])
