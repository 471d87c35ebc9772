"""Variables with a component for each host."""

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from .. import Initializer, InitialValue, ShardedVariable, Variable, create_on_hosts
from .config import ShardInfo


def make_sharded_variable_creator(hosts: SupportsIndex | Sequence[str]) -> Callable[..., ShardedVariable]:
    """Returns a function create(next_creator=None, *args, initial_value, name, shape, dtype, seed, **kwargs) that makes a
    variable of rank 2 with a component "<name>_<i>" for each host that owns rows, in blocks.

    hosts: how many, or their names, as get_list_of_hosts gives them.
    next_creator: makes a component. It is called with args, kwargs and the component's name, shape, dtype and initial_value,
        a function of nothing that gives its rows, and returns a Variable. None: components are made here.
    initial_value: an Initializer; a function of (shape, dtype=...), with `shape` given or bound to it by functools.partial;
        or a saved_value. A function with an argument `shard_info` is called for each component with the whole shape and a
        ShardInfo, any other once for the whole.
    dtype: float32 if None; one that is bound to the function comes first. seed: of an Initializer.
    Raises ValueError for fewer than one host, an initial value that is none of these, and another rank; TypeError for a
    next_creator that is no function or returns no Variable.

    >>> create = tpu.make_sharded_variable_creator(2)
    >>> made = create(initial_value=lambda shape, dtype: np.ones(shape, dtype), name="t", shape=(5, 1))
    >>> [(part.name, part.shape) for part in made]
    [('t_0', (3, 1)), ('t_1', (2, 1))]
    """
    if isinstance(hosts, (str, bytes)):
        raise TypeError(f"hosts must be a number or a list of names, got the text {hosts!r}")
    count = operator.index(hosts) if isinstance(hosts, SupportsIndex) else len(hosts)
    if count < 1:
        raise ValueError(f"hosts must be at least one, got {hosts!r}")

    def create(next_creator: Callable[..., Variable] | None = None, *args: Any, initial_value: Any = None,
               name: str = "Variable", shape: Sequence[int] | None = None, dtype: Any = None, seed: int = 0,
               **kwargs: Any) -> ShardedVariable:
        if next_creator is not None and not callable(next_creator):
            raise TypeError(f"variable '{name}': next_creator must be a function or None, got {type(next_creator).__name__}")
        if shape is not None and (not isinstance(shape, Iterable) or isinstance(shape, (str, bytes))):
            raise TypeError(f"variable '{name}': shape must be a sequence of dims, got {shape!r}")
        first = _first_values(initial_value, name, shape, dtype, seed)
        if next_creator is None:
            return create_on_hosts(first.made_by, count, name, shape=first.shape, dtype=first.dtype, seed=seed)
        parts = []
        for i, part in enumerate(_blocks(first.shape, count, name)):
            made = next_creator(*args, initial_value=functools.partial(first.rows_of, part), name=f"{name}_{i}",
                                shape=part.shape, dtype=first.dtype, **kwargs)
            if not isinstance(made, Variable):
                raise TypeError(f"variable '{name}': next_creator must return a Variable, got {type(made).__name__}")
            if made.shape != part.shape:
                raise ValueError(f"variable '{name}': component {i} must have shape {part.shape}, got {made.shape}")
            parts.append(made)
        return ShardedVariable(parts, name)

    return create


class _FirstValues(NamedTuple):
    """What a variable starts with: `made_by` as create_on_hosts takes it, and a function for the rows of a component."""

    made_by: Any
    rows_of: Callable[[ShardInfo], Any]
    shape: tuple[int, ...]
    dtype: Any


def _first_values(value: Any, name: str, shape: Sequence[int] | None, dtype: Any, seed: int) -> _FirstValues:
    if isinstance(value, InitialValue):
        saved = create_on_hosts(value, 1, name).numpy()
        _check_given(name, "a saved value", shape, saved.shape, dtype, saved.dtype)
        return _of_whole(lambda: saved, name, saved.shape, saved.dtype)
    if isinstance(value, Initializer):
        if shape is None:
            raise ValueError(f"variable '{name}': an Initializer needs the shape")
        _check_given(name, "an Initializer", shape, shape, dtype, np.dtype(np.float32))

        def filled() -> Any:
            return create_on_hosts(value, 1, name, shape=shape, seed=seed).numpy()

        return _of_whole(filled, name, shape, np.float32)._replace(made_by=value)
    given = np.float32 if dtype is None else dtype
    bound = _bound_shape(value)
    if bound is not None:
        shape = bound
        dtype = value.keywords.get("dtype", None if len(value.args) > 1 else given)  # a second argument is the dtype
        make = value if dtype is None else functools.partial(value, dtype=dtype)
    elif callable(value) and shape is not None:
        dtype = given
        make = functools.partial(value, tuple(shape), dtype=dtype)
    else:
        raise ValueError(
            f"variable '{name}': Unable to extract initializer function and shape: initial_value must be a function of a "
            f"shape and dtype, with the shape given or bound by functools.partial, got {type(value).__name__}")
    if not _takes_shard_info(value):
        return _of_whole(make, name, shape, dtype)
    return _FirstValues(lambda part: make(shard_info=ShardInfo(part.shape, part.offset)),
                        lambda info: make(shard_info=info), tuple(shape), dtype)


def _check_given(name: str, source: str, shape: Sequence[int] | None, its_shape: Sequence[int], dtype: Any,
                 its_dtype: np.dtype[Any]) -> None:
    """Refuses a shape or a dtype that is not that of the values."""
    if shape is not None and tuple(shape) != tuple(its_shape):
        raise ValueError(f"variable '{name}': {source} of shape {tuple(its_shape)} does not fit shape {tuple(shape)}")
    if dtype is not None and np.dtype(dtype) != its_dtype:
        raise ValueError(f"variable '{name}': {source} gives {its_dtype}, not {np.dtype(dtype)}")


def _of_whole(make: Callable[[], Any], name: str, shape: Sequence[int], dtype: Any) -> _FirstValues:
    """First values that are rows of what `make` gives, which is called once."""

    @functools.cache
    def whole() -> Any:
        made = make()
        try:
            values = Variable(made, name, dtype).numpy()
        except (TypeError, ValueError) as error:
            raise type(error)(f"variable '{name}': what initial_value gives: {error}") from None
        if values.shape != tuple(shape):
            raise ValueError(f"variable '{name}': initial_value must give shape {tuple(shape)}, got {values.shape}")
        return values

    return _FirstValues(lambda: whole(), lambda info: whole()[info.offset[0]:info.offset[0] + info.shape[0]],
                        tuple(shape), dtype)


def _bound_shape(value: Any) -> tuple[int, ...] | None:
    """The shape that functools.partial has bound to a function."""
    if not isinstance(value, functools.partial):
        return None
    shape = value.keywords.get("shape", value.args[0] if value.args else None)
    try:
        return None if shape is None else tuple(shape)
    except TypeError:
        raise ValueError(f"a shape is a sequence of integers, got {shape!r}") from None


def _takes_shard_info(function: Callable[..., Any]) -> bool:
    try:
        return "shard_info" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _blocks(shape: tuple[int, ...], hosts: int, name: str) -> Iterator[ShardInfo]:
    """The rows of each host that has any: of the first ones one more than of the others, where hosts do not divide them."""
    if len(shape) != 2 or shape[0] < 1:
        raise ValueError(f"variable '{name}': a table must have rank 2 and a row at least, got shape {shape}")
    size, longer = divmod(shape[0], hosts)
    offset = 0
    for host in range(min(hosts, shape[0])):
        rows = size + 1 if host < longer else size
        yield ShardInfo((rows, shape[1]), (offset, 0))
        offset += rows
