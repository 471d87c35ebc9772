"""Tables whose rows are combined for each sample, as torchrec's EmbeddingBagCollection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np
import torch

from .._arguments import require_flag
from .._core import DataError, EngineStrategy, Optimizer
from ..steps import BAGS_OR_SINGLES
from .collection import Collection, EmbeddingBagConfig
from .compiled import pack_bags, pack_keyed
from .modules import arguments_of, refuse_others, refuse_trace, tracing_state

__all__ = ["EmbeddingBagCollection", "KeyedTensor"]


class KeyedTensor:
    """As torchrec's: activations of several features side by side. keys(), values() and ["feature"]."""

    def __init__(self, keys: Sequence[str], rows: Sequence[torch.Tensor]) -> None:
        if isinstance(keys, (str, bytes)):
            raise TypeError(f"KeyedTensor: keys must be a list of names, got {keys!r}")
        self._keys, self._rows = list(keys), list(rows)
        if len(self._keys) != len(self._rows):
            raise ValueError(f"KeyedTensor: rows must be one tensor for each of the {len(self._keys)} keys, got {len(self._rows)}")

    def keys(self) -> list[str]:
        return self._keys

    def values(self) -> torch.Tensor:
        """[samples, sum of the dims]"""
        return torch.cat(self._rows, dim=1)

    def length_per_key(self) -> list[int]:
        return [rows.shape[1] for rows in self._rows]

    def offset_per_key(self) -> list[int]:
        return [0, *np.cumsum(self.length_per_key()).tolist()]

    def to_dict(self) -> dict[str, torch.Tensor]:
        return dict(zip(self._keys, self._rows))

    def __getitem__(self, key: str) -> torch.Tensor:
        if key not in self._keys:
            raise KeyError(f"no feature '{key}'; there are {self._keys}")
        return self._rows[self._keys.index(key)]


class EmbeddingBagCollection(Collection):
    """As torchrec's: tables with the features that are looked up in them, in one engine and one step.

    forward takes a KeyedJaggedTensor and gives a KeyedTensor; or a dict by feature of ids (1-D: one each, 2-D: bags),
    nested or jagged tensors, (ids, offsets) or (ids, offsets, weights), and gives a dict. A feature of several tables is
    `feature@table` in what comes out.
    """

    _key = "embedding_bags.{table}.weight"
    _config = EmbeddingBagConfig

    def __init__(self, tables: Sequence[Any], optimizer: Optimizer | None = None, *, is_weighted: bool = False,
                 strategy: EngineStrategy | None = None, seed: int | None = None, rank_gradients: str = "mean",
                 gradient_policy: Literal["error", "allow"] = "error", out_of_range: Literal["error", "drop"] = "error", **others: NoReturn) -> None:
        if others:
            refuse_others("EmbeddingBagCollection", others, arguments_of(EmbeddingBagCollection))
        require_flag("EmbeddingBagCollection", "is_weighted", is_weighted)
        super().__init__("EmbeddingBagCollection", tables, optimizer, strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        self.is_weighted = is_weighted

    def embedding_bag_configs(self) -> list[Any]:
        """The configurations of the tables, as they were given."""
        return list(self._configs)

    def forward(self, features: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._forward_compiled(features)
        if tracing_state() is not None:
            refuse_trace(self._steps.name)
        if isinstance(features, Mapping):
            try:
                return dict(zip(self._names, self._of_mapping(features)))
            except DataError as error:
                self._reader.require_offsets([features.get(name) for name in self._used], error)
                raise
        self._require_keyed(features)
        return KeyedTensor(self._names, self._look_up(
            features, lambda: self._reader.keyed(features, self._used, self.is_weighted)))

    def _of_mapping(self, features: Mapping[str, Any]) -> list[torch.Tensor]:
        plain = self._look_up_dict(features) if type(features) is dict else None
        if plain is not None:
            return plain
        return self._look_up(self._taken(features), lambda: self._reader.named(features, self._used))

    def _look_up_dict(self, features: dict[str, Any]) -> list[torch.Tensor] | None:
        try:
            values = [features[name] for name in self._used]
        except KeyError:
            return None
        return self._look_up_plain(values, BAGS_OR_SINGLES)

    def _forward_compiled(self, features: Any) -> Any:
        if isinstance(features, dict):
            self._reader.require_features(list(features), self._used)
            tensors: list[torch.Tensor] = []
            form: list[int] = []
            for feature, name in enumerate(self._used):
                value = features[name]
                parts = value if isinstance(value, (tuple, list)) else (value,)
                self._reader.require_three(parts, feature)
                ids, offsets, weights = (*parts, None, None)[:3]
                found, code = pack_bags(self._reader, feature, ids, offsets, weights)
                tensors.extend(found)
                form.extend(code)
            return dict(zip(self._names, self._look_up_compiled(tensors, form)))
        self._require_keyed(features)
        return KeyedTensor(self._names, self._look_up_compiled(*pack_keyed(self._reader, features, self._used, self.is_weighted)))
