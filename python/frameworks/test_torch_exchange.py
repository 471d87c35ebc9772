"""Engines whose hosts are the ranks of torch.distributed, in processes of their own.

    test_torch_exchange.py TASK    is one rank: it prints what the task found as a line of JSON
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

import pytest  # noqa: E402

from exchange_contract import CONTRACT, expect_failure  # noqa: E402
from processes import Process, errors_of_one_host_are_errors_on_all, raises, trained  # noqa: E402

DEADLINE = 2.0  # of ranks that must not wait long for one that is gone


# What one rank does


def make_exchange(deadline=60.0, group=None):
    from embertable.exchange import TorchDistributed
    return TorchDistributed(group, deadline)


def contract():
    exchange = make_exchange()
    for holds in CONTRACT:
        holds(exchange)
        exchange.agree("")
    reason = "x" * 10000  # of more than one collective
    expect_failure(exchange, lambda host: host == 0, lambda exchange, fail: fail(), reason)
    return [holds.__name__ for holds in CONTRACT]


def digests():
    """With small and with large messages, pipelined, after errors, and of two exchanges one after the other."""
    exchange = make_exchange()
    found = [trained(exchange).engine.digest(), trained(exchange, length=60).engine.digest(),
             trained(exchange, pipeline_execution_with_tensor_core=True).engine.digest(),
             errors_of_one_host_are_errors_on_all(exchange)]
    return found + [trained(make_exchange()).engine.digest()]


def expected_digests():
    plain = trained().engine.digest()
    return [plain, trained(length=60).engine.digest(),
            trained(pipeline_execution_with_tensor_core=True).engine.digest(), plain, plain]


def part_of_the_ranks():
    import torch.distributed as dist
    group = dist.new_group([0, 2])
    if dist.get_rank() == 1:
        return raises(lambda: make_exchange(group=group))
    exchange = make_exchange(group=group)
    return [exchange.host, exchange.hosts, trained(exchange).engine.digest()]


def ends(sign, after_messages):
    """The last rank ends, or stops, in a step: before its first message or after some."""
    exchange = make_exchange(DEADLINE)
    process = Process(exchange)
    process.step(0)
    process.enqueue(1)
    if exchange.host == exchange.hosts - 1:
        if not after_messages:
            os.kill(os.getpid(), sign)
        process.dequeue()
        os.kill(os.getpid(), sign)
    begin = time.monotonic()
    error = raises(lambda: process.apply(process.dequeue()))
    seconds = time.monotonic() - begin
    return [error, seconds, raises(process.engine.digest), process.engine.step]


def interrupted():
    """Rank 0 is interrupted while it waits in a round for rank 1."""
    exchange = make_exchange(DEADLINE)
    process = Process(exchange)
    process.step(0)
    process.enqueue(1)

    def interrupt(number, frame):
        raise InterruptedError("Ctrl-C")

    signal.signal(signal.SIGALRM, interrupt)
    if exchange.host == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
    else:
        time.sleep(1)
    return [raises(lambda: process.apply(process.dequeue())), raises(process.engine.digest)]


TASKS = {"contract": contract, "interrupted": interrupted, "digests": digests, "part_of_the_ranks": part_of_the_ranks,
         "killed": lambda: ends(signal.SIGKILL, False), "killed_later": lambda: ends(signal.SIGKILL, True),
         "stopped": lambda: ends(signal.SIGSTOP, False), "stopped_later": lambda: ends(signal.SIGSTOP, True)}


def run_rank(task):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    print(json.dumps(TASKS[task]()), flush=True)
    if task in ("contract", "digests", "part_of_the_ranks"):
        dist.barrier()
        dist.destroy_process_group()
    else:
        os._exit(75)  # rank 0, which keeps the store of torch.distributed, may be gone


# What the tests see


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def run(task, ranks, answers=None):
    """What the ranks found, of the first `answers` ranks if the others never say."""
    answers = ranks if answers is None else answers
    common = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE=str(ranks),
                  GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    started = [subprocess.Popen([sys.executable, __file__, task], env=dict(common, RANK=str(rank)), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(ranks)]
    try:
        found = [process.communicate(timeout=240) for process in started[:answers]]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    for rank, (out, errors) in enumerate(found):
        assert out, f"rank {rank}: {errors}"
    return [json.loads(out.splitlines()[-1]) for out, _ in found]


@pytest.mark.parametrize("ranks", [2, 3])
def test_contract(ranks):
    assert run("contract", ranks) == [[holds.__name__ for holds in CONTRACT]] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_engines_give_what_one_process_gives(ranks):
    assert run("digests", ranks) == [expected_digests()] * ranks


def test_hosts_may_be_part_of_the_ranks():
    digest = trained().engine.digest()
    first, other, last = run("part_of_the_ranks", 3)
    assert (first, last) == ([0, 2, digest], [1, 2, digest])
    assert other == "ValueError: exchange: rank 1 is not in the group"


@pytest.mark.parametrize("task", ["killed", "killed_later", "stopped", "stopped_later"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_that_is_gone_is_named_by_the_others(task, ranks):
    for error, seconds, later, step in run(task, ranks, ranks - 1):
        assert error.startswith("RuntimeError: exchange: ") and f"no answer of host {ranks - 1} within 2 s" in error
        assert "no answer" in later or "failed" in later, later
        assert seconds < 2 * DEADLINE, (error, seconds)
        assert step == 1


def test_a_rank_that_is_interrupted_in_a_round_is_out_of_step():
    first, second = run("interrupted", 2)
    assert first[0] == "InterruptedError: Ctrl-C"
    assert "this host was interrupted" in first[1]
    assert "no answer of host 0 within 2 s" in second[0] and "no answer of host 0" in second[1]


def test_without_a_process_group_there_is_no_exchange():
    from embertable.exchange import TorchDistributed
    with pytest.raises(RuntimeError, match="init_process_group must be called before"):
        TorchDistributed()
    for deadline in (-1, 0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="deadline must be above 0 seconds and at most 1e9"):
            TorchDistributed(deadline=deadline)


if __name__ == "__main__":
    run_rank(sys.argv[1])
