"""Tables and features as the original describes them."""

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import FeatureConfig as _FeatureConfig
from .. import Initializer, Optimizer, QuantizationConfig, RowRange
from .. import TableConfig as _TableConfig


class ShardInfo(NamedTuple):
    """Says to an initializer which block of a table it fills: `shape` of the block, and `offset` of its first element.

    >>> tpu.ShardInfo((4, 2), (4, 0)).offset[0]
    4
    """

    shape: tuple[int, ...]
    offset: tuple[int, ...]


class RowSource:
    """First values of a table from an initializer of TensorFlow's form, which is asked when rows are made, not before.

    One that has an argument `shard_info` is called for the block of rows of each host, with the shape of the whole table
    and a ShardInfo. Any other is called once, for the whole table, so that no result depends on the number of hosts.
    It is called itself where one host has the whole table; an engine of several asks what `_for_hosts` returns.
    """

    def __init__(self, initializer: Callable[..., Any], table: str) -> None:
        self.initializer = initializer
        self.table = table  # as messages call it
        self._lock = threading.Lock()
        # By first row and size; with the number of rows not given yet.
        self._blocks: dict[tuple[int, int], tuple[npt.NDArray[np.float32], list[int]]] = {}
        try:
            parameters = inspect.signature(initializer).parameters
        except (TypeError, ValueError):
            parameters = {}  # type: ignore[assignment]
        self._takes_shard = "shard_info" in parameters

    def __call__(self, rows: RowRange) -> npt.NDArray[np.float32]:
        return self._rows_of(1, rows)

    def _for_hosts(self, hosts: int) -> Callable[[RowRange], npt.NDArray[np.float32]]:
        """The function for an engine whose hosts own a block each."""
        return functools.partial(self._rows_of, hosts)

    def _rows_of(self, hosts: int, rows: RowRange) -> npt.NDArray[np.float32]:
        first, size = block = self._block_of(hosts, rows)
        with self._lock:
            if block not in self._blocks:
                self._blocks[block] = self._ask(rows, first, size), [size]
            values, left = self._blocks[block]
            left[0] -= rows.rows
            if left[0] <= 0:
                del self._blocks[block]
        return values[rows.first_row - first:rows.first_row - first + rows.rows]

    def release(self) -> None:
        """Frees values that nobody has asked for."""
        with self._lock:
            self._blocks.clear()

    def _block_of(self, hosts: int, rows: RowRange) -> tuple[int, int]:
        """First row and number of rows of the block that a host owns."""
        if not self._takes_shard:
            return 0, rows.vocabulary_size
        size, longer = divmod(rows.vocabulary_size, hosts)
        boundary = longer * (size + 1)
        if rows.first_row < boundary:
            return rows.first_row // (size + 1) * (size + 1), size + 1
        return boundary + (rows.first_row - boundary) // size * size, size

    def _ask(self, rows: RowRange, first: int, size: int) -> npt.NDArray[np.float32]:
        shape = (rows.vocabulary_size, rows.dim)
        if self._takes_shard:
            given = self.initializer(shape, dtype=np.float32, shard_info=ShardInfo((size, rows.dim), (first, 0)))
        else:
            given = self.initializer(shape, dtype=np.float32)
        values = np.asarray(given, dtype=np.float32)
        if values.shape != (size, rows.dim):
            raise ValueError(f"{self.table}: what the initializer returns must have shape {(size, rows.dim)}, got {values.shape}")
        return values


def _called(name: str | None, vocabulary_size: int, dim: int) -> str:
    """What messages call a table."""
    return f"table '{name}'" if name is not None else f"a table of {vocabulary_size} x {dim}, which has no name"


class RowIdInitializer:
    """Fills every column of a row with the row's number, plus offset: a function of a shape and a dtype.

    >>> tpu.RowIdInitializer(offset=5)((2, 2), np.float32).tolist()
    [[5.0, 5.0], [6.0, 6.0]]
    """

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def __call__(self, shape: Sequence[int], dtype: npt.DTypeLike = np.float32) -> np.ndarray:
        """Returns the values of a table of this shape, [vocabulary_size, dim], and dtype.

        >>> tpu.RowIdInitializer()((2, 1), np.float32).tolist()
        [[0.0], [1.0]]
        """
        rows = np.arange(self.offset, self.offset + shape[0])[:, None]
        return np.broadcast_to(rows, tuple(shape)).astype(dtype)

    def __repr__(self) -> str:
        return f"RowIdInitializer(offset={self.offset})"


class CustomCombiner:
    """Combines the rows of a sample by a function of the caller's, with weights of its own that are trained. SparseCores run
    it; engines refuse a table that has one.

    combiner_computation: a function; max_valency: the most entries of a sample; num_weights: how many weights it has, >= 0,
    for which `initializer` gives the first values; combiner_weights_learning_rate: the rate of their training.
    Raises ValueError for what is no function, a number below 0, and weights without an initializer.

    >>> tpu.CustomCombiner(lambda rows, weights: rows[0], max_valency=4, num_weights=0).max_valency
    4
    """

    def __init__(self, combiner_computation: Callable[..., Any], max_valency: int, num_weights: int,
                 initializer: Callable[..., Any] | Initializer | None = None,
                 combiner_weights_learning_rate: float = 0.01) -> None:
        if not callable(combiner_computation):
            raise ValueError(f"combiner_computation must be callable, got {type(combiner_computation).__name__}")
        if num_weights < 0:
            raise ValueError(f"num_weights must be >= 0, got {num_weights}")
        if num_weights > 0 and initializer is None:
            raise ValueError(f"initializer must be given for num_weights={num_weights}")
        self.combiner_computation = combiner_computation
        self.max_valency = max_valency
        self.num_weights = num_weights
        self.initializer = initializer
        self.combiner_weights_learning_rate = combiner_weights_learning_rate

    def name(self) -> str:
        """Returns a name of the computation, the same for the same function."""
        return f"custom_combiner_{id(self.combiner_computation)}"

    def slot_names(self) -> list[str]:
        """Returns the names of the weights' variables, none if there are no weights."""
        return ["custom_combiner_variables"] if self.num_weights > 0 else []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomCombiner) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.combiner_computation, self.max_valency, self.num_weights))

    def __repr__(self) -> str:
        return (f"CustomCombiner(combiner_computation={self.combiner_computation!r}, max_valency={self.max_valency}, "
                f"num_weights={self.num_weights}, initializer={self.initializer!r}, "
                f"combiner_weights_learning_rate={self.combiner_weights_learning_rate})")


class TableConfig(_TableConfig):
    """Describes a table. Features that name the same object share it.

    vocabulary_size: number of rows; dim: floats per row.
    initializer: an Initializer, or a function of (shape, dtype=...) that gives all values, [vocabulary_size, dim]. One with
        an argument `shard_info` is called for the block of each host instead, and gives values of `shard_info.shape`.
        It is called when tables are made. None: a truncated normal of stddev 1 / sqrt(dim).
    optimizer: of this table alone; None: that of the embedding.
    combiner: "mean", "sum", "sqrtn"; name: in checkpoints and messages.
    quantization_config: a QuantizationConfig for what is looked up; layout: accepted, without effect.
    replicated: every host has all rows; row_type: "float32" or "bfloat16"; for both see embertable.TableConfig.
    Raises ValueError naming the field for a value that is not allowed. An optimizer that is none is refused by the
    embedding.

    >>> tpu.TableConfig(8, 4, lambda shape, dtype: np.full(shape, 7, dtype), name="films").dim
    4
    """

    __slots__ = ("_given", "_rows", "layout", "__weakref__")  # so that a misspelt name is an error

    def __init__(self, vocabulary_size: int, dim: int, initializer: Callable[..., Any] | Initializer | None = None,
                 optimizer: Optimizer | None = None, combiner: Any = "mean", name: str | None = None,
                 quantization_config: QuantizationConfig | None = None, layout: Any = None, *,
                 replicated: bool = False, row_type: Literal["float32", "bfloat16"] = "float32") -> None:
        if initializer is not None and not callable(initializer) and not isinstance(initializer, Initializer):
            raise ValueError(f"initializer must be callable, got {type(initializer).__name__}")
        self._rows: RowSource | None = None
        own = initializer
        if initializer is not None and not isinstance(initializer, Initializer):
            self._rows = RowSource(initializer, _called(name, vocabulary_size, dim))
            own = Initializer.function(self._rows)
        custom = isinstance(combiner, CustomCombiner)
        super().__init__(vocabulary_size, dim, own, optimizer if isinstance(optimizer, Optimizer) else None,  # type: ignore[arg-type]
                         "sum" if custom else combiner, name, quantization_config, replicated=replicated, row_type=row_type)
        self._given = initializer, optimizer, combiner
        self.layout = layout

    @property
    def initializer(self) -> Any:
        """What was given for it."""
        return self._given[0]

    @property
    def optimizer(self) -> Any:
        """What was given for it."""
        return self._given[1]

    @property
    def combiner(self) -> Any:
        """What was given for it."""
        return self._given[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return _table_of, (self.vocabulary_size, self.dim, *self._given, self.name, self.quantization_config, self.layout,
                           self.replicated, self.row_type)


def _table_of(*fields: Any) -> TableConfig:
    return TableConfig(*fields[:8], **dict(zip(("replicated", "row_type"), fields[8:])))  # a release had 9


class FeatureConfig(_FeatureConfig):
    """Describes an input of the model: what it looks up, and in which shape. Takes what embertable.FeatureConfig takes.

    >>> feature = tpu.FeatureConfig(tpu.TableConfig(8, 4), max_sequence_length=2)
    >>> feature.max_sequence_length = 3
    """

    __slots__ = ("__weakref__",)


def tables_of(features: Sequence[Any]) -> list[_TableConfig]:
    """Returns the distinct tables of features, in order of first occurrence. Leaves that are no features are passed over."""
    tables: list[_TableConfig] = []
    for feature in features:
        table = getattr(feature, "table", None)
        if isinstance(table, _TableConfig) and not any(table is known for known in tables):
            tables.append(table)
    return tables


def check_tables(features: Sequence[Any]) -> None:
    """Raises ValueError for a table whose optimizer is none, NotImplementedError for a custom combiner."""
    for table in tables_of(features):
        called = _called(table.name, table.vocabulary_size, table.dim)
        if table.optimizer is not None and not isinstance(table.optimizer, Optimizer):
            raise ValueError(f"{called}: optimizer must be an Optimizer, got {type(table.optimizer).__name__}")
        if isinstance(table.combiner, CustomCombiner):
            raise NotImplementedError(f"{called}: a custom combiner is for SparseCores; engines train sum, mean and sqrtn")


def row_sources(features: Sequence[Any]) -> list[RowSource]:
    return [table._rows for table in tables_of(features) if isinstance(table, TableConfig) and table._rows is not None]
