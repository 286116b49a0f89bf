"""A classifier of texts, opened and used: the class of a text, and why."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor

from ..data.text_tokenizer import TextTokenizer, encode_texts, read_text_tokenizer
from ..data.tokenizer import train_bpe
from ..decoding.checks import as_list, check_numbers
from ..pretrained import PretrainedModel
from .classifier import ClassifierConfig, TextClassifier, pieces, read_whole


class Classifier(PretrainedModel):
    """Texts in, classes out: a text or a list of texts, and an answer in kind."""

    config_class: ClassVar[Any] = ClassifierConfig
    model_class: ClassVar[Any] = TextClassifier

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
        found = read_whole(self.model, encode_texts(self.tokenizer, as_list(texts)))
        check_numbers(found)
        return found[0] if isinstance(texts, str) else found

    def predict(self, texts: str | Sequence[str]) -> str | list[str]:
        """The likeliest class of each text. Raises: UserError as `probabilities`."""
        found = self.probabilities(as_list(texts)).argmax(-1).tolist()
        names = [self.classes[i] for i in found]
        return names[0] if isinstance(texts, str) else names

    @torch.no_grad()
    def contributions(self, text: str) -> tuple[list[str], Float[Tensor, "n classes"]]:
        """The tokens of a text, and what each adds to the score of each class."""
        row, weight = encode_texts(self.tokenizer, [text])[0], self.model.output.weight
        ids = [torch.tensor([p]) for p in pieces(row, self.model.config.max_length)]
        x = torch.cat([self.model.vectors(p.to(weight.device))[0] for p in ids])
        added = F.linear(x, weight) / len(row)
        return [self.tokenizer.id_to_token(i) for i in row], added.cpu()


def new_classifier(
    texts: Sequence[str], config: ClassifierConfig, seed: int = 1
) -> Classifier:
    """An untrained classifier, with a vocabulary learned from some texts: byte pairs
    of lower-cased words, at most `config.vocab_size` of them.
    """
    tokenizer = train_bpe(texts, config.vocab_size, lowercase=True)
    torch.manual_seed(seed)
    config = replace(config, vocab_size=tokenizer.get_vocab_size())
    return Classifier(TextClassifier(config), tokenizer)
