"""What the processes of torch.distributed do together; alone, all of it is this process's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["agreed", "any_of", "first_of", "gathered", "is_first", "rank", "require_all", "size"]

_Result = TypeVar("_Result")


def size() -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if there else 1


def rank() -> int:
    return torch.distributed.get_rank() if size() > 1 else 0


def is_first() -> bool:
    return rank() == 0


def gathered(mine: Any) -> list[Any]:
    """What each process has."""
    if size() == 1:
        return [mine]
    found: list[Any] = [None] * size()
    torch.distributed.all_gather_object(found, mine)
    return found


def any_of(mine: bool, processes: int) -> bool:
    """Whether it holds on any of the processes of an exchange, as far as these can agree, see `require_all`."""
    return any(gathered(mine)) if processes == size() else mine


def require_all(processes: int, what: str) -> None:
    """Raises unless the processes of an exchange are those of torch.distributed, through which they agree."""
    if processes not in (1, size()):
        raise RuntimeError(f"{what} needs torch.distributed, through which processes agree: call init_process_group with the {processes} "
                           f"processes of the exchange, got {size()}")


def agreed(call: Callable[[], _Result]) -> _Result:
    """What the call gives on this process. All processes make it, and an error on one is one on all.

    The others get a RuntimeError with the number of the first process that failed and its error.
    """
    if size() == 1:
        return call()
    own, problem = None, None
    try:
        result = call()
    except Exception as error:
        own, problem = error, f"{type(error).__name__}: {error}"
    problems = gathered(problem)
    if own is not None:
        raise own
    for process, found in enumerate(problems):
        if found is not None:
            raise RuntimeError(f"process {process}: {found}")
    return result


def first_of(call: Callable[[], _Result]) -> _Result:
    """What the call gives on the first process, the only one that makes it. Its error is raised on all."""
    found: list[_Result] = gathered(agreed(lambda: call() if is_first() else None))
    return found[0]
