"""Texts into classes: the classifier as one trains, opens and uses it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..data.labelled_texts import Examples, imdb, read_examples
from ..data.published_files import own_path
from ..data.text_tokenizer import TextTokenizer, encode_texts, read_text_tokenizer
from ..data.tokenizer_training import train_bpe
from ..decoding.checks import as_list, check_numbers
from ..errors import UserError, escaped
from ..pretrained import PretrainedModel
from ..registry import Lines, ModelType, Root
from ..training.held_out import BatchedTraining, HeldOutTask, class_metrics
from ..training.task import TensorBatch
from .classifier import ClassifierModel, class_loss, reliability
from .classifier_parts import ClassifierConfig
from .labelled_rows import classifier_batches, pieces, read_long, read_short

FEWEST = 40  # with fewer texts, nothing may be left for validation


@dataclass(frozen=True)
class ClassifierTraining(BatchedTraining):
    """How to train a classifier.

    `word_dropout` is the share of tokens hidden from an update, `smoothing` that of
    label smoothing.
    """

    epochs: int = 3
    peak: float = 2e-3
    word_dropout: float = 0.3
    smoothing: float = 0.1
    shares: ClassVar[tuple[str, ...]] = ("word_dropout", "smoothing")


class ClassifierTask(HeldOutTask):
    """A classifier, its tokenizer, and (rows of ids, classes) to train and validate."""

    config: ClassifierTraining
    unit = "texts"

    def count_batches(self, size: int) -> int:
        """Every text once."""
        return math.ceil(len(self.train[0]) / size)

    def loss(self, model: nn.Module, batch: TensorBatch) -> Tensor:
        """The cross-entropy of the class."""
        return class_loss(model, batch, self.config.smoothing)

    def draw(self) -> Iterator[TensorBatch]:
        """Texts of similar length, some words hidden."""
        (rows, labels), config = self.train, self.config
        settings = config.batch, config.seed, config.word_dropout
        return classifier_batches(rows, labels, self.model.config.max_length, *settings)

    def evaluate(self) -> dict[str, float]:
        """The loss per text, and the share of right answers."""
        rows, classes = self.valid
        return class_metrics(read_short(self.model, rows), torch.tensor(classes))


class TextClassifier(PretrainedModel):
    """Texts in, classes out: a text or a list of texts, and an answer in kind."""

    config_class: ClassVar[Any] = ClassifierConfig
    model_class: ClassVar[Any] = ClassifierModel
    hub_task = "text-classification"

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[Tokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        return (read_text_tokenizer(folder, config.vocab_size).tokenizer,)

    def files(self) -> TextTokenizer:
        """The tokenizer as it is saved."""
        return TextTokenizer(self.tokenizer)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.config.classes

    def probabilities(
        self, texts: str | Sequence[str]
    ) -> Float[Tensor, "*texts classes"]:
        """The probability of each class for each text, read to its end.

        Raises: UserError for what is no text, or for a model of no numbers.
        """
        probabilities = read_long(
            self.model, encode_texts(self.tokenizer, as_list(texts))
        )
        check_numbers(probabilities)
        return probabilities[0] if isinstance(texts, str) else probabilities

    def predict(self, texts: str | Sequence[str]) -> str | list[str]:
        """The likeliest class of each text. Raises: UserError as `probabilities`."""
        labels = self.probabilities(as_list(texts)).argmax(-1).tolist()
        names = [self.classes[i] for i in labels]
        return names[0] if isinstance(texts, str) else names

    def evaluate(self, data: str | Path = "imdb", root: Root = None) -> dict[str, Any]:
        """How often it is right, class by class, and how sure it is.

        Raises: UserError for examples of other classes.
        """
        test, _ = load_examples(data, "test", self.classes, root)
        probabilities, truth = self.probabilities(test.texts), torch.tensor(test.labels)
        right, rows = (probabilities.argmax(-1) == truth).double(), []
        for number, name in enumerate(self.classes):
            if len(own := right[truth == number]):
                share = own.mean().item()
                rows.append({"class": name, "accuracy": share, "texts": len(own)})
        names = "confidence", "accuracy", "texts"
        sure = [
            dict(zip(names, r, strict=True))
            for r in reliability(probabilities, test.labels)
        ]
        figures = {"accuracy": right.mean().item(), "texts": len(test)}
        return figures | {"classes": rows, "calibration": sure}

    @torch.no_grad()
    def contributions(self, text: str) -> tuple[list[str], Float[Tensor, "n classes"]]:
        """The tokens of a text, and what each adds to the score of each class."""
        row, weight = encode_texts(self.tokenizer, [text])[0], self.model.output.weight
        ids = [torch.tensor([p]) for p in pieces(row, self.model.config.max_length)]
        x = torch.cat([self.model.vectors(p.to(weight.device))[0] for p in ids])
        added = F.linear(x, weight) / len(row)
        return [self.tokenizer.id_to_token(i) for i in row], added.cpu()


# -- a new one -------------------------------------------------------------------------


def new_classifier(
    texts: Sequence[str], config: ClassifierConfig, seed: int = 1
) -> TextClassifier:
    """An untrained classifier, with a vocabulary learned from some texts: byte pairs
    of lower-cased words, at most `config.vocab_size` of them.
    """
    tokenizer = train_bpe(texts, config.vocab_size, lowercase=True)
    torch.manual_seed(seed)
    config = replace(config, vocab_size=tokenizer.get_vocab_size())
    return TextClassifier(ClassifierModel(config), tokenizer)


def load_examples(
    data: str | Path,
    split: str,
    classes: Sequence[str] | None = None,
    root: Root = None,
) -> tuple[Examples, tuple[str, ...]]:
    """Labelled texts, of IMDb or a file, and their classes, which may be given.

    Raises: UserError as `read_examples`, or where IMDb has other classes.
    """
    path, own = own_path(data, "imdb"), ClassifierConfig().classes
    if path:
        return read_examples(path, classes)
    if classes and set(classes) != set(own):
        raise UserError(
            f"the model knows the classes {', '.join(classes)}, and IMDb has others: "
            "name your own examples"
        )
    return imdb(split, root)[0], own


def classifier_task(
    data: str | Path, config: ClassifierConfig, training: ClassifierTraining, root: Root
) -> ClassifierTask:
    """A new classifier with a vocabulary of its own."""
    examples, classes = load_examples(data, "train", root=root)
    texts = examples.divide()[0].texts
    new = new_classifier(texts, replace(config, classes=classes), training.seed)
    return labelled_task(new.model, new.tokenizer, examples, training)


def labelled_task(
    model: ClassifierModel,
    tokenizer: Tokenizer,
    examples: Examples,
    training: ClassifierTraining,
) -> ClassifierTask:
    """The training of a classifier on nine tenths of some examples.

    Raises: UserError where the other tenth may be none.
    """
    if len(examples) < FEWEST:
        raise UserError(
            f"{len(examples)} texts are too few to keep a tenth for validation: give "
            f"at least {FEWEST}"
        )
    train, valid = (
        (encode_texts(tokenizer, each.texts), each.labels) for each in examples.divide()
    )
    return ClassifierTask(model, tokenizer, train, valid, training)


# -- its commands ----------------------------------------------------------------------


def predict_texts(model: TextClassifier, texts: Lines) -> Iterator[str]:
    """The most probable class of each text and its probability, line by line.

    **Examples**

    `annotated-transformer classifier predict runs/classifier "a waste of time"`

    `annotated-transformer classifier predict runs/classifier -i reviews.txt`
    """
    for some in texts:
        for row in model.probabilities(some):
            best = int(row.argmax())
            yield f"{escaped(model.classes[best])}\t{row[best]:.3f}"


DATA = "imdb, or a file of your own, an example a line: the class, a tab, the text"
MODEL_TYPE = ModelType(
    TextClassifier,
    classifier_task,
    ClassifierTraining(),
    data=DATA,
    decided=("classes",),
    about="A tenth of the texts is held out for validation. Evaluated are the share of "
    "right answers, in all and for each class, and the calibration.",
    example=("mails.tsv", "epochs=10"),
    commands={"predict": predict_texts},
)
