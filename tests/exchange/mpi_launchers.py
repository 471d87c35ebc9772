"""The launchers of MPI on this machine, for tests."""

import os
import pathlib
import re
import shutil
import subprocess


class Mpi:
    """A launcher with its options."""

    def __init__(self, mpirun, library=None, tcp=False, reports=False):
        self.mpirun = str(mpirun)
        self.library = library
        self.tcp = tcp  # messages travel over TCP on this machine; Open MPI alone
        self.reports = reports  # the ranks that are killed, by ULFM; Open MPI from 5 on
        text = subprocess.run([self.mpirun, "--version"], capture_output=True, text=True).stdout
        open_mpi = re.search(r"\((?:OpenRTE|Open MPI|PRRTE)\) (\S+)", text)
        version = open_mpi or re.search(r"Version: *(\S+)", text)
        self.is_open_mpi = open_mpi is not None
        self.name = f"{self.mpirun} ({'Open MPI' if self.is_open_mpi else 'MPICH'}"
        self.name += f" {version.group(1)}" if version else ""
        self.name += f", {pathlib.Path(library).name}" if library else ""
        self.name += (", TCP" if tcp else "") + (", ULFM" if reports else "") + ")"
        self.has_ulfm = self.is_open_mpi and int(version.group(1).split(".")[0]) >= 5

    def losses(self):
        """How ranks are lost in tests. Over TCP, Open MPI 5 without ULFM ends the processes that were connected to one
        that is killed; 4.1.4 does not. ULFM reports none that are stopped."""
        if self.reports:
            return ("kill",)
        return ("stop",) if self.tcp and self.has_ulfm else ("kill", "stop")

    def command(self, ranks, *program, survive=False):
        if self.is_open_mpi:
            options = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
            options += ["--with-ft", "ulfm"] if self.reports else ["--enable-recovery"] if survive else []
            if self.tcp:
                options += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
        else:
            options = ["-disable-auto-cleanup"] if survive else []
            if survive:  # this launcher kills the other ranks when it sees a signal end one, so a shell stands between
                program = ["sh", "-c", 'trap "" USR1; "$@"; true', "sh", *program]
        return [self.mpirun, *options, "-n", str(ranks), *map(str, program)]

    def run(self, *arguments, timeout, survive=False):
        environment = dict(os.environ)
        environment.pop("EMBERTABLE_MPI_LIBRARY", None)
        if self.library:
            environment["EMBERTABLE_MPI_LIBRARY"] = self.library
        process = subprocess.Popen(self.command(*arguments, survive=survive), env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                output, _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
            output += f"\n{self.mpirun} did not end within {timeout} s"
        return process.returncode, output


def with_options(mpi):
    """The launcher, and the same over TCP and with reports of lost ranks where it can be asked for them."""
    paths = (False, True) if mpi.is_open_mpi else (False,)
    reports = (False, True) if mpi.has_ulfm else (False,)
    return [Mpi(mpi.mpirun, mpi.library, tcp, each) for each in reports for tcp in paths]


def find_one():
    """The launcher of this machine, None if it has none."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    return Mpi(mpirun) if mpirun else None


def find_all(folders):
    """The launchers of this machine and of virtual environments. One with a standard library is tried with both."""
    launchers = [shutil.which(name) for name in ("mpirun.openmpi", "mpirun.mpich")]
    for mpirun in filter(None, launchers):
        yield Mpi(mpirun)
    for folder in map(pathlib.Path, folders):
        if (folder / "bin/mpirun").exists():
            yield Mpi(folder / "bin/mpirun")
        for library in sorted(folder.glob("lib/libmpi_abi.so.?")):
            yield Mpi(folder / "bin/mpirun", str(library))
