"""Lookups in compiled code: operators with fake kernels, and the form in which they get a batch.

An operator takes tensors and whole numbers alone. So a batch is its tensors, one after the other, and a number for each
feature that says which of them are the feature's; or what keyed jagged tensors have, with the places of the features.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..steps import Ids
from .autograd import is_checkpointed, is_traced_for_backward
from .inputs import Reader, is_jagged, weights_of

if TYPE_CHECKING:
    from .modules import TableModule

__all__ = ["compiled_look_up", "next_call", "pack_apart", "pack_bags", "pack_keyed", "pack_singles", "register"]

# What a feature has after its ids, and what its offsets are; single ids; keyed jagged tensors.
_OFFSETS, _LAST_OFFSET, _WEIGHTS, _SINGLES, _KEYED = 1, 2, 4, 8, 16

_modules: weakref.WeakValueDictionary[int, TableModule] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_calls = itertools.count(1)


def register(module: TableModule) -> int:
    """The number by which operators find a module."""
    number = next(_numbers)
    _modules[number] = module
    return number


def _owner(number: int) -> TableModule:
    module = _modules.get(int(number))  # of torch 2.4 it may be a SymInt
    if module is None:
        raise RuntimeError("the embedding module of this compiled code is gone: keep it as long as the code runs")
    return module


def number_of_call() -> int:
    """A number for each place of compiled code that looks up: equal operations are merged, and two lookups are two steps."""
    return next(_calls)


# The compiler of torch 2.4 keeps the result as a global with the function's own name, so callers use another one.
next_call: Callable[[], int] = torch.compiler.assume_constant_result(number_of_call)  # type: ignore[no-untyped-call]


# The form of a batch


def pack_singles(ids: torch.Tensor) -> tuple[list[torch.Tensor], list[int]]:
    """One id for each sample."""
    return [ids.reshape(-1)], [_SINGLES]


def pack_apart(jagged: Any) -> tuple[list[torch.Tensor], list[int]]:
    """A jagged tensor, each id of which is looked up by itself."""
    return [jagged.values(), jagged.offsets()], [_SINGLES | _OFFSETS]


def pack_bags(reader: Reader, feature: int, ids: Any, offsets: Any, weights: Any, last_offset: bool = False,
              single_allowed: bool = True) -> tuple[list[torch.Tensor], list[int]]:
    """One feature. Checks what the operator cannot see."""
    name, what = reader.name, reader.what[feature]
    if is_jagged(ids) or (isinstance(ids, torch.Tensor) and ids.is_nested):
        reader.require_no_offsets(offsets, what)
        weights = weights_of(ids) if weights is None else weights
        ids, offsets, last_offset = ids.values(), ids.offsets(), True
    elif not isinstance(ids, torch.Tensor):
        raise TypeError(f"{name}: {what} must be a tensor where code is compiled, got {type(ids).__name__}")
    else:
        reader.require_bags(ids, offsets, what, single_allowed)
    if weights is not None:
        if not isinstance(weights, torch.Tensor) or weights.is_nested:
            raise TypeError(f"{name}: weights of {what} must be a plain tensor where code is compiled, got a ragged one")
        reader.require_constant(weights, f"weights of {what}")
    code = (_OFFSETS if offsets is not None else 0) | (_LAST_OFFSET if last_offset and offsets is not None else 0)
    code |= _WEIGHTS if weights is not None else 0
    return [one for one in (ids, offsets, weights) if one is not None], [code]


def pack_keyed(reader: Reader, batch: Any, features: Sequence[str], weighted: bool,
               apart: bool = False) -> tuple[list[torch.Tensor], list[int]]:
    """Of a KeyedJaggedTensor, the features of these names. Checks what the operator cannot see. apart: each id is looked up by itself."""
    keys = list(batch.keys())
    reader.require_features(keys, features)
    reader.require_different(keys)
    reader.require_same_samples(batch)
    given = weights_of(batch)
    reader.require_weights(given, weighted)
    tensors, code = [batch.values(), batch.offsets()], _KEYED | (_SINGLES if apart else 0)
    if given is not None:
        reader.require_constant(given, "weights")
        tensors.append(given)
        code |= _WEIGHTS
    return tensors, [code, len(keys), *[keys.index(name) for name in features]]


def _unpacked(reader: Reader, tensors: Sequence[torch.Tensor], form: Sequence[int]) -> list[Ids]:
    """Reads a batch of this form."""
    if form[0] & _KEYED:
        values, splits = reader.integers(tensors[0], "values"), reader.integers(tensors[1], "offsets")
        given = reader.weights(tensors[2], "weights", (len(values),)) if form[0] & _WEIGHTS else None
        return reader.parts(values, splits, given, form[1], form[2:], bool(form[0] & _SINGLES))
    batch, rest = [], iter(tensors)
    for feature, code in enumerate(form):
        ids = next(rest)
        offsets = next(rest) if code & _OFFSETS else None
        weights = next(rest) if code & _WEIGHTS else None
        if code & _SINGLES:
            batch.append(reader.single(ids, feature) if offsets is None else reader.apart(ids, offsets, feature))
        else:
            batch.append(reader.bag(ids, offsets, weights, feature=feature, last_offset=bool(code & _LAST_OFFSET)))
    return batch


def _samples(tensors: Sequence[torch.Tensor], form: Sequence[int], features: int) -> list[Any]:
    """The number of samples of each feature, as far as shapes tell."""
    if form[0] & _KEYED:
        if form[0] & _SINGLES:  # how many ids are whose, only offsets tell
            return [torch.library.get_ctx().new_dynamic_size() for _ in range(features)]
        return [(tensors[1].shape[0] - 1) // form[1]] * features
    found, rest = [], iter(tensors)
    for code in form:
        ids = next(rest)
        bounds = next(rest).shape[0] if code & _OFFSETS else None
        if code & _WEIGHTS:
            next(rest)
        found.append(ids.shape[0] if bounds is None or code & _SINGLES else bounds - 1 if code & _LAST_OFFSET else bounds)
    return found


# The operators


# Schemas are written out: torch 2.4 infers none from annotations that are texts.
@torch.library.custom_op("embertable::look_up", mutates_args=(), schema=(
    "(Tensor probe, Tensor[] tensors, SymInt[] form, SymInt[] dims, SymInt module, bool record, SymInt call) -> Tensor[]"))
def compiled_look_up(probe: torch.Tensor, tensors: list[torch.Tensor], form: list[int], dims: list[int], module: int,
                     record: bool, call: int) -> list[torch.Tensor]:
    """Activations of each feature, and the number of the step."""
    return _owner(module).look_up_ticketed(tensors, lambda reader: _unpacked(reader, tensors, form), record, call)


@compiled_look_up.register_fake
def _(probe: torch.Tensor, tensors: list[torch.Tensor], form: list[int], dims: list[int], module: int, record: bool,
      call: int) -> list[torch.Tensor]:
    owner = _owner(module)
    if is_traced_for_backward():
        owner.note_made_again(call, is_checkpointed())
    device = owner.activations_device()
    rows = [torch.empty(samples, dim, dtype=torch.float32, device=device)
            for samples, dim in zip(_samples(tensors, form, len(dims)), dims)]
    return [*rows, torch.empty(1, dtype=torch.int64, device="cpu")]


@torch.library.custom_op("embertable::apply_gradients", mutates_args=(), schema=(
    "(Tensor step, Tensor[] gradients, SymInt module) -> Tensor"))
def _apply_gradients(step: torch.Tensor, gradients: list[torch.Tensor], module: int) -> torch.Tensor:
    """What torch takes for the gradient of the probe, so that it drops no call."""
    _owner(module).take_ticketed(int(step), gradients)
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
