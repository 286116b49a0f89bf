"""Record the run that the page "Live" shows before its model is loaded: one sentence
with its tokens, boxes, heads and beam, and what each head is worth: python -m
tools.first_run. Needs node.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from annotated_transformer.files import write_whole
from annotated_transformer.model_names import MODELS
from tools import live

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "results" / "model" / "first-run.json"
SCRIPTS = ROOT / "book" / "_static" / "live"
SOURCE = "I don't know where she lives."
# The worker of the page, asked as the page asks it.
RUN = """
const [folder, weights, text] = process.argv.slice(1);
const Transformer = require(`${folder}/transformer.js`);
const { liveWorker } = require(`${folder}/worker.js`);
const { savedRun } = require(`${folder}/saved-run.js`);
const file = new Blob([require("fs").readFileSync(weights)]);
const waiting = {}, self = { postMessage({ id, shown, found, error }) {
  if (error) throw new Error(error);
  if (shown === undefined) waiting[id](found);
} };
liveWorker(self, Transformer);
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


def main() -> None:
    """Write the record."""
    with TemporaryDirectory() as folder:
        live.write(MODELS / "tatoeba-en-de", Path(folder))
        weights = Path(folder, "model.packed")
        command = ["node", "-e", RUN, str(SCRIPTS), str(weights), SOURCE]
        done = subprocess.run(command, capture_output=True, check=True)
    write_whole(FILE, done.stdout + b"\n")


if __name__ == "__main__":
    main()
