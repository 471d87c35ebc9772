"""Tables with the features that are looked up in them, as one module: how they are configured, and what modules of them share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch

from .._arguments import names_of, objects_of, require_flag, require_kind, require_text
from .._core import EngineStrategy, Initializer, Optimizer, TableConfig
from .inputs import is_keyed
from .modules import Feature, TableModule, padding_row

__all__ = ["Collection", "EmbeddingBagConfig", "EmbeddingConfig"]


@dataclasses.dataclass
class EmbeddingBagConfig:
    """One table of an EmbeddingBagCollection. torchrec's own is taken as well."""

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


@dataclasses.dataclass
class EmbeddingConfig:
    """One table of an EmbeddingCollection. torchrec's own is taken as well."""

    num_embeddings: int
    embedding_dim: int
    name: str
    feature_names: list[str]
    initializer: Initializer | None = None
    optimizer: Optimizer | None = None
    padding_idx: int | None = None
    row_type: Literal["float32", "bfloat16"] = "float32"
    replicated: bool = False

    def __post_init__(self) -> None:
        self.feature_names = names_of(f"table '{self.name}'", "feature_names", self.feature_names)


class Collection(TableModule):
    """A module of several tables, whose batch has a part for each feature."""

    _config: type  # of its tables

    def __init__(self, title: str, tables: Sequence[Any], optimizer: Optimizer | None, *, strategy: EngineStrategy | None,
                 seed: int | None, rank_gradients: str, gradient_policy: Literal["error", "allow"],
                 out_of_range: Literal["error", "drop"]) -> None:
        kind = self._config.__name__
        tables = objects_of(title, "tables", tables, f"a list of {kind}s")
        if not tables:
            raise ValueError(f"{title}: tables must have one table or more, got none")
        for index, table in enumerate(tables):
            _require_fields(title, index, table, kind, self._pooled)
        configs = [_table_of(title, table, self._pooled) for table in tables]
        outputs = _outputs_of(title, tables)
        super().__init__(title, configs, [one.feature for one in outputs], optimizer, strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        self._configs = tables
        self._used = [one.used for one in outputs]

    def embedding_names(self) -> list[str]:
        """The names of what comes out, in order."""
        return list(self._names)

    def prefetch(self, *inputs: Any) -> None:
        super().prefetch(*map(self._taken, inputs))

    def _taken(self, features: Any) -> Any:
        """What the tables take of a dict, which may have more, such as features of a dense part."""
        return [features[name] for name in self._used if name in features] if isinstance(features, Mapping) else features

    def _require_keyed(self, features: Any) -> None:
        if not is_keyed(features):
            raise TypeError(f"{self._steps.name}: takes a dict by feature or a KeyedJaggedTensor, got "
                            f"{type(features).__name__}")


class _Output(NamedTuple):
    feature: Feature
    used: str  # the feature of the batch


def _outputs_of(title: str, tables: Sequence[Any]) -> list[_Output]:
    """What comes out: of each table its features. That of a feature of several tables is called `feature@table`."""
    names_by_table = [names_of(f"{title}: table '{table.name}'", "feature_names", table.feature_names) for table in tables]
    every = [feature for names in names_by_table for feature in names]
    if not every:
        raise ValueError(f"{title}: the tables must have features, got none")
    outputs = []
    for index, (table, feature_names) in enumerate(zip(tables, names_by_table)):
        if any(table.name == other.name for other in tables[:index]):
            raise ValueError(f"{title}: two tables have the name '{table.name}': each needs one of its own")
        if len(set(feature_names)) < len(feature_names):
            raise ValueError(f"{title}: table '{table.name}': feature_names must differ, got {feature_names}")
        if not feature_names:
            raise ValueError(f"{title}: table '{table.name}': feature_names must have one name or more, got none")
        padding = padding_row(f"{title}: table '{table.name}'", getattr(table, "padding_idx", None), table.num_embeddings)
        for feature in feature_names:
            name = feature if every.count(feature) == 1 else f"{feature}@{table.name}"
            outputs.append(_Output(Feature(name, table.name, padding, f"ids of feature '{feature}'"), feature))
    names = [one.feature.name for one in outputs]
    if len(set(names)) < len(names):  # as those of x in t and of a feature 'x@t'
        raise ValueError(f"{title}: two outputs have one name: {sorted(names)}")
    return outputs


def _require_fields(title: str, index: int, table: Any, kind: str, pooled: bool) -> None:
    for field in ("name", "num_embeddings", "embedding_dim", "feature_names", *(("pooling",) if pooled else ())):
        if not hasattr(table, field):
            raise TypeError(f"{title}: tables[{index}] must be an {kind}, got {type(table).__name__} without {field}")
    if not pooled and hasattr(table, "pooling"):
        raise TypeError(f"{title}: tables[{index}] must be an {kind}, got {type(table).__name__}, whose rows are combined: "
                        "EmbeddingBagCollection does that")
    require_text(title, f"tables[{index}].name", table.name)


_POOLINGS: dict[str, Literal["mean", "sum", "sqrtn"]] = {"SUM": "sum", "MEAN": "mean", "SQRTN": "sqrtn"}


def _table_of(title: str, table: Any, pooled: bool) -> TableConfig:
    pooling = str(getattr(table.pooling, "name", table.pooling)).upper() if pooled else "SUM"
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
