"""What tests of embertable.torch use in place of others: torchrec's jagged tensors, and an accelerator."""

import contextlib
import os

import pytest
import torch


def real_jagged_tensors():
    """torchrec's own module of them; skips a test where it cannot be imported."""
    return pytest.importorskip("torchrec.sparse.jagged_tensor", exc_type=ImportError, reason=(
        "needs torchrec: beside torch 2.14, pip install --no-deps torchrec tensordict fbgemm-gpu-cpu==1.9.0, then pyvers iopath "
        "pyre-extensions torchmetrics"))


class JaggedTensor:
    """The attributes of torchrec's."""

    def __init__(self, values, lengths, weights=None):
        self._values, self._lengths, self._weights = values, lengths, weights

    def values(self):
        return self._values

    def lengths(self):
        return self._lengths

    def offsets(self):
        return torch.cat([self._lengths.new_zeros(1), self._lengths.cumsum(0)])

    def weights_or_none(self):
        return self._weights


class KeyedJaggedTensor(JaggedTensor):
    """The attributes of torchrec's: features one after the other, each with as many samples."""

    def __init__(self, keys, values, lengths, weights=None):
        super().__init__(values, lengths, weights)
        self._keys = keys

    def keys(self):
        return self._keys

    def stride(self):
        return len(self._lengths) // len(self._keys)

    def weights(self):
        return self._weights

    def lengths_or_none(self):
        return self._lengths


class LateStream:
    """A queue of copies that run when somebody waits for them."""

    def __init__(self):
        self.queue = []

    def wait_stream(self, other):
        self.queue.append(other.run)

    def wait_event(self, event):
        self.queue.append(event.synchronize)

    def run(self):
        while self.queue:
            self.queue.pop(0)()


class LateEvent:
    def record(self, stream):
        self._done, self._stream = False, stream

        def done():
            self._done = True

        stream.queue.append(done)

    def synchronize(self):
        while not self._done:
            self._stream.queue.pop(0)()


class LateAccelerator:
    """Its memory is the host's, but what is copied is there only once somebody waited for it, and noise until then."""

    def __init__(self):
        self.stream_of_caller, self.at, self.copies = LateStream(), None, []
        self.process = os.getpid()

    def holds(self, tensor):
        return tensor.is_cpu

    def stream(self):
        return LateStream()

    def event(self):
        return LateEvent()

    def current(self):
        return self.stream_of_caller

    @contextlib.contextmanager
    def on(self, stream):
        self.at, before = stream, self.at
        try:
            yield
        finally:
            self.at = before

    def pinned(self, shape, dtype):
        if os.getpid() != self.process:
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        return torch.full(tuple(shape), 77, dtype=dtype)

    def like(self, host):
        return torch.full(host.shape, torch.nan)

    def copy(self, to, source):
        assert not source.requires_grad, "the pinned memory would be on torch's tape"
        self.copies.append(tuple(to.shape))
        self.at.queue.append(lambda: to.data.copy_(source.data))

    def used_on(self, tensor, stream):
        pass

    def compute(self):
        """What the caller's stream does before it reads activations."""
        self.stream_of_caller.run()


def on_late_accelerator(module):
    """The module as on a CUDA device, with a stand-in whose copies are late."""
    from embertable.torch.accelerator import Accelerator
    runtime = LateAccelerator()
    module._use(Accelerator(runtime, module._steps.give), torch.device("cpu"))
    return runtime
