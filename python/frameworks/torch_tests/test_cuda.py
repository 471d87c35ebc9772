"""Modules whose dense part is on a CUDA device, beside the same on the CPU: the tables get the same bits."""

import numpy as np
import pytest
import torch

import embertable as et
import embertable.torch as ett
from stand_ins import KeyedJaggedTensor

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

ROWS, DIM = 1000, 16
BUSY = 2_000_000  # cycles, a millisecond


def collection(**options):
    return ett.EmbeddingBagCollection(
        [ett.EmbeddingBagConfig(ROWS, DIM, "users", ["user"]), ett.EmbeddingBagConfig(ROWS, 2 * DIM, "films", ["film", "seen"], "mean")],
        et.Adagrad(0.1), seed=3, **options)


def bag(**options):
    return ett.EmbeddingBag(ROWS, DIM, mode="sum", optimizer=et.SGD(1.0), seed=1, **options)


def batch(step, samples=None):
    """Bags of 0 to 4 ids, with weights for one feature."""
    draw = np.random.default_rng(step)
    found = {}
    for name in ("user", "film", "seen"):
        lengths = draw.integers(5, size=samples or 50 + 37 * (step % 5))
        ids = torch.from_numpy(draw.integers(ROWS, size=lengths.sum()))
        offsets = torch.from_numpy(np.cumsum(lengths) - lengths)
        found[name] = (ids, offsets, torch.from_numpy(draw.random(len(ids), np.float32))) if name == "seen" else (ids, offsets)
    return found


def on_cuda(inputs):
    return {name: tuple(one.cuda() for one in parts) for name, parts in inputs.items()}


def change(rows, step):
    """A gradient whose operations round alike everywhere."""
    return (rows.detach() * 0.5).sub_(step)


def train(module, steps, inputs=batch, busy=0):
    kept = []
    for step in range(steps):
        found = module(inputs(step))
        kept.append([rows.detach().clone() for rows in found.values()])
        if busy:
            torch.cuda._sleep(busy)
        changes = [change(rows, step) for rows in found.values()]
        torch.autograd.backward(list(found.values()), changes)
        del found, changes  # memory that copies on other streams may still read
        if busy:
            noise = [torch.full((step + 1, 1 << 16), torch.nan, device="cuda") for _ in range(4)]
            del noise
    return kept


@pytest.mark.parametrize("busy", [0, BUSY])
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_steps_have_the_bits_of_the_cpu(where, busy):
    ours, away = collection(), collection().cuda()
    expected = train(ours, 12)
    found = train(away, 12, (lambda step: on_cuda(batch(step))) if where == "cuda" else batch, busy)
    for theirs, mine in zip(expected, found):
        assert all(one.is_cuda and torch.equal(one.cpu(), other) for one, other in zip(mine, theirs))
    assert away.engine.digest() == ours.engine.digest() and away.engine.step == 12


def test_within_a_default_device():
    ours = collection()
    train(ours, 3)
    torch.set_default_device("cuda")
    try:
        away = collection()
        found = train(away, 3, lambda step: on_cuda(batch(step)))
        keyed = ett.EmbeddingBag(ROWS, DIM, optimizer=et.SGD(1.0))
        assert keyed(torch.tensor([[1, 2]])).is_cuda
        state = away.state_dict()
    finally:
        torch.set_default_device(None)
    assert found[0][0].is_cuda and away.engine.digest() == ours.engine.digest()
    other = collection()
    other.load_state_dict(state)
    assert other.engine.digest() == ours.engine.digest()


def test_on_a_stream_of_the_callers():
    ours, away = collection(), collection().cuda()
    train(ours, 4)
    stream = torch.cuda.Stream()
    inputs = [on_cuda(batch(step)) for step in range(4)]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        train(away, 4, inputs.__getitem__, BUSY)
    assert away.engine.digest() == ours.engine.digest()


def test_ids_copied_ahead():
    ours, away = collection(), collection().cuda()
    train(ours, 6)
    inputs = [on_cuda(batch(step)) for step in range(6)]
    away.prefetch(inputs[0])
    for step in range(6):
        assert away._accelerator.ids._copies
        found = away(inputs[step])
        if step < 5:
            away.prefetch(inputs[step + 1])
        torch.autograd.backward(list(found.values()), [change(rows, step) for rows in found.values()])
    assert away.engine.digest() == ours.engine.digest()


def test_keyed_jagged_tensors_and_replicas():
    ids, lengths = torch.arange(40) * 7 % ROWS, torch.tensor([3, 1, 0, 4] * 5)[:12]
    ids = ids[:int(lengths.sum())]
    digests = []
    for where in ("cpu", "cuda"):
        for strategy in (None, et.EngineStrategy(replicas_per_host=2)):
            module = collection(strategy=strategy).to(where)
            for _ in range(3):
                found = module(KeyedJaggedTensor(["film", "seen", "user"], ids.to(where), lengths.to(where)))
                found.values().sum().backward()
            digests.append(module.engine.digest())
    assert digests[:2] == digests[2:]


@pytest.mark.parametrize("options", [{"backend": "aot_eager"}, {}, {"mode": "reduce-overhead"}, {"dynamic": True}])
def test_compiled(options):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = collection()

        def forward(self, inputs, factor):
            return sum((rows * factor).sum() for rows in self.tables(inputs).values())

    plain, model = Model(), Model().cuda()
    compiled = torch.compile(model, fullgraph=True, **options)
    for step in range(5):
        plain(batch(step), torch.tensor(step + 0.5)).backward()
        compiled(on_cuda(batch(step)), torch.tensor(step + 0.5, device="cuda")).backward()
    assert model.tables.engine.digest() == plain.tables.engine.digest() and model.tables.engine.step == 5
    with torch.no_grad():
        inputs, one = batch(9), torch.tensor(1.0)
        torch.testing.assert_close(compiled(on_cuda(inputs), one.cuda()).cpu(), plain(inputs, one), rtol=1e-4, atol=1e-3)
    torch._dynamo.reset()


@pytest.mark.parametrize("fused", [False, True])
def test_a_grad_scaler_skips_steps_of_both(fused):
    ours, plain = bag().cuda(), bag()
    dense = torch.nn.Linear(DIM, 1).cuda()
    with torch.no_grad():
        dense.weight.fill_(0.25)
    optimizer = torch.optim.Adam(dense.parameters(), lr=0.0, fused=fused)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10, growth_interval=1000)
    ours.optimizer.step_with(optimizer, scaler)
    for factor in (1, torch.inf, 2):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = (dense(ours(torch.tensor([[1]], device="cuda"))) * factor).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    for factor in (1, 2):
        plain(torch.tensor([[1]])).backward(torch.full((1, DIM), 0.25 * factor))
    assert ours.engine.step == 2 and ours.optimizer.skipped_steps == 1 and scaler.get_scale() == 2.0**9
    assert ours.engine.digest() == plain.engine.digest()


def test_gradients_add_up_and_other_types():
    ours, plain = bag().cuda(), bag()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device="cuda"))], 0.1)
    ours.optimizer.step_with(optimizer)
    for row in (1, 2):
        ours(torch.tensor([[row]], device="cuda")).sum().backward()
    optimizer.step()
    plain(torch.tensor([[1], [2]])).sum().backward()
    assert ours.engine.digest() == plain.engine.digest() and ours.engine.step == 1
    half = bag().to("cuda", torch.bfloat16)
    found = half(torch.tensor([[3]], device="cuda"))
    assert found.dtype == torch.bfloat16 and found.is_cuda
    found.sum().backward()
    plain = bag()
    plain(torch.tensor([[3]])).sum().backward()
    assert half.engine.digest() == plain.engine.digest()


def test_activations_are_the_callers():
    """They share memory with each other, and may be changed in place."""
    away = collection().cuda()
    found = away(on_cuda(batch(1)))
    before = [rows.detach().clone() for rows in found.values()]
    first, *others = found.values()
    first.mul_(3)
    assert torch.equal(first, before[0] * 3) and all(torch.equal(one, kept) for one, kept in zip(others, before[1:]))
    (first.sum() + others[0].relu_().sum()).backward()
    assert away.engine.step == 1


def test_moves_while_gradients_are_under_way():
    ours, away = collection(), collection().cuda()
    train(ours, 4)
    train(away, 2, lambda step: on_cuda(batch(step)), BUSY)
    away.cpu()
    assert away._accelerator is None and away._steps.engine.step == 2
    for step in (2, 3):
        found = away(batch(step))
        torch.autograd.backward(list(found.values()), [change(rows, step) for rows in found.values()])
    assert away.engine.digest() == ours.engine.digest()


def test_recomputed_activations():
    ours, away = bag(), bag().cuda()
    for module, where in ((ours, "cpu"), (away, "cuda")):
        for step in range(3):
            ids = torch.tensor([[1, 2], [step, 4]], device=where)
            torch.utils.checkpoint.checkpoint(lambda ids: module(ids) * 2, ids, use_reentrant=False).sum().backward()
    assert away.engine.digest() == ours.engine.digest() and away.engine.step == 3


def test_a_training_is_saved_and_goes_on(tmp_path):
    def make(seed):
        torch.manual_seed(seed)
        model = torch.nn.ModuleDict({"tables": bag(), "dropout": torch.nn.Dropout(0.5), "head": torch.nn.Linear(DIM, 1)}).cuda()
        return model, torch.optim.Adam(model.parameters(), 0.01)

    def step(model, optimizer, number):
        optimizer.zero_grad()
        loss = model["head"](model["dropout"](model["tables"](torch.tensor([[number, 2]], device="cuda")))).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    model, optimizer = make(1)
    for number in range(3):
        step(model, optimizer, number)
    ett.save(model, None, tmp_path / "run", optimizer=optimizer)
    expected = [step(model, optimizer, number) for number in range(3, 6)]
    other, again = make(2)
    ett.load(other, None, tmp_path / "run", optimizer=again)
    assert [step(other, again, number) for number in range(3, 6)] == expected
    assert other["tables"].engine.digest() == model["tables"].engine.digest()


def test_memory_does_not_grow():
    away = collection().cuda()
    used = []
    for step in range(60):
        train(away, 1, lambda _: on_cuda(batch(step)))
        torch.cuda.synchronize()
        used.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
    assert used[-1][0] <= used[20][0] + (1 << 20) and used[-1][1] == used[20][1]


def test_errors_say_what_to_do():
    away, ours = bag().cuda(), bag()
    ids = torch.tensor([[1, 2]])
    with pytest.raises(ValueError, match=r"ids are on 'cuda:0', and the module gives activations on 'cpu': keep ids on the CPU, or move"):
        ours(ids.cuda())
    with pytest.raises(et.DataError, match=str(ROWS)):
        away(torch.tensor([[ROWS]], device="cuda"))
    with pytest.raises(TypeError, match="ids must be int64 or int32, got float32"):
        away(ids.float().cuda())
    with pytest.raises(TypeError, match="must be float32, got bfloat16"):
        away(ids.cuda(), None, torch.ones(1, 2, dtype=torch.bfloat16, device="cuda"))
    found = away(ids.cuda()).sum()
    found.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward came twice"):
        found.backward()
    with pytest.raises(et.DataError, match="nan|inf"):
        (away(ids.cuda()) * torch.nan).sum().backward()
        away.engine
    assert away.engine.step == 1
    torch.testing.assert_close(away.read_rows(torch.tensor([3], device="cuda")), ours.read_rows([3]))


def test_an_engine_takes_pinned_memory_and_names_that_of_the_device():
    engine = et.Embedding(et.FeatureConfig(et.TableConfig(ROWS, DIM, combiner="sum", name="t")), et.SGD(1.0), et.EngineStrategy(), seed=1)
    engine.build()
    ids, rows = torch.tensor([1, 2]).pin_memory(), torch.empty(2, DIM).pin_memory()
    _, token = engine.look_up(ids, out=rows.numpy())
    np.testing.assert_array_equal(rows, engine.read_rows("t", [1, 2]))
    for values, use in [(ids, engine.look_up), (rows, lambda gradients: engine.apply_gradients(gradients, token))]:
        with pytest.raises(ValueError, match=r"must be in host memory, got .*Tensor on CUDA device 0"):
            use(values.cuda())
    engine.apply_gradients(rows, token)
    assert engine.step == 1
