"""Moves ids, activations and gradients between the host and an accelerator, through pinned buffers.

Activations of a step and gradients of the one before are on their way at the same time. A runtime has the streams and
events of the accelerator; `Cuda` is torch.cuda's, and tests bring one that runs copies late.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

__all__ = ["Arriving", "Cuda", "Runtime", "Transfers"]


class Runtime(Protocol):
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

    def stream(self) -> Any:
        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def event(self) -> Any:
        return torch.cuda.Event()  # type: ignore[no-untyped-call]

    def current(self) -> Any:
        return torch.cuda.current_stream(self._device)

    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return torch.cuda.stream(stream)

    def pinned(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=dtype, pin_memory=True)

    def like(self, host: torch.Tensor) -> torch.Tensor:
        return torch.empty(host.shape, dtype=host.dtype, device=self._device)

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        to.copy_(source, non_blocking=True)

    def used_on(self, tensor: torch.Tensor, stream: Any) -> None:
        tensor.record_stream(stream)


class Arriving:
    """Tensors on their way to the host."""

    def __init__(self, tensors: list[torch.Tensor | None], event: Any, sources: Any) -> None:
        self._tensors, self._event, self._sources = tensors, event, sources

    def wait(self) -> list[np.ndarray | None]:
        self._event.synchronize()
        self._sources = None
        return [None if tensor is None else tensor.numpy() for tensor in self._tensors]


class _Slot:
    """Pinned memory of one step, used again once the copies from it are over."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._memory: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self.event: Any = None

    def take(self, index: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        count = int(np.prod(shape))
        memory = self._memory.get((index, dtype))
        if memory is None or memory.numel() < count:
            memory = self._memory[index, dtype] = self._runtime.pinned((count + count // 4 + 1,), dtype)
        return memory[:count].view(tuple(shape))


class _Buffers:
    """Slots in turns: one is written while the copies from the other go on."""

    def __init__(self, runtime: Runtime) -> None:
        self._slots, self._next = [_Slot(runtime), _Slot(runtime)], 0

    def next(self) -> _Slot:
        slot = self._slots[self._next]
        self._next = 1 - self._next
        if slot.event is not None:
            slot.event.synchronize()
            slot.event = None
        return slot


class Transfers:
    """Copies on streams of their own, one for each direction."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._up, self._down = runtime.stream(), runtime.stream()
        self._activations, self._gradients = _Buffers(runtime), _Buffers(runtime)

    def to_host(self, tensors: Sequence[torch.Tensor]) -> Arriving:
        """Starts to copy what the current stream computes, into memory of its own."""
        to: list[torch.Tensor | None] = [self._runtime.pinned(tensor.shape, tensor.dtype) for tensor in tensors]
        return self._start_down(tensors, to)

    def gradients_to_host(self, tensors: Sequence[torch.Tensor | None]) -> Arriving:
        """As `to_host`, in memory that the next but one call reuses."""
        slot = self._gradients.next()
        to = [None if tensor is None else slot.take(index, tensor.shape, tensor.dtype) for index, tensor in enumerate(tensors)]
        arriving = self._start_down(tensors, to)
        slot.event = arriving._event
        return arriving

    def to_device(self, arrays: Sequence[np.ndarray]) -> list[torch.Tensor]:
        """Copies activations; what the current stream computes from now on waits for them, the host does not."""
        slot, runtime, stream = self._activations.next(), self._runtime, self._runtime.current()
        found = []
        self._up.wait_stream(stream)  # memory that the current stream freed may be given out again
        with runtime.on(self._up):
            for index, array in enumerate(arrays):
                staged = slot.take(index, array.shape, torch.float32)
                np.copyto(staged.numpy(), array)
                tensor = runtime.like(staged)
                runtime.copy(tensor, staged)
                runtime.used_on(tensor, stream)
                found.append(tensor)
            slot.event = runtime.event()
            slot.event.record(self._up)
        stream.wait_event(slot.event)
        return found

    def _start_down(self, tensors: Sequence[torch.Tensor | None], to: list[torch.Tensor | None]) -> Arriving:
        runtime = self._runtime
        self._down.wait_stream(runtime.current())
        with runtime.on(self._down):
            for tensor, memory in zip(tensors, to):
                if tensor is not None and memory is not None:
                    runtime.copy(memory, tensor)
                    runtime.used_on(tensor, self._down)
            event = runtime.event()
            event.record(self._down)
        return Arriving(to, event, list(tensors))
