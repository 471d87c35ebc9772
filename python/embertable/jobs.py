"""Jobs of docs/jobs.md, trained from Python, and what is done with their runs."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._core import _evaluate_run, _predict_rows, _train_job

__all__ = ["evaluate", "predict", "train"]

_FRAME = "data.csv"


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


@contextlib.contextmanager
def _file_of(data: Any) -> Iterator[Any]:
    """The path, or of a pandas frame that of a file with its rows, which is removed afterwards."""
    if not hasattr(data, "to_csv"):
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="embertable-") as folder:
        path = pathlib.Path(folder) / _FRAME
        data.to_csv(path, index=False)
        yield path


def train(job: str | os.PathLike[str] | Mapping[str, Any], out: str | os.PathLike[str] | None = None, *,
          set: Mapping[str, Any] | None = None, resume: bool = False, overwrite: bool = False,
          data: str | os.PathLike[str] | Any = None, threads: int = 0, skip_bad: int | str = 0, exchange: Any = None,
          deadline: float | None = None, progress: Callable[[dict[str, Any]], Any] | None = None) -> dict[str, Any]:
    """Trains a job and measures it, as `embertable train` does: to the same digest, and with the same files in `out`.

    job is the path of a job file, or its contents as a dict, as tomllib reads them. set changes keys:
    {"schedule.epochs": 3}. resume goes on with the run in out, overwrite removes it. data is the folder of the job's
    files; None is that of the job file, or ../data beside it, and of a dict the current folder. It may be a pandas frame
    too, which is then the job's only data file, with a header and commas; evaluate then asks for data. exchange
    connects the processes that train it together, each of which calls train: "mpi", a communicator of mpi4py, or an
    Exchange; None finds the processes of mpirun and srun. deadline: of MPI, seconds without a message after which a
    process counts as missing, 60 for None. progress is called with each object that the command prints with --json, as
    a dict: {"event": "epoch", "epoch": 1, ...}. What it raises ends the run, unsaved.

    Gives the keys that the command prints with --json when it is done, and "interrupted". Ctrl-C ends the run after the
    step, and saves it in out, before KeyboardInterrupt is raised; a second one ends it at once. If another process was
    interrupted, the result says so, and has neither measures nor digest.
    """
    if progress is not None and not callable(progress):
        raise TypeError(f"train: progress must be a function, got {type(progress).__name__}")
    text = None
    if isinstance(job, Mapping):
        text, job = "".join(f"{_toml(str(key), key)} = {_toml(value, key)}\n" for key, value in job.items()), "job"
    is_frame = hasattr(data, "to_csv")
    fixed = {"data.file": _FRAME, "data.header": True, "data.field_separator": ","} if is_frame else {}
    changes = [f"{key}={_toml(value, key)}" for key, value in {**(set or {}), **fixed}.items()]
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
        with _file_of(data) as path:
            folder = path.parent if is_frame else path or ""
            done = _train_job(job, text, changes, out or "", resume, overwrite, folder, threads, skip_bad, exchange,
                              deadline, lambda: bool(interrupts),
                              progress and (lambda event: progress(json.loads(event))))
    finally:
        if catches:
            signal.signal(signal.SIGINT, before)
    if interrupts:
        before(*interrupts[0])
    return done


def evaluate(run: str | os.PathLike[str], *, part: str | None = None, data: str | os.PathLike[str] | Any = None,
             threads: int = 0, skip_bad: int | str | None = None) -> dict[str, Any]:
    """Measures a saved run on a part of its data, as `embertable eval` does.

    run is the directory of a run, of which the best epoch is taken if it keeps one, else the latest step; or of a
    step. part is "test", "validation" or "training"; None is the part that the run measured. data is the folder of the
    job's files, or the frame that the run was trained on; None is the folder that the run read, and skip_bad None what
    it left out at most.

    Gives directory, step, part, samples and each metric by its name; None where the part has no samples.
    """
    with _file_of(data) as path:
        folder = path.parent if hasattr(data, "to_csv") else path or ""
        return _evaluate_run(run, part, folder, threads, skip_bad)


def predict(run: str | os.PathLike[str], rows: str | os.PathLike[str] | Any, *, k: int | None = None, has_label: bool = True,
            threads: int = 0, skip_bad: int = 0) -> dict[str, Any]:
    """Scores new rows with a saved run, as `embertable predict` does, and gives the columns of scores by name.

    rows is a file in the format of the job's own data, or a pandas frame if that has a header and commas. k is the
    number of items that a model which ranks them gives each user, 10 for None. has_label=False: the file has no header
    and lacks the label's column. skip_bad is the number of broken lines to leave out.

    Columns are NumPy arrays, or lists of texts: pandas.DataFrame(predict(...)) is a frame.
    """
    with _file_of(rows) as path:
        return _predict_rows(run, path, k, has_label, threads, skip_bad)
