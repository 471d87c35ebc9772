"""A class for each rule, with the parameters and defaults of the registry.

python/generate_optimizers.py writes this file. Formulas are those of docs/optimizers.md: w is the row, g its gradient, lr the
learning rate.
"""

from collections.abc import Callable
from typing import Any, Literal

from . import Initializer, Optimizer

Rate = float | Callable[[], float] | Callable[[int], float]
Clip = float | tuple[float | None, float | None] | None
SlotFunction = Callable[[Any, str, bool], Initializer]


class Adadelta(Optimizer):
    """The rule 'adadelta': a = rho*a + (1-rho)*g²; u = sqrt(d + epsilon) / sqrt(a + epsilon) * g; w = w - lr*u; d = rho*d
    + (1-rho)*u².

    Slots: accumulators, first 0; updates, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: rho (in [0, 1]; 0.95), epsilon (> 0; 1e-07).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.Adadelta(0.1).rule
    'adadelta'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, rho: float = 0.95, epsilon: float = 1e-07, *,
                 clipvalue: Clip = None, clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("adadelta", learning_rate, rho=rho, epsilon=epsilon, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class Adagrad(Optimizer):
    """The rule 'adagrad': a = a + g²; w = w - lr*g / sqrt(a); 0 / 0 is 0.

    Slots: accumulators, first 0.1.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: initial_accumulator_value (> 0; 0.1).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.Adagrad(0.1).rule
    'adagrad'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, initial_accumulator_value: float = 0.1, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("adagrad", learning_rate, initial_accumulator_value=initial_accumulator_value,
                         clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class AdagradMomentum(Optimizer):
    """The rule 'adagrad_momentum': a = a + g², or beta2*a + (1-beta2)*g² if beta2 is not 1; q = g / (a +
    epsilon)^(1/exponent); m = momentum*m + q; w = w - lr*m, or lr*(momentum*m + q) with use_nesterov.

    Slots: accumulators, first 0; momenta, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: momentum (>= 0; 0.0), use_nesterov (true or false; False), exponent (> 0; 2.0), beta2
    (in [0, 1]; 1.0), epsilon (> 0; 1e-10).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.AdagradMomentum(0.1).rule
    'adagrad_momentum'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, momentum: float = 0.0, use_nesterov: bool = False,
                 exponent: float = 2.0, beta2: float = 1.0, epsilon: float = 1e-10, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("adagrad_momentum", learning_rate, momentum=momentum, use_nesterov=use_nesterov,
                         exponent=exponent, beta2=beta2, epsilon=epsilon, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class Adam(Optimizer):
    """The rule 'adam': m = beta_1*m + (1-beta_1)*g; v = beta_2*v + (1-beta_2)*g²; w = w - lr*m / sqrt(v + epsilon²), or /
    (sqrt(v) + epsilon) without sum_inside_sqrt; no bias correction; not lazy: every row, with g = 0 where no id names
    it.

    Slots: momenta, first 0; velocities, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: beta_1 (in [0, 1); 0.9), beta_2 (in [0, 1); 0.999), epsilon (> 0; 1e-07), lazy_adam
    (true or false; True), sum_inside_sqrt (true or false; True).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.Adam(0.1).rule
    'adam'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-07,
                 lazy_adam: bool = True, sum_inside_sqrt: bool = True, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("adam", learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, lazy_adam=lazy_adam,
                         sum_inside_sqrt=sum_inside_sqrt, clipvalue=clipvalue, clip_weight_min=clip_weight_min,
                         clip_weight_max=clip_weight_max, weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class AdamW(Optimizer):
    """The rule 'adamw': m, v as adam; w = w - lr*(mh / (sqrt(vh) + epsilon) + weight_decay*w), mh = m / (1-beta1^t), vh =
    v / (1-beta2^t); t counts the table's steps, with use_rowwise_bias_correction the row's own, in a slot row_counters,
    one number a row.

    Slots: momenta, first 0; velocities, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: beta1 (in [0, 1); 0.9), beta2 (in [0, 1); 0.999), epsilon (> 0; 1e-08), weight_decay (>=
    0; 0.0), use_rowwise_bias_correction (true or false; False).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.AdamW(0.1).rule
    'adamw'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08,
                 weight_decay: float = 0.0, use_rowwise_bias_correction: bool = False, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("adamw", learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay,
                         use_rowwise_bias_correction=use_rowwise_bias_correction, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class Assign(Optimizer):
    """The rule 'assign': w = g.

    Slots: none.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.0.

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.Assign(0.1).rule
    'assign'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool = False, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("assign", learning_rate, clipvalue=clipvalue, clip_weight_min=clip_weight_min,
                         clip_weight_max=clip_weight_max, weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class BoundedAdagrad(Optimizer):
    """The rule 'bounded_adagrad': n = a + g², at most max_accumulator if that is > 0; u = lr*g / sqrt(a), or of n with
    update_accumulator_first, within ±max_var_update if that is > 0; a = n; w = w - u.

    Slots: accumulators, first 0.1.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: update_accumulator_first (true or false; False), max_var_update (>= 0; 0.0),
    max_accumulator (>= 0; 0.0), initial_accumulator_value (> 0; 0.1).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.BoundedAdagrad(0.1).rule
    'bounded_adagrad'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, update_accumulator_first: bool = False,
                 max_var_update: float = 0.0, max_accumulator: float = 0.0, initial_accumulator_value: float = 0.1, *,
                 clipvalue: Clip = None, clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("bounded_adagrad", learning_rate, update_accumulator_first=update_accumulator_first,
                         max_var_update=max_var_update, max_accumulator=max_accumulator,
                         initial_accumulator_value=initial_accumulator_value, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class CenteredRMSProp(Optimizer):
    """The rule 'centered_rms_prop': as rms_prop; mg = rho*mg + (1-rho)*g; sqrt(max(ms - mg², 0) + epsilon).

    Slots: ms, first 0; mom, first 0; mg, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: rho (in [0, 1]; 0.9), momentum (in [0, 1); 0.0), epsilon (> 0; 1e-07).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.CenteredRMSProp(0.1).rule
    'centered_rms_prop'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-07, *,
                 clipvalue: Clip = None, clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("centered_rms_prop", learning_rate, rho=rho, momentum=momentum, epsilon=epsilon,
                         clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class FrequencyAwareAdagrad(Optimizer):
    """The rule 'frequency_aware_adagrad': c = c + 1; a = max(accumulator_decay*a + g², initial_accumulator_value); s =
    min((max(step_counter, 1) / c)^probability_exponent, max_lr_multiplier); w = w - lr*(s*g / sqrt(a) + l1*sign(w) +
    l2*w).

    Slots: accumulators, first 0.1; counters, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: l1_regularization_strength (>= 0; 0.0), l2_regularization_strength (>= 0; 0.0),
    max_lr_multiplier (> 0; 100.0), probability_exponent (>= 0; 0.5), accumulator_decay (in [0, 1]; 1.0),
    initial_accumulator_value (> 0; 0.1).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.FrequencyAwareAdagrad(0.1).rule
    'frequency_aware_adagrad'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0, max_lr_multiplier: float = 100.0,
                 probability_exponent: float = 0.5, accumulator_decay: float = 1.0,
                 initial_accumulator_value: float = 0.1, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("frequency_aware_adagrad", learning_rate,
                         l1_regularization_strength=l1_regularization_strength,
                         l2_regularization_strength=l2_regularization_strength, max_lr_multiplier=max_lr_multiplier,
                         probability_exponent=probability_exponent, accumulator_decay=accumulator_decay,
                         initial_accumulator_value=initial_accumulator_value, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class FrequencyEstimator(Optimizer):
    """The rule 'frequency_estimator': dim 1; the rate is the global step s, the gradient is not used: d = s - last; c =
    min(d, max_delta); w = c if d >= outlier_threshold*w, else (1-tau)*w + tau*c; last = s.

    Slots: last_hit_step, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 1.0. Parameters: tau (in (0, 1); 0.01), max_delta (> 0; 1000000.0), outlier_threshold (>= 0; 100.0),
    weight_exponent (finite; 1.0).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.FrequencyEstimator(0.1).rule
    'frequency_estimator'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 1.0, tau: float = 0.01, max_delta: float = 1000000.0,
                 outlier_threshold: float = 100.0, weight_exponent: float = 1.0, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("frequency_estimator", learning_rate, tau=tau, max_delta=max_delta,
                         outlier_threshold=outlier_threshold, weight_exponent=weight_exponent, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class FTRL(Optimizer):
    """The rule 'ftrl': p = -learning_rate_power; n' = n + g²; z = z + g - (n'^p - n^p)/lr*w; w = (clamp(z, ±l1) - z) /
    ((n'^p + beta)/lr + 2*l2); multiplied by the rate: z = z + lr*g - (n'^p - n^p)*w, ±lr*l1, n'^p + 2*lr*l2 + beta; 0 /
    D is 0.

    Slots: accumulators, first 0.1; linears, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: learning_rate_power (<= 0; -0.5), l1_regularization_strength (>= 0; 0.0),
    l2_regularization_strength (>= 0; 0.0), beta (>= 0; 0.0), initial_accumulator_value (>= 0; 0.1),
    multiply_linear_by_learning_rate (true or false; False), allow_zero_accumulator (true or false; False).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.FTRL(0.1).rule
    'ftrl'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, learning_rate_power: float = -0.5,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0, beta: float = 0.0,
                 initial_accumulator_value: float = 0.1, multiply_linear_by_learning_rate: bool = False,
                 allow_zero_accumulator: bool = False, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool = False, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("ftrl", learning_rate, learning_rate_power=learning_rate_power,
                         l1_regularization_strength=l1_regularization_strength,
                         l2_regularization_strength=l2_regularization_strength, beta=beta,
                         initial_accumulator_value=initial_accumulator_value,
                         multiply_linear_by_learning_rate=multiply_linear_by_learning_rate,
                         allow_zero_accumulator=allow_zero_accumulator, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class LAMB(Optimizer):
    """The rule 'lamb': x = mh / (sqrt(vh) + epsilon) + weight_decay*w as adamw; w = w - lr*norm(w)/norm(x)*x; a row of
    zeros stays.

    Slots: momenta, first 0; velocities, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: beta1 (in [0, 1); 0.9), beta2 (in [0, 1); 0.999), epsilon (> 0; 1e-08), weight_decay (>=
    0; 0.0).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.LAMB(0.1).rule
    'lamb'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08,
                 weight_decay: float = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("lamb", learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay,
                         clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class LarsSGD(Optimizer):
    """The rule 'lars_sgd': m = momentum*m + lr*eta*norm(w) / (norm(g) + weight_decay*norm(w)) * (g + weight_decay*w); w =
    w - m.

    Slots: momenta, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: momentum (in [0, 1); 0.9), eta (>= 0; 0.001), weight_decay (>= 0; 0.0).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.LarsSGD(0.1).rule
    'lars_sgd'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, momentum: float = 0.9, eta: float = 0.001,
                 weight_decay: float = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("lars_sgd", learning_rate, momentum=momentum, eta=eta, weight_decay=weight_decay,
                         clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class Lion(Optimizer):
    """The rule 'lion': w = w - lr*sign(beta1*m + (1-beta1)*g); m = beta2*m + (1-beta2)*g; not lazy as adam.

    Slots: momenta, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: beta1 (in [0, 1); 0.9), beta2 (in [0, 1); 0.99), use_non_lazy_lion (true or false;
    False).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.Lion(0.1).rule
    'lion'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, beta1: float = 0.9, beta2: float = 0.99,
                 use_non_lazy_lion: bool = False, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool = False, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("lion", learning_rate, beta1=beta1, beta2=beta2, use_non_lazy_lion=use_non_lazy_lion,
                         clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class MDLAdagradLight(Optimizer):
    """The rule 'mdl_adagrad_light': a = a + g²; x = x - lr*g*a^lr_power on the slot weights; w = x; everything that has to
    do with benefits is refused.

    Slots: accumulators, first 0.1; weights, first 0; benefits, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: l2 (finite; 0.0), lr_power (<= 0; -0.5), min_servable_mdl_benefit (finite; 0.0),
    mdl_mix_in_margin (finite; 0.0), mdl_benefit_rampup_coeff (finite; 0.0), mdl_min_weight (finite; 0.0),
    benefit_revisit_scale (finite; 0.0), max_event_benefit (finite; 0.0), max_total_benefit (finite; 0.0),
    mdl_hard_limit (finite; 0.0), hard_limit_min_benefit (true or false; False), mdl_regularize (true or false; False),
    initial_accumulator_value (> 0; 0.1).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.MDLAdagradLight(0.1).rule
    'mdl_adagrad_light'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, l2: float = 0.0, lr_power: float = -0.5,
                 min_servable_mdl_benefit: float = 0.0, mdl_mix_in_margin: float = 0.0,
                 mdl_benefit_rampup_coeff: float = 0.0, mdl_min_weight: float = 0.0,
                 benefit_revisit_scale: float = 0.0, max_event_benefit: float = 0.0, max_total_benefit: float = 0.0,
                 mdl_hard_limit: float = 0.0, hard_limit_min_benefit: bool = False, mdl_regularize: bool = False,
                 initial_accumulator_value: float = 0.1, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("mdl_adagrad_light", learning_rate, l2=l2, lr_power=lr_power,
                         min_servable_mdl_benefit=min_servable_mdl_benefit, mdl_mix_in_margin=mdl_mix_in_margin,
                         mdl_benefit_rampup_coeff=mdl_benefit_rampup_coeff, mdl_min_weight=mdl_min_weight,
                         benefit_revisit_scale=benefit_revisit_scale, max_event_benefit=max_event_benefit,
                         max_total_benefit=max_total_benefit, mdl_hard_limit=mdl_hard_limit,
                         hard_limit_min_benefit=hard_limit_min_benefit, mdl_regularize=mdl_regularize,
                         initial_accumulator_value=initial_accumulator_value, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class Momentum(Optimizer):
    """The rule 'momentum': m = momentum*m + g; w = w - lr*m, or - lr*(g + momentum*m) with use_nesterov.

    Slots: momenta, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: momentum (in [0, 1); 0.9), use_nesterov (true or false; False).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.Momentum(0.1).rule
    'momentum'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, momentum: float = 0.9, use_nesterov: bool = False, *,
                 clipvalue: Clip = None, clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("momentum", learning_rate, momentum=momentum, use_nesterov=use_nesterov, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class NoUpdate(Optimizer):
    """The rule 'none': nothing changes; the caller receives the rows and their summed gradients.

    Slots: none.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.0.

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.NoUpdate(0.1).rule
    'none'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool = False, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("none", learning_rate, clipvalue=clipvalue, clip_weight_min=clip_weight_min,
                         clip_weight_max=clip_weight_max, weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class OnlineYogi(Optimizer):
    """The rule 'online_yogi': v' = v ± (1-beta2)*g², + where g² >= v; z = z + g - (sqrt(v') - sqrt(v))/lr*w; w = (clamp(z,
    ±l1) - z) / (sqrt(v')/lr + 2*l2).

    Slots: vs, first 0.1; linears, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: l1 (>= 0; 0.0), l2 (>= 0; 0.0), beta2 (in [0, 1); 0.999), initial_accumulator_value (>
    0; 0.1).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.OnlineYogi(0.1).rule
    'online_yogi'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, l1: float = 0.0, l2: float = 0.0, beta2: float = 0.999,
                 initial_accumulator_value: float = 0.1, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("online_yogi", learning_rate, l1=l1, l2=l2, beta2=beta2,
                         initial_accumulator_value=initial_accumulator_value, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class PartialRowwiseAdam(Optimizer):
    """The rule 'partial_rowwise_adam': as adamw, with v = beta2*v + (1-beta2)*mean(g²).

    Slots: momenta, first 0; velocities, first 0 for each row.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: beta1 (in [0, 1); 0.9), beta2 (in [0, 1); 0.999), epsilon (> 0; 1e-08), weight_decay (>=
    0; 0.0).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.PartialRowwiseAdam(0.1).rule
    'partial_rowwise_adam'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08,
                 weight_decay: float = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("partial_rowwise_adam", learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
                         weight_decay=weight_decay, clipvalue=clipvalue, clip_weight_min=clip_weight_min,
                         clip_weight_max=clip_weight_max, use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class PartialRowwiseLAMB(Optimizer):
    """The rule 'partial_rowwise_lamb': as lamb, with v of partial_rowwise_adam.

    Slots: momenta, first 0; velocities, first 0 for each row.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: beta1 (in [0, 1); 0.9), beta2 (in [0, 1); 0.999), epsilon (> 0; 1e-08), weight_decay (>=
    0; 0.0).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.PartialRowwiseLAMB(0.1).rule
    'partial_rowwise_lamb'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08,
                 weight_decay: float = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("partial_rowwise_lamb", learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
                         weight_decay=weight_decay, clipvalue=clipvalue, clip_weight_min=clip_weight_min,
                         clip_weight_max=clip_weight_max, use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class ProximalAdagrad(Optimizer):
    """The rule 'proximal_adagrad': a = a + g²; e = lr / sqrt(a); x = w - e*g; w = sign(x)*max(abs(x) - e*l1, 0) / (1 +
    l2*e).

    Slots: accumulators, first 0.1.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: initial_accumulator_value (> 0; 0.1), l1 (>= 0; 0.0), l2 (>= 0; 0.0).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.ProximalAdagrad(0.1).rule
    'proximal_adagrad'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, initial_accumulator_value: float = 0.1, l1: float = 0.0,
                 l2: float = 0.0, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool = False, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("proximal_adagrad", learning_rate, initial_accumulator_value=initial_accumulator_value, l1=l1,
                         l2=l2, clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class ProximalYogi(Optimizer):
    """The rule 'proximal_yogi': m = beta1*m + (1-beta1)*g; v = v + (1-beta2)*sign(g² - v)*g²; e = lr / (sqrt(v) +
    epsilon); x = w - e*m; w = sign(x)*max(abs(x) - e*l1, 0) / (1 + l2*e); no bias correction.

    Slots: v, first 1e-06; m, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: beta1 (in [0, 1); 0.9), beta2 (in [0, 1); 0.999), epsilon (> 0; 0.001), l1 (>= 0; 0.0),
    l2 (>= 0; 0.0), initial_accumulator_value (>= 0; 1e-06).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.ProximalYogi(0.1).rule
    'proximal_yogi'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 0.001,
                 l1: float = 0.0, l2: float = 0.0, initial_accumulator_value: float = 1e-06, *, clipvalue: Clip = None,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("proximal_yogi", learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, l1=l1, l2=l2,
                         initial_accumulator_value=initial_accumulator_value, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class RMSProp(Optimizer):
    """The rule 'rms_prop': ms = rho*ms + (1-rho)*g²; mom = momentum*mom + lr*g / sqrt(ms + epsilon); w = w - mom.

    Slots: ms, first 0; mom, first 0.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.001. Parameters: rho (in [0, 1]; 0.9), momentum (in [0, 1); 0.0), epsilon (> 0; 1e-07).

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.RMSProp(0.1).rule
    'rms_prop'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-07, *,
                 clipvalue: Clip = None, clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None, multiply_weight_decay_factor_by_learning_rate: bool = False,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("rms_prop", learning_rate, rho=rho, momentum=momentum, epsilon=epsilon, clipvalue=clipvalue,
                         clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class RowwiseAdagrad(Optimizer):
    """The rule 'rowwise_adagrad': a = a + mean(g²); w = w - lr*g / (sqrt(a) + epsilon); mode l2: g + weight_decay*w for g
    in both; mode decoupled: also - lr*weight_decay*w.

    Slots: accumulators, first 0 for each row.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01. Parameters: initial_accumulator_value (>= 0; 0.0), epsilon (>= 0; 1e-08), weight_decay (>= 0; 0.0),
    weight_decay_mode (one of none, l2, decoupled; "none").

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.RowwiseAdagrad(0.1).rule
    'rowwise_adagrad'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, initial_accumulator_value: float = 0.0, epsilon: float = 1e-08,
                 weight_decay: float = 0.0, weight_decay_mode: Literal["none", "l2", "decoupled"] = "none", *,
                 clipvalue: Clip = None, clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 use_gradient_accumulation: bool = True, low_dimensional_packing_status: bool = False,
                 slot_variable_creation_fn: SlotFunction | None = None, step_counter: Rate | None = None) -> None:
        super().__init__("rowwise_adagrad", learning_rate, initial_accumulator_value=initial_accumulator_value,
                         epsilon=epsilon, weight_decay=weight_decay, weight_decay_mode=weight_decay_mode,
                         clipvalue=clipvalue, clip_weight_min=clip_weight_min, clip_weight_max=clip_weight_max,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


class SGD(Optimizer):
    """The rule 'sgd': w = w - lr*g.

    Slots: none.
    learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an
    argument; 0.01.

    Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed
    gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every
    occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer;
    step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises ValueError
    naming rule, field, range and value.

    >>> embertable.SGD(0.1).rule
    'sgd'
    """

    __slots__ = ()

    def __init__(self, learning_rate: Rate = 0.01, *, clipvalue: Clip = None, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None, weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool = False, use_gradient_accumulation: bool = True,
                 low_dimensional_packing_status: bool = False, slot_variable_creation_fn: SlotFunction | None = None,
                 step_counter: Rate | None = None) -> None:
        super().__init__("sgd", learning_rate, clipvalue=clipvalue, clip_weight_min=clip_weight_min,
                         clip_weight_max=clip_weight_max, weight_decay_factor=weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate=multiply_weight_decay_factor_by_learning_rate,
                         use_gradient_accumulation=use_gradient_accumulation,
                         low_dimensional_packing_status=low_dimensional_packing_status,
                         slot_variable_creation_fn=slot_variable_creation_fn, step_counter=step_counter)


CLASSES: dict[str, type[Optimizer]] = {
    "adadelta": Adadelta,
    "adagrad": Adagrad,
    "adagrad_momentum": AdagradMomentum,
    "adam": Adam,
    "adamw": AdamW,
    "assign": Assign,
    "bounded_adagrad": BoundedAdagrad,
    "centered_rms_prop": CenteredRMSProp,
    "frequency_aware_adagrad": FrequencyAwareAdagrad,
    "frequency_estimator": FrequencyEstimator,
    "ftrl": FTRL,
    "lamb": LAMB,
    "lars_sgd": LarsSGD,
    "lion": Lion,
    "mdl_adagrad_light": MDLAdagradLight,
    "momentum": Momentum,
    "none": NoUpdate,
    "online_yogi": OnlineYogi,
    "partial_rowwise_adam": PartialRowwiseAdam,
    "partial_rowwise_lamb": PartialRowwiseLAMB,
    "proximal_adagrad": ProximalAdagrad,
    "proximal_yogi": ProximalYogi,
    "rms_prop": RMSProp,
    "rowwise_adagrad": RowwiseAdagrad,
    "sgd": SGD,
}

__all__ = [
    "Adadelta", "Adagrad", "AdagradMomentum", "Adam", "AdamW", "Assign", "BoundedAdagrad", "CenteredRMSProp",
    "FrequencyAwareAdagrad", "FrequencyEstimator", "FTRL", "LAMB", "LarsSGD", "Lion", "MDLAdagradLight", "Momentum",
    "NoUpdate", "OnlineYogi", "PartialRowwiseAdam", "PartialRowwiseLAMB", "ProximalAdagrad", "ProximalYogi", "RMSProp",
    "RowwiseAdagrad", "SGD",
]
