"""Kills a run that saves often, resumes it, and kills it again: it always ends as an uninterrupted run does.

No kill loses a step whose save had returned. Half of the kills and more strike inside a save, before, in and after each
kind of file operation in turn; the others come from outside at random moments of `embertable train`.

Usage: kill_test.py EMBERTABLE KILL_CHILD KILLS [SEED]
"""

import collections
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from small_run import SmallRun


class Killer:
    def __init__(self, folder, program, child, seed):
        self.run, self.child, self.folder = SmallRun(folder, program), child, folder
        self.draw = random.Random(seed)
        began = time.monotonic()
        self.whole = self.run.train(folder / "whole")[-1]
        self.seconds = time.monotonic() - began
        self.targets = self.list_targets()
        self.kills = collections.Counter()
        self.runs = 0
        self.newest = -1  # the newest step of the run whose save has returned

    def list_targets(self):
        """(phase, when) of everything that a save does, each phase once before any comes again."""
        words = [self.child, "list", self.run.job, self.folder, self.folder / "listed"]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
        # A save far from the first: it removes an old step too.
        phases = [phase for save, phase in (line.split("\t") for line in lines) if save == "5"]
        self.operations = collections.Counter(phases)
        order = self.draw.sample(list(self.operations), len(self.operations))
        first = [(phase, self.draw.choice(["before", "after"])) for phase in order]
        return first + [(phase, "after" if when == "before" else "before") for phase, when in first]

    def kill_inside(self, out):
        """True if the kill came before the run was done."""
        phase, when = self.targets[0]
        nth = self.draw.randrange(self.operations[phase])
        # The first save after a resume may have nothing old to remove yet.
        save = self.draw.randrange(1, 4) if self.runs or self.kills else 4
        words = [self.child, "kill", self.run.job, self.folder, out, str(save), phase, str(nth), when]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if done.returncode == 0:
            return False
        assert done.returncode == -signal.SIGKILL, (done.returncode, done.stderr)
        *saves, last = done.stdout.splitlines()
        assert last == "killed", done.stdout
        self.remember(int(line.removeprefix("saved ")) for line in saves)
        self.targets.append(self.targets.pop(0))
        self.kills[f"{when} {phase}"] += 1
        return True

    def kill_outside(self, out):
        process = subprocess.Popen(self.run.command(out, "--resume"), stdout=subprocess.PIPE, text=True)
        try:
            process.wait(self.draw.uniform(0, self.seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        lines = process.communicate()[0].split("\n")
        if process.returncode == 0:
            return False
        assert process.returncode == -signal.SIGKILL, process.returncode
        events = map(json.loads, lines[:-1])  # the last one may be cut short
        self.remember(event["step"] for event in events if event["event"] == "saved")
        self.kills["from outside"] += 1
        return True

    def remember(self, steps):
        self.newest = max([self.newest, *steps])

    def check_saved(self, out):
        """Nothing that was saved is lost, and what is left is whole: every checksum of every step."""
        found = [int(path.name.removeprefix("step_")) for path in out.glob("step_*")]
        assert max(found, default=-1) >= self.newest, f"step {self.newest} was saved, found {sorted(found)}"
        self.remember(found)
        if not found:
            return
        words = [self.run.program, "verify", "--all", "--json", out]
        checked = subprocess.run(words, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def finish(self, out):
        last = self.run.train(out, "--resume")[-1]
        for key in ("event", "test", "digest", "steps"):
            assert last[key] == self.whole[key], f"{key}: {last[key]}, uninterrupted {self.whole[key]}"
        self.runs += 1

    def kill(self, wanted):
        inside = 0
        while sum(self.kills.values()) < wanted:
            out = self.folder / f"run{self.runs}"
            self.newest = -1
            alive = True
            while alive and sum(self.kills.values()) < wanted:
                # More than half inside: a random moment may well lie in a save too.
                within = inside * 2 <= sum(self.kills.values())
                alive = self.kill_inside(out) if within else self.kill_outside(out)
                inside += within and alive
                self.check_saved(out)
            self.finish(out)
        return inside


def main():
    program, child, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        killer = Killer(pathlib.Path(scratch), program, child, seed)
        inside = killer.kill(kills)
    total = sum(killer.kills.values())
    for place, count in sorted(killer.kills.items()):
        print(f"  {count:4}  {place}")
    print(f"{total} kills, {inside} of them inside a save; {killer.runs} runs, all with digest {killer.whole['digest']}")
    assert total >= kills and inside * 2 >= total
    missed = {f"{when} {phase}" for phase, when in killer.targets} - set(killer.kills)
    assert inside < len(killer.targets) or not missed, f"never hit: {missed}"


if __name__ == "__main__":
    main()
