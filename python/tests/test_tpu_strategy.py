"""tpu_embedding's strategies: scopes, functions that run for each replica, data sets, devices."""

import collections
import contextlib
import os
import signal
import threading
import time
import types

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import USER_ROWS, features, user


def strategy(**options):
    return tpu.TPUStrategy(**{"threads": 1, "timeout": 2.0, **options})


def embedding_on(on, config=None):
    with on.scope():
        return tpu.TPUEmbedding(config or {"user": tpu.FeatureConfig(user())}, tpu.SGD(0.1))


def test_scopes_are_those_of_their_thread():
    inside, done, found = threading.Event(), threading.Event(), []

    def other():
        inside.wait(5)
        found.append((tpu.get_strategy(), tpu.TPUEmbedding(features(), tpu.SGD(0.1)).accelerated))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    outer, inner = strategy(), strategy()
    with outer.scope():
        inside.set()
        done.wait(5)
        with inner.scope():
            assert tpu.get_strategy() is inner
        assert tpu.get_strategy() is outer
    thread.join()
    assert found == [(None, False)] and tpu.get_strategy() is None


class Interrupted(Exception):
    """What a handler of a signal raises."""

    def __init__(self, number, frame):
        super().__init__(number)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Interrupted])
def test_an_interruption_ends_the_replicas(kind):
    on = strategy(replicas_per_host=2)
    embedding = embedding_on(on)
    begun, replicas = threading.Barrier(3), []

    def steps():
        replicas.append(threading.current_thread())
        begun.wait(5)
        for _ in range(3000):
            embedding.enqueue({"user": np.array([1])})
            embedding.apply_gradients(embedding.dequeue())
            time.sleep(0.01)

    def interrupt():
        begun.wait(5)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    def handler(number, frame):
        raise kind(number, frame)

    before = signal.signal(signal.SIGINT, handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(kind):
            on.run(steps)
    finally:
        signal.signal(signal.SIGINT, before)
    step = embedding.step
    for replica in replicas:
        replica.join(1)  # after the last line of its function
    assert not any(replica.is_alive() for replica in replicas) and 0 < step < 3000
    assert embedding.step == step


def test_a_training_step_runs_for_each_replica_as_one_global_call_would():
    """Two replicas, three steps of SGD 0.1 with gradients of ones: rows by hand."""
    on = strategy(replicas_per_host=2)
    embedding = embedding_on(on)
    seen = {}

    def step(factor):
        replica = tpu.get_replica_context().replica_id_in_sync_group
        activations = embedding.dequeue()
        seen[replica] = activations["user"].copy()
        embedding.apply_gradients({"user": np.full_like(activations["user"], factor)})
        return {"loss": float(activations["user"].sum()), "replica": replica}

    for _ in range(3):
        embedding.enqueue({"user": et.PerReplica([np.array([1]), np.array([2])])}, training=True)
        result = on.run(step, args=(et.PerReplica([1.0, 2.0]),))
    # replica r saw row r + 1 after two updates of 0.1 * (r + 1)
    assert np.allclose(seen[0], USER_ROWS[1:2] - 0.2) and np.allclose(seen[1], USER_ROWS[2:3] - 0.4)
    assert result["replica"] == (0, 1) and isinstance(result["loss"], et.PerReplica)
    assert embedding.step == 3
    assert np.allclose(embedding.read_rows("user", [1, 2]), USER_ROWS[1:3] - [[0.3], [0.6]], atol=1e-6)


def test_replicas_enqueue_their_own_batches():
    on = strategy(replicas_per_host=2)
    embedding = embedding_on(on)

    def step():
        replica = tpu.get_replica_context().replica_id_in_sync_group
        with pytest.raises(ValueError, match="device"):
            embedding.enqueue({"user": [replica]}, device="TPU:0")
        embedding.enqueue({"user": np.array([replica + 4])}, training=False)
        return embedding.dequeue()["user"][0]

    assert [row.tolist() for row in on.run(step)] == USER_ROWS[4:6].tolist()


def test_a_replicas_calls_take_what_they_take_outside_or_refuse_it():
    on = strategy(replicas_per_host=2)
    embedding = embedding_on(on)
    refused = "must be None inside of a function that runs for one replica"

    def step():
        ids = {"user": np.array([tpu.get_replica_context().replica_id_in_sync_group + 4])}
        for _ in range(2):  # a batch of another mode would lack its gradients here
            embedding.enqueue(ids, mode_override="inference")
            with pytest.raises(ValueError, match=f"out {refused}"):
                embedding.dequeue({"user": np.zeros((1, 4), np.float32)})
            rows = embedding.dequeue("the name of the operation")["user"]
        embedding.enqueue(ids, training=False, mode_override="train")
        gradients = embedding.dequeue()
        with pytest.raises(ValueError, match=f"token {refused}"):
            embedding.apply_gradients(gradients, token=token)
        embedding.apply_gradients(gradients)
        return rows[0]

    _, token = embedding.look_up({"user": np.array([1])})
    assert [row.tolist() for row in on.run(step)] == USER_ROWS[4:6].tolist()
    assert embedding.step == 1


def test_one_replica_is_called_as_it_is():
    on = strategy()
    thread = threading.current_thread()
    assert on.run(lambda x, y=0: (threading.current_thread() is thread, x + y), (1,), {"y": 2}) == (True, 3)
    assert tpu.get_replica_context() is None


@pytest.mark.parametrize("arguments, text", [
    ({"args": "ab"}, "run: args must be a list or tuple of arguments, got 'ab'"),
    ({"args": 3}, "run: args must be a list or tuple of arguments, got 3"),
    ({"kwargs": "ab"}, "run: kwargs must be a dict of arguments by name, got 'ab'")])
def test_a_text_is_no_list_of_arguments(arguments, text):
    with pytest.raises(TypeError, match=text):
        strategy().run(lambda *args, **kwargs: pytest.fail("it was called"), **arguments)


def test_the_first_error_is_raised_when_all_have_ended():
    on = strategy(replicas_per_host=2, timeout=0.2)
    embedding = embedding_on(on)
    embedding.enqueue({"user": np.array([1])})

    def step():
        if tpu.get_replica_context().replica_id_in_sync_group == 1:
            raise KeyError("mine")
        embedding.dequeue()  # waits for replica 1 until the timeout

    with pytest.raises(KeyError, match="mine"):
        on.run(step)
    with pytest.raises(RuntimeError, match="one replica"):
        on.run(lambda: on.run(lambda: None))
    with pytest.raises(ValueError, match="2 replicas, got 3"):
        on.run(lambda x: x, (et.PerReplica([1, 2, 3]),))


def numbers_on(on):
    """An embedding of one feature, whose rows are their numbers."""
    table = tpu.TableConfig(20, 1, name="numbers", initializer=lambda shape, dtype=None: np.arange(20).reshape(20, 1))
    return embedding_on(on, {"f": tpu.FeatureConfig(table)})


def test_batches_that_others_feed_are_not_dropped_by_a_run_that_fails():
    on = strategy(replicas_per_host=2, timeout=0.2)
    embedding = numbers_on(on)

    def feed(core, x):
        embedding.enqueue({"f": np.array([x])}, device=on.extended.worker_devices[core])

    def step(fails):
        values = embedding.dequeue()
        embedding.apply_gradients({"f": np.zeros_like(values["f"])})
        if fails and tpu.get_replica_context().replica_id_in_sync_group == 1:
            raise ValueError("the loss is nan")
        return values["f"].item()

    for core, x in ((0, 1), (1, 1), (0, 2), (1, 2), (0, 3)):
        feed(core, x)
        if (core, x) == (1, 1):
            assert on.run(step, (False,)) == (1, 1)
    with pytest.raises(ValueError, match="nan"):
        on.run(step, (True,))
    feed(1, 3)
    feed(0, 4)
    feed(1, 4)
    assert [on.run(step, (False,)) for _ in range(2)] == [(3, 3), (4, 4)]


def test_the_first_error_is_raised_though_nothing_can_be_dropped(monkeypatch):
    on = strategy(replicas_per_host=2, timeout=0.2)
    embedding = numbers_on(on)
    calls = []

    def refuse(self, steps):
        calls.append(self)
        raise RuntimeError("another thread enqueues")

    monkeypatch.setattr(tpu.TPUEmbedding, "drop_queued_batches", refuse)

    def step():
        if tpu.get_replica_context().replica_id_in_sync_group == 1:
            raise KeyError("mine")
        embedding.enqueue({"f": np.array([1])})

    with pytest.raises(KeyError, match="mine"):
        on.run(step)
    assert calls == [embedding]


def test_a_scope_that_an_interruption_cuts_off_ends_no_other():
    on = strategy()
    with on.scope():
        cut_off = []

        def other():
            with contextlib.ExitStack() as stack:
                stack.enter_context(on.scope())
                cut_off.append(stack.pop_all())

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        cut_off.pop().close()
        assert tpu.get_strategy() is on
    assert tpu.get_strategy() is None


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("dequeues", [False, True])
def test_a_run_that_fails_leaves_the_queue_as_deep_as_it_was(replicas, ahead, dequeues):
    on = strategy(replicas_per_host=replicas, timeout=0.2)
    embedding = numbers_on(on)

    def feed(x):
        embedding.enqueue({"f": np.array([x])}, training=False)

    def step(x, fails):
        if not dequeues:
            feed(x)
        if fails and not dequeues:
            raise ValueError("no labels")
        value = embedding.dequeue()["f"].item()
        if dequeues:
            feed(x)
        if fails:
            raise ValueError("no labels")
        return value

    depth = max(ahead, dequeues)
    for x in range(1, depth + 1):
        on.run(feed, (x,))
    found = []
    for x in range(depth + 1, depth + 6):
        fails = x == depth + 3
        try:
            value = on.run(step, (x, fails))
            found.append(value if replicas == 1 else value[0])
        except ValueError:
            found.append("failed")
    if dequeues:  # the oldest batch went with the run that failed, and the one that it enqueued came after it
        assert found == [1, 2, "failed", 4, 5]
    else:
        assert found == ([1, 2, "failed", 4, 5] if depth == 0 else [1, 2, "failed", 3, 5])


@pytest.mark.parametrize("runs", [False, True])
def test_ctrl_c_while_threads_begin_ends_them(monkeypatch, runs):
    on = strategy(replicas_per_host=3, timeout=0.2)
    embedding = numbers_on(on)

    def step(x):
        embedding.enqueue({"f": np.array([x])}, training=False)
        return embedding.dequeue()["f"].item()

    with monkeypatch.context() as patch:
        whole, begun = threading.Thread.start, []

        def interrupted(thread):
            begun.append(thread)
            if len(begun) < 2 or runs:
                whole(thread)
            if len(begun) == 2:
                raise KeyboardInterrupt

        patch.setattr(threading.Thread, "start", interrupted)
        patch.setattr("embertable.tpu_embedding.strategy._PATIENCE_S", 1)
        with pytest.raises(KeyboardInterrupt):
            on.run(step, (1,))
    assert len(begun) == 2 and not any(thread.is_alive() for thread in begun)
    assert on.run(step, (2,)) == (2, 2, 2)


@pytest.mark.parametrize("call", ["enqueue", "dequeue"])
@pytest.mark.parametrize("ahead", [0, 1])
def test_ctrl_c_that_comes_with_the_end_of_a_call_leaves_the_queue_as_it_was(monkeypatch, call, ahead):
    on = strategy()
    embedding = numbers_on(on)

    def step(x):
        embedding.enqueue({"f": np.array([x])})
        values = embedding.dequeue()["f"]
        embedding.apply_gradients({"f": np.zeros_like(values)})
        return values.item()

    if ahead:
        embedding.enqueue({"f": np.array([9])})
    with monkeypatch.context() as patch:
        whole = getattr(et.Embedding, call)

        def interrupted(self, *args, **kwargs):
            whole(self, *args, **kwargs)
            raise KeyboardInterrupt

        patch.setattr(et.Embedding, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            on.run(step, (1,))
    assert embedding.queued_batches == (ahead if call == "enqueue" or ahead else 0)
    assert embedding.awaiting_gradients == 0
    expected = 2 if not ahead else 9 if call == "enqueue" else 1
    assert on.run(step, (2,)) == expected


@pytest.mark.parametrize("fails", ["before", "its ids"])
def test_a_replica_that_fails_leaves_the_others_no_batch_ahead(fails):
    on = strategy(replicas_per_host=2, timeout=0.2)
    embedding = numbers_on(on)

    def step(x):
        second = tpu.get_replica_context().replica_id_in_sync_group == 1
        if x == 9 and second and fails == "before":
            raise ValueError("bad label")
        embedding.enqueue({"f": np.array([99 if x == 9 and second else x])})
        values = embedding.dequeue()
        embedding.apply_gradients({"f": np.zeros_like(values["f"])})
        return values["f"].item()

    assert on.run(step, (1,)) == (1, 1)
    for _ in range(2):
        with pytest.raises(ValueError):
            on.run(step, (9,))
    assert on.run(step, (3,)) == (3, 3)
    assert on.run(step, (4,)) == (4, 4)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_model_that_fails_leaves_no_batch_behind(replicas):
    on = strategy(replicas_per_host=replicas, timeout=0.2)
    embedding = numbers_on(on)

    def step(x, fails):
        embedding.enqueue({"f": np.array([x])})
        values = embedding.dequeue()
        if fails and tpu.get_replica_context().replica_id_in_sync_group == replicas - 1:
            raise ValueError("the loss is nan")
        embedding.apply_gradients({"f": np.ones_like(values["f"])})
        return values["f"].item()

    all_of = lambda value: value if replicas == 1 else (value,) * replicas
    assert on.run(step, (1, False)) == all_of(1)
    for x in (2, 3):
        with pytest.raises(ValueError, match="nan"):
            on.run(step, (x, True))
    assert on.run(step, (4, False)) == all_of(4)
    assert embedding.step == 2


class Refusal(Exception):
    """What no class of the package's is."""


class Unspeakable(Refusal):
    """Has no text."""

    def __str__(self):
        raise RuntimeError("no text today")


@pytest.mark.parametrize("kind", [Refusal, Unspeakable])
def test_what_a_function_of_the_step_raises_reaches_every_replica(kind):
    def rate():
        raise kind("no rate today")

    on = strategy(replicas_per_host=3)
    with on.scope():
        embedding = tpu.TPUEmbedding({"user": tpu.FeatureConfig(user())}, tpu.SGD(rate))
    embedding.enqueue({"user": np.array([1])})
    caught = []

    def step():
        activations = embedding.dequeue()
        try:
            embedding.apply_gradients(activations)
        except Refusal as error:
            caught.append((type(error), error.args))

    on.run(step)
    assert caught == [(kind, ("no rate today",))] * 3


def test_two_embeddings_of_two_strategies_in_one_run():
    """Only the embedding of the strategy that runs is the replica's; another one is as ever."""
    on = strategy(replicas_per_host=2)
    mine, other = embedding_on(on), embedding_on(strategy())
    mine.enqueue({"user": np.array([1])}, training=False)
    lock = threading.Lock()

    def step():
        with lock:
            other.enqueue({"user": np.array([3])}, training=False)
            row = other.dequeue()["user"]
        return mine.dequeue()["user"][0].tolist(), row[0].tolist()

    first, second = on.experimental_local_results(on.run(step))
    assert first == second == (USER_ROWS[1].tolist(), USER_ROWS[3].tolist())


def test_local_results():
    on = strategy(replicas_per_host=2)
    per_replica = et.PerReplica(["a", "b"])
    assert on.experimental_local_results(per_replica) == ("a", "b")
    assert on.experimental_local_results(5) == (5,)
    assert on.experimental_local_results((per_replica, [1])) == (("a", [1]), ("b", [1]))


def test_datasets_by_function_give_a_batch_for_each_replica():
    on = strategy(hosts=2, replicas_per_host=1)
    contexts = []

    def dataset(context):
        contexts.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        assert context.get_per_replica_batch_size(8) == 4
        with pytest.raises(ValueError, match="divisible by 2"):
            context.get_per_replica_batch_size(7)
        for i in range(5):
            yield {"ids": np.array([i])}, i

    steps = list(on.distribute_datasets_from_function(dataset, options=tpu.InputOptions(experimental_fetch_to_device=False)))
    assert contexts == [(1, 0, 2)] and len(steps) == 2
    batch, label = steps[1]
    assert label == (2, 3) and [ids.tolist() for ids in batch["ids"]] == [[2], [3]]


def test_a_global_batch_is_cut_in_equal_parts():
    on = strategy(replicas_per_host=2)
    batch = {"dense": np.arange(4), "ragged": et.RaggedIds.from_rows([[1], [], [2, 3], [4]]),
             "sparse": et.SparseIds([[0, 0], [2, 1], [3, 0]], [7, 8, 9], [4, 2]), "none": None}
    (element,) = on.experimental_distribute_dataset([batch])
    first, second = on.experimental_local_results(element)
    assert first["dense"].tolist() == [0, 1] and second["dense"].tolist() == [2, 3]
    assert second["ragged"].values.tolist() == [2, 3, 4] and second["ragged"].row_splits.tolist() == [0, 2, 3]
    assert second["sparse"].indices.tolist() == [[0, 1], [1, 0]] and second["sparse"].values.tolist() == [8, 9]
    assert second["sparse"].dense_shape == (2, 2) and first["none"] is None
    with pytest.raises(ValueError, match="2 replicas divide, got 3"):
        list(on.experimental_distribute_dataset([np.arange(3)]))
    for scalar in (3, np.float32(3)):
        with pytest.raises(ValueError, match="a leaf of a batch must have an axis of samples, got .*3"):
            list(on.experimental_distribute_dataset([{"x": np.arange(4), "y": scalar}]))


Field = collections.namedtuple("Field", "name init", defaults=[True])


class Record:
    """What attrs makes of a class with two fields."""

    __attrs_attrs__ = (Field("left"), Field("_right"))

    def __init__(self, left, right):
        self.left, self._right = left, right

    def __eq__(self, other):
        return vars(self) == vars(other)


class Sum:
    """What attrs makes of a class with a field that it computes, which can be made of numbers alone."""

    __attrs_attrs__ = (Field("left"), Field("twice", init=False))

    def __init__(self, left):
        self.left, self.twice = left, left * 2.5


class Checked(Record):
    def __init__(self, left, right):
        if not isinstance(left, int):
            raise ValueError("left must be a number")
        super().__init__(left, right)


class Fixed(collections.abc.Mapping):
    """A mapping that nothing can be made of: results are dicts."""

    def __init__(self):
        self.items_ = {"a": et.PerReplica([1, 2])}

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


@pytest.mark.parametrize("container", [dict, types.MappingProxyType, collections.UserDict, lambda items: Record(items["a"], items["b"])])
def test_containers_are_those_of_an_embeddings_trees(container):
    on, tree = strategy(replicas_per_host=2), container({"b": 3, "a": et.PerReplica([1, 2])})
    assert on.run(lambda x: x, args=(tree,)) == container({"a": et.PerReplica([1, 2]), "b": et.PerReplica([3, 3])})
    assert on.experimental_local_results(tree) == (container({"a": 1, "b": 3}), container({"a": 2, "b": 3}))
    assert on.reduce("sum", tree) == container({"a": 3, "b": 3})
    batch = container({"a": et.DenseIds([1, 2, 3, 4]), "b": np.arange(4)})
    (cut,) = on.experimental_distribute_dataset([batch])
    first, second = on.experimental_local_results(cut)
    read = lambda part: [vars(part)["left"], vars(part)["_right"]] if isinstance(part, Record) else [part["a"], part["b"]]
    assert [[read(part)[0].values.tolist(), read(part)[1].tolist()] for part in (first, second)] == [[[1, 2], [0, 1]], [[3, 4], [2, 3]]]


def test_objects_of_the_callers_stay_themselves_where_nothing_is_for_one_replica():
    on, record, fixed = strategy(replicas_per_host=2), Record(1, 2), Fixed()
    assert on.run(lambda x: x is record, args=(record,)) == (True, True)
    assert on.run(lambda x: x["a"], args=(fixed,)) == (1, 2)


def test_results_that_cannot_be_made_of_parts_are_not_lost():
    on = strategy(replicas_per_host=2)
    for made in Sum(2), Checked(1, 2):
        parts = on.run(lambda: made)
        assert isinstance(parts, et.PerReplica) and all(part is made for part in parts)


def test_values_by_function_and_reductions():
    on = strategy(replicas_per_host=2)
    values = on.experimental_distribute_values_from_function(lambda context: np.array([1.0, context.replica_id_in_sync_group]))
    assert [v.tolist() for v in values] == [[1, 0], [1, 1]]
    assert on.reduce("SUM", values).tolist() == [2, 1]
    assert on.reduce("mean", values, axis=0) == 3 / 4
    with pytest.raises(ValueError, match="'max'"):
        on.reduce("max", values)


def test_devices_are_the_strategys():
    on = strategy(hosts=2, replicas_per_host=3)
    assert on.num_replicas_in_sync == 6 and on.extended.num_hosts == 2 and on.extended.num_replicas_per_host == 3
    devices = on.extended.worker_devices
    assert devices[4] == "/job:worker/replica:0/task:1/device:TPU:1" and len(devices) == 6
    assert tpu.get_list_of_hosts(on) == [f"/job:worker/replica:0/task:{t}/device:CPU:0" for t in (0, 1)]
    assert on.core_of("/task:1/device:TPU:0") == 3 and on.core_of("TPU:5") == 5
    named = tpu.TPUStrategy(replicas_per_host=2, threads=1, devices=["/task:0/device:TPU:1", "/task:0/device:TPU:0"])
    assert [device[-5:] for device in named.devices] == ["TPU:0", "TPU:1"]
    with pytest.raises(TypeError, match="list of names"):
        tpu.TPUStrategy(devices="TPU:0")


def test_a_device_names_one_core_of_one_host():
    on = strategy(hosts=2)
    embedding = embedding_on(on)
    for task in (1, 0):
        embedding.enqueue({"user": np.array([task + 2])}, training=False, device=f"/job:worker/replica:0/task:{task}/device:TPU:0")
    assert [a["user"][0].tolist() for a in embedding.dequeue()] == USER_ROWS[2:4].tolist()
    for device, error in (("/device:CPU:0", ValueError), ("/device:TPU:7", ValueError)):
        with pytest.raises(error, match=device[-5:]):
            embedding.enqueue({"user": [1]}, device=device)
    with pytest.raises(RuntimeError):  # the mode comes before the device
        tpu.TPUEmbedding(features(), tpu.SGD(0.1)).enqueue(([0],) * 3, device="/device:CPU:0")


def test_a_replica_of_two_cores_takes_its_batch_in_parts():
    on = tpu.TPUStrategy(threads=1, timeout=2.0, cores_per_replica=2)
    assert on.cores_per_replica == 2 and len(on.devices) == 2 and on.num_replicas_in_sync == 1
    embedding = embedding_on(on)
    embedding.enqueue({"user": np.array([1, 2])}, training=False)
    assert np.array_equal(embedding.dequeue()["user"], USER_ROWS[1:3])
    for core in (1, 0):
        embedding.enqueue({"user": np.array([core + 5])}, training=False, device=on.devices[core])
    assert np.array_equal(embedding.dequeue()["user"], USER_ROWS[5:7])


def test_initializing_drops_the_tables():
    on = strategy()
    one, two = embedding_on(on), embedding_on(on)
    one.build(per_replica_batch_size=2)
    with pytest.raises(RuntimeError):
        two.build(per_replica_batch_size=2)
    with on.scope():
        assert tpu.initialize_tpu_system() is on
    two.build(per_replica_batch_size=2)
    with pytest.raises(ValueError, match="scope"):
        tpu.initialize_tpu_system()
