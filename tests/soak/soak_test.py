"""Soaks an engine: random calls from several threads, throwing callbacks, restores, kills and damaged files, all on one run.

Starts soak_child on a run directory again and again. Some of its runs are killed at a random moment; between runs, files
of the run are damaged, swapped, cut or replaced by links. All digests that anyone reports for a step must be equal, a save
that has returned must be found after a kill, and the memory of a run must not grow.

Usage: soak_test.py SOAK_CHILD SECONDS. EMBERTABLE_TEST_SEED names the seed, or "random".
"""

import collections
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MOST_GROWTH = 48 << 20  # bytes of resident memory, between the second quarter of a run and the last
FEWEST_EPISODES = 12    # of a run whose memory is looked at


class Soak:
    def __init__(self, folder, child, seed):
        self.folder, self.child = folder, child
        self.draw = random.Random(seed)
        self.digests = {}
        self.counts = collections.Counter()
        self.run = folder / "run"
        self.saved = None  # the newest step whose save has returned since the files were touched

    def steps(self):
        return sorted(self.run.glob("step_" + "[0-9]" * 12))

    def start(self, seconds, kill):
        """One run of the child; True if it ended by itself."""
        words = [self.child, self.run, str(seconds), str(self.draw.randrange(1 << 31))]
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
        if kill:
            try:
                process.wait(self.draw.uniform(0.05, seconds))
            except subprocess.TimeoutExpired:
                process.kill()
        output = process.communicate()[0]
        code = process.returncode
        if code == 3:
            assert self.saved is None, f"step {self.saved} was saved, and no step can be read"
            self.counts["run that nobody can read"] += 1
            shutil.rmtree(self.run)
            return False
        assert code == 0 or (kill and code == -signal.SIGKILL), (words, code, output[-2000:])
        self.check(output, code == 0)
        return code == 0

    def check(self, output, whole):
        resident = []
        lines = output.splitlines()
        for line in lines if whole or output.endswith("\n") else lines[:-1]:
            words = line.split()
            if words[0] in ("tables", "file"):
                step, digest = int(words[1]), words[2]
                known = self.digests.setdefault(step, digest)
                assert digest == known, f"step {step}: {line}, but it was {known} before"
                self.counts[words[0]] += 1
            elif words[0] == "saved":
                self.saved = max(self.saved or 0, int(words[1]))
            elif words[0] == "resident":
                resident.append(int(words[1]))
            elif words[0] == "counts":
                for name, count in zip(words[1::2], words[2::2]):
                    self.counts[name] += int(count)
        if len(resident) >= FEWEST_EPISODES:
            quarter = len(resident) // 4
            before = statistics.median(resident[quarter:2 * quarter])
            after = statistics.median(resident[-quarter:])
            assert after - before < MOST_GROWTH, f"memory grew from {before:.0f} to {after:.0f} bytes"
            self.counts["run whose memory stayed"] += 1

    def check_newest(self):
        """After a kill, the newest save that had returned is there, or a newer one."""
        if self.saved is not None:
            newest = max((int(step.name[5:]) for step in self.steps()), default=-1)
            assert newest >= self.saved, f"step {self.saved} was saved, but the newest is {newest}"

    def damage(self):
        """Spoils files of the run as an accident or an enemy would."""
        if not self.steps():
            return
        step = self.draw.choice(self.steps())
        files = sorted(file for file in step.rglob("*") if file.is_file())
        file = self.draw.choice(files)
        kind = self.draw.choice(["flip", "cut", "remove", "swap", "link", "dangling", "elsewhere"])
        if kind == "flip":
            data = bytearray(file.read_bytes())
            if data:
                data[self.draw.randrange(len(data))] ^= 1 << self.draw.randrange(8)
            file.write_bytes(data)
        elif kind == "cut":
            with file.open("r+b") as opened:
                opened.truncate(self.draw.randrange(file.stat().st_size + 1))
        elif kind == "remove":
            file.unlink()
        elif kind == "swap":
            other = self.draw.choice(self.steps()) / file.relative_to(step)
            if other.exists() and other != file:
                first, second = file.read_bytes(), other.read_bytes()
                file.write_bytes(second)
                other.write_bytes(first)
        elif kind == "link":
            precious = self.folder / "precious"
            precious.write_text("precious")
            (self.run / f".step_{self.draw.randrange(1 << 30):012}_tmp-x").symlink_to(self.folder)
        elif kind == "dangling":
            (self.run / ".lock").unlink(missing_ok=True)
            (self.run / ".lock").symlink_to(self.folder / "victim")
        elif kind == "elsewhere":
            moved = self.folder / f"moved{len(self.digests)}"
            shutil.rmtree(moved, ignore_errors=True)
            shutil.move(step, moved)
            step.symlink_to(moved)
        self.counts[f"damage by {kind}"] += 1
        self.saved = None

    def check_links(self):
        """Nothing was written or removed through a link; a lock that is a link is refused, and then removed."""
        if (self.run / ".lock").is_symlink():
            refused = subprocess.run([self.child, self.run, "1", "1"], capture_output=True, text=True)
            assert refused.returncode == 1 and "it is a link" in refused.stdout, refused
            (self.run / ".lock").unlink()
        assert not (self.folder / "victim").exists(), "a lock was written through a link"
        precious = self.folder / "precious"
        assert not precious.exists() or precious.read_text() == "precious"
        for moved in self.folder.glob("moved*"):
            assert any(moved.iterdir()), f"{moved} was emptied through a link"

    def soak(self, seconds):
        end = time.monotonic() + seconds
        self.start(max(4, seconds // 3), kill=False)
        first = True
        while first or time.monotonic() < end:
            first = False
            for _ in range(self.draw.randrange(1, 4)):
                self.start(2, kill=True)
                self.check_newest()
                self.counts["kill"] += 1
            self.damage()
            self.check_links()
            self.start(min(60, max(1, seconds // 20)), kill=False)
            self.check_links()


def main():
    child, seconds = sys.argv[1], int(sys.argv[2])
    seed = os.environ.get("EMBERTABLE_TEST_SEED", "1")
    seed = random.SystemRandom().randrange(1 << 31) if seed == "random" else int(seed)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        soak = Soak(pathlib.Path(scratch), child, seed)
        soak.soak(seconds)
    for name, count in sorted(soak.counts.items()):
        print(f"  {count:8}  {name}")
    for name in ("step", "save", "restore", "kill", "throw_in_apply_gradients"):
        assert soak.counts[name] > 0, f"there was no {name}"


if __name__ == "__main__":
    main()
