"""What a tree is: mappings, lists, tuples, named tuples and classes of attrs, of leaves. The extension's trees.cc knows the same."""

from collections.abc import Mapping
from typing import Any


def children(tree: Any) -> list[tuple[Any, Any]] | None:
    """Keys and items of a container in flatten order, mappings by sorted key and everything else in its own; None for a leaf."""
    if isinstance(tree, Mapping):
        return [(key, tree[key]) for key in sorted(tree)]
    if hasattr(type(tree), "__attrs_attrs__"):
        return [(field.name, getattr(tree, field.name)) for field in type(tree).__attrs_attrs__]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(zip(tree._fields, tree))
    if isinstance(tree, (list, tuple)):
        return list(enumerate(tree))
    return None


def leaves_of(tree: Any) -> list[Any]:
    """Returns the leaves in flatten order."""
    below = children(tree)
    return [tree] if below is None else [leaf for _, item in below for leaf in leaves_of(item)]


def leaves_like(tree: Any, like: Any) -> list[Any]:
    """Returns what a tree has in the places of the leaves of another one of its form."""
    expected, below = children(like), children(tree)
    if expected is None or below is None:
        return [tree]
    return [leaf for (_, one), (_, its) in zip(below, expected) for leaf in leaves_like(one, its)]


def part_size(samples: int, parts: int) -> int:
    """Returns the samples of each of the equal parts into which a batch is cut for its replicas."""
    size, rest = divmod(samples, parts)
    if rest:
        raise ValueError(f"a batch must have a number of samples that {parts} replicas divide, got {samples}")
    return size


def paths_of(tree: Any, path: str = "") -> list[tuple[str, Any]]:
    """Returns the path and the leaf of each leaf, in flatten order."""
    below = children(tree)
    if below is None:
        return [(path, tree)]
    return [leaf for key, item in below for leaf in paths_of(item, f"{path}/{key}" if path else str(key))]
