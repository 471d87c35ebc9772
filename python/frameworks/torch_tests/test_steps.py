"""Steps of the modules of embertable.torch, beside a loop in NumPy, with optimizers of torch, and with tensors on an accelerator."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from small_modules import DIM, ROWS, bag, collection, rows_of
from stand_ins import JaggedTensor, KeyedJaggedTensor, on_late_accelerator


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
    with pytest.warns(ett.AbandonedStepWarning, match=rf"no backward came for a lookup at test_steps.py:{line};"):
        ours(torch.tensor([[1]])).sum().backward()
    assert ours.abandoned_steps == 1 and ours.engine.step == 1


def test_activations_that_the_loss_does_not_use_count_as_zeros():
    ours = collection()
    before = rows_of(ours, "films")
    ours({"user": torch.tensor([1]), "film": torch.tensor([1])})["user"].sum().backward()
    assert torch.equal(rows_of(ours, "films"), before) and ours.engine.step == 1
    code = """import torch; from small_modules import collection
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
