"""Rules that are written in Python."""

import copy
import pickle
import threading

import numpy as np
import pytest

import embertable as et
from fixture import batch, each, engine, loss_gradient, train


def adagrad(tile):
    sums = tile.slots["sums"]
    sums += tile.gradient * tile.gradient
    tile.row -= np.float32(tile.learning_rate) * tile.gradient / np.sqrt(sums)


def one_table(optimizer, rows=100, dim=1, threads=1):
    table = et.TableConfig(rows, dim, et.Initializer.zeros(), combiner="sum", name="t")
    return et.Embedding(et.FeatureConfig(table), optimizer, et.EngineStrategy(threads=threads))


def step(embedding, ids, gradient):
    embedding.enqueue(np.asarray(ids))
    shape = embedding.dequeue().shape
    embedding.apply_gradients(np.broadcast_to(np.float32(gradient), shape).copy())


def test_a_rule_steps_rows_and_slots():
    """w -= rate * (g + m), m = g, with rate 0.5 and scale 2 in the place of m."""
    def rule(tile):
        tile.row -= tile.learning_rate * (tile.gradient + tile.hyperparameters["scale"] * tile.slots["m"])
        tile.slots["m"][...] = tile.gradient

    embedding = one_table(et.Optimizer.custom(rule, 0.5, name="mine", slots={"m": 1.0}, hyperparameters={"scale": 2}))
    step(embedding, [3, 5, 3], [[1.0], [4.0], [2.0]])
    assert embedding.read_rows("t", [3, 5, 4]).tolist() == [[-2.5], [-3.0], [0]]
    assert embedding.read_rows("t/m", [3, 5, 4]).tolist() == [[3], [4], [1]]
    step(embedding, [3, 7, 9], [[1.0], [0.0], [0.0]])
    assert embedding.read_rows("t", [3]).tolist() == [[-2.5 - 0.5 * (1 + 2 * 3)]]
    assert embedding.tables[0].optimizer.startswith("mine(")


def misspelled(tile):
    tile.slots["sumz"] = tile.slots["sums"] + 1


def dropped(tile):
    del tile.slots["sums"]


@pytest.mark.parametrize("rule, error, text", [
    (misspelled, KeyError, "must have the rule's slots, 'sums'; got"),
    (dropped, KeyError, "must have the rule's slots, 'sums'; got"),
    (lambda tile: tile.row - tile.gradient, TypeError, "must write to tile.row and tile.slots, got new rows that it returns"),
    (lambda tile: tile.gradient, TypeError, "must write to tile.row and tile.slots, got new rows that it returns"),
])
def test_a_rule_that_changes_nothing_is_an_error(rule, error, text):
    embedding = one_table(et.Optimizer.custom(rule, 0.5, slots={"sums": 0.5}))
    with pytest.raises(error, match=text):
        step(embedding, [3, 5], [[1.0], [4.0]])


def test_a_rule_may_return_what_it_has_written():
    embedding = one_table(et.Optimizer.custom(lambda tile: np.subtract(tile.row, tile.gradient, out=tile.row), 0.5))
    step(embedding, [3, 5], [[1.0], [4.0]])
    assert embedding.read_rows("t", [3, 5]).tolist() == [[-1.0], [-4.0]]
    both = one_table(et.Optimizer.custom(lambda tile: (np.subtract(tile.row, tile.gradient, out=tile.row), 1.0), 0.5))
    step(both, [3, 5], [[1.0], [4.0]])
    assert both.read_rows("t", [3, 5]).tolist() == [[-1.0], [-4.0]]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dim", [1, 3, 16, 64])
def test_rows_are_those_of_the_librarys_rule(dim, threads):
    """Adagrad by NumPy: the same operations on float32 give the same numbers as the library's, to rounding."""
    custom = et.Optimizer.custom(adagrad, 0.25, slots={"sums": 0.5})
    mine, librarys = (one_table(o, 1000, dim, threads) for o in (custom, et.Adagrad(0.25, initial_accumulator_value=0.5)))
    dice = np.random.default_rng(dim)
    for _ in range(3):
        ids, gradient = dice.integers(0, 1000, 400), dice.normal(size=(400, dim)).astype(np.float32)
        step(mine, ids, gradient)
        step(librarys, ids, gradient)
    for variable, of_library in (("t", "t"), ("t/sums", "t/accumulators")):
        np.testing.assert_allclose(mine.read_rows(variable, np.arange(1000)),
                                   librarys.read_rows(of_library, np.arange(1000)), rtol=2e-6, atol=1e-7)


def test_a_row_does_not_depend_on_how_rows_are_grouped():
    sizes = set()

    def counted(tile):
        sizes.add(len(tile.row))
        adagrad(tile)

    digests = set()
    for threads in (1, 2, 5):
        embedding = one_table(et.Optimizer.custom(counted, 0.5, slots={"sums": 0.1}), 500, 5, threads)
        step(embedding, np.arange(499) * 7 % 500, np.linspace(-1, 1, 499 * 5, dtype=np.float32).reshape(499, 5))
        digests.add(embedding.digest())
    assert len(digests) == 1 and max(sizes) <= 16 and len(sizes) > 1


def test_what_is_put_in_an_arrays_place_is_written():
    def rule(tile):
        tile.slots["n"] = tile.slots["n"] + 1
        tile.row = tile.row - tile.gradient

    embedding = one_table(et.Optimizer.custom(rule, slots={"n": 0}, row_wise=["n"]))
    step(embedding, [1, 2], 2.0)
    assert embedding.read_rows("t", [1, 2]).tolist() == [[-2], [-2]]
    assert embedding.read_rows("t/n", [0, 1, 2]).tolist() == [0, 1, 1]  # row-wise: a number for each row


def test_arrays_that_a_rule_keeps_stay_its_own():
    kept = []

    def rule(tile):
        kept.append(tile.gradient)
        tile.row -= tile.gradient

    embedding = one_table(et.Optimizer.custom(rule))
    step(embedding, [1], 2.0)
    step(embedding, [1], 3.0)
    assert [g.tolist() for g in kept] == [[[2.0]], [[3.0]]]


def test_options_are_those_of_every_optimizer():
    def rule(tile):
        tile.row -= tile.gradient

    embedding = one_table(et.Optimizer.custom(rule, clipvalue=1.0, clip_weight_min=-0.75))
    step(embedding, [1, 2], [[5.0], [-5.0]])
    assert embedding.read_rows("t", [1, 2]).tolist() == [[-0.75], [1.0]]


def test_every_row_may_step():
    def rule(tile):
        tile.row += 1 + tile.gradient

    embedding = one_table(et.Optimizer.custom(rule, steps_every_row=True), rows=40)
    step(embedding, [7], 2.0)
    assert embedding.read_rows("t", [6, 7, 39]).tolist() == [[1], [3], [1]]


def test_the_rate_may_be_a_function_and_steps_are_numbered():
    seen = []

    def rule(tile):
        seen.append((tile.learning_rate, tile.step))

    embedding = one_table(et.Optimizer.custom(rule, lambda step: step / 4))
    step(embedding, [1], 1.0)
    step(embedding, [1], 1.0)
    assert seen == [(0.25, 1), (0.5, 2)]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_a_rule_raises_comes_out_and_a_restore_repairs(tmp_path, threads):
    armed = threading.Event()

    def rule(tile):
        if armed.is_set():
            raise ZeroDivisionError("in the rule")
        tile.row -= tile.gradient

    embedding = one_table(et.Optimizer.custom(rule), 1000, 2, threads)
    step(embedding, np.arange(900), 1.0)
    embedding.save(tmp_path)
    before = embedding.digest()
    armed.set()
    with pytest.raises(ZeroDivisionError, match="in the rule"):
        step(embedding, np.arange(900), 1.0)
    armed.clear()
    with pytest.raises(RuntimeError, match="failed in an earlier step: ZeroDivisionError: in the rule"):
        step(embedding, np.arange(900), 1.0)
    embedding.restore(tmp_path)
    assert embedding.digest() == before
    step(embedding, np.arange(900), 1.0)


@pytest.mark.parametrize("arguments, error, text", [
    ({"function": 3}, TypeError, "function must be callable"),
    ({"slots": {"a/b": 0}}, ValueError, "a/b"),
    ({"slots": {"a": "zero"}}, TypeError, "first value of slot 'a'"),
    ({"slots": ["a"]}, TypeError, "slots must be a dict"),
    ({"row_wise": ["a"]}, ValueError, "row_wise must name slots, got 'a'"),
    ({"hyperparameters": {"x": float("inf")}}, ValueError, "x"),
    ({"name": "adagrad"}, ValueError, "adagrad"),
    ({"name": ""}, ValueError, "name"),
    ({"beta": 3}, TypeError, "no argument 'beta'"),
    ({"learning_rate": -1.0}, ValueError, "learning_rate"),
    ({"slots": {str(i): 0 for i in range(8)}}, ValueError, "7"),
])
def test_misuse_says_what_is_wrong(arguments, error, text):
    with pytest.raises(error, match=text):
        et.Optimizer.custom(**{"function": adagrad, "slots": {"sums": 0.1}, **arguments})


def test_a_wrong_shape_in_a_slots_place():
    def rule(tile):
        tile.slots["sums"] = np.ones((3, 7), np.float32)

    embedding = one_table(et.Optimizer.custom(rule, slots={"sums": 0.1}))
    with pytest.raises(ValueError, match="broadcast"):
        step(embedding, [1], 1.0)


def test_optimizers_are_equal_and_pickle_by_their_arguments():
    one = et.Optimizer.custom(adagrad, 0.5, slots={"sums": 0.1}, clipvalue=2.0)
    assert one == et.Optimizer.custom(adagrad, 0.5, slots={"sums": 0.1}, clipvalue=2.0)
    assert one != et.Optimizer.custom(adagrad, 0.5, slots={"sums": 0.2}, clipvalue=2.0)
    assert one != et.SGD(0.5)
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert again == one and again.rule == "custom" and again.learning_rate == 0.5
    assert pickle.loads(pickle.dumps(et.slots_only(["a"]))).rule == "slots_only"


def test_an_optimizer_with_another_rate_differs_in_that_alone():
    one = et.Optimizer.custom(adagrad, 0.5, name="mine", slots={"sums": 0.1}, clipvalue=2.0)
    other, rate = one.with_learning_rate(0.25), lambda step: 0.5 / step
    assert other == et.Optimizer.custom(adagrad, 0.25, name="mine", slots={"sums": 0.1}, clipvalue=2.0)
    assert one.learning_rate == 0.5 and other.with_learning_rate(0.5) == one
    assert pickle.loads(pickle.dumps(other)) == other and one.with_learning_rate(rate).learning_rate is rate
    mine, plain = one_table(one.with_learning_rate(rate)), one_table(et.Optimizer.custom(adagrad, rate, slots={"sums": 0.1}, clipvalue=2.0))
    for embedding in (mine, plain):
        step(embedding, [1, 2], 3.0), step(embedding, [1, 3], 1.0)
    assert mine.digest() == plain.digest()
    assert pickle.loads(pickle.dumps(et.slots_only(["a"]).with_learning_rate(1))).rule == "slots_only"


def test_one_rule_serves_several_tables_and_engines():
    optimizer = et.Optimizer.custom(adagrad, 0.5, slots={"sums": 0.1})
    one, other = engine(optimizer=optimizer), engine(optimizer=optimizer)
    for embedding in (one, other):
        train(embedding, batch(), loss_gradient(1))
    assert one.digest() == other.digest()
    assert each(one.look_up(batch(), training=False)[0], np.copy)[0].shape == (2, 4)
