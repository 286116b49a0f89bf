"""How a text goes on: the language model as one trains, opens and uses it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch

from ..data.text_tokenizer import (
    TextTokenizer,
    byte_pairs,
    characters,
    read_text_tokenizer,
)
from ..data.texts import TEXTS, load_text, read_text
from ..decoding.checks import as_list, check_numbers
from ..decoding.options import SearchOptions
from ..errors import UserError, nearest
from ..pretrained import PretrainedModel
from ..registry import ModelType, Root
from ..training.held_out import BatchedTraining, HeldOutTask
from ..training.task import TensorBatch
from .language_model import (
    LanguageModel,
    LanguageModelConfig,
    generate_tokens,
    next_token_loss,
    text_batches,
    token_losses,
)


@dataclass(frozen=True)
class LanguageTraining(BatchedTraining):
    """How to train a language model; `batch` counts windows of its max_length."""

    steps: int = 2_000
    batch: int = 16
    peak: float = 2e-3


class LanguageModelTask(HeldOutTask):
    """A language model, its tokenizer, and the ids of a text and of its held-out part.

    Raises: UserError for a text too short for one window, or a held-out part of fewer
    than two tokens.
    """

    config: LanguageTraining
    loss = staticmethod(next_token_loss)

    def count_batches(self, size: int) -> int:
        """A window for each `max_length` of the tokens."""
        if len(self.valid) < 2:
            few = "the held-out text has fewer than two tokens"
            raise UserError(f"{few}: take a longer one")
        length = self.model.config.max_length
        next(text_batches(self.train, 1, length, seed=0))  # is there one?
        return len(self.train) // (size * length)

    def draw(self) -> Iterator[TensorBatch]:
        """Windows of the text, at random."""
        sizes = self.config.batch, self.model.config.max_length
        return text_batches(self.train, *sizes, self.config.seed)

    def evaluate(self) -> dict[str, float]:
        """The loss per token of the first 128 windows, and the perplexity."""
        some = self.valid[: 128 * self.model.config.max_length + 1]
        loss = token_losses(self.model, some).mean().item()
        return {"loss": loss, "perplexity": math.exp(min(loss, 700))}


@dataclass(frozen=True)
class TextLoss:
    """What a text cost a model: all its nats, and what they may be divided by."""

    nats: float
    tokens: int
    characters: int
    words: int

    @property
    def nats_per_token(self) -> float:
        """The loss that training lowers."""
        return self.nats / self.tokens

    @property
    def bits_per_character(self) -> float:
        """Comparable between tokenizers."""
        return self.nats / math.log(2) / self.characters

    @property
    def perplexity_per_word(self) -> float:
        """By WikiText's count, in which a line's end is a word too."""
        return math.exp(min(self.nats / self.words, 700))


class TextGenerator(PretrainedModel):
    """Texts in, texts out: a text or a list of texts, and an answer in kind.

    The model is any with `start`, `step` and `config.max_length`: ours or a GPT-2.
    """

    config_class: ClassVar[Any] = LanguageModelConfig
    model_class: ClassVar[Any] = LanguageModel
    hub_task = "text-generation"

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[TextTokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        return (read_text_tokenizer(folder, config.vocab_size),)

    def generate(
        self,
        prompts: str | Sequence[str] = "\n",
        length: int = 200,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int | None = None,
        **unknown: Any,
    ) -> str | list[str]:
        """`length` tokens that go on from each prompt, without the prompt.

        Raises: UserError for an unknown option or one out of range, or for a prompt
        that is empty or has unknown characters.
        """
        for name in unknown:
            remedy = nearest(name, ("length", "temperature", "top_k", "top_p", "seed"))
            raise UserError(f"unknown option {name!r}: {remedy}")
        options = SearchOptions(
            temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
        )
        if type(length) is not int or not 1 <= length < 2**31:
            raise UserError(f"length is {length}: write at least one token")
        texts = []
        for prompt in as_list(prompts):
            ids = self.tokenizer.encode(prompt)
            written = generate_tokens(self.model, ids, length, options)
            texts.append(self.tokenizer.decode([*written]))
        return texts[0] if isinstance(prompts, str) else texts

    def measure(self, texts: str | Sequence[str]) -> TextLoss | list[TextLoss]:
        """What each text costs; its first token, which nothing precedes, isn't counted.

        Raises: UserError for unknown characters, or fewer than two tokens.
        """
        measured = [self._measure(each) for each in as_list(texts)]
        return measured[0] if isinstance(texts, str) else measured

    def _measure(self, text: str) -> TextLoss:
        ids = self.tokenizer.encode(text)
        if len(ids) < 2:
            raise UserError("the text has fewer than two tokens: take a longer one")
        nats = token_losses(self.model, torch.tensor(ids)).double().sum()
        check_numbers(nats)
        first = len(self.tokenizer.decode(ids[:1]))
        words = len(text.split()) + text.count("\n")
        return TextLoss(nats.item(), len(ids) - 1, len(text) - first, max(1, words))

    def evaluate(
        self, data: str | Path = "tiny-shakespeare", root: Root = None
    ) -> dict[str, Any]:
        """What the held-out part of a named text costs, or a whole file."""
        own = str(data) not in TEXTS and Path(data).is_file()
        text = read_text(data) if own else load_text(str(data), root)[1]
        measured = self._measure(text)
        names = "characters", "tokens", "nats_per_token", "bits_per_character"
        return {
            name: getattr(measured, name) for name in (*names, "perplexity_per_word")
        }


def language_task(
    data: str | Path,
    config: LanguageModelConfig,
    training: LanguageTraining,
    root: Root,
) -> LanguageModelTask:
    """A new language model: of characters, or of byte pairs if vocab_size was set.

    The characters of both parts are known, byte pairs are learned from the first alone.
    """
    sides = known, held = load_text(str(data), root)
    if config.vocab_size == LanguageModelConfig().vocab_size:
        tokenizer = characters(known + held)
    else:
        tokenizer = byte_pairs(known, config.vocab_size)
    torch.manual_seed(training.seed)
    model = LanguageModel(replace(config, vocab_size=tokenizer.size))
    train, valid = (torch.tensor(tokenizer.encode(part)) for part in sides)
    return LanguageModelTask(model, tokenizer, train, valid, training)


def generate(
    model: TextGenerator,
    prompt: Annotated[str, "What to go on from."] = "\n",
    *,
    length: Annotated[int, "Tokens to write."] = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int | None = None,
) -> Iterator[str]:
    """Write what may follow a text: samples from the model, token by token.

    **Examples**

    `annotated-transformer language-model generate runs/language-model "ROMEO:"`

    `annotated-transformer language-model generate openai-community/gpt2 "Once"`
    `--top-k 40`
    """
    how: dict[str, Any] = {"top_k": top_k, "top_p": top_p, "seed": seed}
    yield f"{prompt}{model.generate(prompt, length, temperature=temperature, **how)}"


MODEL_TYPE = ModelType(
    TextGenerator,
    language_task,
    LanguageTraining(),
    data="tiny-shakespeare, or a text file of your own",
    about="Tokens are characters, or byte pairs if vocab_size is set. The last tenth "
    "of a text is held out. A file of your own is evaluated whole.",
    example=("own.txt", "vocab_size=2000"),
    commands={"generate": generate},
)
