"""Make the records again that take minutes, at one commit, and name the others.

    python -m benchmarks.records                      all of them: forty minutes or so
    python -m benchmarks.records paper.heads comparisons        these

The tree must be clean but for results/, so that each record holds the commit which made
it. Some records are of time: let the machine do nothing else. Needs node, and the
corpora, which are downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that
holds them. What takes hours, a GPU or another machine stays as it is, and is listed
with its commit and command at the end.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.record import RESULTS, ROOT, code, command_line

# The ledger and the gate read other records, so they come last.
QUICK = """
    after.hidden_words after.mask_twins after.next_token
    after.shuffled after.counted_words
    after.broken_imports
    model.attention_arcs model.beam_steps model.depth model.figure_one model.first_run
    model.head_switch model.part_switch
    paper.bleu_microscope paper.confidence paper.corpora paper.heads
    paper.head_relations
    paper.my_transformer paper.newstest2017_bleu paper.robustness paper.search_grid
    paper.similarity_bands paper.swap_trials paper.vocabulary promises.memory
    scale.recipe_dry_runs speed.serving training.bugs training.diary
    training.own_text training.warm_up comparisons
    paper.ledger
""".split()


def left(commit: str) -> list[str]:
    """The records that another commit made: place, commit and command."""
    found = []
    for path in sorted(RESULTS.rglob("*.json*")):
        if path.name != "log.jsonl":  # of a run, whose record lies beside it
            lines = path.read_text(encoding="utf-8").splitlines()
            text = lines[-1] if path.suffix == ".jsonl" else "\n".join(lines)
            about = json.loads(text)
            if about["commit"] != commit:
                place, by = path.relative_to(ROOT), about["commit"][:7]
                found.append(f"{place}, of {by}: {about['command']}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks; status 1 if one of them failed."""
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    names, at = parser.parse_args(arguments).names or QUICK, code()
    if unknown := [name for name in names if name not in QUICK]:
        parser.error(
            f"no quick benchmark {unknown[0]!r}: choose from {' '.join(QUICK)}"
        )
    if not at["clean"]:
        parser.error("the tree isn't clean: commit first, so that records can name it")
    failed = [
        name
        for name in names
        if subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT
        ).returncode
    ]
    print("not made again:", *left(at["commit"]), sep="\n  ")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
