"""Trees with a value for each replica: taking them apart, putting them together, cutting batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import DenseIds, PerReplica, RaggedIds, SparseIds
from .._trees import part_size

Tree = Any


class _Container(NamedTuple):
    """A container taken apart."""

    keys: list[Any]
    items: list[Any]
    like: Callable[[list[Any]], Tree]  # makes one of the same kind with other items

    def by_key(self) -> dict[Any, Any]:
        return dict(zip(self.keys, self.items))


def _container(tree: Tree) -> _Container | None:
    """None for a leaf, as which a PerReplica counts. Containers are those of an embedding's trees."""
    if isinstance(tree, PerReplica):
        return None
    if isinstance(tree, Mapping):
        keys = list(tree)
        return _Container(keys, [tree[key] for key in keys], lambda items: _mapping_like(tree, keys, items))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _Container(list(tree._fields), list(tree), lambda items: type(tree)(*items))
    if isinstance(tree, (list, tuple)):
        return _Container(list(range(len(tree))), list(tree), lambda items: type(tree)(items))
    fields = getattr(type(tree), "__attrs_attrs__", None)
    if fields is not None and all(field.init for field in fields):  # a class that computes some is a leaf
        names = [field.name for field in fields]
        arguments = [getattr(field, "alias", None) or field.name.lstrip("_") for field in fields]
        return _Container(names, [getattr(tree, name) for name in names], lambda items: type(tree)(**dict(zip(arguments, items))))
    return None


def _mapping_like(like: Any, keys: list[Any], items: list[Any]) -> Any:
    """A mapping of the same class and order; a dict if the class makes none of a dict."""
    if isinstance(like, dict):
        packed = like.copy()
        for key, item in zip(keys, items):
            packed[key] = item
        return packed
    try:
        return type(like)(dict(zip(keys, items)))
    except TypeError:
        return dict(zip(keys, items))


def mapped(call: Callable[[Any], Any], tree: Tree) -> Tree:
    """Returns a tree of the same containers with `call(leaf)` for each leaf. A PerReplica is a leaf. An object of a class of the
    caller's, in which no leaf changes, stays itself."""
    container = _container(tree)
    if container is None:
        return call(tree)
    items = [mapped(call, item) for item in container.items]
    if not isinstance(tree, (dict, list, tuple)) and all(new is old for new, old in zip(items, container.items)):
        return tree
    return container.like(items)


def part_of(tree: Tree, replica: int, replicas: int) -> Tree:
    """Returns what a replica receives: its own part of each PerReplica, and everything else as it is."""

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, PerReplica):
            return leaf
        if len(leaf) != replicas:
            raise ValueError(f"a PerReplica must have a value for each of {replicas} replicas, got {len(leaf)}")
        return leaf[replica]

    return mapped(own, tree)


def merged(trees: Sequence[Tree]) -> Tree:
    """Returns one tree of what the replicas have, with a PerReplica in the place of each leaf. Trees of different
    containers, and of a class that cannot be made of PerReplicas, become one PerReplica; what is None for all stays None; one
    tree stays as it is."""
    first = trees[0]
    if len(trees) == 1 or all(tree is None for tree in trees):
        return first
    containers = [_container(tree) for tree in trees if type(tree) is type(first)]
    alike = [container.by_key() for container in containers if container is not None]
    if len(alike) < len(trees) or any(items.keys() != alike[0].keys() for items in alike):
        return PerReplica(trees)
    parts = [merged([items[key] for items in alike]) for key in alike[0]]
    try:
        return containers[0].like(parts)  # type: ignore[union-attr]
    except Exception:  # of the class's own: the results of a step that is done must not be lost
        return PerReplica(trees)


def num_samples(leaf: Any) -> int:
    """Returns the length of a leaf's first axis. Raises ValueError if it has none."""
    if isinstance(leaf, DenseIds):
        return num_samples(leaf.values)
    if hasattr(leaf, "row_splits"):
        return len(leaf.row_splits) - 1
    if hasattr(leaf, "dense_shape"):
        return int(leaf.dense_shape[0])
    shape = np.shape(leaf)
    if not shape:
        raise ValueError(f"a leaf of a batch must have an axis of samples, got {leaf!r}")
    return int(shape[0])


def samples(leaf: Any, first: int, last: int) -> Any:
    """Returns samples [first, last) of ids, weights or labels."""
    if isinstance(leaf, DenseIds):
        return DenseIds(leaf.values[first:last])
    if isinstance(leaf, RaggedIds):
        splits = np.asarray(leaf.row_splits)[first:last + 1]
        return RaggedIds(np.asarray(leaf.values)[splits[0]:splits[-1]], splits - splits[0])
    if hasattr(leaf, "dense_shape"):
        indices = np.asarray(leaf.indices)
        own = (indices[:, 0] >= first) & (indices[:, 0] < last)
        moved = indices[own] - np.array([first] + [0] * (indices.shape[1] - 1), indices.dtype)
        shape = [last - first] + [int(dim) for dim in leaf.dense_shape][1:]
        if isinstance(leaf, SparseIds):
            return SparseIds(moved, np.asarray(leaf.values)[own], shape)
        return type(leaf)(moved, np.asarray(leaf.values)[own], shape)
    return leaf[first:last]


def cut(tree: Tree, part: int, parts: int) -> Tree:
    """Returns one of `parts` equal parts of a batch, cut on the first axis of each leaf."""

    def own(leaf: Any) -> Any:
        if leaf is None:
            return None
        size = part_size(num_samples(leaf), parts)
        return samples(leaf, part * size, (part + 1) * size)

    return mapped(own, tree)
