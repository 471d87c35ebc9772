"""Variants that have optax' names step as optax does."""

import numpy as np
import optax
import pytest

from variant_steps import ADAM, CLOSE, RATE, ROWS, Batches, ours, variants

OPTAX = {
    "optax.sgd": ({}, lambda s: optax.sgd(RATE)),
    "optax.adagrad": ({}, lambda s: optax.adagrad(RATE)),
    "optax.adadelta": ({}, lambda s: optax.adadelta(RATE)),
    "optax.adam": (ADAM, lambda s: optax.adam(RATE, b1=s["beta1"], b2=s["beta2"])),
    "optax.adamw": (ADAM, lambda s: optax.adamw(RATE, b1=s["beta1"], b2=s["beta2"])),
    "optax.lamb": (ADAM, None),  # its norm is that of the whole table: row by row below
    "optax.lion": ({}, lambda s: optax.lion(RATE, weight_decay=0)),
    "optax.rmsprop": ({"momentum": 0.5}, lambda s: optax.rmsprop(RATE, momentum=0.5)),
}


@pytest.mark.parametrize("variant", variants("optax"))
def test_steps_as_optax_does(variant):
    settings, make = OPTAX[variant]
    batches = Batches(4)
    if variant == "optax.lamb":
        transformation = optax.lamb(RATE, b1=settings["beta1"], b2=settings["beta2"])
        table = {row: batches.start[row] for row in range(ROWS)}
    else:
        transformation, table = make(settings), batches.start
    state = transformation.init(table)
    for gradients in batches.sums():
        if variant == "optax.lamb":
            gradients = dict(enumerate(gradients))
        updates, state = transformation.update(gradients, state, table)
        table = optax.apply_updates(table, updates)
    rows = np.stack([table[row] for row in range(ROWS)]) if variant == "optax.lamb" else np.asarray(table)
    np.testing.assert_allclose(ours(variant, settings, batches), rows, **CLOSE)
