"""Where torch's tape meets the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..steps import Step

if TYPE_CHECKING:
    from .modules import TableModule

__all__ = ["LookUp", "is_recomputation"]

_graph_task: Callable[[], int] = torch._C._current_graph_task_id


def is_recomputation() -> bool:
    """Whether backward is under way, as when torch.utils.checkpoint computes activations once more."""
    return _graph_task() != -1


class LookUp(torch.autograd.Function):
    """Activations of a step; backward gives the gradients to the tables and none to torch."""

    @staticmethod
    def forward(ctx: Any, probe: torch.Tensor, module: TableModule, rows: list[torch.Tensor], step: Step) -> Any:
        ctx.module, ctx.step = module, step
        return tuple(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise NotImplementedError(
                f"{ctx.module._steps.name}: backward(create_graph=True) reaches the tables, whose gradients have none of their own: "
                "for a penalty on gradients of activations take torch.autograd.grad(loss, activations, create_graph=True), and call "
                "backward without it")
        ctx.module._take(ctx.step, gradients)
        return None, None, None, None
