"""What must hold for every exchange, as testing/exchange/contract_test.cc has it: checks that every host runs.

Each is called with the exchange of one host, on a thread or in a process of its own.
"""

import random
import time

import embertable as et

STEP, AHEAD = 0, 1


def message(sender, to, number, size):
    return random.Random(f"{sender} {to} {number}").randbytes(size)


def open_round(exchange, number, sizes, channel=STEP):
    size = sizes if callable(sizes) else lambda sender, to: sizes
    send = [message(exchange.host, to, number, size(exchange.host, to)) for to in range(exchange.hosts)]
    exchange.start(channel, f"messages of step {number}", send)
    return [message(sender, exchange.host, number, size(sender, exchange.host)) for sender in range(exchange.hosts)]


def close_round(exchange, expected, channel=STEP):
    received = exchange.finish(channel)
    for sender in range(exchange.hosts):
        if sender != exchange.host:
            assert bytes(received[sender]) == expected[sender], f"host {exchange.host} from {sender}"
    return received


def meet(exchange, number, sizes, channel=STEP):
    close_round(exchange, open_round(exchange, number, sizes, channel), channel)


def go_on(exchange):
    for number in range(900, 903):
        for channel in (STEP, AHEAD):
            meet(exchange, number, 1500, channel)
    exchange.agree("")


def refusal(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def messages_of_every_size_arrive_whole(exchange):
    for number, size in enumerate((0, 1, 7, 63, 64, 65, 1024, 3967, 3968, 3969, 4096, 65539, 1 << 20)):
        meet(exchange, number, size)


def messages_of_one_round_may_have_unequal_sizes_and_be_empty(exchange):
    for number in range(100):
        some = lambda sender, to: sender * 7919 + to * 104729 + number * 131
        meet(exchange, number, lambda sender, to: 0 if some(sender, to) % 3 == 0 else some(sender, to) % 20011)


def one_may_be_the_only_one_who_sends(exchange):
    for sender in range(exchange.hosts):
        meet(exchange, sender, lambda host, to: 300000 if host == sender else 0)


def a_round_may_be_open_on_each_channel(exchange):
    for number in range(10):
        ahead = open_round(exchange, 100 + number, 100000 if number % 2 == 0 else 10, AHEAD)
        meet(exchange, number, 5000)
        exchange.agree("")
        meet(exchange, 50 + number, 200000 if number % 3 == 0 else 0)
        received = close_round(exchange, ahead, AHEAD)
        meet(exchange, 70 + number, 3000)
        for sender in range(exchange.hosts):  # still there: the channel has started no other round
            assert sender == exchange.host or bytes(received[sender]) == ahead[sender]


def a_late_host_is_waited_for(exchange):
    for late in range(exchange.hosts):
        if exchange.host == late:
            time.sleep(0.05)
        exchange.agree("")


def the_error_of_the_first_is_raised_by_all_and_the_next_call_works(exchange):
    text = "x" * 5000  # longer than a small message
    for at_fault in range(exchange.hosts):
        for fails in (exchange.host == at_fault, exchange.host >= at_fault):
            own = f"{text}{exchange.host}" if fails else ""
            assert refusal(RuntimeError, lambda: exchange.agree(own)) == f"host {at_fault}: {text}{at_fault}"
    go_on(exchange)


class Disk(OSError):
    pass


def expect_failure(exchange, at_fault, body, reason="disk"):
    """Runs an operation as engines do: the hosts at fault raise in it. All are told of the first, and can go on."""
    first = next(host for host in range(exchange.hosts) if at_fault(host))
    told = f"host {first}: {reason} {first}"

    def fail():
        if at_fault(exchange.host):
            raise Disk(f"{reason} {exchange.host}")

    for _ in range(2):
        try:
            body(exchange, fail)
            exchange.agree("")
            raise AssertionError(f"host {exchange.host} was not told")
        except et.GivenUp as error:
            assert not at_fault(exchange.host)
            assert (str(error), error.host) == (told, first)
        except Disk as error:
            others = exchange.abort(str(error))
            assert (str(others), others.host) == (told, first)
        go_on(exchange)


def is_first(host):
    return host == 0


def a_host_may_fail_before_its_first_message(exchange):
    def body(exchange, fail):
        fail()
        meet(exchange, 1, 200000)
        meet(exchange, 2, 200000)
    expect_failure(exchange, is_first, body)


def a_host_may_fail_while_a_round_is_open(exchange):
    def body(exchange, fail):
        messages = open_round(exchange, 1, 200000)
        fail()
        close_round(exchange, messages)
        meet(exchange, 2, 200000)
    expect_failure(exchange, is_first, body)


def a_host_may_fail_after_its_last_message(exchange):
    def body(exchange, fail):
        meet(exchange, 1, 200000)
        fail()
    expect_failure(exchange, is_first, body)


def a_host_may_fail_while_rounds_are_open_on_several_channels(exchange):
    for failing in range(3):
        def body(exchange, fail):
            fails = [fail if failing == i else lambda: None for i in range(3)]
            fails[0]()
            ahead = open_round(exchange, 1, 300000, AHEAD)
            fails[1]()
            now = open_round(exchange, 2, 300000)
            fails[2]()
            close_round(exchange, now)
            now = open_round(exchange, 3, 300000)
            close_round(exchange, ahead, AHEAD)
            close_round(exchange, now)
        expect_failure(exchange, is_first, body)


def the_first_is_named_if_several_fail_in_different_rounds(exchange):
    def body(exchange, fail):
        if exchange.host == 1:
            fail()
        now = open_round(exchange, 1, 200000)
        fail()
        ahead = open_round(exchange, 2, 200000, AHEAD)
        close_round(exchange, now)
        close_round(exchange, ahead, AHEAD)
    expect_failure(exchange, lambda host: host < 2, body)


def all_may_fail(exchange):
    expect_failure(exchange, lambda host: True, lambda exchange, fail: fail())


def hosts_that_start_a_round_differently_are_told_and_can_go_on(exchange):
    if exchange.hosts == 1:
        return

    def rows_here_ids_there(size):
        first = exchange.host == 0
        open_round(exchange, 1 if first else 2, size)
        exchange.finish(STEP)

    def other_channels():
        channel = STEP if exchange.host == 0 else AHEAD
        open_round(exchange, 1, 200000, channel)
        exchange.finish(channel)

    def a_round_less():
        ahead = open_round(exchange, 1, 200000, AHEAD)
        if exchange.host != 0:
            close_round(exchange, ahead, AHEAD)
            meet(exchange, 2, 200000, AHEAD)
        else:
            meet(exchange, 2, 200000)

    def an_agreement_less():
        if exchange.host != 0:
            exchange.agree("")
        meet(exchange, 1, 200000)

    for calls in (lambda: rows_here_ids_there(0), lambda: rows_here_ids_there(200000), other_channels, a_round_less,
                  an_agreement_less):
        text = refusal(et.GivenUp, calls)
        assert ": hosts must make the same calls" in text, text
        go_on(exchange)


CONTRACT = [messages_of_every_size_arrive_whole, messages_of_one_round_may_have_unequal_sizes_and_be_empty,
            one_may_be_the_only_one_who_sends, a_round_may_be_open_on_each_channel, a_late_host_is_waited_for,
            the_error_of_the_first_is_raised_by_all_and_the_next_call_works, a_host_may_fail_before_its_first_message,
            a_host_may_fail_while_a_round_is_open, a_host_may_fail_after_its_last_message,
            a_host_may_fail_while_rounds_are_open_on_several_channels,
            the_first_is_named_if_several_fail_in_different_rounds, all_may_fail,
            hosts_that_start_a_round_differently_are_told_and_can_go_on]
