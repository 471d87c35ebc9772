"""What `embertable doctor` finds, for programs."""

from __future__ import annotations

import os
from typing import NamedTuple

from ._arguments import path_of
from ._core import _examine

__all__ = ["Diagnosis", "Finding", "doctor"]

_FRAMEWORKS = ["numpy", "torch", "tensorflow", "tensorflow-cpu", "jax", "mpi4py"]


class Finding(NamedTuple):
    """What was found about one thing.

    subject is what was examined, found what it is like, and advice what to change and what that costs; "" where all is good.

    >>> embertable.Finding("threads", "8").good
    True
    """

    subject: str
    found: str
    advice: str = ""

    @property
    def good(self) -> bool:
        return not self.advice


class Diagnosis(list[Finding]):
    """A list of findings, shown as the command shows them.

    >>> embertable.Diagnosis([embertable.Finding("threads", "8 of 8 processors")])
    good   threads     8 of 8 processors
    all good
    """

    def __repr__(self) -> str:
        lines = []
        for one in self:
            lines.append(f"{'good' if one.good else 'CHANGE':<6} {one.subject:<11} {one.found}")
            if not one.good:
                lines.append(f"{'':<18} {one.advice}")
        return "\n".join(lines if any(not one.good for one in self) else [*lines, "all good"])


def packages() -> list[tuple[str, str]]:
    """Names and versions of the interpreter and of the frameworks that are installed, none of which is imported."""
    import platform  # these take long, and few programs need them
    from importlib import metadata

    found = [("Python", f"{platform.python_implementation()} {platform.python_version()}")]
    for name in _FRAMEWORKS:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found


def doctor(folder: str | os.PathLike[str] = ".") -> Diagnosis:
    """Examines this machine and a folder in which runs will be saved, as `embertable doctor` does.

    Returns one finding for each of: version, SIMD level, threads, huge pages, memory, limits, folder, MPI, Python and
    each framework that is installed. Each is good, or says what to change and what it costs. In the folder, files of a
    hidden name are written, renamed, locked and mapped, and removed again.

    >>> [finding.subject for finding in embertable.doctor(directory)][0]
    'version'
    """
    found = [Finding(*one) for one in _examine(path_of("doctor", "folder", folder))]
    return Diagnosis(found + [Finding(name, version) for name, version in packages()])
