"""Links to a file of the user's, planted where a folder might be locked, read or
written: the file must stay as it is, and be copied nowhere.

`python -m benchmarks.promises` and the tests use it.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from annotated_transformer import UserError, load, verify
from annotated_transformer.average import average_checkpoints
from annotated_transformer.files import locked
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.log import Log
from annotated_transformer.training.run import check_folder

from . import folders
from .fuzz import Attack

NAMES = ".lock .draft-model.01234567 log.jsonl run.json card.md text.json".split()
NAMES += "manifest.json config.json tokenizer.json data checkpoints model".split()
TEXT = "all of it\n"


def train(folder: Path) -> None:
    """What a training does to its folder before the first update."""
    check_folder(folder)
    with locked(folder):
        save_model(folder / "model", folders.model(), folders.tokenizer())


ACTIONS = {
    "open": lambda folder: load(folder, device="cpu"),
    "verify": verify,
    "train": train,
    "save": lambda folder: save_model(folder, folders.model(), folders.tokenizer()),
    "average": lambda folder: average_checkpoints([folder], folder.parent / "out"),
    "log": lambda folder: Log(folder / "log.jsonl").cut(0),
}


def attacks(count: int, home: Path, seed: int = 0) -> Iterator[Attack]:
    """So many attacks, each with some links in and beside a folder."""
    rng = random.Random(seed)
    save_model(home / "original", folders.model(), folders.tokenizer())
    for _ in range(count):
        shutil.rmtree(home / "at", ignore_errors=True)
        folder = home / "at" / "model"
        shutil.copytree(home / "original", folder)
        thesis = home / "at" / "thesis.tex"
        thesis.write_text(TEXT)
        planted = [
            (rng.choice([folder, folder.parent]), rng.choice(NAMES))
            for _ in range(rng.randint(1, 3))
        ]
        for place, name in planted:
            if place.is_dir() and not (place / name).is_dir():
                (place / name).unlink(missing_ok=True)
                (place / name).symlink_to(thesis)
        action = rng.choice(list(ACTIONS))
        outcome, said = "done", ""
        try:
            ACTIONS[action](rng.choice([folder, folder.parent]))
        except UserError as error:
            outcome, said = "refused", str(error)
        except Exception as error:
            outcome, said = "failed", repr(error)
        if not thesis.is_file() or thesis.read_text() != TEXT:
            outcome = "failed"
        out = thesis.with_name("out")
        if any(path.read_bytes() == TEXT.encode() for path in out.glob("*")):
            outcome = "failed"  # carried away
        words = ", ".join(f"{place.name}/{name}" for place, name in planted)
        yield Attack(f"links: {action}", words, outcome, said)
