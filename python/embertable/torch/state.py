"""The state_dict of a module of tables: rows and optimizer slots as tensors, or a reference to a committed step."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import torch

from .._arguments import path_of
from .._core import Embedding as Engine
from .._core import CheckpointRun, TableConfig, find_checkpoint
from ..steps import Steps
from .optimizer import TableOptimizer
from .rows import Rows, float32_of, rows_of

__all__ = ["EXTRA", "MOST_STEP", "TableState", "number_for", "numbered", "numbers_in"]

EXTRA = "_extra_state"
MOST_STEP = 1 << 62  # of Embedding.assign_step
_FORMAT = 1
_ROWS_AT_ONCE = 1 << 18


class _Reference:
    """A run directory that has the rows instead of the state_dict, and what it has of this module.

    step: of the tables, which the name of `directory` may exceed.
    """

    def __init__(self, run: str) -> None:
        self.run = os.path.abspath(run)
        self.step: int | None = None
        self.digest = ""
        self.directory = ""


def numbers_in(run: str | os.PathLike[str]) -> list[int]:
    """The steps that are committed in a run directory."""
    if not os.path.isdir(run):
        return []
    with CheckpointRun(run) as opened:
        return list(opened.steps())


@contextlib.contextmanager
def numbered(engine: Engine, number: int) -> Iterator[None]:
    """Within, the engine's step is this one, which names the folder of a save."""
    step = engine.step
    engine.assign_step(number)
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # the error of the save says more
            engine.assign_step(step)
        raise
    engine.assign_step(step)


def number_for(step: int, run: str | os.PathLike[str]) -> int:
    """The number that a commit of this step gets: the one after the directory's last where that is as high."""
    return max([step, *(one + 1 for one in numbers_in(run))])


class TableState:
    """The tables of one module as they are saved and loaded: rows and optimizer slots, the step and the rates.

    `name` begins messages; `configs` are by table; `processes` are those of the exchange.
    """

    def __init__(self, key: str, configs: Mapping[str, TableConfig], steps: Steps, optimizer: TableOptimizer,
                 processes: int, settle: Callable[[], None]) -> None:
        """key: of a table's rows in a state_dict, which may have {table}. settle: applies gradients on their way."""
        self.name, self.configs, self.processes = steps.name, configs, processes
        self._key, self._steps, self._optimizer, self._settle = key, steps, optimizer, settle
        self._reference: _Reference | None = None
        self._rows_left_out = False

    @property
    def engine(self) -> Engine:
        """The engine behind, once gradients on their way were applied."""
        self._settle()
        return self._steps.engine

    def has(self, engine: Engine) -> bool:
        return self._steps.engine is engine

    def keep_in(self, run: str | os.PathLike[str] | None) -> None:
        """From now on a state has a reference to a step of this run directory instead of rows."""
        self._reference = None if run is None else _Reference(path_of(self.name, "run", run))

    @contextlib.contextmanager
    def rows_left_out(self) -> Iterator[None]:
        """Within, a state has no rows and no reference: embertable.torch.save commits them."""
        self._rows_left_out = True
        try:
            yield
        finally:
            self._rows_left_out = False

    # Gradients that wait for the optimizer of `step_with`

    def require_none_waiting(self) -> None:
        self._settle()
        if self._steps.waiting:
            raise RuntimeError(f"{self.name}: gradients wait for the optimizer's step, and would be lost: save after "
                               "optimizer.step() or optimizer.zero_grad()")

    def forget_waiting(self) -> None:
        """They are those of rows that were replaced."""
        self._steps.drop(skipped=False)

    # Rows

    def key_of(self, table: str) -> str:
        """The key of a table's rows in a state_dict."""
        return self._key.format(table=table)

    def variables(self) -> Iterator[tuple[str, str, str, tuple[int, ...]]]:
        """Key, table, variable and shape of every table and slot."""
        for info in self._steps.engine.tables:
            key, shape = self.key_of(info.name), (info.vocabulary_size, info.dim)
            yield key, info.name, info.name, shape
            for slot in info.slots:
                yield f"{key}.{slot.name}", info.name, f"{info.name}/{slot.name}", shape[:1] if slot.row_wise else shape

    def put_rows(self, variable: str, rows: Rows) -> None:
        for ids in _pieces(len(rows)):
            self._steps.engine.assign_rows(variable, ids, float32_of(rows[ids[0]:ids[-1] + 1]))

    def _take_rows(self, variable: str, shape: tuple[int, ...]) -> torch.Tensor:
        """A copy of a variable. Of several processes all call it."""
        rows = torch.empty(shape, dtype=torch.float32, device="cpu")
        memory = rows.numpy()
        for ids in _pieces(shape[0]):
            memory[ids[0]:ids[-1] + 1] = self._steps.engine.read_rows(variable, ids)
        return rows

    # Saving

    def save_to(self, destination: MutableMapping[str, Any], prefix: str) -> None:
        extra: dict[str, Any] = {"format": _FORMAT, "step": self.engine.step, "tables": self._description(),
                                 "learning_rates": self._optimizer.state(), "following": self._optimizer.following()}
        if self._rows_left_out:
            extra["left_out"] = True
        elif self._reference is not None:
            extra["reference"] = self._committed(self._reference)
        else:
            for key, _, variable, shape in self.variables():
                destination[prefix + key] = self._take_rows(variable, shape)
        # A tensor, since formats such as safetensors have nothing else.
        with torch.device("cpu"):
            destination[prefix + EXTRA] = torch.frombuffer(bytearray(json.dumps(extra).encode()), dtype=torch.uint8)

    def _description(self) -> dict[str, Any]:
        """What must be alike. How rows are combined is the module's alone, as with a state of torch and a checkpoint."""
        return {name: {"rows": table.vocabulary_size, "dim": table.dim,
                       "rule": table.optimizer.rule if table.optimizer is not None else ""} for name, table in self.configs.items()}

    def _committed(self, reference: _Reference) -> dict[str, Any]:
        engine = self._steps.engine
        digest, step = engine.digest(), engine.step
        if (reference.step, reference.digest) != (step, digest):
            # Several processes would have to agree on another number, and not all of torch's may be here.
            with numbered(engine, number_for(step, reference.run) if self.processes == 1 else step):
                directory = os.fspath(engine.save(reference.run))
            reference.step, reference.digest, reference.directory = step, digest, directory
        return {"directory": reference.directory, "step": reference.step, "digest": reference.digest}

    # Loading

    def load_from(self, state_dict: Mapping[str, Any], prefix: str, unknown: Sequence[str], missing: list[str],
                  unexpected: list[str], errors: list[str], *, whole: bool) -> None:
        """Takes what fits: slots and rate of a table with its rows, the step with the rows of all tables. What is absent and what
        is not known is named, for torch to refuse where it is strict. Of what contradicts the module nothing is taken, and
        nothing after an error, also of a module before.

        unknown: keys that torch does not know as the module's, those of tables among them. whole: nothing is taken of a state
        that lacks something or has more.
        """
        engine, name = self.engine, self.name
        wanted = {prefix + key: (table, variable, shape) for key, table, variable, shape in self.variables()}
        known = {*wanted, prefix + EXTRA}
        strays = [key for key in unknown if key not in known]
        unexpected.extend(strays)
        refused = bool(errors) or (whole and bool(strays or missing))  # also by what torch found before
        try:
            extra = _extra_of(state_dict[prefix + EXTRA]) if prefix + EXTRA in state_dict else None
            if extra is not None:
                self._optimizer.require_rates(extra["learning_rates"])
        except NotImplementedError as error:
            errors.append(f"{name}: {error}")
            return
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            errors.append(f"{name}: '{prefix}{EXTRA}' is not what state_dict() of embertable.torch makes: {error}")
            return
        problems = self.differences(extra["tables"]) if extra is not None else []
        if not problems and extra is not None and extra.get("left_out"):
            if not refused:
                self._optimizer.load_state(extra["learning_rates"], extra.get("following"))
            return
        if not problems and extra is not None and "reference" in extra:
            if not refused:
                self._restore(extra, errors)
            return
        found: dict[str, dict[str, Rows]] = {}  # variables by table
        for key, (table, variable, shape) in wanted.items():
            if key not in state_dict or any(f"'{table}'" in problem for problem in problems):
                continue
            try:
                rows = rows_of(name, f"'{key}'", state_dict[key])
            except (TypeError, ValueError) as error:
                problems.append(str(error))
                continue
            found.setdefault(table, {})[variable] = rows
            if tuple(rows.shape) != shape:
                problems.append(f"{name}: '{key}' must have shape {shape}, got {tuple(rows.shape)}: make the module with the sizes of "
                                "the state_dict")
        absent = sorted(key for key in known if key not in state_dict)
        missing.extend(absent)
        errors.extend(problems)
        if problems or refused or (whole and absent):
            return
        self.forget_waiting()
        loaded = {table: variables for table, variables in found.items() if table in variables}
        for variables in loaded.values():
            for variable, rows in variables.items():
                self.put_rows(variable, rows)
        if extra is not None:
            if all(table in loaded for table in self.configs):
                engine.assign_step(extra["step"])
            self._optimizer.load_state({table: rate for table, rate in extra["learning_rates"].items() if table in loaded},
                                       extra.get("following"))

    def differences(self, there: Mapping[str, Any]) -> list[str]:
        """Why a state of tables of this description does not fit the module."""
        name, here = self.name, self._description()
        found = []
        for table in sorted({*here, *there}):
            if table not in here or table not in there:
                found.append(f"{name}: table '{table}' is only in the {'module' if table in here else 'state_dict'}: make the module with "
                             f"the tables of the state_dict, {sorted(there)}")
                continue
            old, new = there[table], here[table]
            if (old["rows"], old["dim"]) != (new["rows"], new["dim"]):
                found.append(f"{name}: table '{table}' is {old['rows']} x {old['dim']} in the state_dict and {new['rows']} x "
                             f"{new['dim']} here: make the module with the sizes of the state_dict")
            elif old["rule"] != new["rule"]:
                found.append(f"{name}: table '{table}' has the optimizer '{old['rule']}' in the state_dict and '{new['rule']}' here: make "
                             "the module with the same rule, or take the rows alone with embertable.torch.import_state")
        return found

    def _restore(self, extra: dict[str, Any], errors: list[str]) -> None:
        reference, name = extra["reference"], self.name
        directory = reference["directory"]
        if not os.path.isdir(directory) and self._reference is not None:  # the run has moved
            directory = os.path.join(self._reference.run, os.path.basename(directory))
        try:
            find_checkpoint(directory)
            self._steps.engine.restore(directory)
            self._steps.engine.assign_step(extra["step"])
            self.forget_waiting()
        except (ValueError, OSError) as error:
            errors.append(f"{name}: the state_dict refers to '{reference['directory']}': {error}; where the run has moved, call "
                          "keep_tables_in(run) first")
            return
        self._optimizer.load_state(extra["learning_rates"], extra.get("following"))
        if self._reference is not None and os.path.dirname(directory) == self._reference.run:
            kept = self._reference
            kept.step, kept.digest, kept.directory = reference["step"], reference["digest"], directory


def _pieces(rows: int) -> Iterator[np.ndarray]:
    for first in range(0, rows, _ROWS_AT_ONCE):
        yield np.arange(first, min(first + _ROWS_AT_ONCE, rows))


def _extra_of(value: Any) -> dict[str, Any]:
    """What `save_to` has beside rows. Raises ValueError for what that does not make, NotImplementedError for another format."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.uint8 or value.is_meta:
        raise ValueError(f"it must be a tensor of uint8, got {value.dtype if isinstance(value, torch.Tensor) else type(value).__name__}")
    found = json.loads(bytes(value.cpu().numpy()))
    if isinstance(found, dict) and isinstance(found.get("format"), int) and found["format"] != _FORMAT:
        raise NotImplementedError(f"the state_dict has format {found['format']}, this version reads {_FORMAT}")
    fault = _fault(found, {"format": int, "step": int, "tables": dict, "learning_rates": dict})
    if fault is None and not 0 <= found["step"] <= MOST_STEP:
        fault = f"step must be 0 <= step <= 2^62, got {found['step']}"
    if fault is None and "following" in found:
        fault = _fault(found, {"following": list})
    if fault is None and "left_out" in found:
        fault = _fault(found, {"left_out": bool})
    for table in found["tables"].values() if fault is None else ():
        fault = fault or _fault(table, {"rows": int, "dim": int, "rule": str})
    if fault is None and "reference" in found:
        fault = _fault(found["reference"], {"directory": str, "step": int, "digest": str})
        if fault is None and not _may_be_path(found["reference"]["directory"]):
            fault = f"directory must be a path, got {found['reference']['directory']!r}"
    if fault is not None:
        raise ValueError(fault)
    return found


def _may_be_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _fault(found: Any, kinds: Mapping[str, type]) -> str | None:
    if not isinstance(found, dict):
        return f"it must have {', '.join(kinds)}, got {found!r}"
    for key, kind in kinds.items():
        if type(found.get(key)) is not kind:
            return f"{key} must be {kind.__name__}, got {type(found[key]).__name__ if key in found else 'none'}"
    return None
