"""Loss and speed of a run, for its log and for whoever watches it."""

import time
from typing import TYPE_CHECKING

import torch

from ..errors import UserError
from .update import Update

if TYPE_CHECKING:
    from .run import Run


def check_finite(loss: float, step: int) -> float:
    """The loss itself. Raises: UserError when it is no number, or 700 and more, where
    its perplexity outgrows a 64-bit float.
    """
    if not loss < 700:
        raise UserError(
            f"the loss is {loss} after update {step}: the run has diverged; lower "
            "peak or lengthen warmup and start again in another folder"
        )
    return loss


class Meter:
    """Adds up loss and tokens between two log lines, without waiting for the device.

    It keeps two times: the run's age, and what went into updates since the last line.
    """

    def __init__(self, run: "Run"):
        self.run, self.tokens = run, run.progress.tokens
        precise = torch.float32 if run.world.device.type == "mps" else torch.float64
        loss_so_far = run.progress.loss_sum if run.world.first else 0.0
        self.loss = torch.tensor(loss_so_far, dtype=precise, device=run.world.device)
        self.fresh_tokens, self.spent = 0, 0.0
        self.clock = self.shown = time.perf_counter()

    def add(self, update: Update) -> None:
        """Count one update: this process's part of the loss, the tokens of all."""
        self.loss += update.loss
        self.tokens += update.tokens
        self.fresh_tokens += update.tokens

    def _lap(self) -> None:
        """Stop the time after updates, when the device has made them."""
        self.loss.item()
        self.spent += self.pause()

    def pause(self) -> float:
        """Count the time since the last look for the run's age alone; returns it."""
        now = time.perf_counter()
        passed, self.clock = now - self.clock, now
        self.run.progress.seconds += passed
        return passed

    def _record(self, event: str, loss: float) -> dict[str, int | float | str]:
        progress = self.run.progress
        return {
            "event": event,
            "step": progress.step,
            "epoch": progress.epoch,
            "loss": loss,
            "lr": self.run.optimizer.param_groups[0]["lr"],
            f"{self.run.task.unit}_per_second": round(
                self.fresh_tokens / self.spent, 1
            ),
            "seconds": round(progress.seconds, 2),
        }

    def show(self) -> None:
        """Report loss and speed so far about once a second; nothing is logged."""
        if self.run.world.first and time.perf_counter() - self.shown > 1:
            self._lap()
            own = self.loss.item() * self.run.world.size / self.tokens
            self.run.show(self._record("progress", own))
            self.shown = time.perf_counter()

    def log(self) -> None:
        """Log the mean loss since the last line, the learning rate, and the speed."""
        self._lap()
        mean = self.run.world.total(self.loss.item()) / self.tokens
        loss = check_finite(mean, self.run.progress.step)
        self.run.write_record(self._record("update", loss))
        self.loss.zero_()
        self.tokens = self.fresh_tokens = 0
        self.spent, self.shown = 0.0, time.perf_counter()

    def store(self) -> None:
        """Write what has gathered since the last log line into the progress."""
        self._lap()
        progress = self.run.progress
        progress.loss_sum = self.run.world.total(self.loss.item())
        progress.tokens = self.tokens
        check_finite(progress.loss_sum / max(self.tokens, 1), progress.step)
