"""The command line with a fault in one of several processes: python faulty_cli.py FAULT
RANK STEP ARGUMENTS….

FAULT is raise, kill or hang; it happens at the start of update STEP, in the first
attempt only.
"""

import os
import signal
import sys
import time
from itertools import count

import torch

from annotated_transformer import cli
from annotated_transformer.training.distributed import Processes


def main() -> None:
    """Put the fault into the training loop, then be the command line."""
    torch.set_num_threads(1)
    fault, rank, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
    working, made = Processes.shared_gradient, count(1)

    def gradient(processes, *arguments):
        first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if next(made) == step and first and os.environ["RANK"] == rank:
            if fault == "raise":
                raise RuntimeError("the cosmic ray")
            if fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "hang":
                time.sleep(600)
        return working(processes, *arguments)

    Processes.shared_gradient = gradient
    sys.argv = ["annotated-transformer", *sys.argv[4:]]
    cli.main()


if __name__ == "__main__":
    main()
