"""What the processes of torch.distributed do together; alone, all of it is this process's."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["any_of", "barrier", "first_of", "gathered", "is_first", "rank", "size"]


def size() -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if there else 1


def rank() -> int:
    return torch.distributed.get_rank() if size() > 1 else 0


def is_first() -> bool:
    return rank() == 0


def barrier() -> None:
    if size() > 1:
        torch.distributed.barrier()


def gathered(mine: Any) -> list[Any]:
    """What each process has."""
    if size() == 1:
        return [mine]
    found: list[Any] = [None] * size()
    torch.distributed.all_gather_object(found, mine)
    return found


def first_of(mine: Any) -> Any:
    """What the first process has."""
    if size() == 1:
        return mine
    found = [mine]
    torch.distributed.broadcast_object_list(found, 0)
    return found[0]


def any_of(mine: bool) -> bool:
    """Whether it holds on any process."""
    return any(gathered(mine))
