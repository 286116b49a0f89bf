"""Many sentences at once: the searches over a model, and given sentences scored."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..data.batching import pad_rows
from ..data.tokenizer_files import as_rows
from .checks import check_source
from .options import SearchOptions, length_batches, random_numbers
from .search import Hypothesis, beam, sample
from .step_model import StepModel


@runtime_checkable
class SearchEngine(Protocol):
    """What a translator needs of a search."""

    def search(
        self, rows: list[list[int]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """The n best hypotheses of each row of source ids, best first."""


class ModelSearch:
    """Beam search or sampling over a model, in batches of similar length."""

    def __init__(self, model: StepModel):
        self.model = model

    def search(
        self, rows: Any, options: SearchOptions = SearchOptions()
    ) -> list[list[Hypothesis]]:
        """The n best hypotheses of each row of source ids, best first."""
        device, config = device_of(self.model), self.model.config
        rows = as_rows(rows, config.src_vocab_size, config.pad_id)
        results: dict[int, list[Hypothesis]] = {}
        generator = random_numbers(options, device)
        for indices in length_batches([len(row) for row in rows], options.batch_tokens):
            chosen = [rows[index] for index in indices]
            src = pad_rows(chosen, device, config.pad_id)
            if options.temperature is None:
                hypotheses = beam(self.model, src, options)
            else:
                hypotheses = _sample_n_best(self.model, src, options, generator)
            results |= zip(indices, hypotheses, strict=True)
        return [results[index] for index in range(len(rows))]


def plain_engine(model: StepModel, tokenizer: Any, dtype: str) -> ModelSearch:
    """A search over the readable model itself."""
    return ModelSearch(model)


def device_of(model: StepModel) -> torch.device:
    """Where a model's parameters lie; a model without any is searched on the CPU."""
    parameters: Iterable[Tensor] = getattr(model, "parameters", tuple)()
    return next((each.device for each in parameters), torch.device("cpu"))


def _sample_n_best(
    model: StepModel,
    src: Int[Tensor, "batch src"],
    options: SearchOptions,
    generator: torch.Generator | None,
) -> list[list[Hypothesis]]:
    """`n_best` samples of each source, the most probable first."""
    n = options.n_best
    drawn = sample(model, src.repeat_interleave(n, dim=0), options, generator)
    groups = [drawn[start : start + n] for start in range(0, len(drawn), n)]
    return [sorted(each, key=lambda h: -h.score) for each in groups]


@torch.inference_mode()
def teacher_forcing(
    model: StepModel, src: Int[Tensor, "batch src"], tgt: Int[Tensor, "batch tgt"]
) -> Float[Tensor, "batch tgt"]:
    """log p of each given target token, all in one pass.

    `tgt` has no begin token, and its padding scores 0.
    """
    check_source(model, src)
    config = model.config
    begin = tgt.new_full((len(tgt), 1), config.bos_id)
    logits = model(src, torch.cat([begin, tgt[:, :-1]], dim=1))
    log_probs = logits.float().log_softmax(dim=-1).gather(2, tgt[..., None]).squeeze(2)
    return log_probs.masked_fill(tgt == config.pad_id, 0.0)
