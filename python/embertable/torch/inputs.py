"""Ids as models of torch bring them: tensors with offsets, nested tensors, jagged tensors by their attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..steps import Ids, splits_of_lengths, splits_of_offsets

__all__ = ["Reader", "is_keyed"]

_INTEGERS = (torch.int64, torch.int32)


@functools.lru_cache(maxsize=64)
def _even_splits(samples: int, length: int) -> np.ndarray:
    splits = np.arange(samples + 1, dtype=np.int64) * length
    splits.flags.writeable = False
    return splits


def is_keyed(value: Any) -> bool:
    """Whether it is like torchrec's KeyedJaggedTensor: keys(), values(), and lengths() or offsets()."""
    return (not isinstance(value, (Mapping, torch.Tensor)) and callable(getattr(value, "keys", None))
            and callable(getattr(value, "values", None)) and callable(getattr(value, "lengths", None)))


def _is_jagged(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) and callable(getattr(value, "values", None)) and callable(
        getattr(value, "lengths", None))


class Reader:
    """Turns the inputs of a module into NumPy arrays. `name` begins messages; `to_host` gives a tensor's copy on the CPU."""

    def __init__(self, name: str, padding: Sequence[int | None], to_host: Callable[[torch.Tensor, str], torch.Tensor]) -> None:
        self._name, self._padding, self._to_host = name, list(padding), to_host
        self.away = False  # every tensor counts as one of an accelerator
        self._padded = any(one is not None for one in padding)

    def integers(self, tensor: Any, what: str) -> np.ndarray:
        if type(tensor) is not torch.Tensor:
            tensor = self._tensor(tensor, what)
        if tensor.dtype not in _INTEGERS:
            grad = " that requires a gradient" if tensor.requires_grad else ""
            raise TypeError(f"{self._name}: {what} must be int64 or int32, got {_dtype(tensor)}{grad}; ids are numbers of rows, "
                            "which have no gradient: give whole numbers with .long(), and vectors to torch.nn.Linear")
        if self.away or not tensor.is_cpu:
            tensor = self._to_host(tensor, what)
        return tensor.numpy()

    def weights(self, tensor: Any, what: str, count: int) -> np.ndarray:
        if type(tensor) is not torch.Tensor:
            tensor = self._tensor(tensor, what)
        if tensor.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                f"{self._name}: {what} require a gradient, which is not offered: give them .detach(), or look the ids up with "
                "embertable.torch.Embedding and multiply the rows")
        if tensor.dtype != torch.float32:
            raise TypeError(f"{self._name}: {what} must be float32, got {_dtype(tensor)}: give them .float()")
        if tensor.numel() != count:
            raise ValueError(f"{self._name}: {what} must be as many as the ids, {count}, got {tensor.numel()}")
        tensor = tensor.detach()
        if self.away or not tensor.is_cpu:
            tensor = self._to_host(tensor, what)
        return tensor.reshape(-1).numpy()

    # One feature

    def bag(self, ids: Any, offsets: Any = None, weights: Any = None, *, feature: int = 0, what: str = "ids",
            last_offset: bool = False, single_allowed: bool = True) -> Ids:
        """What nn.EmbeddingBag takes: 2-D ids, or 1-D ids and offsets; and ragged ones in any form."""
        if type(ids) is torch.Tensor and not ids.is_nested:
            if ids.dim() == 2:
                if offsets is not None:
                    raise ValueError(f"{self._name}: {what} are 2-D, one bag a line, and take no offsets; got some")
                samples, length = ids.shape
                values = self.integers(ids.reshape(-1), what)
                splits = None if length == 1 else _even_splits(samples, length)
            elif ids.dim() != 1:
                raise ValueError(f"{self._name}: {what} must be 1-D or 2-D, got shape {tuple(ids.shape)}")
            else:
                values = self.integers(ids, what)
                if offsets is not None:
                    splits = self._splits(offsets, len(values), what, last_offset)
                elif single_allowed:
                    splits = None
                else:
                    raise ValueError(f"{self._name}: {what} are 1-D and need offsets, where each bag begins; got none. "
                                     f"embertable.torch.Embedding looks single ids up")
        else:
            values, splits, own = self._ragged(ids, what)
            if offsets is not None:
                raise ValueError(f"{self._name}: {what} have the bounds of their bags, and take no offsets; got some")
            weights = own if weights is None else weights
        if weights is not None:
            if _is_jagged(weights) or getattr(weights, "is_nested", False):
                weights = weights.values()
            weights = self.weights(weights, f"weights of {what}", len(values))
        return self._without_padding(Ids(values, splits, weights), feature)

    def single(self, ids: Any, what: str = "ids") -> Ids:
        """What nn.Embedding takes: any shape, one row each."""
        return self._without_padding(Ids(self.integers(ids.reshape(-1) if isinstance(ids, torch.Tensor) else ids, what)), 0)

    # Several features

    def keyed(self, batch: Any, features: Sequence[str], weighted: bool) -> list[Ids]:
        """Of a KeyedJaggedTensor, the features of these names."""
        keys = list(batch.keys())
        place = {key: index for index, key in enumerate(keys)}
        missing = [name for name in features if name not in place]
        if missing:
            raise KeyError(f"{self._name}: the batch has no feature {', '.join(map(repr, missing))}; it has {keys}")
        if getattr(batch, "variable_stride_per_key", lambda: False)():
            raise NotImplementedError(f"{self._name}: a batch whose features differ in their number of samples is not offered: "
                                      "give a dict of tensors")
        values = self.integers(batch.values(), "values")
        if callable(getattr(batch, "lengths_or_none", None)) and batch.lengths_or_none() is not None:
            splits = splits_of_lengths(self.integers(batch.lengths(), "lengths"))
        else:
            splits = self.integers(batch.offsets(), "offsets")
        samples = (len(splits) - 1) // len(keys)
        given = batch.weights_or_none() if callable(getattr(batch, "weights_or_none", None)) else None
        if weighted != (given is not None):
            raise ValueError(f"{self._name}: the batch has {'no ' if weighted else ''}weights, and is_weighted is {weighted}: "
                             + ("give weights" if weighted else "make the collection with is_weighted=True, or give none"))
        weights = None if given is None else self.weights(given, "weights", len(values))
        return self.parts(values, splits, weights, samples, [place[name] for name in features])

    def parts(self, values: np.ndarray, splits: np.ndarray, weights: np.ndarray | None, samples: int,
              places: Sequence[int]) -> list[Ids]:
        """The features at these places of arrays that hold one feature after the other."""
        found = []
        for feature, place in enumerate(places):
            part = splits[place * samples:(place + 1) * samples + 1]
            begin, end = int(part[0]), int(part[-1])
            found.append(self._without_padding(Ids(values[begin:end], part - begin if begin else part,
                                                   None if weights is None else weights[begin:end]), feature))
        return found

    def named(self, batch: Mapping[str, Any], features: Sequence[str], used: Sequence[str], names: Mapping[str, str]) -> list[Ids]:
        """Of a dict: ids, (ids, offsets) or (ids, offsets, weights) by feature. `used`: the feature of each output."""
        found = []
        for feature, name in enumerate(used):
            if name not in batch:
                raise KeyError(f"{self._name}: the batch has no feature '{name}'; it has {sorted(batch)}")
            value = batch[name]
            what = names[name]
            if type(value) is tuple or type(value) is list:
                if not 1 <= len(value) <= 3:
                    raise ValueError(f"{self._name}: {what} must be (ids, offsets) or (ids, offsets, weights), got {len(value)} "
                                     "values")
                found.append(self.bag(*value, feature=feature, what=what))
            else:
                found.append(self.bag(value, feature=feature, what=what))
        return found

    # Parts

    def _tensor(self, value: Any, what: str) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value)
        raise TypeError(f"{self._name}: {what} must be a tensor, got {type(value).__name__}")

    def _splits(self, offsets: Any, count: int, what: str, last_offset: bool) -> np.ndarray:
        bounds = self.integers(offsets, f"offsets of {what}")
        if bounds.ndim != 1:
            raise ValueError(f"{self._name}: offsets of {what} must be 1-D, got shape {bounds.shape}")
        return bounds if last_offset else splits_of_offsets(bounds, count)

    def _ragged(self, ids: Any, what: str) -> tuple[np.ndarray, np.ndarray, Any]:
        if isinstance(ids, torch.Tensor) and ids.is_nested:
            if ids.layout == torch.jagged:
                if getattr(ids, "_lengths", None) is not None:
                    raise NotImplementedError(f"{self._name}: {what} are a nested tensor with holes: give it .contiguous()")
                return self.integers(ids.values(), what), self.integers(ids.offsets(), what), None  # type: ignore[attr-defined]
            rows = [row.reshape(-1) for row in ids.unbind()]
            values = self.integers(torch.cat(rows) if rows else torch.empty(0, dtype=torch.int64), what)
            return values, splits_of_lengths(np.array([len(row) for row in rows], np.int64)), None
        if _is_jagged(ids):
            weights = ids.weights_or_none() if callable(getattr(ids, "weights_or_none", None)) else None
            return self.integers(ids.values(), what), splits_of_lengths(self.integers(ids.lengths(), what)), weights
        if hasattr(ids, "row_splits"):
            return np.asarray(ids.values), np.asarray(ids.row_splits), None
        values = self.integers(ids, what)
        if values.ndim != 1:
            raise ValueError(f"{self._name}: {what} must be 1-D, got shape {values.shape}")
        return values, None, None  # type: ignore[return-value]

    def _without_padding(self, ids: Ids, feature: int) -> Ids:
        if not self._padded:
            return ids
        padding = self._padding[feature]
        if padding is None:
            return ids
        keep = ids.values != padding
        if keep.all():
            return ids
        kept = np.concatenate([[0], np.cumsum(keep)])
        splits = kept if ids.splits is None else kept[ids.splits]
        return Ids(ids.values[keep], splits, None if ids.weights is None else ids.weights[keep])


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
