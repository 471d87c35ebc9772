"""Embedding tables as modules of torch. They have no parameters: backward applies their own optimizer."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._core import Embedding as Engine
from .._core import EngineStrategy, FeatureConfig, Initializer, Optimizer, TableConfig, _exchanges
from ..steps import BAGS, BAGS_OR_SINGLES, BAGS_WITH_LAST_OFFSET, SINGLES, Ids, Step, Steps
from . import ranks, state
from .autograd import (KEYED, LAST_OFFSET, OFFSETS, SINGLE, WEIGHTS, LookUp, compiled_look_up, is_recomputation, next_call,
                       register)
from .inputs import Reader, is_jagged, is_keyed, rows_of_nested, weights_of
from .optimizer import Rates, TableOptimizer
from .transfers import Arriving, Cuda, Transfers

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingBagCollection", "EmbeddingBagConfig", "KeyedTensor", "TableModule"]

# Batches are of any size: the engine is built for one that no batch reaches.
_MOST_SAMPLES = 1 << 30
_TORCH = os.path.dirname(torch.__file__) + os.sep
_ROW_TYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_unseeded = itertools.count(1)
is_grad_enabled = torch.is_grad_enabled  # without the way through torch, in each lookup
tracing_state = torch._C._get_tracing_state


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
                                                rates.of(str(table.name), own), table.combiner, table.name,
                                                replicated=table.replicated, row_type=table.row_type)
        strategy = strategy or EngineStrategy()
        processes = strategy.replicas // strategy.local_replicas
        if seed is None:
            seed = _drawn_seed(processes)
        self._names = [feature for feature, _ in features]
        single = len(features) == 1
        configs: Any = [FeatureConfig(made[table], name=feature) for feature, table in features]
        engine = Engine(configs[0] if single else configs, None, strategy, variable_batch=True, seed=seed,
                        gradient_policy=gradient_policy, out_of_range=out_of_range)
        engine.build(_MOST_SAMPLES)
        engine.verify_output_shapes_on_enqueue = False
        self._tables = {str(table.name): made[str(table.name)] for table in tables}
        self._dims = [made[table].dim for _, table in features]
        self._steps = Steps(engine, name, features=self._names, single=single, replicas=strategy.local_replicas,
                            divide_by=processes if rank_gradients == "mean" else 1,
                            any_of=ranks.any_of if processes > 1 and processes == ranks.size() else bool, inner=(_TORCH,))
        self._optimizer = TableOptimizer(self, rates, self._steps)
        self._reader = Reader(name, padding or [None] * len(features), self._ids_to_host)
        self._probe = torch.zeros(1, dtype=torch.float32, device="cpu", requires_grad=True)
        self._place = torch.empty(0, device="cpu")
        self._device = self._place.device
        self._cast = _cast_to(self._place)
        self._transfers: Transfers | None = None
        self._steps.outputs = "torch"
        self._exchanges = _exchanges(torch.Tensor)  # tensors go to the engine and come from it as they are
        self._ahead: dict[tuple[int, int], tuple[torch.Tensor, Arriving, int, int]] = {}
        self._asked_ahead = False  # the caller called prefetch
        self._arriving: tuple[Any, Arriving] | None = None
        self._settling = threading.RLock()
        self._reference: state.Reference | None = None
        self._whole = False  # what is loaded must fit as a whole
        self._left_out = False  # state_dict() has no rows: embertable.torch.save commits them
        self._number = register(self)
        if torch.get_default_device().type == "cuda":  # within `with torch.device("cuda")`
            self.to(torch.get_default_device())

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
        """Starts to copy the next batch's ids from the accelerator. The next lookup, of the same tensors, takes the copies."""
        self._ahead = {}
        found = [tensor for tensor in _tensors_in(inputs) if tensor.device == self._device and (not tensor.is_cpu or self._stands_in)
                 and not tensor.is_nested and tensor.is_contiguous() and not tensor.is_inference() and tensor.dtype in _TYPES_READ]
        if self._transfers is None or not found:
            return
        arriving = self._transfers.to_host(found)
        self._asked_ahead = True
        self._ahead = {(tensor.data_ptr(), tensor.numel()): (tensor, arriving, index, tensor._version)
                       for index, tensor in enumerate(found)}

    def read_rows(self, ids: torch.Tensor | Sequence[int], table: str | None = None) -> torch.Tensor:
        """Rows of a table as they are, without training."""
        return torch.from_numpy(self.engine.read_rows(self._table(table), _to_numpy(ids)))

    def assign_rows(self, ids: torch.Tensor | Sequence[int], rows: torch.Tensor, table: str | None = None) -> None:
        """Overwrites rows of a table."""
        self.engine.assign_rows(self._table(table), _to_numpy(ids), _to_numpy(rows))

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
        self._cast = _cast_to(place)
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        state.save_to(self, destination, prefix)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
                              unexpected_keys: list[str], error_msgs: list[str]) -> None:
        state.load_from(self, state_dict, prefix, missing_keys, unexpected_keys, error_msgs)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As torch's; strict, a state that lacks something or has more changes nothing."""
        self._whole = strict
        try:
            return super().load_state_dict(state_dict, strict, assign)
        finally:
            self._whole = False

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops gradients that wait for the optimizer of `step_with`."""
        self._optimizer.zero_grad()

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
        if self._steps.deferred:
            self._optimizer.before_lookup()

    def _look_up_plain(self, values: Sequence[Any], form: int) -> list[torch.Tensor] | None:
        """Looks up tensors of the CPU as they come. None for what is to be read first: `_look_up` takes it then."""
        steps = self._steps
        if not self._exchanges or self._reader.padded or self._transfers is not None or self._reader.away or not steps.direct:
            return None
        record = self.training and is_grad_enabled()
        read = steps.look_up_bags(values, form, record, steps.where(), is_recomputation()) if record else (
            steps.look_up_bags(values, form, False))
        return None if read is None else self._given(*read)

    def _fetch(self, *inputs: Any) -> None:
        """Copies what a lookup reads from the accelerator, all at once, unless the caller's `prefetch` has."""
        if self._transfers is None:
            return
        self._steps.require_own_process()
        if not self._asked_ahead:
            self.prefetch(*inputs)  # which replaces what a refused batch has left
        self._asked_ahead = False

    def _look_up(self, batch: list[Ids]) -> list[torch.Tensor]:
        self._ahead.clear()
        self._before_lookup()
        if self.training and is_grad_enabled():
            return self._given(*self._activations(batch, True, self._steps.where(), is_recomputation()))
        return self._given(*self._activations(batch, False))

    def _given(self, rows: list[torch.Tensor], step: Step | None) -> list[torch.Tensor]:
        """Activations, on torch's tape if a step waits for their gradients."""
        if step is not None:
            try:
                rows = LookUp.apply(self._probe, self, rows, step)
            except BaseException:
                step.withdraw()
                raise
        if self._cast is not None:
            rows = [one.to(self._cast) for one in rows]
        return rows

    def _look_up_compiled(self, tensors: list[torch.Tensor], form: list[int]) -> list[torch.Tensor]:
        record = self.training and torch.is_grad_enabled()
        found: list[torch.Tensor] = compiled_look_up(self._probe, tensors, form, self._dims, self._number, record, next_call())[:-1]
        if self._cast is not None:
            found = [rows.to(self._cast) for rows in found]
        return found

    def _activations(self, batch: list[Ids], record: bool, where: str = "", again: bool = False,
                     apart: bool = False) -> tuple[list[torch.Tensor], Step | None]:
        """Activations where the module gives them, and the step. apart: each has memory of its own."""
        if self._transfers is not None:
            staged = self._transfers.stage([(max(ids.samples, 0), dim) for ids, dim in zip(batch, self._dims)])
            _, step = self._steps.look_up(batch, record, where, again, staged.arrays)
            try:
                return self._transfers.to_device(staged, apart), step
            except BaseException:  # such as too little memory there
                if step is not None:
                    step.withdraw()
                raise
        rows, step = self._steps.look_up(batch, record, where, again)
        return [one if type(one) is torch.Tensor else torch.from_numpy(one) for one in rows], step

    def _take(self, step: Any, gradients: Sequence[torch.Tensor | None]) -> None:
        """Gives gradients to the tables; those on an accelerator once they have arrived."""
        if self._transfers is None:
            if not self._exchanges or not self._steps.direct:
                gradients = [None if one is None else one.resolve_neg().contiguous().numpy() for one in gradients]
            self._optimizer.take(step, gradients)
            return
        with self._settling:
            self._settle()
            step.require_open()
            self._arriving = (step, self._transfers.gradients_to_host(gradients))

    def _settle(self) -> None:
        """Applies gradients that are on their way from the accelerator."""
        with self._settling:
            if self._arriving is not None:
                (step, arriving), self._arriving = self._arriving, None
                self._optimizer.take(step, arriving.wait())

    def _ids_to_host(self, tensor: torch.Tensor, what: str) -> torch.Tensor:
        if tensor.device != self._device or self._transfers is None:
            raise ValueError(f"{self._steps.name}: {what} are on '{tensor.device}', and the module gives activations on "
                             f"'{self._device}': keep ids on the CPU, or move the module with .to('{tensor.device}')")
        kept = self._ahead.pop((tensor.data_ptr(), tensor.numel()), None)
        if kept is None or kept[0].dtype != tensor.dtype or not tensor.is_contiguous() or kept[0]._version != kept[3]:
            kept = (tensor, self._transfers.to_host([tensor]), 0, 0)
        return torch.from_numpy(kept[1].wait()[kept[2]]).reshape(tensor.shape)

    def _batch_of(self, tensors: Sequence[torch.Tensor], form: Sequence[int]) -> list[Ids]:
        """Reads what compiled code passes."""
        if form[0] & KEYED:
            values = self._reader.integers(tensors[0], "values")
            splits = self._reader.integers(tensors[1], "offsets")
            given = self._reader.weights(tensors[2], "weights", (len(values),)) if form[0] & WEIGHTS else None
            return self._reader.parts(values, splits, given, form[1], form[2:])
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

    def _pieces(self, ids: Any, offsets: Any, weights: Any, what: str, last_offset: bool = False,
                single_allowed: bool = True) -> tuple[list[torch.Tensor], int]:
        """The tensors of one feature for compiled code, and what they are. Checks what the operator cannot see."""
        name = self._steps.name
        if is_jagged(ids) or (isinstance(ids, torch.Tensor) and ids.is_nested):
            if offsets is not None:
                raise ValueError(f"{name}: {what} have the bounds of their bags, and take no offsets; got some")
            weights = weights_of(ids) if weights is None else weights
            ids, offsets, last_offset = ids.values(), ids.offsets(), True
        elif not isinstance(ids, torch.Tensor):
            raise TypeError(f"{name}: {what} must be a tensor where code is compiled, got {type(ids).__name__}")
        else:
            self._reader.require_bags(ids, offsets, what, single_allowed)
        if weights is not None:
            if not isinstance(weights, torch.Tensor) or weights.is_nested:
                raise TypeError(f"{name}: weights of {what} must be a plain tensor where code is compiled, got a ragged one")
            self._reader.require_constant(weights, f"weights of {what}")
        code = (OFFSETS if offsets is not None else 0) | (LAST_OFFSET if last_offset and offsets is not None else 0)
        code |= WEIGHTS if weights is not None else 0
        return [one for one in (ids, offsets, weights) if one is not None], code

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


# Of ids, bounds and weights: tensors of other types are refused before they are read.
_TYPES_READ = frozenset((torch.int64, torch.int32, torch.float32))


def _to_numpy(values: torch.Tensor | Sequence[int]) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


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


def _cast_to(place: torch.Tensor) -> torch.dtype | None:
    """The type of activations, unless it is the engine's."""
    return None if place.dtype is torch.float32 else place.dtype


def _drawn_seed(processes: int) -> int:
    """By torch's generator, and the same on all processes."""
    number = next(_unseeded)
    drawn = int(torch.randint(1 << 62, (1,), dtype=torch.int64, device="cpu"))
    if processes == 1:
        return drawn
    return int(ranks.first_of(drawn)) if processes == ranks.size() else number


def _refuse_trace(name: str) -> None:
    raise RuntimeError(f"{name}: torch.jit.trace would keep the rows of one batch as constants: use torch.compile, or trace the dense "
                       "part alone")


class EmbeddingBag(TableModule):
    """As torch.nn.EmbeddingBag: bags of ids to the sum, mean or sqrtn of their rows.

    Ids of `padding_idx` count as absent. Rows begin as the initializer says, standard normal by default, drawn by torch's
    seed unless `seed` is given.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *, mode: str = "mean", padding_idx: int | None = None,
                 optimizer: Optimizer, initializer: Initializer | None = None, include_last_offset: bool = False,
                 strategy: EngineStrategy | None = None, seed: int | None = None, rank_gradients: str = "mean",
                 gradient_policy: str = "error", out_of_range: str = "error", name: str = "weight",
                 dtype: torch.dtype | None = None, replicated: bool = False) -> None:
        if mode not in ("sum", "mean", "sqrtn"):
            raise ValueError(f"EmbeddingBag: mode must be 'sum', 'mean' or 'sqrtn', got '{mode}'")
        table = TableConfig(num_embeddings, embedding_dim, initializer or Initializer.normal(0, 1), None, mode, name,
                            replicated=replicated, row_type=_row_type("EmbeddingBag", dtype))
        super().__init__(f"EmbeddingBag '{name}'" if name != "weight" else "EmbeddingBag", [table], [(name, name)], optimizer,
                         padding=[_padding("EmbeddingBag", padding_idx, num_embeddings)], strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        if dtype is not None:
            self.to(dtype)
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.padding_idx, self.include_last_offset = padding_idx, include_last_offset

    def forward(self, input: Any, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        if torch.compiler.is_compiling():
            tensors, code = self._pieces(input, offsets, per_sample_weights, "ids", self.include_last_offset, False)
            return self._look_up_compiled(tensors, [code])[0]
        if tracing_state() is not None:
            _refuse_trace(self._steps.name)
        form = BAGS_WITH_LAST_OFFSET if self.include_last_offset else BAGS
        plain = self._look_up_plain(((input, offsets, per_sample_weights),), form)
        if plain is not None:
            return plain[0]
        self._fetch(input, offsets, per_sample_weights)
        return self._look_up([self._reader.bag(input, offsets, per_sample_weights, last_offset=self.include_last_offset,
                                               single_allowed=False)])[0]


class Embedding(TableModule):
    """As torch.nn.Embedding: a row for each id, whatever the shape of the ids. Ids of `padding_idx` give zeros."""

    def __init__(self, num_embeddings: int, embedding_dim: int, *, padding_idx: int | None = None, optimizer: Optimizer,
                 initializer: Initializer | None = None, strategy: EngineStrategy | None = None, seed: int | None = None,
                 rank_gradients: str = "mean", gradient_policy: str = "error", out_of_range: str = "error",
                 name: str = "weight", dtype: torch.dtype | None = None, replicated: bool = False) -> None:
        table = TableConfig(num_embeddings, embedding_dim, initializer or Initializer.normal(0, 1), None, "sum", name,
                            replicated=replicated, row_type=_row_type("Embedding", dtype))
        super().__init__(f"Embedding '{name}'" if name != "weight" else "Embedding", [table], [(name, name)], optimizer,
                         padding=[_padding("Embedding", padding_idx, num_embeddings)], strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        if dtype is not None:
            self.to(dtype)
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx

    def forward(self, input: Any) -> Any:
        if isinstance(input, torch.Tensor) and input.is_nested:
            return self._of_nested(input)
        if torch.compiler.is_compiling():
            if not isinstance(input, torch.Tensor):
                raise TypeError(f"{self._steps.name}: ids must be a tensor where code is compiled, got {type(input).__name__}")
            return self._look_up_compiled([input.reshape(-1)], [SINGLE])[0].view(*input.shape, self.embedding_dim)
        if tracing_state() is not None:
            _refuse_trace(self._steps.name)
        plain = self._look_up_plain((input,), SINGLES)
        if plain is not None:
            return plain[0].view(*input.shape, self.embedding_dim)
        self._fetch(input)
        return self._look_up([self._reader.single(input)])[0].view(*input.shape, self.embedding_dim)

    def _of_nested(self, ids: Any) -> torch.Tensor:
        if ids.layout == torch.jagged:
            if getattr(ids, "_lengths", None) is not None:
                raise NotImplementedError(f"{self._steps.name}: ids are a nested tensor with holes: give it .contiguous()")
            return torch.nested.nested_tensor_from_jagged(self.forward(ids.values()), ids.offsets())
        elements, lengths = rows_of_nested(ids)
        parts = self.forward(elements).split(lengths)
        return torch.nested.as_nested_tensor([part.view(*one.shape, self.embedding_dim) for part, one in zip(parts, ids.unbind())])


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
    row_type: str = "float32"
    replicated: bool = False


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
        if key not in self._keys:
            raise KeyError(f"no feature '{key}'; there are {self._keys}")
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
        for index, table in enumerate(tables):
            if any(table.name == other.name for other in tables[:index]):
                raise ValueError(f"{title}: two tables have the name '{table.name}': each needs one of its own")
            if len(set(table.feature_names)) < len(table.feature_names):
                raise ValueError(f"{title}: table '{table.name}': feature_names must differ, got {list(table.feature_names)}")
            configs.append(_table_of(title, table))
            if not table.feature_names:
                raise ValueError(f"{title}: table '{table.name}': feature_names must have one name or more, got none")
            for feature in table.feature_names:
                features.append((feature if every.count(feature) == 1 else f"{feature}@{table.name}", table.name))
                used.append(feature)
                padding.append(_padding(title, getattr(table, "padding_idx", None), table.num_embeddings))
        names = [name for name, _ in features]
        if len(set(names)) < len(names):  # as those of x in t and of a feature 'x@t'
            raise ValueError(f"{title}: two outputs have one name: {sorted(names)}")
        super().__init__(title, configs, features, optimizer, padding=padding, strategy=strategy, seed=seed,
                         rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        self.is_weighted = is_weighted
        self._used = used
        self._texts = {feature: f"ids of feature '{feature}'" for feature in used}
        self._needed = list(dict.fromkeys(used))

    def embedding_names(self) -> list[str]:
        """The names of what comes out, in order."""
        return list(self._names)

    def forward(self, features: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._forward_compiled(features)
        if tracing_state() is not None:
            _refuse_trace(self._steps.name)
        if type(features) is dict:
            plain = self._look_up_dict(features)
            if plain is not None:
                return dict(zip(self._names, plain))
        self._fetch(features)
        if isinstance(features, Mapping):
            return dict(zip(self._names, self._look_up(self._reader.named(features, self._used, self._texts))))
        self._require_keyed(features)
        return KeyedTensor(self._names, self._look_up(self._reader.keyed(features, self._used, self.is_weighted)))

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
            self._reader.require_features(list(features), self._needed)
            tensors, form = [], []
            for name in self._used:
                value, what = features[name], self._texts[name]
                parts = value if isinstance(value, (tuple, list)) else (value,)
                self._reader.require_three(parts, what)
                ids, offsets, weights = (*parts, None, None)[:3]
                found, code = self._pieces(ids, offsets, weights, what)
                tensors.extend(found)
                form.append(code)
            return dict(zip(self._names, self._look_up_compiled(tensors, form)))
        self._require_keyed(features)
        keys = list(features.keys())
        self._reader.require_features(keys, self._needed)
        self._reader.require_same_samples(features)
        given = weights_of(features)
        self._reader.require_weights(given, self.is_weighted)
        tensors, code = [features.values(), features.offsets()], KEYED
        if given is not None:
            self._reader.require_constant(given, "weights")
            tensors.append(given)
            code |= WEIGHTS
        form = [code, len(keys), *[keys.index(name) for name in self._used]]
        return KeyedTensor(self._names, self._look_up_compiled(tensors, form))


def _row_type(title: str, dtype: torch.dtype | None) -> str:
    if dtype is not None and dtype not in _ROW_TYPES:
        raise ValueError(f"{title}: dtype must be torch.float32 or torch.bfloat16, in which rows are kept, got {dtype}")
    return _ROW_TYPES[dtype or torch.float32]


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
    row_types = {None: getattr(table, "row_type", "float32"), "FP32": "float32", "BF16": "bfloat16"}
    kind = getattr(data_type, "name", data_type)
    if kind not in row_types:
        raise ValueError(f"{title}: table '{table.name}': data_type must be FP32 or BF16, got {data_type}")
    initializer = getattr(table, "initializer", None)
    first = getattr(table, "init_fn", None)
    bound = table.num_embeddings**-0.5
    if initializer is None and first is None:
        initializer = Initializer.uniform(-bound, bound)
    elif initializer is None and isinstance(first, functools.partial) and first.func is torch.nn.init.uniform_:
        initializer = Initializer.uniform(first.keywords.get("a", 0.0), first.keywords.get("b", 1.0))
    elif initializer is None:
        rows = torch.empty(table.num_embeddings, table.embedding_dim, dtype=torch.float32, device="cpu")
        first(rows)  # type: ignore[misc]
        initializer = Initializer.values(rows.numpy())
    return TableConfig(table.num_embeddings, table.embedding_dim, initializer, getattr(table, "optimizer", None),
                       _POOLINGS[pooling], table.name, replicated=getattr(table, "replicated", False), row_type=row_types[kind])
