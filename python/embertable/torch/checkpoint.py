"""One commit for a whole training: dense parameters, optimizers, schedulers, random states, data position and tables."""

from __future__ import annotations

import collections
import contextlib
import copy
import io
import json
import os
import pathlib
import pickle
import random
import re
import secrets
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import torch

from .._arguments import objects_of, path_of, require_kind, require_methods, whole_number
from .._core import CallerState, CheckpointRun, find_checkpoint, read_saved_state, verify_checkpoint
from .._core import Embedding as Engine
from .._interrupts import Interrupts
from . import ranks
from .modules import TableModule
from .state import EXTRA, TableState, number_for, numbered, numbers_in

__all__ = ["Loaded", "load", "save"]

_BLOB = "embertable.torch"
_FORMAT = 1  # of the blob, also of one without a number
_OTHERS = "others"  # folder in a run for the tables of all modules but the first


class Loaded:
    """What `load` found beside the states that it put back. step: the number of the folder, see `save`."""

    def __init__(self, step: int, position: Any, directory: str) -> None:
        self.step, self.position, self.directory = step, position, directory


def save(module: torch.nn.Module, engine: TableModule | Sequence[TableModule] | None, directory: str | os.PathLike[str], *,
         optimizer: Any = None, scheduler: Any = None, scaler: Any = None, position: Any = None, keep: int = 2) -> str:
    """Commits everything that the training needs to go on, as one step of the run directory, and gives that step's folder.

    module: the model. engine: its module of tables, or several, or None for those inside `module`. optimizer and scheduler:
    one, a list or a dict of what has state_dict(). position: where the data stand, of numbers, texts, lists, dicts and
    tensors, or an object with state_dict(). keep: steps that stay, 0 for all.

    The folder has the number of the first tables' step, or the one after the directory's last where that is as high: tables
    may be frozen while the rest trains, or go on from an older step. After an error, or killed at any moment, the directory
    has the steps that it had, or the new one too: older ones are removed after the commit. Of several processes all call it,
    and an error on one is one on all; the dense part is that of the first one.
    """

    def check() -> tuple[list[TableState], pathlib.Path]:
        if whole_number("save", "keep", keep) < 0:
            raise ValueError(f"keep must be >= 0, got {keep}")
        _require_parts("save", optimizer, scheduler, scaler, "state_dict")
        return _tables_of("save", module, engine), pathlib.Path(path_of("save", "directory", directory))

    tables, run = ranks.agreed(check)
    first, others = tables[0], tables[1:]
    for one in tables:
        ranks.require_all(one.processes, "save")
    trained = first.engine.step
    ranks.agreed(lambda: _require_none_waiting(tables))
    step = ranks.first_of(lambda: number_for(trained, run))
    state: dict[str, Any] = ranks.agreed(lambda: _plain({
        "module": _dense_state(module, tables), "optimizers": _states(optimizer), "schedulers": _states(scheduler),
        "scaler": None if scaler is None else scaler.state_dict(), "random": _random_state(),
        "position": position.state_dict() if hasattr(position, "state_dict") else position}))
    mark = ranks.first_of(lambda: secrets.token_hex(4))
    mine = {part: state.pop(part) for part in ("random", "position")}
    _written(mine)  # what cannot be written cannot be gathered either
    state["ranks"] = ranks.gathered(mine)
    state["format"], state["trained"] = _FORMAT, trained
    state["others"] = [f"{step:012d}-{index}-{mark}" for index in range(1, len(tables))]
    written = _written(state)  # what cannot be read again is known before the first file is written
    try:
        for other, name in zip(others, state["others"]):
            other.engine.save(run / _OTHERS / name)
        with numbered(first.engine, step):
            committed = first.engine.save(run, CallerState(blobs={_BLOB: written}))
    except BaseException:
        if ranks.is_first() and step not in numbers_in(run):
            for name in state["others"]:
                shutil.rmtree(run / _OTHERS / name, ignore_errors=True)
        raise
    ranks.first_of(lambda: _remove_older(run, keep, step, state["others"]))
    return os.fspath(committed)


def load(module: torch.nn.Module, engine: TableModule | Sequence[TableModule] | None, directory: str | os.PathLike[str], *,
         optimizer: Any = None, scheduler: Any = None, scaler: Any = None, random_state: bool = True) -> Loaded:
    """Puts back what `save` committed last: `directory` is the run or one of its steps.

    Everything that was saved must be asked for, and the other way round. The position is in what comes back. Ctrl-C is raised
    once all is put back, a second one at once. Raises RuntimeError where a disk fails between the tables of two modules.
    """

    def read(path: pathlib.Path, tables: Sequence[TableState]) -> tuple[int, dict[str, Any], list[pathlib.Path]]:
        saved = read_saved_state(path)
        state = _read(path, saved.caller.blobs.get(_BLOB))
        if len(state["others"]) != len(tables) - 1:
            raise ValueError(f"'{path}' has tables of {len(state['others']) + 1} modules, the model has {len(tables)}")
        _require_same("optimizer", state["optimizers"], optimizer)
        _require_same("scheduler", state["schedulers"], scheduler)
        _require_groups("optimizer", state["optimizers"], optimizer)
        _require_groups("scheduler", state["schedulers"], scheduler)
        mine = _of_rank(state)
        if mine is not None and random_state:
            _require_bit_generator(_numpy_state(mine["random"]["numpy"])["bit_generator"])
        if (state["scaler"] is None) != (scaler is None):
            raise ValueError(f"'{path}' was saved {'without' if state['scaler'] is None else 'with'} a scaler: give "
                             f"{'none' if state['scaler'] is None else 'one'}")
        _require_alike(module, tables, state["module"])
        places = [path, *(path.parent / _OTHERS / name for name in state["others"])]
        if len(places) > 1:  # a single restore checks before it changes rows
            for place in places:
                verify_checkpoint(place)
        for one, place in zip(tables, places):
            _require_tables(one, place)
        return saved.step, state, places

    def check() -> tuple[list[TableState], pathlib.Path, int, dict[str, Any], list[pathlib.Path]]:
        _require_parts("load", optimizer, scheduler, scaler, "state_dict", "load_state_dict")
        tables = _tables_of("load", module, engine)
        given = pathlib.Path(path_of("load", "directory", directory))
        path = pathlib.Path(find_checkpoint(given))
        steps = _steps_from(given)
        newest = steps[0] if steps else path
        failed: OSError | None = None
        for path in (path, *steps[steps.index(given / path.name) + 1:]) if steps else (path,):
            try:
                found = read(path, tables)
            except OSError as error:  # also of the tables of another module
                failed = failed or error
                continue
            if path.name != newest.name:
                warnings.warn(f"load: '{newest}' cannot be opened; '{path}' is loaded", stacklevel=4)
            return tables, path, *found
        assert failed is not None
        raise failed

    def put_back() -> None:
        with _rows_left_out(tables):
            module.load_state_dict(state["module"])
        _put_back(state["optimizers"], optimizer)
        _put_back(state["schedulers"], scheduler)
        if scaler is not None:
            scaler.load_state_dict(state["scaler"])

    tables, path, step, state, places = ranks.agreed(check)
    parts = [*_as_dict(optimizer).values(), *_as_dict(scheduler).values(), scaler]
    with Interrupts() as interrupts, _back_after_errors(module, tables, parts):
        ranks.agreed(put_back)
        _restore_all(tables, places)
        tables[0].engine.assign_step(state.get("trained", step))
        for one in tables:
            one.forget_waiting()
    interrupts.pass_on()
    mine = _of_rank(state)
    if mine is not None and random_state:
        _set_random_state(mine["random"])
    return Loaded(step, None if mine is None else mine["position"], os.fspath(path))


def _steps_from(given: pathlib.Path) -> list[pathlib.Path]:
    """The steps of a run, the highest first; none of a directory that is no run."""
    found = {}
    for entry in given.iterdir() if given.is_dir() else ():
        step = re.fullmatch(r"step_(\d{12,19})", entry.name)
        if step:
            found[int(step[1])] = entry
    return [found[step] for step in sorted(found, reverse=True)]


def _restore_all(tables: Sequence[TableState], places: Sequence[pathlib.Path]) -> None:
    for index, (one, place) in enumerate(zip(tables, places)):
        try:
            one.engine.restore(place)
        except Exception as error:
            if index == 0:
                raise
            raise RuntimeError(f"load: the tables of {', '.join(done.name for done in tables[:index])} are those of '{places[0]}' already, and the "
                               f"rest is as it was, since those of {one.name} could not be put back: load again") from error


def _read(path: pathlib.Path, blob: bytes | None) -> dict[str, Any]:
    if blob is None:
        raise ValueError(f"'{path}' has no training of torch: embertable.torch.save writes it, and Embedding.save tables alone")
    state: dict[str, Any] = torch.load(io.BytesIO(blob), map_location="cpu", weights_only=True)
    if state.get("format", _FORMAT) != _FORMAT:
        raise ValueError(f"'{path}' has a training of format {state['format']}, this version reads {_FORMAT}")
    return state


def _of_rank(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """What this process saved, None where fewer did."""
    rank = ranks.rank()
    return state["ranks"][rank] if rank < len(state["ranks"]) else None


def _tables_of(title: str, module: torch.nn.Module, engine: Any) -> list[TableState]:
    require_kind(title, "module", module, torch.nn.Module, "a torch.nn.Module")
    inside = [one for one in module.modules() if isinstance(one, TableModule)]
    if isinstance(engine, Engine):
        found = [one for one in inside if one._table_state.has(engine)]
    elif isinstance(engine, TableModule):
        found = [engine]
    elif engine is None:
        found = []
    else:
        found = objects_of(title, "engine", engine, "a module of embertable.torch or a list of them")
    for one in found:
        require_kind(title, "engine", one, TableModule, "a module of embertable.torch or a list of them")
    for one in inside:
        if not any(one is other for other in found):
            if engine is not None:
                raise ValueError(f"the model has tables that engine does not name, {one._table_state.name}: name all, or give None")
            found.append(one)
    if not found:
        raise ValueError("the model has no tables of embertable.torch: use torch.save")
    return [one._table_state for one in found]


def _require_none_waiting(tables: Sequence[TableState]) -> None:
    for one in tables:
        one.require_none_waiting()


@contextlib.contextmanager
def _rows_left_out(tables: Sequence[TableState]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for one in tables:
            stack.enter_context(one.rows_left_out())
        yield


def _dense_state(module: torch.nn.Module, tables: Sequence[TableState]) -> dict[str, Any]:
    with _rows_left_out(tables):
        return dict(module.state_dict())


@contextlib.contextmanager
def _back_after_errors(module: torch.nn.Module, tables: Sequence[TableState], parts: Sequence[Any]) -> Iterator[None]:
    """If what is within fails, the dense part and these parts are as they were."""
    dense = copy.deepcopy(_dense_state(module, tables))
    before = [None if part is None else copy.deepcopy(part.state_dict()) for part in parts]
    try:
        yield
    except BaseException:
        with _rows_left_out(tables):
            module.load_state_dict(dense)
        for part, state in zip(parts, before):
            if part is not None:
                part.load_state_dict(state)
        raise


def _require_alike(module: torch.nn.Module, tables: Sequence[TableState], saved: Mapping[str, Any]) -> None:
    """Before the first table changes: the dense part has the parameters that were saved."""
    here = _dense_state(module, tables)
    differ = sorted({*here} ^ {*saved}) or sorted(
        key for key, value in here.items() if isinstance(value, torch.Tensor) and not key.endswith(EXTRA)
        and value.shape != saved[key].shape)
    if differ:
        raise ValueError(f"the model is not the one that was saved: {', '.join(differ[:4])} differ"
                         + (f", and {len(differ) - 4} more" if len(differ) > 4 else ""))


def _require_tables(one: TableState, place: pathlib.Path) -> None:
    """Before the first table of any module changes: the tables that were saved there fit this module's."""
    tables = json.loads((pathlib.Path(find_checkpoint(place)) / "manifest.json").read_bytes())["tables"]
    there = {table["name"]: {"rows": table["vocabulary_size"], "dim": table["dim"], "combiner": table["combiner"],
                             "rule": table["optimizer"]["rule"] if table["optimizer"] else ""} for table in tables}
    problems = one.differences(there)
    if problems:
        raise ValueError(problems[0])
    row_wise = {f"{table['name']}/{slot['name']}": slot["row_wise"] for table in tables for slot in table["slots"]}
    for info in one.engine.tables:
        for slot in info.slots:
            if row_wise.get(f"{info.name}/{slot.name}", slot.row_wise) != slot.row_wise:
                raise ValueError(f"{one.name}: slot '{slot.name}' of table '{info.name}' has one number a row "
                                 f"{'here' if slot.row_wise else 'there'} alone: make the module with the rule that saved '{place}'")


def _as_dict(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(key): one for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return {str(index): one for index, one in enumerate(value)}
    return {"0": value}


def _states(value: Any) -> dict[str, Any]:
    return {key: one.state_dict() for key, one in _as_dict(value).items()}


def _require_same(what: str, saved: Mapping[str, Any], given: Any) -> None:
    if set(saved) != set(_as_dict(given)):
        raise ValueError(f"{what}: saved were {sorted(saved) or 'none'}, given are {sorted(_as_dict(given)) or 'none'}")


def _require_parts(title: str, optimizer: Any, scheduler: Any, scaler: Any, *methods: str) -> None:
    for what, given in (("optimizer", _as_dict(optimizer)), ("scheduler", _as_dict(scheduler)),
                        ("scaler", {} if scaler is None else {"0": scaler})):
        for one in given.values():
            require_methods(title, what, one, *methods)


def _require_groups(what: str, saved: Mapping[str, Any], given: Any) -> None:
    """What an optimizer's load_state_dict says too late, and that of a scheduler not at all."""
    for key, one in _as_dict(given).items():
        state = saved[key]  # of a scheduler of one's own it may be anything
        here, there = getattr(one, "param_groups", None), state.get("param_groups") if isinstance(state, Mapping) else None
        kind = type(one).__name__
        if there is None and isinstance(one, torch.optim.Optimizer):
            raise ValueError(f"{what}: the one that was saved has no groups of parameters, which {kind} has")
        if there is not None and isinstance(one, torch.optim.lr_scheduler.LRScheduler):
            raise ValueError(f"{what}: the one that was saved has groups of parameters, which {kind} has not")
        ours, theirs = _sizes_of(here), _sizes_of(there)
        if ours is not None and theirs is not None and ours != theirs:
            raise ValueError(f"{what}: the one that was saved has groups of {theirs} parameters, the one given has {ours}")


def _sizes_of(groups: Any) -> list[int] | None:
    """The number of parameters in each group, None for what is no list of groups."""
    if not isinstance(groups, list) or not all(isinstance(group, Mapping) and isinstance(group.get("params"), Sized) for group in groups):
        return None
    return [len(group["params"]) for group in groups]


def _plain(value: Any) -> Any:
    """With numbers of NumPy as Python's: torch.load with weights_only=True knows those alone."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (dict, collections.OrderedDict):
        return type(value)((_plain(key), _plain(one)) for key, one in value.items())
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value


def _written(state: Mapping[str, Any]) -> bytes:
    """The bytes of a state that can be read again. Of several processes all raise, or none."""
    written = io.BytesIO()
    error = _fault(state, written)
    problem = None
    if error is not None:
        part = next((part for part, one in state.items() if _fault(one, io.BytesIO()) is not None), "state")
        known = re.search(r"GLOBAL (\w[\w.]*)", str(error))
        problem = (f"{part}: has what torch.load(weights_only=True) does not read, {known[1] if known else (str(error).splitlines() or [type(error).__name__])[0]}: "
                   "give numbers, texts, lists, dicts and tensors")
    for found in ranks.gathered(problem):
        if found is not None:
            raise ValueError(found)
    return written.getvalue()


def _fault(value: Any, to: io.BytesIO) -> Exception | None:
    try:
        torch.save(value, to)
        to.seek(0)
        try:
            torch.load(to, map_location="meta", weights_only=True)  # without the memory of a copy
        except Exception:  # as of sparse tensors, which "meta" has not
            to.seek(0)
            torch.load(to, map_location="cpu", weights_only=True)
    except Exception as error:  # also what the caller's own pickling raises
        return error
    return None


def _put_back(saved: Mapping[str, Any], given: Any) -> None:
    for key, one in _as_dict(given).items():
        one.load_state_dict(saved[key])


def _random_state() -> dict[str, Any]:
    version, numbers, cached = random.getstate()
    return {"torch": torch.get_rng_state(), "numpy": _without_arrays(np.random.get_state(legacy=False)),
            "python": [version, list(numbers), cached],
            "cuda": torch.cuda.get_rng_state_all() if _has_cuda() else []}


def _without_arrays(state: Any) -> Any:
    """The state of a bit generator with [type, whole numbers] for arrays, which torch.load with weights_only=True does not read."""
    if isinstance(state, Mapping):
        return {key: _without_arrays(one) for key, one in state.items()}
    return [str(state.dtype), torch.from_numpy(state.astype(np.int64))] if isinstance(state, np.ndarray) else state


def _with_arrays(state: Any) -> Any:
    """What `_without_arrays` was given."""
    if isinstance(state, Mapping):
        return {key: _with_arrays(one) for key, one in state.items()}
    return state[1].numpy().astype(state[0]) if isinstance(state, list) else state


def _numpy_state(saved: Any) -> dict[str, Any]:
    """The state of NumPy's generator. Older versions wrote [keys, place, has_gauss, gauss] of MT19937."""
    if isinstance(saved, Mapping):
        state: dict[str, Any] = _with_arrays(saved)
        return state
    keys, place, has_gauss, gauss = saved
    return {"bit_generator": "MT19937", "state": {"key": keys.numpy().astype(np.uint32), "pos": place}, "has_gauss": has_gauss,
            "gauss": gauss}


def _bit_generator() -> str:
    """The kind of NumPy's global generator."""
    kind: str = np.random.get_state(legacy=False)["bit_generator"]  # type: ignore[index, call-overload]
    return kind


def _require_bit_generator(kind: str) -> None:
    """Raises ValueError for a kind that this process has not."""
    if kind != _bit_generator() and not (hasattr(np.random, "set_bit_generator") and isinstance(getattr(np.random, kind, None), type)):
        raise ValueError(f"NumPy's random generator was {kind} when the training was saved, and is {_bit_generator()}: set one of that kind "
                         "with numpy.random.set_bit_generator, or load with random_state=False")


def _has_cuda() -> bool:
    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _set_random_state(state: Mapping[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    numpy = _numpy_state(state["numpy"])
    if numpy["bit_generator"] != _bit_generator():
        np.random.set_bit_generator(getattr(np.random, numpy["bit_generator"])())  # type: ignore[attr-defined]
    np.random.set_state(numpy)
    version, numbers, cached = state["python"]
    random.setstate((version, tuple(numbers), cached))
    if state["cuda"] and torch.cuda.is_available() and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all(state["cuda"])


def _remove_older(run: pathlib.Path, keep: int, step: int, names: Sequence[str]) -> None:
    """Leaves the newest steps, and of the other modules' tables what these refer to: not those of saves that were killed."""
    with CheckpointRun(run) as opened:
        if keep:
            opened.keep(keep)
        kept = {f"{one:012d}" for one in opened.steps()}
    for place in (run / _OTHERS).glob("*-*"):
        of = place.name.split("-")[0]
        if of not in kept or (of == f"{step:012d}" and place.name not in names):
            shutil.rmtree(place)
