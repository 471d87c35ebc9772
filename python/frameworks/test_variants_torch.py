"""Variants that have torch's names step as torch.optim does."""

import numpy as np
import pytest
import torch

from variant_steps import ADAM, CLOSE, DIM, RATE, ROWS, Batches, ours, variants


def decaying(settings):
    return {"betas": (settings["beta1"], settings["beta2"])}


TORCH = {
    "torch.SGD": ({}, lambda p, s: torch.optim.SGD(p, RATE)),
    "torch.SGD.momentum": ({"momentum": 0.7, "use_nesterov": True},
                           lambda p, s: torch.optim.SGD(p, RATE, momentum=0.7, nesterov=True)),
    "torch.Adagrad": ({}, lambda p, s: torch.optim.Adagrad(p, RATE)),
    "torch.Adadelta": ({}, lambda p, s: torch.optim.Adadelta(p, RATE)),
    "torch.Adam": (ADAM, lambda p, s: torch.optim.Adam(p, RATE, **decaying(s))),
    "torch.AdamW": (ADAM, lambda p, s: torch.optim.AdamW(p, RATE, **decaying(s))),
    "torch.SparseAdam": (ADAM, lambda p, s: torch.optim.SparseAdam(p, RATE, **decaying(s))),
}


@pytest.mark.parametrize("variant", variants("torch"))
def test_steps_as_torch_does(variant):
    settings, make = TORCH[variant]
    batches = Batches(1)
    table = torch.nn.Embedding(ROWS, DIM, sparse=variant == "torch.SparseAdam")
    with torch.no_grad():
        table.weight[:] = torch.from_numpy(batches.start)
    optimizer = make(table.parameters(), settings)
    for ids, gradients in batches.steps():
        optimizer.zero_grad()
        table(torch.from_numpy(ids)).backward(torch.from_numpy(gradients))
        optimizer.step()
    np.testing.assert_allclose(ours(variant, settings, batches), table.weight.detach().numpy(), **CLOSE)
