"""The command line: `embertable` or `python -m embertable`, also under mpirun, srun and torchrun."""

import os
import signal
import sys
from typing import NoReturn

from . import Exchange
from ._core import _run_command
from .diagnosis import packages


def connect(deadline: float) -> Exchange:
    import torch.distributed

    from .exchange import TorchDistributed
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    return TorchDistributed(deadline=deadline)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command catches it once there is something to save
    script = os.path.basename(sys.argv[0])
    program = [script] if script == "embertable" else [os.path.basename(sys.executable), "-m", "embertable"]
    return _run_command(program, sys.argv[1:], connect, packages)


def run() -> NoReturn:
    """Ends the interpreter with the exit code of the command; the script `embertable` calls it."""
    status = main()
    if "torch" in sys.modules:
        # At the end of the interpreter torch.distributed would wait for a process that is lost, and its threads may abort.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
