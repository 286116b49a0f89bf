"""What a model's name stands for: a folder, a shipped model, or one on the Hub."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError
from .files import check_inside

SHIPPED = "tatoeba-en-de"  # what is opened where no model is named
MODELS = Path(__file__).parent / "models"
HUB_ID = re.compile(r"(?:hf:)?([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")


def shipped() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(path.parent.name for path in MODELS.glob("*/config.json"))


def find_folder(name: str | Path, revision: str | None = None) -> Path:
    """The folder of the model that this name stands for; of a run, its model's, or the
    last checkpoint's with a warning until it has a model.

    A `Path`, or a text with a separator or a leading dot, is a path. A bare name is a
    shipped model's or a folder's here. "hf:owner/name" is a repository on the Hugging
    Face Hub, as is "owner/name" if there is no folder "owner" here; "@revision" may
    follow. Raises: UserError for a name that is nothing of these, or two of them.
    """
    text = str(name)
    if isinstance(name, str) and (repository := _hub_id(text, revision)):
        return hub_folder(*repository)
    if revision is not None:
        raise UserError(
            f"{name} is no model of the Hugging Face Hub, which alone has revisions: "
            "leave the revision out, or name hf:owner/name"
        )
    bare = isinstance(name, str) and not re.search(r"^\.|[/\\]", text)
    if bare and text in shipped():
        if Path(text).is_dir():
            raise UserError(
                f"{text} is a model that comes with the package and a folder here: "
                f"write ./{text} for the folder, or rename it to open the other"
            )
        return MODELS / text
    if not os.path.isdir(text):  # unlike Path.is_dir, False for any impossible name
        raise UserError(
            f"{text or 'an empty name'}: there is no such model; name a folder, "
            "hf:owner/name on the Hugging Face Hub, or a translator of the package: "
            f"{', '.join(shipped())}"
        )
    return _model_of_run(Path(text))


def _model_of_run(folder: Path) -> Path:
    """The model of a run's folder, or its last checkpoint; another folder as it is."""
    run, model = (folder / "run.json").is_file(), folder / "model"
    check_inside(model)
    if run and not model.is_dir():
        saved = [*folder.glob("checkpoints/step-*")]
        saved = [each for each in saved if each.name[5:].isdecimal()]
        if not saved:
            raise UserError(
                f"{folder} holds a run that has no checkpoint yet: let it go on to its "
                "first one"
            )
        latest = max(saved, key=lambda each: int(each.name[5:]))
        warnings.warn(f"{folder} isn't finished: opening {latest}", stacklevel=2)
        return latest
    return model if run or (model / "config.json").is_file() else folder


def _hub_id(text: str, revision: str | None) -> tuple[str, str | None] | None:
    """A repository and its revision, if that is what the text names."""
    match = HUB_ID.fullmatch(text)
    if text.startswith("hf:") and not match:
        raise UserError(f"{text}: write hf:owner/name or hf:owner/name@revision")
    here = not text.startswith("hf:") and os.path.lexists(text.partition("/")[0])
    if not match or here or text.startswith("."):
        return None
    if revision and match[2]:
        raise UserError(f"{text} names a revision already: leave out {revision!r}")
    return match[1], revision or match[2]


def hub_folder(repository: str, revision: str | None = None) -> Path:
    """A model of the Hugging Face Hub, from the Hub's own cache or fetched.

    Raises: UserError when the Hub can't be reached or has no such model, or one whose
    weights are pickled.
    """
    with hub_errors(repository):
        from huggingface_hub import snapshot_download

        texts = ["*.json", "*.txt", "*.md", "*.spm", "*.safetensors"]
        found = snapshot_download(repository, revision=revision, allow_patterns=texts)
    folder = Path(found)
    if (folder / "config.json").exists() and not [*folder.glob("*.safetensors")]:
        raise UserError(
            f"{repository} on the Hugging Face Hub has no safetensors, and no other "
            "weights are read here: open it with transformers (from_pretrained), write "
            "it into a folder (save_pretrained), its tokenizer too, and name the folder"
        )
    return folder


@contextmanager
def hub_errors(repository: str) -> Iterator[None]:
    """Whatever the Hub's library raises, in one line; it sends no telemetry."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        yield
    except Exception as error:  # of several libraries below it, with no common base
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{repository} on the Hugging Face Hub: {reason}; mend the name, or try "
            "again with a network"
        ) from None
