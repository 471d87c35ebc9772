"""Activations and gradients meet PyTorch through plain arrays."""

import pathlib
import runpy

import numpy as np
import torch

import embertable as et


def engine(rate=0.5):
    table = et.TableConfig(100, 8, combiner="sum", name="t")
    return et.Embedding(et.FeatureConfig(table), et.SGD(rate), et.EngineStrategy(), seed=1)


def test_activations_are_leaves_of_a_tape():
    embedding = engine()
    ids = torch.tensor([3, 14, 15])
    before = embedding_rows(embedding, ids)
    embedding.enqueue(ids)
    activation = torch.from_numpy(embedding.dequeue()).requires_grad_()
    weight = torch.arange(8, dtype=torch.float32)
    (activation @ weight).sum().backward()
    embedding.apply_gradients(activation.grad)
    np.testing.assert_allclose(embedding.read_rows("t", [3, 14, 15]), before - 0.5 * weight.numpy(), rtol=1e-6)


def embedding_rows(embedding, ids):
    embedding.build(len(ids))
    return embedding.read_rows("t", ids)


def test_the_same_as_an_embedding_bag():
    embedding = engine()
    embedding.build(2)
    bag = torch.nn.EmbeddingBag(100, 8, mode="sum")
    with torch.no_grad():
        bag.weight[:] = torch.from_numpy(embedding.read_rows("t", range(100)))
    values, splits = torch.tensor([1, 2, 3, 2, 9]), torch.tensor([0, 2, 5])
    for _ in range(3):
        bag.zero_grad()
        theirs = bag(values, splits[:-1])
        (theirs**2).sum().backward()
        with torch.no_grad():
            bag.weight -= 0.5 * bag.weight.grad
        embedding.enqueue(et.RaggedIds(values, splits))
        ours = embedding.dequeue()
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-6)
        embedding.apply_gradients(2 * ours)
    np.testing.assert_allclose(embedding.read_rows("t", range(100)), bag.weight.detach(), rtol=1e-5, atol=1e-6)


def test_the_example_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(pathlib.Path(__file__).with_name("torch_example.py")))
    assert np.mean(names["losses"][:20]) > 0.6 and np.mean(names["losses"][-20:]) < 0.2
    assert names["hits"].float().mean() > 0.9
    assert "goes on after step 300" in capsys.readouterr().out
