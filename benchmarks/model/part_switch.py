"""What the page's model writes when a part of it is left out.

    python -m benchmarks.model.part_switch

Needs node. Takes seconds and writes results/model/part-switch.json, for the chapters
that explain the parts.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from annotated_transformer.model_names import MODELS
from benchmarks.record import ROOT, command_line, save_line
from tools import live

PLACE = "model/part-switch.json"
STATIC = ROOT / "book" / "_static"
SOURCE = "I don't know where she lives."
RUN = """
const [folder, weights, source] = process.argv.slice(1);
global.Transformer = require(`${folder}/live/transformer.js`);
const { PARTS } = require(`${folder}/touch/part-switch.js`);
const bytes = require("zlib").gunzipSync(require("fs").readFileSync(weights));
const model = Transformer.read(new Uint8Array(bytes).buffer);
const answer = (off) => model.tokenizer.decode(Transformer.translate(
  model, model.tokenizer.encode(source), { size: 4, alpha: 0.6 }, off).tokens)
  || "(nothing)";
const answers = { trained: answer({}) };
for (const part of Object.keys(PARTS)) answers[part] = answer({ [part]: false });
process.stdout.write(JSON.stringify(answers));
"""


def answers() -> dict[str, Any]:
    """The sentence, and its translation by the whole model and without each part."""
    with TemporaryDirectory() as folder:
        live.write(MODELS / "tatoeba-en-de", Path(folder))
        weights = Path(folder, "model.packed")
        command = ["node", "-e", RUN, str(STATIC), str(weights), SOURCE]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"source": SOURCE, "answers": json.loads(done.stdout)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, answers())


if __name__ == "__main__":
    main()
