"""The workloads W1 to W6 as bench/loads/standard_loads.cc has them: their shapes, and ids drawn alike."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Workload:
    """Tables of one shape with one feature each. A sample has 1..max_ids ids, each count as likely as the others."""

    name: str
    description: str
    tables: int
    rows: int  # of a table
    dim: int
    samples: int
    max_ids: int
    zipf: float  # the exponent; 0: every row is equally likely
    batches: int  # different ones; a pass trains on each of them once

    @property
    def table_bytes(self):
        return self.rows * self.dim * 4


WORKLOADS = {workload.name: workload for workload in (
    Workload("W1", "one id a sample, many tables", 26, 1_000_000, 64, 2048, 1, 1.05, 96),
    Workload("W2", "20 ids a sample on average", 8, 4_000_000, 32, 2048, 39, 1.05, 20),
    Workload("W3", "one big table, ids spread evenly", 1, 40_000_000, 64, 8192, 19, 0, 64),
    Workload("W4", "tiny tables that stay in cache", 64, 1000, 16, 4096, 1, 1.05, 40),
    Workload("W5", "wide rows", 4, 1_000_000, 256, 2048, 19, 1.05, 40),
    Workload("W6", "few rows take most ids", 8, 4_000_000, 64, 1024, 99, 1.2, 16),
)}


@dataclasses.dataclass(frozen=True)
class Batch:
    """Ids of all tables, one after the other; those of sample s of table t begin at ids[offsets[t * samples + s]]."""

    ids: np.ndarray
    offsets: np.ndarray  # [tables * samples + 1]

    def of_table(self, table, samples):
        """Its ids and row splits, which begin at 0."""
        offsets = self.offsets[table * samples:(table + 1) * samples + 1]
        return self.ids[offsets[0]:offsets[-1]], offsets - offsets[0]


def zipf_ranks(random, rows, exponent, count):
    """Ranks below rows with probability proportional to (rank + 1)^-exponent, exponent > 1.

    Source: Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions".
    """
    power = 1 - exponent

    def integral(x):
        return np.expm1(power * np.log(x)) / power

    def inverse(y):
        return np.exp(np.log1p(power * y) / power)

    first, last = integral(1.5) - 1, integral(rows + 0.5)
    near = 2 - inverse(integral(2.5) - 2**-exponent)
    ranks = np.empty(0, np.int64)
    while len(ranks) < count:
        u = last + random.random(count - len(ranks)) * (first - last)
        x = inverse(u)
        k = np.clip(np.floor(x + 0.5), 1, rows)
        accepted = (k - x <= near) | (u >= integral(k + 0.5) - np.exp(-exponent * np.log(k)))
        ranks = np.concatenate([ranks, k[accepted].astype(np.int64) - 1])
    return ranks


def spread(ranks, rows):
    """A permutation of 0 <= rank < rows that keeps no neighbours together."""
    factor = int(rows * 0.6180339887) | 1
    while math.gcd(factor, rows) != 1:
        factor += 2
    return ranks * factor % rows


def draw_batch(workload, random):
    bags = workload.tables * workload.samples
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, workload.max_ids + 1, bags))])
    if workload.zipf == 0:
        return Batch(random.integers(workload.rows, size=offsets[-1]), offsets)
    return Batch(spread(zipf_ranks(random, workload.rows, workload.zipf, offsets[-1]), workload.rows), offsets)


def draw_batches(workload, seed=1):
    """The same in every process."""
    random = np.random.default_rng(seed)
    return [draw_batch(workload, random) for _ in range(workload.batches)]
