"""What the page's model writes when one of its heads is turned off.

    python -m benchmarks.model.head_switch

Needs node. Takes half a minute and writes results/model/head-switch.json, for the
chapter on heads.
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

PLACE = "model/head-switch.json"
SOURCE = "She took her coat off because it was wet."
DATE = "the twenty-first of March"
RUN = """
const [weights, source, date] = process.argv.slice(1);
const Transformer = require("./transformer.js");
const bytes = require("zlib").gunzipSync(require("fs").readFileSync(weights));
const model = Transformer.read(new Uint8Array(bytes).buffer);
const written = (text, off) => model.tokenizer.decode(Transformer.translate(
  model, model.tokenizer.encode(text), { size: 4, alpha: 0.6 }, { off: new Set(off) })
  .tokens) || "(nothing)";
const answers = { trained: written(source, []) };
for (const name of ["encoder", "decoder", "cross"])
  for (let layer = 0; layer < model.config.N; layer++)
    for (let head = 0; head < model.config.h; head++) {
      const id = `${name}.${layer}.${head}`;
      answers[id] = written(source, [id]);
    }
const last = Array.from({ length: model.config.h },
  (_, head) => `cross.${model.config.N - 1}.${head}`);
const blind = { [source]: written(source, last), [date]: written(date, last) };
process.stdout.write(JSON.stringify({ source, answers, blind }));
"""


def answers() -> dict[str, Any]:
    """A sentence's translations by the whole model and without each head, and those of
    two without the four heads of the last layer that look at the source.
    """
    with TemporaryDirectory() as folder:
        live.write(MODELS / "tatoeba-en-de", Path(folder))
        weights = Path(folder, "model.packed")
        command = ["node", "-e", RUN, str(weights), SOURCE, DATE]
        place = ROOT / "book" / "_static" / "live"
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=place
        )
    return json.loads(done.stdout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, answers())


if __name__ == "__main__":
    main()
