"""What modules of frameworks share: gradients find their lookups, wait, are dropped; NumPy alone plays the framework."""

import gc
import os
import warnings

import numpy as np
import pytest

import embertable as et
from embertable.steps import AbandonedStepWarning, Ids, Steps, concatenate, cut, splits_of_lengths, splits_of_offsets, without_padding

ROWS, DIM = 10, 2


def make(rate=1.0, replicas=1, **options):
    table = et.TableConfig(ROWS, DIM, et.Initializer.zeros(), combiner="sum", name="t")
    strategy = et.EngineStrategy(replicas_per_host=replicas, threads=1)
    engine = et.Embedding(et.FeatureConfig(table), et.SGD(rate), strategy, variable_batch=True)
    engine.build(1 << 30)
    return Steps(engine, "Table", single=True, replicas=replicas, **options)


def ids(*rows):
    return Ids(np.array([id for row in rows for id in row], np.int64), splits_of_lengths(np.array(list(map(len, rows)))))


def table(steps):
    return steps.engine.read_rows("t", np.arange(ROWS))


def expected(*updates):
    """Rows after subtracting each value from each of these rows."""
    rows = np.zeros((ROWS, DIM), np.float32)
    for row, value in updates:
        rows[row] -= np.float32(value)
    return rows


def gradient(*values):
    return np.repeat(np.array(values, np.float32)[:, None], DIM, axis=1)


def test_gradients_find_their_lookup_in_any_order():
    steps = make()
    _, first = steps.look_up([ids([1, 2], [3])], True)
    _, second = steps.look_up([ids([4])], True)
    steps.give(second, [gradient(8)])
    np.testing.assert_array_equal(table(steps), expected((4, 8)))
    steps.give(first, [gradient(1, 2)])
    np.testing.assert_array_equal(table(steps), expected((4, 8), (1, 1), (2, 1), (3, 2)))
    assert steps.engine.step == 2


def test_a_lookup_that_does_not_train_has_no_step():
    steps = make()
    rows, step = steps.look_up([ids([1], [], [2, 2])], False)
    assert step is None and rows[0].shape == (3, DIM)


def test_gradients_that_come_twice_are_refused_and_named():
    steps = make()
    _, step = steps.look_up([ids([1])], True, "train.py:7")
    steps.give(step, [gradient(1)])
    with pytest.raises(RuntimeError, match=r"Table: backward came twice for lookup 1 at train.py:7 \(1 samples\)"):
        steps.give(step, [gradient(1)])
    np.testing.assert_array_equal(table(steps), expected((1, 1)))


def test_a_step_that_nobody_holds_is_abandoned_and_named_at_the_next():
    steps = make()
    _, step = steps.look_up([ids([1], [2])], True, "train.py:3")
    del step
    gc.collect()
    with pytest.warns(AbandonedStepWarning, match=r"Table: no backward came for a lookup at train.py:3;"):
        _, step = steps.look_up([ids([3])], True)
    assert steps.abandoned == 1
    steps.give(step, [gradient(1)])
    np.testing.assert_array_equal(table(steps), expected((3, 1)))


def test_a_step_that_got_gradients_is_not_abandoned():
    steps = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            _, step = steps.look_up([ids([1])], True)
            steps.give(step, [gradient(1)])
            del step
        steps.look_up([ids([1])], False)
    assert steps.abandoned == 0


def test_abandoned_steps_are_one_warning_for_each_place():
    steps = make()
    held = [steps.look_up([ids([1])], True, f"train.py:{line}")[1] for line in range(6) for _ in range(2)]
    del held
    gc.collect()
    with pytest.warns(AbandonedStepWarning) as caught:
        steps.look_up([ids([1])], False)
    assert steps.abandoned == 12
    assert sorted(str(one.message).split(";")[0] for one in caught) == [
        f"Table: no backward came for a lookup at train.py:{line}" for line in range(6)]


def test_a_loop_that_abandons_its_steps_is_named_once():
    """As Python shows warnings unless told otherwise: each text of a line once."""
    steps = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for i in range(20):
            steps.look_up([ids(*[[1]] * (1 + i % 3))], True, "train.py:3")
            gc.collect()
    assert len(caught) == 1 and steps.abandoned == 19


def test_deferred_gradients_add_up_to_one_step():
    """Adagrad tells one step of g1 + g2 from two steps."""
    table_config = et.TableConfig(4, 1, et.Initializer.zeros(), combiner="sum", name="t")
    engine = et.Embedding(et.FeatureConfig(table_config), et.Adagrad(1.0, initial_accumulator_value=9.0),
                          et.EngineStrategy(threads=1), variable_batch=True)
    engine.build(1 << 30)
    steps = Steps(engine, "Table", single=True)
    steps.deferred = True
    for value in (3.0, 1.0):
        _, step = steps.look_up([ids([1], [2])], True)
        steps.give(step, [np.array([[value], [value]], np.float32)])
    assert steps.waiting == 2 and engine.step == 0
    assert steps.commit()
    assert engine.step == 1 and steps.waiting == 0
    # accumulator 9 + (3 + 1)^2 = 25, step 4 / sqrt(25)
    np.testing.assert_array_equal(engine.read_rows("t", [0, 1, 2, 3]).ravel(), np.float32([0, -0.8, -0.8, 0]))


def test_one_backward_after_the_other_for_the_same_lookup_adds_up_while_it_waits():
    steps = make()
    steps.deferred = True
    _, step = steps.look_up([ids([1])], True)
    steps.give(step, [gradient(2)])
    steps.give(step, [gradient(3)])
    steps.commit()
    np.testing.assert_array_equal(table(steps), expected((1, 5)))
    with pytest.raises(RuntimeError, match="backward came twice"):
        steps.give(step, [gradient(1)])


def test_the_callers_arrays_may_change_while_gradients_wait():
    steps = make()
    steps.deferred = True
    given, change = np.array([1, 2], np.int64), gradient(1, 1)
    for _ in range(2):
        _, step = steps.look_up([Ids(given)], True)
        steps.give(step, [change])
        given += 2
        change += 1
    steps.commit()
    np.testing.assert_array_equal(table(steps), expected((1, 1), (2, 1), (3, 2), (4, 2)))


def test_a_commit_scales_and_a_drop_changes_nothing():
    steps = make()
    steps.deferred = True
    _, step = steps.look_up([ids([1])], True)
    steps.give(step, [gradient(1024)])
    steps.commit(1 / 256)
    np.testing.assert_array_equal(table(steps), expected((1, 4)))
    _, step = steps.look_up([ids([1])], True)
    steps.give(step, [gradient(1)])
    steps.drop()
    assert steps.commit() and steps.skipped == 1 and steps.waiting == 0
    np.testing.assert_array_equal(table(steps), expected((1, 4)))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_gradients_that_overflow_are_dropped_where_that_may_happen(value):
    steps = make()
    steps.deferred = True
    for may_overflow in (True, False):
        _, step = steps.look_up([ids([1])], True)
        steps.give(step, [gradient(value)])
        if may_overflow:
            assert not steps.commit(0.5, may_overflow=True)
        else:
            with pytest.raises(et.DataError):
                steps.commit(1.0)
    assert steps.engine.step == 0 and steps.skipped == 1
    np.testing.assert_array_equal(table(steps), expected())


def test_after_an_error_gradients_wait_as_before():
    steps = make()
    steps.deferred = True
    _, step = steps.look_up([ids([1])], True)
    steps.give(step, [gradient(np.inf)])
    for _ in range(2):
        with pytest.raises(et.DataError, match="must be finite, got inf"):
            steps.commit()
        assert steps.waiting == 1 and steps.skipped == 0 and steps.engine.step == 0
    steps.drop()
    assert steps.commit() and steps.engine.step == 0


def test_a_lookup_takes_gradients_again_after_a_drop():
    steps = make()
    steps.deferred = True
    _, step = steps.look_up([ids([1])], True)
    for value in (4, 1):
        steps.give(step, [gradient(value)])
        if value == 4:
            steps.drop()
    steps.commit()
    np.testing.assert_array_equal(table(steps), expected((1, 1)))
    with pytest.raises(RuntimeError, match="backward came twice for lookup 1 .*, whose gradients are applied already"):
        steps.give(step, [gradient(1)])


def test_every_process_asks_whether_another_one_overflows():
    """Also where nothing waits, since the others wait for the answer."""
    asked = []
    steps = make(any_of=lambda mine: asked.append(mine) or True)
    steps.deferred = True
    assert not steps.commit(may_overflow=True) and asked == [False] and steps.skipped == 0


def test_gradients_are_divided_by_the_processes():
    steps = make(divide_by=4)
    _, step = steps.look_up([ids([1])], True)
    steps.give(step, [gradient(8)])
    np.testing.assert_array_equal(table(steps), expected((1, 2)))


@pytest.mark.parametrize("deferred", [False, True])
def test_replicas_get_equal_parts_of_a_batch(deferred):
    """The same bits as an engine that is given a batch for each replica."""
    draw = np.random.default_rng(1)
    batches = [ids(*[draw.integers(ROWS, size=draw.integers(0, 4)).tolist() for _ in range(6)]) for _ in range(3)]
    gradients = [draw.normal(size=(6, DIM)).astype(np.float32) for _ in range(3)]
    plain, steps = make(0.1, replicas=2), make(0.1, replicas=2)
    steps.deferred = deferred
    for batch, change in zip(batches, gradients):
        parts = cut(batch, 2)
        found, token = plain.engine.look_up(et.PerReplica(et.RaggedIds(p.values, p.splits) for p in parts))
        plain.engine.apply_gradients(et.PerReplica(np.split(change, 2)), token)
        rows, step = steps.look_up([batch], True)
        np.testing.assert_array_equal(rows[0], np.concatenate(found))
        steps.give(step, [change])
        steps.commit()
    assert steps.engine.digest() == plain.engine.digest()
    with pytest.raises(ValueError, match="2 replicas divide, got 5"):
        steps.look_up([ids([1], [], [], [2], [3])], True)


def test_a_ticket_keeps_its_step_and_lets_it_go():
    steps = make()
    _, step = steps.look_up([ids([1])], True)
    ticket = steps.ticket(step)
    del step
    steps.give(steps.step_of(int(ticket[0])), [gradient(1)])
    np.testing.assert_array_equal(table(steps), expected((1, 1)))
    _, step = steps.look_up([ids([1])], True)
    ticket = steps.ticket(step)
    del step, ticket
    gc.collect()
    with pytest.warns(AbandonedStepWarning, match="no backward came"):
        steps.look_up([ids([1])], False)
    with pytest.raises(RuntimeError, match="gradients came for lookup 2, which this process does not know"):
        steps.step_of(2)


def test_a_fork_is_refused_and_told_what_to_do():
    steps = make()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
        child = os.fork()
    if child == 0:
        try:
            steps.look_up([ids([1])], False)
        except RuntimeError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    text = os.read(reading, 4096).decode()
    assert f"Table was made in process {os.getpid()}, and process {child} is a fork of it" in text
    assert "let workers prepare ids" in text


def test_parts_of_batches():
    both = concatenate([Ids(np.array([5, 6])), ids([1, 2], [])])
    assert (both.values.tolist(), both.splits.tolist(), both.weights) == ([5, 6, 1, 2], [0, 1, 2, 4, 4], None)
    weighted = concatenate([Ids(np.array([5]), None, np.array([0.5], np.float32)), Ids(np.array([6]))])
    assert (weighted.splits, weighted.weights.tolist()) == (None, [0.5, 1])
    first, second = cut(ids([1], [2, 3], [], [4]), 2)
    assert (first.values.tolist(), first.splits.tolist()) == ([1, 2, 3], [0, 1, 3])
    assert (second.values.tolist(), second.splits.tolist()) == ([4], [0, 0, 1])
    assert [part.samples for part in cut(Ids(np.empty(0, np.int64), np.zeros(1, np.int64)), 2)] == [0, 0]
    assert splits_of_offsets(np.array([0, 2, 2]), 5).tolist() == [0, 2, 2, 5]


def test_lookups_that_backward_makes_once_more_are_not_abandoned():
    """Until it is known whether it does, none of the call is named."""
    steps = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error", AbandonedStepWarning)
        for call in (7, 8):
            steps.look_up([ids([1])], True, "here", call=call)
        gc.collect()
        steps.look_up([ids([1])], False)
        steps.note_made_again(8, True)
        steps.note_made_again(8, False)
        steps.look_up([ids([1])], False)
        steps.note_made_again(7, False)
    with pytest.warns(AbandonedStepWarning, match="no backward came for a lookup at here"):
        steps.look_up([ids([1])], False)
    assert steps.abandoned == 1


def test_torch_is_not_imported():
    import subprocess
    import sys
    code = "import embertable, embertable.steps, sys; print('torch' in sys.modules, hasattr(embertable, 'no_such_name'))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == ["False", "False"]


@pytest.mark.parametrize("padding, place", [(None, "sample 0, position 1"), (3, "sample 0")])
def test_an_error_of_another_host_names_the_feature(padding, place):
    """Its position is not that in what was given there, if padding was left out."""
    class Engine:
        def look_up(self, *arguments, **options):
            raise et.GivenUp(1, "feature '', replica 0, sample 0, position 1: id must be in 0..9, got 99")

    steps = make(features=["films"])
    steps.engine = Engine()
    with pytest.raises(et.GivenUp) as caught:
        steps.look_up([ids([1])._replace(padding=padding)], True)
    assert (caught.value.host, caught.value.reason) == (1, f"feature 'films', replica 0, {place}: id must be in 0..9, got 99")


def test_padding_is_kept_where_batches_are_joined_and_cut():
    padded = ids([1, 3], [3], [2, 3], [3])._replace(padding=3)
    assert [without_padding(part).values.tolist() for part in cut(padded, 2)] == [[1], [2]]
    both = without_padding(concatenate([padded, padded]))
    assert both.values.tolist() == [1, 2, 1, 2] and both.splits.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
