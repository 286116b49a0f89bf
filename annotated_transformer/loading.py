"""The one opener: whatever holds a model, as a translator.

`load` asks each kind of the table `KINDS` in turn whether a name is one of its own. A
new kind of model is a new line there.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError, nearest

if TYPE_CHECKING:
    import torch

    from .data.tokenizer import PairTokenizer
    from .model.config import TransformerConfig
    from .model.transformer import Transformer
    from .translation.search import SearchEngine
    from .translation.translator import Translator

SHIPPED = "tatoeba-en-de"  # what is opened where no model is named
PRETRAINED = Path(__file__).parent / "pretrained"


def load(
    name: str | Path = SHIPPED,
    *,
    device: "str | torch.device | None" = None,
    precision: str = "float32",
    engine: str = "torch",
) -> "Translator | Any":
    """The translator of a model, by its name or its place.

    A folder that holds a machine of another kind (a classifier, a language model, …)
    opens as that machine, in float32; `precision` and `engine` are for translators.

    `name` is that of a model which comes with the package, a run's folder, a model folder (trained or imported),
    a Marian directory as it was downloaded, or "owner/name" on the Hugging Face Hub.

    `device` None is a GPU where there is one, else the CPU. `engine` is what searches:
    "torch" is the fast form of the model, "plain" the readable one, "ctranslate2"
    another program (extra `fast`) that also has int8.

    Raises: UserError naming what is missing, damaged, foreign or unknown.
    """
    from .translation.translator import Translator

    if engine not in ENGINES:
        raise UserError(f"unknown engine {engine!r}: {nearest(engine, ENGINES)}")
    check_precision(precision, engine)
    place = find_device(device)
    if engine == "ctranslate2" and device is None and place.type == "mps":
        place = find_device("cpu")  # CTranslate2 has no Metal
    kind, folder = find_model(name)
    if kind.open:
        return kind.open(folder, place)
    model, tokenizer = open_model(folder, place)
    return Translator(model, tokenizer, ENGINES[engine](model, tokenizer, precision))


# -- engines ---------------------------------------------------------------------------


def _torch(model: "Transformer", _: Any, precision: str) -> "SearchEngine":
    from .engine.decoding import fast
    from .translation.search import ModelSearch

    return ModelSearch(fast(model, precision))


def _plain(model: "Transformer", _: Any, precision: str) -> "SearchEngine":
    from .translation.search import ModelSearch

    return ModelSearch(model)


def _ctranslate2(
    model: "Transformer", tokenizer: "PairTokenizer", precision: str
) -> "SearchEngine":
    from .engine.ctranslate2 import CTranslate2Engine

    check_transformer(model, "CTranslate2")
    device = model.tgt_embedding.weight.device
    return CTranslate2Engine(model, tokenizer, precision, device)


def check_transformer(model: Any, program: str) -> None:
    """Raises: UserError for a model that is none, for a program that knows no other."""
    from .model.transformer import Transformer

    changed = getattr(model.config, "parts", None)
    if changed or not isinstance(model, Transformer):
        raise UserError(
            f"{program} knows the paper's Transformer alone, and this is a "
            f"{model.config.kind} model: take the engine 'torch'"
        )


ENGINES = {"torch": _torch, "plain": _plain, "ctranslate2": _ctranslate2}
PRECISIONS = {
    "torch": ("float32", "bfloat16"),
    "plain": ("float32",),
    "ctranslate2": ("float32", "bfloat16", "int8"),
}


def check_precision(precision: str, engine: str) -> None:
    """Raises: UserError for a precision that the engine lacks, naming the engines that have it."""
    if precision in PRECISIONS[engine]:
        return
    having = [name for name in ENGINES if precision in PRECISIONS[name]]
    if not having:
        known = {name for names in PRECISIONS.values() for name in names}
        raise UserError(f"unknown precision {precision!r}: {nearest(precision, known)}")
    raise UserError(
        f"the engine {engine!r} has no precision {precision!r}: take the engine "
        f"{' or '.join(map(repr, having))}"
    )


# -- devices ---------------------------------------------------------------------------


def find_device(name: "str | torch.device | None" = None) -> "torch.device":
    """The device of this name, after a trial that it works; None: a GPU if there is one.

    Apple's MPS counts as a GPU. Raises: UserError when the device is not there.
    """
    import torch

    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    gpus += ["mps"] * torch.backends.mps.is_available()
    if name is None:
        return torch.device(gpus[0] if gpus else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        there = ", ".join(["cpu", *gpus])
        raise UserError(
            f"device {str(name)!r} is not there: choose one of {there}"
        ) from None
    return device


# -- kinds of models -------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One kind of thing that holds a model: how to know it, and how to open it.

    `follow` is for a name that stands for a folder: it finds that folder, which is then
    of another kind. `config` and `read` are for a translator's folder, `open` for that
    of any other machine.
    """

    title: str
    fits: Callable[[str], bool]
    follow: Callable[[str], Path] | None = None
    config: "Callable[[Path], TransformerConfig] | None" = None
    read: "Callable[[Path, torch.device], tuple[Any, Any]] | None" = None
    open: "Callable[[Path, torch.device], Any] | None" = None


def open_model(
    name: str | Path, device: "torch.device"
) -> "tuple[Transformer, PairTokenizer]":
    """The model and the tokenizer that a name of any kind stands for.

    Raises: UserError as `load`.
    """
    kind, folder = find_model(name)
    if not kind.read:
        raise UserError(f"{name} holds {kind.title}, which doesn't translate")
    return kind.read(folder, device)


def architecture(name: str | Path) -> "TransformerConfig":
    """The configuration of a model of any kind; its weights are not read.

    Raises: UserError as `load`.
    """
    kind, folder = find_model(name)
    if not kind.config:
        raise UserError(f"{name} holds {kind.title}, which doesn't translate")
    return kind.config(folder)


def find_model(name: str | Path) -> tuple[Kind, Path]:
    """The folder that holds the model of this name, and what kind of folder it is.

    Raises: UserError for a name of no kind.
    """
    from .files import restore

    for folder in (Path(name), Path(name) / "model"):
        restore(folder)
    for kind in KINDS:
        if kind.fits(str(name)):
            if kind.follow:
                return find_model(kind.follow(str(name)))
            return kind, Path(name)
    if Path(name).is_dir():
        raise UserError(
            f"{name} holds no model: name a folder with a config.json and its weights, "
            "or a run's folder"
        )
    raise UserError(
        f"{name}: there is no such model; name a folder, a model of the Hub as "
        f"owner/name, or what comes with the package: {', '.join(shipped())}"
    )


def model_card(name: str | Path) -> str:
    """What a model's folder says about it in card.md: data, licence, scores, limits.

    Raises: UserError as `load`.
    """
    path = find_model(name)[1] / "card.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _trained_config(folder: Path) -> "TransformerConfig":
    from .model.config import TransformerConfig
    from .training.checkpoint import read_config

    return read_config(folder, TransformerConfig)


def _read_trained(folder: Path, device: "torch.device") -> tuple[Any, Any]:
    from .training.checkpoint import load_model

    return load_model(folder, device)


def _is_imported(name: str) -> bool:
    from .after.pretrained import is_marian

    return _has_config(name) and is_marian(name)


def _imported_config(folder: Path) -> "TransformerConfig":
    from .after.pretrained import MarianConfig
    from .training.checkpoint import read_config

    return read_config(folder, MarianConfig)


def _read_marian(folder: Path, device: "torch.device") -> tuple[Any, Any]:
    from .after.pretrained import load_marian

    return load_marian(folder, device)


def _is_recurrent(name: str) -> bool:
    from .translation.race import is_recurrent

    return _has_config(name) and is_recurrent(name)


def _recurrent_config(folder: Path) -> Any:
    from .translation.race import read_recurrent_config

    return read_recurrent_config(folder)


def _read_recurrent(folder: Path, device: "torch.device") -> tuple[Any, Any]:
    from .translation.race import load_recurrent

    return load_recurrent(folder, device)


def _is_since_2017(name: str) -> bool:
    from .after.since_2017 import is_since_2017

    return _has_config(name) and is_since_2017(name)


def _since_2017_config(folder: Path) -> "TransformerConfig":
    from .after.since_2017 import Since2017Config
    from .training.checkpoint import read_config

    return read_config(folder, Since2017Config)


def _read_since_2017(folder: Path, device: "torch.device") -> tuple[Any, Any]:
    from .after.since_2017 import load_since_2017

    return load_since_2017(folder, device)


def _machine(folder: str | Path) -> str:
    """Which machine of after/ a folder holds; "" for a translator or for nothing."""
    from .files import read_json

    if not _has_config(str(folder)):
        return ""
    about = read_json(Path(folder) / "config.json").get("architecture")
    kind = about.get("kind") if isinstance(about, dict) else None
    return kind if kind in MACHINES else ""


def _is_machine(name: str) -> bool:
    return bool(_machine(name))


def _open_machine(folder: Path, device: "torch.device") -> Any:
    module = import_module(f".after.{_machine(folder)}", __package__)
    return module.open_machine(folder, device)


def _is_text_checkpoint(name: str) -> bool:
    from .files import read_json

    path = Path(name) / "config.json"
    return path.is_file() and read_json(path).get("model_type") in ("gpt2", "bert")


def _open_text_checkpoint(folder: Path, device: "torch.device") -> Any:
    from .after.gpt2_bert import open_machine

    return open_machine(folder, device)


def _is_marian_directory(name: str) -> bool:
    from .files import read_json

    path = Path(name) / "config.json"
    return path.is_file() and read_json(path).get("model_type") == "marian"


def _marian_config(folder: Path) -> "TransformerConfig":
    from .after.pretrained import read_marian_config

    return read_marian_config(folder)


def _has_config(name: str) -> bool:
    return (Path(name) / "config.json").is_file()


# -- names that stand for a folder -----------------------------------------------------


def shipped() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(path.parent.name for path in PRETRAINED.glob("*/config.json"))


def _shipped(name: str) -> Path:
    return PRETRAINED / name


def _is_run(name: str) -> bool:
    return (Path(name) / "run.json").is_file() or _has_config(f"{name}/model")


def _model_of_run(name: str) -> Path:
    model = Path(name) / "model"
    if not model.is_dir():
        raise UserError(
            f"{name} holds a run that has no model yet: let it finish, or name one of "
            "its checkpoints"
        )
    return model


def _is_hub_id(name: str) -> bool:
    """Whether a name reads "owner/name", and isn't the misspelt path of a folder."""
    known = re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name)
    return bool(known) and not Path(name).parent.exists()


def download(name: str) -> Path:
    """A model of the Hugging Face Hub, in the Hub's own cache; fetched if it isn't there.

    Raises: UserError when the Hub can't be reached or has no such model.
    """
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError:
        raise UserError(
            f"{name} is no folder here, and to look for it on the Hugging Face Hub "
            "takes huggingface_hub: pip install huggingface_hub"
        ) from None
    texts, weights = ["*.json", "*.txt", "*.spm", "*.safetensors"], "pytorch_model.bin"
    try:
        folder = Path(snapshot_download(name, allow_patterns=texts))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=[*texts, weights]))
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{name} is no folder here and can't be had from the Hugging Face Hub "
            f"({reason}): mend the name, or try again with a network"
        ) from None
    return folder


# In the order in which `load` asks them: a folder of one of the shapes that are easy to
# tell comes before the model folder that this package writes, whose reader says best
# what is wrong with a folder that is none.
# Machines that don't translate: the `kind` in their config.json is the name of the
# module of after/ that has their `open_machine(folder, device)`.
MACHINES: tuple[str, ...] = (
    "classifier",
    "language_model",
    "masked_language_model",
    "vision",
    "series",
)

KINDS = (
    Kind("a shipped model", lambda name: name in shipped(), follow=_shipped),
    Kind("a run's folder", _is_run, follow=_model_of_run),
    Kind(
        "a Marian directory",
        _is_marian_directory,
        config=_marian_config,
        read=_read_marian,
    ),
    Kind(
        "a checkpoint of GPT-2 or BERT", _is_text_checkpoint, open=_open_text_checkpoint
    ),
    Kind("an imported model", _is_imported, config=_imported_config, read=_read_marian),
    Kind(
        "a recurrent translator",
        _is_recurrent,
        config=_recurrent_config,
        read=_read_recurrent,
    ),
    Kind(
        "a translator with parts of today",
        _is_since_2017,
        config=_since_2017_config,
        read=_read_since_2017,
    ),
    Kind("a machine of another kind", _is_machine, open=_open_machine),
    Kind("a model folder", _has_config, config=_trained_config, read=_read_trained),
    Kind("a model of the Hub", _is_hub_id, follow=download),
)
