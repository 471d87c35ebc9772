"""Modules of embertable.torch beside torch's own, beside a loop in NumPy, and beside torchrec's shapes."""

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import types
import warnings
import weakref

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from stand_ins import JaggedTensor, KeyedJaggedTensor, on_late_accelerator

ROWS, DIM = 20, 4


def bag(mode="sum", optimizer=None, rows=ROWS, **options):
    return ett.EmbeddingBag(rows, DIM, mode=mode, optimizer=optimizer or et.SGD(1.0), seed=options.pop("seed", 1), **options)


def of_torch(module, **options):
    """torch's module with the same rows."""
    kind = torch.nn.EmbeddingBag if isinstance(module, ett.EmbeddingBag) else torch.nn.Embedding
    if kind is torch.nn.EmbeddingBag:
        options["mode"] = module.mode
    made = kind(module.num_embeddings, module.embedding_dim, **options)
    made.weight.data = rows_of(module)
    return made


def rows_of(module, table=None):
    name = table or next(iter(module._tables))
    return module.read_rows(torch.arange(module._tables[name].vocabulary_size), table)


def collection(optimizer=None, features=("user", "film"), **options):
    return ett.EmbeddingBagCollection(
        [ett.EmbeddingBagConfig(ROWS, DIM, "users", [features[0]]), ett.EmbeddingBagConfig(30, DIM, "films", [features[1]], "mean")],
        optimizer or et.SGD(1.0), seed=3, **options)


INPUTS = {
    "two_dimensions": ((torch.tensor([[1, 2], [3, 3], [0, 19]]),), {}),
    "one_id_a_line": ((torch.tensor([[1], [2]]),), {}),
    "offsets": ((torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2, 5])), {}),
    "int32": ((torch.tensor([1, 2, 4], dtype=torch.int32), torch.tensor([0, 1], dtype=torch.int32)), {}),
    "weights": ((torch.tensor([1, 2, 4, 5]), torch.tensor([0, 3]), torch.tensor([0.5, -1, 2, 0.0])), {}),
    "weights_of_lines": ((torch.tensor([[1, 2], [4, 5]]), None, torch.tensor([[0.5, -1], [2, 3.0]])), {}),
    "no_ids": ((torch.tensor([], dtype=torch.int64), torch.tensor([0, 0])), {}),
}


# torch has weights with sums alone
@pytest.mark.parametrize("case, mode", [(case, mode) for case, (arguments, _) in INPUTS.items() for mode in ("sum", "mean")
                                        if mode == "sum" or len(arguments) < 3])
def test_a_bag_gives_what_that_of_torch_gives(case, mode):
    arguments, options = INPUTS[case]
    ours = bag(mode, **options)
    theirs = of_torch(ours, **options)
    expected = theirs(*arguments)
    found = ours(*arguments)
    torch.testing.assert_close(found, expected)
    change = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    before = rows_of(ours)
    found.backward(change)
    expected.backward(change)
    torch.testing.assert_close(rows_of(ours), before - theirs.weight.grad)


def test_include_last_offset():
    ours = bag(include_last_offset=True)
    theirs = of_torch(ours, include_last_offset=True)
    arguments = torch.tensor([1, 2, 4]), torch.tensor([0, 1, 3])
    torch.testing.assert_close(ours(*arguments), theirs(*arguments))


@pytest.mark.parametrize("padding_idx", [3, -1])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_padding_counts_as_absent(mode, padding_idx):
    ours = bag(mode, padding_idx=padding_idx)
    theirs = of_torch(ours, padding_idx=padding_idx)
    pad = padding_idx % ROWS
    for arguments in [(torch.tensor([[1, pad, 2], [pad, pad, pad]]),), (torch.tensor([pad, 1, 2, pad]), torch.tensor([0, 1, 3]))]:
        before = rows_of(ours)
        theirs.zero_grad()
        found, expected = ours(*arguments), theirs(*arguments)
        torch.testing.assert_close(found, expected)
        (found.sum() + expected.sum()).backward()
        torch.testing.assert_close(rows_of(ours), before - theirs.weight.grad)
        theirs.weight.data = rows_of(ours)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 0), (), (2, 1, 3)])
def test_an_embedding_takes_ids_of_any_shape(shape):
    ours = ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), seed=2)
    theirs = of_torch(ours)
    ids = torch.randint(ROWS, shape, generator=torch.Generator().manual_seed(1))
    before = rows_of(ours)
    found, expected = ours(ids), theirs(ids)
    torch.testing.assert_close(found, expected)
    (found.square().sum() + expected.square().sum()).backward()
    torch.testing.assert_close(rows_of(ours), before - theirs.weight.grad)


def test_padding_of_an_embedding_gives_zeros_and_trains_nothing():
    ours = ett.Embedding(ROWS, DIM, padding_idx=2, optimizer=et.SGD(1.0), seed=2)
    before = rows_of(ours)
    found = ours(torch.tensor([[2, 1], [0, 2]]))
    assert found[0, 0].abs().sum() == 0 and found[1, 1].abs().sum() == 0
    torch.testing.assert_close(found[0, 1], before[1])
    found.sum().backward()
    expected = before.clone()
    expected[[0, 1]] -= 1
    torch.testing.assert_close(rows_of(ours), expected)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors(layout):
    rows = [torch.tensor([1, 2, 3]), torch.tensor([4]), torch.tensor([5, 6])]
    nested = torch.nested.nested_tensor(rows, layout=layout)
    ours = bag("mean")
    theirs = of_torch(ours)
    torch.testing.assert_close(ours(nested), theirs(torch.cat(rows), torch.tensor([0, 3, 4])))
    found = collection()({"user": nested, "film": nested})
    assert found["user"].shape == (3, DIM) and found["film"].shape == (3, DIM)


def test_an_embedding_of_a_jagged_tensor_is_jagged():
    nested = torch.nested.nested_tensor([torch.tensor([1, 2, 3]), torch.tensor([4])], layout=torch.jagged)
    ours = ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), seed=2)
    found = ours(nested)
    assert found.is_nested
    torch.testing.assert_close(found.values(), ours(torch.tensor([1, 2, 3, 4])))


def test_jagged_tensors_by_their_attributes():
    ours = bag("mean")
    jagged = JaggedTensor(torch.tensor([1, 2, 4]), torch.tensor([2, 0, 1]))
    torch.testing.assert_close(ours(jagged), ours(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 2])))
    torch.testing.assert_close(ours(et.RaggedIds.from_rows([[1, 2], [], [4]])), ours(jagged))


def test_wrong_offsets_are_named_with_padding_too():
    ours = bag(padding_idx=3, include_last_offset=True)
    ids = torch.tensor([1, 3, 2])
    for offsets, text in [([1, 2, 3], "got 1 at position 0"), ([0, 9], "got 9 at position 1"), ([0, -1, 3], "got -1 at position 1"),
                          ([0, 2], "got 2 at position 1")]:
        found = [pytest.raises(et.DataError, module, ids, torch.tensor(offsets))
                 for module in (ours, bag(include_last_offset=True))]
        assert str(found[0].value) == str(found[1].value) and text in str(found[0].value)


def test_wrong_bounds_with_several_replicas_are_refused():
    ours = bag(strategy=et.EngineStrategy(replicas_per_host=2))
    with pytest.raises(et.DataError, match="offsets of ids must begin with 0, not fall, and be at most the number of ids, 4; got 1 at position 0"):
        ours(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2]))


def test_weights_have_the_shape_of_the_ids():
    ours = bag()
    with pytest.raises(ValueError, match=r"weights of ids must have the shape of the ids, \(2, 3\), got \(3, 2\)"):
        ours(torch.ones(2, 3, dtype=torch.int64), None, torch.ones(3, 2))
    nested = torch.nested.nested_tensor([torch.tensor([1, 2]), torch.tensor([3])], layout=torch.jagged)
    weights = [torch.tensor([1.0]), torch.tensor([2.0, 3.0])]
    for layout in (torch.strided, torch.jagged):
        with pytest.raises(ValueError, match="weights of ids must have the bags of the ids"):
            ours(nested, None, torch.nested.nested_tensor(weights, layout=layout))
        found = ours(nested, None, torch.nested.nested_tensor(weights[::-1], layout=layout))
        torch.testing.assert_close(found, ours(nested.values(), torch.tensor([0, 2]), torch.tensor([2.0, 3, 1])))


class Named(torch.Tensor):
    """A subclass, as those of libraries."""


def test_arrays_and_subclasses_are_ids_too():
    ours = bag(padding_idx=3)
    single = ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), seed=2)
    ids, offsets = torch.tensor([1, 3, 2]), torch.tensor([0, 2])
    expected = ours(ids, offsets), ours(ids[None]), single(ids[None])
    fixed = ids.numpy().copy()
    fixed.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ett.AbandonedStepWarning)
        for other in (ids.numpy(), fixed, ids.as_subclass(Named)):
            found = ours(other, offsets), ours(other[None]), single(other[None])
            for ours_now, wanted in zip(found, expected):
                torch.testing.assert_close(ours_now, wanted)


def test_an_embedding_of_a_strided_nested_tensor():
    ours = ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), seed=2)
    before = rows_of(ours)
    found = ours(torch.nested.nested_tensor([torch.tensor([[1, 2]]), torch.tensor([[3], [1]])], layout=torch.strided))
    first, second = found.unbind()
    torch.testing.assert_close(first, before[[1, 2]][None])
    torch.testing.assert_close(second, before[[3, 1]][:, None])
    (first.sum() + second.sum()).backward()
    torch.testing.assert_close(rows_of(ours)[[1, 2, 3]], before[[1, 2, 3]] - torch.tensor([2.0, 1, 1])[:, None])


@pytest.mark.parametrize("lengths, text", [
    ([1, 0, 2, 0, 2], "lengths of 5 bags, which are no whole number for each of its 3 features"),
    ([1, 0, 2, 0, 2, 2], r"has 6 ids, and its lengths say that features end at \[1, 3, 7\]"),
    ([3, 0, 0, -2, 4, 1], r"has 6 ids, and its lengths say that features end at \[3, 1, 6\]"),
])
def test_keyed_jagged_tensors_that_contradict_themselves(lengths, text):
    batch = KeyedJaggedTensor(["other", "film", "user"], torch.arange(6), torch.tensor(lengths))
    with pytest.raises(ValueError, match=text):
        collection()(batch)


def keyed(weights=None, keys=("other", "film", "user")):
    values, lengths = torch.tensor([7, 1, 2, 4, 5, 6]), torch.tensor([1, 0, 2, 0, 2, 1])
    return KeyedJaggedTensor(list(keys), values, lengths, weights)


def test_a_collection_takes_keyed_jagged_tensors():
    ours = collection()
    found = ours(keyed())
    named = ours({"film": (torch.tensor([1, 2]), torch.tensor([0, 2])), "user": (torch.tensor([4, 5, 6]), torch.tensor([0, 2]))})
    assert found.keys() == ["user", "film"] == list(named)
    torch.testing.assert_close(found.values(), torch.cat([named["user"], named["film"]], 1))
    torch.testing.assert_close(found["film"], named["film"])
    assert found.length_per_key() == [DIM, DIM] and found.offset_per_key() == [0, DIM, 2 * DIM]
    assert list(found.to_dict()) == ["user", "film"]
    with pytest.raises(KeyError, match=r"no feature 'b'; there are \['user', 'film'\]"):
        found["b"]
    with pytest.raises(KeyError, match="the batch has no feature 'user'; it has"):
        ours(keyed(keys=("other", "film", "another")))


def test_weights_of_keyed_jagged_tensors():
    weights = torch.tensor([9, 0.5, 2, 1, -1, 3])
    with pytest.raises(ValueError, match="has weights, and is_weighted is False: make the collection with is_weighted=True"):
        collection()(keyed(weights))
    ours = collection(is_weighted=True)
    with pytest.raises(ValueError, match="has no weights, and is_weighted is True"):
        ours(keyed())
    found = ours(keyed(weights))
    rows = rows_of(ours, "users")
    torch.testing.assert_close(found["user"], torch.stack([rows[4] - rows[5], 3 * rows[6]]))


def test_real_keyed_jagged_tensors():
    sparse = pytest.importorskip("torchrec.sparse.jagged_tensor", reason="pip install --no-deps torchrec tensordict",
                                 exc_type=ImportError)
    batch = sparse.KeyedJaggedTensor(keys=["film", "user"], values=torch.tensor([1, 2, 4, 5, 6]), lengths=torch.tensor([2, 0, 2, 1]))
    ours = collection()
    torch.testing.assert_close(ours(batch).values(), ours(keyed()).values())


def test_a_feature_of_several_tables_and_a_table_of_several_features():
    ours = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "a", ["x", "y"]), ett.EmbeddingBagConfig(ROWS, 2, "b", ["x"])],
                                      et.SGD(1.0), seed=1)
    assert ours.embedding_names() == ["x@a", "y", "x@b"]
    before = rows_of(ours, "a"), rows_of(ours, "b")
    found = ours({"x": torch.tensor([1, 2]), "y": torch.tensor([2, 2])})
    torch.testing.assert_close(found["x@a"], before[0][[1, 2]])
    torch.testing.assert_close(found["x@b"], before[1][[1, 2]])
    sum(rows.sum() for rows in found.values()).backward()
    expected = before[0].clone()
    expected[1] -= 1
    expected[2] -= 3
    torch.testing.assert_close(rows_of(ours, "a"), expected)
    assert ours.engine.step == 1


def test_first_rows():
    """Standard normal as torch's, and of torch's seed; a collection's as torchrec's."""
    torch.manual_seed(5)
    first, other = bag(rows=5000, seed=None), bag(rows=5000, seed=None)
    torch.manual_seed(5)
    again = bag(rows=5000, seed=None)
    assert torch.equal(rows_of(first), rows_of(again)) and not torch.equal(rows_of(first), rows_of(other))
    assert abs(rows_of(first).mean()) < 0.05 and abs(rows_of(first).std() - 1) < 0.05
    rows = rows_of(collection(), "films")
    assert rows.abs().max() <= 30**-0.5 and rows.std() > 0.2 * 30**-0.5


def test_names_are_given_once():
    table = lambda name, features: ett.EmbeddingBagConfig(ROWS, DIM, name, features)
    for tables, text in [([table("t", ["a"]), table("t", ["b"])], "two tables have the name 't'"),
                         ([table("t", ["a", "b", "a"])], r"table 't': feature_names must differ, got \['a', 'b', 'a'\]"),
                         ([table("t", ["a", "a@u"]), table("u", ["a"])], "two outputs have one name")]:
        with pytest.raises(ValueError, match=text):
            ett.EmbeddingBagCollection(tables, et.SGD(1.0))


def test_messages_name_features():
    ours = collection()
    with pytest.raises(et.DataError, match="feature 'film', replica 0, sample 1, position 1: id must be in 0..29"):
        ours({"user": torch.tensor([1, 2]), "film": torch.tensor([1, 30])})
    found = ours({"user": torch.tensor([1]), "film": torch.tensor([1])})
    with pytest.raises(et.DataError, match="feature 'user'.*nan"):
        (found["user"] * torch.nan).sum().backward()


def test_rows_in_half_the_memory():
    """As torch's bfloat16 rows and, of a collection, torchrec's; sums are float32."""
    ours = bag(dtype=torch.bfloat16, initializer=et.Initializer.uniform(-1, 1))
    single = ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), seed=2, dtype=torch.bfloat16, replicated=True)
    theirs = torchrec_config("users", "BF16")
    tables = ett.EmbeddingBagCollection([theirs, ett.EmbeddingBagConfig(ROWS, DIM, "b", ["b"], row_type="bfloat16", replicated=True),
                                         ett.EmbeddingBagConfig(ROWS, DIM, "c", ["c"])], et.SGD(1.0), seed=1)
    assert [info.row_type for one in (ours, single, tables) for info in one.engine.tables] == ["bfloat16"] * 4 + ["float32"]
    assert tables._tables["b"].replicated and single._tables["weight"].replicated and not tables._tables["c"].replicated
    assert torch.equal(rows_of(ours), rows_of(ours).bfloat16().float())
    assert ours(torch.tensor([[1]])).dtype == torch.bfloat16 == single(torch.tensor([1])).dtype
    assert tables({name: torch.tensor([1]) for name in ("users", "b", "c")})["users"].dtype == torch.float32
    with pytest.raises(ValueError, match="dtype must be torch.float32 or torch.bfloat16, in which rows are kept, got torch.float16"):
        bag(dtype=torch.float16)
    with pytest.raises(ValueError, match="data_type must be FP32 or BF16, got FP16"):
        ett.EmbeddingBagCollection([torchrec_config("users", "FP16")], et.SGD(1.0))


def torchrec_config(name, data_type):
    return types.SimpleNamespace(num_embeddings=ROWS, embedding_dim=DIM, name=name, feature_names=[name], data_type=data_type,
                                 pooling="SUM", init_fn=None)


def test_made_within_a_device():
    with torch.device("meta"):
        ours = bag(seed=None)
    assert ours(torch.tensor([[1]])).device.type == "cpu"
    torch.set_default_dtype(torch.float64)
    try:
        config = ett.EmbeddingBagConfig(ROWS, DIM, "t", ["t"])
        config.init_fn = torch.nn.init.ones_
        made = ett.EmbeddingBagCollection([config], et.SGD(1.0))
    finally:
        torch.set_default_dtype(torch.float32)
    assert (rows_of(made) == 1).all()


# Steps


class NumpyLoop:
    """The same training by hand: look_up, gradients, apply_gradients."""

    def __init__(self, optimizer):
        tables = [et.TableConfig(ROWS, DIM, et.Initializer.uniform(-ROWS**-0.5, ROWS**-0.5), combiner="sum", name="users"),
                  et.TableConfig(30, DIM, et.Initializer.uniform(-30**-0.5, 30**-0.5), combiner="mean", name="films")]
        self.engine = et.Embedding([et.FeatureConfig(table) for table in tables], optimizer, et.EngineStrategy(), seed=3)


def batches(count=5, samples=8):
    draw = np.random.default_rng(4)
    for _ in range(count):
        yield [(draw.integers(rows, size=samples * 2), np.arange(samples) * 2) for rows in (ROWS, 30)]


@pytest.mark.parametrize("optimizer", [lambda: et.Adagrad(0.1), lambda: et.Optimizer("torch.SparseAdam", 0.01),
                                       lambda: et.Optimizer("momentum", 0.1)])
def test_bits_are_those_of_a_loop_in_numpy(optimizer):
    ours, loop = collection(optimizer()), NumpyLoop(optimizer())
    head = torch.nn.Linear(2 * DIM, 1)
    for batch in batches():
        loop.engine.enqueue([et.RaggedIds.from_offsets(*pair) for pair in batch])
        leaves = [torch.from_numpy(rows).requires_grad_() for rows in loop.engine.dequeue()]
        head(torch.cat(leaves, 1)).square().sum().backward()
        loop.engine.apply_gradients([leaf.grad.numpy() for leaf in leaves])
        found = ours({name: tuple(map(torch.from_numpy, pair)) for name, pair in zip(("user", "film"), batch)})
        for rows, leaf in zip(found.values(), leaves):
            assert torch.equal(rows, leaf)
        head(torch.cat(list(found.values()), 1)).square().sum().backward()
    assert ours.engine.digest() == loop.engine.digest() and ours.engine.step == 5


def test_several_forwards_before_a_backward():
    ours = bag()
    before = rows_of(ours)
    first, second = ours(torch.tensor([[1]])), ours(torch.tensor([[2]]))
    (3 * second).sum().backward()
    (5 * first).sum().backward()
    third, fourth = ours(torch.tensor([[3]])), ours(torch.tensor([[3]]))
    (third + fourth).sum().backward()
    expected = before.clone()
    expected[1] -= 5
    expected[2] -= 3
    expected[3] -= 2
    torch.testing.assert_close(rows_of(ours), expected)
    assert ours.engine.step == 4


@pytest.mark.parametrize("how", ["eval", "no_grad", "inference_mode"])
def test_without_training_nothing_is_recorded(how):
    ours = bag()
    before = ours.engine.digest()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            if how == "eval":
                found = ours.eval()(torch.tensor([[1]]))
            else:
                with getattr(torch, how)():
                    found = ours(torch.tensor([[1]]))
            assert not found.requires_grad
        ours.train()
        ours(torch.tensor([[1]])).sum().backward()
    assert ours.engine.digest() != before and ours.abandoned_steps == 0


def test_a_step_without_a_backward_is_named_with_its_line():
    ours = bag()
    ours(torch.tensor([[1], [2]]))  # this line
    gc.collect()
    line = test_a_step_without_a_backward_is_named_with_its_line.__code__.co_firstlineno + 2
    with pytest.warns(ett.AbandonedStepWarning, match=rf"no backward came for a lookup at test_module.py:{line};"):
        ours(torch.tensor([[1]])).sum().backward()
    assert ours.abandoned_steps == 1 and ours.engine.step == 1


def test_activations_that_the_loss_does_not_use_count_as_zeros():
    ours = collection()
    before = rows_of(ours, "films")
    ours({"user": torch.tensor([1]), "film": torch.tensor([1])})["user"].sum().backward()
    assert torch.equal(rows_of(ours, "films"), before) and ours.engine.step == 1
    code = """import torch; from test_module import collection
collection()({"user": torch.tensor([1]), "film": torch.tensor([1])})["user"].sum().backward()"""
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_warnings_are_of_the_line_that_looks_up():
    ours = torch.nn.Sequential(bag())
    ours(torch.tensor([[1]]))
    with pytest.warns(ett.AbandonedStepWarning) as found:
        ours(torch.tensor([[1]])).sum().backward()  # this line
    line = test_warnings_are_of_the_line_that_looks_up.__code__.co_firstlineno + 4
    assert (found[0].filename, found[0].lineno) == (__file__, line)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activations_that_are_computed_once_more(reentrant):
    """torch.utils.checkpoint looks up again within backward; the tables step once."""
    ours, plain, head = bag(), bag(), torch.nn.Linear(DIM, 1)
    start = torch.ones(1, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ett.AbandonedStepWarning)
        for _ in range(3):
            segment = lambda scale: torch.sin(head(ours(torch.tensor([[1, 2]])))) * scale
            torch.utils.checkpoint.checkpoint(segment, start, use_reentrant=reentrant).sum().backward()
            torch.sin(head(plain(torch.tensor([[1, 2]])))).sum().backward()
            gc.collect()
    assert ours.engine.digest() == plain.engine.digest() and ours.engine.step == 3 and ours.abandoned_steps == 0


def test_gradients_of_any_strides():
    ours = bag()
    before = rows_of(ours)
    ours(torch.tensor([[1], [2]])).backward(torch.arange(8.0).reshape(4, 2).T)
    expected = before.clone()
    expected[1] -= torch.tensor([0.0, 2, 4, 6])
    expected[2] -= torch.tensor([1.0, 3, 5, 7])
    torch.testing.assert_close(rows_of(ours), expected)


def test_autograd_of_activations_alone_changes_no_row():
    ours = bag()
    before = ours.engine.digest()
    found = ours(torch.tensor([[1]]))
    gradient, = torch.autograd.grad(found.pow(3).sum(), found, create_graph=True)
    penalty, = torch.autograd.grad(gradient.square().sum(), found)
    assert penalty.abs().sum() > 0 and ours.engine.digest() == before


# The trainer's optimizer


def accumulated(module, optimizer, parts):
    for part in parts:
        module(part).sum().backward()
    optimizer.step()


def test_accumulation_is_one_step_of_the_sum():
    rule = lambda: et.Adagrad(0.5, initial_accumulator_value=1.0)
    ours, whole = bag(optimizer=rule()), bag(optimizer=rule())
    dense = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    ours.optimizer.step_with(optimizer)
    ids = torch.tensor([[1, 2], [3, 1], [1, 1], [4, 2]])
    for _ in range(2):
        whole(ids).sum().backward()
        accumulated(ours, optimizer, ids.split(1))
        optimizer.zero_grad()
    assert ours.engine.digest() == whole.engine.digest() and ours.engine.step == 2


def test_zero_grad_drops_what_waits():
    ours = bag()
    before = ours.engine.digest()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    ours.optimizer.step_with(optimizer)
    ours(torch.tensor([[1]])).sum().backward()
    optimizer.zero_grad()
    optimizer.step()
    assert ours.engine.digest() == before and ours.optimizer.skipped_steps == 1
    with pytest.raises(RuntimeError, match="step_with was called before"):
        ours.optimizer.step_with(optimizer)


def test_a_retained_graph_brings_gradients_again_after_zero_grad():
    ours, plain = bag(), bag()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    ours.optimizer.step_with(optimizer)
    loss = ours(torch.tensor([[1, 2]])).square().sum()
    loss.backward(retain_graph=True)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    optimizer.step()
    (2 * plain(torch.tensor([[1, 2]])).square().sum()).backward()
    assert ours.engine.digest() == plain.engine.digest() and ours.engine.step == 1
    with pytest.raises(RuntimeError, match="backward came twice for lookup 1 .*, whose gradients are applied already"):
        loss.backward()
    ours(torch.tensor([[3]])).sum().backward()
    optimizer.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # dropped is not abandoned
        ours(torch.tensor([[3]])).sum().backward()
    optimizer.step()
    assert ours.abandoned_steps == 0


class Derived(torch.optim.SGD):
    """An optimizer whose step calls that of another class."""

    def step(self, closure=None):
        return super().step(closure)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, Derived])
def test_a_step_that_the_tables_refuse_changes_nothing(kind):
    ours, dense = bag(), torch.nn.Linear(1, 1)
    optimizer = kind(dense.parameters(), lr=0.1)
    ours.optimizer.step_with(optimizer)
    before, weight = ours.engine.digest(), dense.weight.clone()
    (ours(torch.tensor([[1]])) * torch.inf).sum().backward()
    dense(torch.ones(1, 1)).sum().backward()
    for _ in range(2):  # the gradients still wait
        with pytest.raises(et.DataError, match="must be finite, got inf"):
            optimizer.step()
        assert torch.equal(dense.weight, weight) and ours.engine.digest() == before and ours.engine.step == 0
    optimizer.zero_grad()
    (ours(torch.tensor([[1]])).sum() + dense(torch.ones(1, 1)).sum()).backward()
    optimizer.step()
    assert ours.engine.step == 1 and not torch.equal(dense.weight, weight)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.LBFGS])
def test_a_closure_brings_the_gradients(kind):
    ours, plain, dense = bag(), bag(), torch.nn.Linear(DIM, 1)
    optimizer = kind(dense.parameters(), lr=0.0)
    ours.optimizer.step_with(optimizer)
    ids = torch.tensor([[1, 2]])

    def closure():
        optimizer.zero_grad()
        loss = dense(ours(ids)).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
        dense(plain(ids)).square().sum().backward()
    assert ours.engine.digest() == plain.engine.digest() and ours.engine.step == 2


def test_what_processes_decide_together_needs_torch_distributed():
    ours = bag(strategy=et.EngineStrategy(exchange=et.Exchange.threads(2)[0]))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    with pytest.raises(RuntimeError, match=r"step_with with a scaler needs torch.distributed, .* with the 2 processes of the exchange, got 1"):
        ours.optimizer.step_with(optimizer, torch.amp.GradScaler("cpu"))
    with pytest.raises(RuntimeError, match="save needs torch.distributed"):
        ett.save(ours, None, "run")
    ours.optimizer.step_with(optimizer)


def test_clipping_by_the_trainer_leaves_the_tables_alone():
    model = torch.nn.ModuleDict({"table": bag(), "head": torch.nn.Linear(DIM, 1)})
    assert len(list(model.parameters())) == 2 and not list(model["table"].buffers())
    before = rows_of(model["table"])
    (100 * model["head"](model["table"](torch.tensor([[1]])))).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert norm > 1
    torch.testing.assert_close(rows_of(model["table"])[1], before[1] - 100 * model["head"].weight[0].detach())


def test_autocast():
    ours, head = bag(), torch.nn.Linear(DIM, 1)
    before = rows_of(ours)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ours(torch.tensor([[1]]))
        assert found.dtype == torch.float32
        out = head(found)
        assert out.dtype == torch.bfloat16
    out.sum().backward()
    torch.testing.assert_close(rows_of(ours)[1], before[1] - head.weight[0].detach().bfloat16().float())


def scaled_steps(ours, dense, optimizer, scaler, losses):
    for factor, ids in losses:
        optimizer.zero_grad()
        loss = (dense(ours(ids)) * factor).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def test_a_grad_scaler_gives_unscaled_gradients_and_skips_both():
    ours, plain = bag(), bag()
    dense, same = torch.nn.Linear(DIM, 1), torch.nn.Linear(DIM, 1)
    same.load_state_dict(dense.state_dict())
    optimizer, other = torch.optim.SGD(dense.parameters(), 0.1), torch.optim.SGD(same.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    ours.optimizer.step_with(optimizer, scaler)
    plain.optimizer.step_with(other)
    scaled_steps(ours, dense, optimizer, scaler, [(1, torch.tensor([[1, 2]])), (torch.inf, torch.tensor([[3]])), (2, torch.tensor([[1]]))])
    for factor, ids in [(1, torch.tensor([[1, 2]])), (2, torch.tensor([[1]]))]:
        other.zero_grad()
        (same(plain(ids)) * factor).sum().backward()
        other.step()
    assert torch.equal(dense.weight, same.weight) and ours.engine.digest() == plain.engine.digest()
    assert ours.engine.step == 2 and ours.optimizer.skipped_steps == 1 and scaler.get_scale() == 2.0**9


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda scaler: pickle.loads(pickle.dumps(scaler))])
def test_a_scaler_can_be_copied(copied):
    ours, dense = bag(), torch.nn.Linear(DIM, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    ours.optimizer.step_with(optimizer, scaler)
    other = copied(scaler)
    ours(torch.tensor([[1]])).sum().backward()
    linear = torch.nn.Linear(1, 1)
    stepper = torch.optim.SGD(linear.parameters(), 0.1)
    other.scale(linear(torch.tensor([[torch.inf]])).sum()).backward()
    other.step(stepper)
    other.update()
    assert other.get_scale() == 2.0**9 and scaler.get_scale() == 2.0**10 and ours._steps.waiting == 1


def test_a_skipped_step_leaves_nothing_for_the_next():
    """The loop clears the model's gradients, which reaches parameters alone."""
    ours, plain = bag(), bag()
    model = torch.nn.ModuleDict({"tables": ours, "dense": torch.nn.Linear(DIM, 1)})
    dense = model["dense"]
    optimizer = torch.optim.SGD(dense.parameters(), 0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    ours.optimizer.step_with(optimizer, scaler)
    for factor, ids in [(torch.inf, torch.tensor([[3]])), (1, torch.tensor([[1]]))]:
        model.zero_grad()
        scaler.scale((dense(ours(ids)) * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    dense(plain(torch.tensor([[1]]))).sum().backward()
    assert ours.engine.digest() == plain.engine.digest() and ours.engine.step == 1


@pytest.mark.parametrize("away", [False, True])
def test_zero_grad_of_the_model_drops_what_waits(away):
    ours, plain = bag(), bag()
    if away:
        runtime = on_late_accelerator(ours)
        ours.register_forward_hook(lambda *_: runtime.compute())
    model = torch.nn.ModuleDict({"tables": ours, "dense": torch.nn.Linear(DIM, 1)})
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    ours.optimizer.step_with(optimizer)
    model["dense"](ours(torch.tensor([[3]]))).sum().backward()
    model.zero_grad()  # of a step that the loop leaves out
    model["dense"](ours(torch.tensor([[1]]))).sum().backward()
    model["dense"](ours(torch.tensor([[2]]))).sum().backward()
    optimizer.step()
    model["dense"](plain(torch.tensor([[1], [2]]))).sum().backward()
    assert ours.engine.digest() == plain.engine.digest() and ours.optimizer.skipped_steps == 1
    ours(torch.tensor([[3]])).sum().backward()
    ours.zero_grad()
    optimizer.step()
    assert ours.engine.digest() == plain.engine.digest()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW])
def test_a_scaler_leaves_skipping_to_a_fused_optimizer(kind):
    ours, plain, dense = bag(), bag(), torch.nn.Linear(DIM, 1)
    optimizer = kind(dense.parameters(), lr=0.0, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    ours.optimizer.step_with(optimizer, scaler)
    for factor in (1, torch.inf, 2):  # infinite for the bias alone
        optimizer.zero_grad()
        scaler.scale((dense(ours(torch.tensor([[1]]))) + dense.bias * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    for _ in range(2):
        dense(plain(torch.tensor([[1]]))).sum().backward()
    assert ours.engine.digest() == plain.engine.digest()
    assert ours.engine.step == 2 and ours.optimizer.skipped_steps == 1


def test_a_gradient_that_overflows_in_a_table_alone_lowers_the_scale():
    ours = bag()
    dense = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    ours.optimizer.step_with(optimizer, scaler)
    before = ours.engine.digest()
    for factor in (1e38, 1.0):
        optimizer.zero_grad()
        found = ours(torch.tensor([[1]]))
        scaler.scale((found * factor).sum() + dense(torch.ones(1, 1)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        if factor > 1:
            assert ours.engine.digest() == before and ours.optimizer.skipped_steps == 1
    assert ours.engine.step == 1 and scaler.get_scale() == 2.0**9


def test_the_rate_follows_a_scheduler():
    ours = bag(optimizer=et.SGD(0.5))
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], 0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: [1.0, 0.5, 0.25][step])
    ours.optimizer.follow(scheduler)
    expected = rows_of(ours)
    for rate in (0.5, 0.25, 0.125):
        assert ours.optimizer.learning_rate == rate
        ours(torch.tensor([[1]])).sum().backward()
        expected[1] -= rate
        torch.testing.assert_close(rows_of(ours), expected)
        optimizer.step()
        if rate > 0.125:
            scheduler.step()
    ours.optimizer.learning_rate = 2.0
    optimizer.param_groups[0]["lr"] = 1.0  # it is not followed any more
    assert ours.optimizer.learning_rate == 2.0
    with pytest.raises(ValueError, match="learning_rate must be >= 0, got -1"):
        ours.optimizer.learning_rate = -1
    with pytest.raises(TypeError, match="follow takes a torch.optim.Optimizer or a torch.optim.lr_scheduler, got int"):
        ours.optimizer.follow(3)


def test_rules_of_the_callers_own():
    """Steps of SGD, whose rate is set between them."""
    def rule(tile):
        tile.row -= tile.learning_rate * tile.gradient

    ours, plain = bag(optimizer=et.Optimizer.custom(rule, 0.5, name="mine")), bag(optimizer=et.SGD(0.5))
    for rate in (0.5, 0.25):
        for module in (ours, plain):
            module.optimizer.learning_rate = rate
            module(torch.tensor([[1, 2]])).square().sum().backward()
    assert torch.equal(rows_of(ours), rows_of(plain)) and ours.optimizer.learning_rate == 0.25
    with pytest.raises(ValueError, match="optimizer must have a rule that steps rows, got slots_only"):
        bag(optimizer=et.slots_only(["m"]))


def test_tables_may_have_optimizers_of_their_own():
    ours = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "a", ["a"], optimizer=et.SGD(1.0)),
                                       ett.EmbeddingBagConfig(ROWS, DIM, "b", ["b"])], et.Adagrad(0.5), seed=1)
    assert ours.optimizer.learning_rates == {"a": 1.0, "b": 0.5}
    with pytest.raises(RuntimeError, match="the tables have 2 rates"):
        ours.optimizer.learning_rate
    function = bag(optimizer=et.SGD(lambda step: 1 / step))
    with pytest.raises(RuntimeError, match="is a function of the caller's"):
        function.optimizer.follow(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1))


# An accelerator


def test_a_dense_part_on_an_accelerator_gets_the_same_bits():
    ours, away = collection(et.Adagrad(0.1)), collection(et.Adagrad(0.1))
    runtime = on_late_accelerator(away)
    for number, batch in enumerate(batches()):
        inputs = {name: tuple(map(torch.from_numpy, pair)) for name, pair in zip(("user", "film"), batch)}
        expected, found = ours(inputs), away(inputs)
        assert all(rows.isnan().all() for rows in found.values())
        runtime.compute()
        for rows, wanted in zip(found.values(), expected.values()):
            assert torch.equal(rows, wanted)
        changes = [torch.sin(rows.detach() + number) for rows in expected.values()]
        torch.autograd.backward(list(expected.values()), changes)
        torch.autograd.backward(list(found.values()), changes)
        assert away._steps.engine.step == number  # gradients are on their way until the tables are needed
    assert away.engine.digest() == ours.engine.digest() and away.engine.step == 5
    assert len(runtime.copies) == 5 * 3  # ids with their bounds, activations, gradients


def test_ids_of_the_next_batch_are_copied_ahead():
    away = bag()
    runtime = on_late_accelerator(away)
    first, second = torch.tensor([[1]]), torch.tensor([[2]])
    away.prefetch(first)
    found = away(first)
    away.prefetch(second)
    runtime.compute()
    found.backward(torch.ones(1, DIM))
    copies = len(runtime.copies)
    found = away(second)
    assert len(runtime.copies) == copies + 1  # the activations alone
    runtime.compute()
    torch.testing.assert_close(found.detach(), rows_of(away)[[2]])


IDS, BOUNDS, LENGTHS = torch.tensor([1, 2, 3]), torch.tensor([0, 1]), torch.tensor([1, 2])


def nested(tensor):
    return torch.nested.nested_tensor([tensor[:1], tensor[1:]], layout=torch.jagged)


@pytest.mark.parametrize("inputs, copies", [
    (lambda: KeyedJaggedTensor(["film", "user"], torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 0, 1])), [(8,)]),
    (lambda: {"user": JaggedTensor(IDS, LENGTHS), "film": JaggedTensor(IDS + 1, LENGTHS.clone())}, [(10,)]),
    (lambda: {"user": JaggedTensor(IDS, LENGTHS, torch.ones(3)), "film": LENGTHS.clone()}, [(7,), (3,)]),
    (lambda: {"user": (IDS, BOUNDS), "film": [IDS.int(), BOUNDS.int(), torch.ones(3)]}, [(5,), (5,), (3,)]),
    (lambda: {"user": (IDS, BOUNDS), "film": (IDS, BOUNDS)}, [(5,)]),
    (lambda: {"user": (IDS, BOUNDS), "film": (IDS, BOUNDS), "dense": torch.ones(2, 100)}, [(5,)]),
    (lambda: {"user": nested(IDS), "film": LENGTHS.clone()}, [(8,)]),
    (lambda: {"user": [nested(IDS), None, nested(torch.ones(3))], "film": LENGTHS.clone()}, [(8,), (3,)]),
], ids=["keyed", "jagged", "jagged with weights", "tuples", "the same ids twice", "with others", "nested", "nested with weights"])
@pytest.mark.parametrize("ahead", [False, True])
def test_what_a_lookup_reads_comes_from_an_accelerator_together(inputs, copies, ahead):
    """What is not read, such as the offsets beside lengths, stays there."""
    ours, away = collection(), collection()
    runtime = on_late_accelerator(away)
    batch = inputs()
    if ahead:
        away.prefetch(batch)
    with torch.no_grad():
        found, expected = away(batch), ours(batch)
    runtime.compute()
    assert runtime.copies[:-1] == copies
    assert all(torch.equal(found[name], expected[name]) for name in ("user", "film"))


@pytest.mark.parametrize("later", [(), (torch.tensor([[0.5]], dtype=torch.float64),), (torch.tensor([7, 8]),)], ids=["none", "doubles", "others"])
def test_a_second_prefetch_leaves_nothing_of_the_first(later):
    ours, away = bag(), bag()
    runtime = on_late_accelerator(away)
    away.prefetch(torch.tensor([[5]]))
    away.prefetch(*later)
    before = len(runtime.copies)
    with torch.no_grad():
        found = away(IDS, BOUNDS)
    runtime.compute()
    assert runtime.copies[before:] == [(5,), (2 * DIM,)]
    assert torch.equal(found, ours(IDS, BOUNDS).detach())


def test_copies_of_ids_that_changed_are_not_taken():
    away = bag()
    runtime = on_late_accelerator(away)
    ids = torch.tensor([[1]])
    away.prefetch(ids)
    ids.fill_(2)
    with torch.no_grad():
        found = away(ids)
    runtime.compute()
    torch.testing.assert_close(found, rows_of(away)[[2]])
    away.prefetch(torch.tensor([[5]]))  # which nobody looks up
    with torch.no_grad():
        away(ids)
        assert not away._accelerator.ids._copies
        turned = torch.tensor([[1, 2], [3, 4]])
        away.prefetch(turned.T)
        found = away(turned)
    runtime.compute()
    torch.testing.assert_close(found, rows_of(away)[turned].sum(1))


def away_step(away, runtime, ids, gradients):
    found = away(ids)
    runtime.compute()
    found.backward(gradients)


@pytest.mark.parametrize("make", [bag, lambda: ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), seed=1)], ids=["bag", "embedding"])
def test_gradients_may_change_while_they_are_copied(make):
    ours, away = make(), make()
    runtime = on_late_accelerator(away)
    ids = torch.tensor([[1, 2]])
    change = torch.ones_like(ours(ids).detach())
    ours(ids).backward(change)
    away_step(away, runtime, ids, change)
    change.zero_()
    assert away.engine.digest() == ours.engine.digest()


def test_gradients_with_the_negative_bit_on_an_accelerator():
    ours, away = bag(), bag()
    runtime = on_late_accelerator(away)
    negative = torch.full((1, DIM), 1 + 2j).conj().imag
    assert negative.is_neg()
    ours(torch.tensor([[1]])).backward(torch.full((1, DIM), -2.0))
    away_step(away, runtime, torch.tensor([[1]]), negative)
    assert away.engine.digest() == ours.engine.digest()


def test_memory_of_a_step_is_its_own_until_it_is_copied():
    away = bag()
    on_late_accelerator(away)
    transfers = away._accelerator._transfers
    staged = [transfers.stage([(2, DIM)]) for _ in range(3)]  # as of three threads
    for number, one in enumerate(staged):
        one.arrays[0][:] = number
    assert [one.arrays[0][0, 0] for one in staged] == [0, 1, 2]
    for one in staged:
        transfers.to_device(one)
    again = {transfers.stage([(2, DIM)]).memory.data_ptr() for _ in range(3)}
    assert again == {one.memory.data_ptr() for one in staged}


def test_an_accelerator_with_replicas_and_with_gradients_that_wait():
    for replicas in (2, 1):
        ours, away = (collection(et.Adagrad(0.1), strategy=et.EngineStrategy(replicas_per_host=replicas)) for _ in range(2))
        runtime = on_late_accelerator(away)
        optimizers = [torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1) for _ in range(2)]
        if replicas == 1:
            for module, optimizer in zip((ours, away), optimizers):
                module.optimizer.step_with(optimizer)
        for step in range(3):
            inputs = {"user": torch.tensor([[1, step], [3, 4]]), "film": torch.tensor([[step], [2]])}
            expected, found = ours(inputs), away(inputs)
            runtime.compute()
            for rows, wanted in zip(found.values(), expected.values()):
                assert torch.equal(rows, wanted)
            for rows in (expected, found):
                sum(one.sum() for one in rows.values()).backward()
            for optimizer in optimizers:
                optimizer.step()
        assert away.engine.digest() == ours.engine.digest() and away.engine.step == 3


def test_a_refused_batch_leaves_nothing_on_an_accelerator():
    away = bag(include_last_offset=True)
    runtime = on_late_accelerator(away)
    ids, offsets = torch.tensor([1, 2]), torch.tensor([0, 2])
    with pytest.raises(et.DataError, match="offsets of ids must begin with 0, not fall, and end with the number of ids, 2; got none"):
        away(ids, offsets[:0])
    with pytest.raises(NotImplementedError, match="give them .detach()"):
        away(ids, offsets, torch.ones(2).requires_grad_())
    with pytest.raises(TypeError, match="must be int64 or int32"):
        away(ids, offsets.float())
    ids.numpy()[:] = 5  # which torch does not see
    with torch.no_grad():
        found = away(ids, offsets)
    runtime.compute()
    torch.testing.assert_close(found, 2 * rows_of(away)[[5]])
    assert away.engine.step == 0


def test_an_accelerator_without_memory_abandons_no_step():
    ours, away = bag(), bag()
    runtime = on_late_accelerator(away)
    like = runtime.like

    def fail(host):
        raise RuntimeError("CUDA out of memory")

    runtime.like = fail
    for _ in range(3):  # one more than there are slots
        with pytest.raises(RuntimeError, match="out of memory"):
            away(torch.tensor([[1]]))
    runtime.like = like
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        away_step(away, runtime, torch.tensor([[1]]), torch.ones(1, DIM))
    ours(torch.tensor([[1]])).backward(torch.ones(1, DIM))
    assert away.engine.digest() == ours.engine.digest() and away.abandoned_steps == 0


def test_backward_twice_is_refused_on_an_accelerator_too():
    away = bag()
    runtime = on_late_accelerator(away)
    found = away(torch.tensor([[1]]))
    runtime.compute()
    found.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward came twice"):
        found.sum().backward()


@pytest.mark.parametrize("away", [False, True])
def test_a_module_is_gone_with_its_last_reference(away):
    """As those of torch are: tables may be all memory that there is."""
    module = collection()
    if away:
        on_late_accelerator(module).compute()
    module({"user": torch.tensor([1]), "film": torch.tensor([2])})["user"].sum().backward()
    watched = [weakref.ref(module), weakref.ref(module._steps), weakref.ref(module.optimizer)]
    gc.disable()
    try:
        del module
        assert all(one() is None for one in watched)
    finally:
        gc.enable()


def test_other_types_of_activations():
    ours = bag().to(torch.bfloat16)
    before = rows_of(ours)
    found = ours(torch.tensor([[1]]))
    assert found.dtype == torch.bfloat16
    found.sum().backward()
    torch.testing.assert_close(rows_of(ours)[1], before[1] - 1)


# Misuse


def test_errors_say_what_to_do():
    ours, several = bag(), collection()
    ids, offsets = torch.tensor([1, 2]), torch.tensor([0, 1])
    cases = [
        (lambda: ours(ids.float(), offsets), TypeError, "ids must be int64 or int32, got float32; ids are numbers of rows"),
        (lambda: ours(ids.float().requires_grad_(), offsets), TypeError, "got float32 that requires a gradient"),
        (lambda: ours(ids), ValueError, "ids are 1-D and need offsets, where each bag begins; got none"),
        (lambda: ours(ids[None], offsets), ValueError, "2-D, one bag a line, and take no offsets"),
        (lambda: ours(ids[None, None]), ValueError, r"must be 1-D or 2-D, got shape \(1, 1, 2\)"),
        (lambda: ours(ids, offsets, torch.ones(3)), ValueError, "weights of ids must be as many as the ids, 2, got 3"),
        (lambda: ours(ids, offsets, torch.ones(2).double()), TypeError, "must be float32, got float64: give them .float()"),
        (lambda: ours(ids, offsets, torch.ones(2).requires_grad_()), NotImplementedError, "give them .detach()"),
        (lambda: ours(ids, torch.tensor([0, 3])), et.DataError, "offsets of ids must begin with 0, .*got 3 at position 1"),
        (lambda: ours(torch.tensor([[ROWS]])), et.DataError, str(ROWS)),
        (lambda: ours("ids"), TypeError, "ids must be a tensor, got str"),
        (lambda: ours(torch.zeros(1, 1, dtype=torch.int64, device="meta")), ValueError,
         r"ids are on 'meta', and the module gives activations on 'cpu': keep ids on the CPU, or move the module"),
        (lambda: several({"user": ids}), KeyError, "the batch has no feature 'film'; it has"),
        (lambda: torch.jit.trace(ours, (ids[None],), check_trace=False), RuntimeError, "torch.jit.trace would keep the rows of one batch"),
        (lambda: torch.jit.trace(ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0)), ids), RuntimeError, "torch.jit.trace would keep"),
        (lambda: several(ids), TypeError, "takes a dict by feature or a KeyedJaggedTensor, got Tensor"),
        (lambda: several({"user": ids, "film": (ids, None, torch.ones(len(ids)))}), ValueError,
         "feature 'film', replica 0: dense ids have no weights"),
        (lambda: several({"user": ids, "film": ids.float()}), TypeError, "ids of feature 'film' must be int64 or int32"),
        (lambda: copy.deepcopy(ours), TypeError, "owns its tables and cannot be copied: make a second one"),
        (lambda: copy.copy(ours), TypeError, "cannot be pickled"),
        (lambda: pickle.dumps(ours), TypeError, "owns its tables and cannot be pickled: save model.state_dict()"),
        (lambda: torch.save(torch.nn.Sequential(ours), io.BytesIO()), TypeError, "cannot be pickled"),
        (lambda: ours.to("meta"), NotImplementedError, "activations on 'meta' are not offered"),
        (lambda: ours.weight, AttributeError, r"has no parameter 'weight': read_rows\(ids\) and assign_rows"),
        (lambda: bag("max"), ValueError, "mode must be 'sum', 'mean' or 'sqrtn', got 'max'"),
        (lambda: bag(optimizer=torch.optim.SGD([torch.zeros(1)], 1)), TypeError, "optimizer must be an embertable.Optimizer"),
        (lambda: bag(padding_idx=ROWS), ValueError, "padding_idx must be a row"),
        (lambda: ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(0, 1, "t", ["t"])], et.SGD(1.0)), ValueError,
         "table 't': vocabulary_size must be >= 1, got 0"),
        (lambda: ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(-1, 1, "t", ["t"])], et.SGD(1.0)), ValueError,
         "table 't': vocabulary_size must be >= 1, got -1"),
        (lambda: ett.EmbeddingBagCollection([ett.EmbeddingBagConfig("1", 1, "t", ["t"])], et.SGD(1.0)), TypeError,
         "vocabulary_size must be an integer, got str"),
        (lambda: torch.jit.trace(several, ({"user": ids, "film": ids},), check_trace=False, strict=False), RuntimeError,
         "torch.jit.trace would keep"),
        (lambda: ett.EmbeddingBagCollection([]), ValueError, "tables must have one table or more"),
        (lambda: ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(1, 1, "t", ["t"])]), ValueError, "optimizer must be given"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
    assert ours.engine.step == 0 and several.engine.step == 0


CONFIG = dict(num_embeddings=ROWS, embedding_dim=DIM, name="t", feature_names=["f"])


@pytest.mark.parametrize("given, kind, text", [
    ({"feature_names": "films"}, TypeError, "table 't': feature_names must be a list of names, got 'films'"),
    ({"feature_names": b"films"}, TypeError, "table 't': feature_names must be a list of names, got b'films'"),
    ({"feature_names": None}, TypeError, "table 't': feature_names must be a list of names, got None"),
    ({"feature_names": ["f", 3]}, TypeError, "table 't': feature_names must be a list of names, got 3 in it"),
    ({"name": None}, TypeError, r"tables\[0\].name must be text, got None"),
    ({"padding_idx": "a"}, TypeError, "table 't': padding_idx must be an integer, got 'a'"),
    ({"padding_idx": 1.5}, TypeError, "table 't': padding_idx must be an integer, got 1.5"),
    ({"padding_idx": ROWS}, ValueError, "table 't': padding_idx must be a row, -20 <= padding_idx < 20, got 20"),
    ({"initializer": "normal"}, TypeError, "table 't': initializer must be an embertable.Initializer, got str"),
    ({"replicated": "no"}, TypeError, "table 't': replicated must be True or False, got 'no'"),
    ({"data_type": []}, ValueError, r"table 't': data_type must be FP32 or BF16, got \[\]"),
    ({"init_fn": 3}, TypeError, "table 't': init_fn must be a function of a tensor, got int"),
])
@pytest.mark.parametrize("kind_of_config", [ett.EmbeddingBagConfig, types.SimpleNamespace])
def test_tables_of_a_collection_that_are_refused(kind_of_config, given, kind, text):
    with pytest.raises(kind, match=text):
        config = types.SimpleNamespace(**{"pooling": "sum", **CONFIG, **given})
        if kind_of_config is ett.EmbeddingBagConfig:
            config = ett.EmbeddingBagConfig(**{**CONFIG, **{name: value for name, value in given.items() if name not in TORCHREC}})
            vars(config).update({name: value for name, value in given.items() if name in TORCHREC})
        ett.EmbeddingBagCollection([config], et.SGD(1.0))


TORCHREC = {"data_type", "init_fn"}  # fields of torchrec's configurations alone


def test_feature_names_that_were_changed_are_checked_too():
    config = ett.EmbeddingBagConfig(**CONFIG)
    config.feature_names = "films"
    with pytest.raises(TypeError, match="table 't': feature_names must be a list of names, got 'films'"):
        ett.EmbeddingBagCollection([config], et.SGD(1.0))


def test_tables_and_names_may_come_from_iterators():
    config = ett.EmbeddingBagConfig(ROWS, DIM, "t", iter(["a", "b"]))
    assert ett.EmbeddingBagCollection(iter([config]), et.SGD(1.0)).embedding_names() == ["a", "b"]


@pytest.mark.parametrize("tables, text", [
    ("ab", "tables must be a list of EmbeddingBagConfigs, got str"),
    ({"t": 1}, "tables must be a list of EmbeddingBagConfigs, got dict"),
    (ett.EmbeddingBagConfig(**CONFIG), "tables must be a list of EmbeddingBagConfigs, got EmbeddingBagConfig"),
    (3, "tables must be a list of EmbeddingBagConfigs, got int"),
    (["t"], r"tables\[0\] must be an EmbeddingBagConfig, got str without name"),
    ([types.SimpleNamespace(**CONFIG)], r"tables\[0\] must be an EmbeddingBagConfig, got SimpleNamespace without pooling"),
])
def test_what_is_no_list_of_tables(tables, text):
    with pytest.raises(TypeError, match=f"EmbeddingBagCollection: {text}"):
        ett.EmbeddingBagCollection(tables, et.SGD(1.0))


@pytest.mark.parametrize("make", [lambda **options: bag(**options), lambda **options: ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), **options),
                                  lambda **options: collection(**options)], ids=["bag", "embedding", "collection"])
@pytest.mark.parametrize("given, kind, text", [
    ({"strategy": 3}, TypeError, "strategy must be an embertable.EngineStrategy or None, got int"),
    ({"strategy": []}, TypeError, "strategy must be an embertable.EngineStrategy or None, got list"),
    ({"gradient_policy": None}, TypeError, "gradient_policy must be text, got None"),
    ({"out_of_range": 3}, TypeError, "out_of_range must be text, got int"),
    ({"rank_gradients": ["sum"]}, ValueError, r"rank_gradients must be 'mean' or 'sum', got \['sum'\]"),
])
def test_arguments_of_all_modules(make, given, kind, text):
    with pytest.raises(kind, match=text):
        make(**given)


@pytest.mark.parametrize("given, kind, text", [
    ({"padding_idx": "a"}, TypeError, "EmbeddingBag: padding_idx must be an integer, got 'a'"),
    ({"padding_idx": True}, TypeError, "EmbeddingBag: padding_idx must be an integer, got True"),
    ({"padding_idx": float("nan")}, TypeError, "EmbeddingBag: padding_idx must be an integer, got nan"),
    ({"name": None}, TypeError, "EmbeddingBag: name must be text, got None"),
    ({"replicated": "no"}, TypeError, "EmbeddingBag: replicated must be True or False, got 'no'"),
    ({"include_last_offset": "no"}, TypeError, "EmbeddingBag: include_last_offset must be True or False, got 'no'"),
    ({"dtype": []}, ValueError, r"EmbeddingBag: dtype must be torch.float32 or torch.bfloat16, .* got \[\]"),
    ({"initializer": np.zeros((ROWS, DIM))}, TypeError, "initializer must be an Initializer, got ndarray"),
    ({"mode": b"sum"}, ValueError, "EmbeddingBag: mode must be 'sum', 'mean' or 'sqrtn', got b'sum'"),
])
def test_arguments_of_a_bag(given, kind, text):
    with pytest.raises(kind, match=text):
        ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(1.0), **given)


def test_a_keyed_tensor_has_a_tensor_for_each_key():
    with pytest.raises(TypeError, match="keys must be a list of names, got 'ab'"):
        ett.KeyedTensor("ab", [torch.zeros(1, 1)] * 2)
    with pytest.raises(ValueError, match="rows must be one tensor for each of the 1 keys, got 2"):
        ett.KeyedTensor(["a"], [torch.zeros(1, 1)] * 2)


ROWS_GIVEN = [torch.tensor([[1, -2, 0.5, 4]], dtype=dtype) for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)] + [
    torch.tensor([[1, -2, 0.5, 4]]).to_sparse(), torch.tensor([[1, -2, 0.5, 4]], requires_grad=True), torch.tensor([[1], [-2], [0.5], [4]]).T,
    -torch.tensor([[1 - 1j, 1 + 2j, 1 - 0.5j, 1 - 4j]]).conj().imag.neg(), np.array([[1, -2, 0.5, 4]]), np.array([[1, -2, 0.5, 4]], np.float16),
    [[1, -2, 0.5, 4]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", ROWS_GIVEN, ids=str)
def test_rows_of_any_real_type_are_assigned(rows, dtype):
    for kind in (bag, lambda **options: ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), **options)):
        module = kind(dtype=dtype)
        module.assign_rows([3], rows)
        assert module.read_rows(torch.tensor([3], dtype=torch.int16)).tolist() == [[1, -2, 0.5, 4]]
        module.assign_rows([3], torch.tensor([[1, -2, 3, 4]]))  # whole numbers too
        assert module.read_rows([3]).tolist() == [[1, -2, 3, 4]] and module.read_rows([]).shape == (0, DIM)


@pytest.mark.parametrize("rows, kind, text", [
    (torch.ones(1, DIM, dtype=torch.complex64), TypeError, "rows must be real numbers, got complex64"),
    (torch.ones(1, DIM, dtype=torch.bool), TypeError, "rows must be real numbers, got bool"),
    (torch.ones(1, DIM, device="meta"), TypeError, "rows must be a plain tensor, got one without values"),
    (lambda: torch.nested.nested_tensor([torch.ones(DIM)]), TypeError, "rows must be a plain tensor, got a nested one"),
    ("text", TypeError, "rows must be real numbers, got <U4"), (None, TypeError, "rows must be real numbers, got NoneType"),
    ([[1, 2], [3]], ValueError, "rows must be an array of numbers, got lists of unequal length"),
    (torch.ones(1, 3), ValueError, r"must have shape \(1, 4\), got \(1, 3\)"),
])
def test_rows_that_are_refused_change_nothing(rows, kind, text):
    ours = bag()
    before = ours.engine.digest()
    with pytest.raises(kind, match=text):
        ours.assign_rows([1], rows() if callable(rows) else rows)
    assert ours.engine.digest() == before


@pytest.mark.parametrize("ids, text", [
    (torch.tensor([1.0], dtype=torch.bfloat16), "got bfloat16"), (torch.tensor([True]), "got bool"), (["a"], "got <U1"), (None, "got NoneType"),
    ({1}, "got set"), ([1.5], "got float64")])
def test_ids_of_rows_are_integers(ids, text):
    ours = bag()
    for call in (lambda: ours.read_rows(ids), lambda: ours.assign_rows(ids, torch.ones(1, DIM))):
        with pytest.raises(TypeError, match=f"EmbeddingBag: ids must be integers, {text}"):
            call()


def test_other_arguments_that_are_refused():
    ours = bag()
    leader = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    for call, text in [
        (lambda: ours.read_rows([1], ["weight"]), "EmbeddingBag: table must be text, got list"),
        (lambda: ours.keep_tables_in(3), "EmbeddingBag: run must be a path, got int"),
        (lambda: ours.keep_tables_in(b"run"), "EmbeddingBag: run must be a path, got bytes"),
        (lambda: ours.optimizer.follow(leader, "a"), "EmbeddingBag: group must be an integer, got 'a'"),
        (lambda: ours.optimizer.follow(leader, True), "EmbeddingBag: group must be an integer, got True"),
        (lambda: ours.optimizer.follow(types.SimpleNamespace(param_groups=[3])), "groups have a rate 'lr', group 0 has none"),
        (lambda: ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0))(np.array(["a"])), "Embedding: ids must be numbers, got <U1"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(KeyError, match=r"the batch has no feature 'user', 'film'; it has \[3, 'a'\]"):
        collection()({3: torch.tensor([1]), "a": torch.tensor([1])})


@pytest.mark.parametrize("rate, kind, text", [
    (float("inf"), ValueError, "learning_rate must be finite and >= 0, got inf"), (float("nan"), ValueError, "must be finite and >= 0, got nan"),
    (1e39, ValueError, "must be finite and >= 0, got 1e\\+39"), (-1, ValueError, "must be >= 0, got -1"),
    ("0.5", TypeError, "learning_rate must be a number, got str"), (None, TypeError, "learning_rate must be a number, got None"),
    (True, TypeError, "learning_rate must be a number, got bool"), (torch.zeros(2), TypeError, "learning_rate must be a number, got tensor")])
def test_a_rate_that_the_rule_refuses_is_not_taken(rate, kind, text):
    ours = collection(et.Adagrad(0.1))
    with pytest.raises(kind, match=f"EmbeddingBagCollection: .*{text}"):
        ours.optimizer.learning_rate = rate
    with pytest.raises(kind, match=text):
        ours.optimizer.load_state({"users": 0.5, "films": rate})
    with pytest.raises(TypeError, match="learning rates must be a dict by table, got int"):
        ours.optimizer.load_state(3)
    assert ours.optimizer.learning_rates == {"users": 0.1, "films": 0.1}
    ours({"user": torch.tensor([1]), "film": torch.tensor([1])})["user"].sum().backward()
    ours.optimizer.learning_rate = torch.tensor(0.5)
    assert ours.optimizer.learning_rate == 0.5


@pytest.mark.parametrize("rate", [0.0, float("inf"), float("nan")])
def test_a_rate_without_a_factor_is_not_followed(rate):
    ours = bag(optimizer=et.SGD(0.5))
    leader = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    leader.param_groups[0]["lr"] = rate
    with pytest.raises(ValueError, match=f"the optimizer's rate must begin with a finite number > 0, .* got {rate:g}"):
        ours.optimizer.follow(leader)
    assert ours.optimizer.learning_rate == 0.5


def test_backward_twice():
    ours = bag()
    loss = ours(torch.tensor([[1]])).sum()
    loss.backward(retain_graph=True)
    after = ours.engine.digest()
    with pytest.raises(RuntimeError, match=r"backward came twice for lookup 1 at test_module.py:\d+ .*; look up again"):
        loss.backward()
    assert ours.engine.digest() == after


def test_double_backward():
    ours = bag()
    before = ours.engine.digest()
    with pytest.raises(NotImplementedError, match=r"backward\(create_graph=True\) reaches the tables"):
        ours(torch.tensor([[1]])).square().sum().backward(create_graph=True)
    assert ours.engine.digest() == before


def test_gradients_that_are_not_finite_change_nothing():
    ours = bag()
    before = ours.engine.digest()
    with pytest.raises(et.DataError, match="nan|inf"):
        (ours(torch.tensor([[1]])) * torch.nan).sum().backward()
    assert ours.engine.digest() == before


def test_without_torch_the_package_has_no_such_attribute():
    code = """import sys; sys.modules["torch"] = None
import embertable as et
assert not hasattr(et, "torch")
et.torch"""
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), capture_output=True,
                          text=True)
    assert done.stderr.splitlines()[-1] == "AttributeError: embertable.torch needs PyTorch: pip install torch"


def test_tables_step_with_another_optimizer_when_the_first_is_gone():
    ours, dense = bag(), torch.nn.Linear(DIM, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    ours.optimizer.step_with(optimizer)
    ours(torch.tensor([[3]])).sum().backward()  # nobody will apply this
    optimizer = torch.optim.Adam(dense.parameters(), 0.1)
    with pytest.raises(RuntimeError, match="the optimizer that was given to step_with is gone.*call optimizer.step_with again"):
        dense(ours(torch.tensor([[1]]))).sum().backward()
    before = rows_of(ours, "weight")
    ours.optimizer.step_with(optimizer)
    dense(ours(torch.tensor([[1]]))).sum().backward()
    optimizer.step()
    after = rows_of(ours, "weight")
    assert torch.equal(before[3], after[3]) and not torch.equal(before[1], after[1])


def test_gradients_that_are_dropped_again_and_again_are_named():
    ours, dense = bag(), torch.nn.Linear(DIM, 1)
    kept, steps = torch.optim.SGD(dense.parameters(), 0.1), torch.optim.Adam(dense.parameters(), 0.1)
    ours.optimizer.step_with(kept)

    def step():
        steps.zero_grad()
        dense(ours(torch.tensor([[1]]))).sum().backward()
        steps.step()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            step()
    with pytest.warns(UserWarning, match="of 10 lookups in a row were dropped"):
        step()


def test_many_modules_of_one_optimizer_leave_nothing_behind():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    for _ in range(1100):
        ours = bag()
        ours.optimizer.step_with(optimizer)
    optimizer.zero_grad()
    ours(torch.tensor([[1]])).sum().backward()
    optimizer.step()
    assert ours.engine.step == 1 and len(optimizer._optimizer_step_pre_hooks) == 1


@pytest.mark.parametrize("several", [1, 3])
def test_an_overflow_of_tables_alone_lowers_the_scale_once(several):
    tables = [bag() for _ in range(several)]
    dense = torch.nn.Linear(DIM, 1)
    optimizer = torch.optim.SGD(dense.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1)
    for ours in tables:
        ours.optimizer.step_with(optimizer, scaler)

    def step(factor):
        optimizer.zero_grad()
        loss = dense(torch.ones(1, DIM)).sum() + sum((ours(torch.tensor([[1]])) * factor).sum() for ours in tables)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        with torch.no_grad():
            tables[0](torch.tensor([[2]]))  # an evaluation between the two
        scaler.update()

    step(1e36)
    assert scaler.get_scale() == 2.0**9 and [ours.engine.step for ours in tables] == [0] * several
    step(1.0)
    assert scaler.get_scale() == 2.0**10 and [ours.engine.step for ours in tables] == [1] * several


def test_zero_grad_of_the_model_before_the_step_drops_what_waits():
    ours = bag()
    model = torch.nn.ModuleDict({"tables": ours, "dense": torch.nn.Linear(DIM, 1)})
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    ours.optimizer.step_with(optimizer)
    before = ours.engine.digest()
    model["dense"](ours(torch.tensor([[3]]))).sum().backward()
    model.zero_grad()
    optimizer.step()
    assert ours.engine.digest() == before and ours.engine.step == 0


@pytest.mark.parametrize("ids", [torch.tensor([[1], [2]]), torch.tensor([[1], [2]], dtype=torch.int32)])
def test_bags_of_one_id_take_weights(ids):
    plain = torch.nn.EmbeddingBag(ROWS, DIM, mode="sum")
    weights = torch.tensor([[2.0], [3.0]])
    for options in ({}, {"padding_idx": 5}):
        ours = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.SGD(0.1), **options)
        ett.import_state(ours, plain)
        with torch.no_grad():
            assert torch.equal(ours(ids, None, weights), plain(ids, None, weights))
        ours.optimizer.step_with(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1))
        assert torch.equal(ours.eval()(ids, None, weights), plain(ids, None, weights).detach())


def test_weights_and_gradients_of_any_form():
    ours, plain = bag(), bag()
    ids, weights = torch.tensor([[1, 2]]), torch.tensor([[0.5, 2.0]])
    negated = (1j * weights).conj().imag  # -weights, not in memory
    assert negated.is_neg()
    out = ours(ids, None, negated)
    with torch.no_grad():
        assert torch.equal(out, plain(ids, None, -weights))
    out.backward(torch._efficientzerotensor(out.shape))
    assert ours.engine.step == 1
    ours(ids).backward(torch.ones(1, DIM).to_sparse())
    plain(ids).backward(torch.ones(1, DIM))
    assert torch.equal(rows_of(ours, "weight"), rows_of(plain, "weight"))


def test_what_a_subclass_may_not_be_called():
    for method in ("get_extra_state", "set_extra_state"):
        with pytest.raises(TypeError, match=f"Sub: {method} must not be defined"):
            type("Sub", (ett.EmbeddingBag,), {method: lambda self: None})
    ours = bag()
    with pytest.raises(ValueError, match="must not be called 'weight'"):
        ours.register_buffer("weight", torch.zeros(1))
    with pytest.raises(ValueError, match="must not be called 'weight'"):
        ours.weight = torch.nn.Parameter(torch.zeros(1))
    ours.register_buffer("counts", torch.zeros(1))
    assert "counts" in ours.state_dict()


def test_imported_rows_leave_no_gradients_of_those_before():
    ours = bag()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    ours.optimizer.step_with(optimizer)
    ours(torch.tensor([[1]])).sum().backward()
    ett.import_state(ours, torch.zeros(ROWS, DIM))
    optimizer.step()
    assert torch.equal(rows_of(ours, "weight"), torch.zeros(ROWS, DIM))


@pytest.mark.parametrize("ids, offsets, text", [
    (torch.tensor([1, 2, 3]), [0, 3, 1], "not fall, and be at most the number of ids, 3; got 1 at position 2$"),
    (torch.tensor([1, 2, 3]), [0, 4], "got 4 at position 1$"), (torch.tensor([1, 2, 3], dtype=torch.int32), [1, 2], "got 1 at position 0; "),
    (torch.tensor([1, 2, 3]), [2, 1], "got 2 at position 0; if these are lengths, offsets are torch.cumsum\\(lengths, 0\\) - lengths$")])
def test_offsets_that_are_none_are_named(ids, offsets, text):
    bag = ett.EmbeddingBag(10, 4, optimizer=et.Adagrad(0.1))
    with pytest.raises(et.DataError, match="EmbeddingBag: offsets of ids must begin with 0, .*" + text):
        bag(ids, torch.tensor(offsets))
    tables = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(10, 4, "t", ["f", "g"])], et.Adagrad(0.1))
    with pytest.raises(et.DataError, match="EmbeddingBagCollection: offsets of ids of feature 'g' must begin with 0, .*" + text):
        tables({"f": (ids, torch.tensor([0, 1])), "g": (ids, torch.tensor(offsets))})


def test_a_last_offset_is_the_number_of_ids():
    bag = ett.EmbeddingBag(10, 4, optimizer=et.Adagrad(0.1), include_last_offset=True)
    with pytest.raises(et.DataError, match="offsets of ids must begin with 0, not fall, and end with the number of ids, 3; got 2 at position 1"):
        bag(torch.tensor([1, 2, 3]), torch.tensor([0, 2]))


@pytest.mark.parametrize("options, text", [
    ({"sparse": True}, "sparse is not offered: gradients are sparse in any case"), ({"device": "cpu"}, "device is not offered: rows are in"),
    ({"max_norm": 1.0}, "max_norm is not offered"), ({"scale_grad_by_freq": True}, "scale_grad_by_freq is not offered"),
    ({"_weight": torch.eye(3)}, r"_weight is not offered: from_pretrained\(rows\) takes rows"),
    ({"pading_idx": 0}, "there is no argument 'pading_idx'; the nearest is 'padding_idx'")])
def test_what_torch_takes_says_what_to_do_instead(options, text):
    for module in (ett.EmbeddingBag, ett.Embedding):
        with pytest.raises(TypeError, match=f"^{module.__name__}: {text}"):
            module(3, 3, optimizer=et.Adagrad(0.1), **options)
    if "device" in options:
        with pytest.raises(TypeError, match=f"^EmbeddingBagCollection: {text}"):
            ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(10, 4, "t", ["f"])], et.Adagrad(0.1), **options)


def test_rows_that_are_there():
    rows = torch.arange(6.0).reshape(3, 2)
    frozen = ett.Embedding.from_pretrained(rows)
    frozen(torch.tensor([0, 2])).sum().backward()
    assert torch.equal(frozen.read_rows([0, 1, 2]), rows) and frozen.num_embeddings == 3
    trained = ett.EmbeddingBag.from_pretrained(rows.numpy(), freeze=False, optimizer=et.SGD(1.0), mode="sum")
    trained(torch.tensor([[0, 2]])).sum().backward()
    assert trained.read_rows([0, 1, 2]).tolist() == [[-1, 0], [2, 3], [3, 4]]
    for arguments, text in (({"freeze": False}, "optimizer must be given"), ({"optimizer": et.SGD(1.0)}, "freeze must be False"),
                            ({"freeze": 3}, "freeze must be True or False")):
        with pytest.raises((TypeError, ValueError), match=text):
            ett.Embedding.from_pretrained(rows, **arguments)
    with pytest.raises(ValueError, match=r"embeddings must have shape \[num_embeddings, embedding_dim\], got \[3\]"):
        ett.Embedding.from_pretrained(torch.ones(3))


@pytest.mark.parametrize("arguments, kind, text", [
    ((0, 4), ValueError, "table 'weight': vocabulary_size must be >= 1, got 0"), ((4, 2.5), TypeError, "dim must be an integer, got float")])
def test_sizes_are_those_of_a_module(arguments, kind, text):
    for module in (ett.EmbeddingBag, ett.Embedding):
        with pytest.raises(kind, match=f"^{module.__name__}: {text}$"):
            module(*arguments, optimizer=et.SGD(1.0))
        with pytest.raises(TypeError, match=rf"^{module.__name__}: initializer must be .*; from_pretrained\(rows\) takes rows$"):
            module(3, 2, optimizer=et.SGD(1.0), initializer=torch.ones(3, 2))


def test_a_collection_gives_its_configurations():
    configs = [ett.EmbeddingBagConfig(10, 4, "t", ["f"])]
    assert ett.EmbeddingBagCollection(configs, et.Adagrad(0.1)).embedding_bag_configs() == configs
