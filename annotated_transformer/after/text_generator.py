"""A language model, opened and used: it goes on from a text, and measures one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from ..data.text_tokenizer import TextTokenizer, read_text_tokenizer
from ..decoding.checks import as_list, check_numbers
from ..decoding.options import SearchOptions
from ..errors import UserError
from ..pretrained import PretrainedModel
from .language_model import (
    LanguageModel,
    LanguageModelConfig,
    generate_tokens,
    token_losses,
)


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
    ) -> str | list[str]:
        """`length` tokens that go on from each prompt, without the prompt.

        Raises: UserError for an option out of range, or for a prompt that is empty or
        has unknown characters.
        """
        options = SearchOptions(
            temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
        )
        if type(length) is not int or not 1 <= length < 2**31:
            raise UserError(f"length is {length}: write at least one token")
        found = [self._generate(each, length, options) for each in as_list(prompts)]
        return found[0] if isinstance(prompts, str) else found

    def _generate(self, prompt: str, length: int, options: SearchOptions) -> str:
        ids = self.tokenizer.encode(prompt)
        return self.tokenizer.decode(
            [*generate_tokens(self.model, ids, length, options)]
        )

    def measure(
        self, texts: str | Sequence[str], overlap: int = 0
    ) -> TextLoss | list[TextLoss]:
        """What each text costs; its first token, which nothing precedes, isn't counted.

        Raises: UserError for unknown characters, or fewer than two tokens.
        """
        found = [self._measure(each, overlap) for each in as_list(texts)]
        return found[0] if isinstance(texts, str) else found

    def _measure(self, text: str, overlap: int) -> TextLoss:
        ids = self.tokenizer.encode(text)
        if len(ids) < 2:
            raise UserError("the text has fewer than two tokens: take a longer one")
        nats = token_losses(self.model, torch.tensor(ids), overlap).double().sum()
        check_numbers(nats)
        first = len(self.tokenizer.decode(ids[:1]))
        words = len(text.split()) + text.count("\n")
        return TextLoss(nats.item(), len(ids) - 1, len(text) - first, max(1, words))
