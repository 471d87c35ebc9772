"""Trains a table on the hosts that a launcher starts, or on one, to the same bits.

mpirun -n 4 python hosts.py RUN, torchrun --nproc-per-node 4 hosts.py RUN, python hosts.py RUN. Stopped and started
again, also with another number of processes, it goes on from the last step in RUN. hosts.cc does the same in C++.
"""

import os
import sys

import numpy as np

import embertable as et

REPLICAS = 12  # any number of hosts that divides them gives the same bits
SAMPLES, STEPS, SAVE_EVERY, FILMS = 64, 20, 5, 10_000


def draws(state):
    """Random numbers, which are those of hosts.cc."""
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def watched(step, replica):
    """The films that the samples of one replica have watched in one step."""
    random = draws(step * REPLICAS + replica)
    return et.RaggedIds.from_rows([[next(random) % FILMS for _ in range(next(random) % 8)] for _ in range(SAMPLES)])


def find_others():
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun
        import torch.distributed
        from embertable.exchange import TorchDistributed
        torch.distributed.init_process_group("gloo")
        return TorchDistributed()
    return et.Exchange.mpi() if et.find_mpi_launcher() else None


def train(run):
    others = find_others()
    hosts = others.hosts if others else 1
    if REPLICAS % hosts:
        raise ValueError("the number of processes must divide 12")
    strategy = et.EngineStrategy(replicas_per_host=REPLICAS // hosts, exchange=others)
    films = et.TableConfig(FILMS, 32, name="films")
    engine = et.Embedding({"watched": et.FeatureConfig(films, output_shape=(SAMPLES,))}, et.Optimizer("adagrad", 0.1),
                          strategy)
    engine.build()
    with et.CheckpointRun(run, strategy) as saves:
        if saves.steps():
            engine.restore(run)
        replicas = range(strategy.first_replica, strategy.first_replica + strategy.local_replicas)
        while engine.step < STEPS:
            engine.enqueue(et.PerReplica({"watched": watched(engine.step, replica)} for replica in replicas))
            activations = engine.dequeue()  # of one replica, they are a dict
            activations = activations if isinstance(activations, et.PerReplica) else [activations]
            # The loss is sum((activation - 1)^2) / 2.
            engine.apply_gradients(et.PerReplica({"watched": one["watched"] - np.float32(1)} for one in activations))
            if engine.step % SAVE_EVERY == 0:
                engine.save(saves)
    digest = engine.digest()
    if strategy.host == 0:
        print(f"{hosts} hosts: {digest}")


if __name__ == "__main__":
    try:
        train(sys.argv[1] if len(sys.argv) > 1 else "hosts-run")
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(75)  # a launcher may start the program again; torch.distributed would wait for a process that is lost
