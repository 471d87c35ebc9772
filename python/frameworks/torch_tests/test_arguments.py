"""What the modules of embertable.torch take, and what they say of the rest."""

import copy
import io
import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from small_modules import DIM, ROWS, bag, collection, rows_of


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
    with pytest.raises(RuntimeError, match=r"backward came twice for lookup 1 at test_arguments.py:\d+ .*; look up again"):
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
