"""A model type of your own: a Transformer encoder that sorts digits.

python sort_digits.py digit-sorter train --out runs/sorter
python sort_digits.py digit-sorter evaluate runs/sorter
python sort_digits.py digit-sorter sort runs/sorter 31415926
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotated_transformer.data.text_files import read_lines
from annotated_transformer.errors import UserError, check_integer
from annotated_transformer.model.config import StackConfig
from annotated_transformer.model.layers import Encoder
from annotated_transformer.model.position import LearnedPositions
from annotated_transformer.model.transformer import initialise
from annotated_transformer.pretrained import PretrainedModel
from annotated_transformer.registry import Lines, ModelType, register
from annotated_transformer.training.held_out import BatchedTraining, HeldOutTask
from annotated_transformer.training.task import TensorBatch

# -- the model -------------------------------------------------------------------------


@dataclass(frozen=True)
class SorterConfig(StackConfig):
    """The sizes of a stack of encoder layers, and how many digits it sorts."""

    model_type: ClassVar[str] = "digit-sorter"
    N: int = 2
    d_model: int = 64
    d_ff: int = 128
    dropout: float = 0.0
    digits: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "digits", least=2, below=1_000)


class DigitSorter(nn.Module):
    """Digits in; at each position, a score for each digit to be the one there."""

    def __init__(self, config: SorterConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(10, config.d_model)
        self.positions = LearnedPositions(config.digits, config.d_model)
        self.encoder = Encoder(config)
        self.output = nn.Linear(config.d_model, 10)
        self.apply(initialise)

    def forward(self, rows: Tensor) -> Tensor:
        """(batch, digits) to (batch, digits, 10)."""
        return self.output(self.encoder(self.positions(self.embedding(rows))))


# -- its training ----------------------------------------------------------------------


@dataclass(frozen=True)
class SorterTraining(BatchedTraining):
    """How to train it."""

    steps: int = 400
    peak: float = 3e-3


class SorterTask(HeldOutTask):
    """A sorter, and rows of digits to train and to validate on."""

    def loss(self, model: nn.Module, batch: TensorBatch) -> Tensor:
        """The cross-entropy of each digit of the sorted row, summed."""
        (rows,) = batch.to(next(model.parameters()).device)
        scores, truth = model(rows), rows.sort().values
        return F.cross_entropy(scores.flatten(0, 1), truth.flatten(), reduction="sum")

    def draw(self) -> Iterator[TensorBatch]:
        """Rows at random, without end; the same ones each time."""
        draw, size = torch.Generator().manual_seed(self.config.seed), self.config.batch
        while True:
            rows = self.train[torch.randint(len(self.train), (size,), generator=draw)]
            yield TensorBatch((rows,), rows.numel())

    def evaluate(self) -> dict[str, float]:
        """The loss per digit on the held-out rows, and the share of rows in order."""
        batch = TensorBatch((self.valid,), self.valid.numel())
        with torch.no_grad():
            loss = self.batch_loss(batch) / batch.tokens
        return {"loss": loss, "sorted": share_sorted(self.model, self.valid)}


@torch.no_grad()
def share_sorted(model: nn.Module, rows: Tensor) -> float:
    """How many rows come out in order."""
    rows = rows.to(next(model.parameters()).device)
    right = (model(rows).argmax(-1) == rows.sort().values).all(-1)
    return right.double().mean().item()


def read_rows(data: str | Path, digits: int, seed: int) -> Tensor:
    """5,000 random rows, or those of a file. Raises: UserError for other lines."""
    if str(data) == "random":
        draw = torch.Generator().manual_seed(seed)
        return torch.randint(10, (5_000, digits), generator=draw)
    rows = list(read_lines(data))
    for number, line in enumerate(rows, start=1):
        check_row(line, digits, f"{data}, line {number}")
    return torch.tensor([[int(digit) for digit in line] for line in rows])


def check_row(text: str, digits: int, name: str) -> None:
    """Raises: UserError unless the text is so many digits."""
    if len(text) != digits or not (text.isascii() and text.isdigit()):
        raise UserError(f"{name} is {text!r:.40}: write {digits} digits")


def sorter_task(
    data: str | Path, config: SorterConfig, training: SorterTraining, root: Any
) -> SorterTask:
    """A new sorter; the last tenth of the rows is held out."""
    rows = read_rows(data, config.digits, training.seed)
    torch.manual_seed(training.seed)
    cut = len(rows) - max(1, len(rows) // 10)
    return SorterTask(DigitSorter(config), None, rows[:cut], rows[cut:], training)


# -- its use ---------------------------------------------------------------------------


class Sorter(PretrainedModel):
    """Digits in, the same ones in order out: a text or a list of texts."""

    config_class: ClassVar[Any] = SorterConfig
    model_class: ClassVar[Any] = DigitSorter

    @torch.no_grad()
    def sort(self, texts: str | list[str]) -> str | list[str]:
        """The digits of each text in order. Raises: UserError for other texts."""
        several = [texts] if isinstance(texts, str) else texts
        for text in several:
            check_row(text, self.config.digits, "the text")
        rows = torch.tensor([[int(d) for d in text] for text in several])
        found = self.model(rows.to(self.device)).argmax(-1).tolist()
        lines = ["".join(map(str, row)) for row in found]
        return lines[0] if isinstance(texts, str) else lines

    def evaluate(self, data: str | Path = "random", root: Any = None) -> dict[str, Any]:
        """The share of rows that come out in order; of "random", new ones."""
        rows = read_rows(data, self.config.digits, seed=0)
        return {"sorted": share_sorted(self.model, rows), "rows": len(rows)}


def sort(model: Sorter, texts: Lines) -> Iterator[str]:
    """The digits of each line in order.

    **Example**

    `annotated-transformer digit-sorter sort runs/sorter 31415926`
    """
    for some in texts:
        yield from model.sort(some)


MODEL_TYPE = ModelType(
    Sorter,
    sorter_task,
    SorterTraining(),
    data="random, or a file with a row of digits on each line",
    about="The last tenth of the rows is held out.",
    example=("rows.txt", "digits=12"),
    commands={"sort": sort},
)
register("digit-sorter", MODEL_TYPE, "Sort digits: random ones, or your own.")

if __name__ == "__main__":
    from annotated_transformer.cli import main

    main()
