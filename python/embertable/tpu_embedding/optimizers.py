"""The original's optimizers, with its arguments in its order."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import Initializer, Optimizer
from .config import RowSource

Rate = float | Callable[[], float] | Callable[[int], float]
Clip = float | tuple[float | None, float | None] | None
SlotFunction = Callable[..., Mapping[str, Any]]


class TableVariable:
    """A table for which slots are to be made: its name, its shape [rows, dim] and its dtype, but no values."""

    def __init__(self, name: str | None, shape: tuple[int, int]) -> None:
        self.name = name
        self.shape = shape
        self.dtype = np.dtype(np.float32)

    def __repr__(self) -> str:
        return f"TableVariable(name={self.name!r}, shape={self.shape}, dtype={self.dtype})"


class ConstantInitializer:
    """The first values that a rule has for a slot: a function of shape and dtype."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = np.float32, **kwargs: Any) -> np.ndarray:
        return np.full(tuple(shape), self.value, dtype)

    def __repr__(self) -> str:
        return f"ConstantInitializer({self.value})"


class SlotCreation:
    """The original's function of (table, slot names, initializers), which returns {slot: variable}, in our form: a function of
    (table, slot, row_wise) that returns an Initializer. A slot may also be an Initializer or a function of shape and dtype.
    """

    def __init__(self, function: SlotFunction, slots: list[tuple[str, bool, float]]) -> None:
        if not callable(function):
            raise ValueError(f"slot_variable_creation_fn must be callable, got {type(function).__name__}")
        self.function = function
        self.slots = slots
        self._made: Mapping[str, Any] = {}

    def __call__(self, table: Any, slot: str, row_wise: bool) -> Initializer:
        names = [name for name, _, _ in self.slots]
        if slot == names[0]:  # the first of a table
            variable = TableVariable(table.name, (table.vocabulary_size, table.dim))
            self._made = self.function(variable, names, [ConstantInitializer(value) for _, _, value in self.slots])
        if not isinstance(self._made, Mapping) or slot not in self._made:
            raise ValueError(f"table '{table.name}': slot_variable_creation_fn must return a dict that has '{slot}', got "
                             f"{self._made!r}")
        given = self._made[slot]
        if isinstance(given, Initializer):
            return given
        return Initializer.function(RowSource(given if callable(given) else _Values(given), f"table '{table.name}', slot '{slot}'"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotCreation) and self.function is other.function

    def __hash__(self) -> int:
        return hash(self.function)


class _Values:
    """A function of shape and dtype that gives an array which is there."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __call__(self, shape: Any, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(self.values, dtype)


class _OriginalOptimizer(Optimizer):
    """Hands the original's arguments on to the rule; None means that an option is not used."""

    __slots__ = ()

    def __init__(self, rule: str, learning_rate: Rate, parameters: dict[str, Any], use_gradient_accumulation: bool,
                 clip_weight_min: float | None, clip_weight_max: float | None, weight_decay_factor: float | None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None, clipvalue: Clip,
                 low_dimensional_packing_status: bool, slot_variable_creation_fn: SlotFunction | None = None) -> None:
        options: dict[str, Any] = dict(
            use_gradient_accumulation=use_gradient_accumulation, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
            weight_decay_factor=weight_decay_factor,
            multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate, clipvalue=clipvalue,
            low_dimensional_packing_status=low_dimensional_packing_status)
        given = {name: value for name, value in options.items() if value is not None}
        if slot_variable_creation_fn is not None:
            slots = Optimizer(rule, 1.0, **parameters).slots
            given["slot_variable_creation_fn"] = SlotCreation(slot_variable_creation_fn, slots)
        super().__init__(rule, learning_rate, **parameters, **given)

    @property
    def slot_variable_creation_fn(self) -> SlotFunction | None:
        """The function that was given for it."""
        creation = self.options.get("slot_variable_creation_fn")
        return creation.function if isinstance(creation, SlotCreation) else creation


class SGD(_OriginalOptimizer):
    """Stochastic gradient descent: row -= learning_rate * gradient. Arguments are those of the original.

    learning_rate: a number, or a function that is asked once per step. use_gradient_accumulation: sums the gradients of a
    row before its step. clipvalue: c for -c and c, or a pair, limits the summed gradient; clip_weight_min, clip_weight_max
    limit the row after its step; weight_decay_factor, times the rate with multiply_weight_decay_factor_by_learning_rate,
    shrinks it before. low_dimensional_packing_status is kept, without effect. Raises ValueError for values that are not
    allowed.

    >>> tpu.SGD(0.1, clipvalue=(-1.0, 1.0)).clip_gradient_max
    1.0
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, use_gradient_accumulation: bool = True,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None, clipvalue: Clip = None,
                 low_dimensional_packing_status: bool = False) -> None:
        super().__init__("sgd", learning_rate, {},
                         use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, low_dimensional_packing_status)


class Adagrad(_OriginalOptimizer):
    """Adagrad: accumulator += gradient²; row -= learning_rate * gradient / sqrt(accumulator).

    initial_accumulator_value: the first value of the accumulators, > 0. slot_variable_creation_fn(table, slot_names,
    slot_initializers) returns {slot: first values}: an array or variable of the table's shape, a function of shape and dtype,
    or an Initializer. The other arguments are those of SGD.

    >>> tpu.Adagrad(0.1, initial_accumulator_value=0.5).initial_accumulator_value
    0.5
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, initial_accumulator_value: float = 0.1,
                 use_gradient_accumulation: bool = True, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None,
                 slot_variable_creation_fn: SlotFunction | None = None, clipvalue: Clip = None,
                 low_dimensional_packing_status: bool = False) -> None:
        super().__init__("adagrad", learning_rate, dict(initial_accumulator_value=initial_accumulator_value),
                         use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, low_dimensional_packing_status,
                         slot_variable_creation_fn)


class AdagradMomentum(_OriginalOptimizer):
    """Adagrad with momentum.

    momentum: share of the last update; use_nesterov: looks one step ahead; exponent: of the accumulator, > 0; beta2: 1 sums
    squares, below 1 averages them; epsilon: is added to the accumulator, > 0. The other arguments are those of Adagrad.

    >>> tpu.AdagradMomentum(0.1, momentum=0.9).momentum
    0.9
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, momentum: float = 0.0, use_nesterov: bool = False,
                 exponent: float = 2, beta2: float = 1, epsilon: float = 1e-10,
                 use_gradient_accumulation: bool = True, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None,
                 slot_variable_creation_fn: SlotFunction | None = None, clipvalue: Clip = None,
                 low_dimensional_packing_status: bool = False) -> None:
        super().__init__("adagrad_momentum", learning_rate, dict(
            momentum=momentum, use_nesterov=use_nesterov, exponent=exponent, beta2=beta2, epsilon=epsilon),
                         use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, low_dimensional_packing_status,
                         slot_variable_creation_fn)


class FTRL(_OriginalOptimizer):
    """Follow the regularized leader, the proximal form.

    learning_rate_power: <= 0, -0.5 for a square root; l1_regularization_strength, l2_regularization_strength, beta: >= 0;
    initial_accumulator_value: > 0, or 0 with allow_zero_accumulator; multiply_linear_by_learning_rate: keeps the linear slot
    multiplied by the rate. The other arguments are those of Adagrad.

    >>> tpu.FTRL(0.1, l1_regularization_strength=0.01).l1_regularization_strength
    0.01
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, learning_rate_power: float = -0.5,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0, beta: float = 0.0,
                 initial_accumulator_value: float = 0.1, use_gradient_accumulation: bool = True,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None,
                 slot_variable_creation_fn: SlotFunction | None = None, clipvalue: Clip = None,
                 multiply_linear_by_learning_rate: bool = False, allow_zero_accumulator: bool = False,
                 low_dimensional_packing_status: bool = False) -> None:
        super().__init__("ftrl", learning_rate, dict(
            learning_rate_power=learning_rate_power, l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength, beta=beta,
            initial_accumulator_value=initial_accumulator_value,
            multiply_linear_by_learning_rate=multiply_linear_by_learning_rate,
            allow_zero_accumulator=allow_zero_accumulator),
                         use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, low_dimensional_packing_status,
                         slot_variable_creation_fn)


class Adam(_OriginalOptimizer):
    """Adam without bias correction.

    beta_1, beta_2: decay of the moments, in [0, 1); epsilon: > 0; lazy_adam: rows that no batch names stay as they are (False:
    their moments decay and move them, which needs use_gradient_accumulation); sum_inside_sqrt: divides by
    sqrt(v + epsilon²) instead of sqrt(v) + epsilon. The other arguments are those of Adagrad.

    >>> tpu.Adam(0.1).beta_2
    0.999
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-07,
                 lazy_adam: bool = True, sum_inside_sqrt: bool = True, use_gradient_accumulation: bool = True,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None,
                 slot_variable_creation_fn: SlotFunction | None = None, clipvalue: Clip = None,
                 low_dimensional_packing_status: bool = False) -> None:
        super().__init__("adam", learning_rate, dict(
            beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, lazy_adam=lazy_adam, sum_inside_sqrt=sum_inside_sqrt),
                         use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, low_dimensional_packing_status,
                         slot_variable_creation_fn)
