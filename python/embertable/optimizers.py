"""Optimizers as classes, with the defaults of tf.tpu.experimental.embedding if it has them.

A learning rate is a number, or a function that is called once per step: with the number of the step, 1 for the first,
if it needs an argument, else without any. `options` are the keyword arguments that every Optimizer has: clipvalue, clip_weight_min, weight_decay_factor and so on.
"""

from ._core import Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent: row -= learning_rate * gradient."""

    def __init__(self, learning_rate=0.01, **options):
        super().__init__("sgd", learning_rate, **options)


class Adagrad(Optimizer):
    """Adagrad with one accumulator for each element of the table."""

    def __init__(self, learning_rate=0.001, initial_accumulator_value=0.1, **options):
        super().__init__("adagrad", learning_rate, initial_accumulator_value=initial_accumulator_value, **options)


class RowwiseAdagrad(Optimizer):
    """Adagrad with one accumulator for each row of the table, which sums means of squares."""

    def __init__(self, learning_rate=0.01, initial_accumulator_value=0.0, epsilon=1e-8, **options):
        super().__init__("rowwise_adagrad", learning_rate, initial_accumulator_value=initial_accumulator_value,
                         epsilon=epsilon, **options)
