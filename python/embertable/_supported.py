"""Why the extension cannot be loaded here, in one sentence."""

from __future__ import annotations

import os
import sys

OLDEST_PYTHON = (3, 10)
OLDEST_GLIBC = (2, 28)  # of the wheels; a package that was compiled here needs that of its own machine
MACHINE = "x86_64"


def explain(error: ImportError, implementation: str, python: tuple[int, ...], machine: str, glibc: str | None) -> str:
    """The sentence for an error of the loader and what this process runs on; glibc is such as "glibc 2.28"."""
    name = f"CPython {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or later"
    if implementation != "cpython" or python < OLDEST_PYTHON:
        return f"embertable needs {name}, and this is {implementation} {python[0]}.{python[1]}"
    if machine != MACHINE:
        return f"this embertable was built for {MACHINE}, and this processor is {machine}: install it from source"
    needed = ".".join(map(str, OLDEST_GLIBC))
    if glibc is None:
        return f"embertable needs glibc {needed} or later, and this system has another C library"
    version = tuple(int(part) for part in glibc.split()[-1].split(".")[:2])
    if version < OLDEST_GLIBC or "GLIBC" in str(error):
        return f"this embertable needs a later glibc than this system's {glibc.split()[-1]}; wheels need {needed}: {error}"
    return f"the extension of embertable cannot be loaded: {error}"


def explained(error: ImportError) -> ImportError:
    try:
        glibc = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        glibc = None
    return ImportError(explain(error, sys.implementation.name, sys.version_info[:2], os.uname().machine, glibc))
