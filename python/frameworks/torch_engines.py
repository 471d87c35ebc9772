"""Random engines whose hosts are the ranks of torchrun, or else threads of this process: prints the digest of each.

    torch_engines.py SEED ENGINES HOSTS THREADS SAVES [FROM]

All ranks make the same engines. Each saves in the middle to a folder in SAVES. With FROM, the SAVES of another run, it goes on
from those saves too, to the same digest.
"""

import os
import pathlib
import random
import sys

import numpy as np

import embertable as et

REPLICAS, STEPS = 24, 4
OPTIMIZERS = [lambda: et.SGD(0.1), lambda: et.Adagrad(0.1), lambda: et.Optimizer("adam", 0.01),
              lambda: et.Optimizer("momentum", 0.05), lambda: et.Optimizer("rowwise_adagrad", 0.1)]


class RandomEngine:
    def __init__(self, seed, hosts, threads, exchange):
        draw = random.Random(seed)
        self.seed, self.samples = seed, draw.randint(1, 9)
        tables = [et.TableConfig(draw.choice([1, 5, 60, 4001]), draw.choice([1, 3, 8, 17, 32]), et.Initializer.uniform(-1, 1),
                                 draw.choice(OPTIMIZERS)(), draw.choice(["sum", "mean", "sqrtn"]), f"t{number}")
                  for number in range(draw.randint(1, 3))]
        self.rows = {f"f{number}": draw.choice(tables) for number in range(draw.randint(1, 4))}
        features = {name: et.FeatureConfig(table, output_shape=(self.samples,)) for name, table in self.rows.items()}
        options = {"pipeline_execution_with_tensor_core": draw.random() < 0.5, "seed": seed}
        self.strategy = et.EngineStrategy(hosts, REPLICAS // hosts, draw.choice(["div", "mod"]), threads, exchange=exchange)
        self.engine = et.Embedding(features, et.SGD(0.1), self.strategy, **options)
        self.engine.build()

    def ids(self, step, replica):
        draw = np.random.default_rng([self.seed, step, replica])
        return {name: et.RaggedIds.from_rows([draw.integers(0, table.vocabulary_size, draw.integers(0, 5)).tolist()
                                              for _ in range(self.samples)]) for name, table in self.rows.items()}

    def step(self, number):
        first = self.strategy.first_replica
        self.engine.enqueue(et.PerReplica(self.ids(number, first + r) for r in range(self.strategy.local_replicas)))
        found = self.engine.dequeue()
        activations = found if isinstance(found, et.PerReplica) else [found]
        self.engine.apply_gradients(et.PerReplica({name: 0.1 * value - 0.01 for name, value in one.items()}
                                                  for one in activations))

    def digest(self, saves):
        for number in range(STEPS):
            if number == STEPS // 2:
                self.engine.save(saves)
            self.step(number)
        return self.engine.digest()

    def digest_from(self, saves):
        self.engine.restore(saves)
        for number in range(STEPS // 2, STEPS):
            self.step(number)
        return self.engine.digest()


def main():
    seed, engines, hosts, threads = map(int, sys.argv[1:5])
    saves, *others = map(pathlib.Path, sys.argv[5:])
    exchange = None
    if "TORCHELASTIC_RUN_ID" in os.environ:
        import torch.distributed as dist
        from embertable.exchange import TorchDistributed
        dist.init_process_group("gloo")
        exchange = TorchDistributed()
        assert exchange.hosts == hosts
    for number in range(engines):
        name = f"engine_{number}"
        one = RandomEngine(1000 * seed + number, hosts, threads, exchange).digest(saves / name)
        for other in others:
            again = RandomEngine(1000 * seed + number, hosts, threads, exchange).digest_from(other / name)
            assert again == one, f"{name}: {one}, but {again} from the save"
        if exchange is None or exchange.host == 0:
            print(name, one, flush=True)
    if exchange is not None:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
