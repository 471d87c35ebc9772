"""Ctrl-C that waits for what goes on."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interrupts:
    """Notes Ctrl-C while something goes on that must come to an end of its own; a second one ends it at once."""

    def __enter__(self) -> Interrupts:
        self._seen: list[Any] = []
        self._before: Any = signal.getsignal(signal.SIGINT)
        self._catches = callable(self._before) and threading.current_thread() is threading.main_thread()
        if self._catches:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._catches:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: Any) -> None:
        if self._seen and callable(self._before):
            self._before(number, frame)
        self._seen.append((number, frame))

    def any(self) -> bool:
        return bool(self._seen)

    def pass_on(self) -> None:
        """Does what Ctrl-C did before, if there was one."""
        if self._seen:
            self._before(*self._seen[0])
