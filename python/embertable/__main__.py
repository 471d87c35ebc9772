"""The command line: `python -m embertable train JOB.toml --out DIR`, also under mpirun, srun and torchrun."""

import os
import signal
import sys

from . import Exchange
from ._core import _run_command


def connect(deadline: float) -> Exchange:
    import torch.distributed

    from .exchange import TorchDistributed
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    return TorchDistributed(deadline=deadline)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command catches it once there is something to save
    return _run_command([os.path.basename(sys.executable), "-m", "embertable"], sys.argv[1:], connect)


if __name__ == "__main__":
    status = main()
    if "torch" in sys.modules:
        # At the end of the interpreter torch.distributed would wait for a process that is lost, and its threads may abort.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
