"""The optimizer of a module's tables, beside the trainer's optimizer of the dense parameters."""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .._arguments import require_kind, whole_number
from .._core import Optimizer
from ..steps import Steps
from . import ranks

__all__ = ["TableOptimizer"]

_MOST_DROPPED = 10  # lookups in a row whose gradients may be dropped without a word


class Rate:
    """A learning rate that the engine asks for once a step."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.base = float(optimizer.learning_rate)  # type: ignore[arg-type]
        self.factor: Callable[[], float] = _one

    def __call__(self) -> float:
        return self.base * self.factor()

    def require(self, base: Any) -> None:
        """Raises TypeError or ValueError for what the optimizer's rule does not take."""
        try:
            float(base)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"learning_rate must be a number, got {base!r}") from None
        self._optimizer.with_learning_rate(base)


def _one() -> float:
    return 1.0


class Rates:
    """Optimizers of tables with rates that can change; the same optimizer keeps one rate."""

    def __init__(self) -> None:
        self.by_table: dict[str, Rate] = {}
        self.fixed: set[str] = set()  # tables whose rate is the caller's function
        self._made: dict[int, tuple[Optimizer, Optimizer, Rate | None]] = {}

    def of(self, table: str, optimizer: Optimizer) -> Optimizer:
        if id(optimizer) not in self._made:
            if optimizer.rule == "slots_only":
                raise ValueError(f"table '{table}': optimizer must have a rule that steps rows, got slots_only")
            if callable(optimizer.learning_rate):
                self._made[id(optimizer)] = (optimizer, optimizer, None)
            else:
                own = Rate(optimizer)
                self._made[id(optimizer)] = (optimizer, optimizer.with_learning_rate(own), own)
        _, made, own_rate = self._made[id(optimizer)]
        if own_rate is None:
            self.fixed.add(table)
        else:
            self.by_table[table] = own_rate
        return made


class TableOptimizer:
    """What applies gradients to the tables of one module: the rate, and the moment.

    By default every lookup is a step of the tables, at its backward. After `step_with(optimizer)` gradients wait for that optimizer.
    """

    def __init__(self, rates: Rates, steps: Steps, processes: int, settle: Callable[[], None]) -> None:
        """processes: of the exchange. settle: applies gradients on their way."""
        self._rates, self._steps, self._processes, self._settle = rates, steps, processes, settle
        self._scaler: Any = None
        self._leader: weakref.ref[torch.optim.Optimizer] | None = None
        self._dropped = 0  # times in a row that gradients waited in vain
        self._beside_dense = False  # what waits came with gradients of the optimizer's parameters

    # Rates

    @property
    def learning_rate(self) -> float:
        """The rate of the next step. Setting it ends `follow`. Tables with rates of their own: see `learning_rates`."""
        found = set(self.learning_rates.values())
        if len(found) != 1:
            raise RuntimeError(f"{self._steps.name}: the tables have {len(found)} rates, see learning_rates" if found else
                               f"{self._steps.name}: the rate is a function of the caller's")
        return found.pop()

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if not self._rates.by_table:
            raise RuntimeError(f"{self._steps.name}: the rate is a function of the caller's, and cannot be set")
        try:
            self.require_rates(dict.fromkeys(self._rates.by_table, rate))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self._steps.name}: {error}") from None
        for one in self._rates.by_table.values():
            one.base, one.factor = float(rate), _one

    @property
    def learning_rates(self) -> dict[str, float]:
        """By table; without tables whose rate is a function of the caller's."""
        return {table: rate() for table, rate in self._rates.by_table.items()}

    def follow(self, leader: Any, group: int = 0) -> None:
        """From now on the rates change as that of a torch optimizer, or of a scheduler's optimizer, does: by the same factor.

        The factor is the group's rate divided by the one that its schedule began with, or by the one that it has now.
        """
        optimizer = getattr(leader, "optimizer", leader)
        groups = getattr(optimizer, "param_groups", None)
        if not isinstance(groups, list):
            raise TypeError(f"{self._steps.name}: follow takes a torch.optim.Optimizer or a torch.optim.lr_scheduler, got "
                            f"{type(leader).__name__}")
        group = whole_number(self._steps.name, "group", group)
        if not 0 <= group < len(groups):
            raise ValueError(f"{self._steps.name}: the optimizer has {len(groups)} groups, group must be one of them, got {group}")
        if self._rates.fixed:
            raise RuntimeError(f"{self._steps.name}: the rate of table '{sorted(self._rates.fixed)[0]}' is a function of the "
                               "caller's; give a number, and follow the scheduler")
        own = groups[group] if isinstance(groups[group], Mapping) else {}
        if "lr" not in own:
            raise TypeError(f"{self._steps.name}: follow takes an optimizer whose groups have a rate 'lr', group {group} has none")
        first = float(own.get("initial_lr", own["lr"]))
        if not 0 < first < math.inf:
            raise ValueError(f"{self._steps.name}: the optimizer's rate must begin with a finite number > 0, which has a factor to follow, "
                             f"got {first:g}")

        def factor() -> float:
            return float(optimizer.param_groups[group]["lr"]) / first

        for rate in self._rates.by_table.values():
            rate.factor = factor

    # The moment

    def step_with(self, optimizer: Any, scaler: Any = None) -> None:
        """Gradients wait, and add up over several backwards, until `optimizer.step()`; `optimizer.zero_grad()` drops them.

        The tables step first: after an error, neither they nor the optimizer's parameters have changed, and the gradients
        wait. Several modules that step with one optimizer do so one after the other: those before the one that fails have
        stepped. With a closure, which brings the gradients, they step last. With a `torch.amp.GradScaler` gradients are divided
        by its scale; a step that it skips changes no table.
        """
        name = self._steps.name
        optimizer = _unwrapped(optimizer)
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"{name}: step_with takes a torch.optim.Optimizer, got {type(optimizer).__name__}")
        if self._leader is not None and self._leader() is not None:
            raise RuntimeError(f"{name}: step_with was called before; the tables step with one optimizer")
        if scaler is not None and not callable(getattr(scaler, "get_scale", None)):
            raise TypeError(f"{name}: scaler must be a torch.amp.GradScaler, got {type(scaler).__name__}")
        if scaler is not None:
            ranks.require_all(self._processes, f"{name}: step_with with a scaler")
        self.zero_grad()  # what waits for an optimizer that is gone
        self._leader, self._scaler = weakref.ref(optimizer), scaler
        self._steps.deferred = True
        _Led.by(optimizer).add(self)
        if scaler is not None:
            _Scaled.by(scaler).add(self)

    def _step_beside(self, leader: torch.optim.Optimizer) -> None:
        found = getattr(leader, "found_inf", None)  # of a scaler that leaves it to the optimizer to skip
        if found is not None and float(found) > 0:
            self.zero_grad()
        else:
            self.step()

    def step(self) -> None:
        """Applies the gradients that wait; the optimizer of `step_with` calls it.

        Drops them if the dense gradients that came with them are gone: `zero_grad()` of a model reaches parameters alone.
        """
        self._settle()
        if self._processes == 1 and self._lost_dense_gradients():  # several processes agree at the next lookup
            self._steps.drop()
        scaled = self._scaler is not None and self._scaler.is_enabled()
        scale = float(self._scaler.get_scale()) if scaled else 1.0
        if not self._steps.commit(1.0 / scale, may_overflow=scaled):
            _Scaled.by(self._scaler).overflowed = True
        self._beside_dense = False
        self._dropped = 0

    def zero_grad(self) -> None:
        """Drops the gradients that wait."""
        self._settle()
        self._beside_dense = False
        self._steps.drop()

    def before_lookup(self) -> None:
        """Drops what waits if the dense gradients that came with it are gone, as in `step`; warns where that comes again and again."""
        # Processes decide together: those that went on with other gradients than the rest could not step.
        if self._steps.waiting and self._steps.any_of(self._lost_dense_gradients()):
            self._beside_dense = False
            self._steps.drop()
            self._dropped += 1
            if self._dropped == _MOST_DROPPED:
                warnings.warn(f"{self._steps.name}: the gradients of {_MOST_DROPPED} lookups in a row were dropped, as those of the "
                              "optimizer that was given to step_with were, which has not stepped: rows do not change", stacklevel=4)

    def _lost_dense_gradients(self) -> bool:
        return self._beside_dense and not self._has_dense_gradients()

    def note_gradients(self) -> None:
        """Backward has come to the tables: looks whether gradients that will wait come with dense ones.

        Raises RuntimeError where the optimizer that would apply them is gone.
        """
        if self._leader is not None and self._leader() is None:
            raise RuntimeError(f"{self._steps.name}: the optimizer that was given to step_with is gone, and gradients would wait for "
                               "ever: call optimizer.step_with again, with the one that steps now")
        if self._leader is not None and not self._beside_dense:
            self._beside_dense = self._has_dense_gradients()

    def _has_dense_gradients(self) -> bool:
        leader = None if self._leader is None else self._leader()
        return leader is not None and any(one.grad is not None for group in leader.param_groups for one in group["params"])

    @property
    def skipped_steps(self) -> int:
        """Steps whose gradients were dropped."""
        return self._steps.skipped

    def require_rates(self, rates: Mapping[str, Any]) -> None:
        """Raises TypeError or ValueError for a rate that the rule of its table does not take."""
        require_kind(self._steps.name, "learning rates", rates, Mapping, "a dict by table")
        for table, rate in rates.items():
            if table in self._rates.by_table:
                self._rates.by_table[table].require(rate)

    def state(self) -> dict[str, float]:
        return {table: rate.base for table, rate in self._rates.by_table.items()}

    def following(self) -> list[str]:
        """Tables whose rates follow a torch optimizer's."""
        return sorted(table for table, rate in self._rates.by_table.items() if rate.factor is not _one)

    def load_state(self, state: Mapping[str, float], following: Sequence[str] | None = None) -> None:
        """Takes rates by table. Those that followed no other when they were saved end `follow`, None for unknown."""
        self.require_rates(state)
        for table, base in state.items():
            if table in self._rates.by_table:
                rate = self._rates.by_table[table]
                rate.base = float(base)
                if following is not None and table not in following:
                    rate.factor = _one


class _Tables:
    """The tables that go with one optimizer or scaler, in the order of their calls of `step_with`, as far as they live."""

    def __init__(self) -> None:
        self._all: list[weakref.ref[TableOptimizer]] = []

    def add(self, tables: TableOptimizer) -> None:
        self._all.append(weakref.ref(tables))

    def led_by(self, optimizer: Any) -> list[TableOptimizer]:
        self._all = [one for one in self._all if one() is not None]
        found = [one() for one in self._all]
        return [one for one in found if one is not None and one._leader is not None and one._leader() is optimizer]


class _Led(_Tables):
    """The method `zero_grad` of an optimizer with whose steps tables step."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        super().__init__()
        self._optimizer = weakref.ref(optimizer)  # no cycle: whether it is gone is known at once
        self._zero_grad = vars(optimizer).get("zero_grad")
        optimizer.register_step_pre_hook(self._before_step)
        optimizer.register_step_post_hook(self._after_step)

    @classmethod
    def by(cls, optimizer: torch.optim.Optimizer) -> _Led:
        found = vars(optimizer).get("zero_grad")
        if not isinstance(found, cls):
            found = cls(optimizer)
            optimizer.zero_grad = found  # type: ignore[method-assign]
        return found

    def __call__(self, *arguments: Any, **named: Any) -> None:
        optimizer = self._optimizer()
        for one in self.led_by(optimizer):
            one.zero_grad()
        if self._zero_grad is not None:
            self._zero_grad(*arguments, **named)
        elif optimizer is not None:
            type(optimizer).zero_grad(optimizer, *arguments, **named)

    def _before_step(self, stepped: torch.optim.Optimizer, arguments: Any, named: Any) -> None:
        if not _has_closure(*arguments[1:], **named):
            self._step(stepped)

    def _after_step(self, stepped: torch.optim.Optimizer, arguments: Any, named: Any) -> None:
        if _has_closure(*arguments[1:], **named):
            self._step(stepped)

    def _step(self, stepped: torch.optim.Optimizer) -> None:
        for one in self.led_by(stepped):
            one._step_beside(stepped)


class _Scaled(_Tables):
    """The methods `step` and `update` of a scaler: what still waits after a step has been skipped, and a gradient of tables alone
    that was infinite, which the scaler has not seen, lowers the scale as one of its own does."""

    def __init__(self, scaler: Any) -> None:
        super().__init__()
        self.overflowed = False
        self._scaler, self._step, self._update = scaler, scaler.step, scaler.update

    @classmethod
    def by(cls, scaler: Any) -> _Scaled:
        found = vars(scaler).get("step")
        if not isinstance(found, _ScalersMethod):
            made = cls(scaler)
            scaler.step, scaler.update = _ScalersMethod(made, "step"), _ScalersMethod(made, "update")
            return made
        return found.of

    def step(self, stepped: Any, *arguments: Any, **named: Any) -> Any:
        result = self._step(stepped, *arguments, **named)
        for one in self.led_by(_unwrapped(stepped)):
            one.zero_grad()
        return result

    def update(self, *arguments: Any, **named: Any) -> None:
        overflowed, self.overflowed = self.overflowed, False
        before = self._scaler.get_scale() if overflowed else 0.0
        self._update(*arguments, **named)
        if overflowed and self._scaler.get_scale() >= before:
            self._update(before * self._scaler.get_backoff_factor())


class _ScalersMethod:
    """Stands in a scaler for a method of its own. Copies of the scaler have the method of their class."""

    def __init__(self, of: _Scaled, name: str) -> None:
        self.of, self._name = of, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(self.of, self._name)(*arguments, **named)

    def __reduce__(self) -> Any:
        return getattr, (self.of._scaler, self._name)


def _has_closure(closure: Any = None, *_: Any, **__: Any) -> bool:
    return callable(closure)


def _unwrapped(optimizer: Any) -> Any:
    """The optimizer of torch behind those of Accelerate and Lightning."""
    while not isinstance(optimizer, torch.optim.Optimizer) or type(optimizer).__name__ == "AcceleratedOptimizer":
        inner = getattr(optimizer, "optimizer", None)
        if inner is None or inner is optimizer:
            break
        optimizer = inner
    return optimizer
