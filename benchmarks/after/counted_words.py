"""Counted words that learn from what fine-tuning reads: 128 tokens of each review.

    python -m benchmarks.after.counted_words

The linear side of `benchmarks.after.masked_language_model` once more, with the same
draws of labels and the same twelve trials. But the reviews that it learns from, and
those that it chooses its settings by, are cut as fine-tuning cuts them: a quarter of
the tokens from the beginning, the rest from the end. Test reviews stay whole, as the
networks read them to the end, too, in pieces.

IMDb is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes
two minutes of one core and writes results/after/counted-words.json, for the chapter on
masked language models.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from annotated_transformer.after.labelled_rows import shorten
from annotated_transformer.data.labelled_texts import Examples
from benchmarks.after.masked_language_model import (
    CONFIG,
    PACKAGES,
    SEEDS,
    Reviews,
    Study,
)
from benchmarks.after.shards import matching, plain, read
from benchmarks.record import command_line, save

PLACE, SIDE = "after/counted-words.json", "linear"


class ShortReviews(Reviews):
    """The reviews, of which those to learn from and to choose by are cut."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        whole, held = self.train, self.valid
        self.tokens = sum(map(len, self.rows(whole)))  # the tokenizer learns from these
        self.train, self.valid = self.cut(whole), self.cut(held)

    def cut(self, examples: Examples) -> Examples:
        """At most so many tokens of each review as fine-tuning reads, as text."""
        rows = [shorten(row, CONFIG.max_length) for row in self.rows(examples)]
        return Examples([self.tokenizer.decode(row) for row in rows], examples.labels)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the trials and the runs, and write the record."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        study = Study(Path(name))
        study.reviews = reviews = ShortReviews(study.folder)
        study.tune(SIDE)
        for seed in SEEDS:
            study.points(SIDE, seed)
        runs, best = [plain(run) for run in read(study.folder)], study.best(SIDE)
    tried = [plain(run, "step") for run in matching(runs, step=f"tune-{SIDE}")]
    points = [
        {"side": SIDE} | plain(run, "step")
        for seed in SEEDS
        for run in matching(runs, step=f"points-{SIDE}-{seed}")
    ]
    about = {"read": CONFIG.max_length, "tokens": reviews.tokens}
    save(PLACE, about | {"tuned": {"tried": tried} | best, "points": points}, *PACKAGES)


if __name__ == "__main__":
    main()
