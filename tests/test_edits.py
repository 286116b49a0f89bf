"""What a chapter shows is what runs: an edit of its code, exported, changes what the
commands compute, and an edit that changes nothing leaves it to the last bit.
"""

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from nbdev.export import nb_export
from tiny_run import write_pairs

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = (
    "steps=5 log_every=1 save_every=1 keep=2 warmup=4 batch_tokens=256 micro_batches=2 "
    "accumulate=2 label_smoothing=0.1 dropout=0 vocab_size=300 N=1 d_model=16 d_ff=32 "
    "h=2 d_k=8 d_v=8 max_tokens=64"
)
TRAIN = ["train", "own/train", "--src", "en", "--tgt", "de", "--valid", "own/valid"]
TRAIN += ["--recipe", "phrasebook", "--out", "run", "--device", "cpu"]
TRAIN += [word for each in SETTINGS.split() for word in ("--set", each)]
TRANSLATE = ["translate", "--input", "own/train.en", "--model", "phrasebook-en-de"]
TRANSLATE += ["--engine", "torch", "--device", "cpu"]

Edit = tuple[str, str, str]  # the chapter, what stands there, what is put there
MODEL = {
    "scale of the scores": (
        "model/attention",
        "query, key, value, mask, is_causal=is_causal\n",
        "query, key, value, mask, is_causal=is_causal, scale=1.0\n",
    ),
    "padding mask": ("model/attention", "(ids != pad_id)[:", "(ids == ids)[:"),
    "a position's frequency": ("model/position", "10000.0 **", "100.0 **"),
    "the norm's place": (
        "model/layers",
        "self.norm(x + self.dropout(sublayer_output))",
        "x + self.norm(self.dropout(sublayer_output))",
    ),
    "residual": (
        "model/layers",
        "self.norm(x + self.dropout(sublayer_output))",
        "self.norm(self.dropout(sublayer_output))",
    ),
}
TRAINING = {
    "causal mask": ("model/layers", "y, y, is_causal=True", "y, y"),
    "output layer": ("model/embedding", "linear(hidden,", "linear(-hidden,"),
    "label smoothing": (
        "training/loss",
        "label_smoothing=smoothing * vocab / (vocab - 1)",
        "label_smoothing=smoothing",
    ),
    "Adam's ε": ("training/schedule", "eps: float = 1e-9", "eps: float = 1e-3"),
    "Adam's β₂": ("training/schedule", "beta_2: float = 0.98", "beta_2: float = 0.9"),
    "warm-up": ("training/schedule", "step * warmup**-1.5", "step * warmup**-1.4"),
    "clipping": (
        "training/trainer",
        "        optimizer.step()\n        optimizer.zero_grad()\n        tokens",
        "        nn.utils.clip_grad_norm_(objective.parameters(), 0.1)\n"
        "        optimizer.step()\n        optimizer.zero_grad()\n        tokens",
    ),
    "accumulation": (
        "training/trainer",
        "(summed / tokens).backward()",
        "(summed / part.tokens).backward()",
    ),
    "sorting of batches": (
        "data/batching",
        "np.lexsort((difference, longer))",
        "np.arange(len(longer))",
    ),
    "averaging": ("training/trainer", "(tensor / count)", "(tensor / 3)"),
}
DECODING = {
    "length penalty": ("decoding/search", "(5 + length) / 6", "(1 + length) / 2")
}
NOTHING = {
    "a local of the loss": ("training/loss", "vocab", "size"),
    "a local of attention": ("model/attention", "heads", "attended"),
    "a local of the loop": ("training/trainer", "summed", "total"),
}


def export(folder: Path, chapter: str, old: str, new: str) -> None:
    """Edit a copy of a chapter and write its module into a copy of the package."""
    notebook = json.loads((ROOT / f"nbs/{chapter}.ipynb").read_text(encoding="utf-8"))
    found = 0
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if source.startswith("#| export"):
            found += source.count(old)
            cell["source"] = source.replace(old, new)
    assert found, f"{chapter} has no {old!r}"
    path = folder / "nbs" / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    nb_export(path, lib_path=folder / "annotated_transformer")


@pytest.fixture(scope="module")
def copies(tmp_path_factory) -> Callable[[Edit | None], Path]:
    """A copy of the package for each edit, compiled but for what is edited."""
    scratch = tmp_path_factory.mktemp("edits")
    first = scratch / "first" / "annotated_transformer"
    left = shutil.ignore_patterns("__pycache__", "models")
    shutil.copytree(ROOT / "annotated_transformer", first, ignore=left)
    (first / "models").symlink_to(ROOT / "annotated_transformer" / "models")
    compileall.compile_dir(first, quiet=1)

    @cache
    def copy(edit: Edit | None) -> Path:
        folder = Path(mkdtemp(dir=scratch))
        shutil.copytree(first.parent, folder, symlinks=True, dirs_exist_ok=True)
        (folder / "own").mkdir()
        write_pairs(folder / "own")
        if edit:
            export(folder, *edit)
        return folder

    return copy


@pytest.fixture(scope="module")
def outcome(copies) -> Iterator[Callable[[Edit | None, str], object]]:
    """What a command computes with an edit: translations with their scores, or the
    losses of five updates and the final weights.
    """
    runner = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("forked.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
    )

    @cache
    def computed(edit: Edit | None, command: str) -> object:
        folder = copies(edit)
        print(json.dumps([str(folder), COMMANDS[command]]), file=runner.stdin)
        runner.stdin.flush()
        status = int(runner.stdout.readline())
        assert status == 0, (folder / "stderr").read_text(encoding="utf-8")
        if "train" not in command:
            return (folder / "stdout").read_text(encoding="utf-8")
        log = (folder / "run" / "log.jsonl").read_text(encoding="utf-8")
        losses = [record["loss"] for record in map(json.loads, log.splitlines())]
        return losses, (folder / "run" / "model" / "model.safetensors").read_bytes()

    yield computed
    runner.stdin.close()
    runner.wait()
    runner.stdout.close()


COMMANDS = {
    "train": TRAIN,
    "translate": TRANSLATE,  # all lines in one batch
    "translate with scores": [*TRANSLATE, "--n-best", "3"],
}
CHANGES = [("train", *each) for each in (MODEL | TRAINING).items()]
CHANGES += [("translate", *each) for each in MODEL.items()]
CHANGES += [("translate with scores", *each) for each in DECODING.items()]


@pytest.mark.parametrize(
    ("command", "edit"),
    [(command, edit) for command, _, edit in CHANGES],
    ids=[f"{command}, {name}" for command, name, _ in CHANGES],
)
def test_an_edit_in_a_chapter_changes_the_run(command, edit, outcome):
    assert outcome(edit, command) != outcome(None, command)


@pytest.mark.parametrize("edit", NOTHING.values(), ids=NOTHING)
def test_an_edit_that_changes_nothing_leaves_it_bit_for_bit(edit, outcome):
    for command in COMMANDS:
        assert outcome(edit, command) == outcome(None, command)
