"""EmbeddingCollection: a row for each id of several features, beside torch.nn.Embedding and torchrec's shapes."""

import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from small_modules import DIM, ROWS, rows_of
from stand_ins import JaggedTensor, KeyedJaggedTensor, on_late_accelerator, real_jagged_tensors


def sequences(optimizer=None, **options):
    """Tables `films` of the features seen and liked, `users` of the feature user."""
    return ett.EmbeddingCollection([ett.EmbeddingConfig(ROWS, DIM, "films", ["seen", "liked"]), ett.EmbeddingConfig(30, 2, "users", ["user"])],
                                   optimizer or et.SGD(1.0), seed=options.pop("seed", 3), **options)


def keyed(weights=None, keys=("user", "other", "seen", "liked")):
    """Two samples: users 7 and 9, seen [1, 2, 1] and [], liked [] and [4, 2]."""
    return KeyedJaggedTensor(list(keys), torch.tensor([7, 9, 5, 1, 2, 1, 4, 2]), torch.tensor([1, 1, 0, 1, 3, 0, 0, 2]), weights)


def jagged(values, lengths):
    return JaggedTensor(torch.tensor(values), torch.tensor(lengths))


def test_keyed_jagged_tensors_give_rows_of_each_feature():
    ours = sequences()
    films, users = rows_of(ours, "films"), rows_of(ours, "users")
    found = ours(keyed())
    assert list(found) == ours.embedding_names() == ["seen", "liked", "user"]
    for name, rows, ids, lengths in [("seen", films, [1, 2, 1], [3, 0]), ("liked", films, [4, 2], [0, 2]), ("user", users, [7, 9], [1, 1])]:
        assert isinstance(found[name], ett.JaggedTensor)
        torch.testing.assert_close(found[name].values(), rows[ids], rtol=0, atol=0)
        assert found[name].lengths().tolist() == lengths
    weights = torch.arange(3 * DIM).reshape(3, DIM).float()
    ((found["seen"].values() * weights).sum() + found["liked"].values().sum()).backward()
    for row, gradient in (1, weights[0] + weights[2]), (2, weights[1] + 1), (4, torch.ones(DIM)):
        films[row] -= gradient
    torch.testing.assert_close(rows_of(ours, "films"), films)
    torch.testing.assert_close(rows_of(ours, "users"), users)
    assert ours.engine.step == 1


def test_trains_as_modules_of_torch_do():
    ours = sequences()
    theirs = {name: torch.nn.Embedding.from_pretrained(rows_of(ours, name), freeze=False) for name in ("films", "users")}
    optimizer = torch.optim.SGD([one.weight for one in theirs.values()], 1.0)
    draw = torch.Generator().manual_seed(1)
    for _ in range(5):
        lengths = torch.randint(4, (12,), generator=draw)
        counts = lengths.view(3, 4).sum(1).tolist()
        ids = torch.randint(ROWS, (sum(counts),), generator=draw)
        found = ours(KeyedJaggedTensor(["seen", "user", "liked"], ids, lengths))
        seen, user, liked = ids.split(counts)
        expected = {"seen": theirs["films"](seen), "liked": theirs["films"](liked), "user": theirs["users"](user)}
        for rows in ({name: one.values() for name, one in found.items()}, expected):
            sum(one.square().sum() for one in rows.values()).mul(0.1).backward()
        optimizer.step()
        optimizer.zero_grad()
    for name, module in theirs.items():
        torch.testing.assert_close(rows_of(ours, name), module.weight.data)


def test_a_dict_gives_what_it_has():
    ours = sequences()
    films, users = rows_of(ours, "films"), rows_of(ours, "users")
    nested = torch.nested.nested_tensor([torch.tensor([1, 2, 3]), torch.tensor([4])], layout=torch.jagged)
    found = ours({"seen": torch.tensor([[1, 2, 3], [4, 5, 6]]), "liked": nested, "user": jagged([3, 4, 5], [1, 2]), "dense": "of the model"})
    torch.testing.assert_close(found["seen"], films[torch.tensor([[1, 2, 3], [4, 5, 6]])])
    assert found["liked"].is_nested and found["liked"].layout == torch.jagged
    torch.testing.assert_close(found["liked"].values(), films[[1, 2, 3, 4]])
    assert found["liked"].offsets().tolist() == [0, 3, 4]
    torch.testing.assert_close(found["user"].values(), users[[3, 4, 5]])
    (found["seen"].sum() + found["user"].values().sum()).backward()
    expected = films.clone()
    expected[1:7] -= 1
    torch.testing.assert_close(rows_of(ours, "films"), expected)
    strided = torch.nested.nested_tensor([torch.tensor([[1, 2]]), torch.tensor([[4], [5]])])
    with torch.no_grad():
        found = ours({"seen": np.array([3, 1]), "liked": strided, "user": ett.JaggedTensor(torch.tensor([2]), torch.tensor([0, 1]))})
    torch.testing.assert_close(found["seen"], expected[[3, 1]])
    for part, ids in zip(found["liked"].unbind(), strided.unbind()):
        torch.testing.assert_close(part, expected[ids])
    assert found["user"].lengths().tolist() == [0, 1] and found["user"].offsets().tolist() == [0, 0, 1]


def test_without_ids():
    ours = sequences()
    found = ours(KeyedJaggedTensor(["seen", "liked", "user"], torch.tensor([], dtype=torch.int64), torch.zeros(6, dtype=torch.int64)))
    assert found["seen"].values().shape == (0, DIM) and found["seen"].lengths().tolist() == [0, 0]
    assert found["seen"].to_padded_dense().shape == (2, 0, DIM) and [len(one) for one in found["seen"].to_dense()] == [0, 0]
    assert found["seen"].to_padded_dense(3, 7.0).tolist() == torch.full((2, 3, DIM), 7.0).tolist()
    nothing = ours(KeyedJaggedTensor(["seen", "liked", "user"], torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64)))
    assert nothing["user"].values().shape == (0, 2) and nothing["user"].to_padded_dense().shape == (0, 0, 2)


@pytest.mark.parametrize("size", [None, 0, 1, 2, 3, 5])
def test_padded(size):
    values = torch.arange(12.0).reshape(6, 2).requires_grad_()
    lengths = [3, 0, 1, 2]
    made = ett.JaggedTensor(values, torch.tensor(lengths))
    parts = made.to_dense()
    assert [part.tolist() for part in parts] == [part.tolist() for part in values.split(lengths)]
    padded = made.to_padded_dense(size, -1.0)
    longest = 3 if size is None else size
    expected = [[*part.tolist()[:longest], *[[-1.0, -1.0]] * (longest - len(part))] for part in parts]
    assert padded.shape == (4, longest, 2) and padded.tolist() == expected
    padded.sum().backward()
    assert values.grad.tolist() == [[float(at < longest)] * 2 for length in lengths for at in range(length)]


def test_errors_count_in_what_was_given():
    for batch in (KeyedJaggedTensor(["seen", "liked", "user"], torch.tensor([1, 2, 3, ROWS, 4]), torch.tensor([0, 2, 0, 2, 1, 0])),
                  {"seen": torch.tensor([1]), "user": torch.tensor([1]), "liked": jagged([3, ROWS], [0, 2])}):
        with pytest.raises(et.DataError, match=f"feature 'liked', sample 1, position 1: id must be in 0..19 .* got {ROWS}") as caught:
            sequences()(batch)
        assert (caught.value.feature, caught.value.sample, caught.value.position) == ("liked", 1, 1)


@pytest.mark.parametrize("arguments, kind, text", [
    ((torch.ones(2),), TypeError, "either lengths or offsets must be given"),
    (([1], torch.tensor([1])), TypeError, "values must be a tensor, got list"),
    ((torch.ones(2), [1, 1]), TypeError, "lengths must be a tensor, got list"),
    ((torch.ones(2), torch.tensor([1.0, 1.0])), ValueError, "lengths must be integers"),
    ((torch.ones(2), torch.tensor([[1, 1]])), ValueError, r"lengths must be integers \[samples\], got torch.int64 of shape \(1, 2\)"),
])
def test_jagged_tensors_that_are_none(arguments, kind, text):
    with pytest.raises(kind, match=text):
        ett.JaggedTensor(*arguments)


def test_lengths_that_are_not_those_of_the_values():
    for lengths in [2, 1], [3, -1], [1, 0]:
        made = ett.JaggedTensor(torch.ones(2, 3), torch.tensor(lengths))
        for call in made.to_dense, made.to_padded_dense:
            with pytest.raises(ValueError, match="lengths must not be negative, and add up to the number of values, 2; got"):
                call()
    for offsets, text in (torch.tensor([1, 3]), r"offsets must begin with 0, got \[1, 3\]"), (torch.ones(2), r"offsets must be integers \[samples \+ 1\]"):
        with pytest.raises(ValueError, match=text):
            ett.JaggedTensor(torch.ones(2), offsets=offsets)
    with pytest.raises(TypeError, match="either lengths or offsets must be given"):
        ett.JaggedTensor(torch.ones(2), torch.tensor([2]), offsets=torch.tensor([0, 2]))
    made = ett.JaggedTensor(torch.ones(2), offsets=torch.tensor([0, 0, 2]))
    assert made.lengths().tolist() == [0, 2] and made.offsets().tolist() == [0, 0, 2] and "lengths=tensor([0, 2])" in repr(made)
    for size, kind, text in (-1, ValueError, "desired_length must be >= 0, got -1"), (2.0, TypeError, "desired_length must be an integer, got 2.0"):
        with pytest.raises(kind, match=text):
            made.to_padded_dense(size)


def test_a_feature_of_several_tables():
    ours = ett.EmbeddingCollection([ett.EmbeddingConfig(ROWS, DIM, "a", ["x", "y"]), ett.EmbeddingConfig(ROWS, 2, "b", ["x"])], et.SGD(1.0))
    assert ours.embedding_names() == ["x@a", "y", "x@b"]
    found = ours(KeyedJaggedTensor(["y", "x"], torch.tensor([1, 2, 3]), torch.tensor([1, 2])))
    torch.testing.assert_close(found["x@a"].values(), rows_of(ours, "a")[[2, 3]])
    torch.testing.assert_close(found["x@b"].values(), rows_of(ours, "b")[[2, 3]])
    assert found["y"].lengths().tolist() == [1]


def test_padding_gives_zeros_and_trains_nothing():
    ours = ett.EmbeddingCollection([ett.EmbeddingConfig(ROWS, DIM, "a", ["x"], padding_idx=0)], et.SGD(1.0), seed=1)
    before = rows_of(ours)
    for ids in {"x": torch.tensor([0, 3, 0])}, {"x": jagged([0, 3, 0], [2, 1])}, KeyedJaggedTensor(["x"], torch.tensor([0, 3, 0]), torch.tensor([2, 1])):
        found = ours(ids)["x"]
        rows = found if isinstance(found, torch.Tensor) else found.values()
        torch.testing.assert_close(rows, torch.stack([torch.zeros(DIM), before[3], torch.zeros(DIM)]))
        rows.sum().backward()
        before[3] -= 1
    torch.testing.assert_close(rows_of(ours), before)


def test_states():
    ours, again = sequences(et.Adagrad(0.1)), sequences(et.Adagrad(0.1), seed=9)
    ours(keyed())["seen"].values().sum().backward()
    state = ours.state_dict()
    assert {"embeddings.films.weight", "embeddings.films.weight.accumulators", "embeddings.users.weight"} <= set(state)
    again.load_state_dict(state)
    assert again.engine.digest() == ours.engine.digest()
    rows = {"model.ec.embeddings.films.weight": torch.rand(ROWS, DIM), "model.ec.embeddings.users.weight": torch.rand(30, 2)}
    pooled = {"model.ebc.embedding_bags.films.weight": torch.zeros(ROWS, DIM)}  # a table of another module that has the same name
    assert ett.import_state(ours, {**pooled, **rows}) == ["films", "users"]
    torch.testing.assert_close(rows_of(ours, "films"), rows["model.ec.embeddings.films.weight"])
    torch.testing.assert_close(rows_of(ours, "users"), rows["model.ec.embeddings.users.weight"])


def test_configurations():
    with pytest.raises(TypeError, match=r"tables\[0\] must be an EmbeddingConfig, got EmbeddingBagConfig, whose rows are combined"):
        ett.EmbeddingCollection([ett.EmbeddingBagConfig(ROWS, DIM, "a", ["x"])], et.SGD(1.0))
    with pytest.raises(TypeError, match=r"tables\[0\] must be an EmbeddingConfig, got SimpleNamespace without embedding_dim"):
        ett.EmbeddingCollection([types.SimpleNamespace(name="a", num_embeddings=3)], et.SGD(1.0))
    with pytest.raises(TypeError, match="EmbeddingCollection: tables must be a list of EmbeddingConfigs, got str"):
        ett.EmbeddingCollection("ab", et.SGD(1.0))
    with pytest.raises(TypeError, match="EmbeddingCollection: need_indices is not offered: the batch has them"):
        ett.EmbeddingCollection([ett.EmbeddingConfig(ROWS, DIM, "a", ["x"])], et.SGD(1.0), need_indices=True)
    with pytest.raises(NotImplementedError, match="strategy must have one replica in a process, got 2"):
        sequences(strategy=et.EngineStrategy(replicas_per_host=2))
    with pytest.raises(TypeError, match="EmbeddingCollection: there is no argument 'is_weighted'"):
        ett.EmbeddingCollection([ett.EmbeddingConfig(ROWS, DIM, "a", ["x"])], et.SGD(1.0), is_weighted=True)
    theirs = types.SimpleNamespace(num_embeddings=5, embedding_dim=4, name="a", feature_names=["x"], data_type=types.SimpleNamespace(name="BF16"))
    ours = ett.EmbeddingCollection([theirs], et.SGD(1.0))
    assert ours.embedding_configs() == [theirs] and ours.engine.tables[0].row_type == "bfloat16"
    assert "a: 5 x 4;" in repr(ours)


def turned():
    """Nested, and ragged in its third dimension."""
    return torch.nested.nested_tensor([torch.ones(2, 3).long(), torch.ones(1, 3).long()], layout=torch.jagged).transpose(1, 2)


@pytest.mark.parametrize("batch, kind, text", [
    (lambda: keyed(torch.ones(8)), ValueError, "the batch has weights, which are for rows that are combined: give none, and multiply the rows"),
    (lambda: {"seen": JaggedTensor(torch.tensor([1]), torch.tensor([1]), torch.ones(1)), "liked": torch.tensor([1]), "user": torch.tensor([1])},
     ValueError, "ids of feature 'seen' have weights"),
    (lambda: {"seen": (torch.tensor([1]), torch.tensor([0])), "liked": torch.tensor([1]), "user": torch.tensor([1])}, TypeError,
     "ids of feature 'seen' must be a tensor, or a JaggedTensor of values and lengths, got tuple"),
    (lambda: {"seen": jagged([1, 2], [1, 2]), "liked": torch.tensor([1]), "user": torch.tensor([1])}, ValueError,
     "lengths of ids of feature 'seen' must add up to the number of ids, 2, got 3"),
    (lambda: {"seen": jagged([1, 2], [3, -1]), "liked": torch.tensor([1]), "user": torch.tensor([1])}, ValueError,
     "lengths of ids of feature 'seen' must not be negative, got -1 at position 1"),
    (lambda: {"seen": JaggedTensor(torch.tensor([[1, 2]]), torch.tensor([1])), "liked": torch.tensor([1]), "user": torch.tensor([1])}, ValueError,
     "ids of feature 'seen' must be 1-D where they have lengths, got shape"),
    (lambda: {"seen": jagged([1, 2], [[1], [1]]), "liked": torch.tensor([1]), "user": torch.tensor([1])}, ValueError,
     "lengths of ids of feature 'seen' must be 1-D, got shape"),
    (lambda: {"seen": jagged([1, 2], [1.5, 0.5]), "liked": torch.tensor([1]), "user": torch.tensor([1])}, TypeError,
     "lengths of ids of feature 'seen' must be int64 or int32, got float32"),
    (lambda: {"seen": JaggedTensor(torch.tensor([1]), np.array([1])), "liked": torch.tensor([1]), "user": torch.tensor([1])}, TypeError,
     "lengths of ids of feature 'seen' must be a tensor, got ndarray"),
    (lambda: {"seen": keyed(), "liked": torch.tensor([1]), "user": torch.tensor([1])}, TypeError, "got KeyedJaggedTensor"),
    (lambda: keyed(keys=("user", "user", "seen", "liked")), ValueError, "the features of a batch must have names that differ, got"),
    (lambda: KeyedJaggedTensor(["user", "seen", "liked"], torch.tensor([1, 2, 3, 4]), torch.tensor([1, 1, 3, -1, 0, 0])), ValueError,
     "lengths of the batch must not be negative, got -1 at position 3"),
    (lambda: KeyedJaggedTensor(["user", "seen", "liked"], torch.tensor([1, 2, 3]), torch.ones(3, 1).long()), ValueError,
     "lengths of the batch must be 1-D"),
    (lambda: KeyedJaggedTensor(["user", "seen", "liked"], torch.tensor([1, 2, 3]), torch.tensor([1, 1, 1, 0])), ValueError,
     "which are no whole number for each of its 3 features"),
    (lambda: {"seen": torch.tensor([1]), "liked": turned(), "user": torch.tensor([1])}, NotImplementedError, "whose second dimension is not the ragged one"),
    (lambda: {"seen": torch.tensor([1.0]), "liked": torch.tensor([1]), "user": torch.tensor([1])}, TypeError,
     "ids of feature 'seen' must be int64 or int32, got float32"),
    (lambda: {"seen": torch.tensor([1]), "user": torch.tensor([1])}, KeyError, "the batch has no feature 'liked'; it has"),
    (lambda: {"seen": torch.tensor([1]), "liked": torch.tensor([ROWS]), "user": torch.tensor([1])}, et.DataError, "feature 'liked'.* sample 0"),
    (lambda: keyed(keys=("user", "other", "seen", "another")), KeyError, "the batch has no feature 'liked'"),
    (lambda: torch.tensor([1]), TypeError, "takes a dict by feature or a KeyedJaggedTensor, got Tensor"),
    (lambda: KeyedJaggedTensor(["seen", "liked", "user"], torch.tensor([1, 2, 3]), torch.tensor([1, 1, 2])), ValueError, "lengths say"),
])
def test_batches_that_are_refused(batch, kind, text):
    ours = sequences()
    before = ours.engine.digest()
    with pytest.raises(kind, match=text):
        ours(batch())
    assert ours.engine.digest() == before and ours.engine.awaiting_gradients == 0


def test_real_jagged_tensors():
    sparse = real_jagged_tensors()
    like = keyed()
    ours = sequences()
    real = sparse.KeyedJaggedTensor(keys=like.keys(), values=like.values(), lengths=like.lengths())
    for (name, found), expected in zip(ours(real).items(), ours(like).values()):
        torch.testing.assert_close(found.values(), expected.values())
        theirs = sparse.JaggedTensor(values=expected.values(), lengths=expected.lengths())
        for size in None, 1, 4:
            torch.testing.assert_close(found.to_padded_dense(size), theirs.to_padded_dense(size))
        again = ours({"seen": torch.tensor([1]), "liked": torch.tensor([1]), "user": torch.tensor([1]), **{name: real[name]}})[name]
        torch.testing.assert_close(again.values(), expected.values())


def test_activations_of_other_types():
    ours = sequences(et.Adagrad(0.1)).to(torch.bfloat16)
    found = ours(keyed())["seen"].values()
    assert found.dtype is torch.bfloat16
    found.sum().backward()
    assert ours.engine.step == 1


def test_on_an_accelerator():
    """Ids and activations of which are copied late."""
    plain, ours = sequences(), sequences()
    runtime = on_late_accelerator(ours)
    for batch in keyed(), {"seen": torch.tensor([[1, 2], [3, 4]]), "liked": jagged([4, 2], [0, 2]), "user": torch.tensor([7])}, keyed():
        ours.prefetch(batch)
        found, expected = ours(batch), plain(batch)
        runtime.compute()
        for mine, other in zip(found.values(), expected.values()):
            mine, other = (one if isinstance(one, torch.Tensor) else one.values() for one in (mine, other))
            torch.testing.assert_close(mine, other)
        for rows in found, expected:
            sum(one.sum() if isinstance(one, torch.Tensor) else one.values().sum() for one in rows.values()).backward()
    assert ours.engine.digest() == plain.engine.digest()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = sequences(et.Adagrad(0.1))
        torch.manual_seed(1)
        self.head = torch.nn.Linear(DIM, 1)

    def forward(self, seen, lengths, user):
        rows = self.tables({"seen": seen, "liked": ett.JaggedTensor(seen.view(-1), lengths), "user": user})
        return (self.head(rows["seen"]).sum() + self.head(rows["liked"].values()).square().sum()) * rows["user"].sum()


class OfKeyed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = sequences(et.Adagrad(0.1))

    def forward(self, values, lengths):
        rows = self.tables(KeyedJaggedTensor(["user", "seen", "liked"], values, lengths))
        padded = rows["liked"].to_padded_dense(2), rows["liked"].to_padded_dense()
        return rows["seen"].values().square().sum() + (padded[0].sum() + padded[1].sum()) * rows["user"].values().sum()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled(backend):
    plain, model = Model(), Model()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for samples in 2, 3, 5, 2:
        seen = torch.arange(2 * samples).view(samples, 2)
        for call in plain, compiled:
            call(seen, torch.full((samples,), 2), torch.arange(samples)).backward()
    for name in "films", "users":
        torch.testing.assert_close(rows_of(model.tables, name), rows_of(plain.tables, name))
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_with_keyed_jagged_tensors(backend):
    """How many ids are whose is known only when the code runs."""
    plain, model = OfKeyed(), OfKeyed()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for lengths in [1, 1, 3, 0, 0, 2], [1, 1, 2, 0, 1, 1], [0, 1, 0, 5, 2, 2], [1, 1, 1, 1, 0, 0]:
        values = torch.arange(sum(lengths)) + 2
        for call in plain, compiled:
            call(values, torch.tensor(lengths)).backward()
    for name in "films", "users":
        torch.testing.assert_close(rows_of(model.tables, name), rows_of(plain.tables, name))
    torch._dynamo.reset()


def test_compiled_as_eager():
    """Padding and errors of each feature."""
    make = lambda: ett.EmbeddingCollection([ett.EmbeddingConfig(ROWS, DIM, "a", ["x"], padding_idx=0), ett.EmbeddingConfig(ROWS, DIM, "b", ["y"]),
                                            ett.EmbeddingConfig(ROWS, DIM, "c", ["z"], padding_idx=-1)], et.SGD(1.0), seed=3)
    plain, model = make(), make()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    ids = torch.tensor([0, 1, ROWS - 1])
    batch = {"x": ids, "y": ett.JaggedTensor(ids, torch.tensor([2, 1])), "z": ids}
    for call in plain, compiled:
        rows = call(batch)
        (rows["x"].sum() + rows["y"].values().sum() + rows["z"].sum()).backward()
    assert model.engine.digest() == plain.engine.digest()
    for lengths, text in ([3, -1], "lengths of ids of feature 'y' must not be negative"), ([1, 1], "lengths of ids of feature 'y' must add up to"):
        with pytest.raises(ValueError, match=text):
            compiled({**batch, "y": ett.JaggedTensor(ids, torch.tensor(lengths))})
    assert model.engine.digest() == plain.engine.digest()
    torch._dynamo.reset()


def rank():
    """One of two processes, whose batches have different numbers of ids."""
    import torch.distributed as dist

    from embertable.exchange import TorchDistributed
    dist.init_process_group("gloo")
    ours = sequences(strategy=et.EngineStrategy(exchange=TorchDistributed()), rank_gradients="sum")
    if dist.get_rank() == 0:
        batch = KeyedJaggedTensor(["user", "seen", "liked"], torch.tensor([7, 1, 2, 1]), torch.tensor([1, 3, 0]))
    else:
        batch = KeyedJaggedTensor(["user", "seen", "liked"], torch.tensor([9, 8, 4, 2]), torch.tensor([1, 1, 0, 1, 0, 1]))
    sum(rows.values().square().sum() for rows in ours(batch).values()).backward()
    rows = torch.cat([rows_of(ours, "films").reshape(-1), rows_of(ours, "users").reshape(-1)])
    os.write(1, f"{json.dumps([ours.engine.step, rows.tolist()])}\n".encode())
    dist.barrier()
    dist.destroy_process_group()


def test_two_processes_with_batches_of_their_own():
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__],
                          env=dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(sys.path)),
                          capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == 2 and lines[0] == lines[1], done.stdout + done.stderr
    ours = sequences()
    found = ours({"user": torch.tensor([7, 9, 8]), "seen": torch.tensor([1, 2, 1, 4]), "liked": torch.tensor([2])})
    sum(rows.square().sum() for rows in found.values()).backward()
    rows = torch.cat([rows_of(ours, "films").reshape(-1), rows_of(ours, "users").reshape(-1)])
    assert lines[0][0] == 1
    torch.testing.assert_close(torch.tensor(lines[0][1]), rows)


if __name__ == "__main__":
    rank()
