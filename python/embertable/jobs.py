"""Jobs of docs/jobs.md, trained from Python."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

from ._core import _train_job

__all__ = ["train"]


def _toml(value: Any, where: str) -> str:
    """The value in TOML, in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(key), where)} = {_toml(item, f'{where}.{key}')}"
                               for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item, where) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    raise TypeError(f"train: {where} must be a number, bool, text, list or dict, got {type(value).__name__}")


def train(job: str | os.PathLike[str] | Mapping[str, Any], out: str | os.PathLike[str] | None = None, *,
          set: Mapping[str, Any] | None = None, resume: bool = False, overwrite: bool = False,
          data: str | os.PathLike[str] | None = None, threads: int = 0, skip_bad: int | str = 0, exchange: Any = None,
          deadline: float | None = None) -> dict[str, Any]:
    """Trains a job and measures it, as `embertable train` does: to the same digest, and with the same files in `out`.

    job is the path of a job file, or its contents as a dict, as tomllib reads them. set changes keys:
    {"schedule.epochs": 3}. resume goes on with the run in out, overwrite removes it. data is the folder of the job's
    files; None is that of the job file, or ../data beside it, and of a dict the current folder. exchange connects the
    processes that train it together, each of which calls train: "mpi", a communicator of mpi4py, or an Exchange; None
    finds the processes of mpirun and srun. deadline: of MPI, seconds without a message after which a process counts as
    missing, 60 for None.

    Gives the keys that the command prints with --json when it is done, and "interrupted". Ctrl-C ends the run after the
    step, and saves it in out, before KeyboardInterrupt is raised; a second one ends it at once. If another process was
    interrupted, the result says so, and has neither measures nor digest.
    """
    text = None
    if isinstance(job, Mapping):
        text, job = "".join(f"{_toml(str(key), key)} = {_toml(value, key)}\n" for key, value in job.items()), "job"
    changes = [f"{key}={_toml(value, key)}" for key, value in (set or {}).items()]
    interrupts: list[Any] = []

    def interrupt(number: int, frame: Any) -> None:
        if interrupts and callable(before):
            before(number, frame)
        interrupts.append((number, frame))

    before = signal.getsignal(signal.SIGINT)
    catches = callable(before) and threading.current_thread() is threading.main_thread()
    if catches:
        signal.signal(signal.SIGINT, interrupt)
    try:
        done = _train_job(job, text, changes, out or "", resume, overwrite, data or "", threads, skip_bad, exchange, deadline,
                          lambda: bool(interrupts))
    finally:
        if catches:
            signal.signal(signal.SIGINT, before)
    if interrupts:
        before(*interrupts[0])
    return done
