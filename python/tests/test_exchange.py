"""Exchanges: those of C++, and those that Python defines, through which engines are hosts of each other."""

import concurrent.futures
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import embertable as et
from exchange_contract import CONTRACT
from processes import Process, batches_are_dropped_by_all_hosts, errors_of_one_host_are_errors_on_all, raises, trained


class Board:
    """Where the hosts of a BoardExchange leave their messages for each other."""

    def __init__(self, hosts):
        self.everybody = threading.Barrier(hosts, timeout=60)
        self.left = [None] * hosts

    def swap(self, host, mine):
        """What every host leaves."""
        self.left[host] = mine
        self.everybody.wait()
        found = list(self.left)
        self.everybody.wait()
        return found


class BoardExchange(et.Exchange):
    """An exchange of threads, all in Python: in each round the hosts meet twice."""

    def __init__(self, board, host):
        super().__init__(host, board.everybody.parties)
        self.board = board
        self.received = {}  # by channel; none if a host gave up before it started the round, or started another
        self.parting = False
        self.difference = None
        self.stages = []

    def start(self, channel, stage, messages):
        self.stages.append(stage)
        self.received[channel] = None
        if self.parting:
            return
        found = self.board.swap(self.host, (stage, channel, [bytes(message) for message in messages]))
        self.parting = None in found
        if not self.parting and len({(stage, channel) for stage, channel, _ in found}) > 1:
            self.parting = True
            self.difference = f"hosts must make the same calls in the same order: {[stage for stage, *_ in found]}"
        if not self.parting:
            self.received[channel] = [messages[self.host] for *_, messages in found]

    def finish(self, channel):
        received = self.received[channel]
        if received is None:
            raise self.part(self.difference)
        return received

    def abort(self, reason):
        return self.part(reason)

    def part(self, reason):
        if not self.parting:
            self.board.swap(self.host, None)
        reasons = self.board.swap(self.host, reason)
        self.parting, self.difference = False, None
        self.received.clear()
        first = next(host for host, reason in enumerate(reasons) if reason is not None)
        return et.GivenUp(first, reasons[first])


def boards(hosts, kind=BoardExchange):
    board = Board(hosts)
    return [kind(board, host) for host in range(hosts)]


KINDS = {"local": lambda: [et.Exchange.local()], "threads2": lambda: et.Exchange.threads(2),
         "threads3": lambda: et.Exchange.threads(3), "board1": lambda: boards(1), "board2": lambda: boards(2),
         "board3": lambda: boards(3)}


def on_all(exchanges, body):
    """body(exchange) on a thread for each; what it gave."""
    results = [None] * len(exchanges)

    def run(i):
        try:
            results[i] = body(exchanges[i])
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(exchanges))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 60
    while any(thread.is_alive() for thread in threads):
        threads[0].join(0.001)
        failed = next((result for result in results if isinstance(result, BaseException)), None)
        if failed:
            raise failed  # the others may wait for it
        assert time.monotonic() < end, "the hosts wait for each other"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holds", CONTRACT, ids=lambda holds: holds.__name__)
def test_contract(kind, holds):
    on_all(KINDS[kind](), holds)


def test_a_given_up_has_its_fields():
    error = et.GivenUp(2, "disk full")
    assert isinstance(error, RuntimeError)
    assert (error.host, error.reason, str(error)) == (2, "disk full", "host 2: disk full")
    with pytest.raises(TypeError, match="host must be an integer"):
        et.GivenUp("2", "disk full")


# Engines


@pytest.mark.parametrize("kind", KINDS)
def test_engines_give_what_one_process_gives(kind):
    expected = trained().engine.digest()
    digests = on_all(KINDS[kind](), lambda exchange: trained(exchange).engine.digest())
    assert digests == [expected] * len(digests)


@pytest.mark.parametrize("kind", ["threads3", "board3"])
def test_pipelined_engines_give_what_one_process_gives(kind):
    expected = trained(pipeline_execution_with_tensor_core=True).engine.digest()
    body = lambda exchange: trained(exchange, pipeline_execution_with_tensor_core=True).engine.digest()
    assert on_all(KINDS[kind](), body) == [expected] * 3


@pytest.mark.parametrize("kind", ["threads3", "board3"])
def test_what_fails_on_one_host_fails_on_all(kind):
    expected = trained().engine.digest()
    assert on_all(KINDS[kind](), errors_of_one_host_are_errors_on_all) == [expected] * 3


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize("kind", ["local", "threads3", "board3"])
def test_batches_are_dropped_by_all_hosts(kind, pipelined):
    options = {"pipeline_execution_with_tensor_core": pipelined}
    # With pipelining, the lookup of a batch that is dropped runs an update that otherwise waits for the next step's.
    expected = batches_are_dropped_by_all_hosts(et.Exchange.local(), **options) if pipelined else trained().engine.digest()
    for digest in on_all(KINDS[kind](), lambda exchange: batches_are_dropped_by_all_hosts(exchange, **options)):
        assert digest == expected


@pytest.mark.parametrize("options", [{"tables": ["films"]}, {"partial": True}, {"grow": ["films"]}])
def test_hosts_restore_with_the_same_options(tmp_path, options):
    def body(exchange):
        process = trained(exchange, steps=1)
        process.engine.save(tmp_path)
        error = raises(lambda: process.engine.restore(tmp_path, **(options if exchange.host == 0 else {})))
        process.engine.restore(tmp_path)
        return error

    for error in on_all(et.Exchange.threads(2), body):
        assert error.startswith("GivenUp: host 0: hosts must make the same calls in the same order: "), error


def test_each_replica_is_told_that_hosts_make_different_calls():
    def body(exchange):
        process = Process(exchange)
        process.step(0)
        if exchange.host == 1:
            errors = [raises(process.engine.digest)]
        else:
            process.enqueue(1)
            calls = [process.engine.replica(r).dequeue for r in range(process.strategy.local_replicas)]
            with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
                errors = list(pool.map(raises, calls))
        return errors

    for errors in on_all(et.Exchange.threads(2), body):
        for error in errors:
            assert error.startswith("GivenUp: host 0: hosts must make the same calls in the same order: "), error


def test_what_engines_save_any_number_of_hosts_restores(tmp_path):
    half, whole = trained(steps=2), trained()
    on_all(boards(3), lambda exchange: trained(exchange, steps=2).engine.save(tmp_path))

    def go_on(exchange):
        process = Process(exchange)
        process.engine.build()
        assert process.engine.restore(tmp_path).step == 2
        assert process.engine.digest() == half.engine.digest()
        for number in (2, 3):
            process.step(number)
        return process.engine.digest()

    for hosts in (1, 2):
        assert on_all(boards(hosts), go_on) == [whole.engine.digest()] * hosts


def test_rounds_have_names():
    exchanges = boards(2)
    on_all(exchanges, lambda exchange: trained(exchange, steps=1).engine.digest())
    assert exchanges[0].stages == exchanges[1].stages
    assert "comparison of the configuration" in exchanges[0].stages and "agreement of step 1" in exchanges[0].stages


def test_a_strategy_says_which_part_of_the_hosts_it_is():
    strategy = et.EngineStrategy(replicas_per_host=4, exchange=boards(3)[1])
    assert (strategy.host, strategy.hosts, strategy.replicas) == (1, 3, 12)
    assert (strategy.local_replicas, strategy.first_replica) == (4, 4)
    whole = et.EngineStrategy(hosts=3, replicas_per_host=4)
    assert (whole.host, whole.local_replicas, whole.first_replica) == (0, 12, 0)


@pytest.mark.parametrize("make, error", [
    (lambda: et.EngineStrategy(hosts=2, exchange=et.Exchange.threads(3)[0]), "ValueError: .*hosts must be 1 or the 3"),
    (lambda: et.EngineStrategy(exchange="gloo"), "ValueError: .*must be 'mpi', a communicator or an Exchange.*'gloo'"),
    (lambda: et.EngineStrategy(deadline=3), "ValueError: .*deadline is of exchange='mpi'"),
    (lambda: et.EngineStrategy(exchange="mpi", deadline=-1), "ValueError: .*must be > 0"),
    (lambda: et.EngineStrategy(exchange="mpi", deadline="1"), "TypeError: deadline must be a number, got str"),
    (lambda: et.Exchange.mpi(3), "TypeError: communicator must be one of mpi4py's, got int"),
    (lambda: et.EngineStrategy(exchange=3), "TypeError: exchange must be .*got int"),
    (lambda: et.Exchange(3, 3), "ValueError: exchange: host must be 0 <= host < 3, got 3"),
    (lambda: et.Exchange(0, 0), "ValueError: exchange: hosts must be >= 1, got 0"),
    (lambda: et.Exchange(0, 1).start(0, "rows", [b""]), "NotImplementedError: .*must define start"),
    (lambda: et.Exchange.local().start(0, "rows", ["text"]), "TypeError: .*contiguous bytes, got str"),
    (lambda: et.Exchange.local().start(3, "rows", [b""]), "ValueError: .*channel must be 0..2, got 3"),
    (lambda: et.Exchange.local().finish(0), "RuntimeError: .*no round is open on channel 0"),
])
def test_bad_arguments(make, error):
    kind, _, text = error.partition(": ")
    with pytest.raises(Exception, match=text) as raised:
        make()
    assert raised.type.__name__ == kind


def test_an_exchange_serves_one_strategy_at_a_time():
    for exchange in (et.Exchange.local(), boards(1)[0]):
        strategy = et.EngineStrategy(exchange=exchange)
        with pytest.raises(ValueError, match="in use by another strategy"):
            et.EngineStrategy(exchange=exchange)
        del strategy
        et.EngineStrategy(exchange=exchange)


def test_a_class_must_call_its_bases_init():
    class Forgetful(et.Exchange):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match="__init__ of .*Forgetful must call that of Exchange"):
        et.EngineStrategy(exchange=Forgetful())


RANK_OF_MPI = """
import embertable as et
from exchange_contract import CONTRACT
from processes import trained
assert et.find_mpi_launcher()
exchange = et.Exchange.mpi(deadline=30)
for holds in CONTRACT:
    holds(exchange)
print(trained(exchange).engine.digest())
del exchange
assert et.EngineStrategy(exchange="mpi", deadline=30).hosts == 2
"""


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun, which ./dev test installs")
def test_processes_of_mpi():
    launched = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    done = subprocess.run(["mpirun", "-n", "2", sys.executable, "-c", RANK_OF_MPI], cwd=pathlib.Path(__file__).parent,
                          env=dict(os.environ, **launched), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(trained().engine.digest()) == 2


def test_without_a_launcher_there_is_no_mpi():
    code = """
import embertable as et
assert et.find_mpi_launcher() is None
et.EngineStrategy(exchange="mpi")
"""
    plain = {name: value for name, value in os.environ.items()
             if not name.startswith(("OMPI_", "PMI", "SLURM_", "EMBERTABLE_"))}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, timeout=100)
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: mpi exchange: no launcher started this process")


# Calls of a Python class from C++


class Scripted(et.Exchange):
    """Host 0 of two; `finish` gives what the test wants."""

    def __init__(self, result):
        super().__init__(0, 2)
        self.result = result
        self.reasons = []

    def start(self, channel, stage, messages):
        self.messages = messages

    def finish(self, channel):
        return self.result(self)

    def abort(self, reason):
        self.reasons.append(reason)
        return et.GivenUp(0, reason)


def test_messages_end_with_their_round():
    exchange = Scripted(lambda self: [b"", b""])
    exchange.agree("")
    with pytest.raises(ValueError, match="released"):
        bytes(exchange.messages[1])

    def keep(self):
        self.kept = np.frombuffer(self.messages[1], np.uint8)
        return [b"", b""]

    exchange = Scripted(keep)
    with pytest.raises(RuntimeError, match="agreement were sent, and Python still has a view"):
        exchange.agree("text")


def test_messages_cannot_be_written():
    def write(self):
        self.messages[1][0] = 1

    with pytest.raises(TypeError, match="read-only"):
        Scripted(write).agree("text")


@pytest.mark.parametrize("result, error", [
    (lambda self: None, "TypeError: exchange: finish must return a list, got NoneType"),
    (lambda self: [b""], "ValueError: .*one message of each of 2 hosts, got 1"),
    (lambda self: [b"", "text"], "TypeError: .*message of host 1 must be contiguous bytes, got str"),
    (lambda self: [b"", np.zeros(8, np.uint8)[::2]], "TypeError: .*contiguous bytes, got ndarray"),
    (lambda self: 1 / 0, "ZeroDivisionError: division by zero"),
])
def test_what_finish_must_give(result, error):
    kind, _, text = error.partition(": ")
    with pytest.raises(Exception, match=text) as raised:
        Scripted(result).agree("")
    assert raised.type.__name__ == kind


def test_messages_may_lie_anywhere():
    class Crooked(BoardExchange):
        def finish(self, channel):
            return [memoryview(b"abc" + message)[3:] for message in super().finish(channel)]

    expected = trained(length=60).engine.digest()
    digests = on_all(boards(2, Crooked), lambda exchange: trained(exchange, length=60).engine.digest())
    assert digests == [expected] * 2


def test_an_exception_of_a_method_is_the_cause_on_its_host_and_told_to_the_others():
    class Fails(BoardExchange):
        def finish(self, channel):
            if self.host == 1 and self.broken:
                self.broken = False
                raise OSError(28, "No space left")
            return super().finish(channel)

    exchanges = boards(3, Fails)
    for exchange in exchanges:
        exchange.broken = False

    def body(exchange):
        process = Process(exchange)
        process.step(0)
        process.enqueue(1)
        exchange.broken = True
        error = raises(process.dequeue)
        if exchange.host == 1:
            assert error == "OSError: [Errno 28] No space left"
        else:
            assert error == "GivenUp: host 1: OSError: [Errno 28] No space left"
        process.apply(process.dequeue())
        return process.engine.digest()

    assert on_all(exchanges, body) == [trained(steps=2).engine.digest()] * 3


def test_an_exchange_must_not_call_its_engine():
    class Calls(BoardExchange):
        process, errors = None, ()

        def start(self, channel, stage, messages):
            if self.process:
                self.errors = [raises(call) for call in (self.process.engine.digest, self.process.strategy.initialize)]
            super().start(channel, stage, messages)

    def body(exchange):
        process = Process(exchange)
        process.step(0)
        exchange.process = process
        digest = process.engine.digest()
        exchange.process = None
        assert all("RuntimeError" in error and "call" in error for error in exchange.errors), exchange.errors
        assert len(exchange.errors) == 2
        return digest

    assert on_all(boards(2, Calls), body) == [trained(steps=1).engine.digest()] * 2


def test_other_threads_use_the_engine_while_an_exchange_waits():
    """What the engine's locks keep waiting must not keep the GIL, which the exchange needs."""
    class Slow(BoardExchange):
        def start(self, channel, stage, messages):
            time.sleep(0.01)
            super().start(channel, stage, messages)

    exchanges = boards(2, Slow)
    done = threading.Event()

    def watch(process):
        while not done.is_set():
            process.engine.memory(), process.engine.last_step, process.engine.step, process.engine.built
            process.engine.output_shapes, repr(process.strategy)

    def body(exchange):
        process = Process(exchange)
        process.step(0)
        watcher = threading.Thread(target=watch, args=(process,))
        watcher.start()
        for number in range(1, 4):
            process.step(number)
        return watcher, process.engine.digest()

    results = on_all(exchanges, body)
    done.set()
    for watcher, digest in results:
        watcher.join(60)
        assert digest == trained().engine.digest()


def test_initialize_waits_for_a_step_without_the_gil():
    class Slow(BoardExchange):
        waiting = None

        def start(self, channel, stage, messages):
            if self.waiting:
                self.waiting.set()
                time.sleep(0.05)
            super().start(channel, stage, messages)

    def body(exchange):
        process = Process(exchange)
        process.step(0)
        exchange.waiting = threading.Event()
        ends = threading.Thread(target=lambda: (exchange.waiting.wait(), process.strategy.initialize()), daemon=True)
        ends.start()
        digest = process.engine.digest()
        ends.join(60)
        assert not ends.is_alive()
        return digest

    assert on_all(boards(2, Slow), body) == [trained(steps=1).engine.digest()] * 2


def test_an_exchange_that_holds_its_engine_is_collected():
    exchange = boards(2)[0]
    process = Process(exchange)
    exchange.process = process
    exchange.token = Watched()
    gone = weakref.ref(exchange.token)
    del exchange, process
    gc.collect()
    assert gone() is None


class Watched:
    pass


def test_an_exchange_may_die_on_any_thread():
    process = Process(boards(1)[0])
    process.step(0)
    holder = [process]
    del process
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join(60)
    gc.collect()
