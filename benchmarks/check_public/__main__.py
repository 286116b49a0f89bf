"""Ask the check of public re-implementations of the paper, part by part.

    python -m benchmarks.check_public FOLDER

FOLDER holds a clone of each repository, OWNER+NAME, bare or not; nothing is downloaded.
Of its model's files only definitions are run: imports of PyTorch and its like, and
of one another, functions and classes. An adapter here, named after the owner, gives
them the book's arguments and masks. Writes results/check-public.json.
"""

import ast
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from annotated_transformer.check import report
from annotated_transformer.check.report import progress
from annotated_transformer.check.verdict import Verdict
from benchmarks import record

RECORD = "check-public.json"
HERE = Path(__file__).parent
LIBRARIES = {"collections", "copy", "math", "numpy", "torch"}
# The files that define the model, by repository.
FILES = {
    "harvardnlp/annotated-transformer": ["the_annotated_transformer.py"],
    "hkproj/pytorch-transformer": ["model.py"],
    "jadore801120/attention-is-all-you-need-pytorch": [
        f"transformer/{name}.py"
        for name in ("Layers", "Models", "Modules", "SubLayers")
    ],
    "hyunwoongko/transformer": [
        "models/blocks/decoder_layer.py",
        "models/blocks/encoder_layer.py",
        "models/embedding/positional_encoding.py",
        "models/embedding/token_embeddings.py",
        "models/embedding/transformer_embedding.py",
        "models/layers/layer_norm.py",
        "models/layers/multi_head_attention.py",
        "models/layers/position_wise_feed_forward.py",
        "models/layers/scale_dot_product_attention.py",
        "models/model/decoder.py",
        "models/model/encoder.py",
        "models/model/transformer.py",
    ],
    "gordicaleksa/pytorch-original-transformer": [
        "models/definitions/transformer_model.py"
    ],
    "SamLynnEvans/Transformer": [
        f"{name}.py" for name in ("Embed", "Layers", "Models", "Sublayers")
    ],
    "dreamgonfly/transformer-pytorch": ["models.py", "embeddings.py", "utils/pad.py"],
    "graykode/nlp-tutorial": ["5-1.Transformer/Transformer.py"],
    "bentrevett/pytorch-seq2seq": ["legacy/6 - Attention is All You Need.ipynb"],
    "tunz/transformer-pytorch": ["model/transformer.py", "utils/utils.py"],
}


def git(clone: Path, *words: str) -> str:
    """What git says of a clone."""
    place = clone / ".git" if (clone / ".git").is_dir() else clone
    command = ["git", "--git-dir", str(place), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def definitions(text: str, own: set[str]) -> str:
    """Source with its imports, functions, classes and constants in capitals alone."""
    kept: list[ast.stmt] = []
    for each in ast.parse(text).body:
        if isinstance(each, ast.Import):
            names = [name for name in each.names if name.name.split(".")[0] in own]
            kept += [ast.Import(names)] if names else []
        elif isinstance(each, ast.ImportFrom):
            if each.module and each.module.split(".")[0] in own:
                kept.append(each)
        elif isinstance(each, ast.FunctionDef | ast.ClassDef) or (
            isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        ):
            kept.append(each)
    return ast.unparse(ast.Module(kept, []))


def source(text: str, path: str) -> str:
    """A Python file, or the cells of a notebook that define classes."""
    if not path.endswith(".ipynb"):
        return text
    cells = ("".join(cell["source"]) for cell in json.loads(text)["cells"])
    classes = [cell for cell in cells if cell.startswith("class ")]
    return "import torch\nimport torch.nn as nn\n" + "\n".join(classes)


def place_of(path: str) -> str:
    """Where a file can be imported: a folder or a name that is no module's falls."""
    if path.endswith(".ipynb"):
        return "notebook.py"
    return (
        path
        if path.replace("/", "").removesuffix(".py").isidentifier()
        else (Path(path).name)
    )


@contextmanager
def importable(clone: Path, files: Sequence[str]) -> Iterator[None]:
    """The files' definitions where a child process looks for modules."""
    places = {path: place_of(path) for path in files}
    own = LIBRARIES | {
        Path(place).with_suffix("").parts[0] for place in places.values()
    }
    kept = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder:
        for path, place in places.items():
            target = Path(folder, place)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = source(git(clone, "show", f"HEAD:{path}"), path)
            target.write_text(definitions(text, own))
        os.environ["PYTHONPATH"] = folder
        try:
            yield
        finally:
            os.environ.pop("PYTHONPATH")
            if kept is not None:
                os.environ["PYTHONPATH"] = kept


def word(verdict: Verdict) -> str:
    """A verdict in one word."""
    if verdict:
        return "right"
    return "departs" if verdict.departs else "waits" if verdict.waits_for else "wrong"


def main(arguments: Sequence[str] | None = None) -> None:
    """Check each repository, and write what was said of each part."""
    parser = record.command_line(__doc__)
    parser.add_argument("folder", type=record.folder)
    folder = Path(parser.parse_args(arguments).folder)
    found = list[dict[str, Any]]()
    report.SECONDS = 600
    for repository, files in FILES.items():
        owner = repository.partition("/")[0]
        clone = folder / repository.replace("/", "+")
        clone = clone / "repo" if (clone / "repo").is_dir() else clone
        adapter = HERE / f"{owner.lower()}.py"
        with importable(clone, files):
            verdicts = progress(adapter)
        parts = {
            name: {"verdict": word(verdict), "sentence": verdict.sentence}
            for name, verdict in verdicts.items()
            if verdict.written
        }
        commit = git(clone, "rev-parse", "HEAD").strip()
        found.append({"repository": repository, "its_commit": commit, "parts": parts})
        for name, part in parts.items():
            print(
                f"{owner:14}{name:20}{part['verdict']:8}{part['sentence']}", flush=True
            )
        record.save(RECORD, {"repositories": found})


if __name__ == "__main__":
    main()
