"""What modules of embertable.torch look up, beside torch's own, beside torchrec's shapes, and in types of their own."""

import types
import warnings

import pytest
import torch

import embertable as et
import embertable.torch as ett
from small_modules import DIM, ROWS, bag, collection, rows_of
from stand_ins import JaggedTensor, KeyedJaggedTensor, real_jagged_tensors


def of_torch(module, **options):
    """torch's module with the same rows."""
    kind = torch.nn.EmbeddingBag if isinstance(module, ett.EmbeddingBag) else torch.nn.Embedding
    if kind is torch.nn.EmbeddingBag:
        options["mode"] = module.mode
    made = kind(module.num_embeddings, module.embedding_dim, **options)
    made.weight.data = rows_of(module)
    return made


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
    sparse = real_jagged_tensors()
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


def place_of(module, *arguments):
    with pytest.raises(et.DataError) as caught:
        module(*arguments)
    error = caught.value
    return str(error).split(":")[0], (error.feature, error.replica, error.sample, error.position)


@pytest.mark.parametrize("padding", [None, 3])
def test_errors_count_in_what_was_given(padding):
    """Padding counts too."""
    ids, wrong = torch.tensor([[3, 3], [1, 3], [3, 99]]), 99
    flat, offsets = ids.reshape(-1), torch.tensor([0, 2, 4])
    ours = bag(padding_idx=padding)
    expected = "feature 'weight', replica 0, sample 2, position 5", ("weight", 0, 2, 5)
    jagged = torch.nested.nested_tensor([*ids], layout=torch.jagged)
    for arguments in [(ids,), (flat, offsets), (flat, offsets, torch.ones(6)), (JaggedTensor(flat, torch.tensor([2, 2, 2])),), (jagged,)]:
        assert place_of(ours, *arguments) == expected
    assert flat[expected[1][-1]] == wrong
    single = ett.Embedding(ROWS, DIM, optimizer=et.SGD(1.0), padding_idx=padding)
    assert place_of(single, ids) == ("feature 'weight', replica 0, sample 5, position 5", ("weight", 0, 5, 5))
    tables = ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "users", ["user"]),
                                         ett.EmbeddingBagConfig(ROWS, DIM, "films", ["film"], padding_idx=padding)], et.SGD(1.0))
    users = torch.tensor([1, 2, 3])
    keyed = KeyedJaggedTensor(["user", "film"], torch.cat([users, flat]), torch.tensor([1, 1, 1, 2, 2, 2]))
    for batch in ({"user": users, "film": ids}, {"user": users, "film": (flat, offsets)}, keyed):
        assert place_of(tables, batch) == ("feature 'film', replica 0, sample 2, position 5", ("film", 0, 2, 5))


@pytest.mark.parametrize("padding", [None, 3])
def test_errors_of_a_replica_count_in_its_part(padding):
    ours = bag(padding_idx=padding, strategy=et.EngineStrategy(replicas_per_host=2))
    ids = torch.tensor([[1, 3], [3, 3], [3, 3], [3, 99]])
    assert place_of(ours, ids) == ("feature 'weight', replica 1, sample 1, position 3", ("weight", 1, 1, 3))
    assert place_of(ours, ids.reshape(-1), torch.tensor([0, 2, 9, 6]))[1] == ("weight", None, 2, None)


def test_errors_of_gradients_have_their_place():
    ours = collection(optimizer=et.SGD(1.0))
    found = ours({"user": torch.tensor([1, 2]), "film": torch.tensor([1, 3])})
    with pytest.raises(et.DataError) as caught:
        found["film"].backward(torch.tensor([[0.0] * DIM, [torch.nan] * DIM]))
    assert (caught.value.feature, caught.value.replica, caught.value.sample) == ("film", 0, 1)


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
