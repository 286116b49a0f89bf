"""§5.2: one training on several processes, devices and machines."""

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from ..devices import find_device, keep_freed_memory
from ..errors import UserError
from ..model.layers import DecoderLayer, EncoderLayer
from .config import RunConfig
from .trainer import accumulate_gradient


@dataclass(frozen=True)
class World:
    """This process, its device, and the processes that train with it."""

    device: torch.device
    rank: int = 0
    size: int = 1
    group: dist.ProcessGroup | None = None  # of CPUs, for single numbers

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def total(self, value: float) -> float:
        """The sum of a number over all processes."""
        if self.size == 1:
            return value
        number = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(number, dist.ReduceOp.SUM, self.group)
        return number.item()

    def wait(self) -> None:
        """Wait for the others."""
        self.total(0.0)


def join_world(timeout: int = 600, device: str | torch.device | None = None) -> World:
    """This process and its device among those that a launcher started, if it did.

    Without a name the device is a GPU where there is one, else the CPU; one process
    waits `timeout` seconds for the others.
    Raises: UserError for a device that isn't there or a launcher that would not work.
    """
    check_launcher()
    # of compiled products, one for each shape; 1,024 of them fill the memory
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    wanted, size = find_device(device), int(os.environ.get("WORLD_SIZE", "1"))
    if size > 1 and wanted.type == "mps":
        wanted = torch.device("cpu")
    if size > 1 and wanted.type != "cpu":
        wanted = torch.device(wanted.type, int(os.environ["LOCAL_RANK"]))
    if wanted.type == "cuda":
        torch.cuda.set_device(wanted)
    if wanted.type == "cpu":
        keep_freed_memory()
    if size == 1:
        return World(wanted)
    wait = timedelta(seconds=timeout)
    if not dist.is_initialized():
        dist.init_process_group(timeout=wait)
    return World(wanted, dist.get_rank(), size, dist.new_group(None, wait, "gloo"))


def check_launcher(environment: Mapping[str, str] | None = None) -> None:
    """See that the launcher's settings work; `environment` is the process's own.

    Raises: UserError with the remedy when `torchrun` is to restart with a stale store.
    """
    environment = os.environ if environment is None else environment
    restarts = environment.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
    if restarts and environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise UserError(
            "after a restart the processes would look for those that died: launch with "
            "--standalone or --rdzv-backend c10d, and with "
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in the environment"
        )


@contextmanager
def first_process_first(world: World) -> Iterator[None]:
    """The block runs in the first process, then in the others, which wait."""
    if world.size == 1:
        yield
        return
    group = dist.new_group(backend="gloo", timeout=timedelta(days=1))
    if not world.first:
        dist.barrier(group)
    yield
    if world.first:
        dist.barrier(group)
    dist.destroy_process_group(group)


def shard(micro_batches: Sequence[Any], rank: int, world: int) -> list[Any]:
    """One process's part of an update: whole micro-batches if they can be shared out
    evenly, else its rows of each.
    """
    if len(micro_batches) % world == 0:
        return list(micro_batches[rank::world])
    return [batch.shard(rank, world) for batch in micro_batches]


def shard_model(module: nn.Module, world: World) -> nn.Module:
    """The same module, of which each process holds a piece of every weight."""
    mesh = init_device_mesh(world.device.type, (world.size,))
    for layer in module.modules():
        if isinstance(layer, EncoderLayer | DecoderLayer):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh, reshard_after_forward=True)
    return module


class MixedPrecision(nn.Module):
    """An objective whose matrix products run in bfloat16 if that is the `precision`;
    where that is "auto", `fit` chooses.
    """

    def __init__(self, objective: nn.Module, precision: str):
        super().__init__()
        self.objective, self.precision = objective, precision

    def forward(self, batch: Any) -> Tensor:
        """The summed loss of a batch."""
        device, half = next(self.parameters()).device.type, self.precision == "bf16"
        with torch.autocast(device, torch.bfloat16, enabled=half):
            return self.objective(batch)


class Processes:
    """An objective on the device of each process, which make each update together.

    `gradient` is for `train`, `batch_loss` for validation.
    """

    def __init__(self, objective: nn.Module, config: RunConfig, world: World):
        self.world, self.mixed = world, MixedPrecision(objective, config.precision)
        self.objective: nn.Module = self.mixed
        self.gradient: Callable[..., Tensor] = accumulate_gradient
        if world.size > 1:
            self.gradient = self.shared_gradient
        if world.size > 1 and config.sharded:
            shard_model(self.mixed, world)
            return
        self.mixed.to(world.device)
        if world.size > 1:
            own = None if world.device.type == "cpu" else [world.device]
            self.objective = DistributedDataParallel(self.mixed, own)

    def shared_gradient(
        self, objective: nn.Module, micro_batches: Sequence[Any], parts: int
    ) -> Tensor:
        """`accumulate_gradient` of this process's share of the micro-batches.

        PyTorch takes the mean over processes where the sum is wanted, so each divides
        by its part of the tokens; copies exchange gradients after the last part.
        """
        rank, size = self.world.rank, self.world.size
        torch.manual_seed(torch.initial_seed() + rank)
        tokens = sum(batch.tokens for batch in micro_batches) / size
        own = shard(micro_batches, rank, size)
        *others, last = [part for batch in own for part in batch.split(parts)]
        copies = isinstance(objective, DistributedDataParallel)
        with objective.no_sync() if copies else nullcontext():
            summed = accumulate_gradient(objective, others, tokens=tokens)
        return summed + accumulate_gradient(objective, [last], tokens=tokens)

    @torch.no_grad()
    def batch_loss(self, batch: Any) -> float:
        """The summed loss of one batch, all its rows together."""
        own = batch.shard(self.world.rank, self.world.size)
        return self.world.total(self.objective(own).item())


def gather(tensors: Mapping[str, Tensor], keep: bool = True) -> dict[str, Tensor]:
    """Named tensors, whole and on the CPU.

    Every process must ask, also one that does not `keep` them: it gets none.
    """
    gathered = {}
    for name, tensor in tensors.items():
        full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        if keep:
            gathered[name] = full.detach().cpu()
    return gathered


def shard_like(full: Tensor, like: Tensor) -> Tensor:
    """A whole tensor on the device of another one, and cut like it."""
    if not isinstance(like, DTensor):
        return full.to(like)
    return distribute_tensor(full.to(like.device), like.device_mesh, like.placements)


def lost_partner(error: Exception) -> bool:
    """Whether an error only says, in some transport's words, that a process is gone."""
    by_gloo = isinstance(error, RuntimeError) and "gloo" in str(error).lower()
    return by_gloo or isinstance(error, dist.DistError)


def failure_line(error: Exception) -> str:
    """What happened, in one line and with the name of the process and its machine."""
    rank, world = os.environ["RANK"], os.environ["WORLD_SIZE"]
    process = f"rank {rank} of {world} on {socket.gethostname()}"
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    if lost_partner(error) and "timed out" in str(error).lower():
        remedy = "see why they hang, or set a longer timeout"
        return f"{process}: waited in vain for the others ({first}); {remedy}"
    if lost_partner(error):
        remedy = "its own message, or its launcher's, says why"
        return f"{process}: another process is gone ({first}); {remedy}"
    if isinstance(error, UserError | OSError):
        return f"{process}: {first}"
    return f"{process}: {type(error).__name__}: {first}"


def notify_launcher(error: Exception, line: str) -> None:
    """Leave the cause where `torchrun` looks for it; of a bug, with the whole trace."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    mistake = isinstance(error, UserError | OSError)
    text = line if mistake else "".join(traceback.format_exception(error))
    extra = {"py_callstack": text, "timestamp": str(int(time.time()))}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"message": {"message": line, "extraInfo": extra}}, file)


@contextmanager
def report_failure_once(own: float = 2.0, others: float = 10.0) -> Iterator[None]:
    """Of several processes in which the block fails, one says why.

    It raises a UserError of one line, with its rank.
    The first process of a machine speaks at once, another `own` seconds later, and one
    that merely lost its partners `others` seconds later. A launcher ends those that
    still wait, so their lines never appear; one that it had asked to end before its
    partners were lost ends in silence.
    """
    try:
        yield
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception as error:
        if int(os.environ.get("WORLD_SIZE", 1)) == 1:
            raise
        line = failure_line(error)
        if lost_partner(error) and "SIGTERM" in getattr(error, "__notes__", ()):
            sys.exit(128 + signal.SIGTERM)
        if lost_partner(error):
            time.sleep(others)
        else:
            notify_launcher(error, line)
            time.sleep(own if os.environ.get("LOCAL_RANK", "0") != "0" else 0)
        raise UserError(line) from error
