"""Modules of embertable.torch within torch.compile, DistributedDataParallel, DataLoader, Lightning and Accelerate."""

import datetime
import json
import multiprocessing
import os
import pathlib
import socket
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from stand_ins import JaggedTensor, KeyedJaggedTensor, on_late_accelerator

ROWS, DIM = 40, 4


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Model(torch.nn.Module):
    """All three modules, with every form of ids."""

    def __init__(self):
        super().__init__()
        self.bag = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.Adagrad(0.1), seed=1)
        self.last = ett.EmbeddingBag(ROWS, DIM, mode="mean", optimizer=et.SGD(0.1), seed=2, include_last_offset=True, padding_idx=3)
        self.single = ett.Embedding(ROWS, DIM, optimizer=et.SGD(0.1), seed=3)
        self.collection = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "a", ["x", "y"], "mean"),
                                                      ett.EmbeddingBagConfig(ROWS, DIM, "b", ["z"])], et.Adagrad(0.1), seed=4)
        torch.manual_seed(1)
        self.head = torch.nn.Linear(6 * DIM, 1)

    def forward(self, ids, offsets, weights):
        named = self.collection({"x": ids[:, 0].contiguous(), "y": ids, "z": (ids.reshape(-1), offsets[:-1], weights)})
        rows = [self.bag(ids.reshape(-1), offsets[:-1], weights), self.last(ids.reshape(-1), offsets),
                self.single(ids).sum(1), *named.values()]
        return self.head(torch.cat(rows, 1)).squeeze(1)

    def digests(self):
        return [one.engine.digest() for one in (self.bag, self.last, self.single, self.collection)]


def inputs(samples, seed):
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(ROWS, (samples, 3), generator=draw)
    return ids, torch.arange(samples + 1) * 3, torch.rand(samples * 3, generator=draw)


def train(model, call, sizes=(4, 6, 6, 5)):
    losses = []
    for seed, samples in enumerate(sizes):
        loss = call(*inputs(samples, seed)).square().sum()
        loss.backward()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_without_a_graph_break(backend):
    plain, model = Model(), Model()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    expected, found = train(plain, plain), train(model, compiled)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for ours, theirs in zip((model.bag, model.last, model.single), (plain.bag, plain.last, plain.single)):
        np.testing.assert_allclose(ours.read_rows(range(ROWS)), theirs.read_rows(range(ROWS)), rtol=1e-5, atol=1e-6)
    assert model.collection.engine.step == plain.collection.engine.step == 4
    model.eval(), plain.eval()
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs(7, 9)), plain(*inputs(7, 9)))
    assert model.bag.engine.step == 4
    torch._dynamo.reset()


class Keyed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.collection = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "a", ["x"], "mean"),
                                                      ett.EmbeddingBagConfig(ROWS, DIM, "b", ["z"])], et.Adagrad(0.1), seed=4)
        torch.manual_seed(1)
        self.head = torch.nn.Linear(2 * DIM, 1)

    def forward(self, values, lengths):
        return self.head(self.collection(KeyedJaggedTensor(["z", "x"], values, lengths)).values())


def test_compiled_with_keyed_jagged_tensors_and_nested_ones():
    plain, model = Keyed(), Keyed()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    arguments = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([2, 0, 1, 2])
    for call in (plain, compiled):
        call(*arguments).sum().backward()
    assert model.collection.engine.digest() == plain.collection.engine.digest()
    torch._dynamo.reset()


def test_a_compiled_step_without_a_backward_is_named():
    model = Model()
    compiled = torch.compile(model.bag, fullgraph=True, backend="aot_eager")
    compiled(torch.tensor([[1, 2]]))
    with pytest.warns(ett.AbandonedStepWarning, match="no backward came for a lookup;"):
        compiled(torch.tensor([[1, 2]])).sum().backward()
    torch._dynamo.reset()


def test_equal_lookups_in_compiled_code_are_two_steps():
    plain, model = Model(), Model()
    call = lambda bag: lambda ids: 2 * bag(ids) + torch.sin(bag(ids)) + bag(ids)
    ids = torch.tensor([[1, 2], [3, 1]])
    for _ in range(2):
        call(plain.bag)(ids).sum().backward()
        torch.compile(call(model.bag), fullgraph=True, backend="aot_eager")(ids).sum().backward()
    assert model.bag.engine.step == 6
    np.testing.assert_allclose(model.bag.read_rows(range(ROWS)), plain.bag.read_rows(range(ROWS)), rtol=1e-6, atol=1e-7)
    torch._dynamo.reset()


newer_than_24 = pytest.mark.skipif(not hasattr(torch.utils.checkpoint, "CheckpointPolicy"),
                                   reason="torch 2.4 compiles neither backward nor torch.utils.checkpoint with lookups")
BACKENDS = [None, "eager", "aot_eager", "inductor"]  # None: not compiled


def compiled_for(backend, function):
    return function if backend is None else torch.compile(function, fullgraph=True, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_not_those_of_tables_change_no_row(backend):
    bag, ids = Model().bag, torch.tensor([[1, 2]])
    before, scale = bag.read_rows([1, 2]), torch.ones(1, DIM, requires_grad=True)
    loss = compiled_for(backend, lambda ids, scale: (bag(ids) * scale).sum())(ids, scale)
    gradient, = torch.autograd.grad(loss, scale, retain_graph=True)
    loss.backward(inputs=[scale], retain_graph=True)
    assert bag.engine.step == 0 and torch.equal(bag.read_rows([1, 2]), before)
    torch.testing.assert_close(gradient, before.sum(0, keepdim=True))
    loss.backward(retain_graph=True)
    assert bag.engine.step == 1 and not torch.equal(bag.read_rows([1, 2]), before)
    with pytest.raises(RuntimeError, match="backward came twice for lookup 1"):
        loss.backward()
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_not_those_of_tables_do_not_wait(backend):
    bag, ids, scale = Model().bag, torch.tensor([[1, 2]]), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([scale], 1.0)
    bag.optimizer.step_with(optimizer)
    call = compiled_for(backend, lambda ids, scale: (bag(ids) * scale).sum())
    gradient, = torch.autograd.grad(call(ids, scale), scale)
    optimizer.step()
    assert bag.engine.step == 0
    call(ids, scale).backward()
    call(ids, scale).backward()
    optimizer.step()
    assert bag.engine.step == 1 and gradient.shape == (1,)
    torch._dynamo.reset()


def test_outputs_that_tables_do_not_reach_count_as_zeros_for_them_in_compiled_code():
    """torch's compiled backward has zeros for outputs that it does not come from, and does not tell."""
    bag, ids, one = Model().bag, torch.tensor([[1, 2]]), torch.ones(1, requires_grad=True)
    before = bag.read_rows([1, 2])
    with_rows, without = torch.compile(lambda ids, one: (bag(ids).sum(), 2 * one), fullgraph=True, backend="aot_eager")(ids, one)
    without.backward(retain_graph=True)
    assert bag.engine.step == 1 and torch.equal(bag.read_rows([1, 2]), before)
    with pytest.raises(RuntimeError, match="backward came twice for lookup 1 .* add the losses and call backward once"):
        with_rows.backward()
    torch._dynamo.reset()


def test_one_loss_of_all_outputs_of_compiled_code_is_one_step():
    plain, bag, one = Model().bag, Model().bag, torch.ones(1, requires_grad=True)
    for call in (lambda ids: (plain(ids).sum(), 2 * one), torch.compile(lambda ids: (bag(ids).sum(), 2 * one), backend="aot_eager")):
        sum(call(torch.tensor([[1, 2]]))).backward()
    assert bag.engine.digest() == plain.engine.digest() and bag.engine.step == 1
    torch._dynamo.reset()


@pytest.mark.parametrize("backend, replicas, scaled", [("aot_eager", 1, False), ("aot_eager", 2, True), ("inductor", 1, True)])
def test_accumulated_gradients_of_compiled_code(backend, replicas, scaled):
    found = []
    for compiled in (None, backend):
        torch.manual_seed(1)
        bag = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.Adagrad(0.1), seed=1,
                               strategy=et.EngineStrategy(replicas_per_host=replicas))
        head = torch.nn.Linear(DIM, 1)
        optimizer, scaler = torch.optim.SGD(head.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=4.0, enabled=scaled)
        bag.optimizer.step_with(optimizer, scaler if scaled else None)
        call = compiled_for(compiled, lambda ids: (head(bag(ids)) * bag(ids + 1)).sum())
        for step in range(4):
            scaler.scale(call(torch.tensor([[1, 2], [3, step]]))).backward()
            if step % 2:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        assert bag.engine.step == 2
        found.append(bag.read_rows(range(ROWS)))
        torch._dynamo.reset()
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_dense_part_of_frozen_tables_trains(backend):
    bag, head, ids = Model().bag, torch.nn.Linear(DIM, 1), torch.tensor([[1, 2]])
    rows, dense = compiled_for(backend, lambda ids: bag(ids)), compiled_for(backend, lambda ids: head(bag(ids)).sum())
    before = bag.read_rows([1, 2])
    bag.eval()
    assert not rows(ids).requires_grad
    dense(ids).backward()
    torch.testing.assert_close(head.weight.grad, before.sum(0, keepdim=True))
    assert bag.engine.step == 0
    bag.train()
    assert rows(ids).requires_grad
    dense(ids).backward()
    assert bag.engine.step == 1
    torch._dynamo.reset()


@newer_than_24
@pytest.mark.filterwarnings("error::embertable.torch.AbandonedStepWarning")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_activations_that_compiled_code_computes_once_more(backend):
    """torch.utils.checkpoint looks up again within backward: the first lookups are not abandoned."""
    plain, bag = (ett.EmbeddingBag(ROWS, 32, optimizer=et.SGD(0.1), seed=1) for _ in range(2))
    head, ids = torch.nn.Linear(32, 32), torch.arange(64).reshape(32, 2) % ROWS
    segment = lambda bag: lambda ids: (head(bag(ids)).relu() * bag(ids)).sum()
    call = torch.compile(lambda ids: torch.utils.checkpoint.checkpoint(segment(bag), ids, use_reentrant=False), fullgraph=True,
                         backend=backend)
    for module, one in ((bag, call), (plain, segment(plain))):
        optimizer = torch.optim.SGD(head.parameters(), 0.0)
        module.optimizer.step_with(optimizer)
        first, second = one(ids), one(ids)
        first.backward()
        second.backward()
        one(ids).backward()
        optimizer.step()
        module.eval()(ids)
        assert module.abandoned_steps == 0 and module.engine.step == 1
    torch.testing.assert_close(bag.read_rows(range(ROWS)), plain.read_rows(range(ROWS)), rtol=1e-5, atol=1e-6)
    torch._dynamo.reset()


@newer_than_24
@pytest.mark.filterwarnings("error::embertable.torch.AbandonedStepWarning")
@pytest.mark.parametrize("reentrant", [False, True])
def test_compiled_code_within_what_is_computed_once_more(reentrant):
    bag, one = Model().bag, torch.ones(1, requires_grad=True)
    call = torch.compile(lambda ids, one: (bag(ids) * one).sum(), fullgraph=True, backend="aot_eager")
    for _ in range(2):
        torch.utils.checkpoint.checkpoint(call, torch.tensor([[1, 2]]), one, use_reentrant=reentrant).backward()
    bag.eval()(torch.tensor([[1, 2]]))
    assert bag.engine.step == 2 and bag.abandoned_steps == 0
    torch._dynamo.reset()


@newer_than_24
def test_compiled_autograd_steps_the_tables():
    bag, ids, scale = Model().bag, torch.tensor([[1, 2]]), torch.ones(1, requires_grad=True)
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(lambda ids: (bag(ids) * scale).sum().backward(), backend="aot_eager")(ids)
    assert bag.engine.step == 1 and scale.grad is not None
    torch._dynamo.reset()


def test_one_function_is_compiled_for_several_modules():
    for _ in range(3):
        bag = Model().bag
        torch.compile(lambda ids: bag(ids).sum(), fullgraph=True, backend="aot_eager")(torch.tensor([[1, 2]])).backward()
        assert bag.engine.step == 1
    torch._dynamo.reset()


def test_compiled_code_takes_jagged_tensors():
    plain, model = Model(), Model()
    ids, lengths, weights = torch.tensor([1, 2, 3]), torch.tensor([1, 0, 2]), torch.tensor([1.0, 2, 3])
    for call in (plain.bag, torch.compile(model.bag, fullgraph=True, backend="aot_eager")):
        call(JaggedTensor(ids, lengths, weights)).square().sum().backward()
    assert model.bag.engine.digest() == plain.bag.engine.digest()
    torch._dynamo.reset()


def test_compiled_code_makes_the_checks_of_eager_code():
    model, keyed = Model(), Keyed().collection
    one, two = (ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, name, ["x"]) for name in tables], et.SGD(0.1))
                for tables in ("a", "ab"))
    ids, ones = torch.tensor([1, 2]), torch.ones(2)
    weighted = KeyedJaggedTensor(["x", "z"], ids, torch.tensor([1, 1]), ones)
    cases = [(model.bag, (ids,), ValueError, "ids are 1-D and need offsets"),
             (model.bag, (ids[None], ids), ValueError, "2-D, one bag a line, and take no offsets"),
             (model.bag, (ids, ids[:1] - 1, ones.clone().requires_grad_()), NotImplementedError, "require a gradient, which is not offered"),
             (model.bag, (ids.numpy().tolist(),), TypeError, "ids must be a tensor"),
             (keyed, (weighted,), ValueError, "the batch has weights, and is_weighted is False"),
             (keyed, ({"x": ids},), KeyError, "the batch has no feature 'z'; it has"),
             (keyed, ({"x": ids, "z": (ids, ids, ones, ones)},), ValueError, r"must be \(ids, offsets\) or \(ids, offsets, weights\)"),
             (keyed, (KeyedJaggedTensor(["x"], ids, torch.tensor([1, 1])),), KeyError, "the batch has no feature 'z'; it has"),
             (one, ({"x": ids.float()},), TypeError, "EmbeddingBagCollection: ids of feature 'x' must be int64 or int32"),
             (two, ({"x": ids.float()},), TypeError, "EmbeddingBagCollection: ids of feature 'x' must be int64 or int32"),
             (keyed, (ids,), TypeError, "takes a dict by feature or a KeyedJaggedTensor, got Tensor"),
             (keyed, (KeyedJaggedTensor(["x", "z"], ids, torch.tensor([1, 0, 1])),), ValueError, "no whole number for each of its 2")]
    for module, arguments, kind, text in cases:
        torch._dynamo.reset()
        with pytest.raises(kind, match=text):
            module(*arguments)
        with pytest.raises(kind, match=text):
            torch.compile(module, backend="aot_eager")(*arguments)
    torch._dynamo.reset()
    # torch 2.4 does not pass on what was raised.
    with pytest.raises(Exception, match="ids are 1-D and need offsets|Observed exception"):
        torch.compile(model.bag, fullgraph=True, backend="aot_eager")(ids)
    torch._dynamo.reset()


@pytest.mark.skipif(not hasattr(torch.compiler, "is_exporting"), reason="torch tells since 2.7 whether it exports")
@pytest.mark.parametrize("strict", [False, True])
def test_export_is_refused(strict):
    model, ids = Model(), torch.tensor([[1, 2]])
    for module, batch in ((model.bag, ids), (model.single, ids), (model.collection, {"x": ids, "y": ids, "z": ids})):
        with pytest.raises(Exception, match="torch.export would keep the number that this table has in this process") as refused:
            torch.export.export(module, (batch,), strict=strict)
        assert strict or refused.type is RuntimeError
    torch._dynamo.reset()


# Workers that prepare ids


class Prepared(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        return torch.randint(ROWS, (int(torch.randint(1, 4, (1,), generator=draw)),), generator=draw)


def collate(samples):
    return torch.cat(samples), torch.tensor([0, *map(len, samples)]).cumsum(0)[:-1]


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_of_a_loader_prepare_ids(how):
    digests = []
    for workers in (0, 2):
        module = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.Adagrad(0.1), seed=1)
        loader = torch.utils.data.DataLoader(Prepared(), 6, collate_fn=collate, num_workers=workers,
                                             multiprocessing_context=how if workers else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
            for ids, offsets in loader:
                module(ids, offsets).square().sum().backward()
        digests.append(module.engine.digest())
    assert digests[0] == digests[1]


def look_up_in_fork(module, answers):
    answers.put(repr(module))
    try:
        module(torch.tensor([[1]]))
    except RuntimeError as error:
        answers.put(str(error))


@pytest.mark.parametrize("away", [False, True])
def test_a_lookup_in_a_forked_worker_says_what_to_do(away):
    module = ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(0.1), seed=1)
    if away:
        on_late_accelerator(module)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=look_up_in_fork, args=(module, answers))
        child.start()
    assert answers.get(timeout=60) == repr(module)
    assert "is a fork of it: let workers prepare ids" in answers.get(timeout=60)
    child.join()


# Several processes


class Click(torch.nn.Module):
    def __init__(self, strategy):
        super().__init__()
        self.tables = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "a", ["x"], "mean"),
                                                  ett.EmbeddingBagConfig(ROWS, DIM, "b", ["z"])], et.Adagrad(0.5), strategy=strategy, seed=4)
        torch.manual_seed(1)
        self.head = torch.nn.Sequential(torch.nn.Linear(2 * DIM, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def forward(self, features, halves=1):
        rows = torch.cat(list(self.tables(features).values()), 1)
        return torch.cat([self.head(part) for part in rows.chunk(halves)]).squeeze(1)


def batch_of(step, samples=16):
    draw = torch.Generator().manual_seed(step)
    ids = torch.randint(ROWS, (samples, 3), generator=draw)
    return ids, (ids[:, 0] % 2).float()


def half(ids, labels, rank):
    size = len(labels) // 2
    return ids[rank * size:(rank + 1) * size], labels[rank * size:(rank + 1) * size]


def loss_of(logits, labels):
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)


def sum_in_order(parameters):
    """The mean of the ranks' gradients, first rank first."""
    import torch.distributed as dist
    for parameter in parameters:
        found = [torch.empty_like(parameter.grad) for _ in range(dist.get_world_size())]
        dist.all_gather(found, parameter.grad)
        parameter.grad = sum(found[1:], found[0]) / len(found)


def alone(steps=10):
    """One process with two replicas; the dense part takes the halves of a batch one after the other."""
    model = Click(et.EngineStrategy(replicas_per_host=2))
    optimizer = torch.optim.SGD(model.head.parameters(), 0.1)
    losses = []
    for step in range(steps):
        ids, labels = batch_of(step)
        logits = model({"x": ids, "z": ids}, 2).chunk(2)
        parts = [loss_of(one, part) for one, part in zip(logits, labels.chunk(2))]
        optimizer.zero_grad()
        ((parts[0] + parts[1]) / 2).backward()
        optimizer.step()
        losses.append(float(parts[0].detach() + parts[1].detach()) / 2)
    return [losses, model.tables.engine.digest()]


def tell(found):
    os.write(1, f"{json.dumps(found)}\n".encode())  # in one piece: all processes write to the same pipe


def rank(ddp, folder, steps=10):
    import torch.distributed as dist

    from embertable.exchange import TorchDistributed
    dist.init_process_group("gloo")
    model = Click(et.EngineStrategy(exchange=TorchDistributed()))
    whole = torch.nn.parallel.DistributedDataParallel(model) if ddp else model
    optimizer = torch.optim.SGD(model.head.parameters(), 0.1)
    losses, again = [], None
    for step in range(steps):
        ids, labels = half(*batch_of(step), dist.get_rank())
        loss = loss_of(whole({"x": ids, "z": ids}), labels)
        optimizer.zero_grad()
        loss.backward()
        if not ddp:
            sum_in_order(model.head.parameters())
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / 2)
        if step == 4:
            ett.save(model, model.tables, folder, optimizer=optimizer, position=step)
    digest = model.tables.engine.digest()
    found = ett.load(model, model.tables, folder, optimizer=optimizer)
    state = model.tables.state_dict()
    tell([losses, digest, found.step, found.position, float(state["embedding_bags.a.weight"].sum())])
    dist.barrier()
    dist.destroy_process_group()


def zero_grad_seen_by_one():
    """zero_grad() of the model drops what waits on all processes, also where no dense gradient came with it."""
    import torch.distributed as dist

    from embertable.exchange import TorchDistributed
    ours, plain = (ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(1.0), seed=1, strategy=et.EngineStrategy(exchange=TorchDistributed()))
                   for _ in range(2))
    dense = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    ours.optimizer.step_with(optimizer)
    loss = ours(torch.tensor([[1]])).sum()
    (loss + dense(torch.ones(1, 1)).sum() if dist.get_rank() == 1 else loss).backward()
    dense.zero_grad()
    ours(torch.tensor([[2]])).sum().backward()
    optimizer.step()
    plain(torch.tensor([[2]])).sum().backward()
    return ours.engine.digest() == plain.engine.digest() and ours.optimizer.skipped_steps


def rank_that_overflows():
    """One of the processes has a gradient of a table that is infinite under the scale."""
    import torch.distributed as dist

    from embertable.exchange import TorchDistributed
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    unseeded = [ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(1.0), strategy=et.EngineStrategy(exchange=TorchDistributed()))
                for _ in range(2)]
    rows = [float(one.read_rows(range(ROWS)).double().sum()) for one in unseeded]
    tables, dense = Click(et.EngineStrategy(exchange=TorchDistributed())).tables, torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    tables.optimizer.step_with(optimizer, scaler)
    digests, scales = [tables.engine.digest()], []
    ids = torch.tensor([[1, 2]])
    for factor in (1.0, 1e38 if dist.get_rank() == 1 else 1.0, 1.0):
        optimizer.zero_grad()
        loss = (torch.cat(list(tables({"x": ids, "z": ids}).values())) * factor).sum() + dense(torch.ones(1, 1)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        digests.append(tables.engine.digest())
    scales.append(scaler.get_scale())
    tell([rows, digests, tables.engine.step, tables.optimizer.skipped_steps, scales, zero_grad_seen_by_one()])
    dist.barrier()
    dist.destroy_process_group()


class Failing:
    """A position that one of the processes cannot tell."""

    def __init__(self, rank, error):
        self.rank, self.error = rank, error

    def state_dict(self):
        if torch.distributed.get_rank() == self.rank:
            raise self.error
        return {}


class Unwritable:
    """What one of the processes cannot write, for a reason that torch does not know."""

    def __init__(self, rank):
        self.rank = rank

    def __reduce__(self):
        if torch.distributed.get_rank() == self.rank:
            raise ValueError
        return int, ()


def rank_that_saves(run):
    """Saves after each of several steps, and saves that fail on one of the processes."""
    import torch.distributed as dist

    from embertable.exchange import TorchDistributed
    from embertable.torch import checkpoint
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    model = Click(et.EngineStrategy(exchange=TorchDistributed()))

    def step():
        ids, labels = half(*batch_of(0), dist.get_rank())
        loss_of(model({"x": ids, "z": ids}), labels).backward()

    def error_of(call):
        try:
            call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    for _ in range(30):
        step()
        ett.save(model, None, run, keep=2)
    digest = model.tables.engine.digest()
    errors = []
    for position in (Failing(1, KeyError("no")), {"a": (lambda: 1) if dist.get_rank() == 1 else 1}, {"a": Unwritable(1)}):
        errors.append(error_of(lambda: ett.save(model, None, run, position=position)))
    step()
    found = [ett.load(model, None, run).step, model.tables.engine.digest() == digest]
    checkpoint.CheckpointRun, opened = Unkept, checkpoint.CheckpointRun
    errors.append(error_of(lambda: ett.save(model, None, run)))
    checkpoint.CheckpointRun = opened
    tell([errors, *found, ett.load(model, None, run).step])
    dist.barrier()
    dist.destroy_process_group()


class Unkept(et.CheckpointRun):
    def keep(self, newest):
        raise OSError("no room")


def under_torchrun(how, folder=""):
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS=str(torch.get_num_threads()),
                       PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port()),
                           __file__, how, str(folder)], env=environment, capture_output=True, text=True,
                          timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == 2, done.stdout + done.stderr
    return lines


def test_two_processes_reach_the_losses_and_the_digest_of_one(tmp_path):
    losses, digest = alone()
    for found, ours, step, position, _ in under_torchrun("in_order", tmp_path / "run"):
        assert found == losses and ours == digest and (step, position) == (5, 4)


def test_distributed_data_parallel_reaches_the_losses_of_one(tmp_path):
    losses, _ = alone()
    for found, _, step, position, _ in under_torchrun("ddp", tmp_path / "run"):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        assert (step, position) == (5, 4)


def test_an_overflow_on_one_process_skips_the_step_of_all():
    first, second = under_torchrun("overflow")
    assert first == second
    (one, other), digests, step, skipped, scales, dropped = first
    assert one != other  # two tables without a seed differ, and are those of all processes
    assert digests[1] == digests[2] and len(set(digests)) == 3
    assert (step, skipped, scales) == (2, 1, [2.0**9])
    assert dropped == 1


def test_saves_of_two_processes(tmp_path):
    found = under_torchrun("saves", tmp_path / "run")
    (first, *steps), (second, *_) = sorted(found, key=lambda one: "process" in one[0][3])
    assert found[0][1:] == found[1][1:] and steps == [30, True, 31]
    assert {first[0], second[0]} == {"KeyError: 'no'", "RuntimeError: process 1: KeyError: 'no'"}
    assert first[1] == second[1] and first[1].startswith("ValueError: position: has what torch.load(weights_only=True)")
    assert first[2] == second[2] and first[2].startswith("ValueError: position: has what torch.load(weights_only=True)")
    assert [first[3], second[3]] == ["OSError: no room", "RuntimeError: process 0: OSError: no room"]


# Trainers


def pairs(count=128):
    ids = torch.randint(ROWS, (count, 3), generator=torch.Generator().manual_seed(2))
    return torch.utils.data.TensorDataset(ids, (ids[:, 0] % 2).float())


def test_accelerate(tmp_path):
    accelerate = pytest.importorskip("accelerate", reason="pip install accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Click(None)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    loader = torch.utils.data.DataLoader(pairs(), 16)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    tables = accelerator.unwrap_model(model).tables
    tables.optimizer.step_with(optimizer)
    losses = []
    for _ in range(20):
        for ids, labels in loader:
            with accelerator.accumulate(model):
                loss = loss_of(model({"x": ids, "z": ids}), labels)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
    assert tables.engine.step == 80 and np.mean(losses[-8:]) < 0.5 * np.mean(losses[:8])
    accelerator.save_state(tmp_path / "state")
    digest = tables.engine.digest()
    loss_of(model({"x": ids, "z": ids}), labels).backward()
    optimizer.optimizer.step()
    assert tables.engine.digest() != digest
    accelerator.load_state(tmp_path / "state")
    assert tables.engine.digest() == digest


def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning", reason="pip install lightning")

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Click(None)
            self.losses = []

        def training_step(self, batch, index):
            ids, labels = batch
            loss = loss_of(self.model({"x": ids, "z": ids}), labels)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            ids, labels = batch
            self.log("loss", loss_of(self.model({"x": ids, "z": ids}), labels))

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), 0.01)
            self.model.tables.optimizer.step_with(optimizer)
            return optimizer

    module, loader = Lit(), torch.utils.data.DataLoader(pairs(), 16)
    trainer = lightning.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=tmp_path,
                                accumulate_grad_batches=2, gradient_clip_val=1.0, enable_model_summary=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, loader, loader)
    tables = module.model.tables
    assert tables.engine.step == 40 and np.mean(module.losses[-8:]) < 0.85 * np.mean(module.losses[:8])
    assert tables.abandoned_steps == 0
    path = next(pathlib.Path(tmp_path).rglob("*.ckpt"))
    other = Lit()
    other.load_state_dict(torch.load(path, weights_only=True)["state_dict"])
    assert other.model.tables.engine.digest() == tables.engine.digest()


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if sys.argv[1] == "overflow":
        rank_that_overflows()
    elif sys.argv[1] == "saves":
        rank_that_saves(pathlib.Path(sys.argv[2]))
    else:
        rank(sys.argv[1] == "ddp", pathlib.Path(sys.argv[2]))
