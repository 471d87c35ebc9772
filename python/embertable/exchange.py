"""Exchanges between the hosts of an engine over torch.distributed.

    torch.distributed.init_process_group("gloo")
    strategy = embertable.EngineStrategy(exchange=TorchDistributed())

This module imports torch; the rest of the package does not.
"""

from __future__ import annotations

import datetime
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist

from ._core import Exchange, GivenUp

__all__ = ["TorchDistributed"]

# Every host sends every host a slot: a header, and the message if it is small. Larger messages follow in a second
# collective. Both are padded, so that messages lie on 64-byte borders.
_SLOT = 4096
_SMALL = _SLOT - 128
# Whether the host gives up; bytes of the message; bytes of the host's largest message; the channel; length, checksum and
# beginning of the stage.
_STAGE = 88
_HEADER = struct.Struct(f"=?qqiiI{_STAGE}s")
_CHANNELS = 3

_Result = TypeVar("_Result")


def _difference(host: int, rounds: Sequence[tuple[int, int, int, bytes]]) -> str | None:
    """Why hosts that started a round on these channels, for these stages (see _HEADER), cannot go on."""
    other = next((other for other, started in enumerate(rounds) if started != rounds[host]), None)
    if other is None:
        return None
    same_stage = rounds[host][1:] == rounds[other][1:]
    own, theirs = (stage[:size].decode(errors="replace") + (f" on channel {channel}" if same_stage else "")
                   for channel, size, _, stage in (rounds[host], rounds[other]))
    return f"hosts must make the same calls in the same order: host {host} is in: {own}; host {other} in: {theirs}"


def _padded(size: int) -> int:
    return (size + 63) // 64 * 64


class _Memory:
    """Bytes that a collective reads or writes."""

    def __init__(self, size: int) -> None:
        self.tensor = torch.empty(size, dtype=torch.uint8, device="cpu")
        self.view = memoryview(self.tensor.numpy())

    def at_least(self, size: int) -> _Memory:
        return self if len(self.view) >= size else _Memory(size + size // 4)


class _Lane:
    """The memory of one round, and the collectives that fill it."""

    def __init__(self, group: dist.ProcessGroup, host: int, hosts: int) -> None:
        self._group, self._host, self._hosts = group, host, hosts
        self._slots_out, self._slots_in = _Memory(hosts * _SLOT), _Memory(hosts * _SLOT)
        self._out, self._in = _Memory(0), _Memory(0)
        self._sizes, self._largest = [0] * hosts, 0
        self._large: list[int] = [0] * hosts  # bytes of each host's message in the second collective
        self._work: dist.Work | None = None

    def meet(self, gives_up: bool, messages: Sequence[memoryview | bytes], channel: int = -1,
             stage: str = "") -> tuple[list[bool], str | None]:
        """Waits for all hosts to start a round. Gives which of them give up, and if none does, how they differ."""
        started = stage.encode(errors="backslashreplace")
        sizes = [0 if to == self._host else len(message) for to, message in enumerate(messages)]
        slots = self._slots_out.view
        for to, message in enumerate(messages):
            _HEADER.pack_into(slots, to * _SLOT, gives_up, sizes[to], max(sizes), channel, len(started),
                              zlib.crc32(started), started)
            if 0 < sizes[to] <= _SMALL:
                first = to * _SLOT + _SLOT - _SMALL
                slots[first:first + sizes[to]] = message
        dist.all_to_all_single(self._slots_in.tensor, self._slots_out.tensor, group=self._group)
        headers = [_HEADER.unpack_from(self._slots_in.view, host * _SLOT) for host in range(self._hosts)]
        self._sizes = [size for _, size, *_ in headers]
        self._largest = max(largest for _, _, largest, *_ in headers)
        gave_up = [header[0] for header in headers]
        return gave_up, None if any(gave_up) else _difference(self._host, [header[3:] for header in headers])

    def send(self, messages: Sequence[memoryview | bytes]) -> None:
        """Starts the second collective, if a host has a large message. All hosts have met."""
        if self._largest <= _SMALL:
            return
        out = [_padded(len(message)) if to != self._host and len(message) > _SMALL else 0
               for to, message in enumerate(messages)]
        self._large = [_padded(size) if size > _SMALL else 0 for size in self._sizes]
        self._out, self._in = self._out.at_least(sum(out)), self._in.at_least(sum(self._large))
        first = 0
        for message, room in zip(messages, out):
            if room:
                self._out.view[first:first + len(message)] = message
                first += room
        self._work = dist.all_to_all_single(self._in.tensor[:sum(self._large)], self._out.tensor[:first], self._large,
                                            out, group=self._group, async_op=True)

    def wait(self) -> None:
        if self._work is not None:
            self._work.wait()
            self._work = None

    def received(self) -> list[memoryview]:
        """The message of each host, in memory that the next round overwrites."""
        self.wait()
        messages, first = [], 0
        for host, size in enumerate(self._sizes):
            if size <= _SMALL:
                inside = host * _SLOT + _SLOT - _SMALL
                messages.append(self._slots_in.view[inside:inside + size])
            else:
                messages.append(self._in.view[first:first + size])
                first += self._large[host]
        return messages


class TorchDistributed(Exchange):
    """The hosts are the ranks of a group of torch.distributed, by default of all ranks.

    Messages travel through gloo on the CPU, in groups of this exchange's own, whatever the backend of the given
    group is. All ranks of the group construct it together, after init_process_group. A rank that is gone, or does not
    come to a round within `deadline` seconds, makes the call of every other rank raise RuntimeError with the round's
    name and the ranks that no longer answer. The exchange cannot be used after that.
    """

    def __init__(self, group: dist.ProcessGroup | None = None, deadline: float = 60.0) -> None:
        if not 0 < deadline <= 1e9:
            raise ValueError(f"exchange: deadline must be above 0 seconds and at most 1e9, got {deadline}")
        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError("exchange: torch.distributed.init_process_group must be called before")
        host = dist.get_rank(group)
        if host < 0:
            raise ValueError(f"exchange: rank {dist.get_rank()} is not in the group")
        super().__init__(host, dist.get_world_size(group))
        self._deadline = deadline
        self._ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
        self._group, self._roll = self._new_group(), self._new_group()
        self._lanes = [_Lane(self._group, host, self.hosts) for _ in range(_CHANNELS)]
        self._parting_lane = _Lane(self._group, host, self.hosts)
        self._stages = [""] * _CHANNELS
        self._all_started = [False] * _CHANNELS  # every host has started the channel's round
        self._parting = False  # a host gave up, or all do as they differ, and not all have been told why
        self._difference: str | None = None
        self._failure: str | None = None

    def start(self, channel: int, stage: str, messages: Sequence[memoryview]) -> None:
        self._stages[channel], self._all_started[channel] = stage, False
        if self._parting:
            return
        lane = self._lanes[channel]

        def begin() -> None:
            gave_up, self._difference = lane.meet(False, messages, channel, stage)
            self._parting = any(gave_up) or self._difference is not None
            if not self._parting:
                lane.send(messages)
                self._all_started[channel] = True

        self._together(stage, begin)

    def finish(self, channel: int) -> list[memoryview]:
        self._check()
        if self._all_started[channel]:
            return self._wait(self._stages[channel], self._lanes[channel].received)
        raise self._together(self._stages[channel], lambda: self._part(self._difference))

    def abort(self, reason: str) -> GivenUp:
        return self._together("giving up", lambda: self._part(reason))

    def _part(self, reason: str | None) -> GivenUp:
        """Leaves what the hosts do together: all of them say whether they gave up for a reason of their own."""
        lane, text = self._parting_lane, (reason or "").encode(errors="backslashreplace")
        if not self._parting:  # in the round that the others are in, or come to
            lane.meet(True, [b""] * self.hosts)
        for each in self._lanes:
            each.wait()
        gave_up, _ = lane.meet(reason is not None, [text] * self.hosts)
        lane.send([text] * self.hosts)
        reasons: list[memoryview | bytes] = list(lane.received())
        reasons[self.host] = text
        self._parting, self._difference, self._all_started = False, None, [False] * _CHANNELS
        first = gave_up.index(True)
        return GivenUp(first, bytes(reasons[first]).decode(errors="backslashreplace"))

    def _new_group(self) -> dist.ProcessGroup:
        return dist.new_group(self._ranks, timeout=datetime.timedelta(seconds=self._deadline), backend="gloo",
                              use_local_synchronization=True)

    def _together(self, stage: str, call: Callable[[], _Result]) -> _Result:
        """Runs several collectives. If a signal's handler raises between two of them, the hosts are out of step."""
        self._check()
        self._failure = f"exchange: {stage}: this host was interrupted, and the others wait for it"
        result = self._wait(stage, call)
        self._failure = None
        return result

    def _wait(self, stage: str, call: Callable[[], _Result]) -> _Result:
        begin = time.monotonic()
        try:
            return call()
        except RuntimeError as error:  # gloo names no rank
            absent = self._absent(max(begin + self._deadline - time.monotonic(), min(1.0, self._deadline / 4)))
            who = f"no answer of host {', '.join(map(str, absent))}" if absent else "gloo does not say which host failed"
            cause = str(error).strip().splitlines()[0]
            self._failure = f"exchange: {stage}: {who} within {self._deadline:g} s (torch.distributed: {cause})"
            raise RuntimeError(self._failure) from error

    def _check(self) -> None:
        if self._failure is not None:
            raise RuntimeError(self._failure)

    def _absent(self, seconds: float) -> list[int]:
        """Calls the roll in the second group, which no failed collective has broken."""
        others = [host for host in range(self.hosts) if host != self.host]
        end = time.monotonic() + seconds
        calls, absent = {}, []
        for host in others:
            try:
                got = torch.empty(1, dtype=torch.uint8, device="cpu")
                sent = dist.isend(torch.zeros(1, dtype=torch.uint8, device="cpu"), self._ranks[host], group=self._roll)
                calls[host] = [sent, dist.irecv(got, self._ranks[host], group=self._roll)]
            except RuntimeError:
                absent.append(host)
        for host, works in calls.items():
            try:
                for work in works:
                    work.wait(datetime.timedelta(seconds=max(end - time.monotonic(), 0.001)))
            except RuntimeError:
                absent.append(host)
        return sorted(absent)
