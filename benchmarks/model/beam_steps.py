"""A beam search of the page's model, step by step.

    python -m benchmarks.model.beam_steps

Needs node. Takes seconds and writes results/model/beam-steps.json, for the chapter on
search.
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

PLACE = "model/beam-steps.json"
GIVEN = {"source": "He works night shifts.", "size": 2, "alpha": 0.6}
# The page's worker, which answers here as it does there.
RUN = """
const [weights, given] = process.argv.slice(1), { readFileSync } = require("fs");
const Transformer = require("./transformer.js");
const { liveWorker } = require("./worker.js");
const { liveMissing } = require("./missing.js");
const { source: text, ...options } = JSON.parse(given);
const self = { postMessage({ id, found, error }) {
  if (error) throw new Error(error);
  const next = { id: 2, task: "translate", given: { text, options } };
  if (id === 1) self.onmessage({ data: next });
  else if (found) {
    process.stdout.write(JSON.stringify(found.tree.map(
      ({ name, step, parent, text, state, total, score }) =>
        ({ name, step, parent, text, state, total, score }))), () => process.exit());
  }
} };
liveWorker(self, Transformer, liveMissing());
self.onmessage({ data: { id: 1, task: "load",
  given: { weights: new Blob([readFileSync(weights)]), packed: true } } });
"""


def search() -> dict[str, Any]:
    """The sentence, the settings and the tree's nodes, log-probabilities rounded."""
    with TemporaryDirectory() as folder:
        live.write(MODELS / "tatoeba-en-de", Path(folder))
        weights = Path(folder, "model.packed")
        command = ["node", "-e", RUN, str(weights), json.dumps(GIVEN)]
        place = ROOT / "book" / "_static" / "live"
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=place
        )
    nodes = json.loads(done.stdout)
    for node in nodes[1:]:
        node |= {each: round(node[each], 3) for each in ("total", "score")}
    return {**GIVEN, "nodes": nodes}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, search())


if __name__ == "__main__":
    main()
