"""Takes over rows and optimizer state of nn.EmbeddingBag, torch.optim's SparseAdam and Adagrad, and torchrec."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .._arguments import require_kind, require_methods, whole_number
from .modules import TableModule
from .rows import Rows, rows_of
from .state import MOST_STEP, TableState

__all__ = ["import_state"]

# What the slots of a rule are called elsewhere: torch.optim, torchrec's fused optimizers.
_NAMES = {"accumulators": ("sum", "momentum1"), "momenta": ("exp_avg", "momentum_buffer", "momentum1"),
          "velocities": ("exp_avg_sq", "momentum2")}
_STEPS = ("step", "iter")


def import_state(module: TableModule, weights: Any, optimizer: Any = None) -> list[str]:
    """Takes over rows, and the optimizer's state if it is given. Gives the variables that changed.

    weights: an nn.Embedding or nn.EmbeddingBag, or a tensor or array; a dict of them by table; or a state_dict with keys such as
    'weight' or 'embedding_bags.TABLE.weight', with any prefix. optimizer: the torch.optim optimizer of these parameters; or
    a state_dict of a fused optimizer of torchrec. All is checked before the first row changes.
    """
    require_kind("import_state", "module", module, TableModule, "a module of embertable.torch")
    tables = module._table_state
    engine, name = tables.engine, tables.name
    parameters: dict[str, Any] = {}
    keys: dict[str, str] = {}
    for table in tables.configs:
        keys[table], found = _weight_of(tables, table, weights)
        if found is not None:
            parameters[table] = found
    if not parameters:
        raise ValueError(f"{name}: weights have no table of this module, which has {sorted(tables.configs)}")
    missing = sorted(set(tables.configs) - set(parameters))
    if missing:
        raise ValueError(f"{name}: weights lack the tables {missing}")
    assigned: dict[str, Any] = dict(parameters)
    steps: set[int] = set()
    if optimizer is not None:
        if not isinstance(optimizer, (torch.optim.Optimizer, Mapping)):
            require_methods(name, "optimizer", optimizer, "state_dict")
        for table in parameters:
            slots = [slot for info in engine.tables if info.name == table for slot in info.slots]
            known = _slots_of(name, optimizer, parameters[table], table, keys[table])
            if known is None and not slots:
                continue
            if known is None:
                raise ValueError(f"{name}: the optimizer has no state of table '{table}': give the optimizer that trains its weights, "
                                 "after its first step, or none")
            for slot in slots:
                value = next((known[other] for other in (slot.name, *_NAMES.get(slot.name, ())) if other in known), None)
                if value is None:
                    raise ValueError(f"{name}: table '{table}' needs the slot '{slot.name}', and the optimizer has {sorted(known)}: "
                                     "make the module with the rule of that optimizer, such as "
                                     "embertable.Optimizer('torch.SparseAdam', rate)")
                assigned[f"{table}/{slot.name}"] = value
            taken = {*_STEPS, *(other for slot in slots for other in (slot.name, *_NAMES.get(slot.name, ())))}
            left = sorted(key for key, value in known.items() if key not in taken and isinstance(value, torch.Tensor)
                          and value.numel() >= tables.configs[table].vocabulary_size)
            if left:
                raise ValueError(f"{name}: table '{table}' has no slot for {left} of the optimizer: make the module with the rule of "
                                 "that optimizer, or give no optimizer to take the rows alone")
            steps.update(_step_of(name, table, known[one]) for one in _STEPS if one in known)
    if len(steps) > 1:
        raise ValueError(f"{name}: the tables are at different steps, {sorted(steps)}; a module has one")
    checked: dict[str, Rows] = {}
    for _, _, variable, shape in tables.variables():
        if variable not in assigned:
            continue
        rows = rows_of(name, f"'{variable}'", assigned[variable])
        if len(shape) == 1 and math.prod(rows.shape) == shape[0]:
            rows = rows.reshape(shape)
        if tuple(rows.shape) != shape:
            raise ValueError(f"{name}: '{variable}' must have shape {shape}, got {tuple(rows.shape)}")
        checked[variable] = rows
    tables.forget_waiting()
    if steps:
        engine.assign_step(steps.pop())
    for variable, rows in checked.items():
        tables.put_rows(variable, rows)
    return sorted(checked)


def _step_of(name: str, table: str, step: Any) -> int:
    """A step as optimizers keep it: a number or a tensor of one."""
    shown = "a larger one"
    try:
        number = float(step)  # which rounds
        shown = repr(step)
        found = int(step) if number.is_integer() else -1
    except OverflowError:
        found = -1
    except (TypeError, ValueError, RuntimeError):  # the last of tensors that have no number
        found, shown = -1, repr(step)
    if not 0 <= found <= MOST_STEP:
        raise ValueError(f"{name}: the optimizer's step of table '{table}' must be a whole number from 0 to 2^62, got {shown}")
    return found


def _weight_of(tables: TableState, table: str, weights: Any) -> tuple[str, Any]:
    """The key and the rows of one table, None if it is not there."""
    if isinstance(weights, torch.nn.Module) and isinstance(getattr(weights, "weight", None), torch.Tensor):
        return "weight", weights.weight if len(tables.configs) == 1 else None
    if isinstance(weights, (torch.Tensor, np.ndarray)):
        return "weight", weights if len(tables.configs) == 1 else None
    if isinstance(weights, torch.nn.Module):
        weights = dict(weights.named_parameters())
    if not isinstance(weights, Mapping):
        raise TypeError(f"{tables.name}: weights must be a module, a tensor, an array, a dict or a state_dict, got {type(weights).__name__}")
    if table in weights:
        value = weights[table]
        if isinstance(value, torch.nn.Module):
            value = getattr(value, "weight", value)
            require_kind(tables.name, f"weights['{table}']", value, torch.Tensor, "a module with a weight, a tensor or an array")
        return table, value
    ends = [tables.key_of(table), f"embedding_bags.{table}.weight", f"embeddings.{table}.weight", f"{table}.weight"]
    if len(tables.configs) == 1:
        ends.append("weight")
    for end in ends:
        found = [key for key in weights if isinstance(key, str) and (key == end or key.endswith("." + end))]
        if len(found) > 1:
            raise ValueError(f"{tables.name}: weights have several tables '{table}': {sorted(found)}; give one of them")
        if found:
            return found[0], weights[found[0]]
    return table, None


def _slots_of(name: str, optimizer: Any, parameter: Any, table: str, key: str) -> dict[str, Any] | None:
    """The state of one table by name, whatever its owner calls the table."""
    if isinstance(optimizer, torch.optim.Optimizer):
        for candidate, found in optimizer.state.items():
            if candidate is parameter or (isinstance(candidate, torch.Tensor) and isinstance(parameter, torch.Tensor)
                                          and candidate.data_ptr() == parameter.data_ptr() and candidate.shape == parameter.shape):
                return dict(found) or None
        return None
    if not isinstance(optimizer, Mapping):
        optimizer = optimizer.state_dict()
    states = optimizer.get("state", optimizer)
    require_kind(name, "the state of the optimizer", states, Mapping, "a dict")
    found = states.get(key)
    if found is None:
        named = [one for one in states if isinstance(one, str) and (one == key or f".{one}".endswith(f".{table}.weight"))]
        found = states[named[0]] if len(named) == 1 else None
    if not isinstance(found, Mapping) or not found:
        return None
    return {str(one).removeprefix(f"{table}."): value for one, value in found.items()}
