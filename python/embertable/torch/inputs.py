"""Ids as models of torch bring them: tensors with offsets, nested tensors, jagged tensors by their attributes."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._core import DataError
from ..steps import Ids, data_error, splits_of_lengths, splits_of_offsets
from .accelerator import IdsAhead

__all__ = ["Reader", "elements_of", "is_jagged", "is_keyed", "lengths_of", "rows_of_nested", "shaped_as", "tensors_read", "weights_of"]

_INTEGERS = (torch.int64, torch.int32)
_HINT_OF_LENGTHS = "; if these are lengths, offsets are torch.cumsum(lengths, 0) - lengths"


@functools.lru_cache(maxsize=64)
def _even_splits(samples: int, length: int) -> np.ndarray:
    splits = np.arange(samples + 1, dtype=np.int64) * length
    splits.flags.writeable = False
    return splits


def is_keyed(value: Any) -> bool:
    """Whether it is like torchrec's KeyedJaggedTensor: keys(), values(), and lengths() or offsets()."""
    return (not isinstance(value, (Mapping, torch.Tensor)) and callable(getattr(value, "keys", None))
            and callable(getattr(value, "values", None)) and callable(getattr(value, "lengths", None)))


def is_jagged(value: Any) -> bool:
    """Whether it is like torchrec's JaggedTensor: values(), and lengths()."""
    return not isinstance(value, torch.Tensor) and callable(getattr(value, "values", None)) and callable(
        getattr(value, "lengths", None))


def weights_of(jagged: Any) -> Any:
    return jagged.weights_or_none() if callable(getattr(jagged, "weights_or_none", None)) else None


def rows_of_nested(tensor: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
    """The elements of a nested tensor, and how many are in each part."""
    parts = [part.reshape(-1) for part in tensor.unbind()]
    return torch.cat(parts) if parts else torch.empty(0, dtype=tensor.dtype, device=tensor.device), list(map(len, parts))


def lengths_of(keyed: Any) -> torch.Tensor:
    """The lengths of all bags of keyed jagged tensors, one feature after the other."""
    bounds, are_lengths = _bounds_of(keyed)
    return bounds if are_lengths else bounds.diff()


def elements_of(ids: torch.Tensor, name: str, what: str) -> torch.Tensor:
    """The ids of a tensor of any shape, nested or not, in one that is not nested. name and what begin messages."""
    if not ids.is_nested:
        return ids
    if ids.layout != torch.jagged:
        return rows_of_nested(ids)[0]
    _require_plain_jagged(ids, name, what)
    values: torch.Tensor = ids.values()  # type: ignore[no-untyped-call]
    return values


def _require_plain_jagged(ids: Any, name: str, what: str) -> None:
    if getattr(ids, "_lengths", None) is not None:
        raise NotImplementedError(f"{name}: {what} are a nested tensor with holes: give it .contiguous()")
    if getattr(ids, "_ragged_idx", 1) != 1:
        raise NotImplementedError(f"{name}: {what} are a nested tensor whose second dimension is not the ragged one: transpose it")


def shaped_as(ids: Any, rows: torch.Tensor) -> torch.Tensor:
    """Rows, one for each of `elements_of(ids)`, in the shape of the ids."""
    dim = rows.shape[-1]
    if not (isinstance(ids, torch.Tensor) and ids.is_nested):
        return rows if ids.ndim == 1 else rows.view(*ids.shape, dim)
    if ids.layout == torch.jagged:
        return torch.nested.nested_tensor_from_jagged(rows.view(*ids.values().shape, dim), ids.offsets())  # type: ignore[no-untyped-call, attr-defined]
    parts = rows.split([one.numel() for one in ids.unbind()])
    return torch.nested.as_nested_tensor([part.view(*one.shape, dim) for part, one in zip(parts, ids.unbind())])


def _bounds_of(keyed: Any) -> tuple[torch.Tensor, bool]:
    """The lengths of all bags, or their offsets where it has no lengths; and whether they are lengths."""
    has_lengths = callable(getattr(keyed, "lengths_or_none", None)) and keyed.lengths_or_none() is not None
    return (keyed.lengths(), True) if has_lengths else (keyed.offsets(), False)


def tensors_read(value: Any) -> Iterator[torch.Tensor]:
    """The tensors that a `Reader` reads of inputs of any form, for one copy of all.

    Not among them are those that it makes: of nested weights, and of strided nested ids.
    """
    parts: Sequence[Any] = ()
    if isinstance(value, torch.Tensor):
        if not value.is_nested:
            yield value
        elif value.layout == torch.jagged and value.dtype in _INTEGERS:
            parts = value.values(), value.offsets()  # type: ignore[no-untyped-call, attr-defined]
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = value
    elif is_keyed(value):
        parts = value.values(), _bounds_of(value)[0], weights_of(value)
    elif is_jagged(value):
        parts = value.values(), value.lengths(), weights_of(value)
    for part in parts:
        yield from tensors_read(part)


def _is_ragged(weights: Any) -> bool:
    return weights is not None and (is_jagged(weights) or getattr(weights, "is_nested", False))


class Reader:
    """Turns the inputs of a module into NumPy arrays.

    `name` begins messages; `what` is what they call the ids of each feature. Ids of `padding` of their feature count as absent.
    """

    def __init__(self, name: str, what: Sequence[str], padding: Sequence[int | None]) -> None:
        self.name, self.what = name, list(what)
        self._padding = list(padding)
        self.padded = any(one is not None for one in padding)  # some ids count as absent
        self._device = torch.device("cpu")
        self._ids_ahead: IdsAhead | None = None

    def move(self, device: torch.device, ids_ahead: IdsAhead | None) -> None:
        """From now on ids may be on this device; ids_ahead: what copies them from there."""
        self._device, self._ids_ahead = device, ids_ahead

    def integers(self, tensor: Any, what: str) -> np.ndarray:
        if type(tensor) is not torch.Tensor:
            tensor = self.tensor(tensor, what)
        if tensor.dtype not in _INTEGERS:
            grad = " that requires a gradient" if tensor.requires_grad else ""
            raise TypeError(f"{self.name}: {what} must be int64 or int32, got {_dtype(tensor)}{grad}; ids are numbers of rows, "
                            "which have no gradient: give whole numbers with .long(), and vectors to torch.nn.Linear")
        values: np.ndarray = self._on_host(tensor, what).numpy()
        return values

    def weights(self, tensor: Any, what: str, shape: Sequence[int]) -> np.ndarray:
        """Weights of ids of this shape."""
        if type(tensor) is not torch.Tensor:
            tensor = self.tensor(tensor, what)
        self.require_constant(tensor, what)
        if tensor.is_nested:
            raise ValueError(f"{self.name}: {what} must have the shape of the ids, {tuple(shape)}, got a nested tensor")
        if tensor.dtype != torch.float32:
            raise TypeError(f"{self.name}: {what} must be float32, got {_dtype(tensor)}: give them .float()")
        if tensor.numel() != math.prod(shape):
            raise ValueError(f"{self.name}: {what} must be as many as the ids, {math.prod(shape)}, got {tensor.numel()}")
        if tensor.shape != tuple(shape):
            raise ValueError(f"{self.name}: {what} must have the shape of the ids, {tuple(shape)}, got {tuple(tensor.shape)}")
        values: np.ndarray = self._on_host(tensor.detach(), what).reshape(-1).resolve_neg().numpy()
        return values

    def _on_host(self, tensor: torch.Tensor, what: str) -> torch.Tensor:
        if self._ids_ahead is not None and self._ids_ahead.holds(tensor):
            return self._ids_ahead.take(tensor)
        if not tensor.is_cpu:
            raise ValueError(f"{self.name}: {what} are on '{tensor.device}', and the module gives activations on '{self._device}': keep "
                             f"ids on the CPU, or move the module with .to('{tensor.device}')")
        return tensor

    def require_constant(self, weights: torch.Tensor, what: str) -> None:
        if weights.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                f"{self.name}: {what} require a gradient, which is not offered: give them .detach(), or look the ids up with "
                "embertable.torch.Embedding and multiply the rows")

    def require_bags(self, ids: torch.Tensor, offsets: Any, what: str, single_allowed: bool) -> None:
        """Whether the ids are bags: of torch's two forms, one."""
        if ids.dim() == 2:
            if offsets is not None:
                raise ValueError(f"{self.name}: {what} are 2-D, one bag a line, and take no offsets; got some")
        elif ids.dim() != 1:
            raise ValueError(f"{self.name}: {what} must be 1-D or 2-D, got shape {tuple(ids.shape)}")
        elif offsets is None and not single_allowed:
            raise ValueError(f"{self.name}: {what} are 1-D and need offsets, where each bag begins; got none. "
                             "embertable.torch.Embedding looks single ids up")

    def require_no_offsets(self, offsets: Any, what: str) -> None:
        """Of ragged ids."""
        if offsets is not None:
            raise ValueError(f"{self.name}: {what} have the bounds of their bags, and take no offsets; got some")

    # One feature

    def bag(self, ids: Any, offsets: Any = None, weights: Any = None, *, feature: int = 0, last_offset: bool = False,
            single_allowed: bool = True) -> Ids:
        """What nn.EmbeddingBag takes: 2-D ids, or 1-D ids and offsets; and ragged ones in any form."""
        what = self.what[feature]
        if type(ids) is not torch.Tensor and isinstance(ids, (torch.Tensor, np.ndarray)):
            ids = self.tensor(ids, what)
        if isinstance(ids, torch.Tensor) and not ids.is_nested:
            self.require_bags(ids, offsets, what, single_allowed)
            shape = tuple(ids.shape)
            values = self.integers(ids if len(shape) == 1 else ids.reshape(-1), what)
            if offsets is not None:
                splits: np.ndarray | None = self._splits(offsets, len(values), what, last_offset)
            else:
                are_dense = len(shape) == 1 or (shape[1] == 1 and weights is None)  # dense ids have no weights
                splits = None if are_dense else _even_splits(*shape)
        else:
            values, splits, own = self._ragged(ids, what)
            self.require_no_offsets(offsets, what)
            weights, shape = own if weights is None else weights, (len(values),)
            if _is_ragged(weights):
                weights = self._ragged_weights(weights, splits, what)
        if weights is not None:
            weights = self.weights(weights, f"weights of {what}", shape)
        return Ids(values, splits, weights, self._padding[feature])

    def single(self, ids: Any, feature: int = 0) -> Ids:
        """What nn.Embedding takes: any shape, one row each."""
        what = self.what[feature]
        return Ids(self.integers(self.tensor(ids, what).reshape(-1), what), padding=self._padding[feature])

    # Several features

    def keyed(self, batch: Any, features: Sequence[str], weighted: bool, apart: bool = False) -> list[Ids]:
        """Of a KeyedJaggedTensor, the features of these names. apart: each id is looked up by itself."""
        keys = list(batch.keys())
        place = {key: index for index, key in enumerate(keys)}
        self.require_features(keys, features)
        self.require_different(keys)
        self.require_same_samples(batch)
        values = self.integers(batch.values(), "values")
        bounds, are_lengths = _bounds_of(batch)
        splits = self._splits_of(bounds, "the batch") if are_lengths else self.integers(bounds, "offsets")
        given = weights_of(batch)
        self.require_weights(given, weighted)
        weights = None if given is None else self.weights(given, "weights", (len(values),))
        return self.parts(values, splits, weights, len(keys), [place[name] for name in features], apart)

    def require_different(self, keys: Sequence[str]) -> None:
        if len(set(keys)) < len(keys):
            raise ValueError(f"{self.name}: the features of a batch must have names that differ, got {list(keys)}")

    def require_features(self, keys: Collection[str], features: Sequence[str]) -> None:
        missing: list[str] = []  # by a loop, which every torch compiles
        for name in features:
            if name not in keys and name not in missing:
                missing.append(name)
        if missing:
            raise KeyError(f"{self.name}: the batch has no feature {', '.join(map(repr, missing))}; it has {list(keys)}")

    def require_same_samples(self, batch: Any) -> None:
        if getattr(batch, "variable_stride_per_key", lambda: False)():
            raise NotImplementedError(f"{self.name}: a batch whose features differ in their number of samples is not offered: "
                                      "give a dict of tensors")

    def require_weights(self, given: Any, weighted: bool) -> None:
        if weighted != (given is not None):
            raise ValueError(f"{self.name}: the batch has {'no ' if weighted else ''}weights, and is_weighted is {weighted}: "
                             + ("give weights" if weighted else "make the collection with is_weighted=True, or give none"))

    def samples_of(self, bags: int, keys: int) -> int:
        """The number of samples of a batch that has lengths of so many bags."""
        samples, rest = divmod(bags, keys)
        if rest or samples < 0:
            raise ValueError(f"{self.name}: the batch has lengths of {bags} bags, which are no whole number for each of its {keys} features")
        return samples

    def parts(self, values: np.ndarray, splits: np.ndarray, weights: np.ndarray | None, keys: int,
              places: Sequence[int], apart: bool = False) -> list[Ids]:
        """The features at these places of arrays that hold `keys` features, one after the other."""
        samples = self.samples_of(len(splits) - 1, keys)
        bounds = splits[::samples] if samples else splits[:1].repeat(keys + 1)
        if bounds[0] != 0 or bounds[-1] != len(values) or (np.diff(bounds) < 0).any():
            raise ValueError(f"{self.name}: the batch has {len(values)} ids, and its lengths say that features end at "
                             f"{bounds[1:].tolist()}: they must rise to the number of the ids")
        if apart:
            self._require_lengths(splits, "the batch")
        found = []
        for feature, place in enumerate(places):
            part = splits[place * samples:(place + 1) * samples + 1]
            begin, end = int(part[0]), int(part[-1])
            part = part - begin if begin else part
            found.append(Ids(values[begin:end], None if apart else part, None if weights is None else weights[begin:end],
                             self._padding[feature], part if apart else None))
        return found

    def apart(self, ids: Any, offsets: Any, feature: int) -> Ids:
        """Ids in bags, each of which is looked up by itself: a jagged tensor, or values and offsets with the last one."""
        what = self.what[feature]
        if offsets is None:
            values, splits = self.integers(ids.values(), what), self._splits_of(ids.lengths(), what)
        else:
            values, splits = self.integers(ids, what), self.integers(offsets, f"offsets of {what}")
        if values.ndim != 1:
            raise ValueError(f"{self.name}: {what} must be 1-D where they have lengths, got shape {values.shape}")
        self._require_lengths(splits, what)
        if splits[-1] != len(values):
            raise ValueError(f"{self.name}: lengths of {what} must add up to the number of ids, {len(values)}, got {splits[-1]}")
        return Ids(values, padding=self._padding[feature], bags=splits)

    def _splits_of(self, lengths: Any, what: str) -> np.ndarray:
        found = self.integers(lengths, f"lengths of {what}")
        if found.ndim != 1:
            raise ValueError(f"{self.name}: lengths of {what} must be 1-D, got shape {found.shape}")
        return splits_of_lengths(found)

    def _require_lengths(self, splits: np.ndarray, what: str) -> None:
        """Where the engine gets no splits, which it would check."""
        falls = splits[1:] < splits[:-1]
        if falls.any():
            at = int(falls.argmax())
            raise ValueError(f"{self.name}: lengths of {what} must not be negative, got {splits[at + 1] - splits[at]} at position {at}")

    def named(self, batch: Mapping[str, Any], used: Sequence[str]) -> list[Ids]:
        """Of a dict: ids, (ids, offsets) or (ids, offsets, weights) by feature. `used`: the feature of each output."""
        found = []
        for feature, name in enumerate(used):
            if name not in batch:
                self.require_features(sorted(batch, key=str), used)
            value = batch[name]
            if type(value) is tuple and len(value) == 2 and self._is_plain(value[0]) and self._is_plain(value[1]):
                values: np.ndarray = value[0].numpy()
                found.append(Ids(values, splits_of_offsets(value[1].numpy(), len(values)), padding=self._padding[feature]))
            elif self._is_plain(value):
                found.append(Ids(value.numpy(), padding=self._padding[feature]))
            elif type(value) is tuple or type(value) is list:
                self.require_three(value, feature)
                found.append(self.bag(*value, feature=feature))
            else:
                found.append(self.bag(value, feature=feature))
        return found

    def _is_plain(self, tensor: Any) -> bool:
        """Whether it is a tensor of the usual kind, which needs no more checks: reading many features takes time."""
        return (type(tensor) is torch.Tensor and tensor.dtype is torch.int64 and tensor.dim() == 1 and tensor.is_cpu
                and (self._ids_ahead is None or not self._ids_ahead.holds(tensor)))

    def require_three(self, value: Sequence[Any], feature: int) -> None:
        if not 1 <= len(value) <= 3:
            raise ValueError(f"{self.name}: {self.what[feature]} must be (ids, offsets) or (ids, offsets, weights), got {len(value)} values")

    # Parts

    def tensor(self, value: Any, what: str) -> torch.Tensor:
        """A plain tensor of what stands for one."""
        if isinstance(value, torch.Tensor):
            return value if type(value) is torch.Tensor or value.is_nested else value.as_subclass(torch.Tensor)
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "fiub":
                raise TypeError(f"{self.name}: {what} must be numbers, got {value.dtype}")
            return torch.from_numpy(value if value.flags.writeable else value.copy())
        raise TypeError(f"{self.name}: {what} must be a tensor, got {type(value).__name__}")

    def _splits(self, offsets: Any, count: int, what: str, last_offset: bool) -> np.ndarray:
        bounds = self.integers(offsets, f"offsets of {what}")
        if bounds.ndim != 1:
            raise ValueError(f"{self.name}: offsets of {what} must be 1-D, got shape {bounds.shape}")
        return bounds if last_offset else splits_of_offsets(bounds, count)

    def require_offsets(self, values: Sequence[Any], error: DataError, last_offset: bool = False) -> None:
        """Raises for offsets that are none, where a lookup has raised `error`. values: (ids, offsets) of each feature, or others."""
        for feature, value in enumerate(values):
            if not isinstance(value, (tuple, list)) or len(value) < 2 or any(
                    not isinstance(part, torch.Tensor) or part.is_nested or part.dim() != 1 for part in value[:2]):
                continue
            count, offsets = len(value[0]), value[1].tolist()
            wrong = next((i for i, at in enumerate(offsets) if not (offsets[i - 1] if i else 0) <= at <= (count if i else 0)), None)
            if wrong is None and last_offset and offsets and offsets[-1] != count:
                wrong = len(offsets) - 1
            if wrong is None and (offsets or not count):
                continue
            rule = "begin with 0, not fall, and be at most" if not last_offset else "begin with 0, not fall, and end with"
            got = "none" if wrong is None else f"{offsets[wrong]} at position {wrong}"
            hint = _HINT_OF_LENGTHS + (", then their sum" if last_offset else "") if offsets and sum(offsets) == count else ""
            raise data_error(f"{self.name}: offsets of {self.what[feature]} must {rule} the number of ids, {count}; got {got}{hint}",
                             error.feature, error.replica, wrong, None) from None

    def _ragged(self, ids: Any, what: str) -> tuple[np.ndarray, np.ndarray, Any]:
        if isinstance(ids, torch.Tensor) and ids.is_nested:
            if ids.layout == torch.jagged:
                _require_plain_jagged(ids, self.name, what)
                return self.integers(ids.values(), what), self.integers(ids.offsets(), what), None  # type: ignore[attr-defined]
            rows, lengths = rows_of_nested(ids)
            return self.integers(rows, what), splits_of_lengths(np.array(lengths, np.int64)), None
        if is_jagged(ids):
            return self.integers(ids.values(), what), self._splits_of(ids.lengths(), what), weights_of(ids)
        if hasattr(ids, "row_splits"):
            return np.asarray(ids.values), np.asarray(ids.row_splits), None
        raise TypeError(f"{self.name}: {what} must be a tensor, got {type(ids).__name__}")

    def _ragged_weights(self, weights: Any, splits: np.ndarray, what: str) -> torch.Tensor:
        """Weights in bags of their own, which are those of the ids."""
        if isinstance(weights, torch.Tensor):
            self.require_constant(weights, f"weights of {what}")
            values, lengths = rows_of_nested(weights)
            own = splits_of_lengths(np.array(lengths, np.int64))
        else:
            values, own = weights.values(), self._splits_of(weights.lengths(), f"weights of {what}")
        if not np.array_equal(own, splits):
            raise ValueError(f"{self.name}: weights of {what} must have the bags of the ids")
        return values


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
