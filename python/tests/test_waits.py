"""Waits for other threads end by Ctrl-C, and long calls leave other coroutines running."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import embertable as et
from fixture import accelerator, batch, each, engine, loss_gradient

CALLS = {
    "room in a queue": "engine.enqueue(batch); wait(lambda: engine.enqueue(batch, timeout=60))",
    "a batch": "wait(lambda: engine.dequeue(timeout=60))",
    "another replica's dequeue": "engine.enqueue(batch); wait(engine.replica(0).dequeue)",
    "another replica's gradients":
        "engine.enqueue(batch); a = engine.dequeue()[0]; wait(lambda: engine.replica(0).apply_gradients(a))",
}


@pytest.mark.parametrize("what", CALLS)
def test_ctrl_c_ends_a_wait_and_the_engine_goes_on(what):
    program = textwrap.dedent("""
        import os, signal, threading, time
        import numpy as np
        import embertable as et
        table = et.TableConfig(4, 1, et.Initializer.zeros(), name="t")
        engine = et.Embedding(et.FeatureConfig(table), et.SGD(1), et.EngineStrategy(replicas_per_host=2, timeout=60), queue_capacity=1)
        engine.build(1)
        batch = np.array([1])
        def wait(call):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                call()
            except KeyboardInterrupt:
                assert time.monotonic() - begin < 30
                print("interrupted")
    """) + CALLS[what] + textwrap.dedent("""
        for _ in range(3):
            try:
                engine.enqueue(batch)
            except RuntimeError:
                pass
            try:
                engine.dequeue()
            except RuntimeError:
                pass
            engine.apply_gradients(et.PerReplica([np.ones((1, 1))] * 2))
        print(engine.step)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "3"], done.stderr


def test_a_timeout_waits_for_another_thread():
    embedding = engine(queue_capacity=1)
    embedding.enqueue(batch())
    later = threading.Timer(0.1, lambda: embedding.dequeue())
    later.start()
    embedding.enqueue(batch(), timeout=30)
    later.join()
    with pytest.raises(RuntimeError, match="full"):
        embedding.enqueue(batch(), timeout=0.02)
    for timeout, error in ((-1, ValueError), ("x", TypeError), (float("nan"), ValueError)):
        with pytest.raises(error, match="timeout"):
            embedding.enqueue(batch(), timeout=timeout)


def test_a_batch_of_another_thread_is_waited_for():
    embedding = engine()
    embedding.build(2)
    later = threading.Timer(0.1, lambda: embedding.enqueue(batch(), training=False))
    later.start()
    assert embedding.dequeue(timeout=30)[0].shape == (2, 4)
    later.join()


def test_coroutines_run_beside_a_long_call():
    """A heartbeat goes on while a save runs in a thread of the loop's."""
    table = et.TableConfig(1 << 20, 32, name="t")
    embedding = et.Embedding(et.FeatureConfig(table), et.SGD(0.1), accelerator())
    embedding.build(2)

    async def program():
        beats, working = [], True

        async def heart():
            while working:
                beats.append(time.monotonic())
                await asyncio.sleep(0.001)

        task = asyncio.create_task(heart())
        begin = time.monotonic()
        digest = await asyncio.to_thread(embedding.digest)
        seconds = time.monotonic() - begin
        working = False
        await task
        return digest, seconds, beats

    digest, seconds, beats = asyncio.run(program())
    assert digest == embedding.digest()
    assert len(beats) > 5 or seconds < 0.01


def test_steps_of_coroutines_are_those_of_one_thread():
    embedding, reference = engine(optimizer=et.Adagrad(0.1)), engine(optimizer=et.Adagrad(0.1))

    async def steps():
        for _ in range(4):
            activations, token = await asyncio.to_thread(embedding.look_up, batch())
            await asyncio.to_thread(embedding.apply_gradients, each(activations, loss_gradient(1)), token)

    asyncio.run(steps())
    for _ in range(4):
        activations, token = reference.look_up(batch())
        reference.apply_gradients(each(activations, loss_gradient(1)), token)
    assert embedding.digest() == reference.digest() and embedding.step == 4
