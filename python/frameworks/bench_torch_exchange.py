"""What a round of TorchDistributed costs beside the bare collective with the same sizes.

    torchrun --nproc-per-node 2 bench_torch_exchange.py

prints the median time of a round, of its parts below Python, and of a step of an engine with its number of rounds.
"""

import statistics
import sys
import pathlib
import time

import torch
import torch.distributed as dist

import embertable as et
from embertable.exchange import TorchDistributed

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from processes import Process  # noqa: E402


def median_us(call, rounds):
    times = []
    for _ in range(rounds + rounds // 10):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times[rounds // 10:])


def bare(group, hosts, sizes):
    """all_to_all_single of these numbers of bytes to each host, one after the other."""
    def tensors(size):
        return torch.zeros(hosts * size, dtype=torch.uint8)
    pairs = [(tensors(size), tensors(size)) for size in sizes]

    def call():
        for received, sent in pairs:
            dist.all_to_all_single(received, sent, group=group)
    return call


def round_of(exchange, size):
    messages = [memoryview(bytes(size))] * exchange.hosts

    def call():
        exchange.start(0, "bench", messages)
        exchange.finish(0)
    return call


class Counting(TorchDistributed):
    rounds, seconds = 0, 0.0

    def start(self, channel, stage, messages):
        begin = time.perf_counter()
        super().start(channel, stage, messages)
        self.rounds, self.seconds = self.rounds + 1, self.seconds + time.perf_counter() - begin

    def finish(self, channel):
        begin = time.perf_counter()
        received = super().finish(channel)
        self.seconds += time.perf_counter() - begin
        return received


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    exchange = Counting()
    shown = exchange.host == 0
    for size in (0, 1024, 16384, 262144, 1 << 22):
        rounds = 200 if size <= 262144 else 30
        ours = median_us(round_of(exchange, size), rounds)
        one = median_us(bare(dist.group.WORLD, exchange.hosts, [max(size, 1)]), rounds)
        both = median_us(bare(dist.group.WORLD, exchange.hosts, [4096, size] if size > 3968 else [4096]), rounds)
        if shown:
            print(f"{size:>8} bytes to each: a round {ours:8.0f} us; one all_to_all_single of that size {one:8.0f} us; "
                  f"the collectives of a round alone {both:8.0f} us")
    process = Process(exchange)
    for number in range(3):
        process.step(number)
    exchange.rounds, exchange.seconds = 0, 0.0
    begin = time.perf_counter()
    for number in range(20):
        process.step(number)
    step = (time.perf_counter() - begin) / 20
    if shown:
        print(f"a small engine's step: {1e6 * step:.0f} us, of which {1e6 * exchange.seconds / 20:.0f} us in "
              f"{exchange.rounds / 20:g} rounds; embertable {et.__version__}, torch {torch.__version__}, "
              f"{exchange.hosts} hosts")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
