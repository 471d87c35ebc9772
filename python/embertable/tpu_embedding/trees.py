"""Trees with a value for each replica: taking them apart, putting them together, cutting batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import PerReplica, RaggedIds, SparseIds

Tree = Any


def mapped(call: Callable[[Any], Any], tree: Tree) -> Tree:
    """Returns a tree of the same containers with `call(leaf)` for each leaf. A PerReplica is a leaf."""
    if isinstance(tree, PerReplica):
        return call(tree)
    if isinstance(tree, dict):
        packed = tree.copy()
        for key, value in tree.items():
            packed[key] = mapped(call, value)
        return packed
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(call, item) for item in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(call, item) for item in tree)
    return call(tree)


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
    containers become one PerReplica; what is None for all stays None; one tree stays as it is."""
    first = trees[0]
    if len(trees) == 1 or all(tree is None for tree in trees):
        return first
    alike = all(type(tree) is type(first) for tree in trees)
    if alike and isinstance(first, dict) and all(tree.keys() == first.keys() for tree in trees):
        packed = first.copy()
        for key in first:
            packed[key] = merged([tree[key] for tree in trees])
        return packed
    if alike and isinstance(first, (list, tuple)) and all(len(tree) == len(first) for tree in trees):
        items = [merged(parts) for parts in zip(*trees)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    return PerReplica(trees)


def num_samples(leaf: Any) -> int:
    """Returns the length of a leaf's first axis. Raises ValueError if it has none."""
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
        size, rest = divmod(num_samples(leaf), parts)
        if rest:
            raise ValueError(f"a batch must have a number of samples that {parts} replicas divide, got {size * parts + rest}")
        return samples(leaf, part * size, (part + 1) * size)

    return mapped(own, tree)


def leaves_of(tree: Tree) -> list[Any]:
    """Returns the leaves in flatten order: mappings by sorted key, everything else in its own."""
    if isinstance(tree, Mapping):
        return [leaf for key in sorted(tree) for leaf in leaves_of(tree[key])]
    if hasattr(type(tree), "__attrs_attrs__"):
        return [leaf for field in type(tree).__attrs_attrs__ for leaf in leaves_of(getattr(tree, field.name))]
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in leaves_of(item)]
    return [tree]
