"""Rows and ids that callers bring, as the engine takes them: of tensors on any device, arrays, or lists of numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch

__all__ = ["Rows", "float32_of", "ids_of", "rows_of"]

Rows: TypeAlias = torch.Tensor | np.ndarray  # dense, of real numbers, see `rows_of`


def rows_of(title: str, what: str, rows: Any) -> Rows:
    """Raises TypeError naming what `float32_of` cannot take."""
    if isinstance(rows, torch.Tensor):
        tensor = _dense(title, what, rows)
        if tensor.dtype.is_floating_point or _is_integer(tensor):
            return tensor
        raise TypeError(f"{title}: {what} must be real numbers, got {_type_of(tensor)}")
    array = _array(title, what, rows)
    if array.dtype.kind in "fiu" or array.dtype.name == "bfloat16":
        return array
    raise TypeError(f"{title}: {what} must be real numbers, got {_type_of(rows if array.dtype == object else array)}")


def float32_of(rows: Rows) -> np.ndarray:
    """[...], float32, in memory of the host, which may be that of the rows."""
    if isinstance(rows, torch.Tensor):
        values: np.ndarray = rows.to("cpu", torch.float32).resolve_neg().contiguous().numpy()
        return values
    return np.ascontiguousarray(rows, np.float32)


def ids_of(title: str, ids: Any) -> np.ndarray:
    if isinstance(ids, torch.Tensor):
        tensor = _dense(title, "ids", ids)
        if not _is_integer(tensor):
            raise TypeError(f"{title}: ids must be integers, got {_type_of(tensor)}")
        values: np.ndarray = tensor.cpu().numpy()
        return values
    array = _array(title, "ids", ids)
    if array.size == 0 and not isinstance(ids, np.ndarray):  # an empty list, which says nothing of its type
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{title}: ids must be integers, got {_type_of(ids if array.dtype == object else array)}")
    return array


def _dense(title: str, what: str, tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.is_nested or tensor.is_meta:
        raise TypeError(f"{title}: {what} must be a plain tensor, got {'a nested one' if tensor.is_nested else 'one without values'}")
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def _array(title: str, what: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # lists of unequal length
        raise ValueError(f"{title}: {what} must be an array of numbers, got lists of unequal length") from None


def _is_integer(tensor: torch.Tensor) -> bool:
    kind = tensor.dtype
    return not (kind.is_floating_point or kind.is_complex or tensor.is_quantized or kind == torch.bool)


def _type_of(values: Any) -> str:
    return str(getattr(values, "dtype", type(values).__name__)).removeprefix("torch.")
