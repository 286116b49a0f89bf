"""A sample of each command of the command line, with what it prints.

    python -m benchmarks.commands

Gives the commands one after another in an empty folder, with small files of text made
here: phrases and their German, phrases of both languages as a text to classify, a year
of daily numbers, a picture of MNIST. Trainings are as short as shows what they print.
About five minutes of one core. The corpora are downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds them. Writes results/commands.json,
for nbs/api/cli.md.
"""

import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from math import pi, sin
from pathlib import Path

from PIL import Image

from annotated_transformer.data.images import mnist
from annotated_transformer.data.phrasebook import phrasebook
from benchmarks import record
from benchmarks.training.own_text import run, write_sides

PLACE = "commands.json"
MOST = 14  # lines of a sample; what is left out is told
SMALL = "--set N=1 --set d_model=32 --set d_ff=64 --set h=4"
SHORT = f"{SMALL} --set steps=600 --set save_every=300"
WEEKS = "--set context=28 --set patch=7 --set horizon=7"
SESSION = f"""
split phrases.en phrases.de --out own --held-out 100
doctor own/train --src en --tgt de
train own/train --valid own/valid --src en --tgt de --recipe phrasebook --set steps=400
translate "Break a leg!" --show-confidence
score "March 3" "3. März"
evaluate -m runs/train --source own/test.en --reference own/test.de
attend "Where is the station?" --out attention.html
info base
corpora
average runs/train --last 2 --out averaged
verify averaged
plot runs/train --out curves.svg
check my_transformer.py --starter
export marian -o marian
import marian -o imported
export ctranslate2 -o small --quantization int8
export onnx -o graphs
export argos -o en_de.argosmodel
classifier train texts.tsv --out runs/texts {SMALL} --set epochs=20
classifier evaluate runs/texts texts.tsv
classifier predict runs/texts "the twenty-first of March"
language-model train phrases.en --out runs/writer {SHORT}
language-model evaluate runs/writer phrases.en
language-model generate runs/writer "the twenty" --length 30 --seed 1
masked-language-model train phrases.en --out runs/filler {SHORT} --set vocab_size=300
masked-language-model evaluate runs/filler phrases.en
masked-language-model fill runs/filler "the [MASK] of March"
masked-language-model fine-tune runs/filler texts.tsv --out runs/tuned --set epochs=10
vision train mnist --out runs/digits {SMALL} --set epochs=1
vision evaluate runs/digits mnist
vision predict runs/digits digit.png
series train days.csv --out runs/days {SHORT} {WEEKS}
series evaluate runs/days days.csv
series forecast runs/days days.csv
"""


def write_files(folder: Path) -> None:
    """What the commands read."""
    pairs = list(phrasebook("en", "de", "train", 3_000))
    write_sides(folder, "phrases", pairs)
    labelled = [
        f"{lang}\t{each}\n"
        for pair in pairs[:600]
        for lang, each in zip(("en", "de"), pair, strict=True)
    ]
    (folder / "texts.tsv").write_text("".join(labelled), encoding="utf-8")
    first, rows = date(2026, 1, 1), []
    for day in range(336):
        visitors = 20 + day / 50 + 8 * sin(2 * pi * day / 7)
        rows.append(f"{first + timedelta(day)},{visitors:.1f}\n")
    (folder / "days.csv").write_text("date,visitors\n" + "".join(rows))
    picture = mnist("t10k").images[0]
    Image.fromarray(picture.numpy()).save(folder / "digit.png")


def shortened(lines: list[str]) -> list[str]:
    """The first lines, and how many more there are."""
    if len(lines) <= MOST:
        return lines
    return [*lines[: MOST - 1], f"… ({len(lines) - MOST + 1} more lines)"]


def main(argv: Sequence[str] | None = None) -> None:
    """Give the commands, and write what they print."""
    record.command_line(__doc__).parse_args(argv)
    samples = []
    with tempfile.TemporaryDirectory() as name:
        write_files(folder := Path(name))
        for line in SESSION.strip().splitlines():
            done = run(folder, f"annotated-transformer {line}")
            printed = [each.replace(name, ".") for each in done["printed"]]
            samples.append({"command": line, "printed": shortened(printed)})
    record.save(PLACE, {"samples": samples}, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
