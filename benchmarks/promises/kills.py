"""SIGKILL at random moments of a training run, again and again.

    python -m benchmarks.promises.kills [--kills N] [--only KIND …] [--no-record]

A run of 100 updates with a checkpoint after each fourth is killed at random moments of
its life, from the making of its vocabulary to the averaging at its end, and started
again, until it is done; then the next one, N kills in all (200 if not named). Half of
them are of a run by one process, and half of a run by two, of which one is killed or
both; one in twenty happens under torchrun, which starts the two again by itself. Losses
and weights must be those of a run that was left alone, bit for bit, and no draft may be
left. A fourth kind is interrupted by Ctrl-C twice within 50 ms, N/4 times: it must end
without a traceback, and go on as well.
Writes results/promises/kills.json, for nbs/promises.md. About ten minutes on one core.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import record
from benchmarks.promises import forks

SETTINGS = "steps=100 save_every=4 keep=2"
ALONE = {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "MASTER_ADDR": "127.0.0.1",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}


class Attack:
    """A run by some processes, which are killed until it has been killed so often."""

    def __init__(self, scratch: Path, processes: int, kills: int, seed: int):
        self.scratch, self.processes, self.left = scratch, processes, kills
        self.random, self.counts = random.Random(seed), Counter[str]()
        self.run, self.failures = scratch / "run", list[str]()
        begun = time.monotonic()
        self.whole = self.alone()
        self.seconds = time.monotonic() - begun

    def start(self) -> list[int]:
        """The processes of the run, as torchrun starts them, or one alone."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        several = {"WORLD_SIZE": str(self.processes), "MASTER_PORT": port}
        children = []
        for rank in range(self.processes):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), **several}
            environment = ALONE | (own if self.processes > 1 else {})
            place, command = self.scratch / f"said-{rank}", self.command()
            children.append(forks.fork(command, place, environment=environment))
        return children

    def command(self) -> list[object]:
        return forks.training(self.scratch / "text", self.run, SETTINGS)

    def alone(self) -> Any:
        """The result of a run that nobody disturbs."""
        shutil.rmtree(self.run, ignore_errors=True)
        self.finish()
        return self.result()

    def finish(self) -> None:
        """Let the run come to its end."""
        for rank, child in enumerate(self.start()):
            done = forks.wait(child, self.scratch / f"said-{rank}")
            self.expect(done.status == 0, f"a start after a kill: {done}")

    def result(self) -> Any:
        """What must be the same: losses, and the files of the model."""
        return forks.losses(self.run), forks.contents(self.run / "model")

    def expect(self, right: bool, words: str) -> None:
        if not right:
            self.failures.append(words[-1500:])
            print("FAILED", words[-1500:], file=sys.stderr)

    def attack(self) -> dict[str, Any]:
        """Kill until there have been enough kills; returns the counts."""
        finished = 0
        while self.left > 0:
            shutil.rmtree(self.run, ignore_errors=True)
            killed = 0
            while self.left > 0 and killed < 12 and self.strike():
                killed, self.left = killed + 1, self.left - 1
            self.finish()
            finished += 1
            self.expect(self.result() == self.whole, f"another result, {killed} kills")
            left = forks.hidden(self.run)
            self.expect(not left, f"left behind: {left}")
        outcomes = dict(sorted(self.counts.items()))
        return {"runs": finished, "kills": outcomes, "failures": self.failures}

    def strike(self) -> bool:
        """Start the run and kill it somewhere; False if it was done before."""
        children = self.start()
        moment = time.monotonic() + self.random.uniform(0, 0.6 * self.seconds)
        while time.monotonic() < moment:
            if any(forks.ended(child) for child in children):
                break
            time.sleep(0.001)
        killed = self.end(children)
        for rank, child in enumerate(children):
            forks.wait(child, self.scratch / f"said-{rank}")
        if killed:
            self.counts[self.where()] += 1
        return killed

    def end(self, children: Sequence[int]) -> bool:
        """Kill one of the processes or all; the launcher would end the others."""
        living = [child for child in children if not forks.ended(child)]
        for child in living if self.random.random() < 0.5 else living[-1:]:
            os.kill(child, signal.SIGKILL)
        for signal_sent in (signal.SIGTERM, signal.SIGKILL):
            for child in children:
                if not forks.ended(child):
                    os.kill(child, signal_sent)
            limit = time.monotonic() + 0.2
            while time.monotonic() < limit and not all(map(forks.ended, children)):
                time.sleep(0.005)
        return len(living) == len(children)

    def where(self) -> str:
        """Where in its life the run was, by what is there."""
        if not (self.run / "run.json").exists():
            return "before the first update"
        left = forks.hidden(self.run)
        if any(".draft-" in name or ".old-" in name for name in left):
            return "while a folder was written"
        if (self.run / "model").exists():
            return "after the end"
        return "between two checkpoints"


class Interrupted(Attack):
    """A run that Ctrl-C interrupts twice within 50 ms."""

    def end(self, children: Sequence[int]) -> bool:
        (child,) = children
        if forks.ended(child):
            return False
        os.kill(child, signal.SIGINT)
        time.sleep(self.random.uniform(0, 0.05))
        if not forks.ended(child):
            os.kill(child, signal.SIGINT)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        said = (self.scratch / "said-0" / "err").read_text()
        self.expect(said == "", f"after Ctrl-C twice: {said}")
        return True


class Launched(Attack):
    """A run under torchrun, which starts its processes again when one is killed."""

    def finish(self) -> None:
        self.launch(0)

    def attack(self) -> dict[str, Any]:
        kills, finished = self.left, 0
        while self.left > 0:
            shutil.rmtree(self.run, ignore_errors=True)
            self.launch(min(self.left, 5))
            finished += 1
            self.expect(self.result() == self.whole, "another result under torchrun")
            self.expect(not forks.hidden(self.run), str(forks.hidden(self.run)))
        return {"runs": finished, "kills": {"started again": kills - self.left}} | {
            "failures": self.failures
        }

    def launch(self, kills: int) -> None:
        """A whole run, of which so many workers are killed."""
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node", "2", "--max-restarts", str(kills)]
        words += ["--monitor-interval", "0.1", "-m", "annotated_transformer"]
        command = [*words, *map(str, self.command())]
        environment = os.environ | ALONE | {"PYTHONPATH": str(record.ROOT)}
        with (self.scratch / "torchrun").open("w") as said:
            process = subprocess.Popen(
                command, env=environment, stdout=said, stderr=subprocess.STDOUT
            )
        for _ in range(kills):
            self.left -= self.kill_worker(process)
        process.wait()
        said_all = (self.scratch / "torchrun").read_text()
        self.expect(process.returncode == 0, said_all)

    def kill_worker(self, launcher: subprocess.Popen) -> bool:
        """Kill one worker of a launcher after its first update."""
        log, before = self.run / "log.jsonl", set(self.workers(launcher))
        size = log.stat().st_size if log.exists() else 0
        while launcher.poll() is None:
            workers = self.workers(launcher)
            grown = log.exists() and log.stat().st_size != size
            if len(workers) == 2 and grown and (set(workers) != before or not size):
                time.sleep(self.random.uniform(0, 0.3))
                os.kill(self.random.choice(workers), signal.SIGKILL)
                return True
            time.sleep(0.01)
        return False

    def workers(self, launcher: subprocess.Popen) -> list[int]:
        """The processes that a launcher has started."""
        path = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
        return [int(word) for word in path.read_text().split()] if path.exists() else []


KINDS = {
    "one process": lambda at, kills: Attack(at, 1, kills - kills // 2, seed=1),
    "two processes": lambda at, kills: Attack(at, 2, kills // 2 - kills // 20, seed=2),
    "torchrun": lambda at, kills: Launched(at, 2, kills // 20, seed=3),
    "Ctrl-C twice": lambda at, kills: Interrupted(at, 1, kills // 4, seed=4),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack in every way, and write the record; status 1 after a broken promise."""
    parser = record.command_line(__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--no-record", action="store_true", help="write nothing")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(os.path.realpath(name))
        forks.write_pairs(scratch / "text")
        for kind in chosen.only:
            found[kind] = KINDS[kind](scratch, chosen.kills).attack()
            print(kind, found[kind], flush=True)
    failures = sum(len(each["failures"]) for each in found.values())
    print(f"{failures} broken promises")
    if not chosen.no_record:
        figures = {"kills": chosen.kills, "failures": failures, "kinds": found}
        record.save("promises/kills.json", figures)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
