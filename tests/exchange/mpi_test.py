"""The exchange between processes, under the launcher of an MPI.

    mpi_test.py CONTRACT PEER ENGINES [--linked PROGRAM]   with the machine's mpirun and two ranks; skipped where there is none
    mpi_test.py CONTRACT PEER ENGINES --grid FOLDER...     with every MPI that is found on this machine and in the folders of
                                                           virtual environments, with 2, 3 and 4 ranks; ranks are killed and
                                                           stopped at every message of a step, a save and a restore; with
                                                           Open MPI also over TCP, there from 5 on only stopped, unless
                                                           ULFM reports those that are killed, which is tried on both ways
    mpi_test.py CONTRACT PEER ENGINES --losses FOLDER...   with the MPIs of these folders, only those that are lost in engines

CONTRACT, PEER and ENGINES are mpi_exchange_test, exchange_peer and engine_rank. The last two take minutes.
"""

import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile
import time

from mpi_launchers import Mpi, find_all, find_one, with_options

SKIPPED = 77
TRY_AGAIN = 75  # the exit status of ranks that have missed another
DEADLINE = 2  # seconds after which a rank counts as missing, in these tests
AT_ONCE = 6   # losses that are tried beside each other: their ranks mostly wait

# Where a rank of peer.cc is lost -> the stages in which another may wait for it then. After "rows open" its large
# message may have left or not.
POINTS = {
    "row numbers": ["row numbers of step 3"],
    "rows": ["rows of step 3"],
    "rows open": ["rows of step 3", "gradients of step 3"],
    "gradients": ["gradients of step 3"],
    "ids": ["the end of step 3"],
    "agreement": ["the end of step 3"],
    "failure": ["the end of a failed operation", "rows of step 3"],
}


def try_contract(mpi, contract, ranks, options=()):
    begin = time.monotonic()
    status, output = mpi.run(ranks, contract, "--gtest_brief=1", *options, timeout=300)
    passed = len(re.findall(r"PASSED", output))
    if status != 0 or passed != ranks:
        print(output)
        return f"{mpi.name}: {ranks} ranks: {passed} passed, exit status {status}"
    print(f"{mpi.name}: {ranks} ranks keep the contract ({time.monotonic() - begin:.1f} s)", flush=True)
    return None


def missed(mpi):
    """What is said of a lost rank. An MPI that reports it does not let the others wait for the deadline."""
    reported = r"is lost \(.*\)"
    return reported if mpi.reports else rf"(has not come within {DEADLINE} s|{reported})"


def try_loss(mpi, peer, ranks, victim, point, how, patience=30):
    """Loses a rank. Each of the others names it, and the stage; all say the same."""
    what = f"{mpi.name}: {ranks} ranks, rank {victim} is lost by {how} at '{point}'"
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        status, output = mpi.run(ranks, peer, folder, point, how, victim, DEADLINE, timeout=patience, survive=how == "kill")
        took = time.monotonic() - begin
        survivors = set(range(ranks)) - {victim}
        texts = {int(path.name): path.read_text() for path in pathlib.Path(folder).iterdir() if path.name.isdigit()}
    texts.pop(victim, None)  # a launcher wakes a stopped rank to end it, which may then read what the others said
    told = rf"mpi exchange: rank {victim} {missed(mpi)}; rank \d waited in: "
    stages = POINTS[point]
    if mpi.reports:  # it drops what it has not yet delivered
        stages = ["the end of step 2", *(stage for each in list(POINTS)[:list(POINTS).index(point) + 1] for stage in POINTS[each])]
    told += "(" + "|".join(map(re.escape, stages)) + ")"
    if set(texts) != survivors or any(not re.fullmatch(told, text) for text in texts.values()):
        return f"{what}: exit status {status} after {took:.1f} s, {texts}\n{output[-1500:]}"
    if status == 0 and how == "stop":  # launchers that let ranks survive hide the status
        return f"{what}: the exit status is 0"
    return None


def try_unwinding(mpi, peer):
    """Lets a program throw while a round is open. It ends without MPI's end, which would wait for the round's messages."""
    with tempfile.TemporaryDirectory() as folder:
        status, output = mpi.run(2, peer, folder, "rows open", "throw", 1, DEADLINE, timeout=60)
        end = pathlib.Path(folder, "1.end")
        text = end.read_text() if end.exists() else "did not come to its end"
    return None if text == "not finalized" else f"{mpi.name}: a rank that throws: {text}, exit status {status}\n{output[-1500:]}"


def calls_of(mpi, engines, operation):
    """The calls that an engine makes of its exchange in a step, a save or a restore, and in the digest that follows."""
    with tempfile.TemporaryDirectory() as folder:
        status, output = mpi.run(2, engines, "lose", folder, operation, -1, "kill", 1, 60, timeout=120)
        calls = pathlib.Path(folder, "0")
        assert status == 0 and calls.exists(), f"{mpi.name}: {operation}: exit status {status}\n{output}"
        return calls.read_text().splitlines()


def try_event(mpi, engines, ranks, victim, operation, calls, event, how):
    """Loses a rank before one of its calls. Each of the others names it, and the first stage that it has not started; or
    the one that it has not finished, since a large message of it may not have left. Where MPI reports the loss, it drops what
    it has not yet delivered, which may be of the last round that the rank did finish."""
    what = f"{mpi.name}: {ranks} ranks, rank {victim} is lost by {how} before call {event} of a {operation}, '{calls[event]}'"
    stages = [next(call for call in calls[event:] if call.startswith("start "))]
    if calls[event] == "finish":
        stages.append(next(call for call in reversed(calls[:event]) if call.startswith("start ")))
    if mpi.reports:
        stages += [call for call in calls[:event] if call.startswith("start ")][-2:]
    with tempfile.TemporaryDirectory() as folder:
        status, output = mpi.run(ranks, engines, "lose", folder, operation, event, how, victim, DEADLINE, timeout=60,
                                 survive=how == "kill")
        texts = {int(path.name): path.read_text() for path in pathlib.Path(folder).iterdir() if path.name.isdigit()}
    texts.pop(victim, None)
    told = rf"mpi exchange: rank {victim} {missed(mpi)}; rank \d waited in: "
    told += "(" + "|".join(re.escape(stage.removeprefix("start ")) for stage in stages) + ")" + r"(; its tables are half read; restore again)?$"
    for text in texts.values():
        seconds, error = text.split("\n", 1) if "\n" in text else ("99", text)
        if not re.search(told, error) or float(seconds) > DEADLINE + 1:
            return f"{what}: {texts}"
    if set(texts) != set(range(ranks)) - {victim} or (mpi.reports and status != TRY_AGAIN):
        return f"{what}: exit status {status}, {texts}\n{output[-1500:]}"
    if status == 0 and how == "stop":
        return f"{what}: the exit status is 0"
    return None


def try_events(mpi, engines, every):
    """All calls of a step, a save and a restore, or some of each; problems, and how many were tried."""
    points = []
    for operation in ("step", "save", "restore"):
        calls = calls_of(mpi, engines, operation)
        last = max(event for event, call in enumerate(calls) if call.startswith("start "))
        events = range(last + 1) if every else [min(2, last)]
        for number, event in enumerate(events):
            for how in mpi.losses() if every else ("stop",):
                ranks = 2 + number % 3 if every else 2
                points.append((ranks, (0, ranks - 1)[how == "kill"], operation, calls, event, how))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda point: try_event(mpi, engines, *point), points))


def losses_in_engines(mpi, engines):
    begin = time.monotonic()
    lost = try_events(mpi, engines, every=True)
    print(f"{mpi.name}: {lost.count(None)} of {len(lost)} losses in engines are noticed "
          f"({time.monotonic() - begin:.0f} s)", flush=True)
    return lost


def try_linked(mpi, program):
    """Runs the program that is linked with Open MPI; with an argument, it initialises MPI below the level."""
    for arguments in ([], ["funneled"]):
        status, output = mpi.run(3, program, *arguments, timeout=60)
        if status != 0 or "does not hold" in output:
            return f"{mpi.name}: {program} {arguments}: exit status {status}\n{output}"
    return None


def grid(contract, peer, engines, folders):
    problems = []
    for mpi in (each for found in find_all(folders) for each in with_options(found)):
        for ranks in (2, 3, 4):
            problems.append(try_contract(mpi, contract, ranks))
        begin, count, tried = time.monotonic(), 0, 0
        for number, point in enumerate(POINTS):
            for how in mpi.losses():
                if point == "rows open" and how == "kill" and not mpi.is_open_mpi:
                    continue  # UCX, which may be below, ends a process that reads the memory of one that was killed
                ranks = 2 + number % 3
                problems.append(try_loss(mpi, peer, ranks, (0, ranks - 1)[how == "kill"], point, how))
                count += problems[-1] is None
                tried += 1
        problems.append(try_unwinding(mpi, peer))
        print(f"{mpi.name}: {count} of {tried} losses of a rank are noticed "
              f"({time.monotonic() - begin:.0f} s)", flush=True)
        problems += losses_in_engines(mpi, engines)
    return problems


def two_ranks(contract, peer, engines, linked):
    mpi = find_one()
    if mpi is None:
        print("skipped: there is no mpirun")
        return None
    problems = [try_contract(mpi, contract, 2), try_loss(mpi, peer, 2, 1, "rows", "stop"), try_unwinding(mpi, peer)]
    problems += try_events(mpi, engines, every=False)
    if linked and mpi.is_open_mpi:
        problems.append(try_linked(mpi, linked))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contract")
    parser.add_argument("peer")
    parser.add_argument("engines")
    parser.add_argument("--linked", help="a program that is linked with the Open MPI of this machine")
    parser.add_argument("--grid", nargs="*", metavar="FOLDER")
    parser.add_argument("--losses", nargs="+", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.losses:
        problems = [problem for folder in arguments.losses for mpi in with_options(Mpi(pathlib.Path(folder) / "bin/mpirun"))
                    for problem in losses_in_engines(mpi, arguments.engines)]
    elif arguments.grid is None:
        problems = two_ranks(arguments.contract, arguments.peer, arguments.engines, arguments.linked)
    else:
        problems = grid(arguments.contract, arguments.peer, arguments.engines, arguments.grid)
    if problems is None:
        return SKIPPED
    problems = [problem for problem in problems if problem]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
