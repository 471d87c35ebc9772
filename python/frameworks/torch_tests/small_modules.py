"""Small modules that the tests of several files train."""

import torch

import embertable as et
import embertable.torch as ett

ROWS, DIM = 20, 4


def bag(mode="sum", optimizer=None, rows=ROWS, **options):
    return ett.EmbeddingBag(rows, DIM, mode=mode, optimizer=optimizer or et.SGD(1.0), seed=options.pop("seed", 1), **options)


def rows_of(module, table=None):
    name = table or next(iter(module._tables))
    return module.read_rows(torch.arange(module._tables[name].vocabulary_size), table)


def collection(optimizer=None, features=("user", "film"), **options):
    return ett.EmbeddingBagCollection(
        [ett.EmbeddingBagConfig(ROWS, DIM, "users", [features[0]]), ett.EmbeddingBagConfig(30, DIM, "films", [features[1]], "mean")],
        optimizer or et.SGD(1.0), seed=3, **options)
