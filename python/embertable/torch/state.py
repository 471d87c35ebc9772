"""The state_dict of a module of tables: rows and optimizer slots as tensors, or a reference to a committed step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._core import find_checkpoint

if TYPE_CHECKING:
    from .modules import TableModule

__all__ = ["EXTRA", "Reference", "differences", "extra_of", "load_from", "put_rows", "save_to", "take_rows", "variables"]

EXTRA = "_extra_state"
_FORMAT = 1
_ROWS_AT_ONCE = 1 << 18


class Reference:
    """A run directory that has the rows instead of the state_dict, and what it has of this module."""

    def __init__(self, run: str) -> None:
        self.run = os.path.abspath(run)
        self.step: int | None = None
        self.digest = ""
        self.directory = ""


def variables(module: TableModule) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Key, variable and shape of every table and slot."""
    for info in module._steps.engine.tables:
        key, shape = module._key.format(table=info.name), (info.vocabulary_size, info.dim)
        yield key, info.name, shape
        for slot in info.slots:
            yield f"{key}.{slot.name}", f"{info.name}/{slot.name}", shape[:1] if slot.row_wise else shape


def _pieces(rows: int) -> Iterator[np.ndarray]:
    for first in range(0, rows, _ROWS_AT_ONCE):
        yield np.arange(first, min(first + _ROWS_AT_ONCE, rows))


def take_rows(module: TableModule, variable: str, shape: tuple[int, ...]) -> torch.Tensor:
    """A copy of a variable. Of several processes all call it."""
    rows = torch.empty(shape, dtype=torch.float32, device="cpu")
    memory = rows.numpy()
    for ids in _pieces(shape[0]):
        memory[ids[0]:ids[-1] + 1] = module._steps.engine.read_rows(variable, ids)
    return rows


def put_rows(module: TableModule, variable: str, rows: torch.Tensor) -> None:
    values = rows.detach().to("cpu", torch.float32).contiguous().numpy()
    for ids in _pieces(len(values)):
        module._steps.engine.assign_rows(variable, ids, values[ids[0]:ids[-1] + 1])


def _description(module: TableModule) -> dict[str, Any]:
    """What must be alike. How rows are combined is the module's alone, as with a state of torch and a checkpoint."""
    return {name: {"rows": table.vocabulary_size, "dim": table.dim,
                   "rule": table.optimizer.rule if table.optimizer is not None else ""} for name, table in module._tables.items()}


def save_to(module: TableModule, destination: MutableMapping[str, Any], prefix: str) -> None:
    engine = module.engine
    extra: dict[str, Any] = {"format": _FORMAT, "step": engine.step, "tables": _description(module),
                             "learning_rates": module.optimizer.state()}
    if module._left_out:
        extra["left_out"] = True
    elif module._reference is not None:
        extra["reference"] = _committed(module, module._reference)
    else:
        for key, variable, shape in variables(module):
            destination[prefix + key] = take_rows(module, variable, shape)
    # A tensor, since formats such as safetensors have nothing else.
    with torch.device("cpu"):
        destination[prefix + EXTRA] = torch.frombuffer(bytearray(json.dumps(extra).encode()), dtype=torch.uint8)


def _committed(module: TableModule, reference: Reference) -> dict[str, Any]:
    engine = module._steps.engine
    digest = engine.digest()
    if reference.step != engine.step:
        directory = os.fspath(engine.save(reference.run))
        reference.step, reference.digest, reference.directory = engine.step, digest, directory
    elif reference.digest != digest:
        raise RuntimeError(f"{module._steps.name}: rows changed since step {reference.step} was committed to '{reference.run}', and "
                           "a step is committed once: train a step first, or keep_tables_in another directory")
    return {"directory": reference.directory, "step": reference.step, "digest": reference.digest}


def extra_of(state_dict: Mapping[str, Any], prefix: str) -> dict[str, Any] | None:
    value = state_dict.get(prefix + EXTRA)
    if value is None:
        return None
    found: dict[str, Any] = json.loads(bytes(value.cpu().numpy()))
    return found


def load_from(module: TableModule, state_dict: Mapping[str, Any], prefix: str, unknown: Sequence[str], missing: list[str],
              unexpected: list[str], errors: list[str]) -> None:
    """Takes what fits. What is absent and what is not known is named, for torch to refuse where it is strict; of what
    contradicts the module nothing is taken.

    unknown: keys that torch does not know as the module's, those of tables among them.
    """
    engine, name = module.engine, module._steps.name
    wanted = {prefix + key: (variable, shape) for key, variable, shape in variables(module)}
    known = {*wanted, prefix + EXTRA}
    strays = [key for key in unknown if key not in known]
    unexpected.extend(strays)
    refused = module._whole and bool(strays or missing or errors)  # also by what torch found before
    try:
        extra = extra_of(state_dict, prefix)
    except (ValueError, UnicodeDecodeError, AttributeError):
        errors.append(f"{name}: '{prefix}{EXTRA}' is not what state_dict() of embertable.torch makes")
        return
    if extra is not None and extra.get("format") != _FORMAT:
        errors.append(f"{name}: the state_dict has format {extra.get('format')}, this version reads {_FORMAT}")
        return
    problems = differences(module, extra) if extra is not None else []
    if not problems and extra is not None and extra.get("left_out"):
        module.optimizer.load_state(extra["learning_rates"])
        return
    if not problems and extra is not None and "reference" in extra:
        if not refused:
            _restore(module, extra, errors)
        return
    found = {key: state_dict[key] for key in wanted if key in state_dict}
    for key, value in found.items():
        shape = wanted[key][1]
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
            given = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            if not any(f"'{wanted[key][0].split('/')[0]}'" in problem for problem in problems):
                problems.append(f"{name}: '{key}' must have shape {shape}, got {given}: make the module with the sizes of the "
                                "state_dict")
    absent = sorted(key for key in known if key not in state_dict)
    missing.extend(absent)
    errors.extend(problems)
    if problems or refused or (module._whole and absent):
        return
    module._steps.drop(skipped=False)
    for key, value in found.items():
        put_rows(module, wanted[key][0], value)
    if extra is not None:
        engine.assign_step(extra["step"])
        module.optimizer.load_state(extra["learning_rates"])


def differences(module: TableModule, extra: Mapping[str, Any]) -> list[str]:
    """Why a state of this description does not fit the module."""
    name, here, there = module._steps.name, _description(module), extra["tables"]
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


def _restore(module: TableModule, extra: dict[str, Any], errors: list[str]) -> None:
    reference, name = extra["reference"], module._steps.name
    directory = reference["directory"]
    if not os.path.isdir(directory) and module._reference is not None:  # the run has moved
        directory = os.path.join(module._reference.run, os.path.basename(directory))
    try:
        find_checkpoint(directory)
        module._steps.engine.restore(directory)
        module._steps.drop(skipped=False)
    except (ValueError, OSError) as error:
        errors.append(f"{name}: the state_dict refers to step {reference['step']} in '{reference['directory']}': {error}; where the "
                      "run has moved, call keep_tables_in(run) first")
        return
    module.optimizer.load_state(extra["learning_rates"])
    if module._reference is not None and os.path.dirname(directory) == module._reference.run:
        kept = module._reference
        kept.step, kept.digest, kept.directory = reference["step"], reference["digest"], directory
