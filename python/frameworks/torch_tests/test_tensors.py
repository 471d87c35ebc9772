"""Tensors that the engine reads and makes itself, beside those that go through NumPy's arrays.

Versions of torch that offer no exchange to C take the second road. This file as a program takes it with any version.
"""

import gc
import json
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett

API = "__dlpack_c_exchange_api__"
ROWS, DIM = 20, 4
offers_exchange = pytest.mark.skipif(API not in vars(torch.Tensor), reason="needs a torch whose tensors have DLPack's exchange API")


class Named(torch.Tensor):
    """A subclass, as those of libraries."""


def negative(tensor):
    """The same numbers as an imaginary part of a conjugate, which has their negatives in memory."""
    found = torch.complex(torch.zeros_like(tensor), -tensor).conj().imag
    assert found.is_neg()
    return found


def negative_in_order(tensor):
    """The same, one number after the other."""
    return torch._neg_view(-tensor)


def every_other(tensor):
    """The same numbers, not beside each other."""
    apart = torch.stack([tensor, tensor], dim=-1)[..., 0]
    assert tensor.numel() < 2 or not apart.is_contiguous()
    return apart


def later(tensor):
    """The same numbers, not at the beginning of their storage."""
    return torch.cat([tensor[:1], tensor])[1:]


IDS, BOUNDS, WEIGHTS = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2, 5]), torch.tensor([0.5, -1, 2, 0, 3, 1])
LINES = torch.tensor([[1, 2], [3, 3], [0, 19]])
OF_LINES = torch.tensor([[0.5, 1], [2, 3], [4, 5]])

BAGS = {
    "ids": (IDS, BOUNDS), "weights": (IDS, BOUNDS, WEIGHTS), "lines": (LINES,), "weights of lines": (LINES, None, OF_LINES),
    "one a line": (LINES[:, :1].contiguous(), None, OF_LINES[:, :1].contiguous()), "lines of none": (LINES[:, :0],),
    "no lines": (LINES[:0],), "int32": (IDS.int(), BOUNDS.int()), "int32 and int64": (IDS.int(), BOUNDS),
    "apart": (every_other(IDS), every_other(BOUNDS), every_other(WEIGHTS)), "lines apart": (every_other(LINES), None, OF_LINES),
    "columns": (LINES.t(), None, OF_LINES.t()), "later": (later(IDS), later(BOUNDS), later(WEIGHTS)), "no ids": (IDS[:0], BOUNDS[:2] * 0),
    "no bags": (IDS[:0], BOUNDS[:0]), "no weights": (IDS[:0], BOUNDS[:2] * 0, WEIGHTS[:0]), "ids and no bags": (IDS, BOUNDS[:0]),
    "no offsets": (IDS,), "a number": (IDS[0],), "three dims": (IDS.reshape(1, 2, 3),), "lines and offsets": (LINES, BOUNDS),
    "offsets of two dims": (IDS, LINES), "falling": (IDS, BOUNDS.flip(0)), "too far": (IDS, BOUNDS * 2), "late": (IDS, BOUNDS + 1),
    "uint8": (IDS.byte(), BOUNDS), "int16": (IDS.short(), BOUNDS), "floats": (WEIGHTS, BOUNDS), "bool": (IDS.bool(), BOUNDS),
    "offsets of floats": (IDS, BOUNDS.float()), "outside": (IDS + 15, BOUNDS), "below": (-IDS, BOUNDS),
    "weights of doubles": (IDS, BOUNDS, WEIGHTS.double()), "weights of ints": (IDS, BOUNDS, IDS), "few weights": (IDS, BOUNDS, WEIGHTS[1:]),
    "weights of another shape": (LINES, None, OF_LINES.reshape(2, 3)), "negative weights": (IDS, BOUNDS, negative(WEIGHTS)),
    "negative weights in order": (IDS, BOUNDS, negative_in_order(WEIGHTS)),
    "weights with a gradient": (IDS, BOUNDS, WEIGHTS.clone().requires_grad_()),
    "weights of no ids with a gradient": (IDS[:0], BOUNDS[:1], WEIGHTS[:0].clone().requires_grad_()),
    "subclass": (IDS.as_subclass(Named), BOUNDS.as_subclass(Named), WEIGHTS.as_subclass(Named)),
    "parameter": (IDS, BOUNDS, torch.nn.Parameter(WEIGHTS, requires_grad=False)), "arrays": (IDS.numpy(), BOUNDS.numpy(), WEIGHTS.numpy()),
    "meta": (IDS.to("meta"), BOUNDS), "offsets on meta": (IDS, BOUNDS.to("meta")), "weights on meta": (IDS, BOUNDS, WEIGHTS.to("meta")),
    "sparse": (torch.sparse_coo_tensor(IDS[None], IDS), BOUNDS), "zeros": (IDS, BOUNDS, torch._efficientzerotensor((6,))),
    "nested": (torch.nested.nested_tensor([IDS[:2], IDS[2:]]),), "jagged": (torch.nested.nested_tensor([IDS[:2], IDS[2:]], layout=torch.jagged),),
    "a list": ([1, 2], BOUNDS), "a tensor in a list": ([IDS], BOUNDS), "text": ("ids", BOUNDS), "none": (None, BOUNDS),
}

GRADIENTS = {
    "in order": lambda rows: torch.arange(rows.numel(), dtype=torch.float32).reshape(rows.shape) - 3,
    "expanded": lambda rows: torch.tensor(0.5).expand(rows.shape), "a row expanded": lambda rows: torch.arange(4.0).expand(rows.shape),
    "columns": lambda rows: torch.arange(rows.numel(), dtype=torch.float32).reshape(rows.shape[::-1]).t(),
    "side by side": lambda rows: torch.cat([rows + 1, rows - 1], dim=1)[:, DIM:], "apart": lambda rows: every_other(rows * 2),
    "negative": lambda rows: negative(rows + 2), "negative in order": lambda rows: negative_in_order(rows + 2),
    "infinite": lambda rows: rows / 0, "doubles": lambda rows: (rows + 1).double(),
}


class Gives(torch.autograd.Function):
    """A loss whose gradient is made as it is wanted, for torch's own to be of any layout."""

    @staticmethod
    def forward(ctx, rows, make):
        ctx.gradient = make(rows.detach().clone())
        return rows.sum()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.gradient, None


def rows_of(module):
    return module.read_rows(torch.arange(ROWS), next(iter(module._tables)))


def bag(**options):
    return ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.SGD(0.5), seed=1, name="rows", **options)


def embedding():
    return ett.Embedding(ROWS, DIM, optimizer=et.SGD(0.5), seed=1)


def collection():
    tables = [ett.EmbeddingBagConfig(ROWS, DIM, "users", ["user"]), ett.EmbeddingBagConfig(ROWS, DIM, "films", ["film"], "mean")]
    return ett.EmbeddingBagCollection(tables, et.SGD(0.5), seed=3)


def engine(outputs="numpy"):
    table = et.TableConfig(ROWS, DIM, et.Initializer.uniform(-1, 1), None, "sum", "rows")
    made = et.Embedding([et.FeatureConfig(table, name="a"), et.FeatureConfig(table, name="b")], et.SGD(0.5), et.EngineStrategy(threads=1),
                        variable_batch=True, outputs=outputs, gradient_policy="error")
    made.build(1000)
    return made


def numbers(array):
    array = array.detach().numpy() if isinstance(array, torch.Tensor) else array
    return [str(array.dtype), list(array.shape), np.ascontiguousarray(array).tobytes().hex()]


def outcome(work):
    """What it gives, or its error."""
    try:
        return work()
    except Exception as error:
        text = str(error).split("\n")[0]
        return [type(error).__name__, text]


def trained(module, *arguments):
    """What a lookup gives, its step and the rows after it."""
    found = module(*arguments)
    rows = list(found.values()) if isinstance(found, dict) else [found]
    shown = [numbers(one) for one in rows]
    torch.cat([(one * one).reshape(-1) for one in rows]).sum().backward()
    return [shown, numbers(rows_of(module)), all(one.is_contiguous() and one.requires_grad for one in rows)]


def with_gradient(make):
    module = bag()
    Gives.apply(module(IDS, BOUNDS), make).backward()
    return numbers(rows_of(module))


def applied(make):
    """The rows after a gradient that is given to the engine itself, beside none for the other feature."""
    made = engine()
    rows, token = made.look_up([IDS, LINES[:, :1]])
    made.apply_gradients([make(torch.from_numpy(rows[0])), None], token)
    return numbers(made.read_rows("rows", range(ROWS)))


def enqueued(ids, weights=None):
    made = engine()
    made.enqueue([ids, IDS], None if weights is None else [weights, None])
    rows = made.dequeue()
    made.apply_gradients(rows)
    return [numbers(one) for one in rows] + [numbers(made.read_rows("rows", range(ROWS)))]


def outcomes():
    """By name, what calls with all kinds of tensors give."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, arguments in BAGS.items():
            found[f"bag, {name}"] = outcome(lambda: trained(bag(), *arguments))
            found[f"bag with last offset, {name}"] = outcome(lambda: trained(bag(include_last_offset=True), *arguments))
            found[f"bag without a gradient, {name}"] = outcome(lambda: numbers(bag().eval()(*arguments)))
            with torch.no_grad():
                found[f"bag under no_grad, {name}"] = outcome(lambda: numbers(bag()(*arguments)))
            found[f"embedding, {name}"] = outcome(lambda: trained(embedding(), arguments[0]))
            found[f"collection, {name}"] = outcome(lambda: trained(collection(), {"user": arguments, "film": IDS[:3], "more": 1}))
            found[f"collection of lists, {name}"] = outcome(lambda: trained(collection(), {"film": list(arguments), "user": IDS[:4]}))
            found[f"collection of one kind, {name}"] = outcome(lambda: trained(collection(), {"film": arguments[0], "user": LINES}))
            found[f"enqueue, {name}"] = outcome(lambda: enqueued(arguments[0], arguments[2] if len(arguments) > 2 else None))
        for name, batch in {"empty": {}, "no film": {"user": IDS}, "too many": {"user": (IDS, BOUNDS, None, None), "film": IDS},
                            "no ids": {"user": (), "film": IDS}}.items():
            found[f"batch, {name}"] = outcome(lambda: trained(collection(), batch))
        for name, make in GRADIENTS.items():
            found[f"gradient, {name}"] = outcome(lambda: with_gradient(make))
            found[f"engine, {name}"] = outcome(lambda: applied(make))
        for name, make in {"bfloat16": lambda rows: rows.bfloat16(), "ints": lambda rows: rows.int(), "meta": lambda rows: rows.to("meta"),
                           "with a gradient": lambda rows: (rows + 1).requires_grad_(), "subclass": lambda rows: (rows + 1).as_subclass(Named),
                           "short": lambda rows: rows[1:], "sparse": lambda rows: rows.to_sparse(), "flat": lambda rows: rows.reshape(-1),
                           "zeros": lambda rows: torch._efficientzerotensor(rows.shape)}.items():
            found[f"engine, {name}"] = outcome(lambda: applied(make))
        for kind in ("numpy", "torch"):
            made = engine(kind)
            for asked in (None, "numpy", "torch"):
                rows, _ = made.look_up([IDS, LINES[:, :1]], training=False, outputs=asked)
                found[f"outputs, {kind}, {asked}"] = [type(rows[0]).__name__, *map(numbers, rows)]
            made.enqueue([IDS, LINES[:, :1]], training=False)
            found[f"outputs, {kind}"] = [type(one).__name__ for one in made.dequeue()]
    return found


@offers_exchange
def test_both_roads_give_the_same():
    program = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, text=True, check=True)
    expected = json.loads(program.stdout)
    found = outcomes()
    assert found.keys() == expected.keys()
    assert {name: (found[name], expected[name]) for name in found if found[name] != expected[name]} == {}


@offers_exchange
def test_the_other_tests_hold_without_the_exchange(tmp_path):
    (tmp_path / "without_exchange.py").write_text(f"import torch\ndel torch.Tensor.{API}\n")
    here = pathlib.Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "without_exchange",
               here / "test_lookups.py", here / "test_steps.py", here / "test_arguments.py", __file__]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    program = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert program.returncode == 0, program.stdout


def test_negatives_are_what_they_mean():
    for make in (negative, negative_in_order):
        found = [bag() for _ in range(2)]
        for module, of in zip(found, (make, torch.clone)):
            rows = module(IDS, BOUNDS)
            Gives.apply(rows, lambda rows, of=of: of(rows + 2)).backward()
        assert torch.equal(*map(rows_of, found))
    with pytest.raises(RuntimeError):  # so that no integers have the bit that the engine does not ask for
        negative_in_order(WEIGHTS).view(torch.int32)


def test_activations_may_be_changed_in_place():
    module = bag()
    before = rows_of(module)
    with torch.no_grad():
        found = module(IDS, BOUNDS)
        expected = found * 2 + 1
        found.mul_(2).add_(1)
        torch.testing.assert_close(found, expected)
    trained_rows = module(IDS, BOUNDS)
    trained_rows.mul_(3)
    trained_rows.sum().backward()
    expected = before.clone()
    expected.index_add_(0, IDS, torch.full((6, DIM), -1.5))
    torch.testing.assert_close(rows_of(module), expected)


@pytest.mark.parametrize("train", [False, True])
def test_activations_outlive_the_module(train):
    module = collection().train(train)
    found = list(module({"user": IDS, "film": (IDS, BOUNDS)}).values())
    kept = [rows.detach().clone() for rows in found]
    held = found[1].detach()
    del module
    found.pop(0)
    gc.collect()
    assert torch.equal(found[0], kept[1])
    found.clear()
    gc.collect()
    held += 1
    assert torch.equal(held, kept[1] + 1)


def test_activations_are_dropped_on_any_thread():
    module = collection().eval()
    for _ in range(50):
        found = list(module({"user": IDS, "film": IDS}).values())
        thread = threading.Thread(target=found.clear)
        thread.start()
        thread.join()
    module.train()
    for _ in range(50):  # torch's own threads drop what its graph holds
        found = module({"user": IDS, "film": IDS})
        torch.cat(list(found.values())).square().sum().backward()


def test_memory_is_used_again_once_nobody_holds_it():
    module = bag().eval()
    first = module(IDS, BOUNDS)
    kept = first.clone()
    second = module(IDS + 1, BOUNDS)
    assert first.data_ptr() != second.data_ptr() and torch.equal(first, kept)
    part, place = first[1:], first.data_ptr()
    del first, second
    assert all(module(IDS + 2, BOUNDS).data_ptr() != place for _ in range(4)) and torch.equal(part, kept[1:])
    del part
    held = [module(IDS + 2, BOUNDS) for _ in range(3)]
    assert place in [rows.data_ptr() for rows in held]


def test_nothing_is_left_of_steps():
    module = collection()
    batch = {"user": (IDS, BOUNDS, WEIGHTS), "film": IDS[:4]}

    def step():
        rows = module(batch)
        torch.cat([*rows.values()], dim=1).sum().backward()

    def counts():
        gc.collect()
        return [sys.getrefcount(one) for one in (IDS, BOUNDS, WEIGHTS, module, torch.Tensor)], len(gc.get_objects())

    for _ in range(20):
        step()
    references, objects = counts()
    for _ in range(1000):
        step()
    now, left = counts()
    assert now == references and left <= objects + 10


def test_tensors_may_be_resized_while_ids_hold_them():
    ids = torch.arange(6)
    ragged = et.RaggedIds(ids, torch.tensor([0, 2, 6]))
    with pytest.raises(RuntimeError, match="not resizable"):
        ids.resize_(1 << 20)
    assert ragged.values.tolist() == [0, 1, 2, 3, 4, 5]


def test_tensors_at_the_end_of_the_process():
    """Freed by a thread that the interpreter waits for. Where it does not, of a daemon thread, torch itself aborts at times."""
    text = """
import threading, time, torch, embertable as et, embertable.torch as ett
module = ett.EmbeddingBag(20, 4, optimizer=et.SGD(0.5), seed=1)
torch.kept = module(torch.tensor([[1, 2]]))
found = [module(torch.tensor([[1, 2]])) for _ in range(2000)]
def drop():
    while found:
        time.sleep(0.0001)
        found.pop()
threading.Thread(target=drop).start()
"""
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0


if __name__ == "__main__":
    if API in vars(torch.Tensor):
        delattr(torch.Tensor, API)
    print(json.dumps(outcomes()))


def test_tensors_of_bfloat16_are_arrays_too(tmp_path):
    rows = torch.randn(6, 5).to(torch.bfloat16)
    wide = rows.float().numpy()
    for given in (rows, every_other(rows), negative(rows.float()).to(torch.bfloat16), rows.clone().requires_grad_()):
        found = et.embedding_lookup(given, [1, 4])
        assert found.dtype.name == "bfloat16"
        np.testing.assert_array_equal(np.float32(found), wide[[1, 4]])
    np.testing.assert_array_equal(np.float32(et.embedding_lookup([rows[:3], rows[3:]], [5])), wide[[5]])
    ids = et.SparseIds([[0, 0]], [3], [1, 1])
    for lookup in (et.embedding_lookup_sparse, et.safe_embedding_lookup_sparse):
        np.testing.assert_array_equal(np.float32(lookup(rows, ids)), wide[[3]])
    variable = et.Variable(rows)
    assert variable.dtype.name == "bfloat16"
    np.testing.assert_array_equal(np.float32(variable + rows), np.float32((rows + rows).float()))
    variable.assign(rows.flip(0))
    variable.scatter_add([0], torch.zeros(1, 5, dtype=torch.bfloat16))
    np.testing.assert_array_equal(np.float32(variable), wide[::-1])
    writer = et.TensorBundleWriter(tmp_path / "bundle")
    writer.add("whole", rows)
    writer.add_slice("cut", rows[:3], np.s_[0:3, :], (3, 5))
    writer.finish()
    engine = et.Embedding(et.FeatureConfig(et.TableConfig(6, 5, name="t")))
    engine.build(per_replica_batch_size=2)
    engine.save(tmp_path / "run", et.CallerState(None, {"rows": rows}))
    saved = et.read_saved_state(tmp_path / "run").caller.tensors["rows"]
    assert saved.dtype.name == "bfloat16"
    np.testing.assert_array_equal(np.float32(saved), wide)


@pytest.mark.parametrize("out", [torch.zeros(2, 5, dtype=torch.bfloat16), torch.zeros(2, 5, dtype=torch.float64)], ids=["bfloat16", "float64"])
def test_memory_to_write_to_is_of_float32(out):
    engine = et.Embedding(et.FeatureConfig(et.TableConfig(6, 5, name="t")), et.SGD(0.1), et.EngineStrategy())
    with pytest.raises(TypeError, match=f"must be float32, got {out.dtype}"):
        engine.look_up([1, 2], training=False, out=out)
