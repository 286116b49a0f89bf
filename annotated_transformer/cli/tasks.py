"""The tasks beside translation, a row each: what the help of their commands says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import measures


@dataclass(frozen=True)
class TaskRow:
    """A task by its model type: the words of `TASK train` and `TASK evaluate`.

    `own` holds data of one's own and a setting for it, as an example.
    """

    name: str
    help: str
    data: str  # what DATA may be; the default stands first
    own: tuple[str, str]
    measure: Callable[[Any, str, Any], Iterator[str]]
    about: str

    @property
    def default(self) -> str:
        """The name of the data set that is taken if none is named."""
        return self.data.partition(",")[0]


TASKS = (
    TaskRow(
        "classifier",
        "Put texts into classes: train on IMDb or on your own examples.",
        "imdb, or a file of your own, an example a line: the class, a tab, the text",
        ("mails.tsv", "epochs=10"),
        measures.classifier,
        "A tenth of the texts is held out for validation. Evaluated are the share of "
        "right answers, in all and for each class, and the calibration.",
    ),
    TaskRow(
        "language-model",
        "Predict the next token: train a decoder-only model on a text, and sample.",
        "tiny-shakespeare, or a text file of your own",
        ("own.txt", "vocab_size=2000"),
        measures.language_model,
        "Tokens are characters, or byte pairs if vocab_size is set. The last tenth of "
        "a text is held out. A file of your own is evaluated whole.",
    ),
    TaskRow(
        "masked-language-model",
        "Pretrain an encoder on texts without labels, and fine-tune it on a few.",
        "imdb, or a file of your own, a text a line",
        ("own.txt", "vocab_size=2000"),
        measures.masked_language_model,
        "15 % of the tokens are hidden and predicted. Held out are some of IMDb's test "
        "reviews, or a tenth of your own lines; a file of your own is evaluated whole.",
    ),
    TaskRow(
        "vision",
        "Classify images with patches as tokens: MNIST, or any set in its format.",
        "mnist, or a folder with four files of MNIST's names and format",
        ("fashion", "epochs=20"),
        measures.vision,
        "One training image in twelve is held out for validation. Evaluated is the "
        "share of right answers on the test images.",
    ),
    TaskRow(
        "series",
        "Forecast time series with days as tokens: ETTh1, or any CSV file.",
        "ett-h1, or a CSV file: dates in the first column, numbers in the others",
        ("sales.csv", "horizon=48"),
        measures.series,
        "The first 60 % are for training, the next 20 % for validation (of ETT's files "
        "the first 20 months count, as in the literature). Evaluated are the errors on "
        "the last 20 %, beside naive forecasts and a tuned linear model.",
    ),
)
