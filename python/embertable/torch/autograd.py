"""Where torch's tape meets the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.traceback import get_current_meta, has_preserved_node_meta

from ..steps import Step

__all__ = ["LookUp", "accumulates", "is_checkpointed", "is_recomputation", "is_traced_for_backward", "new_probe"]

_graph_task: Callable[[], int] = torch._C._current_graph_task_id


def is_recomputation() -> bool:
    """Whether backward is under way, as when torch.utils.checkpoint computes activations once more."""
    return _graph_task() != -1


def is_traced_for_backward() -> bool:
    """Whether torch's compiler traces forward and backward now, as it does unless a cache has what it would make of them."""
    return has_preserved_node_meta()


def is_checkpointed() -> bool:
    """Whether what the compiler traces now is to be computed once more within backward."""
    policy = get_current_meta().get("recompute")  # a torch.utils.checkpoint.CheckpointPolicy, which torch 2.4 has not
    return str(getattr(policy, "name", "")).endswith("RECOMPUTE")


def new_probe() -> tuple[torch.Tensor, Any]:
    """A leaf that stands for the rows on torch's tape, and the node that accumulates its gradients."""
    with torch.inference_mode(False), torch.enable_grad():
        probe = torch.zeros(1, dtype=torch.float32, device="cpu", requires_grad=True)
        return probe, torch.autograd.graph.get_gradient_edge(probe).node


def accumulates(node: Any) -> bool:
    """Whether the backward under way goes to the leaf of this node, as one for certain inputs alone, such as torch.autograd.grad, does not.

    True outside of autograd's engine, where compiled autograd runs what is asked for alone.
    """
    return _graph_task() == -1 or bool(torch._C._will_engine_execute_node(node))


class LookUp(torch.autograd.Function):
    """Activations of a step; backward gives the gradients to `take` and none to torch. `name` begins messages."""

    @staticmethod
    def forward(ctx: Any, probe: torch.Tensor, name: str, take: Callable[[Step, Sequence[torch.Tensor | None]], None],
                rows: list[torch.Tensor], step: Step) -> Any:
        ctx.name, ctx.take, ctx.step = name, take, step
        return tuple(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise NotImplementedError(
                f"{ctx.name}: backward(create_graph=True) reaches the tables, whose gradients have none of their own: "
                "for a penalty on gradients of activations take torch.autograd.grad(loss, activations, create_graph=True), and call "
                "backward without it")
        ctx.take(ctx.step, gradients)
        return None, None, None, None, None
