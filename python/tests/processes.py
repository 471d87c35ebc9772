"""Engines whose hosts are processes, here or elsewhere: each with its share of 12 replicas."""

import numpy as np

import embertable as et

REPLICAS, SAMPLES = 12, 6
FILMS, USERS = 4001, 3


def features():
    films = et.TableConfig(FILMS, 5, et.Initializer.uniform(-1, 1), et.Adagrad(0.1), "sum", "films")
    users = et.TableConfig(USERS, 8, et.Initializer.uniform(-1, 1), et.Optimizer("adam", 0.01), "mean", "users")
    return {"liked": et.FeatureConfig(films, output_shape=(SAMPLES,)),
            "seen": et.FeatureConfig(films, output_shape=(SAMPLES,)),
            "who": et.FeatureConfig(users, output_shape=(SAMPLES,))}


def ids(step, replica, length=4):
    random = np.random.default_rng(1000 * step + replica)
    draw = lambda rows: et.RaggedIds.from_rows([random.integers(0, rows, random.integers(0, length)).tolist()
                                                for _ in range(SAMPLES)])
    return {"liked": draw(FILMS), "seen": draw(FILMS), "who": draw(USERS)}


class Process:
    def __init__(self, exchange=None, **options):
        hosts = exchange.hosts if exchange else 1
        self.strategy = et.EngineStrategy(replicas_per_host=REPLICAS // hosts, threads=1, exchange=exchange)
        self.engine = et.Embedding(features(), et.SGD(0.1), self.strategy, seed=7, **options)

    def enqueue(self, step, length=4):
        first = self.strategy.first_replica
        self.engine.enqueue(et.PerReplica(ids(step, first + r, length) for r in range(self.strategy.local_replicas)))

    def dequeue(self):
        out = self.engine.dequeue()
        return out if isinstance(out, et.PerReplica) else et.PerReplica([out])

    def apply(self, activations, spoil=0.0):
        gradients = [{name: 0.1 * value - 0.01 for name, value in one.items()} for one in activations]
        gradients[0]["liked"] += np.float32(spoil)
        self.engine.apply_gradients(et.PerReplica(gradients))

    def step(self, number, length=4):
        self.enqueue(number, length)
        self.apply(self.dequeue())


def trained(exchange=None, steps=4, length=4, **options):
    process = Process(exchange, **options)
    for number in range(steps):
        process.step(number, length)
    return process


def raises(call):
    """The error of a call that must raise, as one line."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("nothing was raised")


def errors_of_one_host_are_errors_on_all(exchange):
    """A gradient that is not finite on the last host; another call on host 0 than on the others. Then all go on."""
    process, last = Process(exchange, gradient_policy="error"), exchange.hosts - 1
    process.step(0)
    process.enqueue(1)
    activations = process.dequeue()
    error = raises(lambda: process.apply(activations, np.nan if exchange.host == last else 0.0))
    assert "must be finite" in error and (exchange.host == last or f"host {last}: " in error), error
    if exchange.hosts > 1:
        error = raises(process.engine.digest if exchange.host == 0 else lambda: process.apply(activations))
        assert "GivenUp: host 0: hosts must make the same calls in the same order" in error, error
        error = raises(lambda: process.engine.read_rows("users" if exchange.host == 0 else "films", [0]))
        assert "GivenUp: host 0: hosts must make the same calls in the same order" in error, error
    process.apply(activations)
    for number in (2, 3):
        process.step(number)
    return process.engine.digest()


def batches_are_dropped_by_all_hosts(exchange, **options):
    """As `trained` with four steps, where batches that are enqueued besides are dropped."""
    process = Process(exchange, **options)
    for number in range(4):
        process.enqueue(number)
        process.enqueue(90)
        process.apply(process.dequeue())  # its hosts ask for the rows of batch 90, which they know
        assert process.engine.queued_batches == 1 and process.engine.drop_queued_batches() == 1
        process.enqueue(91)
        assert process.engine.drop_queued_batches(1) == 1
        process.enqueue(92)
        process.dequeue()
        assert process.engine.drop_dequeued_batches() == process.engine.drop_queued_batches() + 1 == 1
    return process.engine.digest()
