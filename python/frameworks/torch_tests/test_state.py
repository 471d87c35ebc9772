"""state_dict, imports from torch and torchrec, and whole trainings in one commit."""

import datetime
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from embertable import tpu_embedding as tpu

ROWS, DIM = 12, 4


def make(optimizer=None, seed=1, rows=ROWS, dim=DIM):
    tables = [ett.EmbeddingBagConfig(rows, dim, "users", ["user"]), ett.EmbeddingBagConfig(7, 3, "films", ["film"], "mean")]
    return ett.EmbeddingBagCollection(tables, optimizer or et.Optimizer("adamw", 0.1), seed=seed)


def train(module, steps=3, first=0):
    for step in range(first, first + steps):
        found = module({"user": torch.tensor([step % ROWS, 1]), "film": torch.tensor([[step % 7, 2], [3, 3]])})
        sum((number + 1) * rows.square().sum() for number, rows in enumerate(found.values())).backward()
    return module


def test_names_of_tables_may_have_slashes():
    made = [ett.EmbeddingBagCollection([ett.EmbeddingBagConfig(ROWS, DIM, "ads/user", ["user"])], et.Adagrad(0.1), seed=seed) for seed in (1, 2)]
    made[0]({"user": torch.tensor([1, 2])})["user"].sum().backward()
    made[1].load_state_dict(made[0].state_dict())
    assert made[1].engine.digest() == made[0].engine.digest() and made[1].engine.step == 1


def test_a_whole_state_goes_on_to_the_same_bits():
    ours = train(make())
    state = ours.state_dict()
    assert set(state) == {f"embedding_bags.{table}.weight{slot}" for table in ("users", "films")
                          for slot in ("", ".momenta", ".velocities")} | {"_extra_state"}
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    written = io.BytesIO()
    torch.save(state, written)
    written.seek(0)
    other = make(seed=2)
    other.optimizer.learning_rate = 3.0
    assert str(other.load_state_dict(torch.load(written, weights_only=True))) == "<All keys matched successfully>"
    assert other.engine.digest() == ours.engine.digest() and other.engine.step == 3 and other.optimizer.learning_rate == 0.1
    assert train(other, first=3).engine.digest() == train(ours, first=3).engine.digest()


@pytest.mark.parametrize("saved, before", [(12, 0), (1, 12), (3, 3)])
def test_a_checkpoint_restores_tables_whose_step_has_another_length(tmp_path, saved, before):
    ours, other = train(make(), saved), train(make(seed=2), before)
    path = tpu.Checkpoint(model=torch.nn.ModuleDict({"tables": ours})).save(tmp_path / "run")
    tpu.Checkpoint(model=torch.nn.ModuleDict({"tables": other})).restore(path).assert_consumed()
    assert other.engine.step == saved and other.engine.digest() == ours.engine.digest()


def test_a_state_dict_inside_a_model_has_its_prefix():
    model = torch.nn.ModuleDict({"tables": train(make()), "head": torch.nn.Linear(2, 1)})
    other = torch.nn.ModuleDict({"tables": make(seed=2), "head": torch.nn.Linear(2, 1)})
    assert "tables.embedding_bags.users.weight.momenta" in model.state_dict()
    other.load_state_dict(model.state_dict())
    assert other["tables"].engine.digest() == model["tables"].engine.digest()


def test_a_state_by_reference(tmp_path):
    ours = train(make())
    ours.keep_tables_in(tmp_path / "run")
    state = ours.state_dict()
    assert set(state) == {"_extra_state"} and state["_extra_state"].numel() < 2000
    assert torch.equal(ours.state_dict()["_extra_state"], state["_extra_state"])  # the step is committed once
    train(ours, first=3)
    later = ours.state_dict()
    other = make(seed=2)
    other.load_state_dict(state)
    assert other.engine.step == 3
    assert train(other, first=3).engine.digest() == ours.engine.digest()
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(RuntimeError, match=r"refers to .*step_000000000006.*; where the run has moved, call keep_tables_in"):
        other.load_state_dict(later)
    other.keep_tables_in(tmp_path / "moved")
    other.load_state_dict(later)
    assert other.engine.digest() == ours.engine.digest()
    ours.keep_tables_in(tmp_path / "new")
    ours.state_dict()
    ours.assign_rows(torch.tensor([0]), torch.ones(1, DIM), "users")
    other.load_state_dict(ours.state_dict())  # of the same step
    assert other.engine.digest() == ours.engine.digest() and other.engine.step == 6


def test_states_by_reference_go_on_from_an_older_one(tmp_path):
    ours = train(make())
    ours.keep_tables_in(tmp_path)
    states = [ours.state_dict()]
    digests = [ours.engine.digest()]
    for first in (3, 3, 3):
        train(ours, first=first)
        states.append(ours.state_dict())
        digests.append(ours.engine.digest())
        assert ours.engine.step == 6
        ours.load_state_dict(states[0])
        assert ours.engine.digest() == digests[0] and ours.engine.step == 3
        ours.assign_rows(torch.tensor([0]), torch.full((1, DIM), float(len(states))), "users")
    assert [path.name[-1] for path in sorted(tmp_path.glob("step_*"))] == ["3", "6", "7", "8"]
    for state, digest in zip(states, digests):
        other = make(seed=2)
        other.load_state_dict(state)
        assert other.engine.digest() == digest


@pytest.mark.parametrize("other, text", [
    (lambda: make(rows=13), "table 'users' is 12 x 4 in the state_dict and 13 x 4 here: make the module with the sizes"),
    (lambda: make(et.SGD(0.1)), "has the optimizer 'adamw' in the state_dict and 'sgd' here: make the module with the same rule"),
    (lambda: ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(0.1)), "table 'users' is only in the state_dict: make the module with"),
])
@pytest.mark.parametrize("reference", [False, True])
def test_a_state_of_another_configuration_is_refused_and_changes_nothing(tmp_path, other, text, reference):
    ours, other = train(make()), other()
    if reference:
        ours.keep_tables_in(tmp_path)
    before = other.engine.digest()
    with pytest.raises(RuntimeError, match=text):
        other.load_state_dict(ours.state_dict())
    assert other.engine.digest() == before


def test_a_damaged_state_is_refused_and_changes_nothing():
    ours, other = train(make()), make(seed=2)
    before = other.engine.digest()
    lacking = dict(ours.state_dict())
    del lacking["embedding_bags.users.weight.momenta"]
    with pytest.raises(RuntimeError, match='Missing key.*embedding_bags.users.weight.momenta'):
        other.load_state_dict(lacking)
    noise = dict(ours.state_dict(), _extra_state=torch.tensor([1, 2, 3], dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="is not what state_dict"):
        other.load_state_dict(noise)
    short = dict(ours.state_dict())
    short["embedding_bags.films.weight"] = torch.zeros(6, 3)
    with pytest.raises(RuntimeError, match=r"must have shape \(7, 3\), got \(6, 3\)"):
        other.load_state_dict(short)
    assert other.engine.digest() == before


def extra_of(state, **changes):
    """What state_dict() has beside the rows, with changes; None leaves a part out."""
    extra = {**json.loads(bytes(state["_extra_state"].numpy())), **changes}
    return {name: value for name, value in extra.items() if value is not None}


def as_tensor(extra):
    return torch.frombuffer(bytearray(json.dumps(extra).encode()), dtype=torch.uint8)


@pytest.mark.parametrize("extra, text", [
    (lambda state: [1], "it must have format, step, tables, learning_rates, got"), (lambda state: None, "it must have format"),
    (lambda state: {"format": 1}, "step must be int, got none"), (lambda state: {}, "format must be int, got none"),
    (lambda state: extra_of(state, tables=None), "tables must be dict, got none"),
    (lambda state: extra_of(state, tables=[1]), "tables must be dict, got list"),
    (lambda state: extra_of(state, tables={"users": {"rows": 12}}), "dim must be int, got none"),
    (lambda state: extra_of(state, step="3"), "step must be int, got str"), (lambda state: extra_of(state, step=-1), "step must be 0 <= step"),
    *[(lambda state, step=step: extra_of(state, step=step), "step must be 0 <= step <= 2\\^62") for step in ((1 << 62) + 1, 1 << 70, 10**400)],
    (lambda state: extra_of(state, left_out="no"), "left_out must be bool, got str"), (lambda state: extra_of(state, left_out=1), "left_out must be bool"),
    (lambda state: extra_of(state, learning_rates={"users": "a"}), "learning_rate must be a number, got 'a'"),
    (lambda state: extra_of(state, learning_rates={"users": 10**400}), ""),
    (lambda state: extra_of(state, learning_rates={"users": float("inf")}), "adamw: learning_rate must be finite"),
    (lambda state: extra_of(state, reference=3), "it must have directory, step, digest, got 3"),
    (lambda state: extra_of(state, reference={"directory": 3}), "directory must be str, got int"),
    *[(lambda state, directory=directory: extra_of(state, reference={"directory": directory, "step": 3, "digest": ""}),
       "directory must be a path, got 'r") for directory in ("run\0", "r\ud800")],
    (lambda state: extra_of(state, format="1"), "format must be int, got str")])
@pytest.mark.parametrize("strict", [True, False])
def test_a_damaged_description_is_refused_and_changes_nothing(extra, text, strict):
    ours, other = train(make()), make(seed=2)
    before = other.engine.digest(), other.engine.step, other.optimizer.learning_rates
    state = ours.state_dict()
    with pytest.raises(RuntimeError, match=f"'_extra_state' is not what state_dict.. of embertable.torch makes: {text}"):
        other.load_state_dict(dict(state, _extra_state=as_tensor(extra(state))), strict)
    assert (other.engine.digest(), other.engine.step, other.optimizer.learning_rates) == before
    other.load_state_dict(dict(state, _extra_state=as_tensor(extra_of(state))), strict)


@pytest.mark.parametrize("extra", [None, 3, "a", torch.zeros(2), torch.zeros(2, dtype=torch.uint8, device="meta"), torch.tensor([], dtype=torch.uint8)])
def test_a_description_is_a_tensor_of_bytes(extra):
    ours, other = train(make()), make(seed=2)
    before = other.engine.digest()
    with pytest.raises(RuntimeError, match="'_extra_state' is not what state_dict.. of embertable.torch makes"):
        other.load_state_dict(dict(ours.state_dict(), _extra_state=extra))
    assert other.engine.digest() == before
    deep = b'{"format": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(RuntimeError, match="'_extra_state' is not what state_dict.. of embertable.torch makes"):
        other.load_state_dict(dict(ours.state_dict(), _extra_state=torch.frombuffer(bytearray(deep), dtype=torch.uint8)))
    with pytest.raises(RuntimeError, match="the state_dict has format 2, this version reads 1"):
        other.load_state_dict(dict(ours.state_dict(), _extra_state=as_tensor({"format": 2})))


@pytest.mark.parametrize("rows, text", [
    (torch.zeros(7, 3, dtype=torch.complex64), "real numbers, got complex64"), (torch.zeros(7, 3, device="meta"), "got one without values"),
    (lambda: torch.nested.nested_tensor([torch.zeros(3)] * 7), "got a nested one"), (None, "real numbers, got NoneType"), ("a", "got <U1")])
def test_rows_that_are_no_rows_are_not_loaded(rows, text):
    """The other table's are fine, and stay as they were."""
    ours, other = train(make()), make(seed=2)
    before = other.engine.digest()
    rows = rows() if callable(rows) else rows
    for strict in (True, False):
        with pytest.raises(RuntimeError, match=f"'embedding_bags.films.weight' must be .*{text}"):
            other.load_state_dict(dict(ours.state_dict(), **{"embedding_bags.films.weight": rows}), strict)
    assert other.engine.digest() == before


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_states_of_other_types_are_loaded(dtype):
    ours, other = ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(0.1), seed=1), ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(0.1), seed=2)
    state = ours.state_dict()
    other.load_state_dict(dict(state, weight=state["weight"].to(dtype)))
    assert torch.equal(other.read_rows(range(ROWS)), state["weight"].to(dtype).float())


def test_what_fits_is_loaded_where_it_need_not_be_strict():
    """A state without slots and with a stray key, as torch loads it."""
    theirs = torch.nn.EmbeddingBag(ROWS, DIM)
    ours = ett.EmbeddingBag(ROWS, DIM, optimizer=et.Optimizer("adamw", 0.1), seed=1)
    before = ours.engine.digest()
    state = dict(theirs.state_dict(), stray=torch.zeros(1))
    with pytest.raises(RuntimeError, match="Unexpected key.*stray"):
        ours.load_state_dict(state)
    assert ours.engine.digest() == before
    found = ours.load_state_dict(state, strict=False)
    assert torch.equal(ours.read_rows(torch.arange(ROWS)), theirs.weight)
    assert set(found.missing_keys) == {"weight.momenta", "weight.velocities", "_extra_state"} and found.unexpected_keys == ["stray"]
    model, other = torch.nn.Sequential(ours), torch.nn.Sequential(ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(1.0), seed=2))
    assert other.load_state_dict({"0.weight": theirs.weight}, strict=False).missing_keys == ["0._extra_state"]
    assert torch.equal(other[0].read_rows(torch.arange(ROWS)), theirs.weight)
    after = ours.engine.digest()
    for strict in (True, False):
        with pytest.raises(RuntimeError, match="has the optimizer 'sgd' in the state_dict and 'adamw' here"):
            model.load_state_dict(other.state_dict(), strict=strict)
        with pytest.raises(RuntimeError, match=r"must have shape \(12, 4\), got \(3, 4\)"):
            model.load_state_dict({"0.weight": torch.zeros(3, DIM)}, strict=strict)
    assert ours.engine.digest() == after


def test_slots_and_step_of_a_table_come_with_its_rows_alone():
    ours, other = train(make()), torch.nn.ModuleDict({"tables": make(seed=2)})
    state = {f"tables.{key}": value for key, value in ours.state_dict().items()}
    del state["tables.embedding_bags.users.weight"]
    before, engine = other["tables"].state_dict(), other["tables"].engine
    for strict in (True, False):
        if strict:
            with pytest.raises(RuntimeError, match="Missing key.*users.weight"):
                other.load_state_dict(state)
        else:
            assert other.load_state_dict(state, strict=False).missing_keys == ["tables.embedding_bags.users.weight"]
        after = other["tables"].state_dict()
        for key in before:
            if "users" in key:
                assert torch.equal(after[key], before[key]), key
            elif "films" in key:
                assert torch.equal(after[key], state[f"tables.{key}"]), key
        assert engine.step == 0


def test_nothing_is_taken_after_an_error_of_a_module_before():
    model = lambda rows, seed: torch.nn.Sequential(*[
        ett.EmbeddingBag(size, DIM, optimizer=et.Adagrad(0.1), seed=seed) for size in (rows, ROWS)])
    state, other = model(ROWS + 1, 1).state_dict(), model(ROWS, 2)
    before = [one.engine.digest() for one in other]
    for strict in (True, False):
        with pytest.raises(RuntimeError, match="make the module with the sizes"):
            other.load_state_dict(state, strict)
    assert [one.engine.digest() for one in other] == before


@pytest.mark.parametrize("by_reference", [False, True])
def test_a_state_loads_into_a_module_that_combines_otherwise(tmp_path, by_reference):
    """As that of nn.Embedding does into nn.EmbeddingBag, whatever its mode."""
    ours = ett.Embedding(ROWS, DIM, optimizer=et.Adagrad(0.1), seed=1)
    ours(torch.tensor([1, 2])).sum().backward()
    ours.keep_tables_in(tmp_path / "run" if by_reference else None)
    bag = ett.EmbeddingBag(ROWS, DIM, mode="mean", optimizer=et.Adagrad(0.1), seed=2)
    bag.load_state_dict(ours.state_dict())
    assert bag.engine.digest() == ours.engine.digest()
    rows = ours.read_rows([1, 3])
    assert torch.equal(bag(torch.tensor([[1, 3]])).detach(), (rows[:1] + rows[1:]) / 2)


class Tower(ett.Embedding):
    """A subclass with a child, a parameter and a buffer of its own."""

    def __init__(self, seed=1):
        super().__init__(ROWS, DIM, optimizer=et.Optimizer("adamw", 0.1), seed=seed)
        torch.manual_seed(seed)
        self.proj = torch.nn.Linear(DIM, 2)
        self.scale = torch.nn.Parameter(torch.tensor(float(seed)))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, ids):
        self.calls += 1
        return self.proj(super().forward(ids)) * self.scale


def dense_of(tower):
    return [one.detach().clone() for one in (*tower.proj.parameters(), tower.scale, tower.calls)]


@pytest.mark.parametrize("reference", [False, True])
def test_the_state_of_a_subclass_has_what_it_adds(tmp_path, reference):
    ours, other = Tower(), Tower(2)
    ours(torch.tensor([1, 2])).sum().backward()
    if reference:
        ours.keep_tables_in(tmp_path / "run")
    state = ours.state_dict()
    assert set(state) == {"proj.weight", "proj.bias", "scale", "calls", "_extra_state",
                          *([] if reference else ["weight", "weight.momenta", "weight.velocities"])}
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other.engine.digest() == ours.engine.digest() and other.engine.step == 1
    assert all(torch.equal(one, wanted) for one, wanted in zip(dense_of(other), dense_of(ours)))
    before = other.engine.digest()
    ours(torch.tensor([1, 2])).sum().backward()
    for change, text in [(lambda state: state.pop("scale"), "Missing key.*scale"),
                         (lambda state: state.update(scale=torch.zeros(2, 2)), "size mismatch for scale"),
                         (lambda state: state.update(stray=torch.zeros(1)), "Unexpected key.*stray"),
                         (lambda state: state.update({"stray.weight": torch.zeros(1)}), "Unexpected key.*stray.weight")]:
        state = ours.state_dict()
        change(state)
        with pytest.raises(RuntimeError, match=text):
            other.load_state_dict(state)
        assert other.engine.digest() == before
    model = torch.nn.ModuleDict({"tower": Tower(3)})
    model.load_state_dict({f"tower.{key}": value for key, value in ours.state_dict().items()})
    assert model["tower"].engine.digest() == ours.engine.digest()
    assert all(torch.equal(one, wanted) for one, wanted in zip(dense_of(model["tower"]), dense_of(ours)))


def test_what_a_subclass_adds_is_moved_and_has_its_gradients_zeroed():
    tower = Tower()
    tower(torch.tensor([1, 2])).sum().backward()
    assert all(one.grad is not None for one in tower.parameters())
    tower.zero_grad()
    assert all(one.grad is None for one in tower.parameters())
    tower.to(torch.bfloat16)
    assert {one.dtype for one in dense_of(tower)} == {torch.bfloat16}
    assert tower(torch.tensor([1, 2])).dtype == torch.bfloat16


def test_gradients_that_wait_are_not_those_of_a_loaded_state():
    ours, other = (ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(1.0), seed=seed) for seed in (1, 2))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    ours.optimizer.step_with(optimizer)
    ours(torch.tensor([[1]])).sum().backward()
    ours.load_state_dict(other.state_dict())
    optimizer.step()
    assert ours.engine.digest() == other.engine.digest() and ours.optimizer.skipped_steps == 0


def test_states_within_a_device_and_a_default_dtype():
    expected = train(make(et.Adagrad(0.1)))
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            ours = make(et.Adagrad(0.1))
            state = expected.state_dict()
            ours.load_state_dict(state)
        assert state["embedding_bags.users.weight"].dtype == torch.float32 and state["_extra_state"].device.type == "cpu"
        rows = ours({"user": torch.tensor([1]), "film": torch.tensor([1])})["user"]
        assert rows.dtype == torch.float64 == torch.nn.Embedding(1, 1)(torch.tensor([0])).dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert ours.engine.digest() == expected.engine.digest()


# From torch and torchrec


def trained_bag(optimizer, sparse):
    torch.manual_seed(1)
    theirs = torch.nn.EmbeddingBag(ROWS, DIM, mode="sum", sparse=sparse)
    stepper = optimizer(theirs.parameters())
    for step in range(3):
        steps_of_torch(theirs, stepper, step)
    return theirs, stepper


def ids_of(step):
    return torch.tensor([[step, step + 1], [7, 7]])


def steps_of_torch(theirs, stepper, step):
    stepper.zero_grad()
    theirs(ids_of(step)).square().sum().backward()
    stepper.step()


@pytest.mark.parametrize("rule, optimizer, sparse", [
    ("torch.SparseAdam", lambda p: torch.optim.SparseAdam(list(p), 0.05), True),
    ("torch.Adagrad", lambda p: torch.optim.Adagrad(p, 0.05), True),
    ("torch.SGD", lambda p: torch.optim.SGD(p, 0.05), True),
])
def test_training_goes_on_as_torchs_would(rule, optimizer, sparse):
    theirs, stepper = trained_bag(optimizer, sparse)
    ours = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.Optimizer(rule, 0.05))
    changed = ett.import_state(ours, theirs, None if rule == "torch.SGD" else stepper)
    assert changed[0] == "weight" and len(changed) == {"torch.SparseAdam": 3, "torch.Adagrad": 2, "torch.SGD": 1}[rule]
    for step in range(3, 6):
        ours(ids_of(step)).square().sum().backward()
        steps_of_torch(theirs, stepper, step)
    torch.testing.assert_close(ours.read_rows(torch.arange(ROWS)), theirs.weight.detach(), rtol=1e-5, atol=1e-6)


def test_weights_of_several_modules_and_of_a_state_dict():
    theirs = {"users": torch.nn.Embedding(ROWS, DIM), "films": torch.nn.EmbeddingBag(7, 3)}
    ours = make(et.SGD(0.1))
    ett.import_state(ours, theirs)
    assert torch.equal(ours.read_rows(torch.arange(7), "films"), theirs["films"].weight)
    named = {f"model.sparse.embedding_bags.{name}.weight": torch.full(shape, value)
             for name, shape, value in [("users", (ROWS, DIM), 1.0), ("films", (7, 3), 2.0)]}
    ett.import_state(ours, named)
    assert torch.equal(ours.read_rows(torch.arange(7), "films"), torch.full((7, 3), 2.0))


def test_torchrecs_fused_state():
    """Keys as torchrec's sharded collections have them."""
    weights = {f"embedding_bags.{name}.weight": torch.randn(shape) for name, shape in [("users", (ROWS, DIM)), ("films", (7, 3))]}
    fused = {"state": {"embedding_bags.users.weight": {"users.momentum1": torch.rand(ROWS)},
                       "embedding_bags.films.weight": {"films.momentum1": torch.rand(7)}}}
    ours = make(et.Optimizer("fbgemm.rowwise_adagrad", 0.1))
    assert ett.import_state(ours, weights, fused) == ["films", "films/accumulators", "users", "users/accumulators"]
    assert np.array_equal(ours.engine.read_rows("users/accumulators", range(ROWS)),
                          fused["state"]["embedding_bags.users.weight"]["users.momentum1"].numpy())
    adam = make(et.Optimizer("fbgemm.adam", 0.1))
    fused = {"state": {f"embedding_bags.{name}.weight": {f"{name}.exp_avg": torch.randn(shape), f"{name}.exp_avg_sq": torch.rand(shape),
                                                         f"{name}.iter": torch.tensor([9])}
                       for name, shape in [("users", (ROWS, DIM)), ("films", (7, 3))]}}
    ett.import_state(adam, weights, fused)
    assert adam.engine.step == 9


def test_imports_that_do_not_fit_change_nothing():
    theirs, stepper = trained_bag(lambda p: torch.optim.Adagrad(p, 0.05), True)
    adam = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.Optimizer("torch.SparseAdam", 0.05))
    before = adam.engine.digest()
    cases = [(lambda: ett.import_state(adam, theirs, stepper), "needs the slot 'momenta', and the optimizer has"),
             (lambda: ett.import_state(adam, torch.nn.EmbeddingBag(3, DIM)), r"'weight' must have shape \(12, 4\), got \(3, 4\)"),
             (lambda: ett.import_state(adam, theirs, torch.optim.SparseAdam([torch.zeros(1)])), "has no state of table 'weight'"),
             (lambda: ett.import_state(make(), {"users": torch.zeros(ROWS, DIM)}), r"weights lack the tables \['films'\]"),
             (lambda: ett.import_state(make(), {}), "weights have no table of this module")]
    momentum = trained_bag(lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), False)
    plain = ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.SGD(0.05))
    cases.append((lambda: ett.import_state(plain, *momentum), r"has no slot for \['momentum_buffer'\] of the optimizer"))
    for call, text in cases:
        with pytest.raises(ValueError, match=text):
            call()
    assert adam.engine.digest() == before
    assert ett.import_state(plain, *trained_bag(lambda p: torch.optim.SGD(p, 0.05), True)) == ["weight"]


@pytest.mark.parametrize("convert", [lambda rows: rows.numpy(), lambda rows: rows.tolist(), lambda rows: rows.double(),
                                     lambda rows: rows.bfloat16(), lambda rows: rows.half(), lambda rows: rows.to_sparse()])
def test_arrays_and_tensors_of_any_real_type_are_imported(convert):
    rows = torch.arange(ROWS * DIM).reshape(ROWS, DIM) / 4
    ours = ett.EmbeddingBag(ROWS, DIM, optimizer=et.Adagrad(0.1), seed=1)
    assert ett.import_state(ours, {"weight": convert(rows)}, {"weight": {"sum": convert(rows + 1), "step": torch.tensor(5.0)}}) == [
        "weight", "weight/accumulators"]
    assert torch.equal(ours.read_rows(range(ROWS)), rows) and ours.engine.step == 5
    assert np.array_equal(ours.engine.read_rows("weight/accumulators", range(ROWS)), rows + 1)


def test_an_array_alone_is_the_rows_of_the_only_table():
    ours = ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(0.1), seed=1)
    ett.import_state(ours, np.ones((ROWS, DIM)))
    assert (ours.read_rows(range(ROWS)) == 1).all()


WEIGHT = torch.ones(ROWS, DIM)


@pytest.mark.parametrize("weights, optimizer, kind, text", [
    ({"weight": 3}, None, ValueError, r"'weight' must have shape \(12, 4\), got \(\)"),
    ({"weight": "a"}, None, TypeError, "'weight' must be real numbers, got <U1"),
    ({"weight": WEIGHT.to("meta")}, None, TypeError, "'weight' must be a plain tensor, got one without values"),
    ({"weight": WEIGHT * 1j}, None, TypeError, "'weight' must be real numbers, got complex64"),
    ({"weight": torch.nn.ReLU()}, None, TypeError, r"weights\['weight'\] must be a module with a weight, a tensor or an array, got ReLU"),
    ({3: WEIGHT}, None, ValueError, "weights have no table of this module"),
    (3, None, TypeError, "weights must be a module, a tensor, an array, a dict or a state_dict, got int"),
    (WEIGHT, 3, TypeError, r"optimizer must have state_dict\(\), got int"), (WEIGHT, "adagrad", TypeError, r"optimizer must have state_dict\(\), got str"),
    (WEIGHT, {"state": 3}, TypeError, "the state of the optimizer must be a dict, got int"),
    (WEIGHT, {"weight": {"sum": "a"}}, TypeError, "'weight/accumulators' must be real numbers, got <U1"),
    (WEIGHT, {"weight": {"sum": WEIGHT.to("meta")}}, TypeError, "'weight/accumulators' must be a plain tensor"),
    (WEIGHT, {"weight": {3: WEIGHT}}, ValueError, r"needs the slot 'accumulators', and the optimizer has \['3'\]"),
    *[(WEIGHT, {"weight": {"sum": WEIGHT, "step": step}}, ValueError, "the optimizer's step of table 'weight' must be a whole number from 0 to 2\\^62, got")
      for step in ("a", "1e3", None, float("nan"), float("inf"), -1, 1.5, 1 << 70, (1 << 62) + 1, torch.tensor((1 << 62) + 1), 10**400, 10**5000,
                   torch.tensor([1, 2]), torch.tensor(1j), torch.tensor(1, device="meta"))],
])
def test_imports_of_the_wrong_kind_change_nothing(weights, optimizer, kind, text):
    ours = ett.EmbeddingBag(ROWS, DIM, optimizer=et.Adagrad(0.1), seed=1)
    before = ours.engine.digest(), ours.engine.step
    with pytest.raises(kind, match=f"EmbeddingBag: .*{text}"):
        ett.import_state(ours, weights, optimizer)
    assert (ours.engine.digest(), ours.engine.step) == before


@pytest.mark.parametrize("module", [3, None, torch.nn.Linear(1, 1), ett.EmbeddingBag])
def test_only_modules_of_tables_import(module):
    with pytest.raises(TypeError, match="import_state: module must be a module of embertable.torch, got"):
        ett.import_state(module, {"weight": WEIGHT})


def test_the_state_of_a_table_whose_name_ends_that_of_another():
    weights = {"other_users.weight": torch.zeros(ROWS, DIM), "m.users.weight": torch.ones(ROWS, DIM),
               "films.weight": torch.ones(7, 3)}
    fused = {name: {"sum": torch.full(rows.shape, float(number))} for number, (name, rows) in enumerate(weights.items())}
    fused["m.tables.users.weight"] = fused.pop("m.users.weight")
    ours = make(et.Adagrad(0.1))
    ett.import_state(ours, weights, fused)
    assert (ours.read_rows(range(ROWS), "users") == 1).all() and (ours.engine.read_rows("users/accumulators", range(ROWS)) == 1).all()


# One commit for all


class Training:
    """Two modules of tables, dropout, two random generators, a scheduler, and a position."""

    def __init__(self, seed=1, rule="adagrad"):
        torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)
        tables = train(make(et.Optimizer(rule, 0.1), seed), 0)
        self.model = torch.nn.ModuleDict({"tables": tables, "bag": ett.EmbeddingBag(ROWS, 2, optimizer=et.Optimizer("adamw", 0.1), seed=seed),
                                          "head": torch.nn.Linear(DIM + 3 + 2, 1), "dropout": torch.nn.Dropout(0.5)})
        self.optimizer = torch.optim.Adam(self.model.parameters(), 0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.model["tables"].optimizer.follow(self.scheduler)
        self.position = 0

    def step(self):
        ids = torch.randint(7, (4, 2)) + random.randrange(2) + int(np.random.randint(2)) - 2
        ids = ids.clamp(0, 6)
        rows = self.model["tables"]({"user": ids, "film": ids})
        found = torch.cat([*rows.values(), self.model["bag"](ids)], 1)
        loss = self.model["head"](self.model["dropout"](found)).square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.position += 1
        return loss.item()

    def save(self, run, **options):
        ett.save(self.model, None, run, optimizer=self.optimizer, scheduler=self.scheduler, position={"batch": self.position}, **options)

    def load(self, run):
        found = ett.load(self.model, None, run, optimizer=self.optimizer, scheduler=self.scheduler)
        self.position = found.position["batch"]
        return found

    def digests(self):
        dense = torch.cat([value.flatten() for value in self.model["head"].parameters()]).detach().numpy().tobytes().hex()
        return [self.model["tables"].engine.digest(), self.model["bag"].engine.digest(), dense]


def test_a_training_goes_on_to_the_same_bits(tmp_path):
    first = Training()
    for _ in range(3):
        first.step()
    first.save(tmp_path / "run")
    expected = [first.step() for _ in range(4)]
    other = Training(seed=2)
    other.step()
    found = other.load(tmp_path / "run")
    assert (found.step, found.position) == (3, {"batch": 3})
    assert other.model["tables"].optimizer.learning_rate == pytest.approx(0.05)
    assert [other.step() for _ in range(4)] == expected
    assert other.digests() == first.digests()


def change_training(tables, run, change):
    """Saves the training of a run's only step again, changed. The tables are as they were saved."""
    step, = run.glob("step_*")
    blob = torch.load(io.BytesIO(et.read_saved_state(step).caller.blobs["embertable.torch"]), weights_only=True)
    change(blob)
    written = io.BytesIO()
    torch.save(blob, written)
    step.rename(run.parent / "before")
    tables.engine.save(run, et.CallerState(blobs={"embertable.torch": written.getvalue()}))


@pytest.fixture
def numpys_generator():
    before = np.random.get_bit_generator()
    yield
    np.random.set_bit_generator(before)


BIT_GENERATORS = [np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64]


@pytest.mark.skipif(not hasattr(np.random, "set_bit_generator"), reason="NumPy's generator can be another one since 1.24")
@pytest.mark.parametrize("other", [np.random.MT19937, np.random.Philox])
@pytest.mark.parametrize("kind", BIT_GENERATORS)
def test_any_random_generator_of_numpy_goes_on(tmp_path, numpys_generator, kind, other):
    model = torch.nn.Sequential(make(et.SGD(0.1)))
    np.random.set_bit_generator(kind(1))
    np.random.normal(), np.random.randint(7, dtype=np.int32)  # half of a pair each
    ett.save(model, None, tmp_path / "run")
    draw = lambda: (np.random.normal(), np.random.randint(1 << 30, size=3, dtype=np.int32).tolist(), np.random.random())
    expected = draw()
    np.random.set_bit_generator(other(2))
    ett.load(model, None, tmp_path / "run")
    assert draw() == expected and type(np.random.get_bit_generator()) is kind


def test_the_random_generator_of_older_files_goes_on(tmp_path):
    model = torch.nn.Sequential(make(et.SGD(0.1)))
    np.random.seed(1)
    np.random.normal()
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    ett.save(model, None, tmp_path / "run")
    older = [torch.from_numpy(keys.astype(np.int64)), place, has_gauss, gauss]
    change_training(model[0], tmp_path / "run", lambda blob: blob["ranks"][0]["random"].update(numpy=older))
    expected = np.random.normal(), np.random.random()
    ett.load(model, None, tmp_path / "run")
    assert (np.random.normal(), np.random.random()) == expected


def test_a_random_generator_that_is_not_here_is_refused(tmp_path):
    model = torch.nn.Sequential(make(et.SGD(0.1)))
    ett.save(model, None, tmp_path / "run")
    change_training(model[0], tmp_path / "run", lambda blob: blob["ranks"][0]["random"]["numpy"].update(bit_generator="Xoshiro"))
    before = train(model[0]).engine.digest()
    with pytest.raises(ValueError, match="NumPy's random generator was Xoshiro when the training was saved, and is MT19937"):
        ett.load(model, None, tmp_path / "run")
    assert model[0].engine.digest() == before
    ett.load(model, None, tmp_path / "run", random_state=False)
    assert model[0].engine.digest() != before


def test_only_the_newest_steps_stay(tmp_path):
    training = Training()
    for _ in range(4):
        training.step()
        training.save(tmp_path / "run", keep=2)
    assert len(list((tmp_path / "run" / "others").iterdir())) == 2
    assert steps_in(tmp_path / "run") == [3, 4]


def steps_in(run):
    with et.CheckpointRun(run) as opened:
        return opened.steps()


def test_loads_that_do_not_fit_change_nothing(tmp_path):
    training, other = Training(), Training(seed=2)
    training.step()
    training.save(tmp_path / "run")
    before = other.digests()
    model, optimizer, scheduler = other.model, other.optimizer, other.scheduler
    wider = torch.nn.ModuleDict(dict(model.items(), head=torch.nn.Linear(3, 1)))
    cases = [(lambda: ett.load(model, None, tmp_path / "run"), "optimizer: saved were .*, given are none"),
             (lambda: ett.load(model, None, tmp_path / "run", optimizer=optimizer), "scheduler: saved were"),
             (lambda: ett.load(model, None, tmp_path / "run", optimizer=optimizer, scheduler=scheduler,
                               scaler=torch.amp.GradScaler("cpu")), "saved without a scaler: give none"),
             (lambda: ett.load(wider, None, tmp_path / "run", optimizer=optimizer, scheduler=scheduler), "the model is not the one"),
             (lambda: ett.load(torch.nn.Linear(1, 1), None, tmp_path / "run"), "the model has no tables"),
             (lambda: ett.save(model, model["tables"], tmp_path / "run"), "the model has tables that engine does not name")]
    for call, text in cases:
        with pytest.raises(ValueError, match=text):
            call()
    model["tables"].engine.save(tmp_path / "tables")
    with pytest.raises(ValueError, match="has no training of torch: embertable.torch.save writes it"):
        other.load(tmp_path / "tables")
    assert other.digests() == before


def saved_training(run):
    training = Training()
    training.step()
    training.save(run)
    return training


@pytest.mark.parametrize("call, text", [
    (lambda training, run: ett.save(3, None, run), "save: module must be a torch.nn.Module, got int"),
    (lambda training, run: ett.load(3, None, run), "load: module must be a torch.nn.Module, got int"),
    *[(lambda training, run, engine=engine: ett.save(training.model, engine, run),
       f"save: engine must be a module of embertable.torch or a list of them, got {type(engine).__name__}") for engine in ("ab", 3, {"t": 1})],
    (lambda training, run: ett.save(training.model, [3], run), "save: engine must be a module of embertable.torch or a list of them, got int"),
    (lambda training, run: ett.save(training.model, None, 3), "save: directory must be a path, got int"),
    (lambda training, run: ett.load(training.model, None, None), "load: directory must be a path, got None"),
    (lambda training, run: training.save(run, keep="2"), "save: keep must be an integer, got '2'"),
    (lambda training, run: training.save(run, keep=float("nan")), "save: keep must be an integer, got nan"),
    (lambda training, run: ett.save(training.model, None, run, optimizer=3), r"save: optimizer must have state_dict\(\), got int"),
    (lambda training, run: ett.save(training.model, None, run, scheduler=[None]), r"save: scheduler must have state_dict\(\), got None"),
    (lambda training, run: ett.save(training.model, None, run, scaler="a"), r"save: scaler must have state_dict\(\), got str"),
    (lambda training, run: ett.load(training.model, None, run, optimizer="a"), r"load: optimizer must have state_dict\(\), got str"),
])
def test_arguments_of_saves_and_loads(tmp_path, call, text):
    with pytest.raises(TypeError, match=text):
        call(Training(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_optimizer_does_not_take_the_state_of_a_scheduler(tmp_path):
    training = saved_training(tmp_path / "run")
    before = training.digests(), str(training.scheduler.state_dict())
    for optimizer, scheduler, text in [
            (training.scheduler, training.scheduler, "optimizer: the one that was saved has groups of parameters, which StepLR has not"),
            (training.optimizer, training.optimizer, "scheduler: the one that was saved has no groups of parameters, which Adam has")]:
        with pytest.raises(ValueError, match=text):
            ett.load(training.model, None, tmp_path / "run", optimizer=optimizer, scheduler=scheduler)
    assert (training.digests(), str(training.scheduler.state_dict())) == before


class OwnScheduler:
    """One whose state is what it counts."""

    def __init__(self, state):
        self.state = state
        self.param_groups = [3]

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


@pytest.mark.parametrize("state", [3, [1, 2], (1, 2), None, "a", {"param_groups": [3, 4]}, {"param_groups": [{"lr": 1.0}]}])
def test_the_state_of_a_scheduler_may_be_anything(tmp_path, state):
    training = Training()
    training.step()
    ett.save(training.model, None, tmp_path / "run", scheduler=OwnScheduler(state))
    other = OwnScheduler("other")
    ett.load(training.model, None, tmp_path / "run", scheduler=other)
    assert other.state == state and type(other.state) is type(state)
    ett.save(training.model, None, tmp_path / "other", optimizer=OwnScheduler(state))
    if not isinstance(state, dict):
        with pytest.raises(ValueError, match="optimizer: the one that was saved has no groups of parameters, which Adam has"):
            ett.load(training.model, None, tmp_path / "other", optimizer=training.optimizer)


def test_saves_while_tables_are_frozen(tmp_path):
    """The tables' own step, by which adamw corrects its means, goes on where it was."""
    training, run = Training(rule="adamw"), tmp_path / "run"
    tables = training.model["tables"]
    training.step()
    training.save(run)
    tables.eval()
    for saved in ([1, 2], [2, 3]):
        training.step()
        training.save(run)
        assert steps_in(run) == saved and tables.engine.step == 1
    tables.train()
    expected = [training.step() for _ in range(2)]
    other = Training(seed=2, rule="adamw")
    assert other.load(run).step == 3 and other.model["tables"].engine.step == 1 and other.position == 3
    assert [other.step() for _ in range(2)] == expected and other.digests() == training.digests()
    training.save(run)
    assert steps_in(run) == [3, 4] and other.load(run).step == 4 and other.model["tables"].engine.step == 3


def test_a_training_that_went_back_is_the_last_one_saved(tmp_path):
    training = Training()
    for _ in range(3):
        training.step()
        training.save(tmp_path / "run", keep=0)
    training.load(tmp_path / "run" / "step_000000000001")
    training.step()
    training.save(tmp_path / "run", keep=1)
    other = Training(seed=2)
    assert other.load(tmp_path / "run").step == 4 and other.model["tables"].engine.step == other.position == 2
    assert other.digests() == training.digests()


def test_a_save_without_a_step_in_between_destroys_nothing(tmp_path):
    """The second module has changed since, so that its tables are not those of the first save."""
    training = saved_training(tmp_path / "run")
    digests = training.digests()
    training.model["bag"](torch.tensor([[1]])).sum().backward()
    training.save(tmp_path / "run")
    other = Training(seed=2)
    for step, expected in [(1, digests), (2, training.digests())]:
        other.load(tmp_path / "run" / f"step_{step:012d}")
        assert other.digests() == expected


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("killed", [False, True])
def test_a_save_that_ends_between_two_modules_leaves_the_steps_before(tmp_path, monkeypatch, killed):
    from embertable.torch import checkpoint
    training = saved_training(tmp_path / "run")
    digests = training.digests()
    training.step()

    def interrupt(*_, **__):
        raise Interrupted

    monkeypatch.setattr(checkpoint, "CallerState", interrupt)
    if killed:  # nothing is cleared away
        monkeypatch.setattr(checkpoint.shutil, "rmtree", lambda *_, **__: None)
    with pytest.raises(Interrupted):
        training.save(tmp_path / "run")
    monkeypatch.undo()
    assert len(list((tmp_path / "run" / "others").iterdir())) == (2 if killed else 1)
    other = Training(seed=2)
    other.load(tmp_path / "run")
    assert other.digests() == digests
    training.save(tmp_path / "run")  # the same step, for the first time; the stray is removed
    assert len(list((tmp_path / "run" / "others").iterdir())) == 2
    other.load(tmp_path / "run")
    assert other.digests() == training.digests()


def test_gradients_that_wait_are_not_saved(tmp_path):
    training = Training()
    training.model["bag"].optimizer.step_with(training.optimizer)
    training.step()
    training.model["bag"](torch.tensor([[1]])).sum().backward()
    with pytest.raises(RuntimeError, match=r"EmbeddingBag: gradients wait for the optimizer's step, and would be lost: save after"):
        training.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_numbers_of_numpy_are_saved_and_what_cannot_be_read_is_refused(tmp_path):
    training = Training()
    training.step()
    training.optimizer.param_groups[0]["lr"] = np.float64(0.25)
    for position, kind in [(datetime.date(2020, 1, 1), "datetime.date"), ([np.zeros(1)], "numpy"), ({"a": lambda: 1}, "lambda|pickle")]:
        with pytest.raises(ValueError, match=rf"position: has what torch.load\(weights_only=True\) does not read, .*{kind}"):
            ett.save(training.model, None, tmp_path / "run", optimizer=training.optimizer, position=position)
    assert not (tmp_path / "run").exists()
    ett.save(training.model, None, tmp_path / "run", optimizer=training.optimizer, position=[np.int64(7), np.float32(0.5)])
    other = Training(seed=2)
    assert ett.load(other.model, None, tmp_path / "run", optimizer=other.optimizer).position == [7, 0.5]
    assert other.optimizer.param_groups[0]["lr"] == 0.25


def test_a_load_that_fails_late_changes_nothing(tmp_path):
    training = saved_training(tmp_path / "run")
    other = Training(seed=2)
    other.step()

    def state():
        return json.dumps([other.digests(), str(other.optimizer.state_dict()), str(other.scheduler.state_dict())])

    before = state()
    load = lambda optimizer=other.optimizer, model=other.model, scheduler=other.scheduler: ett.load(
        model, None, tmp_path / "run", optimizer=optimizer, scheduler=scheduler)
    groups = torch.optim.Adam([{"params": list(other.model["head"].parameters())}, {"params": [torch.nn.Parameter(torch.zeros(1))]}])
    with pytest.raises(ValueError, match=r"optimizer: the one that was saved has groups of \[2\] parameters, the one given has \[2, 1\]"):
        load(groups)
    wider = torch.nn.ModuleDict(dict(other.model.items(), bag=ett.EmbeddingBag(ROWS + 1, 2, optimizer=et.Optimizer("adamw", 0.1))))
    with pytest.raises(ValueError, match="table 'weight' is 12 x 2 in the state_dict and 13 x 2 here"):
        load(model=wider)

    class Refusing:
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            if state:
                raise KeyError("no")

    with pytest.raises(KeyError):
        load(scheduler=Refusing())
    assert state() == before
    for place in [next((tmp_path / "run" / "others").iterdir()), next((tmp_path / "run").glob("step_*"))]:
        file = max((one for one in place.rglob("*") if one.is_file() and one.suffix == ".safetensors"), key=lambda one: one.stat().st_size)
        whole = file.read_bytes()
        file.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
        with pytest.raises((ValueError, RuntimeError, OSError)):
            load()
        file.write_bytes(whole)
        assert state() == before
    load()
    assert other.digests() == training.digests()


def test_tables_outside_of_the_model_that_do_not_fit_change_nothing(tmp_path):
    def training(rows=ROWS, optimizer=et.SGD(0.1), seed=1):
        inner = torch.nn.ModuleDict({"tables": train(make(seed=seed)), "head": torch.nn.Linear(2, 1)})
        return inner, ett.EmbeddingBag(rows, 2, optimizer=optimizer, seed=seed)

    model, outer = training()
    ett.save(model, [model["tables"], outer], tmp_path)
    for other, text in [(training(ROWS + 1, seed=2), r"table 'weight' is 12 x 2 in the state_dict and 13 x 2 here"),
                        (training(optimizer=et.Adagrad(0.1), seed=2), "has the optimizer 'sgd' in the state_dict and 'adagrad' here")]:
        digests = [one.engine.digest() for one in (other[0]["tables"], other[1])]
        with pytest.raises(ValueError, match=text):
            ett.load(other[0], [other[0]["tables"], other[1]], tmp_path)
        assert [one.engine.digest() for one in (other[0]["tables"], other[1])] == digests
    rule = lambda row_wise: et.Optimizer.custom(lambda tile: None, slots={"m": 0.0}, row_wise=row_wise)
    model, outer = training(optimizer=rule(["m"]))
    ett.save(model, [model["tables"], outer], tmp_path)
    other, beside = training(optimizer=rule([]), seed=2)
    before = other["tables"].engine.digest()
    with pytest.raises(ValueError, match=r"slot 'm' of table 'weight' has one number a row there alone: make the module with the rule"):
        ett.load(other, [other["tables"], beside], tmp_path)
    assert other["tables"].engine.digest() == before
    other, beside = training(optimizer=rule(["m"]), seed=2)
    ett.load(other, [other["tables"], beside], tmp_path)
    assert beside.engine.digest() == outer.engine.digest() and other["tables"].engine.digest() == model["tables"].engine.digest()


@pytest.mark.parametrize("change, text", [
    (lambda blob: blob.update(format=2), "has a training of format 2, this version reads 1"),
    (lambda blob: blob.pop("format"), None)])
def test_trainings_of_other_formats(tmp_path, change, text):
    training = saved_training(tmp_path / "run")
    change_training(training.model["tables"], tmp_path / "run", change)
    other = Training(seed=2)
    if text is None:
        other.load(tmp_path / "run")
        assert other.digests() == training.digests()
    else:
        with pytest.raises(ValueError, match=text):
            other.load(tmp_path / "run")


def test_a_damaged_table_changes_nothing(tmp_path):
    ours = torch.nn.ModuleDict({"tables": train(make()), "head": torch.nn.Linear(2, 1)})
    ett.save(ours, None, tmp_path)
    other = torch.nn.ModuleDict({"tables": make(seed=2), "head": torch.nn.Linear(2, 1)})
    before, dense = other["tables"].engine.digest(), other["head"].weight.clone()
    file = max(next(tmp_path.glob("step_*")).rglob("*.safetensors"), key=lambda one: one.stat().st_size)
    whole = file.read_bytes()
    file.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    with pytest.raises((ValueError, RuntimeError, OSError)):
        ett.load(other, None, tmp_path)
    assert other["tables"].engine.digest() == before and torch.equal(other["head"].weight, dense)


def test_a_newest_step_that_cannot_be_opened_is_skipped_with_a_warning(tmp_path):
    ours = torch.nn.ModuleDict({"tables": train(make()), "head": torch.nn.Linear(2, 1)})
    first = ett.save(ours, None, tmp_path)
    before = ours["tables"].engine.digest()
    train(ours["tables"])
    second = pathlib.Path(ett.save(ours, None, tmp_path))
    other = torch.nn.ModuleDict({"tables": make(seed=2), "head": torch.nn.Linear(2, 1)})
    assert ett.load(other, None, tmp_path).directory == os.fspath(second)
    (second / "manifest.json").write_bytes(b"{")
    with pytest.warns(UserWarning, match=f"'{second}' cannot be opened; '{first}' is loaded"):
        assert ett.load(other, None, tmp_path).directory == first
    assert other["tables"].engine.digest() == before
    ett.load(other, None, first)  # asked for: no warning


KILLS = 5
CHILD = """
import sys; sys.path.insert(0, {folder!r})
import pathlib
from test_state import Training
run, last = pathlib.Path(sys.argv[1]), int(sys.argv[2])
training = Training()
if run.exists() and any(run.glob("step_*")):
    training.load(run)
print("ready", training.position, flush=True)
while training.position < last:
    training.step()
    training.save(run)
    print(training.position, flush=True)
import json; print(json.dumps(training.digests()), flush=True)
"""


def test_killed_at_any_moment_training_goes_on_to_the_same_tables(tmp_path):
    """A run of saves after every step, killed at random moments and started anew, ends as one that was not killed."""
    last = 16
    expected = Training()
    for _ in range(last):
        expected.step()
    draw = random.Random(5)
    code = CHILD.format(folder=str(pathlib.Path(__file__).parent))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), OMP_NUM_THREADS=str(torch.get_num_threads()))
    positions = []
    for kill in range(KILLS + 1):
        child = subprocess.Popen([sys.executable, "-c", code, tmp_path / "run", str(last)], stdout=subprocess.PIPE, text=True,
                                 env=environment)
        line = child.stdout.readline().split()
        assert line and line[0] == "ready", line
        positions.append(int(line[1]))
        if kill == KILLS:
            break
        for _ in range(2):
            child.stdout.readline()
        time.sleep(draw.random() * 0.05)
        child.kill()
        child.stdout.read()
        child.wait()
    out = child.stdout.read()
    assert json.loads(out.splitlines()[-1]) == expected.digests()
    assert positions == sorted(positions)


def two_tables(seed):
    return torch.nn.ModuleDict({"a": make(seed=seed), "b": make(seed=seed + 1), "head": torch.nn.Linear(2, 1)})


def test_tables_of_another_module_that_cannot_be_read_are_skipped_too(tmp_path):
    ours = two_tables(1)
    first = ett.save(ours, None, tmp_path)
    before = [ours[name].engine.digest() for name in "ab"]
    train(ours["a"])
    train(ours["b"])
    second = pathlib.Path(ett.save(ours, None, tmp_path))
    other = two_tables(5)
    assert ett.load(other, None, tmp_path).directory == os.fspath(second)
    damaged = next((tmp_path / "others").glob(f"{second.name[5:]}-*"))
    next(damaged.rglob("manifest.json")).unlink()
    with pytest.warns(UserWarning, match=f"'{second}' cannot be opened; '{first}' is loaded"):
        assert ett.load(other, None, tmp_path).directory == first
    assert [other[name].engine.digest() for name in "ab"] == before
    with pytest.raises(OSError):
        ett.load(other, None, second)  # asked for


def test_ctrl_c_in_a_load_comes_when_all_is_put_back(tmp_path, monkeypatch):
    ours = two_tables(1)
    ett.save(ours, None, tmp_path)
    other = two_tables(5)
    restore = type(other["b"].engine).restore

    def interrupted(engine, *arguments):
        if engine is other["a"].engine:
            os.kill(os.getpid(), signal.SIGINT)
        return restore(engine, *arguments)

    monkeypatch.setattr(type(other["b"].engine), "restore", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            ett.load(other, None, tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [other[name].engine.digest() for name in "ab"] == [ours[name].engine.digest() for name in "ab"]
    assert torch.equal(other["head"].weight, ours["head"].weight)


def test_a_load_that_fails_half_way_says_what_to_do(tmp_path, monkeypatch):
    ours = two_tables(1)
    ett.save(ours, None, tmp_path)
    other = two_tables(5)
    dense, restore = other["head"].weight.clone(), type(other["b"].engine).restore

    def failing(engine, place):
        if "others" in os.fspath(place):
            raise OSError("the disk is gone")
        return restore(engine, place)

    monkeypatch.setattr(type(other["b"].engine), "restore", failing)
    with pytest.raises(RuntimeError, match="are those of '.*step_.*' already, and the rest is as it was.*: load again"):
        ett.load(other, None, tmp_path)
    assert torch.equal(other["head"].weight, dense)


def test_a_rate_that_was_set_after_follow_stays_set(tmp_path):
    def made():
        model = torch.nn.ModuleDict({"tables": make(), "head": torch.nn.Linear(2, 1)})
        optimizer = torch.optim.SGD(model["head"].parameters(), 1.0)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        model["tables"].optimizer.follow(scheduler)
        return model, optimizer, scheduler

    model, optimizer, scheduler = made()
    optimizer.step()
    scheduler.step()
    for rate in (None, 3.0):
        if rate is not None:
            model["tables"].optimizer.learning_rate = rate
        expected = model["tables"].optimizer.learning_rate
        ett.save(model, None, tmp_path / f"run{rate}", optimizer=optimizer, scheduler=scheduler)
        again, other, schedule = made()
        ett.load(again, None, tmp_path / f"run{rate}", optimizer=other, scheduler=schedule)
        assert again["tables"].optimizer.learning_rate == expected
        other.step()
        schedule.step()
        assert again["tables"].optimizer.learning_rate == (expected / 2 if rate is None else rate)


def test_sparse_buffers_are_saved(tmp_path):
    def made(seed):
        model = torch.nn.ModuleDict({"tables": make(seed=seed), "graph": torch.nn.Linear(2, 1)})
        model["graph"].register_buffer("adjacent", torch.eye(3).to_sparse())
        return model

    ours, other = made(1), made(2)
    ett.save(ours, None, tmp_path, position={"at": torch.eye(2).to_sparse()})
    loaded = ett.load(other, None, tmp_path)
    assert torch.equal(loaded.position["at"].to_dense(), torch.eye(2))
    assert torch.equal(other["graph"].adjacent.to_dense(), torch.eye(3))
