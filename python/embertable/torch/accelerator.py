"""What a module does where its activations are on an accelerator: ids come from there, and gradients too."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ..steps import Step
from .transfers import Arriving, Runtime, Transfers

__all__ = ["Accelerator", "GradientsUnderWay", "IdsAhead"]

# Of ids, bounds and weights: tensors of other types are refused before they are read.
_TYPES_READ = frozenset((torch.int64, torch.int32, torch.float32))


@dataclasses.dataclass(frozen=True)
class _Copy:
    """A tensor's copy on its way to the host, one of several that travel together."""

    source: torch.Tensor  # kept, so that no other tensor gets its memory
    version: int  # of the source when its copy began
    together: Arriving
    index: int

    @property
    def is_current(self) -> bool:
        return self.source._version == self.version


class IdsAhead:
    """Copies of ids, bounds and weights to the host, made together before a lookup reads them one by one.

    A copy is taken for a tensor at the same address, of the same type and number of elements, that has not changed since.
    `holds` says whether a tensor is on the accelerator.
    """

    def __init__(self, transfers: Transfers, holds: Callable[[torch.Tensor], bool]) -> None:
        self._transfers, self.holds = transfers, holds
        self._copies: dict[tuple[int, int, torch.dtype], _Copy] = {}

    def prefetch(self, tensors: Iterable[torch.Tensor]) -> None:
        """Starts to copy what the next lookup reads, instead of what an earlier call has started."""
        self._copies = {}
        self._start(tensors)

    @contextlib.contextmanager
    def for_lookup(self, tensors: Iterable[torch.Tensor]) -> Iterator[None]:
        """A lookup that takes these tensors: starts to copy those that were not prefetched, and forgets all at its end."""
        try:
            self._start(tensors)
            yield
        finally:
            self._copies = {}

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor's copy on the host: the one on its way, or one made now."""
        copy = self._copy_of(tensor) if tensor.is_contiguous() else None
        together, index = (self._transfers.to_host([tensor]), 0) if copy is None else (copy.together, copy.index)
        values: Any = together.wait()[index]
        return torch.from_numpy(values).reshape(tensor.shape)

    def _start(self, tensors: Iterable[torch.Tensor]) -> None:
        found = {_key(tensor): tensor for tensor in tensors if self._can_be_ahead(tensor) and self._copy_of(tensor) is None}
        if not found:
            return
        together = self._transfers.to_host(list(found.values()))
        for index, (key, tensor) in enumerate(found.items()):
            self._copies[key] = _Copy(tensor, tensor._version, together, index)

    def _can_be_ahead(self, tensor: torch.Tensor) -> bool:
        """Whether a change would be noticed, and its memory tells it from others."""
        return (self.holds(tensor) and tensor.dtype in _TYPES_READ and not tensor.is_nested and tensor.is_contiguous()
                and not tensor.is_inference())

    def _copy_of(self, tensor: torch.Tensor) -> _Copy | None:
        copy = self._copies.get(_key(tensor))
        return copy if copy is not None and copy.is_current else None


def _key(tensor: torch.Tensor) -> tuple[int, int, torch.dtype]:
    return tensor.data_ptr(), tensor.numel(), tensor.dtype


class GradientsUnderWay:
    """Gradients on their way to the host, of one step at most: backward does not wait for them. Any thread may call."""

    def __init__(self, transfers: Transfers, give: Callable[[Step, Sequence[Any]], None]) -> None:
        """give: takes a step and its gradients once they have arrived."""
        self._transfers, self._give = transfers, give
        self._arriving: tuple[Step, Arriving] | None = None
        self._lock = threading.RLock()

    def start(self, step: Step, gradients: Sequence[torch.Tensor | None]) -> None:
        """Starts to copy the gradients of a step, after those of the step before were given."""
        with self._lock:
            self.settle()
            step.require_open()
            self._arriving = step, self._transfers.gradients_to_host(gradients)

    def settle(self) -> None:
        """Gives the gradients that are on their way, once they have arrived."""
        with self._lock:
            if self._arriving is not None:
                (step, arriving), self._arriving = self._arriving, None
                self._give(step, arriving.wait())


class Accelerator:
    """The device to which a module gives activations, unless that is the CPU. `give` takes a step and its gradients."""

    def __init__(self, runtime: Runtime, give: Callable[[Step, Sequence[Any]], None]) -> None:
        self._transfers = Transfers(runtime)
        self.ids = IdsAhead(self._transfers, runtime.holds)
        self.gradients = GradientsUnderWay(self._transfers, give)

    def look_up(self, shapes: Sequence[Sequence[int]], write: Callable[[list[np.ndarray]], Step | None],
                apart: bool = False) -> tuple[list[torch.Tensor], Step | None]:
        """Has activations written to arrays of these shapes, and copies them. apart: each gets memory of its own."""
        staged = self._transfers.stage(shapes)
        step = write(staged.arrays)
        try:
            return self._transfers.to_device(staged, apart), step
        except BaseException:  # such as too little memory there
            if step is not None:
                step.withdraw()
            raise
