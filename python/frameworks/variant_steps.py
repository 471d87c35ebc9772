"""For tests of variants: one that can be asked for by another system's name steps a table as that system's optimizer does.

Every row is in every batch, once or more, so that lazy and dense optimizers must agree.
"""

import numpy as np

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


def variants(system):
    return [name for name in et.optimizer_variants() if name.startswith(system + ".")]


def ours(variant, settings, batches, rate=RATE):
    table = et.TableConfig(ROWS, DIM, combiner="sum", name="t",
                           initializer=et.Initializer.values(batches.start.ravel()))
    engine = et.Embedding(et.FeatureConfig(table), et.Optimizer(variant, rate, **settings), et.EngineStrategy())
    for ids, gradients in batches.steps():
        engine.enqueue(ids)
        engine.dequeue()
        engine.apply_gradients(gradients)
    return engine.read_rows("t", range(ROWS))
