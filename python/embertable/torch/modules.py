"""Embedding tables as modules of torch. They have no parameters: backward applies their own optimizer."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._core import Embedding as Engine
from .._core import EngineStrategy, FeatureConfig, Initializer, Optimizer, TableConfig
from ..steps import Ids, Steps
from . import state
from .autograd import KEYED, LAST_OFFSET, OFFSETS, SINGLE, WEIGHTS, LookUp, compiled_look_up, register
from .inputs import Reader, is_keyed
from .optimizer import Rates, TableOptimizer
from .transfers import Arriving, Cuda, Transfers

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingBagCollection", "EmbeddingBagConfig", "KeyedTensor", "TableModule"]

# Batches are of any size: the engine is built for one that no batch reaches.
_MOST_SAMPLES = 1 << 30
_OUTSIDE = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep, "<")


def _where() -> str:
    """The line of the caller's that looks up."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_OUTSIDE):
        frame = frame.f_back
    return "" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


class TableModule(torch.nn.Module):
    """What the modules have in common: an engine of one or more tables."""

    def __init__(self, name: str, tables: Sequence[TableConfig], features: Sequence[tuple[str, str]],
                 optimizer: Optimizer | None, *, padding: Sequence[int | None] = (), strategy: EngineStrategy | None,
                 seed: int | None, rank_gradients: str, gradient_policy: str, out_of_range: str) -> None:
        """features: (name, table) of each output."""
        super().__init__()
        if rank_gradients not in ("mean", "sum"):
            raise ValueError(f"{name}: rank_gradients must be 'mean' or 'sum', got '{rank_gradients}'")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: optimizer must be an embertable.Optimizer such as embertable.Adagrad(0.1), got "
                            f"{type(optimizer).__name__}; the tables' rows are no parameters of torch's optimizers")
        rates = Rates()
        made = {}
        for table in tables:
            own = table.optimizer or optimizer
            if own is None:
                raise ValueError(f"{name}: optimizer must be given, such as embertable.Adagrad(0.1): backward applies it")
            made[str(table.name)] = TableConfig(table.vocabulary_size, table.dim, table.initializer,
                                                rates.of(str(table.name), own), table.combiner, table.name)
        strategy = strategy or EngineStrategy()
        processes = strategy.replicas // strategy.local_replicas
        if seed is None:
            seed = 0 if processes > 1 else int(torch.randint(1 << 62, (1,), dtype=torch.int64))
        self._names = [feature for feature, _ in features]
        single = len(features) == 1
        configs: Any = [FeatureConfig(made[table], name=feature) for feature, table in features]
        engine = Engine(configs[0] if single else configs, None, strategy, variable_batch=True, seed=seed,
                        gradient_policy=gradient_policy, out_of_range=out_of_range)
        engine.build(_MOST_SAMPLES)
        engine.verify_output_shapes_on_enqueue = False
        self._tables = {str(table.name): made[str(table.name)] for table in tables}
        self._dims = [made[table].dim for _, table in features]
        self._steps = Steps(engine, name, single=single, replicas=strategy.local_replicas,
                            divide_by=processes if rank_gradients == "mean" else 1)
        self._optimizer = TableOptimizer(self, rates, self._steps)
        self._reader = Reader(name, padding or [None] * len(features), self._ids_to_host)
        self._probe = torch.zeros(1, requires_grad=True)
        self._place = torch.empty(0)
        self._device = self._place.device
        self._transfers: Transfers | None = None
        self._ahead: dict[tuple[int, int], tuple[torch.Tensor, Arriving, int]] = {}
        self._arriving: tuple[Any, Arriving] | None = None
        self._reference: state.Reference | None = None
        self._left_out = False  # state_dict() has no rows: embertable.torch.save commits them
        self._number = register(self)

    # What trainers use

    @property
    def engine(self) -> Engine:
        """The engine behind, with all gradients applied that have come."""
        self._settle()
        return self._steps.engine

    @property
    def optimizer(self) -> TableOptimizer:
        return self._optimizer

    @property
    def abandoned_steps(self) -> int:
        """Lookups that got no gradients before their graph was dropped, as far as they were named."""
        return self._steps.abandoned

    @property
    def seconds(self) -> float:
        """Seconds spent in the engine so far, in lookups and updates."""
        return self._steps.seconds

    def prefetch(self, *inputs: Any) -> None:
        """Starts to copy the next batch's ids from the accelerator. Lookups of the same tensors take the copies."""
        found = [tensor for tensor in _tensors_in(inputs) if not tensor.is_cpu or self._stands_in]
        if self._transfers is None or not found:
            return
        arriving = self._transfers.to_host(found)
        self._ahead = {(tensor.data_ptr(), tensor.numel()): (tensor, arriving, index) for index, tensor in enumerate(found)}

    def read_rows(self, ids: torch.Tensor | Sequence[int], table: str | None = None) -> torch.Tensor:
        """Rows of a table as they are, without training."""
        return torch.from_numpy(self.engine.read_rows(self._table(table), np.asarray(ids)))

    def assign_rows(self, ids: torch.Tensor | Sequence[int], rows: torch.Tensor, table: str | None = None) -> None:
        """Overwrites rows of a table."""
        self.engine.assign_rows(self._table(table), np.asarray(ids), rows.detach().cpu().numpy())

    def keep_tables_in(self, run: str | os.PathLike[str] | None) -> None:
        """From now on state_dict() commits the tables to this run directory, and has a reference instead of rows."""
        self._reference = None if run is None else state.Reference(os.fspath(run))

    def extra_repr(self) -> str:
        tables = ", ".join(f"{name}: {t.vocabulary_size} x {t.dim} {t.combiner}" for name, t in self._tables.items())
        return f"{tables}; {', '.join(sorted({info.optimizer for info in self._steps.engine.tables}))}"

    # What torch calls

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> TableModule:
        place = fn(self._place)
        if place.device.type not in ("cpu", "cuda"):
            raise NotImplementedError(f"{self._steps.name}: activations on '{place.device}' are not offered: they are on the CPU "
                                      "or on a CUDA device; the rows are in memory of the host, in any case")
        if place.device != self._device:
            self._settle()
            self._transfers = Transfers(Cuda(place.device)) if place.is_cuda else None
            self._ahead = {}
        self._place, self._device = place, place.device
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        state.save_to(self, destination, prefix)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
                              unexpected_keys: list[str], error_msgs: list[str]) -> None:
        state.load_from(self, state_dict, prefix, strict, missing_keys, unexpected_keys, error_msgs)

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"{self._steps.name} owns its tables and cannot be copied: make a second one, and give it "
                        "load_state_dict(first.state_dict())")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self._steps.name} owns its tables and cannot be pickled: save model.state_dict(), or the whole "
                        "training with embertable.torch.save; a process that only looks up opens "
                        "embertable.ServingEmbedding")

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            raise AttributeError(f"'{type(self).__name__}' has no parameter 'weight': read_rows(ids) and assign_rows(ids, rows) "
                                 "are for rows, state_dict() for all")
        return super().__getattr__(name)

    # Steps

    @property
    def _stands_in(self) -> bool:
        """Whether the accelerator is one of a test, whose memory is the host's."""
        return self._transfers is not None and self._device.type == "cpu"

    def _before_lookup(self) -> None:
        if self._arriving is not None:
            self._settle()
        if self._optimizer._lower_scale:
            self._optimizer.before_lookup()

    def _look_up(self, batch: list[Ids]) -> list[torch.Tensor]:
        self._before_lookup()
        if self.training and torch.is_grad_enabled():
            found = LookUp.apply(self._probe, self, batch, _where())
        else:
            found = self._tensors(self._steps.look_up(batch, False)[0])
        if self._place.dtype is not torch.float32:
            found = [rows.to(self._place.dtype) for rows in found]
        return found

    def _look_up_compiled(self, tensors: list[torch.Tensor], form: list[int]) -> list[torch.Tensor]:
        record = self.training and torch.is_grad_enabled()
        found = compiled_look_up(self._probe, tensors, form, self._dims, self._number, record)[:-1]
        if self._place.dtype is not torch.float32:
            found = [rows.to(self._place.dtype) for rows in found]
        return found

    def _tensors(self, rows: Sequence[np.ndarray]) -> list[torch.Tensor]:
        if self._transfers is not None:
            return self._transfers.to_device(rows)
        return list(map(torch.from_numpy, rows))

    def _take(self, step: Any, gradients: Sequence[torch.Tensor | None]) -> None:
        """Gives gradients to the tables; those on an accelerator once they have arrived."""
        dense = [None if one is None else one.contiguous() for one in gradients]
        if self._transfers is None:
            self._steps.give(step, [None if one is None else one.numpy() for one in dense])
            return
        self._settle()
        if step._state == "closed":
            self._steps.give(step, dense)  # which says what is wrong
        self._arriving = (step, self._transfers.gradients_to_host(dense))

    def _settle(self) -> None:
        """Applies gradients that are on their way from the accelerator."""
        if self._arriving is not None:
            (step, arriving), self._arriving = self._arriving, None
            self._steps.give(step, arriving.wait())

    def _ids_to_host(self, tensor: torch.Tensor, what: str) -> torch.Tensor:
        if tensor.device != self._device or self._transfers is None:
            raise ValueError(f"{self._steps.name}: {what} are on '{tensor.device}', and the module gives activations on "
                             f"'{self._device}': keep ids on the CPU, or move the module with .to('{tensor.device}')")
        kept = self._ahead.pop((tensor.data_ptr(), tensor.numel()), None)
        if kept is None or kept[0].dtype != tensor.dtype:
            return torch.from_numpy(self._transfers.to_host([tensor]).wait()[0])
        return torch.from_numpy(kept[1].wait()[kept[2]]).reshape(tensor.shape)

    def _batch_of(self, tensors: Sequence[torch.Tensor], form: Sequence[int]) -> list[Ids]:
        """Reads what compiled code passes."""
        if form[0] & KEYED:
            values = self._reader.integers(tensors[0], "values")
            splits = self._reader.integers(tensors[1], "offsets")
            given = self._reader.weights(tensors[2], "weights", len(values)) if form[0] & WEIGHTS else None
            return self._reader.parts(values, splits, given, (len(splits) - 1) // form[1], form[2:])
        batch, rest = [], iter(tensors)
        for feature, code in enumerate(form):
            ids = next(rest)
            offsets = next(rest) if code & OFFSETS else None
            weights = next(rest) if code & WEIGHTS else None
            if code & SINGLE:
                batch.append(self._reader.single(ids))
            else:
                batch.append(self._reader.bag(ids, offsets, weights, feature=feature, what=self._what[feature],
                                              last_offset=bool(code & LAST_OFFSET)))
        return batch

    @property
    def _what(self) -> list[str]:
        return ["ids"] if len(self._names) == 1 else [f"ids of feature '{name}'" for name in self._names]

    def _table(self, table: str | None) -> str:
        if table is None:
            if len(self._tables) > 1:
                raise ValueError(f"{self._steps.name}: table must be named, one of {sorted(self._tables)}")
            return next(iter(self._tables))
        if table not in self._tables:
            raise KeyError(f"{self._steps.name}: no table '{table}'; there are {sorted(self._tables)}")
        return table


def _tensors_in(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _tensors_in(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors_in(one)
    elif is_keyed(value):
        yield value.values()
        yield value.offsets()


def _pieces(ids: Any, offsets: Any, weights: Any, last_offset: bool = False) -> tuple[list[torch.Tensor], int]:
    """The tensors of one feature for compiled code, and what they are."""
    if isinstance(ids, torch.Tensor) and ids.is_nested:
        ids, offsets, last_offset = ids.values(), ids.offsets(), True  # type: ignore[attr-defined]
    code = (OFFSETS if offsets is not None else 0) | (LAST_OFFSET if last_offset and offsets is not None else 0)
    code |= WEIGHTS if weights is not None else 0
    return [one for one in (ids, offsets, weights) if one is not None], code


class EmbeddingBag(TableModule):
    """As torch.nn.EmbeddingBag: bags of ids to the sum, mean or sqrtn of their rows.

    Ids of `padding_idx` count as absent. Rows begin as the initializer says, standard normal by default, drawn by torch's
    seed unless `seed` is given.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *, mode: str = "mean", padding_idx: int | None = None,
                 optimizer: Optimizer, initializer: Initializer | None = None, include_last_offset: bool = False,
                 strategy: EngineStrategy | None = None, seed: int | None = None, rank_gradients: str = "mean",
                 gradient_policy: str = "error", out_of_range: str = "error", name: str = "weight") -> None:
        if mode not in ("sum", "mean", "sqrtn"):
            raise ValueError(f"EmbeddingBag: mode must be 'sum', 'mean' or 'sqrtn', got '{mode}'")
        table = TableConfig(num_embeddings, embedding_dim, initializer or Initializer.normal(0, 1), None, mode, name)
        super().__init__(f"EmbeddingBag '{name}'" if name != "weight" else "EmbeddingBag", [table], [(name, name)], optimizer,
                         padding=[_padding("EmbeddingBag", padding_idx, num_embeddings)], strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.padding_idx, self.include_last_offset = padding_idx, include_last_offset

    def forward(self, input: Any, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        if torch.compiler.is_compiling():
            tensors, code = _pieces(input, offsets, per_sample_weights, self.include_last_offset)
            return self._look_up_compiled(tensors, [code])[0]
        if self._transfers is not None and not self._ahead:
            self.prefetch(input, offsets, per_sample_weights)
        return self._look_up([self._reader.bag(input, offsets, per_sample_weights, last_offset=self.include_last_offset,
                                               single_allowed=False)])[0]


class Embedding(TableModule):
    """As torch.nn.Embedding: a row for each id, whatever the shape of the ids. Ids of `padding_idx` give zeros."""

    def __init__(self, num_embeddings: int, embedding_dim: int, *, padding_idx: int | None = None, optimizer: Optimizer,
                 initializer: Initializer | None = None, strategy: EngineStrategy | None = None, seed: int | None = None,
                 rank_gradients: str = "mean", gradient_policy: str = "error", out_of_range: str = "error",
                 name: str = "weight") -> None:
        table = TableConfig(num_embeddings, embedding_dim, initializer or Initializer.normal(0, 1), None, "sum", name)
        super().__init__(f"Embedding '{name}'" if name != "weight" else "Embedding", [table], [(name, name)], optimizer,
                         padding=[_padding("Embedding", padding_idx, num_embeddings)], strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx

    def forward(self, input: Any) -> Any:
        if isinstance(input, torch.Tensor) and input.is_nested:
            rows = self.forward(input.values())
            return torch.nested.nested_tensor_from_jagged(rows, input.offsets())
        if torch.compiler.is_compiling():
            return self._look_up_compiled([input.reshape(-1)], [SINGLE])[0].view(*input.shape, self.embedding_dim)
        if self._transfers is not None and not self._ahead:
            self.prefetch(input)
        return self._look_up([self._reader.single(input)])[0].view(*input.shape, self.embedding_dim)


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


class KeyedTensor:
    """As torchrec's: activations of several features side by side. keys(), values() and ["feature"]."""

    def __init__(self, keys: Sequence[str], rows: Sequence[torch.Tensor]) -> None:
        self._keys, self._rows = list(keys), list(rows)

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
        return self._rows[self._keys.index(key)]


class EmbeddingBagCollection(TableModule):
    """As torchrec's: tables with the features that are looked up in them, in one engine and one step.

    forward takes a KeyedJaggedTensor and gives a KeyedTensor; or a dict by feature of ids (1-D: one each, 2-D: bags),
    nested or jagged tensors, (ids, offsets) or (ids, offsets, weights), and gives a dict. A feature of several tables is
    `feature@table` in what comes out.
    """

    def __init__(self, tables: Sequence[Any], optimizer: Optimizer | None = None, *, is_weighted: bool = False,
                 strategy: EngineStrategy | None = None, seed: int | None = None, rank_gradients: str = "mean",
                 gradient_policy: str = "error", out_of_range: str = "error") -> None:
        title = "EmbeddingBagCollection"
        if not tables:
            raise ValueError(f"{title}: tables must have one table or more, got none")
        configs, features, padding, used = [], [], [], []
        every = [feature for table in tables for feature in table.feature_names]
        if not every:
            raise ValueError(f"{title}: the tables must have features, got none")
        for table in tables:
            configs.append(_table_of(title, table))
            if not table.feature_names:
                raise ValueError(f"{title}: table '{table.name}': feature_names must have one name or more, got none")
            for feature in table.feature_names:
                features.append((feature if every.count(feature) == 1 else f"{feature}@{table.name}", table.name))
                used.append(feature)
                padding.append(_padding(title, getattr(table, "padding_idx", None), table.num_embeddings))
        super().__init__(title, configs, features, optimizer, padding=padding, strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        self.is_weighted = is_weighted
        self._used = used
        self._texts = {feature: f"ids of feature '{feature}'" for feature in used}

    def embedding_names(self) -> list[str]:
        """The names of what comes out, in order."""
        return list(self._names)

    def forward(self, features: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._forward_compiled(features)
        if self._transfers is not None and not self._ahead:
            self.prefetch(features)
        if isinstance(features, Mapping):
            rows = self._look_up(self._reader.named(features, self._names, self._used, self._texts))
            return dict(zip(self._names, rows))
        if not is_keyed(features):
            raise TypeError(f"{self._steps.name}: takes a dict by feature or a KeyedJaggedTensor, got "
                            f"{type(features).__name__}")
        return KeyedTensor(self._names, self._look_up(self._reader.keyed(features, self._used, self.is_weighted)))

    def _forward_compiled(self, features: Any) -> Any:
        if isinstance(features, dict):
            tensors, form = [], []
            for name in self._used:
                value = features[name]
                parts = value if isinstance(value, (tuple, list)) else (value,)
                ids, offsets, weights = (*parts, None, None)[:3]
                found, code = _pieces(ids, offsets, weights)
                tensors.extend(found)
                form.append(code)
            return dict(zip(self._names, self._look_up_compiled(tensors, form)))
        keys = list(features.keys())
        tensors, code = [features.values(), features.offsets()], KEYED
        if self.is_weighted:
            tensors.append(features.weights())
            code |= WEIGHTS
        form = [code, len(keys), *[keys.index(name) for name in self._used]]
        return KeyedTensor(self._names, self._look_up_compiled(tensors, form))


def _padding(title: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{title}: padding_idx must be a row, {-rows} <= padding_idx < {rows}, got {padding_idx}")
    return padding_idx % rows


_POOLINGS = {"SUM": "sum", "MEAN": "mean", "SQRTN": "sqrtn"}


def _table_of(title: str, table: Any) -> TableConfig:
    pooling = str(getattr(table.pooling, "name", table.pooling)).upper()
    if pooling not in _POOLINGS:
        raise ValueError(f"{title}: table '{table.name}': pooling must be sum, mean or sqrtn, got {table.pooling}")
    data_type = getattr(table, "data_type", None)
    if data_type is not None and getattr(data_type, "name", data_type) != "FP32":
        raise ValueError(f"{title}: table '{table.name}': data_type must be FP32, got {data_type}")
    initializer = getattr(table, "initializer", None)
    first = getattr(table, "init_fn", None)
    bound = table.num_embeddings**-0.5
    if initializer is None and first is None:
        initializer = Initializer.uniform(-bound, bound)
    elif initializer is None and isinstance(first, functools.partial) and first.func is torch.nn.init.uniform_:
        initializer = Initializer.uniform(first.keywords.get("a", 0.0), first.keywords.get("b", 1.0))
    elif initializer is None:
        rows = torch.empty(table.num_embeddings, table.embedding_dim)
        first(rows)  # type: ignore[misc]
        initializer = Initializer.values(rows.numpy())
    return TableConfig(table.num_embeddings, table.embedding_dim, initializer, getattr(table, "optimizer", None),
                       _POOLINGS[pooling], table.name)
