"""Constrained decoding: a search over what makes a tree of its sentence, alone."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from annotated_transformer.cache import Cache
from annotated_transformer.decoding.step_model import StepModel
from annotated_transformer.model.config import BOS, EOS
from annotated_transformer.translation.parsing import TreeVocabulary


@dataclass(frozen=True)
class PartialTree:
    """A tree half written: the tags so far (and <s>), the brackets that are open."""

    tags: int = 0
    opened: tuple[str, ...] = ()
    empty: bool = False

    def after(self, token: str) -> "PartialTree":
        """With one token more."""
        if token.startswith("("):
            return PartialTree(self.tags, (*self.opened, token[1:]), empty=True)
        if token.startswith(")"):
            return PartialTree(self.tags, self.opened[:-1])
        return PartialTree(self.tags + 1, self.opened)


class WellFormed:
    """A `StepModel` that writes trees over its sentence alone, whatever it learned.

    What it gives to all tags together goes to the sentence's next tag, and what it
    gives to all closing brackets to that of the innermost constituent. Only a search's
    limit of length can leave a bracket open.
    """

    def __init__(self, model: StepModel, vocabulary: TreeVocabulary):
        self.model, self.config, self.training = model, model.config, model.training
        self.tokens, self.ids = vocabulary.tokens, vocabulary.ids
        pieces = list(enumerate(self.tokens))
        self.openings = [id for id, token in pieces if token[0] == "("]
        self.closings = [id for id, token in pieces if token[0] == ")"]
        self.tags = [id for id, token in pieces if token[0] not in "()<"]

    def start(self, src: Int[Tensor, "batch src"], beam_size: int = 1) -> Cache:
        """As `StepModel`: the model's cache, the sentences, <s> first, and what of each
        tree is written.
        """
        rows = src.repeat_interleave(beam_size, dim=0).tolist()
        sentences = [[BOS, *row] for row in rows]
        inner = self.model.start(src, beam_size)
        written = [PartialTree()] * len(rows)
        return Cache(inner=inner, sentences=sentences, written=written)

    def step(
        self, tokens: Int[Tensor, " rows"], cache: Cache
    ) -> Float[Tensor, "rows vocab"]:
        """As `StepModel`; −∞ for what can't come next."""
        read = zip(cache.written, tokens.tolist(), strict=True)
        cache.written = [before.after(self.tokens[id]) for before, id in read]
        logits = self.model.step(tokens, cache.inner)
        tag = logits[:, self.tags].logsumexp(dim=1)
        closing = logits[:, self.closings].logsumexp(dim=1)
        scores = torch.full_like(logits, -math.inf)
        both = zip(cache.sentences, cache.written, strict=True)
        for row, (sentence, written) in enumerate(both):
            following = sentence[min(written.tags, len(sentence) - 1)]
            over, depth = following == EOS, len(written.opened)
            closable = depth > 0 if over else depth > 1 and not written.empty
            if not over:
                scores[row, self.openings] = logits[row, self.openings]
            if over != (depth > 0):  # a tag inside a bracket, or the end outside all
                scores[row, following] = tag[row]
            if closable:
                scores[row, self.ids[f"){written.opened[-1]}"]] = closing[row]
        return scores
