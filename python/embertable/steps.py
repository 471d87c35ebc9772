"""What a module of a framework with automatic differentiation keeps between its lookups and their gradients.

A lookup that trains opens a step. Gradients close it: at once, or when the trainer's own optimizer steps. This module
knows no framework: modules bring arrays, of NumPy or as the engine reads them itself, and say when gradients came for a
step.
"""

from __future__ import annotations

import collections
import functools
import itertools
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Literal, NamedTuple

import numpy as np

from ._core import DataError, Embedding, GivenUp, LookupToken, PerReplica, RaggedIds, RaggedWeights, _look_up_bags
from ._trees import part_size

__all__ = ["AbandonedStepWarning", "BAGS", "BAGS_OR_SINGLES", "BAGS_WITH_LAST_OFFSET", "Ids", "SINGLES", "Step", "Steps", "concatenate",
           "cut", "data_error", "splits_of_lengths", "splits_of_offsets", "without_padding"]

# What arrays of a batch may be, see `Steps.look_up_bags`.
BAGS_OR_SINGLES, BAGS, BAGS_WITH_LAST_OFFSET, SINGLES = range(4)

_OPEN, _GIVEN, _DROPPED, _CLOSED = "open", "given", "dropped", "closed"
_MOST_UNDECIDED = 1000  # lookups whose backward may come after a second lookup
_HERE = os.path.dirname(__file__) + os.sep
# How errors of the engine that are about a feature begin.
_PLACE = re.compile(r"feature '(?P<feature>\d*)'(?P<sample>(?:, replica \d+)?(?:, sample \d+)?)(?P<position>, position \d+)?")
_process = os.getpid()  # asking each time costs a call of the system


def _note_fork() -> None:
    global _process
    _process = os.getpid()


os.register_at_fork(after_in_child=_note_fork)


class AbandonedStepWarning(UserWarning):
    """A lookup that trains got no gradients before its graph was dropped: its rows were not updated."""


class Ids(NamedTuple):
    """Ids of one feature. Without splits there is one id for each sample."""

    values: np.ndarray  # [nnz], int32 or int64
    splits: np.ndarray | None = None  # [samples + 1]
    weights: np.ndarray | None = None  # [nnz], float32
    padding: int | None = None  # an id that counts as absent
    bags: np.ndarray | None = None  # without splits: those of the samples whose ids are looked up one by one, for errors

    @property
    def samples(self) -> int:
        return len(self.values) if self.splits is None else len(self.splits) - 1


def splits_of_offsets(offsets: np.ndarray, count: int) -> np.ndarray:
    """Splits of offsets that lack the last one."""
    splits = np.empty(len(offsets) + 1, np.int64)
    splits[:-1] = offsets
    splits[-1] = count
    return splits


def splits_of_lengths(lengths: np.ndarray) -> np.ndarray:
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits


def concatenate(parts: Sequence[Ids]) -> Ids:
    """The samples of several batches of a feature, one batch after the other."""
    if len(parts) == 1:
        return parts[0]
    values, padding = np.concatenate([part.values for part in parts]), parts[0].padding
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([np.ones(len(part.values), np.float32) if part.weights is None else part.weights
                                  for part in parts])
    if all(part.splits is None for part in parts):
        return Ids(values, None, weights, padding)
    lengths = [np.ones(part.samples, np.int64) if part.splits is None else np.diff(part.splits) for part in parts]
    return Ids(values, splits_of_lengths(np.concatenate(lengths)), weights, padding)


def cut(ids: Ids, parts: int) -> list[Ids]:
    """The samples in parts of equal size."""
    size = part_size(ids.samples, parts)
    if ids.splits is not None:
        at = ids.splits[::size] if size else ids.splits
        if len(at) and (at[0] != 0 or at[-1] != len(ids.values) or (np.diff(at) < 0).any()):
            raise DataError(f"row_splits must rise from 0 to the number of ids, {len(ids.values)}; the parts of the replicas end at "
                            f"{at[1:].tolist()}, and begin at {at[0]}")
    cuts = []
    for first in range(0, ids.samples, size) if size else [0] * parts:
        if ids.splits is None:
            begin, end, splits = first, first + size, None
        else:
            splits = ids.splits[first:first + size + 1]
            begin, end = int(splits[0]), int(splits[-1])
            splits = splits - begin
        cuts.append(Ids(ids.values[begin:end], splits, None if ids.weights is None else ids.weights[begin:end], ids.padding))
    return cuts


def without_padding(ids: Ids) -> Ids:
    """The ids that are present. Those with splits that are none stay as they are: the engine says what is wrong."""
    if ids.padding is None:
        return ids
    keep = ids.values != ids.padding
    if keep.all() or (ids.splits is not None and not _are_bounds(ids.splits, len(keep))):
        return ids
    kept = np.concatenate([[0], np.cumsum(keep)])
    splits = kept if ids.splits is None else kept[ids.splits]
    return Ids(ids.values[keep], splits, None if ids.weights is None else ids.weights[keep])


def _are_bounds(splits: np.ndarray, count: int) -> bool:
    return bool(len(splits) and splits[0] == 0 and splits[-1] == count and (np.diff(splits) >= 0).all())


def data_error(text: str, feature: str | None, replica: int | None, sample: int | None, position: int | None) -> DataError:
    """An error in the contents of a batch; the parts of the place that do not apply are None."""
    error = DataError(text)
    error.feature, error.replica, error.sample, error.position = feature, replica, sample, position
    return error


class Step:
    """One lookup that trains. Whoever can still bring its gradients holds it; once nobody can, it is abandoned."""

    __slots__ = ("number", "where", "samples", "call", "_again", "_steps", "_token", "_state", "_batch", "_gradients", "__weakref__")

    def __init__(self, steps: Steps, number: int, token: LookupToken | None, where: str, samples: int,
                 batch: list[Ids] | None, again: bool, call: int) -> None:
        self.number, self.where, self.samples, self.call = number, where, samples, call
        self._again = again
        self._steps = steps
        self._token = token
        self._batch = batch
        self._gradients: list[np.ndarray | None] | None = None
        self._state = _OPEN

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        return f"lookup {self.number}{at} ({self.samples} samples)"

    def __del__(self) -> None:
        steps = getattr(self, "_steps", None)
        if steps is not None and self._state == _OPEN and not self._again:
            steps._abandoned.append((self.where, self.call))

    def require_open(self) -> None:
        """Raises if gradients came before and are applied."""
        if self._state == _CLOSED:
            raise RuntimeError(
                f"{self._steps.name}: backward came twice for {self}, whose gradients are applied already; look up again, or "
                "add the losses and call backward once")

    def withdraw(self) -> None:
        """Forgets the lookup: nobody has seen what it gave."""
        self._state, self._token = _CLOSED, None


class Steps:
    """The lookups of one engine, in the order of their gradients.

    `engine` takes a list of features, or a single one (`single`). `name` begins messages, `features` are the names there.
    `any_of` says whether something holds on any of several processes. Files in `inner` are not the caller's, as those of
    this package are not.
    Calls come from one process; after a fork the child's are refused.
    """

    def __init__(self, engine: Embedding, name: str, *, features: Sequence[str] = (), single: bool = False, replicas: int = 1,
                 divide_by: int = 1, any_of: Callable[[bool], bool] = bool, inner: Sequence[str] = ()) -> None:
        self.engine, self.name = engine, name
        self._features, self.any_of = list(features), any_of
        self._is_inner = _matcher(("<", _HERE, *inner))
        self.deferred = False  # gradients wait for `commit`
        self.outputs: Literal["numpy", "torch"] = "numpy"  # the kind of arrays that activations are; with several replicas they are NumPy's
        self.abandoned = 0
        self.skipped = 0
        self.seconds = 0.0  # spent in the engine
        self._single, self._replicas = single, replicas
        self._share = np.float32(1 / divide_by)
        self._alone = replicas == 1 and divide_by == 1
        self._numbers = itertools.count(1)
        self._abandoned: list[tuple[str, int]] = []  # where, and the number of the call
        self._made_again = {0: False}  # by the number of the call, 0 for lookups outside of compiled code
        self._undecided: collections.deque[tuple[str, int]] = collections.deque(maxlen=_MOST_UNDECIDED)  # of calls that are not in it
        self._waiting: list[Step] = []
        self._tickets: dict[int, Step] = {}
        self._lock = threading.RLock()
        self._process = _process

    # Lookups

    @property
    def direct(self) -> bool:
        """Whether arrays go to the engine and come from it as they are."""
        return self._alone and not self.deferred

    def look_up(self, batch: list[Ids], record: bool, where: str = "", again: bool = False,
                out: list[np.ndarray] | None = None, call: int = 0) -> tuple[list[Any], Step | None]:
        """Activations [samples, dim] of each feature, and the step that takes their gradients if `record`.

        again: a lookup that is made once more, since activations were not kept; it may stay without gradients. out: arrays to
        write to, which are given back. call: the number of the place in compiled code, see `note_made_again`.
        """
        self._begin()
        begin = time.perf_counter()
        try:
            features, weights = self._arguments(batch)
            if out is not None:
                found, token = self.engine.look_up(features, weights, record, out=self._by_replica(out))
            else:
                outputs = self.outputs if self._replicas == 1 else "numpy"
                found, token = self.engine.look_up(features, weights, record, outputs=outputs)
        except (GivenUp, TypeError, ValueError) as error:
            raise self._named(error, batch) from None
        self.seconds += time.perf_counter() - begin
        if out is not None:
            rows: list[Any] = out
        elif self._replicas > 1:
            trees = [tree if isinstance(tree, list) else [tree] for tree in found]
            rows = [np.concatenate(parts) for parts in zip(*trees)]
        else:
            rows = [found] if self._single else found
        if not record:
            return rows, None
        kept = [_copy(ids) for ids in batch] if self.deferred else None
        return rows, Step(self, next(self._numbers), token, where, batch[0].samples, kept, again, call)

    def look_up_bags(self, values: Sequence[Any], form: int, record: bool, where: str = "",
                     again: bool = False) -> tuple[list[Any], Step | None] | None:
        """As `look_up`, of arrays with DLPack's exchange API as they come, whose kind activations are of.

        values: of each feature ids, or (ids, offsets, weights), the last ones None or left out, as `form` allows. None, and
        nothing has happened, for what only `look_up` takes. Requires: `direct`.
        """
        self._begin()
        begin = time.perf_counter()
        try:
            found = _look_up_bags(self.engine, values, form, record)
        except (GivenUp, TypeError, ValueError) as error:
            raise self._named(error) from None
        if found is None:
            return None
        self.seconds += time.perf_counter() - begin
        rows, token, samples = found
        return rows, Step(self, next(self._numbers), token, where, samples, None, again, 0) if record else None

    def ticket(self, step: Step) -> np.ndarray:
        """One number for frameworks that keep arrays alone: the step lives as long as the array does."""
        array = np.array([step.number], np.int64).view(_Ticket)
        self._tickets[step.number] = step
        weakref.finalize(array, self._tickets.pop, step.number, None)
        return array

    def note_made_again(self, call: int, again: bool) -> None:
        """Whether backward makes the lookups of this call once more, so that those before are not abandoned without gradients.

        Once it does, it is known to. Until it is known, no lookup of the call is named.
        """
        with self._lock:
            self._made_again[call] = again or self._made_again.get(call, False)
            self._abandoned.extend(self._undecided)
            self._undecided.clear()

    def step_of(self, ticket: int) -> Step:
        step = self._tickets.get(ticket)
        if step is None:
            raise RuntimeError(f"{self.name}: gradients came for lookup {ticket}, which this process does not know")
        return step

    # Gradients

    def give(self, step: Step, gradients: Sequence[Any]) -> None:
        """Takes the gradients of a step: one array for each feature, None for zeros. They are NumPy's unless `direct`."""
        if _process != self._process:
            self.require_own_process()
        with self._lock:
            step.require_open()
            if self.deferred and step._batch is not None:
                self._keep(step, gradients)
            else:
                self._apply(step, gradients, None if self._alone else self._share)

    def commit(self, scale: float = 1.0, may_overflow: bool = False) -> bool:
        """Applies the gradients that wait, as one step of the tables, multiplied by `scale`. Without any it does nothing.

        False if some are infinite or NaN, on any process, and `may_overflow`: then nothing has changed and they are dropped.
        After an error they wait as before.
        """
        self.require_own_process()
        with self._lock:
            waiting, factor = self._waiting, np.float32(scale) * self._share
            # All processes ask, also those where nothing waits.
            if may_overflow and self.any_of(not all(_is_finite(step._gradients, factor) for step in waiting)):
                self.drop()
                return False
            if len(waiting) == 1:
                self._apply(waiting[0], waiting[0]._gradients, factor)
            elif waiting:
                self._apply_together(waiting, factor)
            for step in waiting:
                step._state, step._token, step._gradients, step._batch = _CLOSED, None, None, None
            self._waiting = []
            return True

    def drop(self, skipped: bool = True) -> None:
        """Forgets the gradients that wait: the trainer's optimizer skipped its step, or began anew.

        A graph that was retained may bring others for the same lookups.
        """
        with self._lock:
            for step in self._waiting:
                step._state, step._gradients = _DROPPED, None
            self.skipped += skipped and bool(self._waiting)
            self._waiting = []

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    # The rest

    def _begin(self) -> None:
        if _process != self._process:
            self.require_own_process()
        if self._abandoned:
            self.name_abandoned()

    def require_own_process(self) -> None:
        if _process != self._process:
            raise RuntimeError(
                f"{self.name} was made in process {self._process}, and process {_process} is a fork of it: let workers "
                "prepare ids and look them up in the process that trains, or open saved tables there with "
                "embertable.ServingEmbedding")

    def name_abandoned(self) -> None:
        with self._lock:
            found, self._abandoned[:] = list(self._abandoned), []
            self._undecided.extend(one for one in found if one[1] not in self._made_again)
            places = [where for where, call in found if self._made_again.get(call) is False]
            self.abandoned += len(places)
        for place in dict.fromkeys(places):  # a text for each: Python shows the same one once
            at = f" at {place}" if place else ""
            warnings.warn(f"{self.name}: no backward came for a lookup{at}; its rows were not updated. Look up under eval() or no_grad "
                          "where nothing trains", AbandonedStepWarning, stacklevel=self._level())

    def where(self) -> str:
        """File and line of the caller that looks up, for messages."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and self._is_inner(frame.f_code.co_filename):
            frame = frame.f_back
        return "" if frame is None else _place_of(frame.f_code.co_filename, frame.f_lineno)

    def _level(self) -> int:
        """The frame of the caller, as warnings count from the method that asks."""
        frame, level = sys._getframe(1), 1
        while frame.f_back is not None and self._is_inner(frame.f_code.co_filename):
            frame, level = frame.f_back, level + 1
        return level

    def _named(self, error: GivenUp | TypeError | ValueError, batch: Sequence[Ids] = ()) -> Exception:
        """An error of the engine, whose features have numbers, with the feature's name, and with the place among the ids that were
        given. That of another host has the name too, since its modules are the same, and no position where padding was left out."""
        text = error.reason if isinstance(error, GivenUp) else str(error)
        found = _PLACE.match(text)
        number = int(found["feature"] or 0) if found else len(self._features)
        if found is None or number >= len(self._features):
            return error
        name, place, ids = self._features[number], found["position"] or "", batch[number] if batch else None
        if isinstance(error, DataError):
            position = error.position
            if ids is not None and ids.bags is not None and error.sample is not None:
                sample = int(np.searchsorted(ids.bags, error.sample, side="right")) - 1
                return data_error(f"feature '{name}', sample {sample}, position {error.sample}{text[found.end():]}", name, error.replica,
                                  sample, error.sample)
            if place and ids is not None and position is not None:
                position = self._position_given(ids, error.replica, position)
                place = f", position {position}"
            return data_error(f"feature '{name}'{found['sample']}{place}{text[found.end():]}", name, error.replica, error.sample, position)
        if isinstance(error, GivenUp):
            place = "" if ids is not None and ids.padding is not None else place
            return GivenUp(error.host, f"feature '{name}'{found['sample']}{place}{text[found.end():]}")
        return type(error)(f"feature '{name}'{found['sample']}{place}{text[found.end():]}")

    def _position_given(self, ids: Ids, replica: int | None, position: int) -> int:
        """Where an id of a replica's part stands with the padding, which the engine did not see."""
        part = ids if self._replicas == 1 else cut(ids, self._replicas)[(replica or 0) % self._replicas]
        return position if without_padding(part) is part else int(np.flatnonzero(part.values != part.padding)[position])

    def _arguments(self, batch: list[Ids]) -> tuple[Any, Any]:
        if self._replicas > 1:
            by_replica = list(zip(*(self._cut(index, ids) for index, ids in enumerate(batch))))
            pairs = [self._tree(list(part)) for part in by_replica]
            weighted = any(weights is not None for _, weights in pairs)
            return PerReplica(ids for ids, _ in pairs), PerReplica(w for _, w in pairs) if weighted else None
        return self._tree(batch)

    def _cut(self, index: int, ids: Ids) -> list[Ids]:
        try:
            return cut(ids, self._replicas)
        except DataError as error:
            name = self._features[index] if self._features else None
            raise data_error(str(error) if name is None else f"feature '{name}': {error}", name, None, None, None) from None

    def _tree(self, batch: list[Ids]) -> tuple[Any, Any]:
        batch = [without_padding(ids) for ids in batch]
        features = [ids.values if ids.splits is None else RaggedIds(ids.values, ids.splits) for ids in batch]
        weights: Any = None
        for index, ids in enumerate(batch):
            if ids.weights is not None:
                weights = weights or [None] * len(batch)
                weights[index] = ids.weights if ids.splits is None else RaggedWeights(ids.weights)
        if self._single:
            return features[0], weights[0] if weights else None
        return features, weights

    def _keep(self, step: Step, gradients: Sequence[Any]) -> None:
        if step._state == _GIVEN and step._gradients is not None:
            step._gradients = [_sum(old, new) for old, new in zip(step._gradients, gradients)]
            return
        step._state, step._gradients = _GIVEN, [None if one is None else np.array(one, np.float32) for one in gradients]
        self._waiting.append(step)

    def _apply(self, step: Step, gradients: Any, factor: np.float32 | None) -> None:
        if factor is not None and factor != 1:
            gradients = [None if one is None else one * factor for one in gradients]
        begin = time.perf_counter()
        try:
            self.engine.apply_gradients(self._by_replica(gradients), step._token)
        except (GivenUp, TypeError, ValueError) as error:
            raise self._named(error) from None
        self.seconds += time.perf_counter() - begin
        step._state, step._token = _CLOSED, None

    def _apply_together(self, steps: list[Step], factor: np.float32) -> None:
        """Looks all samples up once more, as one batch: the tables' own step is one, as the optimizer's is."""
        if self._replicas > 1:
            batches = [[cut(ids, self._replicas) for ids in step._batch or []] for step in steps]
            merged = [[concatenate([batch[f][r] for batch in batches]) for f in range(len(batches[0]))]
                      for r in range(self._replicas)]
            batch = [concatenate([merged[r][f] for r in range(self._replicas)]) for f in range(len(merged[0]))]
        else:
            batch = [concatenate(parts) for parts in zip(*(step._batch or [] for step in steps))]
        gradients: list[Any] = []
        for index, parts in enumerate(zip(*(step._gradients or [] for step in steps))):
            dims = [part.shape[1:] for part in parts if part is not None]
            if not dims:
                gradients.append(None)
                continue
            samples = [(step._batch or [])[index].samples for step in steps]
            full = [np.zeros((count, *dims[0]), np.float32) if part is None else part for count, part in zip(samples, parts)]
            pieces = [np.split(part, self._replicas) for part in full]
            gradients.append(np.concatenate([piece[r] for r in range(self._replicas) for piece in pieces]) * factor)
        begin = time.perf_counter()
        try:
            features, weights = self._arguments(batch)
            _, token = self.engine.look_up(features, weights, True)
            self.engine.apply_gradients(self._by_replica(gradients), token)
        except (GivenUp, TypeError, ValueError) as error:
            raise self._named(error) from None
        self.seconds += time.perf_counter() - begin

    def _by_replica(self, arrays: Sequence[Any]) -> Any:
        """Activations or gradients of all samples, one array for each feature, as the engine takes them."""
        if self._replicas == 1:
            return arrays[0] if self._single else list(arrays)
        parts = [[None] * self._replicas if one is None else np.split(one, self._replicas) for one in arrays]
        return PerReplica(tree[0] if self._single else list(tree) for tree in zip(*parts))


def _matcher(beginnings: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a file's name begins with one of these; each file is compared once, since every lookup asks."""
    return functools.lru_cache(maxsize=1024)(lambda file: file.startswith(beginnings))


@functools.lru_cache(maxsize=1024)
def _place_of(file: str, line: int) -> str:
    return f"{os.path.basename(file)}:{line}"


class _Ticket(np.ndarray):
    """An array that can be watched."""


def _copy(ids: Ids) -> Ids:
    splits, weights = (None if array is None else array.copy() for array in (ids.splits, ids.weights))
    return Ids(ids.values.copy(), splits, weights, ids.padding)


def _is_finite(gradients: Sequence[np.ndarray | None] | None, factor: np.float32) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return all(one is None or bool(np.isfinite(one * factor).all()) for one in gradients or [])


def _sum(old: np.ndarray | None, new: Any) -> np.ndarray | None:
    if old is None or new is None:
        return old if new is None else np.array(new, np.float32)
    total: np.ndarray = np.add(old, new, dtype=np.float32)
    return total
