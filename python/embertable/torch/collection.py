"""Tables with the features that are looked up in them, as one module."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np
import torch

from .._arguments import names_of, objects_of, require_flag, require_kind, require_text
from .._core import DataError, EngineStrategy, Initializer, Optimizer, TableConfig
from ..steps import BAGS_OR_SINGLES
from .compiled import pack_bags, pack_keyed
from .inputs import is_keyed
from .modules import Feature, TableModule, arguments_of, padding_row, refuse_others, refuse_trace, tracing_state

__all__ = ["EmbeddingBagCollection", "EmbeddingBagConfig", "KeyedTensor"]


@dataclasses.dataclass
class EmbeddingBagConfig:
    """One table of a collection. torchrec's own is taken as well."""

    num_embeddings: int
    embedding_dim: int
    name: str
    feature_names: list[str]
    pooling: Any = "sum"
    initializer: Initializer | None = None
    optimizer: Optimizer | None = None
    padding_idx: int | None = None
    row_type: Literal["float32", "bfloat16"] = "float32"
    replicated: bool = False

    def __post_init__(self) -> None:
        self.feature_names = names_of(f"table '{self.name}'", "feature_names", self.feature_names)


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


class EmbeddingBagCollection(TableModule):
    """As torchrec's: tables with the features that are looked up in them, in one engine and one step.

    forward takes a KeyedJaggedTensor and gives a KeyedTensor; or a dict by feature of ids (1-D: one each, 2-D: bags),
    nested or jagged tensors, (ids, offsets) or (ids, offsets, weights), and gives a dict. A feature of several tables is
    `feature@table` in what comes out.
    """

    _key = "embedding_bags.{table}.weight"

    def __init__(self, tables: Sequence[Any], optimizer: Optimizer | None = None, *, is_weighted: bool = False,
                 strategy: EngineStrategy | None = None, seed: int | None = None, rank_gradients: str = "mean",
                 gradient_policy: Literal["error", "allow"] = "error", out_of_range: Literal["error", "drop"] = "error", **others: NoReturn) -> None:
        title = "EmbeddingBagCollection"
        if others:
            refuse_others(title, others, arguments_of(EmbeddingBagCollection))
        require_flag(title, "is_weighted", is_weighted)
        tables = objects_of(title, "tables", tables, "a list of EmbeddingBagConfigs")
        if not tables:
            raise ValueError(f"{title}: tables must have one table or more, got none")
        configs, features, used = [], [], []
        names_by_table = [_feature_names(title, index, table) for index, table in enumerate(tables)]
        every = [feature for names in names_by_table for feature in names]
        if not every:
            raise ValueError(f"{title}: the tables must have features, got none")
        for index, (table, feature_names) in enumerate(zip(tables, names_by_table)):
            if any(table.name == other.name for other in tables[:index]):
                raise ValueError(f"{title}: two tables have the name '{table.name}': each needs one of its own")
            if len(set(feature_names)) < len(feature_names):
                raise ValueError(f"{title}: table '{table.name}': feature_names must differ, got {feature_names}")
            configs.append(_table_of(title, table))
            if not feature_names:
                raise ValueError(f"{title}: table '{table.name}': feature_names must have one name or more, got none")
            padding = padding_row(f"{title}: table '{table.name}'", getattr(table, "padding_idx", None), table.num_embeddings)
            for feature in feature_names:
                name = feature if every.count(feature) == 1 else f"{feature}@{table.name}"
                features.append(Feature(name, table.name, padding, f"ids of feature '{feature}'"))
                used.append(feature)
        names = [feature.name for feature in features]
        if len(set(names)) < len(names):  # as those of x in t and of a feature 'x@t'
            raise ValueError(f"{title}: two outputs have one name: {sorted(names)}")
        super().__init__(title, configs, features, optimizer, strategy=strategy, seed=seed, rank_gradients=rank_gradients,
                         gradient_policy=gradient_policy, out_of_range=out_of_range)
        self.is_weighted = is_weighted
        self._configs = tables
        self._used = used  # the feature of each output

    def embedding_names(self) -> list[str]:
        """The names of what comes out, in order."""
        return list(self._names)

    def embedding_bag_configs(self) -> list[Any]:
        """The configurations of the tables, as they were given."""
        return list(self._configs)

    def prefetch(self, *inputs: Any) -> None:
        super().prefetch(*map(self._taken, inputs))

    def _taken(self, features: Any) -> Any:
        """What the tables take of a dict, which may have more, such as features of a dense part."""
        return [features[name] for name in self._used if name in features] if isinstance(features, Mapping) else features

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

    def _require_keyed(self, features: Any) -> None:
        if not is_keyed(features):
            raise TypeError(f"{self._steps.name}: takes a dict by feature or a KeyedJaggedTensor, got "
                            f"{type(features).__name__}")

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


def _feature_names(title: str, index: int, table: Any) -> list[str]:
    for field in ("name", "num_embeddings", "embedding_dim", "feature_names", "pooling"):
        if not hasattr(table, field):
            raise TypeError(f"{title}: tables[{index}] must be an EmbeddingBagConfig, got {type(table).__name__} without {field}")
    require_text(title, f"tables[{index}].name", table.name)
    return names_of(f"{title}: table '{table.name}'", "feature_names", table.feature_names)


_POOLINGS: dict[str, Literal["mean", "sum", "sqrtn"]] = {"SUM": "sum", "MEAN": "mean", "SQRTN": "sqrtn"}


def _table_of(title: str, table: Any) -> TableConfig:
    pooling = str(getattr(table.pooling, "name", table.pooling)).upper()
    if pooling not in _POOLINGS:
        raise ValueError(f"{title}: table '{table.name}': pooling must be sum, mean or sqrtn, got {table.pooling}")
    data_type = getattr(table, "data_type", None)
    row_types: dict[str, Any] = {"None": getattr(table, "row_type", "float32"), "FP32": "float32", "BF16": "bfloat16"}
    kind = str(getattr(data_type, "name", data_type))
    if kind not in row_types:
        raise ValueError(f"{title}: table '{table.name}': data_type must be FP32 or BF16, got {data_type}")
    TableConfig(table.num_embeddings, table.embedding_dim, name=table.name)  # refuses sizes before an initializer takes them
    initializer = getattr(table, "initializer", None)
    if initializer is not None:
        require_kind(f"{title}: table '{table.name}'", "initializer", initializer, Initializer, "an embertable.Initializer")
    first = getattr(table, "init_fn", None)
    if first is not None and not callable(first):
        raise TypeError(f"{title}: table '{table.name}': init_fn must be a function of a tensor, got {type(first).__name__}")
    require_flag(f"{title}: table '{table.name}'", "replicated", getattr(table, "replicated", False))
    if initializer is None and first is None:
        bound = table.num_embeddings**-0.5
        initializer = Initializer.uniform(-bound, bound)
    elif initializer is None and isinstance(first, functools.partial) and first.func is torch.nn.init.uniform_:
        initializer = Initializer.uniform(first.keywords.get("a", 0.0), first.keywords.get("b", 1.0))
    elif initializer is None:
        rows = torch.empty(table.num_embeddings, table.embedding_dim, dtype=torch.float32, device="cpu")
        first(rows)  # type: ignore[misc]
        initializer = Initializer.values(rows.numpy())
    return TableConfig(table.num_embeddings, table.embedding_dim, initializer, getattr(table, "optimizer", None),
                       _POOLINGS[pooling], table.name, replicated=bool(getattr(table, "replicated", False)), row_type=row_types[kind])
