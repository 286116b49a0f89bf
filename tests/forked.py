"""Runs the command line of copies of the package, each time in a fork of one process,
which has imported torch already: python forked.py.

Reads lines of JSON, [folder, arguments]; answers each by the command's exit status. The
folder holds the package, and gets the files stdout and stderr.
"""

import json
import os
import runpy
import sys
import traceback

import torch
import torch.distributed.fsdp


def run(folder: str, arguments: list[str]) -> int:
    """The command's exit status."""
    os.chdir(folder)
    for name, stream in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
    sys.path.insert(0, folder)
    sys.argv = ["annotated_transformer", *arguments]
    try:
        runpy.run_module("annotated_transformer", run_name="__main__")
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """A fork for each line."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            status = run(*json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
