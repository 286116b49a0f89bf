"""Model folders and checkpoints: safetensors and JSON, whole or not at all."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from .. import __version__
from ..errors import UserError
from ..files import MANIFEST, check_regular, new_folder, read_json, write_json
from ..model.config import TransformerConfig
from ..model.costs import parameter_count
from ..model.memory import check_free, check_memory
from .quantization import dequantized, quantized

ANOTHER = "take another copy or an earlier checkpoint"
MOMENTS = "optimizer.safetensors"
MADE_BY = "annotated_transformer"  # of config.json: the version that wrote it


@runtime_checkable
class Savable(Protocol):
    """What can write its own files into a folder: a tokenizer, mostly."""

    def save(self, folder: Path) -> None:
        """Write them."""


def write_model(
    folder: Path, weights: Mapping[str, Tensor], config: Any, tokenizer: Savable | None
) -> None:
    """Write config.json, model.safetensors and the files of a tokenizer, if any."""
    write_tensors(folder / "model.safetensors", weights)
    values = {"model_type": config.model_type, MADE_BY: __version__} | config.to_dict()
    write_json(folder / "config.json", values)
    if tokenizer:
        tokenizer.save(folder)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file. Raises: OSError."""
    detached = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    try:
        save_file(detached, path)
    except SafetensorError as error:  # so it calls a full disk
        raise OSError(str(error)) from None


def save_model(
    folder: str | Path,
    model: nn.Module,
    tokenizer: Savable | None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Save a model folder, whole or not at all, with weights of type `dtype`.

    torch.int8 rounds each matrix as `quantized` does.
    Raises: UserError for a dtype that can't hold the weights, or as `new_folder`.
    """
    model = getattr(model, "_orig_mod", model)  # of a compiled one, the model itself
    parameters = {name: each.detach() for name, each in model.named_parameters()}
    if dtype == torch.int8:
        weights = quantized(parameters)
    elif dtype.is_floating_point:
        weights = {name: each.to(dtype) for name, each in parameters.items()}
    else:
        remedy = "weights are stored as floating-point numbers or int8"
        raise UserError(f"dtype is {dtype}: {remedy}")
    for name, parameter in parameters.items():
        if not torch.equal(weights[name].isfinite(), parameter.isfinite()):
            large = f"tensor {name!r} has values too large for {dtype}"
            raise UserError(f"{large}: choose another dtype")
    with new_folder(folder, "save_model") as draft:
        write_model(draft, weights, model.config, tokenizer)


@contextmanager
def weights_errors(path: Path) -> Iterator[Path]:
    """While a safetensors file is read. Raises: UserError if it is missing or unfit."""
    check_regular(path)
    if not path.exists():
        raise UserError(f"{path} is missing: the checkpoint is incomplete, {ANOTHER}")
    check_free(path.stat().st_size, str(path), ANOTHER)
    try:
        yield path
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}): {ANOTHER}") from None


def load_tensors(path: Path, skipped: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """The tensors of a safetensors file, but those with a `skipped` part of a name.

    Raises: UserError when it is missing, truncated, too large or of an odd type.
    """
    with weights_errors(path):
        tensors = load_file(path)
    tensors = {
        n: t for n, t in tensors.items() if not any(part in n for part in skipped)
    }
    small = sum(each.numel() for each in tensors.values() if each.dtype == torch.int8)
    check_free(4 * small, f"{path}, as float32,", ANOTHER)
    tensors = dequantized(tensors)
    known = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    for name, tensor in tensors.items():
        if tensor.dtype not in known:
            raise UserError(
                f"{path}: tensor {name!r} is of type {tensor.dtype}, and weights are "
                "float32, float16, bfloat16, float64 or int8 with scales: convert them"
            )
    return tensors


def read_weights(folder: Path, skipped: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """The weights of a model folder by name, whoever wrote it.

    Raises: UserError as `load_tensors`, or when they are not finite.
    """
    weights = load_tensors(folder / "model.safetensors", skipped)
    for name, tensor in weights.items():
        if not tensor.float().isfinite().all():  # a float64 may be too large
            raise UserError(
                f"{folder}: tensor {name!r} has values that are no finite numbers: the "
                "training may have diverged; take an earlier checkpoint"
            )
    return weights


def check_shapes(
    wanted: Mapping[str, Tensor], weights: Mapping[str, Tensor], source: Path
) -> None:
    """Raises: UserError naming the first tensor that isn't one of those wanted."""
    for name in sorted(wanted.keys() ^ weights.keys()):
        lack = "has no" if name in wanted else "has an unknown"
        other = "it belongs to another architecture"
        raise UserError(f"{source} {lack} tensor {name!r}: {other}")
    for name, tensor in wanted.items():
        if weights[name].shape != tensor.shape:
            shape, asked = tuple(weights[name].shape), tuple(tensor.shape)
            raise UserError(
                f"{source}: tensor {name!r} has shape {shape}, config.json asks for "
                f"{asked}"
            )


def copy_weights(
    model: nn.Module,
    weights: dict[str, Tensor],
    source: Path,
    like: Callable[[Tensor, Tensor], Tensor] = torch.Tensor.to,
) -> None:
    """Copy tensors into parameters by name. Raises: UserError as `check_shapes`."""
    parameters = dict(model.named_parameters())
    check_shapes(parameters, weights, source)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(like(weights[name], parameter))


def check_layers(config: Any, tensors: int, folder: Path) -> None:
    """Raises: UserError for a configuration of more layers than a file has tensors."""
    layers = getattr(config, "N", 1) + getattr(config, "decoder_N", 0)
    if layers > tensors:
        raise UserError(
            f"{folder}: config.json asks for {layers:,} layers and there are "
            f"{tensors:,} tensors: they don't belong together"
        )


def count_tensors(folder: Path) -> int:
    """How many tensors a model folder has. Raises: UserError as `load_tensors`."""
    with weights_errors(folder / "model.safetensors") as path:
        with safe_open(path, "pt") as file:
            return len(file.keys())


ModelT = TypeVar("ModelT", bound=nn.Module)


def empty_model(
    make: Callable[[Any], ModelT], config: Any, weights: dict[str, Tensor], folder: Path
) -> ModelT:
    """The model that `make` makes of a configuration, on `meta`: it takes no memory.

    Raises: UserError for more layers than tensors, which even `meta` can't build.
    """
    check_layers(config, len(weights), folder)
    with torch.device("meta"):
        return make(config)


def build_model(
    make: Callable[[Any], ModelT], config: Any, weights: dict[str, Tensor], folder: Path
) -> ModelT:
    """The model that `make` makes of a configuration, filled, in evaluation mode.

    Unless the formula says that its size is right, it is made on `meta` first (which
    takes PyTorch two seconds, once), until all shapes fit and there is room.
    Raises: UserError as `empty_model` and `check_shapes`, or for too little memory.
    """
    there = sum(tensor.numel() for tensor in weights.values())
    if isinstance(config, TransformerConfig) and parameter_count(config) == there:
        check_memory(config)
    else:
        empty = empty_model(make, config, weights, folder)
        check_shapes(dict(empty.named_parameters()), weights, folder)
        parts = [*empty.parameters(), *empty.buffers()]  # some buffers are in no file
        needed = 4 * sum(each.numel() for each in parts)
        check_free(needed, f"{folder}: the model", "close other programs")
    model = make(config).float()
    copy_weights(model, weights, folder)
    return model.eval()


def adam_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Adam's two averages for each parameter, as `exp_avg/NAME`, `exp_avg_sq/NAME`."""
    return {
        f"{moment}/{name}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        for moment in ("exp_avg", "exp_avg_sq")
    }


def write_checkpoint(
    folder: Path,
    model: tuple[Mapping[str, Tensor], Any, Savable | None],
    moments: dict[str, Tensor],
    progress: dict[str, Any],
) -> None:
    """Write a checkpoint, whole or not at all: a model as `write_model` takes it, and
    what training needs to go on. Raises: UserError as `new_folder`.
    """
    with new_folder(folder, "write_checkpoint") as draft:
        write_model(draft, *model)
        write_tensors(draft / MOMENTS, moments)
        write_json(draft / "progress.json", progress)


def delete_moments(folder: Path) -> None:
    """Delete Adam's averages from a checkpoint, and from its manifest."""
    manifest = read_json(folder / MANIFEST)
    if manifest["files"].pop(MOMENTS, None):
        write_json(folder / MANIFEST, manifest)
    (folder / MOMENTS).unlink(missing_ok=True)


def load_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    like: Callable[[Tensor, Tensor], Tensor] = torch.Tensor.to,
) -> None:
    """Fill the model and the optimizer from the checkpoint of an update.

    Raises: UserError when it is damaged.
    """
    path, names = folder / MOMENTS, ("exp_avg", "exp_avg_sq")
    moments, named = load_tensors(path), dict(model.named_parameters())
    wanted = {f"{moment}/{name}": named[name] for moment in names for name in named}
    check_shapes(wanted, moments, path)
    copy_weights(model, read_weights(folder), folder, like)
    for name, parameter in named.items():
        count = torch.tensor(float(step), device=parameter.device)
        optimizer.state[parameter] = {"step": count}
        for moment in names:  # copied, so that the file can be deleted
            value = moments[f"{moment}/{name}"].to(parameter.dtype, copy=True)
            optimizer.state[parameter][moment] = like(value, parameter)


def checkpoints(run: Path) -> list[Path]:
    """The whole checkpoints of a run, oldest first."""
    folders = [each for each in run.glob("checkpoints/step-*") if not each.is_symlink()]
    saved = [path for path in folders if re.fullmatch(r"step-\d{8,}", path.name)]
    return sorted(saved, key=lambda path: int(path.name.removeprefix("step-")))
