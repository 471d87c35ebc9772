"""Jobs of docs/jobs.md, trained from Python, and what is done with their runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from ._arguments import kind_of, path_of, require_flag, seed_of, whole_number
from ._core import _evaluate_run, _predict_rows, _sweep_job, _train_job
from ._interrupts import Interrupts

__all__ = ["evaluate", "predict", "sweep", "train"]

_FRAME = "data.csv"


def _toml(what: str, value: Any, where: str) -> str:
    """The value in TOML, in one line. `what` is the function that takes it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(what, str(key), where)} = {_toml(what, item, f'{where}.{key}')}"
                               for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(what, item, where) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    raise TypeError(f"{what}: {where} must be a number, bool, text, list or dict, got {type(value).__name__}")


def _require_dict(what: str, name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{what}: {name} must be a dict by key, got {value!r}")


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


def _job_of(what: str, job: Any, changed: Mapping[str, Any] | None, data: Any,
            progress: Any) -> tuple[Any, Any, list[str], Callable[[str], Any] | None]:
    """The job's text, None if it is in a file; its path; changes as after --set; and what takes events as texts."""
    if progress is not None and not callable(progress):
        raise TypeError(f"{what}: progress must be a function, got {type(progress).__name__}")
    if changed is not None:
        _require_dict(what, "set", changed)
    text = None
    if isinstance(job, Mapping):
        text = "".join(f"{_toml(what, str(key), key)} = {_toml(what, value, key)}\n" for key, value in job.items())
        job = "job"
    elif not isinstance(job, (str, os.PathLike)):
        raise TypeError(f"{what}: job must be the path of a job file or a dict, got {kind_of(job)}")
    fixed = {"data.file": _FRAME, "data.header": True, "data.field_separator": ","} if hasattr(data, "to_csv") else {}
    return text, job, [f"{key}={_toml(what, value, key)}" for key, value in {**(changed or {}), **fixed}.items()], (
        None if progress is None else lambda event: progress(json.loads(event)))


def _with_values(result: dict[str, Any], grid: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a sweep with the settings of its runs as `set` takes them."""
    given = {(key, _toml("sweep", value, key)): value for key, values in grid.items() for value in values}
    for run in result.get("runs", []):
        for key, text in run["set"].items():
            try:
                run["set"][key] = json.loads(text)
            except ValueError:  # TOML has more than JSON: inf, tables
                run["set"][key] = given.get((key, text), text)
    return result


def _require_data(what: str, data: Any) -> None:
    if data is not None and not hasattr(data, "to_csv") and not isinstance(data, (str, os.PathLike)):
        raise TypeError(f"{what}: data must be the path of a folder, a pandas frame or None, got {kind_of(data)}")


def _require_flags(what: str, **flags: Any) -> None:
    for name, value in flags.items():
        require_flag(what, name, value)


def _folder_of(data: Any, file: Any) -> Any:
    """The folder of the job's files: that of a frame's file, the one that is given, or "" for the job's own."""
    return file.parent if hasattr(data, "to_csv") else file or ""


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

    threads is that of the engine, 0 one per CPU; skip_bad the number or share of broken lines to leave out.

    Gives the keys that the command prints with --json when it is done, and "interrupted". Ctrl-C ends the run after the
    step, and saves it in out, before KeyboardInterrupt is raised; a second one ends it at once. If another process was
    interrupted, the result says so, and has neither measures nor digest. Raises ValueError naming the key of the job that is
    wrong, OSError.

    >>> embertable.train("job.toml", directory + "/run")  # doctest: +SKIP
    """
    _require_flags("train", resume=resume, overwrite=overwrite)
    _require_data("train", data)
    whole_number("train", "threads", threads)
    if out is not None and not path_of("train", "out", out):
        raise ValueError("train: out must not be empty; None trains without saving")
    text, path, changes, told = _job_of("train", job, set, data, progress)
    with Interrupts() as interrupts, _file_of(data) as file:
        done = _train_job(path, text, changes, out or "", bool(resume), bool(overwrite), _folder_of(data, file), threads, skip_bad,
                          exchange, deadline, interrupts.any, told)
    interrupts.pass_on()
    return done


def sweep(job: str | os.PathLike[str] | Mapping[str, Any], out: str | os.PathLike[str],
          grid: Mapping[str, Sequence[Any] | tuple[float, float]], *, random: int | None = None, seed: int = 1,
          set: Mapping[str, Any] | None = None, resume: bool = False, overwrite: bool = False,
          data: str | os.PathLike[str] | Any = None, threads: int = 0, jobs: int = 0, skip_bad: int | str = 0,
          keep_runs: bool = False, test: bool = True,
          progress: Callable[[dict[str, Any]], Any] | None = None) -> dict[str, Any]:
    """Trains a job with many settings and the best of them again, as `embertable sweep` does: to the same digests.

    grid has the values of each key, {"model.dim": [16, 32]}: all combinations are trained, or random of them, drawn by
    seed. With random a tuple of two numbers is a range, {"optimizer.learning_rate": (0.001, 0.1)}. The runs are ranked by
    the first metric on the validation part, which does not train. test: the best is trained again with the validation
    part, in out/best, and measured on the test part once. resume takes the results in out and goes on; a frame is known again by its
    content. Values that mean the same, such as 1 and 1.0, are trained once. threads are those
    of all runs together, and jobs the most runs side by side, 0 for one for each thread as far as memory suffices. overwrite
    removes what a sweep has left in out; keep_runs keeps the directory of every run, not of the best alone. job, set, data,
    skip_bad, progress and Ctrl-C are as in train.

    Gives "runs", best first: each has "set", which train takes, and "validation", "epoch", "seconds" and "digest", or "error"; with test
    "test", "digest", "saved" and "epochs" of the best; and "interrupted". Raises ValueError naming the key of the job or
    grid that is wrong, TypeError, OSError.

    >>> embertable.sweep("job.toml", directory + "/runs", {"model.dim": [16, 32]})  # doctest: +SKIP
    """
    _require_flags("sweep", resume=resume, overwrite=overwrite, keep_runs=keep_runs, test=test)
    _require_data("sweep", data)
    path_of("sweep", "out", out)
    for name, number in (("threads", threads), ("jobs", jobs)):
        whole_number("sweep", name, number)
    text, path, changes, told = _job_of("sweep", job, set, data, progress)
    _require_dict("sweep", "grid", grid)
    keys = [_swept(key, values, random is not None) for key, values in grid.items()]
    with Interrupts() as interrupts, _file_of(data) as file:
        stamp = _content_of(file) if hasattr(data, "to_csv") else ""
        done = _sweep_job(path, text, changes, keys, random, seed_of("sweep", "seed", seed), out, bool(resume), bool(overwrite),
                          _folder_of(data, file), threads, jobs, skip_bad, bool(keep_runs), bool(test), stamp, interrupts.any, told)
    interrupts.pass_on()
    result: dict[str, Any] = {}
    for event in done["events"]:
        result.update(json.loads(event))
    result.pop("event", None)
    result["interrupted"] = done["interrupted"]
    return _with_values(result, grid)


def _swept(key: str, values: Any, draws: bool) -> str:
    """A key of the grid as after --grid."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"sweep: grid['{key}'] must be a list of values, got {type(values).__name__}")
    if isinstance(values, tuple) and draws:
        if len(values) != 2:
            raise ValueError(f"sweep: grid['{key}'] must be a tuple of two numbers for a range, got {len(values)}")
        return f"{key}={_toml('sweep', values[0], key)}..{_toml('sweep', values[1], key)}"
    return f"{key}=" + ",".join(_toml("sweep", value, key) for value in values)


def _content_of(path: pathlib.Path) -> str:
    """Tells contents of a file apart."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def evaluate(run: str | os.PathLike[str], *, part: str | None = None, data: str | os.PathLike[str] | Any = None,
             threads: int = 0, skip_bad: int | str | None = None) -> dict[str, Any]:
    """Measures a saved run on a part of its data, as `embertable eval` does.

    run is the directory of a run, of which the best epoch is taken if it keeps one, else the latest step; or of a
    step. part is "test", "validation" or "training"; None is the part that the run measured. data is the folder of the
    job's files, or the frame that the run was trained on; None is the folder that the run read, and skip_bad None what
    it left out at most.

    Gives directory, step, part, samples and each metric by its name; None where the part has no samples. threads is that
    of the lookups, 0 one per CPU. Raises OSError, ValueError.

    >>> embertable.evaluate(directory + "/run", part="test")  # doctest: +SKIP
    """
    path_of("evaluate", "run", run)
    _require_data("evaluate", data)
    whole_number("evaluate", "threads", threads)
    with _file_of(data) as path:
        return _evaluate_run(run, part, _folder_of(data, path), threads, skip_bad)


def predict(run: str | os.PathLike[str], rows: str | os.PathLike[str] | Any, *, k: int | None = None, has_label: bool = True,
            threads: int = 0, skip_bad: int | str = 0, ids: bool = True, copy: Sequence[str | int] | str = ()) -> dict[str, Any]:
    """Scores new rows with a saved run, as `embertable predict` does, and gives the columns of scores by name.

    rows is a file in the format of the job's own data, or a pandas frame if that has a header and commas. k is the
    number of items that a model which ranks them gives each user, 10 for None; mf ranks them if it is given.
    has_label=False: the file has no header and lacks the label's column. skip_bad is the number of broken lines to leave
    out, or a share of them as "1%". Beside the scores of records are the columns of the job's ids with one key a record,
    unless ids is False, and the columns that copy names.

    Columns are NumPy arrays, or lists of texts: pandas.DataFrame(predict(...)) is a frame. run is the directory of a run or of
    a step; threads is that of the lookups, 0 one per CPU. Raises OSError, ValueError naming the line.

    >>> embertable.predict(directory + "/run", "rows.csv", has_label=False)  # doctest: +SKIP
    """
    path_of("predict", "run", run)
    _require_flags("predict", has_label=has_label, ids=ids)
    whole_number("predict", "threads", threads)
    columns = _columns(copy)
    if not hasattr(rows, "to_csv") and not isinstance(rows, (str, os.PathLike)):
        raise TypeError(f"predict: rows must be the path of a file or a pandas frame, got {type(rows).__name__}")
    with _file_of(rows) as path:
        return _predict_rows(run, path, k, bool(has_label), threads, skip_bad, bool(ids), columns)


def _columns(copy: Any) -> list[str]:
    if isinstance(copy, str):
        return [copy]
    columns = list(copy) if isinstance(copy, Iterable) and not isinstance(copy, bytes) else [copy]
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, (str, SupportsIndex)):
            raise TypeError(f"predict: copy must be a column or a list of columns, by name or number, got {copy!r}")
    return [str(column) for column in columns]
