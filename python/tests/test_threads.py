"""The GIL is free while the engine works; callbacks and replicas have threads of their own."""

import asyncio
import os
import sys
import threading
import time

import numpy as np
import pytest

import embertable as et
from fixture import USER_ROWS, accelerator, each, engine, features, batch, user


def large_engine(**options):
    table = et.TableConfig(1 << 16, 64, et.Initializer.zeros(), name="t", combiner="sum")
    return engine(feature_config=et.FeatureConfig(table), **options)


def other_threads_run_during(call, seconds=5):
    """Whether another thread runs five times in some seconds of nothing but calls. Nobody takes the GIL from a
    thread that keeps it."""
    count, stop = 0, threading.Event()

    def tick():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.0005)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    sys.setswitchinterval(60)
    try:
        first, deadline = count, time.monotonic() + seconds
        while count < first + 5 and time.monotonic() < deadline:
            call()
        return count >= first + 5
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()


def test_the_gil_is_free_during_a_step():
    embedding = large_engine()
    ids = et.RaggedIds(np.arange(1 << 19) % (1 << 16), np.arange(0, (1 << 19) + 1, 64))
    embedding.enqueue(ids)
    gradient = np.ones_like(embedding.dequeue())
    embedding.apply_gradients(gradient)

    def step():
        embedding.enqueue(ids)
        embedding.dequeue()
        embedding.apply_gradients(gradient)

    assert other_threads_run_during(step)
    assert other_threads_run_during(embedding.digest)
    assert not other_threads_run_during(lambda: None, 0.5)  # or the measure would be worth nothing


def in_threads(*calls):
    """Runs each call in a thread of its own; what they gave or raised."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("hosts", [1, 3])
def test_replicas_in_threads_are_one_step(hosts):
    replicas = 3
    together = et.Embedding(features(), et.Adagrad(0.1), accelerator(replicas, hosts, timeout=60))
    apart = et.Embedding(features(), et.Adagrad(0.1), accelerator(replicas, hosts, timeout=60))

    def program(index):
        replica = apart.replica(index)
        for _ in range(4):
            replica.enqueue(batch(index))
            replica.apply_gradients(each(replica.dequeue(), np.copy))

    assert in_threads(*(lambda r=r: program(r) for r in range(replicas))) == [None] * replicas
    for _ in range(4):
        together.enqueue(et.PerReplica(batch(r) for r in range(replicas)))
        together.apply_gradients(each(together.dequeue(), np.copy))
    assert apart.digest() == together.digest() and apart.step == 4


def test_an_absent_replica_is_named():
    embedding = engine(2)
    for r in range(2):
        embedding.replica(r).enqueue(batch(r))
    with pytest.raises(RuntimeError, match="dequeue.*1"):
        embedding.replica(0).dequeue()
    for index, error in ((2, ValueError), (-1, ValueError), (1.0, TypeError)):
        with pytest.raises(error):
            embedding.replica(index)


def test_any_thread_may_call_anything():
    embedding = engine(variable_batch=True)
    embedding.build(2)

    def steps():
        for _ in range(30):
            activations, token = embedding.look_up(batch())
            embedding.apply_gradients(each(activations, np.copy), token)

    def reads():
        for _ in range(30):
            embedding.read_rows("video", [0, 1])
            embedding.digest(), embedding.memory(), embedding.last_step, embedding.tables

    assert in_threads(steps, reads, steps) == [None] * 3
    assert embedding.step == 60


@pytest.mark.parametrize("hosts", [1, 2])
def test_what_one_replica_calls_does_not_wait_for_those_that_wait_for_it(hosts, tmp_path):
    embedding = et.Embedding(features(), et.Adagrad(0.1), accelerator(2, hosts, timeout=60))
    questions = [
        lambda: embedding.save(tmp_path / str(time.monotonic_ns())), lambda: embedding.read_rows("video", [0, 1]),
        lambda: embedding.assign_rows("user", [0], np.ones((1, 2), np.float32)), embedding.memory,
        embedding.digest, lambda: embedding.last_step, lambda: embedding.tables, embedding.configuration,
    ]
    others_wait = threading.Semaphore(0)

    def asks():
        """Asks while the other replica waits for this one, in dequeue and in apply_gradients."""
        replica = embedding.replica(0)
        for ask in questions:
            replica.enqueue(batch(0))
            wait_for_the_other()
            ask()
            gradients = each(replica.dequeue(), np.copy)
            wait_for_the_other()
            ask()
            replica.apply_gradients(gradients)

    def wait_for_the_other():
        others_wait.acquire()
        time.sleep(0.02)

    def waits():
        replica = embedding.replica(1)
        for _ in questions:
            replica.enqueue(batch(1))
            others_wait.release()
            gradients = each(replica.dequeue(), np.copy)
            others_wait.release()
            replica.apply_gradients(gradients)

    began = time.monotonic()
    assert in_threads(asks, waits) == [None] * 2
    assert embedding.step == len(questions) and time.monotonic() - began < 50


def test_steps_that_overlap_let_others_have_a_turn():
    """Two threads whose steps overlap all the time, and a third that asks: each call is one of few turns."""
    embedding = large_engine()
    ids = et.RaggedIds(np.arange(1 << 17) % (1 << 16), np.arange(0, (1 << 17) + 1, 64))
    embedding.look_up(ids, training=False)
    stop, steps = threading.Event(), [0, 0]

    def step(i):
        while not stop.is_set():
            embedding.look_up(ids, training=False)
            steps[i] += 1

    def asks():
        try:
            while min(steps) < 2:
                time.sleep(0.001)
            between = []
            for _ in range(20):
                before = sum(steps)
                embedding.read_rows("t", [0])
                between.append(sum(steps) - before)
            return max(between)
        finally:
            stop.set()

    most = in_threads(asks, lambda: step(0), lambda: step(1))[0]
    assert most <= 20


def test_reads_and_steps_do_not_mix():
    """Each step adds the same to every row: what is read between two steps is of one step."""
    table = et.TableConfig(64, 256, et.Initializer.zeros(), name="t", combiner="sum")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(1.0), et.EngineStrategy(threads=1))
    ids = np.arange(64)
    gradient = np.full((64, 256), -1, np.float32)
    embedding.build(64)

    def steps():
        for _ in range(300):
            _, token = embedding.look_up(ids)
            embedding.apply_gradients(gradient, token)

    def reads():
        for _ in range(300):
            rows = embedding.read_rows("t", ids)
            assert (rows == rows[0, 0]).all()

    assert in_threads(steps, reads) == [None] * 2


class OwnError(Exception):
    pass


def failing():
    raise OwnError("this rate")


@pytest.mark.parametrize("hosts", [1, 2])
def test_what_a_rate_raises_arrives_as_itself(hosts):
    broken = True
    embedding = engine(2, hosts, optimizer=et.SGD(lambda: failing() if broken else 0.1))
    embedding.enqueue(batch())
    gradients = each(embedding.dequeue(), np.copy)
    before = embedding.digest()
    with pytest.raises(OwnError, match="this rate"):
        embedding.apply_gradients(gradients)
    assert embedding.digest() == before and embedding.step == 0
    broken = False
    embedding.apply_gradients(gradients)
    assert embedding.step == 1


def test_what_an_initializer_raises_arrives_as_itself():
    table = et.TableConfig(100, 2, et.Initializer.function(lambda rows: failing()))
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(), et.EngineStrategy(hosts=2, threads=2))
    with pytest.raises(OwnError):
        embedding.build(1)
    assert not embedding.built


def test_a_rate_of_another_type_is_refused():
    embedding = engine(optimizer=et.SGD(lambda: "fast"))
    embedding.enqueue(batch())
    with pytest.raises(TypeError, match="learning_rate.*str"):
        embedding.apply_gradients(each(embedding.dequeue(), np.copy))


def test_an_engine_called_from_its_own_rate_raises():
    embedding = engine(optimizer=et.SGD(lambda: embedding.read_rows("user", 0)[0]))
    embedding.enqueue(batch())
    with pytest.raises(RuntimeError, match="calls itself"):
        embedding.apply_gradients(each(embedding.dequeue(), np.copy))


def test_tokens_are_used_once():
    embedding, other = engine(), engine()
    activations, token = embedding.look_up(batch())
    gradients = each(activations, np.copy)
    other.build(2)
    with pytest.raises(RuntimeError, match="another engine"):
        other.apply_gradients(gradients, token)
    with pytest.raises(TypeError):
        embedding.apply_gradients(gradients, token="t")
    assert token.valid
    embedding.apply_gradients(gradients, token)
    assert not token.valid
    with pytest.raises(RuntimeError):
        embedding.apply_gradients(gradients, token)
    assert embedding.look_up(batch(), training=False)[1] is None
    del embedding, other
    assert not token.valid


def test_a_forked_child_is_told_so():
    embedding = engine(4, 2)
    embedding.enqueue(batch())
    activations = embedding.dequeue()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            embedding.apply_gradients(each(activations, np.copy))
        except RuntimeError as error:
            del embedding
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert b"fork" in os.read(reader, 1000)
    embedding.apply_gradients(each(activations, np.copy))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_engine_that_is_called_from_its_own_initializer_refuses(threads):
    told = []

    def rows_of(rows):
        try:
            embedding.memory()
        except RuntimeError as error:
            told.append(str(error))
        return np.ones((rows.rows, rows.dim), np.float32)

    table = et.TableConfig(1_000_000, 2, et.Initializer.function(rows_of), name="t", combiner="sum")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(), et.EngineStrategy(threads=threads))
    embedding.build(1)
    assert told and all("must not call" in text or "calls itself" in text for text in told)


def test_coroutines_go_on_beside_a_call_that_waits():
    """A replica waits for the other one, and the event loop runs on."""
    embedding = et.Embedding(et.FeatureConfig(user()), et.SGD(0.1), accelerator(2, timeout=60))
    embedding.build(per_replica_batch_size=2)
    first, second = embedding.replica(0), embedding.replica(1)
    for replica in (first, second):
        replica.enqueue(np.array([1, 2]), training=False)

    async def ticking(until):
        ticks = 0
        while not until.done():
            await asyncio.sleep(0.001)
            ticks += 1
            if ticks == 20:  # 20 turns of the loop while the first one waits
                assert not until.done()
                rows = await asyncio.to_thread(second.dequeue)
        return ticks, rows

    async def main():
        waiting = asyncio.create_task(asyncio.to_thread(first.dequeue))
        return await asyncio.gather(waiting, ticking(waiting))

    rows, (ticks, others) = asyncio.run(main())
    assert ticks >= 20 and np.array_equal(rows, USER_ROWS[1:3]) and np.array_equal(others, rows)
