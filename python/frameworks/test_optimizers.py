"""A variant that can be asked for by another system's name steps a table as that system's optimizer does.

Every row is in every batch, once or more, so that lazy and dense optimizers must agree.
"""

import numpy as np
import pytest

import embertable as et

ROWS, DIM, STEPS = 12, 5, 6
CLOSE = {"rtol": 3e-5, "atol": 3e-6}
RATE = 0.05

ADAM = {"beta1": 0.8, "beta2": 0.95}


class Batches:
    """Ids and gradients of the steps: each row, and some again."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        self.start = random.uniform(-1, 1, (ROWS, DIM)).astype(np.float32)
        self.ids = [np.concatenate([random.permutation(ROWS), random.integers(0, ROWS, 8)]) for _ in range(STEPS)]
        self.gradients = [random.uniform(-1, 1, (ROWS + 8, DIM)).astype(np.float32) for _ in range(STEPS)]

    def steps(self):
        return zip(self.ids, self.gradients)

    def sums(self):
        for ids, gradients in self.steps():
            total = np.zeros((ROWS, DIM), np.float32)
            np.add.at(total, ids, gradients)
            yield total


def ours(variant, settings, batches, rate=RATE):
    table = et.TableConfig(ROWS, DIM, combiner="sum", name="t",
                           initializer=et.Initializer.values(batches.start.ravel()))
    engine = et.Embedding(et.FeatureConfig(table), et.Optimizer(variant, rate, **settings), et.EngineStrategy())
    for ids, gradients in batches.steps():
        engine.enqueue(ids)
        engine.dequeue()
        engine.apply_gradients(gradients)
    return engine.read_rows("t", range(ROWS))


def decaying(settings):
    return {"betas": (settings["beta1"], settings["beta2"])}


TORCH = {
    "torch.SGD": ({}, lambda torch, p, s: torch.optim.SGD(p, RATE)),
    "torch.SGD.momentum": ({"momentum": 0.7, "use_nesterov": True},
                           lambda torch, p, s: torch.optim.SGD(p, RATE, momentum=0.7, nesterov=True)),
    "torch.Adagrad": ({}, lambda torch, p, s: torch.optim.Adagrad(p, RATE)),
    "torch.Adadelta": ({}, lambda torch, p, s: torch.optim.Adadelta(p, RATE)),
    "torch.Adam": (ADAM, lambda torch, p, s: torch.optim.Adam(p, RATE, **decaying(s))),
    "torch.AdamW": (ADAM, lambda torch, p, s: torch.optim.AdamW(p, RATE, **decaying(s))),
    "torch.SparseAdam": (ADAM, lambda torch, p, s: torch.optim.SparseAdam(p, RATE, **decaying(s))),
}


@pytest.mark.parametrize("variant", [name for name in et.optimizer_variants() if name.startswith("torch.")])
def test_steps_as_torch_does(variant):
    import torch

    settings, make = TORCH[variant]
    batches = Batches(1)
    table = torch.nn.Embedding(ROWS, DIM, sparse=variant == "torch.SparseAdam")
    with torch.no_grad():
        table.weight[:] = torch.from_numpy(batches.start)
    optimizer = make(torch, table.parameters(), settings)
    for ids, gradients in batches.steps():
        optimizer.zero_grad()
        table(torch.from_numpy(ids)).backward(torch.from_numpy(gradients))
        optimizer.step()
    np.testing.assert_allclose(ours(variant, settings, batches), table.weight.detach().numpy(), **CLOSE)


def keras_adam(keras, s, **more):
    return {"beta_1": s["beta1"], "beta_2": s["beta2"], **more}


KERAS = {
    "keras.SGD": ({}, lambda k, s: k.SGD(RATE)),
    "keras.Adagrad": ({}, lambda k, s: k.Adagrad(RATE)),
    "keras.Adadelta": ({}, lambda k, s: k.Adadelta(RATE)),
    "keras.Adam": (ADAM, lambda k, s: k.Adam(RATE, **keras_adam(k, s))),
    "keras.AdamW": (ADAM, lambda k, s: k.AdamW(RATE, **keras_adam(k, s))),
    "keras.Ftrl": ({"l1_regularization_strength": 0.1, "l2_regularization_strength": 0.2},
                   lambda k, s: k.Ftrl(RATE, l1_regularization_strength=0.1, l2_regularization_strength=0.2)),
    "keras.Lion": ({"beta1": 0.8}, lambda k, s: k.Lion(RATE, beta_1=0.8)),
    "keras.RMSprop": ({"momentum": 0.5}, lambda k, s: k.RMSprop(RATE, momentum=0.5)),
    "keras.RMSprop.centered": ({"momentum": 0.5, "epsilon": 1e-3},
                               lambda k, s: k.RMSprop(RATE, momentum=0.5, centered=True, epsilon=1e-3)),
}


@pytest.mark.parametrize("variant", [name for name in et.optimizer_variants() if name.startswith("keras.")])
def test_steps_as_keras_does(variant):
    import keras
    import tensorflow as tf

    settings, make = KERAS[variant]
    batches = Batches(2)
    optimizer = make(keras.optimizers, settings)
    table = keras.Variable(batches.start)
    for gradients in batches.sums():
        optimizer.apply([tf.constant(gradients)], [table])
    np.testing.assert_allclose(ours(variant, settings, batches), table.numpy(), **CLOSE)


def tf_slots(batches, *starts):
    import tensorflow as tf

    return [tf.Variable(batches.start)] + [tf.Variable(np.full((ROWS, DIM), x, np.float32)) for x in starts]


def tf_step(ops, variant, v, rate, g):
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


TF = {"tf.Adadelta": ({}, (0, 0)), "tf.Adagrad": ({}, (0.1,)), "tf.tpu.Adagrad": ({}, (0.1,)), "tf.Momentum": ({}, (0,)),
      "tf.ProximalAdagrad": ({"l1": 0.01, "l2": 0.1}, (0.1,)), "tf.tpu.FTRL": ({}, (0.1, 0)), "tf.tpu.SGD": ({}, ())}


@pytest.mark.parametrize("variant", TF)
def test_steps_as_the_kernels_of_tensorflow_do(variant):
    import tensorflow as tf

    settings, starts = TF[variant]
    batches = Batches(3)
    variables = tf_slots(batches, *starts)
    for gradients in batches.sums():
        tf_step(tf.raw_ops, variant, variables, RATE, gradients)
    np.testing.assert_allclose(ours(variant, settings, batches), variables[0].numpy(), **CLOSE)


OPTAX = {
    "optax.sgd": ({}, lambda optax, s: optax.sgd(RATE)),
    "optax.adagrad": ({}, lambda optax, s: optax.adagrad(RATE)),
    "optax.adadelta": ({}, lambda optax, s: optax.adadelta(RATE)),
    "optax.adam": (ADAM, lambda optax, s: optax.adam(RATE, b1=s["beta1"], b2=s["beta2"])),
    "optax.adamw": (ADAM, lambda optax, s: optax.adamw(RATE, b1=s["beta1"], b2=s["beta2"])),
    "optax.lamb": (ADAM, None),  # its norm is that of the whole table: row by row below
    "optax.lion": ({}, lambda optax, s: optax.lion(RATE, weight_decay=0)),
    "optax.rmsprop": ({"momentum": 0.5}, lambda optax, s: optax.rmsprop(RATE, momentum=0.5)),
}


@pytest.mark.parametrize("variant", [name for name in et.optimizer_variants() if name.startswith("optax.")])
def test_steps_as_optax_does(variant):
    optax = pytest.importorskip("optax", reason="optax is not in python/frameworks/requirements.txt")
    settings, make = OPTAX[variant]
    batches = Batches(4)
    if variant == "optax.lamb":
        transformation = optax.lamb(RATE, b1=settings["beta1"], b2=settings["beta2"])
        table = {row: batches.start[row] for row in range(ROWS)}
    else:
        transformation, table = make(optax, settings), batches.start
    state = transformation.init(table)
    for gradients in batches.sums():
        if variant == "optax.lamb":
            gradients = dict(enumerate(gradients))
        updates, state = transformation.update(gradients, state, table)
        table = optax.apply_updates(table, updates)
    rows = np.stack([table[row] for row in range(ROWS)]) if variant == "optax.lamb" else np.asarray(table)
    np.testing.assert_allclose(ours(variant, settings, batches), rows, **CLOSE)
