"""A masked language model, used: what might stand where a text says [MASK]."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from tokenizers import Tokenizer

from ..data.text_tokenizer import TextTokenizer, encode_texts, read_text_tokenizer
from ..decoding.checks import as_list, check_numbers
from ..errors import UserError
from ..pretrained import PretrainedModel
from .masked_language_model import MASK, MaskedLanguageModel, MaskedLanguageModelConfig

Gap = list[tuple[str, float]]  # its most probable tokens, with their probabilities


class MaskFiller(PretrainedModel):
    """Texts with gaps in, what might fill them out: a text or a list of texts.

    The model is any that gives a score for each token at each place: ours or a BERT.
    """

    config_class: ClassVar[Any] = MaskedLanguageModelConfig
    model_class: ClassVar[Any] = MaskedLanguageModel

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
        found = [self._fill(each, count) for each in as_list(texts)]
        return found[0] if isinstance(texts, str) else found

    @torch.inference_mode()
    def _fill(self, text: str, count: int) -> list[Gap]:
        gap, (ids,) = (
            self.tokenizer.token_to_id(MASK),
            encode_texts(self.tokenizer, [text]),
        )
        gaps = [place for place, token in enumerate(ids) if token == gap]
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
            [
                (self.tokenizer.id_to_token(token), chance)
                for token, chance in zip(tokens, chances, strict=True)
            ]
            for tokens, chances in zip(
                best.indices.tolist(), best.values.tolist(), strict=True
            )
        ]
