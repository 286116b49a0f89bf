"""Scores of a whole system: BLEU, chrF, and their signatures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from ..data.pair_tokenizer import moses_tokenize
from .bleu import moses_tokens, split_compounds
from .references import reference_files


@dataclass(frozen=True)
class SystemScore:
    """One score of one output file.

    Precisions are in per cent, lengths in tokens; chrF has neither.
    """

    name: str
    value: float
    signature: str
    precisions: tuple[float, ...] = ()
    hypothesis_length: int = 0
    reference_length: int = 0


def system_score(
    name: str,
    metric: BLEU | CHRF,
    files: Sequence[Sequence[str]],
    tokenizer: str | None = None,
) -> SystemScore:
    """Let sacreBLEU score `files`: the hypotheses, then each file of references."""
    hypotheses, *references = files
    result: Any = metric.corpus_score(hypotheses, references)
    signature = metric.get_signature()
    if tokenizer is not None:
        signature.update("tok", tokenizer)
    found = SystemScore(name, result.score, str(signature))
    if isinstance(metric, CHRF):
        return found
    lengths = {"hypothesis_length": result.sys_len, "reference_length": result.ref_len}
    return replace(found, precisions=tuple(result.precisions), **lengths)


def scores(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    language: str,
) -> list[SystemScore]:
    """Score one output file by every convention; `language` is that of the text, such
    as "de".

    The texts are plain: detokenised, cased, one sentence a line.

    Raises:
        UserError: as `reference_files`.
    """
    files = [list(hypotheses), *reference_files(hypotheses, references)]
    tool = f"moses-{language}-sacremoses-{version('sacremoses')}"
    moses = [moses_tokens(file, language) for file in files]
    lowered = [moses_tokenize(file, language, True) for file in files]
    split = [[split_compounds(line) for line in file] for file in moses]
    counted = BLEU(tokenize="none", smooth_method="none", force=True)
    lower = BLEU(tokenize="none", smooth_method="none", force=True, lowercase=True)
    return [
        system_score("BLEU 13a", BLEU(), files),
        system_score("BLEU 13a, lower-cased", BLEU(lowercase=True), files),
        system_score("BLEU intl", BLEU(tokenize="intl"), files),
        system_score("BLEU Moses", counted, moses, tool),
        system_score("BLEU Moses, lower-cased", lower, lowered, f"{tool}-normalised"),
        system_score("BLEU Moses, compounds split", counted, split, f"{tool}-atat"),
        system_score("chrF", CHRF(), files),
        system_score("chrF++", CHRF(word_order=2), files),
    ]


def format_scores(results: Sequence[SystemScore]) -> str:
    """A plain-text table: one line a score with its value, precisions, lengths and
    signature.
    """
    width = max((len(score.name) for score in results), default=0)
    rows = []
    for score in results:
        shares = "/".join(f"{share:.1f}" for share in score.precisions)
        lengths = f"{score.hypothesis_length}:{score.reference_length}"
        lengths *= bool(score.precisions)
        rows.append(
            f"{score.name:<{width}}  {score.value:6.2f}  {shares:<19}  {lengths:<13}  "
            f"{score.signature}"
        )
    return "\n".join(rows)
