"""Moves ids, activations and gradients between the host and an accelerator, through pinned buffers.

Activations of a step and gradients of the one before are on their way at the same time. A runtime has the streams and
events of the accelerator; `Cuda` is torch.cuda's, and tests bring one that runs copies late.
"""

from __future__ import annotations

import collections
import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

__all__ = ["Arriving", "Cuda", "Runtime", "Staged", "Transfers"]


class Runtime(Protocol):
    def holds(self, tensor: torch.Tensor) -> bool: ...

    def stream(self) -> Any: ...

    def event(self) -> Any: ...

    def current(self) -> Any: ...

    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]: ...

    def pinned(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor: ...

    def like(self, host: torch.Tensor) -> torch.Tensor: ...

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None: ...

    def used_on(self, tensor: torch.Tensor, stream: Any) -> None: ...


class Cuda:
    """Streams and events of one CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def holds(self, tensor: torch.Tensor) -> bool:
        return tensor.device == self._device

    def stream(self) -> Any:
        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def event(self) -> Any:
        return torch.cuda.Event()  # type: ignore[no-untyped-call]

    def current(self) -> Any:
        return torch.cuda.current_stream(self._device)

    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return torch.cuda.stream(stream)

    def pinned(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=dtype, device="cpu", pin_memory=True)

    def like(self, host: torch.Tensor) -> torch.Tensor:
        return torch.empty(host.shape, dtype=host.dtype, device=self._device)

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        to.copy_(source, non_blocking=True)

    def used_on(self, tensor: torch.Tensor, stream: Any) -> None:
        tensor.record_stream(stream)


_ALIGNED = 128  # elements of float32: each tensor begins at a multiple of 512 bytes, as CUDA's allocator gives memory


def _laid_out(shapes: Sequence[Sequence[int]], aligned: int) -> tuple[list[tuple[int, int]], int]:
    """Where tensors begin and end in memory that they share, and how long it is, in elements."""
    places, end = [], 0
    for shape in shapes:
        begin = -(-end // aligned) * aligned
        end = begin + math.prod(shape)
        places.append((begin, end))
    return places, end


def _cut(memory: torch.Tensor, places: Sequence[tuple[int, int]], shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
    host = memory.numpy()  # whose parts cost less than a tensor's
    return [host[begin:end].reshape(shape) for (begin, end), shape in zip(places, shapes)]


class Arriving:
    """Arrays on their way to the host."""

    def __init__(self, arrays: list[np.ndarray | None], event: Any, sources: Any) -> None:
        self._arrays, self._event, self._sources = arrays, event, sources

    def wait(self) -> list[np.ndarray | None]:
        self._event.synchronize()
        self._sources = None
        return self._arrays


class _Slot:
    """Pinned memory of one step, used again once the copies from it or to it are over."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._memory: torch.Tensor | None = None
        self.event: Any = None

    def take(self, count: int) -> torch.Tensor:
        """float32 [count]"""
        if self._memory is None or self._memory.numel() < count:
            self._memory = self._runtime.pinned((count + count // 4 + 1,), torch.float32)
        return self._memory[:count]


class _Slots:
    """Slots in turns: one is written while the copies from the other go on. Each is one thread's from `take` to `give_back`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._free = runtime, collections.deque([_Slot(runtime), _Slot(runtime)])

    def take(self) -> _Slot:
        try:
            slot = self._free.popleft()
        except IndexError:  # other threads have them
            return _Slot(self._runtime)
        if slot.event is not None:
            slot.event.synchronize()
            slot.event = None
        return slot

    def give_back(self, slot: _Slot, event: Any) -> None:
        """event: the end of the copies."""
        slot.event = event
        self._free.append(slot)


class Staged:
    """Pinned memory for the activations of one step: `arrays`, of the shapes that were asked for, are to be written."""

    def __init__(self, slot: _Slot, shapes: Sequence[Sequence[int]]) -> None:
        self.slot, self.shapes = slot, shapes
        self.places, count = _laid_out(shapes, _ALIGNED)
        self.memory = slot.take(count)
        self.arrays = _cut(self.memory, self.places, shapes)

    def parts(self) -> list[torch.Tensor]:
        """Tensors over the arrays: those of NumPy's are unknown to the allocator that gives pinned memory out again."""
        return [self.memory[begin:end].view(tuple(shape)) for (begin, end), shape in zip(self.places, self.shapes)]


class Transfers:
    """Copies on streams of their own, one for each direction. What goes one way in one step is one copy."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._up, self._down = runtime.stream(), runtime.stream()
        self._activations, self._gradients = _Slots(runtime), _Slots(runtime)

    def to_host(self, tensors: Sequence[torch.Tensor]) -> Arriving:
        """Starts to copy what the current stream computes, into memory of its own."""
        return self._start_down(tensors, self._runtime.pinned)

    def gradients_to_host(self, tensors: Sequence[torch.Tensor | None]) -> Arriving:
        """As `to_host`, of float32, in memory that the next but one call reuses."""
        slot = self._gradients.take()
        arriving = self._start_down(tensors, lambda shape, _: slot.take(*shape))
        self._gradients.give_back(slot, arriving._event)
        return arriving

    def stage(self, shapes: Sequence[Sequence[int]]) -> Staged:
        """Memory for activations, the caller's until `to_device`. If that is not called, it is dropped."""
        return Staged(self._activations.take(), shapes)

    def to_device(self, staged: Staged, apart: bool = False) -> list[torch.Tensor]:
        """Copies activations; what the current stream computes from now on waits for them, the host does not.

        apart: each has memory of its own, as results of an operator must.
        """
        runtime, stream = self._runtime, self._runtime.current()
        found = []
        with runtime.on(self._up):  # its memory is given out again once the caller's stream is done with it, see `used_on`
            for source in staged.parts() if apart else [staged.memory]:
                tensor = runtime.like(source)
                runtime.copy(tensor, source)
                runtime.used_on(tensor, stream)
                found.append(tensor)
            event = runtime.event()
            event.record(self._up)
        self._activations.give_back(staged.slot, event)
        stream.wait_event(event)
        if apart:
            return found
        storage = found[0].untyped_storage()  # no views, which torch.autograd would guard against changes
        return [found[0].new_empty(0).set_(storage, begin, tuple(shape)) for (begin, _), shape in zip(staged.places, staged.shapes)]

    def _start_down(self, tensors: Sequence[torch.Tensor | None], memory: Callable[[Sequence[int], torch.dtype], torch.Tensor]) -> Arriving:
        runtime = self._runtime
        groups: dict[torch.dtype, list[tuple[int, torch.Tensor]]] = {}
        for index, tensor in enumerate(tensors):
            if tensor is not None:
                groups.setdefault(tensor.dtype, []).append((index, tensor))
        # A tensor of its own, also for one: the caller may change the others while they are copied.
        sources = [torch.cat([tensor.detach().reshape(-1) for _, tensor in group]) for group in groups.values()]
        self._down.wait_stream(runtime.current())
        found: list[np.ndarray | None] = [None] * len(tensors)
        with runtime.on(self._down):
            for group, source in zip(groups.values(), sources):
                to = memory(source.shape, source.dtype)
                runtime.copy(to, source)
                runtime.used_on(source, self._down)
                shapes = [tensor.shape for _, tensor in group]
                for (index, _), array in zip(group, _cut(to, _laid_out(shapes, 1)[0], shapes)):
                    found[index] = array
            event = runtime.event()
            event.record(self._down)
        return Arriving(found, event, sources)
