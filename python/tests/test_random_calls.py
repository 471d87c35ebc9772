"""Random calls end without a crash, a hang or a leak. EMBERTABLE_RANDOM_CALLS says how many there are."""

import os
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).with_name("random_calls.py")


def test_random_calls():
    calls = os.environ.get("EMBERTABLE_RANDOM_CALLS", "1500")
    seed = os.environ.get("EMBERTABLE_TEST_SEED", "20261125")
    arguments = [calls] if seed == "random" else [calls, seed]
    done = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
