"""Variants that have the names of Keras and TensorFlow step as their optimizers and kernels do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from variant_steps import ADAM, CLOSE, DIM, RATE, ROWS, Batches, ours, variants


def betas(settings):
    return {"beta_1": settings["beta1"], "beta_2": settings["beta2"]}


KERAS = {
    "keras.SGD": ({}, lambda k, s: k.SGD(RATE)),
    "keras.Adagrad": ({}, lambda k, s: k.Adagrad(RATE)),
    "keras.Adadelta": ({}, lambda k, s: k.Adadelta(RATE)),
    "keras.Adam": (ADAM, lambda k, s: k.Adam(RATE, **betas(s))),
    "keras.AdamW": (ADAM, lambda k, s: k.AdamW(RATE, **betas(s))),
    "keras.Ftrl": ({"l1_regularization_strength": 0.1, "l2_regularization_strength": 0.2},
                   lambda k, s: k.Ftrl(RATE, l1_regularization_strength=0.1, l2_regularization_strength=0.2)),
    "keras.Lion": ({"beta1": 0.8}, lambda k, s: k.Lion(RATE, beta_1=0.8)),
    "keras.RMSprop": ({"momentum": 0.5}, lambda k, s: k.RMSprop(RATE, momentum=0.5)),
    "keras.RMSprop.centered": ({"momentum": 0.5, "epsilon": 1e-3},
                               lambda k, s: k.RMSprop(RATE, momentum=0.5, centered=True, epsilon=1e-3)),
}


@pytest.mark.parametrize("variant", variants("keras"))
def test_steps_as_keras_does(variant):
    settings, make = KERAS[variant]
    batches = Batches(2)
    optimizer = make(keras.optimizers, settings)
    table = keras.Variable(batches.start)
    for gradients in batches.sums():
        optimizer.apply([tf.constant(gradients)], [table])
    np.testing.assert_allclose(ours(variant, settings, batches), table.numpy(), **CLOSE)


def variables_of(batches, *starts):
    return [tf.Variable(batches.start)] + [tf.Variable(np.full((ROWS, DIM), x, np.float32)) for x in starts]


def kernel_step(variant, v, rate, g):
    ops = tf.raw_ops
    handles = [x.handle for x in v]
    if variant == "tf.Adadelta":
        ops.ResourceApplyAdadelta(var=handles[0], accum=handles[1], accum_update=handles[2], lr=rate, rho=0.95,
                                  epsilon=1e-8, grad=g)
    elif variant in ("tf.Adagrad", "tf.tpu.Adagrad"):
        ops.ResourceApplyAdagrad(var=handles[0], accum=handles[1], lr=rate, grad=g)
    elif variant == "tf.Momentum":
        ops.ResourceApplyMomentum(var=handles[0], accum=handles[1], lr=rate, grad=g, momentum=0.9)
    elif variant == "tf.ProximalAdagrad":
        ops.ResourceApplyProximalAdagrad(var=handles[0], accum=handles[1], lr=rate, l1=0.01, l2=0.1, grad=g)
    elif variant == "tf.tpu.FTRL":
        ops.ResourceApplyFtrl(var=handles[0], accum=handles[1], linear=handles[2], grad=g, lr=rate, l1=0.0, l2=0.0,
                              lr_power=-0.5)
    elif variant == "tf.tpu.SGD":
        ops.ResourceApplyGradientDescent(var=handles[0], alpha=rate, delta=g)


KERNELS = {
    "tf.Adadelta": ({}, (0, 0)),
    "tf.Adagrad": ({}, (0.1,)),
    "tf.Momentum": ({}, (0,)),
    "tf.ProximalAdagrad": ({"l1": 0.01, "l2": 0.1}, (0.1,)),
    "tf.tpu.Adagrad": ({}, (0.1,)),
    "tf.tpu.FTRL": ({}, (0.1, 0)),
    "tf.tpu.SGD": ({}, ()),
}


@pytest.mark.parametrize("variant", KERNELS)
def test_steps_as_the_kernels_of_tensorflow_do(variant):
    settings, starts = KERNELS[variant]
    batches = Batches(3)
    variables = variables_of(batches, *starts)
    for gradients in batches.sums():
        kernel_step(variant, variables, RATE, gradients)
    np.testing.assert_allclose(ours(variant, settings, batches), variables[0].numpy(), **CLOSE)
