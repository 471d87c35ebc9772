"""Checks of what callers give to functions of Python's: a message names the argument, its rule and what was given."""

from __future__ import annotations

import builtins
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["kind_of", "names_of", "objects_of", "path_of", "require_flag", "require_kind", "require_methods", "require_text", "seed_of",
           "whole_number"]


def kind_of(value: Any) -> str:
    """Returns the name of the value's class, which tells numpy.bool from bool."""
    kind = type(value)
    shown = f"{kind.__module__}.{kind.__name__}" if kind.__module__ != "builtins" and hasattr(builtins, kind.__name__) else kind.__name__
    return "None" if value is None else shown


def require_kind(title: str, what: str, value: Any, kind: type, rule: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{title}: {what} must be {rule}, got {kind_of(value)}")


def require_text(title: str, what: str, value: Any) -> None:
    require_kind(title, what, value, str, "text")


def require_flag(title: str, what: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{title}: {what} must be True or False, got {value!r}")


def require_methods(title: str, what: str, value: Any, *names: str) -> None:
    """The value is an object with these methods, such as an optimizer of torch."""
    for name in names:
        if isinstance(value, type) or not callable(getattr(value, name, None)):
            raise TypeError(f"{title}: {what} must have {name}(), got {kind_of(value)}")


def whole_number(title: str, what: str, value: Any) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{title}: {what} must be an integer, got {value!r}")


def seed_of(title: str, what: str, value: Any) -> int:
    seed = whole_number(title, what, value)
    if seed < 0:
        raise ValueError(f"{title}: {what} must be >= 0, got {seed}")
    return seed


def path_of(title: str, what: str, value: Any) -> str:
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise TypeError(f"{title}: {what} must be a path, got {kind_of(value)}")
    return path


def names_of(title: str, what: str, value: Any) -> list[str]:
    """A list of names. One text is none, though it could be taken letter by letter."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{title}: {what} must be a list of names, got {value!r}")
    found = list(value)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{title}: {what} must be a list of names, got {name!r} in it")
    return found


def objects_of(title: str, what: str, value: Any, rule: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{title}: {what} must be {rule}, got {kind_of(value)}")
    return list(value)
