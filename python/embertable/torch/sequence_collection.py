"""Tables whose rows stay as they are, one for each id, as torchrec's EmbeddingCollection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np
import torch

from .._core import EngineStrategy, Optimizer
from ..steps import SINGLES
from .collection import Collection
from .compiled import pack_keyed_singles, pack_singles
from .inputs import elements_of, is_jagged, shaped_as, weights_of
from .modules import arguments_of, refuse_others, refuse_trace, tracing_state

__all__ = ["EmbeddingCollection", "JaggedTensor"]


class JaggedTensor:
    """As torchrec's: what sequences of several samples have, one after the other. values: [elements, ...]; lengths: [samples]."""

    def __init__(self, values: torch.Tensor, lengths: torch.Tensor) -> None:
        self._values, self._lengths = values, lengths

    def values(self) -> torch.Tensor:
        return self._values

    def lengths(self) -> torch.Tensor:
        return self._lengths

    def offsets(self) -> torch.Tensor:
        """[samples + 1]: where each sequence begins, and the number of elements."""
        return torch.cat([self._lengths.new_zeros(1), self._lengths.cumsum(0)])

    def to_dense(self) -> list[torch.Tensor]:
        """The sequence of each sample, [length, ...]."""
        return list(self._values.split(self._lengths.tolist()))

    def to_padded_dense(self, desired_length: int | None = None, padding_value: float = 0.0) -> torch.Tensor:
        """[samples, desired_length, ...], by default the longest length. Longer sequences are cut, others are filled up."""
        lengths = self._lengths.to(self._values.device)
        longest = int(lengths.max()) if len(lengths) else 0
        size = longest if desired_length is None else desired_length
        values = self._values
        if size < longest:
            starts = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths, output_size=len(values))
            values = values[torch.arange(len(values), device=values.device) - starts < size]
        padded = values.new_full((len(lengths), size, *values.shape[1:]), padding_value)
        padded[torch.arange(size, device=values.device) < lengths[:, None]] = values
        return padded


class EmbeddingCollection(Collection):
    """As torchrec's: a row for each id of several features, in one engine and one step.

    forward takes a KeyedJaggedTensor and gives a dict of JaggedTensors; or a dict by feature. Of that, ids in a tensor of any
    shape, nested ones too, give rows in a tensor of this shape, and a JaggedTensor gives one. A feature of several tables is
    `feature@table` in what comes out.
    """

    _key = "embeddings.{table}.weight"

    def __init__(self, tables: Sequence[Any], optimizer: Optimizer | None = None, *, strategy: EngineStrategy | None = None,
                 seed: int | None = None, rank_gradients: str = "mean", gradient_policy: Literal["error", "allow"] = "error",
                 out_of_range: Literal["error", "drop"] = "error", **others: NoReturn) -> None:
        if others:
            refuse_others("EmbeddingCollection", others, arguments_of(EmbeddingCollection))
        super().__init__("EmbeddingCollection", tables, optimizer, pooled=False, strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)

    def embedding_configs(self) -> list[Any]:
        """The configurations of the tables, as they were given."""
        return list(self._configs)

    def forward(self, features: Any) -> dict[str, Any]:
        compiles = torch.compiler.is_compiling()
        if not compiles and tracing_state() is not None:
            refuse_trace(self._steps.name)
        if isinstance(features, Mapping):
            self._reader.require_features(list(features), self._used)
            values = [features[name] for name in self._used]
            ids = [self._ids_of(feature, value) for feature, value in enumerate(values)]
            rows = self._look_up_compiled(*_packed(ids)) if compiles else self._look_up_ids(ids)
            return {name: _as_given(*pair) for name, *pair in zip(self._names, values, rows)}
        self._require_keyed(features)
        self._refuse_weights("the batch has", features)
        rows = self._look_up_compiled(*pack_keyed_singles(self._reader, features, self._used)) if compiles else (
            self._look_up(features, lambda: self._reader.keyed_singles(features, self._used)))
        lengths, keys = features.lengths(), list(features.keys())
        samples = len(lengths) // len(keys)
        lengths = lengths.view(len(keys), samples)
        return {name: JaggedTensor(mine, lengths[keys.index(used)]) for name, used, mine in zip(self._names, self._used, rows)}

    def _look_up_ids(self, ids: Sequence[Any]) -> list[torch.Tensor]:
        plain = self._look_up_plain(ids, SINGLES)
        return plain if plain is not None else self._look_up(
            ids, lambda: [self._reader.single(one, feature) for feature, one in enumerate(ids)])

    def _ids_of(self, feature: int, value: Any) -> Any:
        """The ids of a feature in one tensor that is not nested."""
        what = self._reader.what[feature]
        if isinstance(value, torch.Tensor):
            return elements_of(f"{self._steps.name}: {what}", value)
        if is_jagged(value):
            self._refuse_weights(f"{what} have", value)
            self._require_lengths(what, value)
            return value.values()
        if isinstance(value, np.ndarray):
            return value
        raise TypeError(f"{self._steps.name}: {what} must be a tensor, or a JaggedTensor of values and lengths, got {type(value).__name__}")

    def _refuse_weights(self, what: str, value: Any) -> None:
        if weights_of(value) is not None:
            raise ValueError(f"{self._steps.name}: {what} weights, which are for rows that are combined: give none, and multiply the rows")

    def _require_lengths(self, what: str, value: Any) -> None:
        """Compiled code does not know them."""
        if torch.compiler.is_compiling():
            return
        count, lengths = len(value.values()), value.lengths()
        if int(lengths.sum()) != count or (lengths < 0).any():
            raise ValueError(f"{self._steps.name}: lengths of {what} must not be negative, and add up to the number of ids, {count}; "
                             f"got a sum of {int(lengths.sum())}")


def _packed(ids: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[int]]:
    """What compiled code takes of single ids of several features."""
    tensors, form = [], []
    for one in ids:
        found, code = pack_singles(one)
        tensors.extend(found)
        form.extend(code)
    return tensors, form


def _as_given(ids: Any, rows: torch.Tensor) -> Any:
    """Rows in the form in which their ids were given."""
    return JaggedTensor(rows, ids.lengths()) if is_jagged(ids) else shaped_as(ids, rows)
