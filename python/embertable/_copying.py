"""What pickles and copies, and what says how it is kept instead."""

from collections.abc import Callable
from typing import Any, NoReturn

from . import _core

_ARGUMENTS = {  # of values that are made again from their attributes
    "FixedShardsPartitioner": ("num_shards",),
    "MinSizePartitioner": ("min_shard_bytes", "max_shards", "bytes_per_string"),
    "MaxSizePartitioner": ("max_shard_bytes", "max_shards", "bytes_per_string"),
}
_RESTORED = "`save` keeps its tables and slots in a run directory, and `restore` of another one takes them"
_INSTEAD = {
    "Embedding": _RESTORED,
    "DirectEmbedding": _RESTORED,
    "ServingEmbedding": "open its checkpoint again, by `ServingEmbedding.open`",
    "Variable": "`save_variables` keeps it in a run directory, and `numpy` gives its values as an array",
    "ShardedVariable": "`save_variables` keeps it in a run directory, and `numpy` gives its values as an array",
    "CheckpointRun": "open its directory again",
    "Exchange": "make one in each process",
    "IdMapBuilder": "`build` makes an IdMap, which may be",
}


def _refusing(instead: str) -> Callable[[Any], NoReturn]:
    def __reduce__(self: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects cannot be pickled or copied: {instead}")

    return __reduce__


def _made_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    def __reduce__(self: Any) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in names)

    return __reduce__


def install() -> None:
    """Gives classes of the extension their `__reduce__`, which pickle and copy call."""
    for name, names in _ARGUMENTS.items():
        getattr(_core, name).__reduce__ = _made_of(names)
    for name, instead in _INSTEAD.items():
        getattr(_core, name).__reduce__ = _refusing(instead)
