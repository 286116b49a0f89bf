"""What averaging the last checkpoints is worth to the everyday translator.

    python -m benchmarks.paper.averages runs/tatoeba-en-de

BLEU (13a) on the validation split, with the package's own settings, of the mean of the
last 1, 2, 4 and 8 checkpoints of a run. Runs on a GPU where there is one. Writes
results/runs/tatoeba-en-de/averages.json, which nbs/training/averaging.ipynb shows.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from annotated_transformer.training.averaging import average_checkpoints
from annotated_transformer.training.checkpoint import checkpoints
from annotated_transformer.translation.options import SearchOptions
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, sides
from benchmarks.record import command_line, folder, save

PLACE, COUNTS = "runs/tatoeba-en-de/averages.json", (1, 2, 4, 8)


def averages(run: Path) -> list[dict]:
    """The score of each mean, as far as the run has so many checkpoints."""
    found, rows = checkpoints(run), []
    sources, targets = sides("tatoeba", "val")
    with tempfile.TemporaryDirectory() as scratch:
        for count in (count for count in COUNTS if count <= len(found)):
            mean = Path(scratch) / str(count)
            average_checkpoints(found[-count:], mean)
            translator = Translator.from_pretrained(mean, engine="torch")
            outputs = translator.translate(sources, SearchOptions(), split=True)
            rows.append({"checkpoints": count, **bleu(outputs, targets)})
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Average, translate, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="the folder that the training wrote")
    run = parser.parse_args(argv).run
    save(PLACE, {"rows": averages(run)}, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
