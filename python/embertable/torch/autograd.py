"""Where torch's tape meets the tables: a function for eager code, and operators with fake kernels for torch.compile."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..steps import Step

if TYPE_CHECKING:
    from .modules import TableModule

__all__ = ["OFFSETS", "LAST_OFFSET", "WEIGHTS", "SINGLE", "KEYED", "LookUp", "compiled_look_up", "next_call", "register"]

# What stands for one feature in `form`; its tensors are ids, then offsets and weights if it has them.
OFFSETS, LAST_OFFSET, WEIGHTS, SINGLE, KEYED = 1, 2, 4, 8, 16

_modules: weakref.WeakValueDictionary[int, TableModule] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_calls = itertools.count(1)


def register(module: TableModule) -> int:
    """The number by which operators find a module."""
    number = next(_numbers)
    _modules[number] = module
    return number


def number_of_call() -> int:
    """A number for each place of compiled code that looks up: equal operations are merged, and two lookups are two steps."""
    return next(_calls)


# The compiler of torch 2.4 keeps the result as a global with the function's own name, so callers use another one.
next_call: Callable[[], int] = torch.compiler.assume_constant_result(number_of_call)  # type: ignore[no-untyped-call]


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
            raise double_backward(ctx.module._steps.name)
        ctx.module._take(ctx.step, gradients)
        return None, None, None, None


def double_backward(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: backward(create_graph=True) reaches the tables, whose gradients have none of their own: for a penalty on "
        "gradients of activations take torch.autograd.grad(loss, activations, create_graph=True), and call backward without it")


# Schemas are written out: torch 2.4 infers none from annotations that are texts.
@torch.library.custom_op("embertable::look_up", mutates_args=(), schema=(
    "(Tensor probe, Tensor[] tensors, SymInt[] form, SymInt[] dims, SymInt module, bool record, SymInt call) -> Tensor[]"))
def compiled_look_up(probe: torch.Tensor, tensors: list[torch.Tensor], form: list[int], dims: list[int], module: int,
                     record: bool, call: int) -> list[torch.Tensor]:
    """Activations of each feature, and the number of the step."""
    owner = _owner(module)
    owner._fetch(tensors)
    batch = owner._batch_of(tensors, form)
    owner._ahead.clear()
    owner._before_lookup()
    rows, step = owner._activations(batch, record, again=is_recomputation(), apart=True)
    if step is None:
        return [*rows, torch.zeros(1, dtype=torch.int64, device="cpu")]
    return [*rows, torch.from_numpy(owner._steps.ticket(step))]


@compiled_look_up.register_fake
def _(probe: torch.Tensor, tensors: list[torch.Tensor], form: list[int], dims: list[int], module: int,
      record: bool, call: int) -> list[torch.Tensor]:
    device = _owner(module)._device
    rows = [torch.empty(samples, dim, dtype=torch.float32, device=device)
            for samples, dim in zip(_samples(tensors, form, len(dims)), dims)]
    return [*rows, torch.empty(1, dtype=torch.int64, device="cpu")]


@torch.library.custom_op("embertable::apply_gradients", mutates_args=(), schema=(
    "(Tensor step, Tensor[] gradients, SymInt module) -> Tensor"))
def _apply_gradients(step: torch.Tensor, gradients: list[torch.Tensor], module: int) -> torch.Tensor:
    """What torch takes for the gradient of the probe, so that it drops no call."""
    owner = _owner(module)
    owner._take(owner._steps.step_of(int(step)), gradients)
    return torch.zeros(1, dtype=torch.float32, device="cpu")


@_apply_gradients.register_fake
def _(step: torch.Tensor, gradients: list[torch.Tensor], module: int) -> torch.Tensor:
    return torch.empty(1, dtype=torch.float32, device="cpu")


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output[-1])
    ctx.module, ctx.tensors = inputs[4], len(inputs[1])


def _backward(ctx: Any, gradients: Sequence[torch.Tensor]) -> Any:
    (step,) = ctx.saved_tensors
    probe = torch.ops.embertable.apply_gradients(step, list(gradients[:-1]), ctx.module)
    return probe, [None] * ctx.tensors, None, None, None, None, None


compiled_look_up.register_autograd(_backward, setup_context=_setup_context)


def _owner(number: int) -> TableModule:
    module = _modules.get(number)
    if module is None:
        raise RuntimeError("the embedding module of this compiled code is gone: keep it as long as the code runs")
    return module


def _samples(tensors: Sequence[torch.Tensor], form: Sequence[int], features: int) -> list[Any]:
    """Output rows of each feature, as far as shapes tell."""
    if form[0] & KEYED:
        return [(tensors[1].shape[0] - 1) // form[1]] * features
    found, place = [], 0
    for code in form:
        ids = tensors[place]
        place += 1
        if code & OFFSETS:
            bounds = tensors[place].shape[0]
            found.append(bounds - 1 if code & LAST_OFFSET else bounds)
            place += 1
        else:
            found.append(ids.shape[0])
        place += bool(code & WEIGHTS)
    return found
