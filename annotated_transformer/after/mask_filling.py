"""What a text hides: the masked language model as one trains, opens and uses it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from tokenizers import Tokenizer

from ..data.labelled_texts import draw_examples
from ..data.published_files import own_path
from ..data.text_files import read_lines
from ..data.text_tokenizer import TextTokenizer, encode_texts, read_text_tokenizer
from ..data.texts import unlabelled
from ..decoding.checks import as_list, check_numbers
from ..errors import UserError, escaped
from ..pretrained import PretrainedModel
from ..registry import Lines, ModelType, Root
from ..training.held_out import BatchedTraining, HeldOutTask
from ..training.task import TensorBatch
from .masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    classifier_from,
    masked_loss,
)
from .masked_texts import MASK, mask_tokenizer, masked_batches, predictions, text_rows
from .text_classification import (
    ClassifierTask,
    ClassifierTraining,
    labelled_task,
    load_examples,
)

FINE_TUNING = ClassifierTraining(batch=32, peak=3e-3, word_dropout=0.1)
Gap = list[tuple[str, float]]  # its most probable tokens, with their probabilities


@dataclass(frozen=True)
class MaskedTraining(BatchedTraining):
    """How to pretrain.

    Of all tokens a `share` is chosen to be predicted. Of the chosen, `masked` are
    replaced by [MASK], half of the others by a random token, and the other half stay.
    For the first `short_share` of the updates rows are cut into pieces of at most
    `short` tokens, and a batch has so many more of them.
    """

    steps: int = 10_000
    batch: int = 32
    peak: float = 4e-3
    share: float = 0.15
    masked: float = 0.8
    short: int = 32
    short_share: float = 0.75
    save_every: int = 500
    counts: ClassVar[tuple[str, ...]] = (*BatchedTraining.counts, "short")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check("share", 0 < self.share < 1, "must be above 0 and below 1")
        for name in ("masked", "short_share"):
            self.check(name, 0 <= getattr(self, name) <= 1, "is a share, from 0 to 1")


class MaskedLanguageModelTask(HeldOutTask):
    """A masked language model, its tokenizer, and rows of ids to train and validate."""

    config: MaskedTraining
    loss = staticmethod(masked_loss)

    def draw(self) -> Iterator[TensorBatch]:
        """Rows of similar length, hidden anew each time, and short at first."""
        config, mask_id = self.config, self.model.config.mask_id
        sizes = config.batch, config.seed, config.share, config.masked
        updates = round(config.short_share * config.steps)
        return masked_batches(self.train, mask_id, *sizes, config.short, updates)

    def evaluate(self) -> dict[str, float]:
        """The loss per hidden token, and the share of right predictions."""
        loss, right = predictions(self.model, self.valid)
        return {"loss": loss, "accuracy": right}


class MaskFiller(PretrainedModel):
    """Texts with gaps in, what might fill them out: a text or a list of texts.

    The model is any that gives a score for each token at each position: ours or a BERT.
    """

    config_class: ClassVar[Any] = MaskedLanguageModelConfig
    model_class: ClassVar[Any] = MaskedLanguageModel
    hub_task = "fill-mask"

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[Tokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        tokenizer = read_text_tokenizer(folder, config.vocab_size).tokenizer
        if tokenizer.token_to_id(MASK) != config.mask_id:
            raise UserError(
                f"{folder / 'tokenizer.json'}: its last token isn't {MASK}; take "
                "another copy"
            )
        return (tokenizer,)

    def files(self) -> TextTokenizer:
        """The tokenizer as it is saved."""
        return TextTokenizer(self.tokenizer)

    def fill(
        self, texts: str | Sequence[str], count: int = 5
    ) -> list[Gap] | list[list[Gap]]:
        """For each [MASK] of each text the most probable tokens, with probabilities.

        Raises: UserError for a text without a [MASK] or longer than the model reads.
        """
        filled = [self._fill(each, count) for each in as_list(texts)]
        return filled[0] if isinstance(texts, str) else filled

    @torch.inference_mode()
    def _fill(self, text: str, count: int) -> list[Gap]:
        gap = self.tokenizer.token_to_id(MASK)
        (ids,) = encode_texts(self.tokenizer, [text])
        gaps = [position for position, token in enumerate(ids) if token == gap]
        if not gaps:
            raise UserError("the text has no gap: write [MASK] where a word is missing")
        size = self.tokenizer.get_vocab_size()
        if not 1 <= count <= size:
            raise UserError(f"count is {count}: ask for 1 to {size} tokens")
        device = self.model.embedding.weight.device
        logits = self.model(torch.tensor([ids], device=device))[0, gaps, :size]
        check_numbers(logits)
        best = logits.softmax(dim=1).topk(count, dim=1)
        return [
            [(self.tokenizer.id_to_token(i), p) for i, p in zip(*row, strict=True)]
            for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def evaluate(self, data: str | Path = "imdb", root: Root = None) -> dict[str, Any]:
        """The loss on hidden tokens of held-out texts, or of a whole file, and how many
        are predicted right. Raises: UserError for a BERT.
        """
        check_own(self)
        path = own_path(data, "imdb")
        texts = list(read_lines(path)) if path else unlabelled(None, root)[1]
        rows = text_rows(self.tokenizer, texts, self.config.max_length)
        loss, right = predictions(self.model, rows)
        return {"nats_per_hidden_token": loss, "accuracy": right}


def check_own(filler: MaskFiller) -> None:
    """Raises: UserError for a masked language model of another make, such as a BERT."""
    if not isinstance(filler.model, MaskedLanguageModel):
        raise UserError(
            "this model isn't one of ours: masked-language-model fill uses it"
        )


def masked_task(
    data: str | Path,
    config: MaskedLanguageModelConfig,
    training: MaskedTraining,
    root: Root,
) -> MaskedLanguageModelTask:
    """A new masked language model with a vocabulary of its own."""
    texts = unlabelled(own_path(data, "imdb"), root)
    tokenizer = mask_tokenizer(texts[0], config.vocab_size)
    config = replace(config, vocab_size=tokenizer.get_vocab_size())
    torch.manual_seed(training.seed)
    model = MaskedLanguageModel(config)
    train, valid = (text_rows(tokenizer, part, config.max_length) for part in texts)
    return MaskedLanguageModelTask(model, tokenizer, train, valid, training)


# -- its commands ----------------------------------------------------------------------


def fill(
    model: MaskFiller,
    texts: Lines,
    *,
    count: Annotated[int, "How many tokens for each gap."] = 5,
) -> Iterator[str]:
    """The most probable tokens for each [MASK] of a text: the number of the gap, the
    token, its probability.

    **Examples**

    `annotated-transformer masked-language-model fill runs/masked-language-model`
    `"The film was [MASK]."`

    `annotated-transformer masked-language-model fill google-bert/bert-base-uncased`
    `"I [MASK] you."`
    """
    for some in texts:
        filled: Any = model.fill(some, count)
        for gaps in filled:
            for number, best in enumerate(gaps, start=1):
                for token, chance in best:
                    yield f"{number}\t{escaped(token)}\t{chance:.1%}"


def fine_tune_classifier(
    model: MaskFiller,
    data: Annotated[
        str, "imdb, or a file with an example a line: the class, a tab, the text."
    ] = "imdb",
    *,
    labels: Annotated[
        int | None, "Train on so many labelled texts alone, drawn at random."
    ] = None,
    training: ClassifierTraining = FINE_TUNING,
    root: Root = None,
) -> ClassifierTask:
    """Make a classifier of a pretrained model, for `classifier evaluate` and `predict`.

    A tenth of the texts is held out; --set takes the settings of its training.

    **Examples**

    `annotated-transformer masked-language-model fine-tune`
    `runs/masked-language-model films.tsv --out runs/films --set epochs=10`
    """
    check_own(model)
    examples, classes = load_examples(data, "train", root=root)
    if labels is not None:
        examples = draw_examples(examples, labels, training.seed)
    torch.manual_seed(training.seed)
    classifier = classifier_from(model.model, classes)
    return labelled_task(classifier, model.tokenizer, examples, training)


MODEL_TYPE = ModelType(
    MaskFiller,
    masked_task,
    MaskedTraining(),
    data="imdb, or a file of your own, a text a line",
    about="15 % of the tokens are hidden and predicted. Held out are some of IMDb's "
    "test reviews, or a tenth of your own lines; a file of yours is evaluated whole.",
    example=("own.txt", "vocab_size=2000"),
    commands={"fill": fill, "fine-tune": fine_tune_classifier},
)
