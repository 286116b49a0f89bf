"""The run that the page "Live" shows before its model is loaded.

    python -m benchmarks.model.first_run

One sentence with its tokens, boxes, heads and beam, and what each head is worth. Needs
node. Takes seconds and writes results/model/first-run.json.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from annotated_transformer.model_names import MODELS
from benchmarks.record import ROOT, command_line, save_line
from tools import live

PLACE = "model/first-run.json"
SCRIPTS = ROOT / "book" / "_static" / "live"
SOURCE = "I don't know where she lives."
# The worker of the page, asked as the page asks it.
RUN = """
const [folder, weights, text] = process.argv.slice(1);
const Transformer = require(`${folder}/transformer.js`);
const { liveWorker } = require(`${folder}/worker.js`);
const { liveMissing } = require(`${folder}/missing.js`);
const { savedRun } = require(`${folder}/saved-run.js`);
const file = new Blob([require("fs").readFileSync(weights)]);
const waiting = {}, self = { postMessage({ id, shown, found, error }) {
  if (error) throw new Error(error);
  if (shown === undefined) waiting[id](found);
} };
liveWorker(self, Transformer, liveMissing());
const ask = (task, given) => new Promise((resolve) => {
  const id = Object.keys(waiting).length + 1;
  waiting[id] = resolve;
  self.onmessage({ data: { id, task, given } });
});
(async () => {
  const { config } = await ask("load", { weights: file, packed: true });
  const found = await ask("translate", { text });
  const { ids, answer } = found;
  const worth = await ask("worth", { ids, answer, switches: {} });
  const run = savedRun.packed({ config, ...found, worth, milliseconds: 0 });
  process.stdout.write(run, () => process.exit());
})();
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    with TemporaryDirectory() as folder:
        live.write(MODELS / "tatoeba-en-de", Path(folder))
        weights = Path(folder, "model.packed")
        command = ["node", "-e", RUN, str(SCRIPTS), str(weights), SOURCE]
        done = subprocess.run(command, capture_output=True, check=True)
    save_line(PLACE, json.loads(done.stdout))


if __name__ == "__main__":
    main()
