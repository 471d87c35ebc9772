"""Embedding tables as modules of torch. They have no parameters: backward applies their own optimizer."""

from __future__ import annotations

import inspect
import itertools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
import torch

from .._arguments import require_flag, require_kind, require_text, whole_number
from .._core import DataError, EngineStrategy, FeatureConfig, Initializer, Optimizer, TableConfig, _exchanges
from .._core import Embedding as Engine
from .._explanations import nearest
from ..optimizers import NoUpdate
from ..steps import BAGS, BAGS_WITH_LAST_OFFSET, SINGLES, Ids, Step, Steps
from . import ranks
from .accelerator import Accelerator
from .autograd import LookUp, accumulates, is_recomputation, new_probe
from .compiled import compiled_look_up, next_call, pack_bags, pack_singles, register
from .inputs import Reader, elements_of, shaped_as, tensors_read
from .optimizer import Rates, TableOptimizer
from .rows import float32_of, ids_of, rows_of
from .state import TableState
from .transfers import Cuda

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Embedding", "EmbeddingBag", "Feature", "TableModule", "arguments_of", "padding_row", "refuse_others", "refuse_trace",
           "tracing_state"]

# Batches are of any size: the engine is built for one that no batch reaches.
_MOST_SAMPLES = 1 << 30
_TORCH = os.path.dirname(torch.__file__) + os.sep
_ROW_TYPES: dict[torch.dtype, Literal["float32", "bfloat16"]] = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_unseeded = itertools.count(1)
is_grad_enabled = torch.is_grad_enabled  # bound once: attribute lookups cost time in each call
tracing_state = torch._C._get_tracing_state
_exporting: Callable[[], bool] | None = getattr(torch.compiler, "is_exporting", None)  # since torch 2.7


class Feature(NamedTuple):
    """One output of a module."""

    name: str
    table: str
    padding: int | None  # an id that counts as absent
    what: str = "ids"  # what messages call its ids


class TableModule(torch.nn.Module):
    """What the modules have in common: an engine of one or more tables."""

    _key = "weight"  # of the rows in a state_dict, as in that of nn.EmbeddingBag; that of a collection has {table}
    _pooled = True  # whether the rows of a sample are combined

    def __init__(self, name: str, tables: Sequence[TableConfig], features: Sequence[Feature], optimizer: Optimizer | None, *,
                 strategy: EngineStrategy | None, seed: int | None, rank_gradients: str, gradient_policy: Literal["error", "allow"],
                 out_of_range: Literal["error", "drop"]) -> None:
        """`name` begins messages. `optimizer` is that of tables without one of their own."""
        super().__init__()
        if rank_gradients not in ("mean", "sum"):
            raise ValueError(f"{name}: rank_gradients must be 'mean' or 'sum', got {rank_gradients!r}")
        require_text(name, "gradient_policy", gradient_policy)
        require_text(name, "out_of_range", out_of_range)
        if strategy is not None:
            require_kind(name, "strategy", strategy, EngineStrategy, "an embertable.EngineStrategy or None")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: optimizer must be an embertable.Optimizer such as embertable.Adagrad(0.1), got "
                            f"{type(optimizer).__name__}; the tables' rows are no parameters of torch's optimizers")
        rates = Rates()
        self._tables = {str(table.name): _with_optimizer(name, table, optimizer, rates) for table in tables}
        strategy = EngineStrategy() if strategy is None else strategy
        processes = strategy.replicas // strategy.local_replicas
        if seed is None:
            seed = _drawn_seed(processes)
        self._names = [feature.name for feature in features]
        single = len(features) == 1
        configs: Any = [FeatureConfig(self._tables[feature.table], name=feature.name) for feature in features]
        engine = Engine(configs[0] if single else configs, None, strategy, variable_batch=True, seed=seed,
                        gradient_policy=gradient_policy, out_of_range=out_of_range)
        engine.build(_MOST_SAMPLES)
        engine.verify_output_shapes_on_enqueue = False
        self._dims = [self._tables[feature.table].dim for feature in features]
        self._steps = Steps(engine, name, features=self._names, single=single, replicas=strategy.local_replicas,
                            divide_by=processes if rank_gradients == "mean" else 1,
                            any_of=lambda mine: ranks.any_of(mine, processes), inner=(_TORCH,))
        settle = _settling(weakref.ref(self))
        self._optimizer = TableOptimizer(rates, self._steps, processes, settle)
        self._table_state = TableState(self._key, self._tables, self._steps, self._optimizer, processes, settle)
        self._reader = Reader(name, [feature.what for feature in features], [feature.padding for feature in features])
        self._probe, self._probe_node = new_probe()
        self._place = torch.empty(0, device="cpu")
        self._cast = _cast_to(self._place)
        self._accelerator: Accelerator | None = None
        self._steps.outputs = "torch"
        self._exchanges = _exchanges(torch.Tensor)  # tensors go to the engine and come from it as they are
        self._whole = False  # what is loaded must fit as a whole
        self._number = register(self)
        if torch.get_default_device().type == "cuda":  # within `with torch.device("cuda")`
            self.to(torch.get_default_device())

    # What trainers use

    @property
    def engine(self) -> Engine:
        """The engine behind, once gradients on their way were applied. Those that `step_with` holds back are not."""
        return self._table_state.engine

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
        """Starts to copy the next batch's ids from the accelerator, together.

        The next lookup takes a copy for a tensor at the same address that has not changed since. Tensors must be contiguous and of
        int64, int32 or float32; the lookup itself copies others.
        """
        if self._accelerator is not None:
            self._accelerator.ids.prefetch(tensors_read(inputs))

    def read_rows(self, ids: torch.Tensor | Sequence[int], table: str | None = None) -> torch.Tensor:
        """Rows of a table as they are, without training."""
        return torch.from_numpy(self.engine.read_rows(self._table(table), ids_of(self._steps.name, ids)))

    def assign_rows(self, ids: torch.Tensor | Sequence[int], rows: Any, table: str | None = None) -> None:
        """Overwrites rows of a table. rows: a tensor of any real type, an array or lists of numbers."""
        name = self._steps.name
        self.engine.assign_rows(self._table(table), ids_of(name, ids), float32_of(rows_of(name, "rows", rows)))

    def keep_tables_in(self, run: str | os.PathLike[str] | None) -> None:
        """From now on state_dict() commits the tables to this run directory, and has a reference instead of rows."""
        self._table_state.keep_in(run)

    def extra_repr(self) -> str:
        tables = ", ".join(f"{name}: {t.vocabulary_size} x {t.dim}{f' {t.combiner}' if self._pooled else ''}" for name, t in self._tables.items())
        return f"{tables}; {', '.join(sorted({str(t.optimizer) for t in self._tables.values()}))}"

    # What torch calls

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> TableModule:
        place = fn(self._place)
        if place.device.type not in ("cpu", "cuda"):
            raise NotImplementedError(f"{self._steps.name}: activations on '{place.device}' are not offered: they are on the CPU "
                                      "or on a CUDA device; the rows are in memory of the host, in any case")
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # what a subclass adds
        if place.device != self._place.device:
            self._settle()
            self._use(Accelerator(Cuda(place.device), self._steps.give) if place.is_cuda else None, place.device)
        self._place = place
        self._cast = _cast_to(place)
        return self

    def _use(self, accelerator: Accelerator | None, device: torch.device) -> None:
        self._accelerator = accelerator
        self._reader.move(device, None if accelerator is None else accelerator.ids)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._table_state.save_to(destination, prefix)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
                              unexpected_keys: list[str], error_msgs: list[str]) -> None:
        unknown: list[str] = []  # to torch, which knows what a subclass adds
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unknown, error_msgs)
        self._table_state.load_from(state_dict, prefix, unknown, missing_keys, unexpected_keys, error_msgs, whole=self._whole)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As torch's; strict, a state that lacks something of this module or has more changes no table."""
        self._whole = strict
        try:
            return super().load_state_dict(state_dict, strict, assign)
        finally:
            self._whole = False

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As torch's. Drops gradients that wait for the optimizer of `step_with`."""
        super().zero_grad(set_to_none)
        self._optimizer.zero_grad()

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"{self._steps.name} owns its tables and cannot be copied: make a second one, and give it "
                        "load_state_dict(first.state_dict())")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self._steps.name} owns its tables and cannot be pickled: save model.state_dict(), or the whole "
                        "training with embertable.torch.save; a process that only looks up opens "
                        "embertable.ServingEmbedding")

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for method in ("get_extra_state", "set_extra_state"):
            if getattr(cls, method) is not getattr(torch.nn.Module, method):
                raise TypeError(f"{cls.__name__}: {method} must not be defined: the extra state of a module of tables is theirs; put "
                                "what the class adds into a module inside of it, or into buffers")

    def register_buffer(self, name: str, tensor: torch.Tensor | None, persistent: bool = True) -> None:
        self._require_other_name(name)
        super().register_buffer(name, tensor, persistent)

    def register_parameter(self, name: str, param: torch.nn.Parameter | None) -> None:
        self._require_other_name(name)
        super().register_parameter(name, param)

    def _require_other_name(self, name: str) -> None:
        if name == self._key:
            raise ValueError(f"{type(self).__name__}: a parameter or buffer must not be called '{name}', as the rows are in state_dict()")

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            raise AttributeError(f"'{type(self).__name__}' has no parameter 'weight': read_rows(ids) and assign_rows(ids, rows) "
                                 "are for rows, state_dict() for all")
        return super().__getattr__(name)

    # Steps

    def _look_up_plain(self, values: Sequence[Any], form: int) -> list[torch.Tensor] | None:
        """Looks up tensors of the CPU as they come. None for what only `_look_up` takes."""
        steps = self._steps
        if not self._exchanges or self._reader.padded or self._accelerator is not None or not steps.direct:
            return None
        record = self.training and is_grad_enabled()
        read = steps.look_up_bags(values, form, record, steps.where(), is_recomputation()) if record else (
            steps.look_up_bags(values, form, False))
        return None if read is None else self._given(*read)

    def _look_up(self, inputs: Any, read: Callable[[], list[Ids]]) -> list[torch.Tensor]:
        """Looks up what `read` makes of the inputs."""
        record = self.training and is_grad_enabled()
        return self._given(*self._activations(inputs, read, record, self._steps.where() if record else ""))

    def _given(self, rows: list[torch.Tensor], step: Step | None) -> list[torch.Tensor]:
        """Activations in the module's type, on torch's tape if a step waits for their gradients."""
        if step is not None:
            try:
                rows = LookUp.apply(self._probe, self._steps.name, self._take, rows, step)
            except BaseException:
                step.withdraw()
                raise
        if self._cast is not None:
            rows = [one.to(self._cast) for one in rows]
        return rows

    def _look_up_compiled(self, tensors: list[torch.Tensor], form: list[int]) -> list[torch.Tensor]:
        if _exporting is not None and _exporting():
            raise RuntimeError(f"{self._steps.name}: torch.export would keep the number that this table has in this process, which "
                               "is another table's in the next: export the dense part alone, with the rows as its input")
        record = self.training and torch.is_grad_enabled()
        probe = self._probe if record else self._probe.detach()
        found = compiled_look_up(probe, tensors, form, self._dims, self._number, record, next_call())
        return self._given(found[:-1], None)

    def look_up_ticketed(self, tensors: Sequence[torch.Tensor], read: Callable[[Reader], list[Ids]], record: bool,
                         call: int) -> list[torch.Tensor]:
        """For compiled code: activations of each feature, each with memory of its own, and the number of the step, 0 for none."""
        if is_recomputation():
            self.note_made_again(call, True)
        rows, step = self._activations(tensors, lambda: read(self._reader), record, apart=True, call=call)
        return [*rows, torch.zeros(1, dtype=torch.int64, device="cpu") if step is None else torch.from_numpy(self._steps.ticket(step))]

    def take_ticketed(self, ticket: int, gradients: Sequence[torch.Tensor]) -> None:
        """For compiled code: gives gradients to the tables by the number of their step, if backward asks for those of tables.

        The backward of compiled code computes all gradients, whichever are asked for.
        """
        if accumulates(self._probe_node):
            step = self._steps.step_of(ticket)
            self.note_made_again(step.call, False)  # unless it is known to be
            self._take(step, gradients)

    def note_made_again(self, call: int, again: bool) -> None:
        """For compiled code: whether backward makes the lookups of this call once more."""
        self._steps.note_made_again(call, again)

    def activations_device(self) -> torch.device:
        """Where the module gives activations."""
        return self._place.device

    def _activations(self, inputs: Any, read: Callable[[], list[Ids]], record: bool, where: str = "",
                     apart: bool = False, call: int = 0) -> tuple[list[torch.Tensor], Step | None]:
        """Activations where the module gives them, and the step if `record`. apart: each has memory of its own. call: of compiled code."""
        accelerator, steps = self._accelerator, self._steps
        if accelerator is None:
            batch = read()
        else:
            steps.require_own_process()
            with accelerator.ids.for_lookup(tensors_read(inputs)):
                batch = read()
        self._settle()
        if steps.deferred:
            self._optimizer.before_lookup()
        again = record and is_recomputation()
        if accelerator is None:
            rows, step = steps.look_up(batch, record, where, again, call=call)
            return [one if type(one) is torch.Tensor else torch.from_numpy(one) for one in rows], step
        shapes = [(max(ids.samples, 0), dim) for ids, dim in zip(batch, self._dims)]
        return accelerator.look_up(shapes, lambda arrays: steps.look_up(batch, record, where, again, arrays, call)[1], apart)

    def _take(self, step: Step, gradients: Sequence[torch.Tensor | None]) -> None:
        """Gives gradients to the tables; those on an accelerator once they have arrived."""
        self._optimizer.note_gradients()
        gradients = [None if one is None else _dense(one) for one in gradients]
        if self._accelerator is not None:
            self._accelerator.gradients.start(step, gradients)
            return
        taken: Sequence[Any] = gradients
        if not self._exchanges or not self._steps.direct:
            taken = [None if one is None else one.resolve_neg().contiguous().numpy() for one in gradients]
        self._steps.give(step, taken)

    def _settle(self) -> None:
        """Applies gradients that are on their way from the accelerator."""
        if self._accelerator is not None:
            self._accelerator.gradients.settle()

    def _table(self, table: str | None) -> str:
        if table is None:
            if len(self._tables) > 1:
                raise ValueError(f"{self._steps.name}: table must be named, one of {sorted(self._tables)}")
            return next(iter(self._tables))
        require_text(self._steps.name, "table", table)
        if table not in self._tables:
            raise KeyError(f"{self._steps.name}: no table '{table}'; there are {sorted(self._tables)}")
        return table


def _settling(module: weakref.ref[TableModule]) -> Callable[[], None]:
    """Applies the module's gradients that are on their way. What the module owns calls it, and does not keep the module."""

    def settle() -> None:
        mine = module()
        if mine is not None:
            mine._settle()

    return settle


def _with_optimizer(name: str, table: TableConfig, optimizer: Optimizer | None, rates: Rates) -> TableConfig:
    """The table with its own optimizer or the one given, whose rate can change."""
    own = table.optimizer or optimizer
    if own is None:
        raise ValueError(f"{name}: optimizer must be given, such as embertable.Adagrad(0.1): backward applies it")
    return TableConfig(table.vocabulary_size, table.dim, table.initializer, rates.of(str(table.name), own), table.combiner,
                       table.name, replicated=table.replicated, row_type=table.row_type)


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    """The gradient as numbers in memory: torch has some that are sparse, or zeros without memory."""
    if gradient.layout is not torch.strided:
        return gradient.to_dense()
    return torch.zeros_like(gradient, device=gradient.device) if gradient._is_zerotensor() else gradient


def _cast_to(place: torch.Tensor) -> torch.dtype | None:
    """The type of activations, unless it is the engine's."""
    return None if place.dtype is torch.float32 else place.dtype


def _drawn_seed(processes: int) -> int:
    """By torch's generator, and the same on all processes."""
    number = next(_unseeded)
    drawn = int(torch.randint(1 << 62, (1,), dtype=torch.int64, device="cpu"))
    if processes == 1:
        return drawn
    return ranks.first_of(lambda: drawn) if processes == ranks.size() else number


def refuse_trace(name: str) -> None:
    raise RuntimeError(f"{name}: torch.jit.trace would keep the rows of one batch as constants: use torch.compile, or trace the dense "
                       "part alone")


# What torch's and torchrec's modules take, and these do not.
_INSTEAD = {
    "device": "rows are in memory of the host, and .to(device) says where activations are",
    "sparse": "gradients are sparse in any case",
    "max_norm": "rows are not renormalized; clip_weight_min and clip_weight_max of an optimizer limit them",
    "norm_type": "rows are not renormalized",
    "scale_grad_by_freq": "gradients are not scaled by how often an id comes; mode='mean' divides by the ids of a bag",
    "_weight": "from_pretrained(rows) takes rows, and so does initializer=embertable.Initializer.values(rows)",
    "_freeze": "from_pretrained(rows) makes rows that do not change",
}


def refuse_others(title: str, others: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises TypeError for keyword arguments that a module does not have."""
    for name in others:
        if name in _INSTEAD:
            raise TypeError(f"{title}: {name} is not offered: {_INSTEAD[name]}")
        raise TypeError(f"{title}: there is no argument '{name}'{nearest(name, names)}")


def arguments_of(module: type) -> list[str]:
    parameters = inspect.signature(module).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]


class _OneTable(TableModule):
    """A module of one table."""

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, *, optimizer: Optimizer | None = None, **options: Any) -> Self:
        """Makes a module whose rows begin as `embeddings`, a tensor or array [num_embeddings, embedding_dim].

        freeze: they never change, and no optimizer is taken; with freeze=False the module needs one. options: those of the class.
        """
        title = cls.__name__
        require_flag(title, "freeze", freeze)
        rows = np.asarray(float32_of(rows_of(title, "embeddings", embeddings)))
        if rows.ndim != 2:
            raise ValueError(f"{title}: embeddings must have shape [num_embeddings, embedding_dim], got {list(rows.shape)}")
        if freeze and optimizer is not None:
            raise ValueError(f"{title}: freeze must be False where an optimizer is given, which would not be used")
        chosen = NoUpdate() if freeze else optimizer
        return cls(*rows.shape, optimizer=chosen, initializer=Initializer.values(rows), **options)  # type: ignore[arg-type, call-arg, misc]


class EmbeddingBag(_OneTable):
    """As torch.nn.EmbeddingBag: bags of ids to the sum, mean or sqrtn of their rows.

    Ids of `padding_idx` count as absent. Rows begin as the initializer says, standard normal by default, drawn by torch's
    seed unless `seed` is given; `from_pretrained` takes rows.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *, mode: Literal["mean", "sum", "sqrtn"] = "mean", padding_idx: int | None = None,
                 optimizer: Optimizer, initializer: Initializer | None = None, include_last_offset: bool = False,
                 strategy: EngineStrategy | None = None, seed: int | None = None, rank_gradients: str = "mean",
                 gradient_policy: Literal["error", "allow"] = "error", out_of_range: Literal["error", "drop"] = "error", name: str = "weight",
                 dtype: torch.dtype | None = None, replicated: bool = False, **others: NoReturn) -> None:
        if others:
            refuse_others("EmbeddingBag", others, arguments_of(EmbeddingBag))
        if mode not in ("sum", "mean", "sqrtn"):
            raise ValueError(f"EmbeddingBag: mode must be 'sum', 'mean' or 'sqrtn', got {mode!r}")
        require_flag("EmbeddingBag", "include_last_offset", include_last_offset)
        table = _table("EmbeddingBag", num_embeddings, embedding_dim, initializer, mode, name, replicated, dtype)
        super().__init__(f"EmbeddingBag '{name}'" if name != "weight" else "EmbeddingBag", [table],
                         [Feature(name, name, padding_row("EmbeddingBag", padding_idx, num_embeddings))], optimizer, strategy=strategy,
                         seed=seed, rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        if dtype is not None:
            self.to(dtype)
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.padding_idx, self.include_last_offset = padding_idx, include_last_offset

    def forward(self, input: Any, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return self._look_up_compiled(*pack_bags(self._reader, 0, input, offsets, per_sample_weights, self.include_last_offset,
                                                     single_allowed=False))[0]
        if tracing_state() is not None:
            refuse_trace(self._steps.name)
        form = BAGS_WITH_LAST_OFFSET if self.include_last_offset else BAGS
        try:
            plain = self._look_up_plain(((input, offsets, per_sample_weights),), form)
            if plain is not None:
                return plain[0]
            return self._look_up((input, offsets, per_sample_weights), lambda: [self._reader.bag(
                input, offsets, per_sample_weights, last_offset=self.include_last_offset, single_allowed=False)])[0]
        except DataError as error:
            self._reader.require_offsets([(input, offsets)], error, self.include_last_offset)
            raise


class Embedding(_OneTable):
    """As torch.nn.Embedding: a row for each id, whatever the shape of the ids. Ids of `padding_idx` give zeros."""

    _pooled = False

    def __init__(self, num_embeddings: int, embedding_dim: int, *, padding_idx: int | None = None, optimizer: Optimizer,
                 initializer: Initializer | None = None, strategy: EngineStrategy | None = None, seed: int | None = None,
                 rank_gradients: str = "mean", gradient_policy: Literal["error", "allow"] = "error", out_of_range: Literal["error", "drop"] = "error",
                 name: str = "weight", dtype: torch.dtype | None = None, replicated: bool = False,
                 **others: NoReturn) -> None:
        if others:
            refuse_others("Embedding", others, arguments_of(Embedding))
        table = _table("Embedding", num_embeddings, embedding_dim, initializer, "sum", name, replicated, dtype)
        super().__init__(f"Embedding '{name}'" if name != "weight" else "Embedding", [table],
                         [Feature(name, name, padding_row("Embedding", padding_idx, num_embeddings))], optimizer, strategy=strategy,
                         seed=seed, rank_gradients=rank_gradients, gradient_policy=gradient_policy, out_of_range=out_of_range)
        if dtype is not None:
            self.to(dtype)
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx

    def forward(self, input: Any) -> Any:
        if torch.compiler.is_compiling():
            if not isinstance(input, torch.Tensor):
                raise TypeError(f"{self._steps.name}: ids must be a tensor where code is compiled, got {type(input).__name__}")
            ids = elements_of(input, self._steps.name, "ids")
            return shaped_as(input, self._look_up_compiled(*pack_singles(ids))[0])
        if tracing_state() is not None:
            refuse_trace(self._steps.name)
        ids = elements_of(input, self._steps.name, "ids") if isinstance(input, torch.Tensor) else input
        plain = self._look_up_plain((ids,), SINGLES)
        rows = plain if plain is not None else self._look_up(ids, lambda: [self._reader.single(ids)])
        return shaped_as(input, rows[0])


def _table(title: str, rows: int, dim: int, initializer: Initializer | None, combiner: Literal["mean", "sum", "sqrtn"], name: str, replicated: bool,
           dtype: torch.dtype | None) -> TableConfig:
    require_text(title, "name", name)
    require_flag(title, "replicated", replicated)
    if dtype not in (None, *_ROW_TYPES):
        raise ValueError(f"{title}: dtype must be torch.float32 or torch.bfloat16, in which rows are kept, got {dtype}")
    if isinstance(initializer, (torch.Tensor, np.ndarray)):
        raise TypeError(f"{title}: initializer must be an Initializer, got {type(initializer).__name__}; from_pretrained(rows) takes rows")
    try:
        return TableConfig(rows, dim, Initializer.normal(0, 1) if initializer is None else initializer, None, combiner, name,
                           replicated=bool(replicated), row_type=_ROW_TYPES[dtype or torch.float32])
    except (TypeError, ValueError) as error:
        raise type(error)(f"{title}: {error}") from None


def padding_row(title: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    padding_idx = whole_number(title, "padding_idx", padding_idx)
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{title}: padding_idx must be a row, {-rows} <= padding_idx < {rows}, got {padding_idx}")
    return padding_idx % rows
