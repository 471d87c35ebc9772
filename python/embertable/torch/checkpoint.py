"""One commit for a whole training: dense parameters, optimizers, schedulers, random states, data position and tables."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._core import CallerState, CheckpointRun, find_checkpoint, read_saved_state
from .._core import Embedding as Engine
from .modules import TableModule

__all__ = ["Loaded", "load", "save"]

_BLOB = "embertable.torch"
_OTHERS = "others"  # folder in a run for the tables of all modules but the first
_PARTS = ("module", "optimizers", "schedulers", "scaler", "random", "position")


class Loaded:
    """What `load` found beside the states that it put back."""

    def __init__(self, step: int, position: Any, directory: str) -> None:
        self.step, self.position, self.directory = step, position, directory


def save(module: torch.nn.Module, engine: TableModule | Sequence[TableModule] | None, directory: str | os.PathLike[str], *,
         optimizer: Any = None, scheduler: Any = None, scaler: Any = None, position: Any = None, keep: int = 2) -> str:
    """Commits everything that the training needs to go on, as one step of the run directory, and gives that step's folder.

    module: the model. engine: its module of tables, or several, or None for those inside `module`. optimizer and scheduler:
    one, a list or a dict of what has state_dict(). position: where the data stand, of numbers, texts, lists, dicts and
    tensors, or an object with state_dict(). keep: steps that stay, 0 for all. After an error, or killed at any moment, the
    directory has the steps that it had. Of several processes all call it; the dense part is that of the first one.
    """
    tables = _tables_of(module, engine)
    first, others = tables[0], tables[1:]
    state = {"module": _dense_state(module, tables), "optimizers": _states(optimizer), "schedulers": _states(scheduler),
             "scaler": None if scaler is None else scaler.state_dict(),
             "random": _random_state(), "position": position.state_dict() if hasattr(position, "state_dict") else position}
    by_rank = _gathered({part: state.pop(part) for part in ("random", "position")})
    state["ranks"] = by_rank
    run, step = pathlib.Path(directory), first.engine.step
    state["others"] = []
    for index, other in enumerate(others, 1):
        place = run / _OTHERS / f"{step:012d}-{index}"
        if _is_first_rank() and place.exists():  # of a save that was killed
            shutil.rmtree(place)
        _barrier()
        other.engine.save(place)
        state["others"].append(place.name)
    written = io.BytesIO()
    torch.save(state, written)
    committed = first.engine.save(run, CallerState(blobs={_BLOB: written.getvalue()}))
    if keep and _is_first_rank():
        with CheckpointRun(run) as opened:
            opened.keep(keep)
            steps = opened.steps()
        _remove_others(run, steps)
    _barrier()
    return os.fspath(committed)


def load(module: torch.nn.Module, engine: TableModule | Sequence[TableModule] | None, directory: str | os.PathLike[str], *,
         optimizer: Any = None, scheduler: Any = None, scaler: Any = None, random_state: bool = True) -> Loaded:
    """Puts back what `save` committed last: `directory` is the run or one of its steps.

    Everything that was saved must be asked for, and the other way round. The position is in what comes back.
    """
    tables = _tables_of(module, engine)
    path = pathlib.Path(find_checkpoint(directory))
    saved = read_saved_state(path)
    blob = saved.caller.blobs.get(_BLOB)
    if blob is None:
        raise ValueError(f"'{path}' has no training of torch: embertable.torch.save writes it, and Embedding.save tables alone")
    state = torch.load(io.BytesIO(blob), map_location="cpu", weights_only=True)
    if len(state["others"]) != len(tables) - 1:
        raise ValueError(f"'{path}' has tables of {len(state['others']) + 1} modules, the model has {len(tables)}")
    _require_same("optimizer", state["optimizers"], optimizer)
    _require_same("scheduler", state["schedulers"], scheduler)
    if (state["scaler"] is None) != (scaler is None):
        raise ValueError(f"'{path}' was saved {'without' if state['scaler'] is None else 'with'} a scaler: give "
                         f"{'none' if state['scaler'] is None else 'one'}")
    _require_alike(module, tables, state["module"])
    tables[0].engine.restore(path)
    for other, name in zip(tables[1:], state["others"]):
        other.engine.restore(path.parent / _OTHERS / name)
    with _left_out(tables):
        module.load_state_dict(state["module"])
    for one in tables:
        one._steps.drop()
    _put_back(state["optimizers"], optimizer)
    _put_back(state["schedulers"], scheduler)
    if scaler is not None:
        scaler.load_state_dict(state["scaler"])
    rank = _rank()
    mine = state["ranks"][rank] if rank < len(state["ranks"]) else None
    if mine is not None and random_state:
        _set_random_state(mine["random"])
    return Loaded(saved.step, None if mine is None else mine["position"], os.fspath(path))


def _tables_of(module: torch.nn.Module, engine: Any) -> list[TableModule]:
    if isinstance(engine, Engine):
        found = [one for one in module.modules() if isinstance(one, TableModule) and one._steps.engine is engine]
    elif isinstance(engine, TableModule):
        found = [engine]
    elif engine is None:
        found = []
    else:
        found = list(engine)
    inside = [one for one in module.modules() if isinstance(one, TableModule)]
    for one in inside:
        if not any(one is other for other in found):
            if engine is not None:
                raise ValueError(f"the model has tables that engine does not name, {one._steps.name}: name all, or give None")
            found.append(one)
    if not found:
        raise ValueError("the model has no tables of embertable.torch: use torch.save")
    for one in found:
        if not isinstance(one, TableModule):
            raise TypeError(f"engine must be a module of embertable.torch or a list of them, got {type(one).__name__}")
    return found


@contextlib.contextmanager
def _left_out(tables: Sequence[TableModule]) -> Iterator[None]:
    for one in tables:
        one._left_out = True
    try:
        yield
    finally:
        for one in tables:
            one._left_out = False


def _dense_state(module: torch.nn.Module, tables: Sequence[TableModule]) -> dict[str, Any]:
    with _left_out(tables):
        return dict(module.state_dict())


def _require_alike(module: torch.nn.Module, tables: Sequence[TableModule], saved: Mapping[str, Any]) -> None:
    """Before the first table changes: the dense part has the parameters that were saved."""
    here = _dense_state(module, tables)
    differ = sorted({*here} ^ {*saved}) or sorted(
        key for key, value in here.items() if isinstance(value, torch.Tensor) and not key.endswith("_extra_state")
        and value.shape != saved[key].shape)
    if differ:
        raise ValueError(f"the model is not the one that was saved: {', '.join(differ[:4])} differ"
                         + (f", and {len(differ) - 4} more" if len(differ) > 4 else ""))


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


def _put_back(saved: Mapping[str, Any], given: Any) -> None:
    for key, one in _as_dict(given).items():
        one.load_state_dict(saved[key])


def _random_state() -> dict[str, Any]:
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    version, numbers, cached = random.getstate()
    return {"torch": torch.get_rng_state(), "numpy": [torch.from_numpy(np.asarray(keys).astype(np.int64)), place, has_gauss, gauss],
            "python": [version, list(numbers), cached],
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else []}


def _set_random_state(state: Mapping[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    keys, place, has_gauss, gauss = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), place, has_gauss, gauss))
    version, numbers, cached = state["python"]
    random.setstate((version, tuple(numbers), cached))
    if state["cuda"] and torch.cuda.is_available() and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all(state["cuda"])


def _remove_others(run: pathlib.Path, steps: Sequence[int]) -> None:
    kept = {f"{step:012d}" for step in steps}
    for place in (run / _OTHERS).glob("*-*"):
        if place.name.split("-")[0] not in kept:
            shutil.rmtree(place)


# Several processes


def _together() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1


def _rank() -> int:
    return torch.distributed.get_rank() if _together() else 0


def _is_first_rank() -> bool:
    return _rank() == 0


def _barrier() -> None:
    if _together():
        torch.distributed.barrier()


def _gathered(mine: Any) -> list[Any]:
    if not _together():
        return [mine]
    found: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, mine)
    return found
