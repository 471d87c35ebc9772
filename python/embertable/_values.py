"""Kinds of arrays in which results are given."""

import importlib
from collections.abc import Callable
from typing import Any

Converter = Callable[[Any], Any]


def _tensorflow() -> Converter:
    convert: Converter = importlib.import_module("tensorflow").convert_to_tensor
    return convert


def _torch() -> Converter:
    convert: Converter = importlib.import_module("torch").from_numpy
    return convert


def _jax() -> Converter:
    copy: Converter = importlib.import_module("jax.numpy").array  # JAX takes arrays for constants, and these are the engine's
    return copy


_CONVERTERS: dict[str, Callable[[], Converter | None]] = {
    "numpy": lambda: None, "tensorflow": _tensorflow, "torch": _torch, "jax": _jax}


def converter(outputs: Any) -> Converter | None:
    """Returns a function of an array, or None where results stay NumPy's. Raises ValueError for another name."""
    if not isinstance(outputs, str) or outputs not in _CONVERTERS:
        raise ValueError(f"outputs must be one of {', '.join(map(repr, _CONVERTERS))}, got {outputs!r}")
    try:
        return _CONVERTERS[outputs]()
    except ImportError as error:
        raise ImportError(f"outputs={outputs!r} needs the package {outputs}: {error}") from error
